"""One record decides how no other is read: one reader a file, by its schema, and no fact from the type of a frame."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import uuid

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
import searches.readers
from discreet.dates import seconds
from discreet.encoding import Encoder
from discreet.encoding.columns import moments
from discreet.encoding.sources import open_source
from discreet.schema import Declaration
from discreet.tables import col
from searches._containers import one_connection

SHARP = {"epsilon": 1e6, "rng": 1}


@pytest.fixture(scope="module", autouse=True)
def connection():
    """One for all tests here: opening one takes longer than a query."""
    with one_connection():
        yield


# --- one reader whatever the bytes -----------------------------------------------------------------------------------


def spoiled(path):
    """The same file with bytes that are no text in one record."""
    path = path.rename(path.with_suffix(".usual.parquet"))
    other = path.with_name("spoiled.parquet")
    other.write_bytes(path.read_bytes().replace(b"QQQQ", b"\xff\xfeQQ"))
    assert other.read_bytes() != path.read_bytes()
    return path, other


NOTES = ["ok"] * 20 + ["QQQQ"]
TABLES = {
    "INT96 beyond 2262": (
        pa.array([dt.datetime(9999, 12, 31)] * 20 + [dt.datetime(2024, 1, 1)], pa.timestamp("us")),
        dp.Times("1800-01-01", "2030-12-31"),
        col("v") < "1900-01-01",
    ),
    "DECIMAL(50, 2)": (
        pa.array([decimal.Decimal(1)] * 21, pa.decimal256(50, 2)),
        dp.Bounded(0, 2),
        col("v") > 0,
    ),
    "half floats": (pa.array(np.ones(21, np.float16)), dp.Bounded(0, 2), col("v") > 0),
    "UUID": (pa.array([uuid.UUID(int=i).bytes for i in range(21)], pa.uuid()), None, None),
    "milliseconds": (
        pa.array([dt.datetime(2024, 1, 1)] * 21, pa.timestamp("ms")),
        dp.Times("1800-01-01", "2030-12-31"),
        col("v") > "2000-01-01",
    ),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_bad_byte_in_one_record_changes_how_no_other_column_is_read(tmp_path, kind):
    """Where DuckDB stopped at it, Arrow read the file again, and these types in another way, or not at all."""
    values, declared, condition = TABLES[kind]
    path = tmp_path / "t.parquet"
    written = pa.table({"v": values, "note": NOTES})
    if kind == "UUID":  # by DuckDB, without Arrow's schema
        duckdb.connect().from_arrow(written).write_parquet(str(path), compression="uncompressed")
    else:
        pq.write_table(written, path, use_deprecated_int96_timestamps="INT96" in kind, compression="none")
    schema, unit = dp.Schema({"note": dp.Unlisted()} | ({} if declared is None else {"v": declared})), {}
    if declared is None:
        unit = {"unit": "v", "max_rows_per_unit": 1}
    tables = [dp.table(file, schema=schema, **unit).filter(col("note") == "ok") for file in spoiled(path)]
    tables = tables if condition is None else [table.filter(condition) for table in tables]
    usual, odd = (table.count().release(**SHARP).value["count"][0] for table in tables)
    assert usual == odd == (0 if "INT96" in kind else 20)


def test_a_bad_byte_below_a_thousand_folders(tmp_path):
    """Each folder was a part of a union, too deep for DuckDB."""
    counts = []
    for last in (b"ok", b"\xff"):
        root = tmp_path / last.hex()
        for number in range(1010):
            (root / f"k={number}").mkdir(parents=True)
            word = pa.array([last if number == 0 else b"ok"], pa.binary()).view(pa.string())
            if number < 2:
                pq.write_table(pa.table({"note": word}), root / f"k={number}" / "a.parquet")
            else:
                (root / f"k={number}" / "a.parquet").hardlink_to(root / "k=1" / "a.parquet")
        table = dp.table(root, schema=dp.Schema(note=dp.Unlisted(), k=dp.Bounded(0, 2000)))
        counts.append(table.filter(col("note") == "ok", col("k") > 0).count().release(**SHARP).value["count"][0])
    assert counts == [1009, 1009]


def test_beside_milliseconds_a_type_that_cannot_be_read_is_refused_by_name(tmp_path):
    times = pa.array([dt.datetime(2024, 1, 1)], pa.timestamp("ms"))
    number = pa.array([decimal.Decimal(1)], pa.decimal256(50, 2))
    pq.write_table(pa.table({"t": times, "x": number}), tmp_path / "t.parquet")
    schema = {"t": dp.Times("2020-01-01", "2030-01-01"), "x": dp.Bounded(0, 1)}
    with pytest.raises(ValueError, match=r"'x' has type decimal256\(50, 2\)"):
        dp.table(tmp_path / "t.parquet", schema=schema)
    dp.table(tmp_path / "t.parquet", schema={"x": dp.Bounded(0, 1)}).count().release(**SHARP)


def test_readers_at_a_small_size(tmp_path):
    """All by ``python -m searches readers``. Two steps that share no factor with the number of types."""
    every = list(searches.readers.cases([*searches.readers.WRITERS, *searches.readers.FRAMES]))
    read = 0
    for number, case in enumerate(every[5::101]):
        folder = tmp_path / str(number)
        folder.mkdir()
        read += searches.readers.check(case, folder)["read"]
    assert read >= 40


def test_one_row_more_changes_how_many_spoiled_rows_a_condition_finds_by_one_at_most(tmp_path, monkeypatch):
    """Statistics of a file are about its bytes, and not about the question marks that are read instead of them."""
    small = {"words": (b"a",), "options": ({},)}
    assert searches.readers.check_statistics(tmp_path, **small) == 7
    monkeypatch.setattr("discreet.encoding.duckdb.DuckDB.text", lambda self, name, **options: self.quote(name))
    with pytest.raises(AssertionError, match="finds 10 rows, and 0 beside"):
        searches.readers.check_statistics(tmp_path, **small)


# --- types of frames are no facts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("declared", [dp.Bounded(0, 10), dp.Categories(["1", "2"]), dp.Unlisted()], ids=str)
@pytest.mark.parametrize("words", [pa.string(), pa.int64()], ids=str)
def test_the_words_of_a_dictionary_in_pandas_decide_nothing(declared, words):
    """Nor a category, whose type its words make."""
    kind = pd.ArrowDtype(pa.dictionary(pa.int32(), words))
    usual = ["1", "2", "2"] if words == pa.string() else [1, 2, 2]
    for entries in (usual, [*usual, "word" if words == pa.string() else 7], [*usual, None]):
        for series in (pd.Series(entries, dtype=kind), pd.Series(entries, dtype="category")):
            rows = open_source(pd.DataFrame({"x": series}), dp.Schema(x=declared), None).frame.fetchall()
            plain = open_source(pd.DataFrame({"x": usual}), dp.Schema(x=declared), None).frame.fetchall()
            assert rows[:3] == plain


def test_who_reads_a_file_into_a_frame_may_have_inferred_its_types():
    """One cell of one record: the event, what is told before the charge, and the type of the answer stay."""
    events, told = set(), set()
    for first in ("7", "2.5", "x", ""):
        text = "x\n" + f"{first}\n" + "7\n" * 50
        for frame in (
            pl.read_csv(io.StringIO(text)),
            pd.read_csv(io.StringIO(text)),
            pl.read_csv(io.StringIO(text)).to_arrow(),
        ):
            for declared in (dp.Bounded(0, 10), dp.Bounded(0, 10, whole=True)):
                query = dp.table(frame, schema={"x": declared}).sum("x")
                events.add((declared, query.explain(epsilon=1.0).event))
                told.add((declared, query.explain(epsilon=1.0).bias))
    assert len(events) == len(told) == 2


def test_a_whole_column_is_rounded_where_it_is_read(tmp_path):
    """By tables on every container, and by whatever encodes rows."""
    frame = pl.DataFrame({"x": [0.4, 2.5, 2.4, 99.0, None, float("nan")]})
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    declared = dp.Bounded(0, 10, whole=True)
    for source in (frame, frame.to_pandas(), frame.to_arrow(), tmp_path / "t.csv", tmp_path / "t.parquet"):
        answer = dp.table(source, schema={"x": declared}).sum("x").release(**SHARP)
        assert "DiscreteLaplace" in str(answer.event)
        assert answer.value.iloc[0, 0] == 15 if isinstance(source, pd.DataFrame) else answer.value["x_sum"][0] == 15
        read = Encoder(Declaration(dp.Schema(x=declared))).read(source).numbers("x")
        assert np.array_equal(read, [0, 3, 2, 10, np.nan, np.nan], equal_nan=True)
    for low, high in ((0.5, 2), (0, 2.0**54)):
        with pytest.raises(ValueError, match="must be a whole number"):
            dp.Bounded(low, high, whole=True)


def test_columns_that_are_not_declared_may_share_a_name():
    frame = pd.DataFrame(np.ones((5, 3)), columns=["x", "y", "y"])
    for source in (frame, pa.table([[1.0], [2.0], [3.0]], names=["x", "y", "y"])):
        dp.table(source, schema={"x": dp.Bounded(0, 1)}).count().release(**SHARP)
        with pytest.raises(ValueError, match="Two columns are called 'y'"):
            dp.table(source, schema={"y": dp.Bounded(0, 1)})
    cased = {"age": [1.0], "AGE": [9.0]}
    for source in (pl.DataFrame(cased), pd.DataFrame(cased)):
        rows = open_source(source, dp.Schema(AGE=dp.Bounded(0, 9), age=dp.Bounded(0, 9)), None).frame.fetchall()
        assert rows == [(9.0, 1.0)]


def test_dates_are_read_alike_by_tables_and_by_what_encodes_rows(tmp_path):
    """Objects of Python were missing in a synthesiser, and dates in tables."""
    days = [dt.date(2024, 1, 1 + i) for i in range(20)]
    columns = {
        "dates": days,
        "times": [dt.datetime(2024, 1, 1 + i, 23, 59) for i in range(20)],
        "text": [str(day) for day in days],
        "array": np.array(days, "M8[ns]"),
        "mixed": [*days[:10], *map(str, days[10:])],
    }
    facts = Declaration(dp.Schema(d=dp.Dates("2024-01-02", "2024-12-31")))
    first = (dt.date(2024, 1, 1) - dt.date(1970, 1, 1)).days
    for name, entries in columns.items():
        pd.DataFrame({"d": entries}).to_csv(tmp_path / "d.csv", index=False)
        sources = [{"d": entries}, pd.DataFrame({"d": entries}), tmp_path / "d.csv"]
        for source in sources if name == "mixed" else [*sources, pl.DataFrame({"d": entries})]:
            assert Encoder(facts, ("d",)).read(source).days("d").tolist()[1:] == [first + i for i in range(1, 20)]
            assert np.isnan(Encoder(facts, ("d",)).read(source).days("d")[0])


# --- times as programs write them ------------------------------------------------------------------------------------

INSTANTS = {
    "2024-01-01T10:30:00Z": "2024-01-01 10:30",
    "2024-01-01 10:30:00.25+02:00": "2024-01-01 08:30:00.25",
    "2024-01-01 00:30-05:30": "2024-01-01 06:00",
    "2024-01-01T00:30:00+02:00": "2023-12-31 22:30",
    "2024-01-01T10:30": "2024-01-01 10:30",
    **dict.fromkeys(
        (
            "2024-01-01Z",
            "2024-01-01T10:30:00ZZ",
            "2024-01-01 10:30:00 Z",
            "2024-02-30T10:30:00Z",
            "2024-01-01 10:30+24:00",
            "2024-01-01 10:30+02",
            "2024-01-01 10:30-0530",
            "2024-01-01 10:61Z",
            "2024-01-01 10:30+02:60",
        )
    ),
}


@pytest.mark.parametrize("container", ["polars", "pandas", "CSV", "a mapping"])
def test_a_time_with_a_zone_is_its_instant_whoever_reads_it(tmp_path, container):
    """What JavaScript and Python write of a time (``…Z``, ``…+00:00``) was missing, all of it, without a word."""
    frame = pl.DataFrame({"at": list(INSTANTS)})
    frame.write_csv(tmp_path / "t.csv")
    data = {"polars": frame, "pandas": frame.to_pandas(), "CSV": tmp_path / "t.csv", "a mapping": frame.to_dict()}[
        container
    ]
    facts = dp.Schema(at=dp.Times("2023-01-01", "2024-12-31"))
    expected = [None if text is None else seconds(text) for text in INSTANTS.values()]
    if container == "a mapping":
        found = [None if np.isnan(at) else at for at in moments(data["at"])]
    else:
        source = open_source(data, facts, None)
        found = [at for (at,) in source.frame.project(source.names["at"]).fetchall()]
    assert found == expected
    assert sum(at is not None for at in found) == 5
