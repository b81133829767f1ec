"""Whatever a query says is answered as plain DuckDB answers it, or refused by name before the charge."""

from __future__ import annotations

import dataclasses
from collections import Counter

import duckdb
import polars as pl
import pytest
import sqlglot
from sqlglot import exp

import discreet as dp
from discreet.tables.grammar import UNDERSTOOD, refuse_unread
from searches import queries
from searches._query_answers import difference, unlike_kinds
from searches._query_rows import PUBLIC

CASES = 100  # in five containers; 10^4 by ``make search``


@pytest.mark.filterwarnings("ignore")
def test_random_queries_are_answered_as_by_duckdb_or_refused() -> None:
    """And none fails after the charge. More than half are answered, so that the search means something."""
    tried = Counter(queries.retry(queries.draw_case(7, number)) for number in range(CASES))
    assert tried["answered"] > CASES / 2, tried


def test_a_wrong_answer_is_noticed() -> None:
    """The comparison sees another order, another name, another kind, one row less, and a number that is off."""
    query = queries.Query("", "", 2, ("k", "n"), (False, False), (0.02, 0.02), exact_order=(True,))
    truth = [("a", 9.0, 9.0), ("b", 5.0, 5.0)]
    wrong = lambda names, rows: difference(query, names, rows, truth)  # noqa: E731
    assert wrong(["k", "n"], [("a", 9.0), ("b", 5.0)]) == ""
    assert wrong(["k", "n"], [("b", 5.0), ("a", 9.0)])
    assert wrong(["k", "m"], [("a", 9.0), ("b", 5.0)])
    assert wrong(["k", "n"], [("a", 9.0), ("b", "5")])
    assert wrong(["k", "n"], [("a", 9.0)])
    assert wrong(["k", "n"], [("a", 9.0), ("b", 6.0)])
    frame = pl.DataFrame({"k": ["a"], "n": [9.0]})
    assert unlike_kinds(frame, ["VARCHAR", "DOUBLE"]) == ""
    assert unlike_kinds(frame, ["VARCHAR", "HUGEINT"])
    assert unlike_kinds(frame.to_pandas(), ["VARCHAR", "BIGINT"])


def test_a_group_that_a_condition_excludes_is_noticed() -> None:
    """One that no row happens to be in is not."""
    asked = "SELECT region, COUNT(*) AS n FROM people WHERE LOWER(region) IN ('north', 'west') GROUP BY 1"
    query = queries.Query(asked, asked, 2, ("region", "n"), (False, False), (0.0, 0.0), empty_groups=True)
    truth = [("north", 9.0)]
    assert difference(query, ["region", "n"], [("north", 9.0), ("west", 0.0)], truth) == ""
    assert "WHERE excludes" in difference(query, ["region", "n"], [("north", 9.0), ("south", 0.0)], truth)
    assert "there is no row" in difference(query, ["region", "n"], [("north", 9.0)], [*truth, (None, 2.0)])
    missing = dataclasses.replace(query, asked="SELECT region, COUNT(*) AS n FROM people WHERE sex IS NULL GROUP BY 1")
    assert difference(missing, ["region", "n"], [("north", 0.0)], []) == ""


def test_an_average_of_no_rows_may_stand_anywhere_among_its_equals() -> None:
    """It is NULL in DuckDB and noise here; every other row keeps its order, inside a LIMIT too."""
    truth = [("a", None, "a", None), ("a", 3.0, "a", 3.0), ("a", 9.0, "a", 9.0), ("b", 1.0, "b", 1.0)]
    query = queries.Query("", "", 2, ("k", "n"), (False, True), (0.02, 0.02), exact_order=(True, False))
    noisy, three, nine, one = ("a", 5.5), ("a", 3.0), ("a", 9.0), ("b", 1.0)
    names = ["k", "n"]
    for rows in ([noisy, three, nine, one], [three, noisy, nine, one], [three, nine, noisy, one]):
        assert difference(query, names, rows, truth) == ""
    for rows in ([three, nine, one, noisy], [nine, noisy, three, one], [noisy, three, one, nine]):
        assert difference(query, names, rows, truth)
    cut = dataclasses.replace(query, limit=2, offset=1)
    for rows in ([nine, noisy], [noisy, nine], [three, nine]):
        assert difference(cut, names, rows, truth) == ""
    for rows in ([nine, one], [noisy, one], [one, nine]):
        assert difference(cut, names, rows, truth)


PLAIN = [
    "SELECT COUNT(*) AS n FROM (WITH x AS (SELECT * FROM people WHERE age > 90) SELECT * FROM x)",
    "WITH z AS (WITH x AS (SELECT * FROM people WHERE age > 90) SELECT * FROM x) SELECT COUNT(*) AS n FROM z",
    "(WITH x AS (SELECT * FROM people WHERE age > 90) SELECT COUNT(*) AS n FROM x) UNION ALL "
    "(WITH x AS (SELECT * FROM people WHERE age <= 90) SELECT COUNT(*) AS n FROM x)",
    "WITH x AS (SELECT * FROM people WHERE age > 50) SELECT COUNT(*) AS n FROM x WHERE sex = 'f' UNION ALL "
    "(SELECT COUNT(*) AS n FROM people UNION ALL SELECT SUM(age) AS n FROM x)",
    "WITH x(educ, age) AS (SELECT age, educ FROM people) SELECT AVG(age) AS n FROM x",
    "SELECT AVG(age) AS n FROM (SELECT age, educ FROM people) AS t(educ, age)",
    "SELECT AVG(b) AS n FROM (SELECT age, educ AS b FROM people) AS t(a) WHERE a > 50",
    "SELECT COUNT(*) AS n FROM people AS p LEFT JOIN regions AS r ON p.region = r.region WHERE r.region IS NULL",
    "SELECT COUNT(*) AS n FROM people LEFT JOIN regions USING (region) WHERE region = 'west'",
    "SELECT AVG(CAST(age / 8 AS DECIMAL(9, 0))) AS n FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE date_diff('week', DATE '2023-06-01', day) IN (1, 2, 5, 30)",
    "SELECT married, COUNT(*) AS n FROM people WHERE married GROUP BY married HAVING COUNT(*) > 0",
]


@pytest.mark.parametrize("container", queries.CONTAINERS)
def test_what_was_read_and_ignored_counts(container: str) -> None:
    """Filters of inner WITHs, columns of aliases, the public key of a LEFT JOIN, decimals, truth values of a CSV."""
    table = queries._table(container)
    for query in PLAIN:
        answer = table.sql(query, epsilon=1e6, public=PUBLIC).value
        rows = list(answer.itertuples(index=False)) if container == "pandas" else answer.rows()
        expected = queries._truth().sql(query).fetchall()
        assert [float(row[-1]) for row in rows] == pytest.approx([float(row[-1]) for row in expected], abs=0.05), query


def test_a_condition_on_a_key_is_planned() -> None:
    """DuckDB never ended its plan where a key of doubles was fixed by a condition beside another one."""
    query = "SELECT educ, COUNT(*) AS n FROM people WHERE ROUND(income / 4) > 20 AND educ = 3 GROUP BY educ"
    answer = queries._table("pandas").sql(query, epsilon=1e6).value
    ((_, count),) = queries._truth().sql(query).fetchall()
    assert answer["n"].tolist() == [count]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT COUNT(*) AS n FROM people UNION ALL BY NAME SELECT COUNT(*) AS n FROM people", "BY NAME"),
        ("SELECT 'a' AS n FROM people UNION ALL SELECT COUNT(*) AS n FROM people", "different kinds"),
        ("SELECT sex, COUNT(*) FROM people GROUP BY sex LIMIT 50%", "PERCENT"),
        ("SELECT AVG(a) FROM (SELECT * FROM people) AS t(a)", "whose order a schema does not say"),
        ("SELECT AVG(a) FROM (SELECT age FROM people) AS t(a, b)", "names 2 columns, but there are 1"),
        ("SELECT AVG(a) FROM (SELECT age, educ FROM people) AS t(educ)", "Two columns of an inner SELECT"),
        ("SELECT AVG(age) FROM (SELECT *, educ AS age FROM people)", "Two columns of an inner SELECT"),
        ("WITH old AS (SELECT * FROM people WHERE age > 60) SELECT COUNT(*) FROM olds", "did you mean 'old'"),
        (
            "(WITH x AS (SELECT * FROM people) SELECT COUNT(*) FROM x) UNION ALL SELECT COUNT(*) FROM x",
            "different tables",
        ),
        ("SELECT COUNT(*) FROM regions", "is public"),
        ("SELECT COUNT(*) FROM (SELECT age FROM people) WHERE t.age > 5", "no table 't'"),
        ("SELECT COUNT(main.people.age) FROM people", "with DB"),
        ("SELECT COUNT(*) FROM people WHERE CAST(age AS DOUBLE(3)) = 1", "without a length|cannot be read"),
    ],
)
def test_the_rest_is_refused_by_name(query: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        queries._table("polars").parse(query, PUBLIC)


@pytest.mark.parametrize("kind", UNDERSTOOD, ids=lambda kind: kind.__name__)
def test_an_argument_that_nobody_reads_cannot_pass(kind: type[exp.Expression]) -> None:
    """Whatever a later parser adds to a node."""
    with pytest.raises(ValueError, match="with NEW WORD"):
        refuse_unread(exp.Paren(this=kind(new_word=exp.Literal.number(1))))


def test_a_kind_of_node_that_nobody_reads_cannot_pass() -> None:
    class Later(exp.Expression):
        arg_types = {"this": True}  # noqa: RUF012

    with pytest.raises(ValueError, match="Later is not among what is read"):
        refuse_unread(exp.Paren(this=Later(this=sqlglot.parse_one("1"))))


@pytest.mark.parametrize("container", ["polars", "pandas", "text in pandas", "JSON"])
def test_truth_values_are_read_as_files_spell_them(container: str, tmp_path) -> None:
    """``true``, ``True``, ``FALSE``: every row was lost, in silence."""
    rows = pl.DataFrame({"m": [True, False, True, True]})
    schema = dp.Schema(m=dp.Categories([False, True]))
    match container:
        case "polars":
            source = tmp_path / "rows.csv"
            rows.write_csv(source)
        case "pandas":
            source = tmp_path / "rows.csv"
            rows.to_pandas().to_csv(source)
        case "text in pandas":
            source = rows.to_pandas().astype(str)
        case "JSON":
            source = tmp_path / "rows.jsonl"
            rows.write_ndjson(source)
    answer = dp.table(source, schema=schema).group_by("m").count().release(epsilon=1e6, rng=1).value
    assert answer["count"].to_list() == [1, 3]
    plain = duckdb.sql("SELECT COUNT_IF(m) FROM rows").fetchall()
    assert plain == [(3,)]
