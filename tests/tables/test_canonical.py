"""One question has one form, whatever its words; two questions have two."""

from __future__ import annotations

from itertools import combinations

import polars as pl
import pytest

from discreet import Bounded, Categories, Schema, table
from discreet.tables import col
from discreet.tables.canonical import canonical_form

SCHEMA = Schema(age=Bounded(0, 99), hours=Bounded(0, 60), sex=Categories(["f", "m"]), educ=Categories([1, 2]))
PEOPLE = table(pl.DataFrame({"age": [1], "hours": [2], "sex": ["f"], "educ": [1]}), schema=SCHEMA)
SAME = [
    ("SELECT COUNT(*) AS n FROM t", "select count(*) from people;"),
    ("SELECT sex, AVG(age) AS a FROM t GROUP BY sex", "SELECT AVG(age) AS mean, sex AS s FROM t GROUP BY s ORDER BY 1"),
    (
        "SELECT sex, educ, SUM(CASE WHEN age > 5 THEN 1 ELSE 0 END) AS n FROM t GROUP BY sex, educ",
        "SELECT educ, sex, SUM(case when AGE>5 then 1 else 0 end) AS old FROM t GROUP BY ALL ORDER BY old DESC",
    ),
    (
        "SELECT COUNT(*) FROM t WHERE age > 5 AND (sex = 'f' OR hours < 3)",
        "SELECT COUNT(*) FROM t WHERE (hours < 3 OR sex = 'f') AND age > 5",
    ),
    (
        "SELECT COUNT(*) FROM t WHERE age > 5 AND 7 >= hours",
        "SELECT COUNT(*) FROM t WHERE 1 = 1 AND 5 < age AND hours <= 7",
    ),
    ("SELECT COUNT(*) FROM t WHERE educ IN (1, 2)", "SELECT COUNT(*) FROM t WHERE educ IN (2, 1, 2)"),
    ("SELECT COUNT(*) FROM t WHERE age = hours AND age = 5", "SELECT COUNT(*) FROM t WHERE hours = age AND 5 = age"),
    ("SELECT SUM(2 * age) AS s FROM t", "WITH w AS (SELECT 2 * age AS x FROM t) SELECT SUM(x) FROM w"),
    (
        "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex HAVING COUNT(*) > 5 ORDER BY n LIMIT 1",
        "SELECT COUNT(*) AS m, sex FROM t GROUP BY 2 HAVING m > 5 ORDER BY 1 LIMIT 1",
    ),
    ("SELECT 2 * COUNT(*) AS n, AVG(age) FROM t", "SELECT AVG(age) AS a, 2 * COUNT(*) FROM t"),
]
OTHERS = [
    "SELECT COUNT(*) FROM t",
    "SELECT COUNT(age) FROM t",
    "SELECT COUNT(*) FROM t WHERE age > 5",
    "SELECT COUNT(*) FROM t WHERE age >= 5",
    "SELECT COUNT(*) FROM t WHERE age < 5",
    "SELECT COUNT(*) FROM t WHERE age > hours",
    "SELECT COUNT(*) FROM t WHERE hours > age",
    "SELECT COUNT(*) FROM t WHERE age > 5 AND hours > 5",
    "SELECT COUNT(*) FROM t WHERE age > 5 OR hours > 5",
    "SELECT COUNT(*), SUM(age) FROM t",
    "SELECT SUM(age) FROM t",
    "SELECT SUM(hours) FROM t",
    "SELECT SUM(age * 2) FROM t",
    "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex",
    "SELECT educ, COUNT(*) AS n FROM t GROUP BY educ",
    "SELECT sex, educ, COUNT(*) AS n FROM t GROUP BY sex, educ",
    "SELECT sex, educ, COUNT(*) AS n FROM t GROUP BY ROLLUP (sex, educ)",
    "SELECT sex, educ, COUNT(*) AS n FROM t GROUP BY CUBE (sex, educ)",
    "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex HAVING n > 5",
    "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex ORDER BY n LIMIT 1",
    "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex ORDER BY n DESC LIMIT 1",
    "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex ORDER BY n DESC LIMIT 1 OFFSET 1",
    "SELECT sex, COUNT(*) / SUM(COUNT(*)) OVER () AS n FROM t GROUP BY sex",
    "SELECT COUNT(*) FROM t WHERE sex = 'f' UNION ALL SELECT COUNT(*) FROM t WHERE sex = 'm'",
    "SELECT COUNT(*) FROM t WHERE sex = 'm' UNION ALL SELECT COUNT(*) FROM t WHERE sex = 'f'",
    "SELECT QUANTILE_CONT(age, 0.5) FROM t",
    "SELECT QUANTILE_CONT(age, 0.9) FROM t",
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_words_aliases_and_order_do_not_make_another_question(one: str, other: str) -> None:
    assert canonical_form(PEOPLE.parse(one)) == canonical_form(PEOPLE.parse(other))


def test_other_questions_have_other_forms() -> None:
    forms = [canonical_form(PEOPLE.parse(query)) for query in OTHERS]
    alike = [(one, other) for (one, a), (other, b) in combinations(zip(OTHERS, forms, strict=True), 2) if a == b]
    assert alike == []


def test_methods_ask_the_same_question_as_sql() -> None:
    asked = PEOPLE.filter(col("age") > 5).group_by("sex").count().mean("hours")
    query = "SELECT AVG(hours) AS h, sex, COUNT(*) AS n FROM t WHERE age > 5 GROUP BY sex"
    assert canonical_form(asked) == canonical_form(PEOPLE.parse(query))
