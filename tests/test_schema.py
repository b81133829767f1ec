"""Public facts are declared, checked when they are declared, and read from files in one way."""

from __future__ import annotations

import pickle

import numpy as np
import polars as pl
import pytest

import discreet as dp
from discreet.linear.tabular import TableModel
from discreet.schema import as_declaration, parse_schema, read_schema


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dp.Bounded(1, 1), "low must be below high"),
        (lambda: dp.Bounded(0, float("inf")), "high is inf"),
        (lambda: dp.Bounded(float("nan"), 1), "low is nan"),
        (lambda: dp.Bounded("0", 1), "low is '0'"),
        (lambda: dp.Bounded(0, 1e-300), "1e-290"),
        (lambda: dp.Bounded(0, 1, missing=2), r"missing is 2, but must be a number in \[0, 1\]"),
        (lambda: dp.Categories([]), "empty"),
        (lambda: dp.Categories([1, 1.0]), "repeated"),
        (lambda: dp.Categories([1, True]), "repeated"),
        (lambda: dp.Categories([1, "a"]), "mixes text and numbers"),
        (lambda: dp.Categories([1, 2], other="else"), "mixes text and numbers"),
        (lambda: dp.Categories(["a"], other="a"), "repeated"),
        (lambda: dp.Categories([float("nan")]), "finite"),
        (lambda: dp.Categories([None]), "a category is text"),
        (lambda: dp.Categories([2**60]), "write text"),
        (lambda: dp.Categories(range(10**9)), "more than 1,048,576"),
        (lambda: dp.Categories(["\ud800"]), "lone surrogate"),
        (lambda: dp.Schema(x=3), "Column 'x' is declared as int"),
        (lambda: dp.Schema({"": dp.Unlisted()}), "names are text"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    """At once, and by name."""
    with pytest.raises(ValueError, match=message):
        make()


def test_a_schema_is_a_mapping_that_cannot_change():
    """By name, in order; it can be copied between processes."""
    schema = dp.Schema({"a b": dp.Unlisted()}, x=dp.Bounded(0, 1))
    assert list(schema) == ["a b", "x"]
    assert "x" in schema
    assert schema.get("y") is None
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert dp.Categories(np.arange(3)) == dp.Categories(range(3))


def test_a_file_declares_columns_and_the_unit(tmp_path):
    """The four kinds of column, and who is protected."""
    path = tmp_path / "schema.toml"
    path.write_text(
        'unit = "id"\nmax_rows_per_unit = 3\nmax_groups_per_unit = 2\n'
        "[columns]\nincome = { bounds = [0, 10], missing = 0 }\n"
        'educ = { range = [1, 3], other = 0 }\nsex = { categories = ["f", "m"] }\nzip = { unlisted = true }\n'
    )
    found = read_schema(path)
    assert (found.unit, found.max_rows_per_unit, found.max_groups_per_unit) == ("id", 3, 2)
    assert found.schema == dp.Schema(
        income=dp.Bounded(0, 10, missing=0),
        educ=dp.Categories([1, 2, 3], other=0),
        sex=dp.Categories(["f", "m"]),
        zip=dp.Unlisted(),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "is not TOML"),
        ("", r"no \[columns\]"),
        ("[columns]\nx = 3", "must be a table"),
        ("[columns]\nx = {}", "exactly one of"),
        ("[columns]\nx = { bounds = [0, 1], range = [1, 2] }", "exactly one of"),
        ("[columns]\nx = { limits = [0, 1] }", "'limits'; known are"),
        ("[columns]\nx = { range = [3, 1] }", "exactly one of"),
        ("units = 3\n[columns]\nx = { bounds = [0, 1] }", "'units'; known are"),
        ("unit = 3\n[columns]\nx = { bounds = [0, 1] }", "name of a column"),
        ("max_rows_per_unit = 0\n[columns]\nx = { bounds = [0, 1] }", "max_rows_per_unit is 0"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path, text, message):
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_schema(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        read_schema(tmp_path / "nowhere.toml")


def test_a_schema_file_is_taken_wherever_a_schema_is(tmp_path):
    """Tables, linear models, synthesis, statistics: by its path, with its unit, as on the command line."""
    path = tmp_path / "schema.toml"
    path.write_text(
        'unit = "who"\nmax_rows_per_unit = 1\n'
        '[columns]\nage = { bounds = [0, 100] }\nsick = { categories = ["n", "y"] }\n'
    )
    rows = {"who": list(range(400)), "age": [20.0, 80.0] * 200, "sick": ["n", "y"] * 200}
    told = dp.read_schema(path)
    assert as_declaration(path) == as_declaration(str(path)) == as_declaration(told) == told
    table = dp.table(pl.DataFrame(rows), schema=path)
    assert (table.limit.unit, table.limit.rows, table.limit.default) == ("who", 1, False)
    assert table.limit == dp.table(pl.DataFrame(rows), schema=told).limit
    assert TableModel(path, target="sick", epsilon=1.0).unit == "who"
    assert dp.synthesis.TableSynthesizer(1.0).operation(path).unit == "who"
    assert dp.statistics.Mean(bounds=told.schema["age"], epsilon=1.0).bounds == (0.0, 100.0)


@pytest.mark.parametrize(
    ("given", "pattern"),
    [({"unit": "other"}, "leave unit= and caps out"), ({"max_rows_per_unit": 2}, "leave unit= and caps out")],
)
def test_a_unit_is_said_once(tmp_path, given, pattern):
    """By the file, or by who opens the table: nobody should have to guess which one holds."""
    told = parse_schema('unit = "who"\n[columns]\nage = { bounds = [0, 100] }\n')
    with pytest.raises(ValueError, match=pattern):
        dp.table(pl.DataFrame({"who": [1], "age": [3.0]}), schema=told, **given)
    plain = parse_schema("[columns]\nage = { bounds = [0, 100] }\n")
    assert dp.table(pl.DataFrame({"who": [1], "age": [3.0]}), schema=plain, unit="who").limit.unit == "who"


def test_statistics_take_bounds_that_say_nothing_else():
    """What is missing is left out there, and bounds are not looked for."""
    for bounds, why in ((dp.Bounded(0, 1, missing=0), "missing= is for tables"), (dp.Bounded("auto"), "tables find")):
        with pytest.raises(ValueError, match=why):
            dp.statistics.Mean(bounds=bounds, epsilon=1.0)
