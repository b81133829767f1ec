"""What analysts write out of habit is answered as plain DuckDB answers it, or refused with the line to write."""

from __future__ import annotations

import re

import duckdb
import numpy as np
import polars as pl
import pytest

import discreet as dp
from searches._query_answers import unlike_kinds

_DRAWN = np.random.default_rng(3)
PEOPLE = pl.DataFrame(
    {
        "age": _DRAWN.integers(0, 100, 2000),
        "income": _DRAWN.integers(0, 1000, 2000),
        "sex": _DRAWN.choice(["f", "m"], 2000),
        "patient": _DRAWN.integers(0, 300, 2000),
    }
)
SCHEMA = dp.Schema(
    age=dp.Bounded(0, 100, whole=True), income=dp.Bounded(0, 1000, whole=True), sex=dp.Categories(["f", "m"])
)
MOST = 30  # rows of a patient


@pytest.fixture(scope="module")
def people():
    return dp.table(PEOPLE, schema=SCHEMA, unit="patient", max_rows_per_unit=MOST, threads=1)


def plain(query):
    return relation(query).fetchall()


def relation(query):
    return duckdb.from_arrow(PEOPLE.to_arrow()).query("people", query)


ANSWERED = [
    "SELECT COUNT(*) FROM people WHERE TRUE",
    "SELECT COUNT(*) FROM people WHERE 1 = 1",
    "SELECT COUNT(*) FROM people WHERE 1 = 1 AND age > 50",
    "SELECT COUNT(*) FROM people WHERE 1 = 0 OR NOT FALSE AND age > 50",
    "SELECT COUNT(*) FROM people WHERE 'a' <> 'b' AND age < 9",
    "SELECT COUNT(*) FILTER (WHERE TRUE) FROM people HAVING 2 > 1",
    "SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY sex FETCH FIRST 1 ROWS ONLY",
    "SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY sex DESC FETCH NEXT ROW ONLY",
    "WITH a AS (SELECT v.* FROM people v WHERE age > 90) SELECT AVG(income) FROM a",
    "SELECT sex, AVG(income) AS income FROM people GROUP BY sex HAVING SUM(income) > 5 ORDER BY SUM(income) DESC",
    "SELECT sex, AVG(income) AS income FROM people GROUP BY 1 HAVING COUNT(*) FILTER (WHERE income > 3) > 5 ORDER BY 1",
    "SELECT AVG(-age // 7), AVG((50 - age) // 7) FROM people",
    "SELECT COUNT(*) // 7, SUM(age) // 9, AVG(CAST(age / 3 AS INTEGER) // 2) FROM people HAVING COUNT(*) // 7 > 1",
    "SELECT SUM(t // 2) FROM (SELECT age + income AS t FROM people)",
    "SELECT AVG(ROUND(-age / 2)), AVG(ROUND((50 - age) / 4)), AVG(ROUND((50 - age) / 40, 1)) FROM people",
    "SELECT AVG(TRUNC((50 - age) / 4)), AVG(FLOOR((50 - age) / 4)), AVG(CEIL((50 - age) / 4)) FROM people",
    "SELECT AVG(CAST(age / 2.0 AS INTEGER)), AVG(CAST((50 - age) / 2 AS INTEGER)) FROM people",
    "SELECT CAST((50 - age) / 20 AS INTEGER) AS k, COUNT(*) FROM people GROUP BY k ORDER BY k",
    "SELECT sex, COUNT(*) / SUM(COUNT(*)) OVER () AS share FROM people GROUP BY sex ORDER BY sex",
    "SELECT sex, 100 * SUM(income) / SUM(SUM(income)) OVER () AS part FROM people GROUP BY sex ORDER BY part",
    "SELECT sex, SUM(COUNT(*)) OVER () AS n FROM people GROUP BY sex HAVING COUNT(*) > 1000",
    "SELECT COUNT(*) / COUNT(DISTINCT patient) FROM people",
]


@pytest.mark.parametrize("query", ANSWERED)
def test_answered_as_plain_sql_answers(people, query):
    """At a budget that leaves no noise to speak of; in the order that is asked for, with the types."""
    answer = people.sql(query, epsilon=1e6).value
    found, expected = answer.rows(), plain(query)
    assert unlike_kinds(answer, relation(query).types) == ""
    assert len(found) == len(expected)
    for line, other in zip(found, expected, strict=True):
        assert [value for value in line if isinstance(value, str)] == [v for v in other if isinstance(v, str)]
        numbers = ([value for value in values if not isinstance(value, str)] for values in (line, other))
        assert next(numbers) == pytest.approx(next(numbers), rel=1e-4, abs=1e-3)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT COUNT(*) FROM people WHERE '1' = 1", "compares a text with a number"),
        (
            "SELECT sex, COUNT(*) FROM people GROUP BY sex FETCH FIRST 10 PERCENT ROWS WITH TIES",
            "write LIMIT and a whole",
        ),
        ("SELECT sex, COUNT(*) FROM people GROUP BY sex LIMIT 50%", "write LIMIT and a whole number"),
        ("SELECT AVG(age / 2 // 3) FROM people", "write FLOOR\\(age / 2 / 3\\)"),
        ("SELECT AVG(FLOOR(age) // 7) FROM people", "is not supported where a number may have decimals"),
        ("SELECT SUM(CAST(age AS DOUBLE) // 7) FROM people", "is not supported where a number may have decimals"),
        ("SELECT SUM(TRY_CAST(age AS REAL) // 7) FROM people", "is not supported where a number may have decimals"),
        ("SELECT SUM(POWER(age, 2) // 3) FROM people", "is not supported where a number may have decimals"),
        ("SELECT SUM(age ^ 2 // 3) FROM people", "is not supported where a number may have decimals"),
        ("SELECT CAST(COUNT(*) AS DOUBLE) // 7 FROM people", "is not supported where a number may have decimals"),
        ("SELECT AVG(f // 7) FROM (SELECT ROUND(age) AS f FROM people)", "f // 7 is not supported where a number"),
        ("SELECT age // 7.0 AS k, COUNT(*) FROM people GROUP BY k", "SQL then divides as by /"),
        ("SELECT AVG(age) // 7 FROM people", "is not supported where a number may have decimals"),
        (
            "SELECT COUNT(*) FROM people HAVING MEDIAN(age) // 7 > 3",
            "is not supported where a number may have decimals",
        ),
        ("SELECT AVG(income) FROM (SELECT w.* FROM people v)", "write \\*, or the columns"),
        ("SELECT sex, SUM(COUNT(*)) OVER (PARTITION BY sex) FROM people GROUP BY sex", "OVER \\(\\), the total of all"),
        ("SELECT SUM(income) OVER () FROM people", "OVER \\(\\), the total of all groups"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex) HAVING SUM(COUNT(*)) OVER () > 2", "use GROUP BY"),
        ("SELECT sex, COUNT(*) / SUM(COUNT(*)) OVER () FROM people GROUP BY ROLLUP (sex)", "that total as a row"),
    ],
)
def test_refused_with_what_to_write(people, query, said):
    """Before anything is charged: there is no book."""
    with pytest.raises(ValueError, match=said):
        people.parse(query)


@pytest.mark.parametrize("unit", [{}, {"unit": "patient", "max_rows_per_unit": MOST}], ids=["rows", "units"])
@pytest.mark.parametrize("inner", ["COUNT(*)", "SUM(income)"])
def test_an_average_of_units_names_the_line_that_gives_it(people, unit, inner):
    """Average visits of a patient: the line in the refusal gives what plain SQL gives."""
    query = f"SELECT AVG(n) FROM (SELECT patient, {inner} AS n FROM people WHERE age > 9 GROUP BY patient)"
    with pytest.raises(ValueError, match="GROUP BY patient is not supported") as refusal:
        dp.table(PEOPLE, schema=SCHEMA, **unit).parse(query)
    assert ("unit='patient'" in str(refusal.value)) == (not unit)
    line = re.search("write (SELECT .*?);", str(refusal.value))
    assert line is not None
    found = people.sql(line[1], epsilon=1e6).value.rows()[0][0]
    assert found == pytest.approx(plain(query)[0][0], rel=1e-4)
