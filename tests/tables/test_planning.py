"""A query is planned, and what is made of its sums rehearsed, before the charge; planning grows with the query, memory
with what the rows have.
"""

from __future__ import annotations

import datetime as dt

import duckdb
import numpy as np
import polars as pl
import pytest

import discreet as dp
from discreet.encoding.duckdb import FEW, DuckDB
from discreet.encoding.engines import Engine, PlanFailed
from discreet.tables import scope
from discreet.tables.aggregates import Count

FEW_ROWS = pl.DataFrame({"c": [0, 1, 2, 3, 5] * 4, "x": [0.5, 1.0, 2.0, 3.0, 5.0] * 4})
SCHEMA = dp.Schema(c=dp.Categories([0, 1, 2, 3, 5]), x=dp.Bounded(0, 5))


class Book:
    """Counts charges."""

    charges = 0

    def charge(self, *what, **more):
        """One more."""
        self.charges += 1


def nested(column, depth):
    """Roundings of roots of roundings ..."""
    for number in range(depth):
        column = f"ROUND(SQRT({column} + {number}), 1)"
    return column


# --- the size of a plan ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [2, 8])
def test_nesting_over_categories_is_planned(depth):
    """A list of values is a join, above which DuckDB wrote every column out in terms of those below: at two levels it
    took all memory there is."""
    query = f"SELECT AVG({nested('c', depth)}) AS a FROM p"
    expected = duckdb.connect().from_arrow(FEW_ROWS.to_arrow()).query("p", query).fetchall()[0][0]
    assert dp.table(FEW_ROWS, schema=SCHEMA).sql(query, epsilon=1e6).value["a"][0] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("column", ["x", "x / x * x"])
def test_nesting_over_a_join_of_the_users_own_is_planned(column):
    """In a connection whose settings are not ours; also where each step needs a guard against what is no number."""
    connection = duckdb.connect()
    connection.register("few", FEW_ROWS.to_arrow())
    joined = connection.sql("SELECT a.c, b.x FROM few a JOIN (SELECT DISTINCT c, x FROM few) b USING (c)")
    query = f"SELECT AVG(LEAST(GREATEST({nested(column, 4)}, 0), 9)) AS a FROM p"
    expected = joined.query("p", query).fetchall()[0][0]
    assert dp.table(joined, schema=SCHEMA).sql(query, epsilon=1e6).value["a"][0] == pytest.approx(expected, abs=1e-3)


def test_steps_are_taken_side_by_side():
    """A hundred filters are planned in the three steps of one."""
    filters = [f"COUNT(*) FILTER (WHERE x > {number} / 20)" for number in range(100)]
    plans = []
    for some in (filters[:1], filters):
        rows = dp.table(FEW_ROWS, schema=SCHEMA).parse(f"SELECT {', '.join(some)} FROM p").operation(epsilon=1.0)
        plans.append(rows.rows.plan(rows.scans()[0]).count(" AS NOT MATERIALIZED"))
    assert plans[0] == plans[1]


def test_a_query_of_too_many_steps_is_refused_before_the_charge(monkeypatch):
    """With what to do."""
    monkeypatch.setattr(scope, "MOST_STEPS", 20)
    book = Book()
    with pytest.raises(PlanFailed, match=r"more than 20 steps for each row.*Nothing was read or charged"):
        dp.table(FEW_ROWS, schema=SCHEMA).sql(f"SELECT AVG({nested('x', 9)}) FROM p", epsilon=1.0, book=book)
    assert book.charges == 0


# --- the dry run -----------------------------------------------------------------------------------------------------


def test_what_an_engine_cannot_plan_is_not_charged(monkeypatch):
    """And no file or memory is blamed for it."""
    book = Book()
    table = dp.table(FEW_ROWS, schema=SCHEMA)
    monkeypatch.setattr(
        DuckDB, "stop_inlining", lambda self, frame: frame.project("*, no_function_of_this_name(1) AS n")
    )
    with pytest.raises(PlanFailed, match=r"nothing was read or charged\. The reason is the query"):
        table.count().release(epsilon=1.0, book=book)
    assert book.charges == 0


def test_what_is_made_of_sums_is_rehearsed(monkeypatch):
    """A failure of our own is found on no rows, and the noise of the rehearsal is not the user's."""
    table = dp.table(FEW_ROWS, schema=SCHEMA).group_by("c").count()
    first, again = (table.release(epsilon=1.0, rng=5).value["count"].to_list() for _ in range(2))
    assert first == again
    book = Book()
    monkeypatch.setattr(Count, "estimate", lambda *numbers: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        table.release(epsilon=1.0, book=book)
    assert book.charges == 0


@pytest.mark.parametrize("epsilon", [1.0, 1500.0, 1e9])
@pytest.mark.parametrize("keys", [("c",), ("who",)], ids=str)
def test_every_aggregate_has_its_errors_at_any_epsilon(epsilon, keys):
    """As a dry run against the truth asks for them: refused before the charge, or answered."""
    frame = FEW_ROWS.with_columns(who=pl.lit("a"))
    table = dp.table(frame, schema=dp.Schema(**SCHEMA, who=dp.Unlisted())).group_by(*keys)
    asked = [table.count(), table.count("x"), table.sum("x"), table.mean("x"), table.count_distinct("c")]
    asked += [table.variance("x"), table.deviation("x"), table.covariance("x", "x"), table.correlation("x", "x")]
    asked += [table.median("x"), table.quantiles("x"), table.histogram("x", 3)]
    asked += [table.count().totals([])] if keys == ("c",) else []
    answered = 0
    for query in asked:
        for more in ({}, {"delta": 1e-9}):
            book = Book()
            try:
                query.release(epsilon=epsilon, errors=True, book=book, **more)
                answered += 1
            except ValueError:
                assert book.charges == 0
    usual = len(asked) * (1 if keys == ("who",) else 2)  # private keys need a delta
    assert answered == usual if epsilon == 1.0 else answered > 8 or keys == ("who",)


# --- keys ------------------------------------------------------------------------------------------------------------

_START = dt.datetime(2022, 1, 1)
VISITS = pl.DataFrame(
    {
        "t": [_START + dt.timedelta(hours=7 * number) for number in range(3000)],
        "x": [number / 30 for number in range(3000)],
        "who": [number % 1500 for number in range(3000)],
    }
)


@pytest.mark.parametrize("key", ["CAST(t AS DATE)", "DATE_TRUNC('hour', t)", "ROUND(x, 1)", "ROUND(50 - x, 2)"])
@pytest.mark.parametrize("unit", [{}, {"unit": "who", "max_rows_per_unit": 2}], ids=["rows", "units"])
def test_computed_keys_of_thousands_of_values(key, unit):
    """Admissions of each day or hour of three years: every group that plain SQL has, and empty ones beside."""
    schema = dp.Schema(t=dp.Times("2022-01-01", "2024-12-31"), x=dp.Bounded(0, 100))
    query = f"SELECT {key} AS k, COUNT(*) AS n FROM p GROUP BY k"
    found = dp.table(VISITS, schema=schema, **unit).sql(query, epsilon=60, rng=1).value
    expected = dict(duckdb.connect().from_arrow(VISITS.to_arrow()).query("p", query).fetchall())
    held = {group: count for group, count in found.rows() if count}
    assert held == pytest.approx(expected)
    assert len(found) > 1000


@pytest.mark.parametrize("other", [None, "else"])
@pytest.mark.parametrize("unit", [{}, {"unit": "who"}], ids=["rows", "units"])
def test_declared_keys_of_thousands_of_values(other, unit):
    """A list that is looked up: before rows of a unit are chosen, otherwise after the groups are formed."""
    frame = pl.DataFrame({"k": [f"k{number % 1700}" for number in range(3400)], "who": range(3400)})
    table = dp.table(frame, schema=dp.Schema(k=dp.Categories([f"k{n}" for n in range(1500)], other=other)), **unit)
    found = dict(table.group_by("k").count().release(epsilon=60, rng=1).value.rows())
    assert len(found) == 1500 + (other is not None)
    assert {name: count for name, count in found.items() if name != "else"} == {f"k{n}": 2 for n in range(1500)}
    assert found.get("else") == (None if other is None else 400)


def by_million_keys(rows, keys):
    """The counts of a group-by, and those of plain SQL."""
    held = np.random.default_rng(1).integers(0, keys, rows)
    table = dp.table(pl.DataFrame({"k": held}), schema=dp.Schema(k=dp.Categories(range(keys))), threads=1)
    found = table.group_by("k").count().release(epsilon=60, rng=1).value
    return found["count"].to_numpy(), np.bincount(held, minlength=keys)


def test_a_hundred_thousand_public_keys():
    """In the engine, and in columns from there on."""
    found, expected = by_million_keys(10**5, 10**5)
    assert np.array_equal(found, expected)


@pytest.mark.slow(sibling="test_a_hundred_thousand_public_keys")
def test_a_million_public_keys():
    """As many as are answered at all."""
    found, expected = by_million_keys(10**7, 10**6)
    assert np.array_equal(found, expected)


# --- memory ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("texts", [False, True], ids=["packed", "wide"])
def test_a_cap_takes_memory_by_what_units_have(texts):
    """A hundred units of three rows under the largest cap there is, in 200 MB: min(x, n) would set 800 aside."""
    frame = pl.DataFrame({"who": np.repeat(np.arange(100), 3), "k": ["a", "b", "a"] * 100})
    kind = dp.Unlisted() if texts else dp.Categories(["a", "b"])
    table = dp.table(
        frame, schema=dp.Schema(k=kind), unit="who", max_rows_per_unit=999_999, memory_limit="200MB", threads=1
    )
    query = table.count_distinct("k") if texts else table.group_by("k").count()
    assert query.release(epsilon=1e9).value.rows() == ([(2,)] if texts else [("a", 200), ("b", 100)])


@pytest.mark.parametrize("keep", [1, 2, FEW])
def test_few_rows_of_a_unit_are_those_that_sorting_gives(keep):
    """The two ways in which DuckDB chooses, on rows with ties, NULL and NaN."""
    rng = np.random.default_rng(keep)
    rows = [(int(u), int(s), [None, 1.5, float("nan")][v]) for u, s, v in rng.integers(0, (4, 5, 3), (200, 3))]
    relation = duckdb.connect().from_arrow(
        pl.DataFrame(rows, schema={"u": pl.Int64, "s": pl.Int64, "v": pl.Float64}, orient="row").to_arrow()
    )
    engine = DuckDB()
    one = [
        Engine.smallest(engine, relation, "u", "s", keep),
        Engine.first_rows(engine, relation, "u", "s", ["u", "v"], keep),
    ]
    other = [engine.smallest(relation, "u", "s", keep), engine.first_rows(relation, "u", "s", ["u", "v"], keep)]
    for sorted_, quick in zip(one, other, strict=True):
        assert sorted(map(repr, sorted_.fetchall())) == sorted(map(repr, quick.fetchall()))
