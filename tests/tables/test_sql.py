"""SQL is the same plan in other words; what is not supported is refused by name, with the nearest thing that is."""

from __future__ import annotations

import pandas as pd
import pytest

import discreet as dp
from discreet.tables import col

SCHEMA = dp.Schema(educ=dp.Categories([1, 2]), x=dp.Bounded(0, 100), sex=dp.Categories(["f", "m"]), id=dp.Unlisted())


@pytest.fixture(scope="module")
def people():
    rows = {"educ": [1, 2, 2] * 500, "x": [10.0, 20.0, 40.0] * 500, "sex": ["f", "m", "f"] * 500, "id": range(1500)}
    return dp.table(pd.DataFrame(rows), schema=SCHEMA)


SAME = [
    ("SELECT educ, AVG(x) FROM people GROUP BY educ", lambda t: t.group_by("educ").mean("x")),
    ("select count(*) as n, sum(x) from t", lambda t: t.count(name="n").sum("x")),
    (
        "SELECT sex, educ, MEDIAN(x), QUANTILE_CONT(x, 0.25), VAR_POP(x) FROM t GROUP BY sex, educ",
        lambda t: t.group_by("sex", "educ").median("x").quantile("x", 0.25).variance("x"),
    ),
    ("SELECT COUNT(x), COUNT(DISTINCT id) FROM t", lambda t: t.count("x").count_distinct("id")),
    (
        "SELECT COUNT(*) FROM t WHERE x BETWEEN 5 AND 30 AND (sex = 'f' OR educ IN (1, 3))",
        lambda t: t.filter(
            (col("x") >= 5) & (col("x") <= 30) & ((col("sex") == "f") | col("educ").is_in([1, 3]))
        ).count(),
    ),
    (
        "SELECT COUNT(*) FROM t WHERE NOT x IS NULL AND ABS(x - 3) * 2 / 3 > -1 AND 'f' <> sex AND 15 < x",
        lambda t: t.filter(
            ~col("x").is_missing(), (col("x") - 3).abs() * 2 / 3 > -1, col("sex") != "f", col("x") > 15
        ).count(),
    ),
]


@pytest.mark.parametrize(("query", "methods"), SAME)
def test_a_select_is_the_same_plan(people, query, methods):
    """The same event and, under one seed, the same answer."""
    one, other = people.sql(query, epsilon=5.0, rng=4), methods(people).release(epsilon=5.0, rng=4)
    assert one.event == other.event
    assert one.value.equals(other.value)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM t", "rows never leave"),
        ("SELECT MAX(x) FROM t", r"QUANTILE_CONT\(x, 0.99\)"),
        ("SELECT MIN(x) FROM t", r"QUANTILE_CONT\(x, 0.01\)"),
        ("SELECT STDDEV(x) FROM t", "VAR_POP"),
        ("SELECT VARIANCE(x) FROM t", "VAR_POP"),
        ("SELECT MODE(x) FROM t", "Aggregates are"),
        ("SELECT AVG(x + 1) FROM t", "derive"),
        ("SELECT SUM(DISTINCT x) FROM t", "aggregate a column"),
        ("SELECT AVG(x) OVER () FROM t", "GROUP BY"),
        ("SELECT COUNT(*) FILTER (WHERE x > 3) FROM t", "is not supported"),
        ("SELECT educ FROM t", "not grouped by"),
        ("SELECT educ AS e, COUNT(*) FROM t GROUP BY educ", "rename it after the release"),
        ("SELECT educ, COUNT(*) FROM t GROUP BY 1", "name of a column"),
        ("SELECT COUNT(*) FROM t GROUP BY ROLLUP(educ)", "ROLLUP"),
        ("SELECT COUNT(*) FROM t GROUP BY x", "use histogram"),
        ("SELECT AVG(x) FROM t HAVING COUNT(*) > 3", "HAVING is not supported: the answer is public"),
        ("SELECT AVG(x) FROM t ORDER BY 1", "ORDER BY is not supported: the answer is public"),
        ("SELECT AVG(x) FROM t LIMIT 3", "LIMIT is not supported"),
        ("SELECT DISTINCT educ FROM t", "SELECT DISTINCT"),
        ("SELECT AVG(x) FROM t JOIN u USING (id)", "JOIN is not supported: join first"),
        ("SELECT COUNT(*) FROM t, u", "JOIN is not supported"),
        ("SELECT AVG(x) FROM (SELECT * FROM t)", "subquery"),
        ("SELECT AVG(x) FROM t WHERE x > (SELECT 3)", "subquery"),
        ("WITH a AS (SELECT 1) SELECT AVG(x) FROM a", "WITH is not supported"),
        ("SELECT AVG(x)", "no FROM"),
        ("SELECT AVG(x) FROM t WHERE sex LIKE 'a'", "not supported in WHERE"),
        ("SELECT AVG(x) FROM t WHERE x BETWEEN SYMMETRIC 9 AND 1", "not supported in WHERE"),
        ("SELECT AVG(x) FROM t WHERE 1 = 1", "does not look at any column"),
        ("SELECT AVG(x) FROM t WHERE x < FLOOR(2 * @)", "without what it works on"),
        ("SELECT AVG(x) FROM t WHERE sex = 'x'", "not among the Categories"),
        ("SELECT AVG(x) FROM t WHERE sex > 3", "'sex' is text"),
        ("SELECT AVG(height) FROM t", "'height' is not declared"),
        ("SELECT COUNT(*) FROM read_parquet('u.parquet')", "the table is open already"),
        ("SELECT COUNT(*) FROM t AS p (a, b)", "the table is open already"),
        ("SELECT COUNT(*) FROM t TABLESAMPLE 10%", "TABLESAMPLE is not supported: read the whole table"),
        ("SELECT COUNT(*) FROM t USING SAMPLE 3", "TABLESAMPLE is not supported"),
        ("SELECT COUNT(*) FROM t PIVOT (SUM(x) FOR educ IN (1, 2))", "PIVOT is not supported"),
        ("SELECT COUNT(*) FROM t AT (VERSION => 3)", "is not supported: give one SELECT"),
        ("SELECT COUNT(*) INTO u FROM t", "INTO is not supported"),
        ("SELECT COUNT(*) FROM t FOR UPDATE", "LOCKS is not supported"),
        ("SELECT COUNT(*) FROM t CLUSTER BY x", "CLUSTER is not supported"),
        ("SELECT COUNT(1) FROM t", r"write COUNT\(\*\)"),
        ("SELECT COUNT(*) FROM t WHERE sex IN (1, 2)", "write the values as text"),
        ("SELECT COUNT(*) FROM t UNION SELECT COUNT(*) FROM t", "UNION is not supported"),
        ("DELETE FROM t", "DELETE is not supported"),
        ("SELECT AVG(x) FROM t; SELECT AVG(x) FROM t", "several statements"),
        ("SELECT AVG( FROM t", "cannot be read"),
        ("", "give one SELECT"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(people, query, message):
    """Before anything is charged or read."""
    with pytest.raises(ValueError, match=message):
        people.sql(query, epsilon=1.0)


def test_a_select_can_be_explained_first(people):
    """parse gives the question; explain its price."""
    assert "x_mean" in people.parse("SELECT AVG(x) FROM t").explain(epsilon=1.0).errors
