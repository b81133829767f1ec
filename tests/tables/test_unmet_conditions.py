"""A condition that no declared value meets is said in ``explain`` and before the charge; where no row can be left, the
question is refused."""

from __future__ import annotations

import re
import warnings
from typing import Any

import polars as pl
import pytest

import discreet as dp
from discreet.tables import col

ROWS = pl.DataFrame(
    {"ward": ["North", "South"] * 50, "educ": [1, 2] * 50, "age": [20, 70] * 50, "height": [150.5, 170.0] * 50}
).with_columns(day=pl.lit("2024-05-01"))
SCHEMA = dp.Schema(
    ward=dp.Categories(["North", "South", "West Wing"]),
    educ=dp.Categories(range(1, 6)),
    age=dp.Bounded(0, 99, whole=True),
    height=dp.Bounded(50, 250),
    day=dp.Dates("2024-01-01", "2024-12-31"),
)
BOUND = "nothing from 50 to 250 meets"
NEVER = [
    ("LOWER(ward) = 'nort'", "= 'nort'; did you mean 'north'?"),
    ("LOWER(ward) = 'North'", "= 'North'; did you mean 'north'?"),
    ("UPPER(ward) IN ('NORTHH', 'EAST')", "IN ('NORTHH', 'EAST'); did you mean 'NORTH'?"),
    ("ward LIKE 'Sooth%'", "LIKE 'Sooth%'; did you mean 'South'?"),
    ("ward LIKE '%wing'", "LIKE '%wing'; there are 'North', 'South', 'West Wing'"),
    ("ward LIKE 'So_uth'", "LIKE 'So_uth'; did you mean 'South'?"),
    ("educ = 9", "educ: no declared value meets = 9; the nearest is 5"),
    ("educ IN (7, 8)", "IN (7, 8); the nearest is 5"),
    ("educ > 5", "educ: no declared value meets > 5"),
    ("age > 200", "age: no declared value meets > 200; the nearest is 99"),
    ("age = 20.5", "age: no declared value meets = 20.5"),
    ("height > 300", f"{BOUND} > 300, and values outside count as the nearer end"),
    ("300 < height", f"{BOUND} > 300"),
    ("height IN (1, 2)", f"{BOUND} IN (1, 2)"),
    ("day > DATE '2025-03-01'", "day: no declared value meets > 2025-03-01"),
]


class Book:
    """Notes that it was charged."""

    charged = False

    def charge(self, *_: Any, **__: Any) -> None:
        self.charged = True


@pytest.fixture(scope="module")
def visits() -> Any:
    return dp.table(ROWS, schema=SCHEMA)


@pytest.mark.parametrize(("condition", "said"), NEVER)
@pytest.mark.parametrize("group", ["", " GROUP BY ward"])
def test_a_question_about_no_row_is_refused_with_the_reason(visits: Any, condition: str, said: str, group: str) -> None:
    book = Book()
    with pytest.raises(ValueError, match=re.escape(said)):
        visits.sql(f"SELECT COUNT(*) AS n FROM visits WHERE {condition}{group}", epsilon=1.0, book=book)
    assert not book.charged


@pytest.mark.parametrize(("condition", "said"), NEVER)
def test_a_part_of_a_condition_that_nothing_meets_is_said(visits: Any, condition: str, said: str) -> None:
    """In ``explain``, and by a warning before the charge; the rest is answered."""
    query = f"SELECT COUNT(*) AS n FROM visits WHERE {condition} OR ward = 'North'"
    checks = [line for line in str(visits.parse(query).explain(1.0)).splitlines() if line.startswith("check   ")]
    assert any(said in line for line in checks)
    with pytest.warns(UserWarning, match=re.escape(said)):
        answer = visits.sql(query, epsilon=1e6).value
    assert answer["n"].to_list() == [50]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT COUNT(*) FROM t WHERE educ IN (1, 30)", "educ: 30 is not declared; the nearest is 5"),
        ("SELECT ward, COUNT(*) FROM t GROUP BY ward HAVING LOWER(ward) = 'nort'", "did you mean 'north'?"),
        ("SELECT age // 10 AS ten, COUNT(*) FROM t GROUP BY ten HAVING ten = 10", "ten: no declared value meets = 10"),
        ("SELECT COUNT(*) FROM t WHERE age <> 999", "age: no declared value meets = 999"),
        ("SELECT COUNT(*) FILTER (WHERE LOWER(ward) = 'nort') FROM t", "did you mean 'north'?"),
        ("SELECT SUM(CASE WHEN ward LIKE 'Norht%' THEN 1 ELSE 0 END) FROM t", "did you mean 'North'?"),
    ],
)
def test_other_conditions_that_look_wrong_are_said(visits: Any, query: str, said: str) -> None:
    assert said in str(visits.parse(query).explain(1.0))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT COUNT(*) FROM t WHERE LOWER(ward) = 'north' AND age BETWEEN 0 AND 99 AND height >= 250",
        "SELECT AVG(SIGN(age)), AVG(height / NULLIF(age - 200, 0)) FROM t WHERE ward LIKE '%o%'",
        "SELECT COUNT(*) FROM t WHERE 1 = 1 AND (age > 5 OR 1 = 0)",
        "SELECT ward, COUNT(*) FROM t GROUP BY ward HAVING COUNT(*) > 5 AND LOWER(ward) <> 'north' AND 2 > 1",
        "SELECT level, COUNT(*) FROM t JOIN levels USING (educ) GROUP BY level",
    ],
)
def test_what_some_value_meets_is_not_remarked(visits: Any, query: str) -> None:
    """Nor what functions are made of, nor lines of a public table that no category has."""
    levels = {"levels": pl.DataFrame({"educ": [1, 2, 30], "level": ["low", "high", "more"]})}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked = visits.parse(query, levels)
        assert "check  " not in str(asked.explain(1.0))
        asked.release(epsilon=1.0)


def test_two_conditions_that_exclude_each_other_are_refused_without_groups(visits: Any) -> None:
    excluding = ("ward = 'North' AND ward = 'South'", "height < 100 AND height > 200")
    for condition in (*excluding, "1 = 0", "FALSE OR 2 < 1", "age > 5 AND NOT TRUE"):
        with pytest.raises(ValueError, match="No row can meet the conditions"):
            visits.parse(f"SELECT COUNT(*) FROM t WHERE {condition}").operation(epsilon=1.0)
    with pytest.raises(ValueError, match="No row can meet the conditions"):
        visits.filter(col("age") > 200).count().release(epsilon=1.0)
    with pytest.raises(ValueError, match="No group can meet the conditions"):
        visits.parse("SELECT ward, COUNT(*) FROM t WHERE 1 = 0 GROUP BY ward").operation(epsilon=1.0)


@pytest.mark.parametrize(
    "cut", ["LIMIT 0", "HAVING 1 = 0", "HAVING COUNT(*) > 5 AND FALSE", "ORDER BY 2 LIMIT 0 OFFSET 1"]
)
def test_an_answer_that_shows_nothing_whatever_it_is_is_refused_unpaid(visits: Any, cut: str) -> None:
    book = dp.Ledger("sqlite://").open("visits", epsilon=1.0)
    with pytest.raises(ValueError, match="No row would be shown"):
        visits.sql(f"SELECT ward, COUNT(*) FROM t GROUP BY ward {cut}", epsilon=1.0, book=book)
    assert book.spent().epsilon == 0


@pytest.mark.parametrize("cast", ["CAST(0.5 * age AS INTEGER)", "CAST(age + 0.5 AS BIGINT)", "CAST(h AS INTEGER)"])
def test_a_cast_whose_halves_go_where_a_type_says_is_refused(visits: Any, cast: str) -> None:
    """DuckDB rounds 0.5 * age away from zero where age is a whole number, and to even where it is a double."""
    with pytest.raises(ValueError, match=re.escape("write ROUND(...) or FLOOR(...)")):
        visits.parse(f"SELECT AVG({cast}) FROM (SELECT *, 0.5 * age AS h FROM t)")
    visits.parse("SELECT AVG(CAST(age / 2 AS INTEGER)), AVG(CAST(height AS INTEGER)), AVG(ROUND(0.5 * age)) FROM t")
