"""What happens at the edges is stated and happens: missing keys, unknown categories, NaN, nothing at all,
bad sources.
"""

from __future__ import annotations

import math
import traceback

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import discreet as dp
from discreet.tables import EngineFailed
from tests.tables import frames

SHARP = {"epsilon": 1000.0, "rng": 1}
SECRET = "a-very-private-name"


def counts(frame, key, column, **kwargs):
    found = dp.table(frame, schema=dp.Schema({key: column}), **kwargs).group_by(key).count().release(**SHARP).value
    return dict(zip(found[key].to_list(), found["count"].to_list(), strict=True))


# --- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [None, "u"])
def test_every_public_key_is_answered_and_unknown_ones_go_nowhere(unit):
    """A key without rows appears with noise; a value that was not declared, or is missing, is left out."""
    frame = pl.DataFrame({"k": ["a", "z", None, "a", "b"], "u": range(5)})
    assert counts(frame, "k", dp.Categories(["a", "b", "c"]), unit=unit) == {"a": 2, "b": 1, "c": 0}
    assert counts(frame, "k", dp.Categories(["a", "c"], other="rest"), unit=unit) == {"a": 2, "c": 0, "rest": 3}


@pytest.mark.parametrize("unit", [None, "u"])
def test_numeric_keys_mean_their_value_whatever_the_type(unit):
    """1, 1.0 and "1" are category 1; 1.5 is not; consecutive or not."""
    for values in ([1, 2, 3], [1, 3, 7]):
        for column in ([1, 1, 9], [1.0, 1.5, math.nan, 1.0], ["1", "1.0", "1.5", "x", None]):
            frame = pl.DataFrame({"k": column, "u": range(len(column))})
            assert counts(frame, "k", dp.Categories(values), unit=unit) == {values[0]: 2, values[1]: 0, values[2]: 0}, (
                column
            )
    other = counts(pl.DataFrame({"k": [1, 5, None], "u": [1, 2, 3]}), "k", dp.Categories([1, 2], other=-1), unit=unit)
    assert other == {1: 1, 2: 0, -1: 2}
    truths = pl.DataFrame({"k": [True, False, True], "u": [1, 2, 3]})
    assert counts(truths, "k", dp.Categories([False, True]), unit=unit) == {0: 1, 1: 2}


def test_huge_whole_numbers_as_keys_are_not_confused():
    """Beyond 2^53 doubles merge neighbours; keys stay apart."""
    frame = pl.DataFrame({"k": [2**53, 2**53 + 1, 1]})
    assert counts(frame, "k", dp.Categories([1, 2**53])) == {1: 1, 2**53: 1}


# --- values ----------------------------------------------------------------------------------------------------------

HOSTILE = [math.nan, None, math.inf, -math.inf, 1e308, -1e308, 5e-324, 3.0]


@pytest.mark.parametrize("unit", [None, "u"])
def test_missing_values_are_dropped_or_filled_and_infinities_clipped(unit):
    """NaN and NULL are missing; what lies outside counts as the nearer bound."""
    frame = pl.DataFrame({"x": pl.Series(HOSTILE, dtype=pl.Float64, strict=False), "u": range(8)})
    for missing, expected in (("drop", (6, 23.0)), (5, (8, 33.0))):
        table = dp.table(frame, schema=dp.Schema(x=dp.Bounded(0, 10, missing=missing)), unit=unit)
        found = table.count("x").sum("x").release(**SHARP).value
        assert found["x_count"][0] == expected[0]
        assert found["x_sum"][0] == pytest.approx(expected[1], abs=0.5)
        assert table.count().release(**SHARP).value["count"][0] == 8


def test_text_that_is_no_number_is_missing(tmp_path):
    """In a text file every value is text first; one odd line changes nothing but itself."""
    path = tmp_path / "a.csv"
    path.write_text("x,k\n" + "1,a\n" * 30_000 + f'{SECRET},a\n,b\n2,"b"\nshort\n4,a,surplus\n\n3,"a\nb"\n')
    table = dp.table(path, schema=dp.Schema(x=dp.Bounded(0, 10), k=dp.Categories(["a", "b"])))
    found = table.group_by("k").count().sum("x").release(**SHARP).value
    assert found["count"].to_list() == [30_002, 2]
    assert found["x_sum"].to_list() == pytest.approx([30_004, 2], abs=5)


@pytest.mark.parametrize("text", ["", "\n1\n", "x,x\n1,2\n"])
def test_a_text_file_needs_a_line_of_names(tmp_path, text):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ValueError, match=r"no first line of column names|Two columns are called 'x'"):
        dp.table(tmp_path / "a.csv", schema=dp.Schema(x=dp.Bounded(0, 1)))


def test_a_text_file_with_names_alone_is_an_empty_table(tmp_path):
    (tmp_path / "a.csv").write_text("x\n")
    assert (
        dp.table(tmp_path / "a.csv", schema=dp.Schema(x=dp.Bounded(0, 1))).count().release(**SHARP).value["count"][0]
        == 0
    )


def test_objects_in_pandas_are_read_one_by_one():
    """A list, a number and a text in one column: none of them stops the others, and 7 is not "7" as an identifier."""
    frame = pd.DataFrame(
        {"x": [1, "2", [3], None, object()], "k": ["a", 1, None, "a", "b"], "u": [7, "7", 7.5, None, "b"]}
    )
    table = dp.table(frame, schema=dp.Schema(x=dp.Bounded(0, 10), k=dp.Categories(["a", "b"]), u=dp.Unlisted()))
    found = table.count("x").sum("x").count_distinct("u").release(**SHARP).value
    assert found["x_count"][0] == 2
    assert found["x_sum"][0] == pytest.approx(3, abs=0.2)
    assert found["u_distinct"][0] == 4


def test_an_empty_table_is_answered_like_any_other():
    """The same shape, and noise around zero."""
    q = frames.table([]).group_by("educ", "city").count().mean("x").median("y").histogram("x", 3).count_distinct("name")
    found = q.release(epsilon=1.0, rng=1).value
    assert found.shape == (9, 7)
    assert found["x_mean"].is_between(0, 10).all()
    for options in ({"unit": "unit"}, {"unit": "unit", "max_rows_per_unit": 3}):
        empty = frames.table([], **options)
        assert empty.group_by("educ").count().release(**SHARP).value["count"].to_list() == [0, 0, 0]
        assert empty.group_by("name").count().release(epsilon=1.0, delta=1e-6).value.shape == (0, 2)
    assert frames.table([]).group_by("name").mean("x").median("x").release(epsilon=1.0, delta=1e-6).value.shape == (
        0,
        3,
    )


# --- sums that would overflow ----------------------------------------------------------------------------------------


def test_sums_beyond_64_bits_are_exact():
    """DuckDB adds in 128 bits, so the largest steps can be added without end."""
    from discreet.encoding.duckdb import DuckDB

    relation = duckdb.connect().sql("SELECT 4611686018427387904 AS k FROM range(8)")  # 8 times 2^62
    assert DuckDB().adds_in_128_bits
    assert relation.aggregate("sum(k)").fetchall() == [(2**65,)]


def test_extreme_bounds_and_values_give_finite_answers():
    """The widest bounds that can be declared."""
    frame = pl.DataFrame({"x": [1e300, -1e300, 1e308, 5e-324, 2.0]})
    table = dp.table(frame, schema=dp.Schema(x=dp.Bounded(-1e150, 1e150)))
    found = table.sum("x").mean("x").variance("x").release(**SHARP).value
    assert np.isfinite(found.to_numpy()).all()


# --- sources that do not suit
# ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("nowhere.parquet", FileNotFoundError, "There is no file 'nowhere.parquet'"),
        ("no*where.csv", FileNotFoundError, r"There is no file 'no\*where.csv'"),
        (__file__, ValueError, "no known ending"),
        ([1, 2], ValueError, "source is a list, but must be a path, a pandas"),
        (pl.DataFrame({"y": [1]}), ValueError, "There is no column 'x'. The table has: y."),
        (pl.DataFrame({"x": [[1]]}), ValueError, "Column 'x' has type large_list"),
        (pl.DataFrame({"x": ["2020-01-01"]}).with_columns(pl.col("x").str.to_date()), ValueError, "cast it first"),
    ],
)
def test_a_source_that_does_not_suit_is_refused_by_name(source, kind, message):
    with pytest.raises(kind, match=message):
        dp.table(source, schema=dp.Schema(x=dp.Bounded(0, 1)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unit": "nobody"}, "There is no column 'nobody'"),
        ({"unit": "x"}, "declares as Bounded, but an identifier is Unlisted"),
        ({"unit": 3}, "name of a column"),
        ({"max_rows_per_unit": 2}, "no unit="),
        ({"unit": "u", "max_rows_per_unit": 0}, "max_rows_per_unit is 0"),
        ({"unit": "u", "max_groups_per_unit": 0}, "max_groups_per_unit is 0"),
    ],
)
def test_a_unit_that_does_not_suit_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        dp.table(pl.DataFrame({"x": [1.0], "u": [1]}), schema=dp.Schema(x=dp.Bounded(0, 1)), **options)


def test_a_relation_keeps_the_settings_of_its_own_engine():
    with pytest.raises(ValueError, match="memory_limit is given, but this frame has an engine of its own"):
        dp.table(duckdb.connect().sql("SELECT 1.0 AS x"), schema=dp.Schema(x=dp.Bounded(0, 1)), memory_limit="1GB")


# --- messages --------------------------------------------------------------------------------------------------------


def test_an_engine_that_fails_quotes_no_value():
    """A relation that fails while it is read, with a private value in the engine's own message."""
    relation = duckdb.connect().sql(f"SELECT CAST(v AS DOUBLE) AS x FROM (VALUES ('1'), ('{SECRET}')) t(v)")
    with pytest.raises(EngineFailed, match="withheld") as failed:
        dp.table(relation, schema=dp.Schema(x=dp.Bounded(0, 1))).mean("x").release(epsilon=1.0)
    assert SECRET not in "".join(traceback.format_exception(failed.value))


def test_a_damaged_file_quotes_no_value(tmp_path):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"x": [1.0], "name": [SECRET]}).write_parquet(path)
    table = dp.table(path, schema=dp.Schema(x=dp.Bounded(0, 1)))
    path.write_bytes(SECRET.encode())
    with pytest.raises(EngineFailed, match="damaged") as failed:
        table.mean("x").release(epsilon=1.0)
    assert SECRET not in "".join(traceback.format_exception(failed.value))


def test_nothing_shows_rows():
    """Neither a table nor a query nor an explanation prints what the rows hold."""
    frame = pl.DataFrame({"x": [0.4242], "name": [SECRET]})
    table = dp.table(frame, schema=dp.Schema(x=dp.Bounded(0, 1), name=dp.Unlisted()), unit="name")
    q = table.mean("x")
    for thing in (table, table.source, table.limit, q, q.rows, q.explain(epsilon=1.0)):
        assert SECRET not in f"{thing!r} {thing}"
        assert "4242" not in f"{thing!r} {thing}"


def test_a_memory_limit_spills_instead_of_failing(tmp_path):
    """Grouping by more units than fit in memory, with a folder to spill to."""
    table = dp.table(
        pl.DataFrame({"u": np.arange(2_000_000), "x": np.ones(2_000_000)}),
        schema=dp.Schema(x=dp.Bounded(0, 1)),
        unit="u",
        memory_limit="64MB",
        temp_directory=str(tmp_path),
        threads=1,
    )
    assert table.sum("x").release(**SHARP).value["x_sum"][0] == pytest.approx(2_000_000, abs=1)
