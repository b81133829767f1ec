"""What fingers write that know pandas: it works, or the answer is the line to write."""

from __future__ import annotations

import copy
import pickle

import polars as pl
import pytest

import discreet as dp
from discreet.tables.habits import LINES


@pytest.fixture(scope="module")
def table():
    frame = pl.DataFrame({"cost": [1.0, 2.0, 4.0, 9.0] * 200, "sex": ["f", "m"] * 400, "age": [10.0, 50.0] * 400})
    schema = dp.Schema(cost=dp.Bounded(0, 10), sex=dp.Categories(["f", "m"]), age=dp.Bounded(0, 100))
    return dp.table(frame, schema=schema)


SAME = {
    "mean": lambda t: (t["cost"].mean(), t.mean("cost")),
    "sum": lambda t: (t["cost"].sum(), t.sum("cost")),
    "std": lambda t: (t["cost"].std(), t.deviation("cost")),
    "var": lambda t: (t["cost"].var(), t.variance("cost")),
    "median": lambda t: (t["cost"].median(), t.median("cost")),
    "quantile": lambda t: (t["cost"].quantile(0.9), t.quantile("cost", 0.9)),
    "nunique": lambda t: (t["sex"].nunique(), t.count_distinct("sex")),
    "count": lambda t: (t["cost"].count(), t.count("cost")),
    "by groups": lambda t: (t.group_by("sex")["cost"].mean(), t.group_by("sex").mean("cost")),
    "a condition": lambda t: (
        t[dp.tables.col("age") > 20]["cost"].mean(),
        t.filter(dp.tables.col("age") > 20).mean("cost"),
    ),
    "fewer columns": lambda t: (t[["cost", "sex"]].mean("cost"), t.mean("cost")),
}


@pytest.mark.parametrize("name", SAME)
def test_a_column_is_asked_as_in_pandas(table, name):
    habit, own = (query.release(epsilon=1.0, rng=3) for query in SAME[name](table))
    assert habit.value.equals(own.value)
    assert habit.event == own.event


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("of", ["table", "groups", "column"])
def test_any_other_habit_is_answered_with_the_line_to_write(table, name, of):
    asked = {"table": table, "groups": table.group_by("sex"), "column": table["cost"]}[of]
    if name in dir(type(asked)):
        return
    with pytest.raises(AttributeError, match="has no") as told:
        getattr(asked, name)
    assert LINES[name] in str(told.value)


def test_other_names_are_unknown_as_ever_and_rows_cannot_be_walked_over(table):
    assert not hasattr(table, "nothing_of_the_kind")
    for walk in (list, lambda t: t[0], lambda t: t[1:3]):
        with pytest.raises(TypeError, match="by the name of a column"):
            walk(table)
    with pytest.raises(ValueError, match="nope"):
        table["nope"]
    assert copy.copy(table.group_by("sex").mean("cost")).label == "cost_mean by sex"
    assert pickle.dumps(table.schema)
