"""One reading: whatever asks, the same entry means the same value, and one record changes no other's."""

from __future__ import annotations

import csv
import decimal
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import discreet as dp
from discreet.encoding import Encoder, one_row_note
from discreet.encoding.columns import of_arrow
from discreet.linear.tabular import TableModel
from discreet.schema import Bounded, Categories, Declaration, Schema

ODD_TEXTS = [
    "1",
    " 5 ",
    "5\t",
    "+5",
    "-.5",
    "1.",
    "1e2",
    "1E-2",
    "inf",
    "-Infinity",
    "1e400",
    "007",
    "1_0",
    "5d",
    "5f",
    "٥",
    "\uff11",
    "0x1F",
    "nan",
    "NaN",
    "1e",
    "--1",
    "1,5",
    "1 0",
    "",
    " ",
    "true",
    "1\u00a0",
    "\ufeff1",
    "NULL",
    "½",
    "1\u2028",
    'a"b',
    "a\nb",
    "a\r\nb",
    "f",
    " f",
    "F",
    "m",
    "\u00e9",
    "e\u0301",
    "None",
    "NA",
    "\\N",
    "'",
    "#",
    "7;8",
]
FACTS = Declaration(
    Schema(
        n=Bounded(-10, 10),
        filled=Bounded(-10, 10, missing=3),
        number=Categories([1, 5, 7, 100]),
        text=Categories(["f", "m", "5", "nan", " f"]),
        other=Categories(["f", "m"], other="else"),
    )
)
CONTAINERS = {
    "list": lambda values: values,
    "objects": lambda values: np.array(values, object),
    "pandas": lambda values: pd.Series(values, dtype="str"),
    "pandas objects": lambda values: pd.Series(values, dtype=object),
    "polars": pl.Series,
    "Arrow": pa.array,
}


@pytest.fixture(scope="module")
def odd_file(tmp_path_factory):
    """Each odd text in every column of a row of its own, as a writer of CSV quotes it; ``k`` numbers the rows."""
    path = tmp_path_factory.mktemp("encoding") / "odd.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["k", *FACTS.schema])
        lines.writerows([k, *[text] * len(FACTS.schema)] for k, text in enumerate(ODD_TEXTS))
    return path


def test_a_query_and_an_encoder_see_the_same_value_in_every_text_of_a_file(odd_file):
    """Each row is its own group: its count, its mean and its category are what the encoder says of it."""
    rows = Encoder(FACTS).read(str(odd_file))
    assert len(rows) == len(ODD_TEXTS)
    keys = dp.Categories(range(len(ODD_TEXTS)))
    for name, column in FACTS.schema.items():
        table = dp.table(odd_file, schema=Schema({"k": keys, name: column}))
        if isinstance(column, Bounded):
            found = table.group_by("k").count(name).sum(name).release(epsilon=1e6, rng=1).value
            encoded = rows.numbers(name)
            assert [bool(count) for count in found[f"{name}_count"]] == [not math.isnan(x) for x in encoded]
            assert np.allclose(found[f"{name}_sum"], np.nan_to_num(encoded), atol=1e-3)
        else:
            found = table.group_by("k", name).count().release(epsilon=1e6, rng=1).value
            shown = [(row["k"], column.labels.index(row[name])) for row in found.to_dicts() if row["count"] == 1]
            assert shown == [(k, code) for k, code in enumerate(rows.codes(name).tolist()) if code >= 0]


@pytest.mark.parametrize("container", CONTAINERS)
def test_columns_in_memory_are_read_as_the_file_is(odd_file, container):
    """But for the empty text, which in a file of text is a missing entry."""
    make = CONTAINERS[container]
    given = [None if text == "" else text for text in ODD_TEXTS]
    rows, told = Encoder(FACTS).read({name: make(given) for name in FACTS.schema}), Encoder(FACTS).read(str(odd_file))
    for name, column in FACTS.schema.items():
        read = "numbers" if isinstance(column, Bounded) else "codes"
        assert np.array_equal(getattr(rows, read)(name), getattr(told, read)(name), equal_nan=True)


def test_a_model_of_a_file_is_the_model_of_its_columns(odd_file):
    facts = Declaration(FACTS.schema)
    columns = {name: [None if text == "" else text for text in ODD_TEXTS] for name in FACTS.schema}
    models = [
        TableModel(facts, "text", epsilon=1.0, random_state=1).fit(data).estimator.coef_
        for data in (str(odd_file), columns, pl.DataFrame(columns), pa.table(columns), pd.DataFrame(columns))
    ]
    assert all(np.array_equal(models[0], other) for other in models)


ONE = [1, 1.0, True, np.float32(1), decimal.Decimal("1.00")]
MISSING = [None, math.nan, pd.NA]
ODD = [*ONE, *MISSING, "1", "", b"1", 10**400, 1j, [], object()]


def test_of_each_unit_the_first_row_counts():
    """Equal numbers are one unit, a text another; all missing ones are one."""
    facts = Declaration(Schema(x=Bounded(0, 100)), unit="who")
    who = ["a", 1, 1.0, "1", None, math.nan, "a", decimal.Decimal(1), pd.NA]
    rows = Encoder(facts).read({"who": who, "x": list(range(9))})
    assert rows.numbers("x").tolist() == [0, 1, 3, 4]
    whole = pa.table({"who": pa.array([7, 2**60, 2**60 + 1, 7, None, None]), "x": pa.array([0, 1, 2, 3, 4, 5])})
    assert Encoder(facts).read(whole).numbers("x").tolist() == [0, 1, 2, 4]
    doubles = pl.DataFrame({"who": [0.0, -0.0, math.nan, None, 1.5], "x": range(5)})
    assert Encoder(facts).read(doubles).numbers("x").tolist() == [0, 2, 4]
    assert len(Encoder(facts, one_row_a_unit=False).read(whole)) == 6
    more = Declaration(facts.schema, "who", max_rows_per_unit=2)  # a cap for queries: here, still the first row
    assert Encoder(more).read(whole).numbers("x").tolist() == [0, 1, 2, 4]
    assert "max_rows_per_unit = 2 holds for queries" in one_row_note(more)
    assert one_row_note(facts) == one_row_note(Declaration(facts.schema, None, 2)) == ""


@pytest.mark.parametrize("odd", ODD, ids=[f"{type(odd).__name__}-{place}" for place, odd in enumerate(ODD)])
def test_one_odd_entry_changes_no_other(odd):
    """In a list, wherever it stands; it is a number, a category, or missing."""
    facts = Declaration(
        Schema(x=Bounded(0, 100, missing=50), y=Bounded(0, 1), k=Categories(["a", "1"]), n=Categories([1, 2]))
    )
    plain = {"x": [7, "8"], "y": [0.5, None], "k": ["a", "b"], "n": [2, "1"]}
    more = {name: [values[0], odd, values[1]] for name, values in plain.items()}
    before, after = Encoder(facts).read(plain), Encoder(facts).read(more)
    for name in ("x", "y"):
        assert np.array_equal(after.numbers(name)[[0, 2]], before.numbers(name), equal_nan=True)
    for name in ("k", "n"):
        assert after.codes(name)[[0, 2]].tolist() == before.codes(name).tolist()


def test_whole_numbers_beyond_doubles_are_no_category():
    facts = Declaration(Schema(n=Categories([2**53, 5])))
    table = pa.table({"n": pa.array([2**53, 2**53 + 1, 5, -(2**63)])})
    assert Encoder(facts).read(table).codes("n").tolist() == [0, -1, 1, -1]


def test_numbers_for_text_categories_are_told_as_engines_tell_them():
    facts = Declaration(Schema(k=Categories(["1", "2.5", "true"])))
    for values, expected in ([[1, 2], [0, -1]], [[2.5, 1.5], [1, -1]], [[True, False], [2, -1]]):
        for container in (np.array(values), pl.Series(values), pa.array(values)):
            assert Encoder(facts).read({"k": container}).codes("k").tolist() == expected
        assert Encoder(facts).read(pl.DataFrame({"k": values})).codes("k").tolist() == expected


def test_public_mistakes_are_found_before_anything_is_read(tmp_path):
    facts = Declaration(Schema(x=Bounded(0, 1), y=Bounded(0, 1)))
    for data, message in (
        ({"x": [1]}, "Column 'y' is declared"),
        ({"x": [1], "y": [1, 2]}, "differ in length"),
        ({"x": np.array(["2020-01-01"], "M8[D]"), "y": [1]}, "Column 'x' has type datetime64"),
        (pl.DataFrame({"x": [1]}), "There is no column 'y'"),
        (dp, "source is a module"),
        (str(tmp_path / "absent.csv"), "There is no file"),
    ):
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            Encoder(facts).prepare(data)


def test_an_engines_frame_has_no_first_row():
    relation = pytest.importorskip("duckdb").sql("SELECT 1 AS x, 1 AS u")
    with pytest.raises(ValueError, match="rows have no order"):
        Encoder(Declaration(Schema(x=Bounded(0, 1)), "u")).prepare(relation)


def test_rows_do_not_show_themselves():
    assert repr(Encoder(Declaration(Schema(x=Bounded(0, 1)))).read({"x": [0.25]})) == "Encoded()"


def test_bytes_that_are_no_text_are_no_label_and_fail_nothing():
    raw = pa.array([b"a", b"\xff", b"b", None], pa.binary())
    words = pa.StringArray.from_buffers(4, raw.buffers()[1], raw.buffers()[2], raw.buffers()[0])
    found = of_arrow(pa.chunked_array([words]))
    assert found.words[found.at[0]] == "a"
    assert found.words[found.at[1]] == "?"
    assert found.at[3] == -1
