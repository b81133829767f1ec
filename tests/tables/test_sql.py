"""SQL is the same plan in other words; what is not supported is refused by name, with the nearest thing that is."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import polars as pl
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
    ("SELECT COUNT(x), COUNT(sex), COUNT(educ) FROM t", lambda t: t.count("x").count("sex").count("educ")),
    ("SELECT COUNT(x), COUNT(DISTINCT id) FROM t", lambda t: t.count("x").count_distinct("id")),
    (
        "SELECT COUNT(*) FROM t WHERE x BETWEEN 5 AND 30 AND (sex = 'f' OR educ IN (1, 2))",
        lambda t: t.filter(
            (col("x") >= 5) & (col("x") <= 30) & ((col("sex") == "f") | col("educ").is_in([1, 2]))
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


def test_different_statistics_have_different_names(people):
    """A sample's variance is not the population's, which the methods give; a count is named alike for any column."""
    query = "SELECT VAR_POP(x), VAR_SAMP(x), VARIANCE(x + 1), STDDEV_POP(x), STDDEV(x), COUNT(x), COUNT(sex) FROM t"
    names = ["x_variance", "x_sample_variance", "VARIANCE(x + 1)", "x_deviation", "x_sample_deviation"]
    assert people.sql(query, epsilon=5.0).value.columns.tolist() == [*names, "x_count", "sex_count"]


@pytest.mark.parametrize("column", ["word", "sex", "n", "day"])
def test_values_of_any_declaration_are_counted(column):
    """Those that are there, and, of categories, declared."""
    rows = {"word": ["p", None, "q", "r"], "sex": ["f", None, "m", "x"], "n": [1, 2, None, 3]}
    frame = pl.DataFrame({**rows, "day": [dt.date(2024, 1, 1), dt.date(2024, 1, 2), None, dt.date(2023, 1, 1)]})
    facts = dp.Schema(
        word=dp.Unlisted(),
        sex=dp.Categories(["f", "m"]),
        n=dp.Categories([1, 2]),
        day=dp.Dates("2024-01-01", "2024-01-03"),
    )
    count = dp.table(frame, schema=facts).count(column).release(epsilon=1e6).value[f"{column}_count"][0]
    assert count == (3 if column == "word" else 2)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM t", "rows never leave"),
        ("SELECT MAX(x) FROM t", r"QUANTILE_CONT\(x, 0.99\)"),
        ("SELECT MIN(x) FROM t", r"QUANTILE_CONT\(x, 0.01\)"),
        ("SELECT MODE(x) FROM t", r"ORDER BY COUNT\(\*\) DESC LIMIT 1"),
        ("SELECT SUM(DISTINCT x) FROM t", "not supported with DISTINCT"),
        ("SELECT AVG(x) OVER () FROM t", "GROUP BY"),
        ("SELECT educ FROM t", "not grouped by"),
        ("SELECT COUNT(*) FROM t GROUP BY x", "FLOOR"),
        ("SELECT DISTINCT educ FROM t", "SELECT DISTINCT"),
        ("SELECT AVG(x) FROM t JOIN u USING (id)", r"joined on their unit before, by Table.join"),
        ("SELECT COUNT(*) FROM t, u", "--public u=FILE, public="),
        ("SELECT AVG(x) FROM t WHERE x > (SELECT 3)", "subquery"),
        ("WITH a AS (SELECT 1) SELECT AVG(x) FROM a", "There is no FROM"),
        ("SELECT AVG(x)", "no FROM"),
        ("SELECT AVG(ROUND(x, 400)) FROM t", "from -15 to 15"),
        ("SELECT ROUND(COUNT(*), -400) FROM t", "from -15 to 15"),
        ("SELECT AVG(ROUND(x, 1.5)) FROM t", "from -15 to 15"),
        ("SELECT COUNT(*) FROM t WHERE LEFT(sex, -1) = 'f'", "from 0 to 1000000"),
        ("SELECT COUNT(*) FROM t WHERE SUBSTR(sex, 1e30, 2) = 'f'", "from 1 to 1000000"),
        ("SELECT COUNT(*) FROM t WHERE x < 1e400", "A number of the query is inf"),
        ("SELECT COUNT(*) FROM t WHERE x < 1 / 0", "has no value"),
        ("SELECT COUNT(*) FROM t GROUP BY 1e5", "GROUP BY 1e5 is not supported"),
        ("SELECT COUNT(*) FROM t LIMIT 1e400", "A number of the query is inf"),
        ("SELECT AVG(x) FROM t WHERE x BETWEEN SYMMETRIC 9 AND 1", "not supported with SYMMETRIC"),
        ("SELECT AVG(x) FROM t WHERE '1' = 1", "compares a text with a number"),
        ("SELECT AVG(x) FROM t WHERE x < FLOOR(2 * @)", "without what it works on"),
        ("SELECT AVG(x) FROM t WHERE sex = 'x'", "not among the categories"),
        ("SELECT AVG(x) FROM t WHERE sex > 3", "'sex' is text"),
        ("SELECT AVG(height) FROM t", "'height' is not declared"),
        ("SELECT COUNT(*) FROM read_parquet('u.parquet')", "the table is open already"),
        ("SELECT COUNT(*) FROM t AS p (a, b)", "whose order a schema does not say"),
        ("SELECT COUNT(*) FROM t TABLESAMPLE 10%", "TABLESAMPLE is not supported: read the whole table"),
        ("SELECT COUNT(*) FROM t USING SAMPLE 3", "TABLESAMPLE is not supported"),
        ("SELECT COUNT(*) FROM t PIVOT (SUM(x) FOR educ IN (1, 2))", "PIVOT is not supported"),
        ("SELECT COUNT(*) FROM t AT (VERSION => 3)", "is not supported: give one SELECT"),
        ("SELECT COUNT(*) INTO u FROM t", "INTO is not supported"),
        ("SELECT COUNT(*) FROM t FOR UPDATE", "LOCKS is not supported"),
        ("SELECT COUNT(*) FROM t CLUSTER BY x", "CLUSTER is not supported"),
        ("SELECT COUNT(*) FROM t WHERE sex IN (1, 2)", "write the values in single quotes"),
        ("SELECT COUNT(*) FROM t UNION SELECT COUNT(*) FROM t", "UNION is not supported"),
        ("DELETE FROM t", "DELETE is not supported"),
        ("SELECT COUNT(*) FROM t WHERE x > 1 UNION ALL SELECT COUNT(*) FROM u", "different tables"),
        ("SELECT COUNT(*), 1 AS b FROM t UNION ALL SELECT COUNT(*) FROM t", "different numbers of columns"),
        ("SELECT COUNT(*) FROM t EXCEPT SELECT COUNT(*) FROM t", "EXCEPT is not supported"),
        ("SELECT AVG(a) FROM (SELECT educ, COUNT(*) AS a FROM t GROUP BY educ)", "has GROUP BY: ask it of the outer"),
        ("SELECT AVG(a) FROM (SELECT x AS a FROM t LIMIT 3)", "has LIMIT"),
        ("SELECT AVG(a) FROM (SELECT MAX(x) AS a FROM t)", r"has MAX\(x\)"),
        ("WITH RECURSIVE a AS (SELECT * FROM t) SELECT COUNT(*) FROM a", "WITH RECURSIVE is not supported"),
        ("SELECT COUNT(*) FROM t GROUP BY 2", "GROUP BY 2 is not supported"),
        ("SELECT x, COUNT(*) FROM t GROUP BY educ HAVING x > 3", "not grouped by"),
        ("SELECT COUNT(*) FROM t LIMIT 1.5", "LIMIT 1.5 is not supported"),
        ("SELECT MEDIAN(x) FROM t GROUP BY ROLLUP (educ)", "cannot be added up over groups"),
        ("SELECT COUNT(*) FROM t GROUP BY ROLLUP (educ), sex", "put them inside"),
        ("SELECT CORR(x, sex) FROM t", "sex is text"),
        ("SELECT u.x, COUNT(*) FROM t GROUP BY u.x", "There is no table 'u'"),
        ("SELECT COUNT(*) AS a, SUM(x) AS a FROM t", "Two columns of the answer are called 'a'"),
        ("SELECT CURRENT_DATE - 1 AS d, COUNT(*) FROM t GROUP BY d", "write the date"),
        ("SELECT YEAR(x), COUNT(*) FROM t GROUP BY 1", "A date or a time is needed"),
        ("SELECT CASE WHEN x > 1 THEN 'a' ELSE 2 END AS c, COUNT(*) FROM t GROUP BY c", "different kinds"),
        ("SELECT AVG(LOWER(sex)) FROM t", "text|Categories"),
        ("SELECT COUNT(*) FROM t WHERE sex LIKE 'f' ESCAPE '!'", "is not supported"),
        ("SELECT COUNT(*) FROM t WHERE x < INTERVAL '3'", "write INTERVAL 3 DAY"),
        ("SELECT COUNT(*) FROM t WHERE x < INTERVAL 'three' DAY", "write INTERVAL 3 DAY"),
        ("SELECT COUNT(*) FROM t WHERE x < INTERVAL '1' DAY TO HOUR", "write INTERVAL 3 DAY"),
        ("SELECT COUNT(*) FROM t WHERE x < INTERVAL '1 day 2 hours'", "write INTERVAL 3 DAY"),
        ("SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x DESC) FROM t", "take 1 - q"),
        ("SELECT AVG(POWER(x, 9)) FROM t", "powers are 2 and 3"),
        ("SELECT CAST(x AS VARCHAR) AS a, COUNT(*) FROM t GROUP BY a", "there are casts to INTEGER"),
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


def test_intervals_in_the_plural_on_keys_and_the_calendars_last_days():
    """'3 days' is INTERVAL 3 DAY; and 9999-12-31, which often stands for never, has no next day to look for."""
    days = pd.DataFrame({"d": pd.to_datetime(["2020-01-01", "2020-01-08"])})
    table = dp.table(days, schema=dp.Schema(d=dp.Dates("2020-01-01", "2020-12-31")))
    for interval in ("'3 days'", "3 DAYS", "'3' DAY", "3 DAY"):
        query = f"SELECT COUNT(*) AS n FROM t WHERE d + INTERVAL {interval} > DATE '2020-01-04'"
        assert table.sql(query, epsilon=1000.0, rng=1).value["n"][0] == 1
    month = "date_trunc('month', d)"
    query = f"SELECT {month} + INTERVAL {{}} DAY AS due, COUNT(*) AS n FROM t GROUP BY {month}"
    assert str(table.sql(query.format(9), epsilon=1.0, rng=1).value["due"][0]) == "2020-01-10"
    with pytest.raises(ValueError, match="years 1 to 9999"):
        table.sql(query.format(9_000_000), epsilon=1.0)
    never = dp.table(days, schema=dp.Schema(d=dp.Dates("9999-12-01", "9999-12-31")))
    assert len(never.sql("SELECT d, COUNT(*) AS n FROM t GROUP BY d", epsilon=1.0, rng=1).value) == 31
