"""What once went wrong, or would: names that engines confuse, identifiers that merge, types that overflow,
files that talk.
"""

from __future__ import annotations

import gzip
import math
import traceback

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import discreet as dp
from discreet.encoding.duckdb import DuckDB
from discreet.random import seeded
from discreet.tables import EngineFailed, col
from discreet.tables.bounding import ContributionLimit, Field, SecretKey, bound
from discreet.tables.fixed_point import FINE
from discreet.tables.keys import KeySelection
from discreet.tables.passes import ScanPass
from tests.tables import frames

SHARP = {"epsilon": 1000.0, "rng": 1}
SECRET = "a-very-private-name"
X = dp.Schema(x=dp.Bounded(0, 10))


def said(failed):
    """All that a failure says, with its causes."""
    return "".join(traceback.format_exception(failed.value))


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "odd", ["V0", "v0", "K0", "Unit_", "unit_", "B", "D", "One_", "T0", "Z0", "C0", "c1", "rows", "S"]
)
def test_no_column_of_the_table_stands_for_one_of_ours(odd):
    """To the engines V0 and v0 are one name; what is summed is the clipped column, and who is bounded is the unit."""
    frame = pl.DataFrame({odd: [1e9, 2e9, 3e9, 4e9], "k": [1, 1, 2, 2], "x": [5.0] * 4, "who": [7, 7, 7, 8]})
    schema = dp.Schema({odd: dp.Bounded(0, 1e10), "k": dp.Categories([1, 2]), "x": dp.Bounded(0, 10)})
    found = dp.table(frame, schema=schema).derive(z=col("x") * 2).group_by("k").sum("x").sum("z").release(**SHARP).value
    assert found["x_sum"].to_list() == pytest.approx([10, 10], abs=0.5)
    assert found["z_sum"].to_list() == pytest.approx([20, 20], abs=0.5)
    table = dp.table(frame, schema=schema, unit="who")
    assert table.count().release(**SHARP).value["count"][0] == 2
    assert table.histogram("x", 2).release(**SHARP).value["x_histogram"][0].to_list() == [0, 2]


# --- identifiers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "identifier",
    [
        "uuid()",
        "i",
        "i + 0.25",
        "i::HUGEINT + 18446744073709551616",
        "i::VARCHAR",
        "(i / 4)::DECIMAL(18, 2)",
        "i::UTINYINT",
        "(1000 + i)::BIT",
        "1e300 * (1 + i)",
    ],
)
def test_units_of_every_type_stay_apart(identifier):
    """Two units read as one would replace each other's rows, and one of them would move two counts."""
    relation = duckdb.connect().sql(f"SELECT {identifier} AS who, 1.0 AS x FROM range(10) t(i)")
    for rows in (1, 2):
        table = dp.table(relation, schema=X, unit="who", max_rows_per_unit=rows)
        assert table.count().release(**SHARP).value["count"][0] == 10


def test_rows_that_hash_alike_are_told_apart_by_their_values():
    """Two doubles of one whole part, and doubles too large for one: the choice does not depend on the order of rows."""
    values = [1e300, 2e300, 1.2, 1.4, -1e300, None, math.inf]
    frame = pl.DataFrame({"unit_": np.repeat(np.arange(40), 7), "d": values * 40})
    fields, key = [Field("d", kind="number")], SecretKey.draw(seeded(1))

    def kept(rows, many):
        relation = frames.CONNECTION.from_arrow(many.to_arrow())
        found = bound(DuckDB(), relation, fields, [], "integer", ContributionLimit("unit_", rows, rows), key).fetchall()
        return sorted(found, key=repr)

    for rows in (1, 2, 3):
        expected = kept(rows, frame)
        assert len(expected) == 40 * rows
        for seed in range(3):
            assert kept(rows, frame.sample(fraction=1.0, shuffle=True, seed=seed)) == expected
    assert {(1.2,), (1.4,)} < set(kept(1, frame))  # and 1.2 is not always before 1.4


def test_a_unit_is_counted_by_one_scan_only():
    """Medians need a scan of their own, in which a unit's other row may be chosen:
    its other group gains no count by that.
    """
    frame = pl.DataFrame({"who": np.repeat(np.arange(400), 2), "name": ["a", "b"] * 400, "x": [1.0, 9.0] * 400})
    table = dp.table(frame, schema=dp.Schema(name=dp.Unlisted(), x=dp.Bounded(0, 10)), unit="who")
    found = table.group_by("name").count().median("x").release(epsilon=500.0, delta=1e-6, rng=1).value
    assert found["count"].sum() == pytest.approx(400, abs=1)
    lone = table.filter(col("x") < 5).group_by("name").count().median("x")  # "b" is in no scan
    assert lone.release(epsilon=500.0, delta=1e-6, rng=1).value["name"].to_list() == ["a"]


def test_selected_keys_do_not_depend_on_the_order_of_groups():
    """Engines list groups in any order; under one seed the answer is one."""
    counts = {(name,): 20 + number for number, name in enumerate("abcdefgh")}
    backwards = dict(reversed(counts.items()))
    one, other = (KeySelection(1.0, 1e-3).release(found, rng=3).value for found in (counts, backwards))
    assert list(one.items()) == list(other.items())


# --- types -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [pl.UInt8, pl.Int8, pl.Int16, pl.UInt64, pl.Int64, pl.Float32])
def test_arithmetic_is_on_doubles_whatever_the_type_of_a_column(dtype):
    """1 - 16 and 16·16 do not fit in a byte, and an engine that fails on some rows tells about them."""
    frame = pl.DataFrame({"a": pl.Series([1, 16], dtype=dtype), "b": pl.Series([16, 16], dtype=dtype)})
    table = dp.table(frame, schema=dp.Schema(a=dp.Categories(range(1, 17)), b=dp.Categories(range(1, 17))))
    found = (
        table.derive(less=col("a") - col("b"), times=col("a") * col("b"))
        .sum("less")
        .sum("times")
        .release(**SHARP)
        .value
    )
    assert found["less_sum"][0] == pytest.approx(-15, abs=0.5)
    assert found["times_sum"][0] == pytest.approx(272, abs=5)


def test_what_is_not_a_number_on_the_way_is_missing():
    """∞ - ∞ and 0·∞ have no value, in derived columns and in conditions; infinities are clipped."""
    table = dp.table(pl.DataFrame({"x": [1e150, -1e150, 1.0]}), schema=dp.Schema(x=dp.Bounded(-1e150, 1e150)))
    cube = col("x") * col("x") * col("x")
    derived = table.derive(
        none=(cube - cube).clip(0, 1),
        zero=(cube * 0).clip(0, 1),
        ends=cube.clip(0, 1),
        floor=cube.floor().clip(-2, 2),
        root=cube.sqrt().clip(0, 1),
    )
    found = derived.count("none").count("zero").count("ends").count("floor").count("root").release(**SHARP).value
    assert found.row(0) == (1, 1, 3, 3, 2)
    assert table.filter(cube - cube >= 0).count().release(**SHARP).value["count"][0] == 1


def test_long_chains_of_expressions_stay_short_queries():
    """Each use of a column in another would double the text; as columns of their own they add a line."""
    table, lengths = frames.table([]), []
    for number in range(12):
        previous = col("x") if not number else col(f"s{number - 1}")
        table = table.derive(**{f"s{number}": (previous.clip(0, 5) * previous / 2).clip(0, 10)})
        lengths.append(len(table.sum(f"s{number}").rows.plan(ScanPass(sums=((f"s{number}", FINE),)))))
    assert lengths[-1] < 20 * lengths[0]


@pytest.mark.parametrize(
    "values", [[1.0, 1e300, math.nan, math.inf, -1e300, None, 2.5], [1, 2**63 - 1, -(2**63), None]]
)
@pytest.mark.parametrize("unit", [None, "who"])
def test_odd_numbers_as_consecutive_keys_go_to_other_or_nowhere(values, unit):
    """A key's code is a cast that only known values reach."""
    frame = pl.DataFrame({"k": values, "who": range(len(values))})
    for other, expected in ((None, [1, 0]), (-1, [1, 0, len(values) - 1])):
        table = dp.table(frame, schema=dp.Schema(k=dp.Categories([1, 2], other=other)), unit=unit)
        assert table.group_by("k").count().release(**SHARP).value["count"].to_list() == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: t.filter(col("city").is_in([1])), "text Categories: write the values as text"),
        (lambda t: t.filter(col("x").is_in([None])), "operand is None"),
        (lambda t: t.filter(col("x").is_in([math.nan])), "operand is nan"),
    ],
)
def test_comparisons_that_an_engine_might_fail_on_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make(frames.table([]))


def test_more_rows_a_unit_than_an_engine_counts_are_refused():
    """It would fail for a unit with rows, and not for an empty table."""
    with pytest.raises(ValueError, match="max_rows_per_unit is 1,000,000, but may be 999,999 at most"):
        frames.table([], unit="unit", max_rows_per_unit=10**6)
    assert (
        frames.table([(1, (1, "a", 1.0, "p", 1.0, 1))], unit="unit", max_rows_per_unit=999_999)
        .count()
        .release(epsilon=1e9, rng=1)
        .value["count"][0]
        == 1
    )


# --- files and frames that talk --------------------------------------------------------------------------------------


def test_a_text_file_without_names_does_not_show_its_first_record(tmp_path):
    (tmp_path / "a.csv").write_text(f"5,{SECRET}\n6,other\n")
    with pytest.raises(ValueError, match="no column 'x' in the first line of") as failed:
        dp.table(tmp_path / "a.csv", schema=X)
    assert SECRET not in said(failed)


def test_bytes_that_are_no_text_spoil_their_own_line_alone(tmp_path):
    """Wherever they are, the file opens, and other rows count."""
    (tmp_path / "a.csv").write_bytes(b"x,k\n" + b"1,a\n" * 50 + b"1,\xff\xfe\n" + b"1,a\n" * 50)
    table = dp.table(tmp_path / "a.csv", schema=dp.Schema(x=dp.Bounded(0, 10), k=dp.Categories(["a"])))
    assert table.group_by("k").count().release(**SHARP).value["count"][0] == 100


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv.gz", b"x\n1\n"),
        ("a.csv.gz", gzip.compress(b"x\n1\n" * 99, mtime=0)[:12]),
        ("a.parquet", SECRET.encode()),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused_quietly(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises((ValueError, EngineFailed)) as failed:
        dp.table(tmp_path / name, schema=X)
    assert SECRET not in said(failed)
    assert "b'x" not in said(failed)


def test_text_files_read_together_have_the_same_names_in_the_same_order(tmp_path):
    """By position alone a unit would be read out of another column."""
    (tmp_path / "1.csv").write_text("x,who\n1,7\n")
    (tmp_path / "2.csv").write_text("who,x\n7,1\n")
    with pytest.raises(ValueError, match="has other columns than"):
        dp.table(str(tmp_path / "*.csv"), schema=X, unit="who")


@pytest.mark.parametrize(
    "other", [pl.DataFrame({"x": [SECRET]}), pl.DataFrame({"x": [2**40]}), pl.DataFrame({"y": [1]})]
)
def test_parquet_files_read_together_have_the_same_types(tmp_path, other):
    """A cast from one to the other could fail on some value."""
    pl.DataFrame({"x": pl.Series([1], dtype=pl.Int8)}).write_parquet(tmp_path / "1.parquet")
    other.write_parquet(tmp_path / "2.parquet")
    with pytest.raises(ValueError, match="has other columns or types than"):
        dp.table(str(tmp_path / "*.parquet"), schema=X)


class Evil:
    """An object that fails, with a private word, at whatever is done with it."""

    def __float__(self):
        raise RuntimeError(SECRET)

    __repr__ = __str__ = __float__


def test_an_identifier_that_fails_when_looked_at_is_missing():
    """One entry cannot make the others fail: such identifiers count with the missing ones, as one unit."""
    frame = pd.DataFrame({"x": [1.0] * 4, "who": [Evil(), 1, Evil(), None]})
    assert dp.table(frame, schema=X, unit="who").count().release(**SHARP).value["count"][0] == 2


def test_a_frame_that_fails_while_it_is_read_quotes_no_value():
    frame = pl.DataFrame({"x": ["1", SECRET], "who": [1, 2]}).lazy().with_columns(pl.col("x").cast(pl.Float64))
    with pytest.raises(EngineFailed, match="withheld") as failed:
        dp.table(frame, schema=X, unit="who")
    assert SECRET not in said(failed)


@pytest.mark.parametrize("column", [pd.Categorical([1, SECRET, 2.5]), np.array([1, Evil(), 2.5], object)])
def test_odd_entries_of_pandas_are_missing(column):
    """A column of categories, or of objects, is read entry by entry."""
    found = dp.table(pd.DataFrame({"x": column}), schema=X).count("x").sum("x").release(**SHARP).value
    assert found["x_count"][0] == 2
    assert found["x_sum"][0] == pytest.approx(3.5, abs=0.5)


def test_settings_that_duckdb_refuses_are_named():
    with pytest.raises(ValueError, match=r"DuckDB does not accept {'memory_limit': 'lots'}"):
        dp.table(pl.DataFrame({"x": [1.0]}), schema=X, memory_limit="lots")


# --- columns that questions make for themselves ----------------------------------------------------------------------


def test_no_column_stands_for_one_of_a_pair():
    """Of two columns that are not missing in the same rows, one row moves a covariance by twice what is paid for."""
    table = dp.table(
        pl.DataFrame({"x": [None, 3.0], "y": [10.0, 4.0]}), schema=dp.Schema(x=dp.Bounded(0, 10), y=dp.Bounded(0, 10))
    )
    for name in ("x beside y", "y beside x"):
        with pytest.raises(ValueError, match="give it another name"):
            table.derive(**{name: col("x")}).covariance("x", "y")
    twice = table.covariance("x", "y").correlation("x", "y").covariance("y", "x")
    assert len(twice.aggregates) == 3
    assert table.sql("SELECT COVAR_POP(x, x) AS v FROM t", epsilon=1e6, rng=1).value["v"][0] == pytest.approx(
        0, abs=0.1
    )


def test_each_total_of_units_is_clipped_to_its_own_bounds():
    """The last bounds that were given once held for all."""
    frame = pl.DataFrame({"who": [1, 1, 2], "x": [9.0, 9.0, 9.0]})
    query = dp.table(frame, schema=X, unit="who").sum("x", unit_bounds=(0, 1), name="low")
    query = query.sum("x", unit_bounds=(0, 100), name="high").count(unit_most=1).count(unit_most=9, name="all")
    found = query.release(epsilon=1e5, rng=1).value.row(0)
    assert found == pytest.approx((2, 27, 2, 3), abs=0.1)


# --- what fails, fails before the charge -----------------------------------------------------------------------------


def test_bounds_that_are_found_cannot_make_a_question_fail():
    """Edges that lie in every bounds looked at beforehand may lie outside of those that are chosen."""
    table = dp.table(pl.DataFrame({"x": [5.0] * 50 + [None] * 50}), schema=dp.Schema(x=dp.Bounded("auto", missing=0)))
    with pytest.raises(ValueError, match="edges need declared bounds"):
        table.histogram("x", [0, 0.0005, 0.0009])
    found = table.sum("x").count("x").release(epsilon=1e4, rng=1)
    assert found.value["x_count"][0] == 100  # what is missing counts as what was declared, within the bounds found


@pytest.mark.parametrize("asks", ["{0} + 1 AS z FROM t", "{0} AS z FROM t HAVING z > 3", "{0} AS z FROM t ORDER BY -z"])
def test_no_number_is_made_of_a_list_of_quantiles(asks):
    """``parse`` reads no table and charges nothing."""
    table = dp.table(pl.DataFrame({"x": [5.0]}), schema=X)
    with pytest.raises(ValueError, match="ask for each quantile by itself"):
        table.parse("SELECT " + asks.format("QUANTILE_CONT(x, [0.1, 0.9])"))
