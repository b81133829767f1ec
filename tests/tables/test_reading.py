"""Values are read by their own worth: no file statistic, collation,
folder or grammar of an engine changes what one means.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
import uuid
import warnings

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.auditing import ReplayError, replay
from discreet.encoding.duckdb import DuckDB
from discreet.encoding.values import NUMERAL, identity, number
from discreet.tables import EngineFailed, col
from discreet.tables.passes import MISREAD
from tests.tables.frames import CONNECTION, SPELLED

SHARP = {"epsilon": 1000.0, "rng": 1}
NAN, INF = math.nan, math.inf

# --- files by different writers, with and without statistics ---------------------------------------------------------

WRITERS = {
    "polars": lambda table, path: pl.from_arrow(table).write_parquet(path),
    "polars, no statistics": lambda table, path: pl.from_arrow(table).write_parquet(path, statistics=False),
    "pyarrow": lambda table, path: pq.write_table(table, path),
    "pyarrow, no statistics": lambda table, path: pq.write_table(table, path, write_statistics=False),
    "pyarrow, small groups": lambda table, path: pq.write_table(table, path, row_group_size=3, write_page_index=True),
    "pandas": lambda table, path: table.to_pandas().to_parquet(path),
    "duckdb": lambda table, path: duckdb.from_arrow(table).write_parquet(str(path)),
}
SCHEMA = dp.Schema(x=dp.Bounded(0, 100), y=dp.Bounded(0, 100, missing=0), u=dp.Unlisted())


def written(tmp_path, writer, values, dtype=None):
    column = pa.array(values, dtype or pa.float64(), from_pandas=False)
    path = tmp_path / "rows.parquet"
    WRITERS[writer](pa.table({"x": column, "y": column, "u": column}), path)
    return path


def asked(path):
    """What could be folded by statistics: clips, fills, filters, bins, private keys, units.
    Tests share a connection.
    """

    def table(**unit):
        return dp.table(CONNECTION.read_parquet(str(path)), schema=SCHEMA, **unit)

    answers = [
        table().sum("x").count("x").sum("y").histogram("x", 2).release(epsilon=1.0),
        table(unit="u").filter(~(col("x") < 50)).count().sum("x").release(epsilon=1.0),
        table().filter(col("x").is_missing()).group_by("u").count().sum("y").release(epsilon=1.0, delta=0.1),
        table().group_by("u").count().release(epsilon=1.0, delta=0.1),
    ]
    return [answer.value.to_dicts() for answer in answers]


@pytest.mark.parametrize("writer", WRITERS)
def test_one_row_more_changes_one_row(tmp_path, writer):
    """500 NaN and a row of 1.0: statistics of the file then say that all is 1.0, which must not fill in the others."""
    nothing, one = [NAN] * 500, [NAN] * 500 + [1.0]

    def operation(values):
        return asked(written(tmp_path, writer, values))

    assert replay(operation, one, nothing).error is None
    assert replay(operation, [*one, 3.0], one).error is None  # where they say "from 1 to 3", DuckDB drops isnan itself
    found = dp.table(written(tmp_path, writer, one), schema=SCHEMA).sum("x").count("x").sum("y").release(**SHARP).value
    assert found["x_count"][0] == 1
    assert found["x_sum"][0] == pytest.approx(1, abs=1)
    assert found["y_sum"][0] == pytest.approx(1, abs=1)


ODD = {
    "double": (pa.float64(), [NAN, -0.0, 0.0, INF, -INF, 5e-324, 1e308, 1.0, 50.0, None]),
    "float": (pa.float32(), [NAN, -0.0, INF, -INF, 1e-45, 1.0, 50.0, None]),
    "half": (pa.float16(), [np.float16(v) for v in (NAN, -0.0, INF, -INF, 6e-8, 1.0)]),
    "byte": (pa.int8(), [-128, 127, 0, 1, None]),
    "unsigned": (pa.uint64(), [2**64 - 1, 0, 1, None]),
    "long": (pa.int64(), [-(2**63), 2**63 - 1, 0, 1, None]),
    "decimal": (pa.decimal128(38, 2), [decimal.Decimal(v) for v in ("1.00", "-0.00", "9" * 36, "50.25")]),
    "truth": (pa.bool_(), [True, False, None]),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("writer", ["polars", "pyarrow", "duckdb"])
def test_odd_values_of_every_type_pass_through_files(tmp_path, writer, kind):
    """One odd value more, beside a few."""
    dtype, values = ODD[kind]
    if kind == "half" and writer != "pyarrow":
        pytest.skip("only pyarrow writes halves")
    rng = np.random.default_rng(len(writer) + len(kind))
    base, extra = [values[i] for i in rng.integers(0, len(values), 4)], values[rng.integers(0, len(values))]
    assert replay(lambda records: asked(written(tmp_path, writer, records, dtype)), [*base, extra], base).error is None


class Old(DuckDB):
    """Asks for NaN once, by a comparison: DuckDB's optimiser drops that where a file's statistics seem to decide it."""

    def double(self, column, *, spelled, truth=False):
        return f"NULLIF(TRY_CAST({self.quote(column)} AS DOUBLE), CAST('NaN' AS DOUBLE))"

    def number(self, double):
        return double


@pytest.mark.parametrize("unit", [{}, {"unit": "u"}])
def test_what_is_added_up_is_verified_where_it_is_added_up(tmp_path, monkeypatch, unit):
    """An engine whose optimiser drops the reading of NaN is stopped by one sentence,
    and without it replay sees the harm.
    """
    from discreet.encoding import sources
    from discreet.tables import passes

    monkeypatch.setattr(sources, "DuckDB", Old)
    path = written(tmp_path, "polars", [NAN] * 500 + [1.0])
    for make in (
        lambda t: t.sum("x"),
        lambda t: t.histogram("x", 3),
        lambda t: t.filter(col("x") > 50).count(),
        lambda t: t.derive(z=col("x") / 2).mean("z"),
    ):
        with pytest.raises(EngineFailed, match=re.escape(MISREAD)):
            make(dp.table(path, schema=SCHEMA, **unit)).release(epsilon=1.0)
    monkeypatch.setattr(passes.GroupedRows, "_verify", lambda *found: None)
    with pytest.raises(ReplayError, match="differs by"):
        replay(
            lambda values: dp.table(written(tmp_path, "polars", values), schema=SCHEMA).sum("x").release(epsilon=1.0),
            [NAN] * 500 + [1.0],
            [NAN] * 500,
        )


@pytest.mark.parametrize("unit", [{}, {"unit": "u"}])
def test_a_clip_that_is_left_out_is_found(monkeypatch, unit):
    """A value beyond its bounds reaches no sum, nor the bits of another field."""
    from discreet.tables.columns import Columns

    monkeypatch.setattr(Columns, "read", lambda self, name: self.raw(name))
    frame = pl.DataFrame({"x": [1.0, 100.5], "y": [1.0, 1.0], "u": [1.0, 2.0]})
    with pytest.raises(EngineFailed, match=re.escape(MISREAD)):
        dp.table(frame, schema=SCHEMA, **unit).sum("x").release(epsilon=1.0)
    frame = pl.DataFrame({"x": [1.0, -1.0], "y": [1.0, 1.0], "u": [1.0, 2.0]})
    with pytest.raises(EngineFailed, match=re.escape(MISREAD)):
        dp.table(frame, schema=SCHEMA).sum("x").release(epsilon=1.0)


# --- keys and identifiers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("zeros", [[-0.0] * 9 + [0.0], [0.0] * 9 + [-0.0], [-0.0] * 10])
def test_what_is_shown_of_a_key_does_not_depend_on_who_came_first(zeros):
    frame = pl.DataFrame({"k": [*zeros, *[NAN] * 50]})
    table = dp.table(frame, schema=dp.Schema(k=dp.Unlisted()))
    found = table.group_by("k").count().release(epsilon=50.0, delta=0.4, rng=1).value
    assert [math.copysign(1.0, key) for key in found["k"]] == [1.0]


@pytest.mark.parametrize("collation", ["column", "default"])
def test_collations_merge_neither_keys_nor_units(collation):
    """To DuckDB a and A may be one text; to us they never are."""
    connection = duckdb.connect()
    if collation == "default":
        connection.execute("SET default_collation = 'nocase'")
    connection.execute(f"CREATE TABLE t (k VARCHAR{' COLLATE NOCASE' if collation == 'column' else ''}, x DOUBLE)")
    connection.execute("INSERT INTO t SELECT unnest(['a', 'A', 'b', 'Ä', 'ä']), 1.0 FROM range(9)")
    schema = dp.Schema(k=dp.Categories(["a", "b"], other="else"), x=dp.Bounded(0, 1))
    found = dp.table(connection.table("t"), schema=schema).group_by("k").count().release(**SHARP).value
    assert found["count"].to_list() == [9, 9, 27]
    lower = dp.table(connection.table("t"), schema=schema).filter(col("k") == "a")
    assert lower.count().release(**SHARP).value["count"][0] == 9
    x = dp.Schema(x=dp.Bounded(0, 1), k=dp.Unlisted())
    assert dp.table(connection.table("t"), schema=x, unit="k").count().release(**SHARP).value["count"][0] == 5
    table = dp.table(connection.table("t"), schema=x)
    assert table.count_distinct("k").release(**SHARP).value["k_distinct"][0] == 5
    shown = table.group_by("k").count().release(epsilon=1000.0, delta=0.6, rng=1).value
    assert sorted(shown["k"]) == sorted(["a", "A", "b", "Ä", "ä"])


ONE = [1, 1.0, np.int64(1), np.float32(1), True, np.True_, decimal.Decimal("1.00"), decimal.Decimal(1)]
OTHERS = [
    "1",
    "number:1",
    "int:1",
    "text:number:1",
    b"1",
    2,
    1.5,
    decimal.Decimal("1.1"),
    1.1,
    INF,
    -INF,
    2**70,
    2**70 + 1,
    uuid.UUID(int=1),
    datetime.date(2020, 1, 1),
    datetime.datetime(2020, 1, 1),
    (1,),
    decimal.Decimal("1e9999"),
    10**400,
]
MISSING = [None, NAN, pd.NA, pd.NaT, np.float64("nan"), decimal.Decimal("nan"), decimal.Decimal("snan")]


def test_identifiers_are_equal_as_numbers_or_as_texts():
    """One function, whatever container they come in."""
    assert len({identity(value) for value in ONE}) == 1
    assert len({identity(value) for value in [1, *OTHERS]}) == 1 + len(OTHERS)
    assert {identity(value) for value in MISSING} == {None}
    assert identity(-0.0) == identity(0)
    assert identity(decimal.Decimal(2**70)) == identity(2**70) == identity(np.float64(2**70))
    noon = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)
    assert identity(noon) == identity(noon.astimezone(datetime.timezone(datetime.timedelta(hours=5))))
    frame = pd.DataFrame({"who": pd.Series([*ONE, *OTHERS, *MISSING], dtype=object), "x": 1.0})
    table = dp.table(frame, schema=dp.Schema(x=dp.Bounded(0, 1)), unit="who")
    assert table.count().release(**SHARP).value["count"][0] == 1 + len(OTHERS) + 1


def test_text_is_a_number_by_one_grammar(tmp_path):
    """In Python, in DuckDB, among pandas' objects."""
    for text, expected in SPELLED.items():
        assert number(text) == expected if expected is not None else math.isnan(number(text)), text
        assert bool(re.fullmatch(NUMERAL, text)) == (expected is not None)
    spelled = [expected is not None for expected in SPELLED.values()]
    frame = pl.DataFrame({"x": list(SPELLED), "k": range(len(SPELLED))})
    schema = dp.Schema(x=dp.Bounded(-1e6, 1e6), k=dp.Categories(range(len(SPELLED))))
    for source in (frame, frame.to_pandas().astype(object)):
        found = dp.table(source, schema=schema).group_by("k").count("x").release(epsilon=1e6, rng=1).value
        assert [bool(count) for count in found["x_count"]] == spelled


# --- paths -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_a_folder_called_like_a_column_overwrites_nothing(tmp_path, name):
    folder = tmp_path / "x=9"
    folder.mkdir()
    frame = pl.DataFrame({"x": [1.0] * 50})
    frame.write_csv(folder / name) if name.endswith("csv") else frame.write_parquet(folder / name)
    found = dp.table(folder / name, schema=dp.Schema(x=dp.Bounded(0, 10))).mean("x").release(**SHARP).value
    assert found["x_mean"][0] == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("name", ["a[1].csv", "a[1].parquet", "what?.csv", "a*.parquet", "[!x].csv"])
def test_a_file_that_exists_is_opened_by_its_name(tmp_path, name):
    """Also where the name looks like a pattern, and other files would match it."""
    for path, value in ((name, 1.0), ("a1.csv", 9.0), ("a1.parquet", 9.0), ("whatx.csv", 9.0), ("y.csv", 9.0)):
        frame = pl.DataFrame({"x": [value] * 50})
        frame.write_csv(tmp_path / path) if path.endswith("csv") else frame.write_parquet(tmp_path / path)
    table = dp.table(tmp_path / name, schema=dp.Schema(x=dp.Bounded(0, 10)))
    found = table.mean("x").count().release(**SHARP).value
    assert found["x_mean"][0] == pytest.approx(1, abs=0.1)
    assert found["count"][0] == 50


# --- what one record can do to others --------------------------------------------------------------------------------


@pytest.mark.parametrize("lines", [3, 400])
def test_lines_inside_of_a_quoted_entry_are_no_rows_wherever_in_a_large_file_the_entry_stands(tmp_path, lines):
    """A reader that starts a thread every 8,000,000 bytes lost 2,000,000 rows, or found some,
    for one well-written record.
    """
    path, row, entry = tmp_path / "large.csv", "1," + "a" * 795 + "\n", '1,"' + "1,a\n" * lines + '"\n'
    before = (8_000_000 - len("x,k\n") - len(entry) // 2) // len(row)
    # the entry's middle is at the boundary
    filling = 8_000_000 - len("x,k\n") - len(entry) // 2 - before * len(row) - 3
    path.write_text("x,k\n" + row * before + "1," + "a" * filling + "\n" + entry + row * 2000)
    people = dp.table(path, schema=dp.Schema(x=dp.Bounded(0, 1)))
    assert people.count().release(**SHARP).value["count"].to_list() == [before + 1 + 1 + 2000]


@pytest.mark.parametrize(
    "size",
    [
        1_900_000,
        2_100_000,
        pytest.param(70_000_000, marks=pytest.mark.slow(sibling="test_a_line_too_long_is_left_out_and_adds_no_rows")),
    ],
)
def test_a_line_too_long_is_left_out_and_adds_no_rows(tmp_path, size):
    """Of more than 2,000,000 bytes. One of more than 64 MB, with lines in it, added two million rows."""
    path = tmp_path / "long.csv"
    path.write_text("x,k\n" + "1,a\n" * 500 + '1,"' + "1,a\n" * (size // 4) + '"\n' + "1,a\n" * 500)
    people = dp.table(path, schema=dp.Schema(x=dp.Bounded(0, 1)))
    assert people.count().release(**SHARP).value["count"].to_list() == [1000 + (size < 2_000_000)]


@pytest.mark.parametrize("kind", ["object", "string[python]"])
def test_text_that_is_no_unicode_is_missing_and_no_error(kind):
    """Half of a surrogate pair in one entry of a pandas column made the whole table unreadable."""
    rows = pd.DataFrame({"k": pd.Series(["a"] * 9 + ["\ud800"], dtype=kind), "x": [1.0] * 10})
    found = dp.table(rows, schema=dp.Schema(k=dp.Categories(["a", "b"]))).group_by("k").count().release(**SHARP).value
    assert found["count"].to_list() == [9, 0]
    people = dp.table(rows, schema=dp.Schema(x=dp.Bounded(0, 1)), unit="k")
    assert people.sum("x").release(**SHARP).value["x_sum"].round().to_list() == [2]  # "a", and the missing one


def test_an_object_that_fails_when_it_is_looked_at_is_missing():
    class Hostile:
        @property
        def __class__(self):
            raise RuntimeError

    assert math.isnan(number(Hostile()))
    assert identity(Hostile()) is None


@pytest.mark.parametrize(
    "text", ["2021-01-01 24:00", "2021-01-01T24:00:00.0", "2021-01-01 23:59:60", "2021-01-01 23:00"]
)
def test_a_time_is_spelled_alike_in_every_reader(text):
    """DuckDB takes 24:00 for the next day, and Python for nothing, or for that, by its version."""
    schema, expected = dp.Schema(d=dp.Times("2020-01-01", "2021-12-31")), int(text.endswith("23:00"))
    for frame in (pl.DataFrame({"d": [text]}), pd.DataFrame({"d": [text]})):
        answer = dp.table(frame, schema=schema).sql("SELECT COUNT(d) AS n FROM t", **SHARP).value
        assert answer["n"][0] == expected


def test_a_relation_whose_types_records_decided_is_asked_and_priced_as_if_it_had_none(tmp_path):
    """Neighbours over pandas and over a CSV file that DuckDB guesses the types of: one record makes text, or doubles,
    of whole numbers, and neither what is told before a charge nor the event may say so."""
    tables = {"whole": [1, 2, 3], "missing": [1, 2, None], "text": [1, 2, "many"]}
    relations = []
    for name, cells in tables.items():
        frame = pd.DataFrame({"x": cells}, dtype=object if name == "text" else None)
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
        relations += [duckdb.from_df(frame), duckdb.sql(f"SELECT * FROM '{tmp_path}/{name}.csv' WHERE x IS NOT NULL")]
    assert len({str(relation.types) for relation in relations}) == 3  # or nothing is tried here
    relations += map(nw.from_native, relations[:])
    queries = [dp.table(relation, schema={"x": dp.Bounded(0, 10)}).sum("x") for relation in relations]
    assert len({str(query.explain(1.0)) for query in queries}) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len({query.release(1.0, rng=1).event for query in queries}) == 1
    stated = dp.table(duckdb.sql("SELECT 3 AS x"), schema={"x": dp.Bounded(0, 10)}).sum("x")
    assert stated.explain(1.0).event == queries[0].explain(1.0).event  # nor is it looked for who decided a type


def test_a_number_column_whose_declared_type_is_text_is_told_before_the_charge(tmp_path):
    """Where the type is a public fact, in Parquet and Feather. A CSV file and frames declare none, so nothing is told,
    whatever their cells are."""
    frame = pl.DataFrame({"x": ["many", "few"], "y": ["1", "2"]})
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_csv(tmp_path / "t.csv")
    frame.write_ndjson(tmp_path / "t.jsonl")
    schema = dp.Schema(x=dp.Bounded(0, 10), y=dp.Categories(["1", "2"]))
    frame.write_ipc(tmp_path / "t.arrow")
    for typed in (str(tmp_path / "t.arrow"), str(tmp_path / "t.parquet")):
        query = dp.table(typed, schema=schema).mean("x")
        told = query.explain(1.0).bias or ""
        assert "x: the table has text here, and a cell that does not spell a number is missing" in told
        with dp.Ledger("sqlite://") as ledger:
            book = ledger.open("t", epsilon=1.0)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with pytest.raises(UserWarning, match="'x' is declared as numbers, but the table has text"):
                    query.release(1.0, book=book)
            assert book.spent().epsilon == 0
    frames = (frame, frame.to_arrow(), frame.to_pandas())
    for untyped in (*frames, str(tmp_path / "t.csv"), str(tmp_path / "t.jsonl")):
        query = dp.table(untyped, schema=schema).mean("x").count("x")
        assert "the table has text" not in (query.explain(1.0).bias or "")
        assert "an empty cell, or one that is not a number, does not count" in (query.explain(1.0).bias or "")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert abs(float(query.release(40.0).value["x_count"][0])) < 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dp.table(frame, schema=schema).group_by("y").count().release(1.0)  # text where text is declared
