"""What fingers write that know pandas: it works, or the answer is the line to write."""

from __future__ import annotations

import copy
import inspect
import pickle

import polars as pl
import pytest

import discreet as dp
from discreet.tables.habits import LINES
from discreet.tables.query import TableQuery


@pytest.fixture(scope="module")
def table():
    frame = pl.DataFrame({"cost": [1.0, 2.0, 4.0, 9.0] * 200, "sex": ["f", "m"] * 400, "age": [10.0, 50.0] * 400})
    schema = dp.Schema(cost=dp.Bounded(0, 10), sex=dp.Categories(["f", "m"]), age=dp.Bounded(0, 100))
    return dp.table(frame, schema=schema)


SAME = {
    "mean": lambda t: (t["cost"].mean(), t.mean("cost")),
    "sum": lambda t: (t["cost"].sum(), t.sum("cost")),
    "median": lambda t: (t["cost"].median(), t.median("cost")),
    "quantile": lambda t: (t["cost"].quantile(0.9), t.quantile("cost", 0.9)),
    "quantiles": lambda t: (t["cost"].quantile([0.1, 0.9]), t.quantiles("cost", (0.1, 0.9))),
    "nunique": lambda t: (t["sex"].nunique(), t.count_distinct("sex")),
    "count": lambda t: (t["cost"].count(), t.count("cost")),
    "by groups": lambda t: (t.group_by("sex")["cost"].mean(), t.group_by("sex").mean("cost")),
    "a condition": lambda t: (
        t[dp.tables.col("age") > 20]["cost"].mean(),
        t.filter(dp.tables.col("age") > 20).mean("cost"),
    ),
    "a comparison": lambda t: (t[t["age"] > 20]["cost"].mean(), t.filter(dp.tables.col("age") > 20).mean("cost")),
    "an equality": lambda t: (t[t["sex"] == "f"]["cost"].mean(), t.filter(dp.tables.col("sex") == "f").mean("cost")),
    "fewer columns": lambda t: (t[["cost", "sex"]].mean("cost"), t.mean("cost")),
}


@pytest.mark.parametrize("name", SAME)
def test_a_column_is_asked_as_in_pandas(table, name):
    habit, own = (query.release(epsilon=1.0, rng=3) for query in SAME[name](table))
    assert habit.value.equals(own.value)
    assert habit.event == own.event


@pytest.mark.parametrize(("habit", "sql"), [("var", "VAR_SAMP"), ("std", "STDDEV_SAMP")])
def test_a_variance_asked_as_in_pandas_is_that_of_a_sample_as_there(habit, sql):
    """Of few rows it is not that of a population."""
    frame = pl.DataFrame({"cost": [1.0, 2.0, 4.0, 9.0]})
    few = dp.table(frame, schema=dp.Schema(cost=dp.Bounded(0, 10)))
    asked = getattr(few["cost"], habit)()
    assert asked.release(epsilon=1e6).value.item() == pytest.approx(getattr(frame["cost"], habit)(), abs=1e-2)
    assert [part for _, part in asked.aggregates] == [
        part for _, part in few.parse(f"SELECT {sql}(cost) FROM t").aggregates
    ]


def test_the_column_of_units_is_answered_with_the_one_question_that_may_be_asked_of_it():
    frame = pl.DataFrame({"cost": [1.0, 2.0], "who": [1, 2]})
    people = dp.table(frame, schema=dp.Schema(cost=dp.Bounded(0, 10)), unit="who")
    with pytest.raises(ValueError, match=r"table\.count_distinct\('who'\) alone"):
        people["who"].nunique()


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("of", ["table", "groups", "column"])
def test_any_other_habit_is_answered_with_the_line_to_write(table, name, of):
    asked = {"table": table, "groups": table.group_by("sex"), "column": table["cost"]}[of]
    if name in dir(type(asked)):
        return
    with pytest.raises(AttributeError, match="has no") as told:
        getattr(asked, name)
    assert LINES[name] in str(told.value)


def test_a_filter_after_the_aggregates_is_answered_with_the_order_to_write(table):
    for ask in (lambda: table.count().filter(dp.tables.col("age") > 3), lambda: table.mean("cost").group_by("sex")):
        with pytest.raises(
            AttributeError, match=r"group_by come before the aggregates: table\.filter\(\.\.\.\)\.count\(\)"
        ):
            ask()


def test_other_names_are_unknown_as_ever_and_rows_cannot_be_walked_over(table):
    assert not hasattr(table, "nothing_of_the_kind")
    for walk in (list, lambda t: t[0], lambda t: t[1:3]):
        with pytest.raises(TypeError, match="by the name of a column"):
            walk(table)
    with pytest.raises(ValueError, match="nope"):
        table["nope"]
    assert copy.copy(table.group_by("sex").mean("cost")).label == "cost_mean by sex"
    assert pickle.dumps(table.schema)


def test_a_column_as_an_attribute_and_the_number_of_rows_are_answered_with_the_line(table):
    with pytest.raises(AttributeError, match=r"its column is table\['cost'\]"):
        _ = table.cost
    with pytest.raises(TypeError, match=r"table\.count\(\)"):
        len(table)
    assert table  # which is not asked for its length
    assert repr(table) == "<Table DataFrame: cost, sex, age; one row>"


def test_categories_that_are_numbers_count_as_numbers_as_in_sql():
    frame = pl.DataFrame({"sick": [0, 1, 1, 1] * 200, "well": [True, False] * 400, "age": [10.0, 50.0] * 400})
    facts = dp.Schema(sick=dp.Categories([0, 1]), well=dp.Categories([True, False]), age=dp.Bounded(0, 99))
    people = dp.table(frame, schema=facts)
    asked = people.mean("sick").sum("sick").mean("well").variance("sick").median("sick")
    value = asked.release(epsilon=1e3).value
    assert value.columns == ["sick_mean", "sick_sum", "well_mean", "sick_variance", "sick_median"]
    assert [round(cell, 2) for cell in value.row(0)] == [0.75, 600, 0.5, 0.19, 1]
    sql = people.parse("SELECT AVG(sick), SUM(sick) FROM people")
    assert people.mean("sick").sum("sick").operation(epsilon=1.0).event == sql.operation(epsilon=1.0).event
    by = people.group_by("sick").mean("sick").release(epsilon=1e3).value
    assert [round(cell, 2) for cell in by["sick_mean"]] == [0, 1]


def test_a_column_that_was_left_out_is_not_asked_as_a_number():
    frame = pl.DataFrame({"sick": [0, 1] * 10, "age": [1.0, 2.0] * 10})
    people = dp.table(frame, schema=dp.Schema(sick=dp.Categories([0, 1]), age=dp.Bounded(0, 9)))
    with pytest.raises(ValueError, match=r"was left out|not declared"):
        people.select("age").mean("sick")
    with pytest.raises(ValueError, match="Categories"):
        dp.table(frame, schema=dp.Schema(sick=dp.Categories(["0", "1"]))).mean("sick")
    taken = people.derive(**{"sick as a number": dp.tables.col("age") * 2})
    with pytest.raises(ValueError, match="give it another name"):
        taken.mean("sick")


def test_a_table_states_the_options_of_each_question_as_its_groups_do():
    """Editors complete what a signature names; none takes whatever it is given."""
    for name, of_table in vars(type_of_table := dp.tables.Table).items():
        of_groups = getattr(TableQuery, name, None)
        if name.startswith("_") or of_groups is None or not callable(of_table):
            continue
        assert inspect.signature(of_table).parameters == inspect.signature(of_groups).parameters, name
    assert "name" in inspect.signature(type_of_table.mean).parameters


@pytest.mark.parametrize("name", ["count", "mean", "sum", "median", "std"])
@pytest.mark.parametrize("argument", ["epsilon", "book"])
def test_a_budget_among_the_arguments_of_an_aggregate_is_told_where_it_is_said(table, name, argument):
    with pytest.raises(TypeError, match=r"the budget comes last.*\.release\(epsilon=0.5"):
        getattr(table["cost"], name)(**{argument: 1.0})
    if name != "std":
        with pytest.raises(TypeError, match="the budget comes last"):
            getattr(table.group_by("sex"), name)("cost", **{argument: 1.0})
