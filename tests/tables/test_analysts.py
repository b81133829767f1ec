"""The queries of ``analyst_queries``: answered as an engine without privacy answers them, or refused with the nearest
form; equal on every engine.
"""

from __future__ import annotations

import re
import shutil

import duckdb
import pytest

import discreet as dp
from tests.tables import analyst_queries as analysts
from tests.tables.plain_sql import wrong

PUBLIC = {"regions": analysts.regions()}
# Noise is too small to be seen. Keys and quantiles are chosen by mechanisms that take 1,024 at most.
GENEROUS = {"epsilon": 1e6, "delta": analysts.DELTA, "public": PUBLIC, "rng": 1}
CHOSEN = ("QUANTILE", "PERCENTILE", "MEDIAN", "SELECT city", "AS town")
# A row that has no declared key goes nowhere here; SQL has a group for it.
VIEW = """CREATE VIEW visits AS SELECT person_id, greatest(least(age, 120), 0)::DOUBLE AS age,
    CASE WHEN NOT isnan(income) THEN least(income, 200000) END AS income, hours,
    CASE WHEN sex IN ('f', 'm') THEN sex END AS sex, educ, region, married, city, day, "at" FROM raw"""
CONTAINERS = ("polars", "pandas", "Arrow", "Parquet", "CSV")


@pytest.fixture(scope="module")
def rows():
    return analysts.rows()


@pytest.fixture(scope="module")
def tables(rows, tmp_path_factory):
    """The same visits in every container."""
    folder = tmp_path_factory.mktemp("visits")
    rows.write_parquet(folder / "visits.parquet")
    rows.write_csv(folder / "visits.csv")
    sources = (rows, rows.to_pandas(), rows.to_arrow(), folder / "visits.parquet", folder / "visits.csv")
    opened = [dp.table(source, schema=analysts.SCHEMA, threads=1) for source in sources]
    return dict(zip(CONTAINERS, opened, strict=True))


@pytest.fixture(scope="module")
def visits(tables):
    return tables["polars"]


@pytest.fixture(scope="module")
def truth(rows):
    connection = duckdb.connect(config={"threads": 1})
    connection.register("raw", rows.to_arrow())
    connection.register("regions", analysts.regions().to_arrow())
    connection.execute(VIEW)
    return connection


def answer(query, table):
    chosen = any(word in query for word in CHOSEN)
    return table.sql(query, **GENEROUS | ({"epsilon": 1e3} if chosen else {})).value


def test_the_list_is_long_and_most_of_it_is_answered():
    assert len(set(analysts.ANSWERED)) >= 84
    assert len({*analysts.ANSWERED, *(query for query, _ in analysts.REFUSED)}) >= 99


@pytest.mark.parametrize("number", range(len(CONTAINERS)), ids=CONTAINERS)
def test_answers_are_what_an_engine_says_without_privacy(number, tables, truth):
    """Every query in one of the containers, by turns: rows, their order, names and kinds of columns. And each has a
    price before anything is read.
    """
    table = tables[CONTAINERS[number]]
    for query in analysts.ANSWERED[number :: len(CONTAINERS)]:
        told = table.parse(query, PUBLIC).explain(1.0, analysts.DELTA)
        assert dp.epsilon(told.event, delta=analysts.DELTA) <= 1.0 + 1e-9
        assert wrong(query, answer(query, table), truth) == "", query


@pytest.mark.slow(sibling="test_answers_are_what_an_engine_says_without_privacy")
@pytest.mark.parametrize("container", CONTAINERS)
def test_all_answers_are_what_an_engine_says_without_privacy(container, tables, truth):
    for query in analysts.ANSWERED:
        assert wrong(query, answer(query, tables[container]), truth) == "", query


@pytest.mark.parametrize(
    ("query", "spoil", "said"),
    [
        ("SELECT region, COUNT(*) AS n FROM visits GROUP BY region ORDER BY n DESC", lambda f: f.reverse(), "belongs"),
        ("SELECT region, COUNT(*) AS n FROM visits GROUP BY region LIMIT 2", lambda f: f.head(1), "1 rows"),
        ("SELECT region, COUNT(*) AS n FROM visits GROUP BY region", lambda f: f.rename({"n": "m"}), "are called"),
        ("SELECT region, COUNT(*) AS n FROM visits GROUP BY region", lambda f: f.select("n", "region"), "are called"),
        ("SELECT region, COUNT(*) AS n FROM visits GROUP BY region", lambda f: f.with_columns(n=f["n"] + 1), "belongs"),
        ("SELECT region, AVG(age) AS n FROM visits GROUP BY region", lambda f: f.with_columns(n=f["n"] + 1), "belongs"),
        (
            "SELECT educ, COUNT(*) AS n FROM visits GROUP BY educ",
            lambda f: f.with_columns(educ=f["educ"].cast(str)),
            "belongs",
        ),
        (
            "SELECT educ, COUNT(*) AS n FROM visits GROUP BY educ",
            lambda f: f.with_columns(educ=f["educ"].cast(float)),
            "columns hold",
        ),
    ],
)
def test_what_differs_is_noticed(query, spoil, said, visits, truth):
    """Order, rows, names, the order of columns, counts that are off by one, means, kinds, types."""
    assert wrong(query, answer(query, visits), truth) == ""
    assert said in wrong(query, spoil(answer(query, visits)), truth)


@pytest.mark.parametrize(("query", "nearest"), analysts.REFUSED)
def test_the_rest_is_refused_with_the_nearest_form(query, nearest, visits):
    """By a ValueError, before anything is charged."""
    with pytest.raises(ValueError, match=re.escape(nearest)):
        visits.parse(query, PUBLIC)


def test_a_relation_says_the_same(rows, truth):
    table = dp.table(duckdb.from_arrow(rows.to_arrow()), schema=analysts.SCHEMA)
    for query in (analysts.ANSWERED[place] for place in (1, 5, 10, 15)):
        assert wrong(query, answer(query, table), truth) == "", query


@pytest.mark.slow(sibling="test_a_relation_says_the_same")
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java: install a Java 17 runtime")
def test_spark_says_the_same(spark_session):
    """Under one seed, to the last bit: all of the list. Each is planned in about a second, parts of dates too."""
    few = analysts.rows(300)
    types = (
        "person_id long, age long, income double, hours double, sex string, educ long, region string, married boolean, "
        "city string, day date, at timestamp_ntz"
    )
    here = dp.table(few, schema=analysts.SCHEMA, threads=1)
    there = dp.table(spark_session.createDataFrame(few.rows(), schema=types), schema=analysts.SCHEMA)
    for query in analysts.ANSWERED:
        options = {"epsilon": 20.0, "delta": analysts.DELTA, "public": PUBLIC, "rng": 1}
        assert here.sql(query, **options).value.equals(there.sql(query, **options).value), query
