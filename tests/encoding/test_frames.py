"""Frames in memory: no record decides how another is read, whatever type it makes pandas infer; no bytes are an
error.
"""

from __future__ import annotations

import decimal
import math

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as dp
from discreet.encoding import Encoder
from discreet.encoding.frames import _column
from discreet.encoding.values import display_of, identity, label
from discreet.mechanisms.canonical import keys
from discreet.schema import Bounded, Categories, Declaration, Schema, Unlisted
from searches._containers import one_connection


@pytest.fixture(scope="module", autouse=True)
def connection():
    """One for all tests here: opening one takes longer than a query."""
    with one_connection():
        yield


SHARP = {"epsilon": 1000.0, "rng": 1}
COLUMNS = {
    "whole": [1, 2, 2, 7],
    "doubles": [1.0, 2.5, -0.0, 7.0],
    "truth": [True, False, True, True],
    "text": ["1", "b", "true", "number:1"],
}
ODD = [None, math.nan, pd.NA, 2, 2.5, True, "x", decimal.Decimal("1.5"), b"a", 10**400, [1], object()]
FACTS = Schema(
    told=Categories(["1", "2", "2.5", "true", "b"], other="else"),
    listed=Categories([0, 1, 2, 2.5]),
    number=Bounded(0, 5, missing=3),
)


def inferred(values):
    """The same entries in every column, of the type that pandas finds."""
    return pd.DataFrame({name: pd.Series(values) for name in (*FACTS, "who")})


@pytest.mark.parametrize("odd", ODD, ids=[f"{type(odd).__name__}-{place}" for place, odd in enumerate(ODD)])
@pytest.mark.parametrize("name", COLUMNS)
def test_one_entry_decides_the_type_of_a_pandas_column_and_not_how_others_are_read(name, odd):
    """Among whole numbers a missing one makes doubles of them, a text objects: labels, numbers and units stay."""
    encoder = Encoder(Declaration(FACTS, unit="who"))
    values = COLUMNS[name]
    alone, beside = (encoder.read(inferred(rows)) for rows in (values, [*values, odd]))
    for column in ("told", "listed"):
        assert beside.codes(column)[: len(alone)].tolist() == alone.codes(column).tolist()
    assert np.array_equal(beside.numbers("number")[: len(alone)], alone.numbers("number"), equal_nan=True)
    assert len(beside) - len(alone) == (identity(odd) not in map(identity, values))
    mapped = encoder.read({column: [*values, odd] for column in (*FACTS, "who")})
    for column in ("told", "listed"):
        assert mapped.codes(column).tolist() == beside.codes(column).tolist()


@pytest.mark.parametrize("odd", [None, "x", 2.5, b"a"], ids=str)
@pytest.mark.parametrize("name", COLUMNS)
def test_private_keys_have_one_form_whatever_type_a_record_makes_of_their_column(name, odd):
    """The form and type of a shown key in pandas: numbers as numbers, text as text, in a column of objects."""

    def ask(values):
        table = dp.table(pd.DataFrame({"k": pd.Series(values)}), schema=Schema(k=Unlisted()))
        return table.group_by("k").count().release(epsilon=100.0, delta=1e-3, rng=1).value

    values = [value for value in COLUMNS[name] for _ in range(50)]
    alone, beside = ask(values), ask([*values, odd])
    assert repr(alone["k"].tolist()) == repr(beside["k"].tolist())
    assert alone["k"].dtype == beside["k"].dtype == object
    assert set(alone["k"]) == {display_of(identity(value)) for value in values}
    assert {type(key) for key in alone["k"]} <= {int, float, str}


NUMBERS = [0, 1, -1, 2**53 - 1, 2**53, -(2**53), 127]
SERIES = {
    "int64": pd.Series([*NUMBERS, 2**53 + 1, 2**63 - 1, -(2**63), 10**16]),
    "uint64": pd.Series([0, 1, 2**53, 2**53 + 1, 2**64 - 1], dtype="uint64"),
    "int8": pd.Series([0, -128, 127], dtype="int8"),
    "float64": pd.Series([*map(float, NUMBERS), -0.0, 2.5, 0.1, 1e16, 1e300, 5e-324, math.inf, -math.inf, math.nan]),
    "float32": pd.Series([1.0, 2.5, 0.1, 1e38, math.nan], dtype="float32"),
    "bool": pd.Series([True, False]),
    "Int64": pd.Series([1, None, 2**53 + 1], dtype="Int64"),
    "Float64": pd.Series([1.0, None, 2.5], dtype="Float64"),
    "boolean": pd.Series([True, None, False], dtype="boolean"),
    "Arrow's integers": pd.Series([1, None, 2**60 + 1], dtype=pd.ArrowDtype(pa.int64())),
    "Arrow's decimals": pd.Series([decimal.Decimal("1.00"), None], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    "str": pd.Series(["a", None, "number:1", "text:a", "bytes:", "object:", "1"], dtype="str"),
    "Arrow's text": pd.Series(["a", None, "number:1"], dtype=pd.ArrowDtype(pa.large_string())),
    "category": pd.Series(["a", None, "number:1"], dtype="category"),
    "category of numbers": pd.Series([1, None, 2.5], dtype="category"),
    "objects": pd.Series([1, 1.0, True, "1", b"1", None, 2**70, decimal.Decimal("0.1")], dtype=object),
}
if np.dtype(np.longdouble).itemsize > 8:
    SERIES["long double"] = pd.Series(np.array(["1", "1e4000", "nan"], np.longdouble))


@pytest.mark.parametrize("kind", SERIES)
def test_arrow_writes_a_column_as_python_writes_its_entries(kind):
    series = SERIES[kind]
    entries = [None if missing else value for value, missing in zip(series.astype(object), series.isna(), strict=True)]
    assert _column(series, Unlisted()).to_pylist() == [identity(value) for value in entries]
    assert _column(series, Categories(["a"])).to_pylist() == [label(value) for value in entries]


def test_a_class_of_identifiers_is_shown_by_a_value_of_it():
    for value in (0, 7, -7, 2.5, 2**53, 2**60, 2**60 + 1, -(2**70) - 1, 1e300, math.inf, "a", "number:1", "", b"\xff"):
        assert display_of(identity(value)) == value
        assert identity(display_of(identity(value))) == identity(value)


def test_keys_of_a_pandas_column_have_one_form():
    """Whole numbers beside a missing one are doubles in pandas; a text makes objects of them."""
    for values, expected in (
        ([1, 2], [1, 2]),
        ([1, 2, None], [1, 2, "nan"]),
        ([1, 2, "x", None], [1, 2, "x", "nan"]),
        ([True, None], [1, "nan"]),
        ([0.5, -0.0], [0.5, 0]),
    ):
        assert repr(keys(pd.Series(values))) == repr(expected)
    assert keys(pd.Series([1, None], dtype="Int64")) == [1, "nan"]


def test_a_double_for_a_text_category_is_told_as_the_whole_number_it_is(tmp_path):
    """In every container: a table may hold whole numbers as doubles."""
    facts = Declaration(Schema(k=Categories(["1", "2.5", "0"])))
    columns = {"k": [1.0, 2.5, -0.0, math.nan, math.inf]}
    pl.DataFrame(columns).write_parquet(tmp_path / "k.parquet")
    for data in (columns, pl.DataFrame(columns), pd.DataFrame(columns), pa.table(columns), tmp_path / "k.parquet"):
        assert Encoder(facts).read(data).codes("k").tolist() == [0, 1, 2, -1, -1]


# --- bytes that are no text ------------------------------------------------------------------------------------------


def spoiled(words):
    """Text that Arrow takes without looking."""
    return pa.array(words, pa.binary()).view(pa.string())


WORDS = [b"a"] * 60 + ["é".encode()] * 50 + [b"\xff"] * 40 + [b"\xe9", b"ab\xc3"] + [None] * 3
MENDED = [None if word is None else word.decode(errors="replace").replace("\ufffd", "?").encode() for word in WORDS]


def held(words, how, folder):
    table = pa.table({"k": spoiled(words), "x": [1.0] * len(words)})
    if how == "pandas":
        return table.to_pandas(types_mapper=pd.ArrowDtype)
    if how == "relation":
        return duckdb.connect().from_arrow(table)
    if how == "dictionary":
        table = table.set_column(0, "k", table["k"].combine_chunks().dictionary_encode())
    if how != "Arrow":
        pq.write_table(table, folder / f"{len(set(words))}.parquet", row_group_size=50)
        return folder / f"{len(set(words))}.parquet"
    return table


@pytest.mark.parametrize("how", ["Arrow", "pandas", "relation", "parquet", "dictionary"])
def test_bytes_that_are_no_text_are_question_marks_and_no_error(how, tmp_path):
    """Keys, categories, units, filters and models answer as if the marks stood there."""

    def answers(words):
        source = held(words, how, tmp_path)
        private = dp.table(source, schema=Schema(k=Unlisted(), x=Bounded(0, 1)))
        listed = dp.table(source, schema=Schema(k=Categories(["a", "é"], other="else"), x=Bounded(0, 1)))
        asked = [
            private.group_by("k").count().release(epsilon=100.0, delta=1e-3, rng=1),
            private.count_distinct("k").release(**SHARP),
            listed.group_by("k").count().sum("x").median("x").release(**SHARP),
            listed.filter(dp.tables.col("k") == "a").count().release(**SHARP),
            dp.table(source, schema=Schema(x=Bounded(0, 1)), unit="k").sum("x").release(**SHARP),
            dp.table(source, schema=Schema(k=Bounded(0, 1)), unit=None).count("k").release(**SHARP),
        ]
        frames = [found.value for found in asked]
        if how == "relation":
            return frames
        read = Encoder(Declaration(Schema(k=Categories(["a", "é"]), x=Bounded(0, 1)))).read(source)
        units = Encoder(Declaration(Schema(x=Bounded(0, 1)), unit="k")).read(source)
        return [*frames, read.codes("k").tolist(), len(units)]

    odd, mended = answers(WORDS), answers(MENDED)
    assert list(map(repr, odd)) == list(map(repr, mended))
    assert odd[0]["k"].to_list() == ["?", "a", "é"]


def test_arrow_text_in_a_mapping_is_read_entry_by_entry():
    facts = Declaration(Schema(k=Categories(["a", "é"])))
    assert Encoder(facts).read({"k": spoiled([b"a", b"\xff", "é".encode(), None])}).codes("k").tolist() == [
        0,
        -1,
        1,
        -1,
    ]
    found = dp.statistics.histogram(spoiled([b"a"] * 9 + [b"\xff"]), categories=["a", "b"], **SHARP)
    assert found.value.tolist() == [9, 0]


@pytest.mark.parametrize("kind", [int, np.int64, np.uint64])
def test_identifiers_beyond_doubles_are_told_apart_whatever_their_type(kind):
    names = [identity(kind(2**60 + i)) for i in range(3)]
    assert names == [identity(2**60 + i) for i in range(3)]
    assert len(set(names)) == 3
