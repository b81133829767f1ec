"""Mistakes of who writes SQL: answered in SQL, in a sentence or two, with the place and the nearest form that works."""

from __future__ import annotations

import re

import polars as pl
import pytest

import discreet as dp
from tests.tables import analyst_queries as analysts

# Words of Python that nobody who wrote SQL has used. ``public={...}`` stands beside --public, where a table is missing.
PYTHON = re.compile(
    r"dp\.|\bcol\(|is_in|Bounded|Categories|Unlisted|Dates\b|Times\b|derive|\.clip|==|histogram\(|group_by|count\(\)|"
    r"None|NONE|<class|self|Traceback|Error\b"
)
MISTAKES = [
    # columns
    ("SELECT AVG(incme) FROM visits", r"AVG\(incme\).*did you mean 'income'"),
    ("SELECT AVG(salary) FROM visits", r"'salary' is not declared: add salary = \{ bounds = \[low, high\] \}"),
    ("SELECT COUNT(*) FROM visits WHERE age > 3 AND incom > 5", r"^WHERE incom > 5.*did you mean 'income'"),
    ("SELECT gendr, COUNT(*) FROM visits GROUP BY gendr", r"GROUP BY gendr.*categories = \[\.\.\.\]"),
    ("SELECT AVG(income) FILTER (WHERE agee > 3) FROM visits", r"did you mean 'age'"),
    ("SELECT person_id, COUNT(*) FROM visits GROUP BY person_id", r"COUNT\(DISTINCT person_id\)"),
    ("SELECT COUNT(*) FROM visits v WHERE w.age > 3", r"no table 'w'"),
    ("SELECT region r, COUNT(*) FROM visits WHERE r = 'north' GROUP BY r", r"'r'.*a name that SELECT gives"),
    # quoting
    ("SELECT COUNT(*) FROM visits WHERE sex = f", r"write 'f' in single quotes"),
    ('SELECT COUNT(*) FROM visits WHERE sex = "f"', r"write 'f' in single quotes"),
    ("SELECT COUNT(*) FROM visits WHERE sex = 'f", r"a quote ' is not closed"),
    ("SELECT COUNT(*) FROM visits WHERE year(day) = '2023'", r"write 2023, no quotes"),
    ("SELECT COUNT(*) FROM visits WHERE sex IN (1, 2)", r"in single quotes"),
    ("SELECT COUNT(*) FROM visits WHERE sex = 'fem'", r"'fem' is not among the categories that 'sex'"),
    ("SELECT COUNT(*) FROM visits WHERE region = 'norht'", r"did you mean 'north'"),
    # text and dates where numbers belong, and the other way round
    ("SELECT AVG(sex) FROM visits", r"sex is text.*GROUP BY it"),
    ("SELECT SUM(city) FROM visits", r"declare city = \{ bounds = \[low, high\] \}"),
    ("SELECT AVG(day) FROM visits", r"date_diff\('day', DATE '2023-01-01', day\)"),
    ("SELECT COUNT(*) FROM visits WHERE age > 'old'", r"^WHERE age > 'old'.*'old' is text.*=, <> and IN"),
    ("SELECT COUNT(*) FROM visits WHERE lower(age) = 'a'", r"column 'age', a number.*text is needed"),
    ("SELECT COUNT(*) FROM visits WHERE year(age) = 2023", r"dates = \["),
    ("SELECT hour(day) AS h, COUNT(*) FROM visits GROUP BY h", r"no hour: declare day = \{ times = \[\"2023-01-01\""),
    ("SELECT COUNT(*) FROM visits WHERE minute(day + INTERVAL 1 DAY) > 3", r"'day' is declared as days.*no minute"),
    ("SELECT date_trunc('hour', day) AS h, COUNT(*) FROM visits GROUP BY h", r"'day' is declared as days.*no hour"),
    ("SELECT AVG(income * city) FROM visits", r"'city' is declared as unlisted.*bounds = \["),
    ("SELECT COUNT(*) FROM visits WHERE sex", r"write a comparison, as age >= 18"),
    ("SELECT COALESCE(sex, 3) AS k, COUNT(*) FROM visits GROUP BY k", r"GROUP BY COALESCE.*different kinds"),
    # bounds and groups
    ("SELECT AVG(1 / hours) FROM visits", r"AVG\(1 / hours\).*LEAST\(GREATEST\("),
    ("SELECT age, COUNT(*) FROM visits GROUP BY age", r"FLOOR\(age / 10\) \* 10.*range = "),
    ("SELECT at, COUNT(*) FROM visits GROUP BY at", r"date_trunc\('month', at\)"),
    ("SELECT (age - 50) % 7.5 AS m, COUNT(*) FROM visits GROUP BY m", r"^GROUP BY \(age - 50\) % 7\.5: its values are"),
    ("SELECT age % 2 AS odd, COUNT(*) FROM visits GROUP BY odd", r"\* 10, FLOOR\(\.\.\.\) % 2, or"),
    ("SELECT at + INTERVAL 1 DAY AS m, COUNT(*) FROM visits GROUP BY m", r"computed.*date_trunc\('month', \.\.\.\)"),
    # what is no aggregate
    ("SELECT * FROM visits", r"rows never leave.*aggregates"),
    ("SELECT income FROM visits", r"SELECT but is not grouped by.*AVG\(income\)"),
    ("SELECT sex FROM visits GROUP BY sex", r"no aggregate.*COUNT\(\*\)"),
    ("SELECT sex, COUNT(*) FROM visits GROUP BY sex ORDER BY income", r"ORDER BY but is not grouped by"),
    ("SELECT COUNT(*) FROM visits WHERE COUNT(*) > 3", r"after HAVING"),
    ("SELECT RANK() OVER (ORDER BY income) FROM visits", r"window functions.*GROUP BY"),
    ("SELECT DISTINCT sex FROM visits", r"GROUP BY, or COUNT\(DISTINCT"),
    ("SELECT COUNT(DISTINCT sex, region) FROM visits", r"^COUNT\(DISTINCT sex, region\).*sex \|\| region"),
    ("SELECT AVG(*) FROM visits", r"COUNT\(\*\) alone"),
    ("SELECT AVG() FROM visits", r"line 1, column 12"),
    ("SELECT QUANTILE_CONT(income, 50) FROM visits", r"between 0 and 1.*0\.5"),
    ("SELECT MEEN(income) FROM visits", r"MEEN.*AVG"),
    ("SELECT COUNT(*) FROM visits WHERE SUBSTRNG(city, 1, 2) = 'Pa'", r"did you mean SUBSTRING"),
    # dates and intervals
    ("SELECT WEEKDAY(day) AS d, COUNT(*) FROM visits GROUP BY d", r"DAYOFWEEK, where Sunday is 0"),
    ("SELECT COUNT(*) FROM visits WHERE day > '01/02/2023'", r"write '2024-01-31'"),
    ("SELECT COUNT(*) FROM visits WHERE day = DATE '2023-02-30'", r"spells no date"),
    ("SELECT COUNT(*) FROM visits WHERE day > 2023", r"^WHERE day > 2023.*year\("),
    ("SELECT COUNT(*) FROM visits WHERE day + INTERVAL 1 MONTH > '2023-02-01'", r"write days, or add it to a written"),
    ("SELECT COUNT(*) FROM visits WHERE day > NOW() - INTERVAL 30 DAY", r"write the date, as DATE"),
    ("SELECT AVG(date_diff('fortnight', at, day)) FROM visits", r"differences are in year, quarter"),
    ("SELECT COUNT(*) FROM visits WHERE date_add('day', 3, day) > '2023-02-01'", r"day \+ INTERVAL 3 DAY"),
    # NULL, parameters, subqueries, statements
    ("SELECT COUNT(*) FROM visits WHERE age = NULL", r"IS NULL"),
    ("SELECT COUNT(*) FROM visits WHERE age > ?", r"write the value"),
    ("SELECT COUNT(*) FROM visits WHERE age IN (SELECT age FROM visits)", r"release it first"),
    ("SELECT COUNT(*) FROM visits JOIN shops USING (region)", r"--public shops=FILE"),
    ("SELECT COUNT(*) FROM visits; DROP TABLE visits", r"only one is answered"),
    ("DELETE FROM visits", r"DELETE is not supported.*SELECT"),
    ("", r"empty query.*SELECT"),
    ("SELECT COUNT(*) FORM visits", r"FORM.*did you mean FROM"),
    ("SELEC COUNT(*) FROM visits", r"SELEC.*did you mean SELECT"),
    ("SELECT COUNT(* FROM visits", r"'FROM' \(line 1, column 19\)"),
    ("SELECT TOP 5 sex, COUNT(*) FROM visits GROUP BY sex", r"LIMIT 5"),
    ("visits", r"^The query is no SELECT: give one SELECT"),
    ("how many visits are there?", r"SELECT \.\.\. FROM"),
    ("SELECT COUNT(*) FROM visits LIMIT 'a'", r"LIMIT"),
    ("SELECT COUNT(*) FROM visits GROUP BY", r"GROUP BY names nothing"),
    ("SELECT COUNT(DISTINCT gendr) FROM visits", r"unlisted = true"),
    ("SELECT sex, COUNT(*) FROM visits GROUP BY sex, 7", r"GROUP BY 7.*2 column"),
]


@pytest.fixture(scope="module")
def visits():
    return dp.table(analysts.rows(20), schema=analysts.SCHEMA, unit="person_id", max_rows_per_unit=1, threads=1)


REFUSED = [(query, re.escape(form)) for query, form in analysts.REFUSED]


@pytest.mark.parametrize(("query", "pattern"), [*MISTAKES, *REFUSED])
def test_a_mistake_in_sql_is_answered_in_sql(query, pattern, visits):
    """What, where, and what to write instead, before anything is charged or read."""
    with pytest.raises(ValueError, match=pattern) as raised:
        visits.parse(query).operation(1.0)
    said = str(raised.value)
    assert not PYTHON.search(said), said
    assert len(said) <= 330, said
    assert said.endswith((".", "?")), said


def test_a_long_condition_is_repeated_in_part_only(visits):
    """The beginning of it is enough to find it."""
    query = f"SELECT COUNT(*) FROM visits WHERE age > 1 AND ({' OR '.join(['age > 3'] * 50)} OR agee > 1)"
    with pytest.raises(ValueError, match=r"^WHERE age > 3 OR.*…: Column 'agee'"):
        visits.parse(query)
    listed = ", ".join(map(str, range(500)))
    with pytest.raises(ValueError, match=r"^WHERE agee IN \(\.\.\.\): Column 'agee'"):
        visits.parse(f"SELECT COUNT(*) FROM visits WHERE agee IN ({listed})")


def test_the_name_of_other_rows_is_answered_with_what_finds_them():
    """It is a group, but no category: a row of any undeclared value is missing to a condition."""
    table = dp.table(pl.DataFrame({"k": ["a", "?", None]}), schema={"k": dp.Categories(["a", "b"], other="else")})
    with pytest.raises(ValueError, match=r"^WHERE k = 'else': 'else' is the group of rows.*write k IS NULL\.$"):
        table.parse("SELECT COUNT(*) FROM t WHERE k = 'else'")
    with pytest.raises(ValueError, match=r"col\('k'\)\.is_missing\(\)\.$"):
        table.filter(dp.tables.col("k") == "else")
    assert table.sql("SELECT COUNT(*) FROM t WHERE k IS NULL", epsilon=1e4).value["count"].to_list() == [2]


def test_the_same_mistakes_are_answered_in_python_to_who_wrote_python(visits):
    """One finding, two wordings."""
    col = dp.tables.col
    for asked, pattern in (
        (lambda: visits.filter(col("age")), r"col\('age'\) >= 18"),
        (lambda: visits.derive(z=1 / col("hours")), r"\.clip\(low, high\)"),
        (lambda: visits.group_by("age"), r"Categories or Unlisted\(\)"),
        (lambda: visits.mean("sex"), r"Bounded\(low, high\)"),
        (lambda: visits.mean("incme"), r"did you mean 'income'"),
        (lambda: visits.derive(hour=col("day").date.hour()), r"'day'.*no hour: declare it as Times\('2023-01-01', "),
    ):
        with pytest.raises(ValueError, match=pattern):
            asked()


def test_a_semicolon_at_the_end_is_no_second_statement(visits):
    assert str(visits.parse("SELECT COUNT(*) FROM visits;")) == "TableQuery(count)"


def test_a_column_of_whole_numbers_is_grouped_by_each_of_them():
    """What is suggested is answered, with a group for each number."""
    frame = pl.DataFrame({"items": [1, 1, 2, 3, 3, 3]})
    basket = dp.table(frame, schema={"items": dp.Bounded(1, 3, whole=True)}, threads=1)
    with pytest.raises(ValueError, match=r"group by FLOOR\(items\) or FLOOR\(items / 10\) \* 10"):
        basket.sql("SELECT items, COUNT(*) AS n FROM t GROUP BY items", epsilon=1e5)
    told = basket.sql("SELECT FLOOR(items) AS items, COUNT(*) AS n FROM t GROUP BY 1", epsilon=1e5).value
    assert told.rows() == [(1, 2), (2, 1), (3, 3)]
