"""Random SELECTs against plain DuckDB: ``python -m searches queries``.

At an epsilon of a million every query is answered as plain DuckDB answers it, in all that is seen (rows, their order,
names, kinds of values, what is missing), or refused in words before the charge; and nothing fails after the charge.
"""

from __future__ import annotations

import datetime as dt
import decimal
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd

import discreet as dp
from discreet.errors import DiscreetError
from searches import _cases
from searches._queries import PUBLIC, ROWS, SCHEMA, Query, draw_query

CONTAINERS = ("polars", "pandas", "Arrow", "Parquet", "CSV")


def main(size: int | None = None, seed: int = 1) -> None:
    """Try ``size`` queries, 10^4 by default; raise at the first that is answered wrongly, or fails when paid."""
    warnings.simplefilter("ignore")
    tried = Counter[str]()
    for number in range(10_000 if size is None else size):
        case = draw_case(seed, number)
        with _cases.saving("queries", case):
            tried[retry(case)] += 1
    print(f"queries: {dict(sorted(tried.items()))}; none answered otherwise than by DuckDB, none failed when paid")


def draw_case(seed: int, number: int) -> dict[str, Any]:
    """The query with this number, and the container it is asked of."""
    rng = np.random.default_rng((seed, number))
    return asdict(draw_query(rng)) | {"container": CONTAINERS[number % len(CONTAINERS)]}


def retry(case: dict[str, Any]) -> str:
    """What became of a case; an ``AssertionError`` if the answer differs from DuckDB's or comes to nothing."""
    fields = {name: tuple(value) if isinstance(value, list) else value for name, value in case.items()}
    container = fields.pop("container")
    query = Query(**fields)
    try:
        expected = _truth().sql(query.plain).fetchall()
    except duckdb.Error as error:
        expected = error
    book = _Book()
    budget = {"epsilon": 1e3, "delta": 1e-6} if query.private else {"epsilon": 1e6}
    try:
        value = _table(container).sql(query.asked, **budget, public=PUBLIC, book=book).value
    except (ValueError, DiscreetError) as refusal:
        if book.charged:
            raise AssertionError(
                f"charged, then failed: {query.asked}\n{type(refusal).__name__}: {refusal}"
            ) from refusal
        return "refused" if not isinstance(expected, duckdb.Error) else "refused by both"
    except Exception as error:
        when = "after" if book.charged else "before"
        raise AssertionError(f"an error {when} the charge: {query.asked}\n{type(error).__name__}: {error}") from error
    if isinstance(expected, duckdb.Error):
        return "answered, where DuckDB has another mind"
    names = [str(name) for name in value.columns]
    rows = [
        tuple(map(_plain, row)) for row in (value.itertuples(index=False) if container == "pandas" else value.rows())
    ]
    if difference := _difference(query, names, rows, [tuple(map(_plain, row)) for row in expected]):
        raise AssertionError(f"{difference}: {query.asked}\nours {rows[:6]}\nDuckDB {expected[:6]}")
    return "answered"


class _Book:
    """Notes that it was charged."""

    charged = False

    def charge(self, *_: Any, **__: Any) -> None:
        self.charged = True


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


@cache
def _table(container: str) -> Any:
    folder = Path(_folder().name)
    if container == "Parquet":
        ROWS.write_parquet(folder / "rows.parquet")
    if container == "CSV":
        ROWS.write_csv(folder / "rows.csv")
    source = {
        "polars": lambda: ROWS,
        "pandas": ROWS.to_pandas,
        "Arrow": ROWS.to_arrow,
        "Parquet": lambda: folder / "rows.parquet",
        "CSV": lambda: folder / "rows.csv",
    }[container]()
    return dp.table(source, schema=SCHEMA, threads=1)


@cache
def _truth() -> Any:
    connection = duckdb.connect(config={"threads": 1})
    connection.register("people", ROWS.to_arrow())
    for name, frame in PUBLIC.items():
        connection.register(name, frame.to_arrow())
    return connection


# --- what is compared ------------------------------------------------------------------------------------------------


def _difference(query: Query, names: list[str], rows: list[Any], expected: list[Any]) -> str:
    """In what the answer differs, or nothing."""
    if len(names) != query.shown or any(w is not None and w != n for n, w in zip(names, query.names, strict=True)):
        return f"columns are called {names}, not {query.names}"
    if query.private:  # small groups are not shown, and there is more noise
        loud = [100 * most for most in query.wide]
        known = [row for row in rows if any(_alike(row, other[: query.shown], query.loose, loud) for other in expected)]
        return "" if known == rows else "a row that DuckDB does not have"
    if query.empty_groups:
        return _as_sets(query, rows, expected)
    last = None if query.limit is None else query.offset + query.limit
    wanted = expected[query.offset : last]
    if len(rows) != len(wanted):
        return f"{len(rows)} rows, not {len(wanted)}"
    left = list(expected)
    for row, place in zip(rows, wanted, strict=True):
        match = next((other for other in left if _fits(query, row, place, other)), None)
        if match is None:
            return f"no row {row} belongs here, where DuckDB has {place}"
        left.remove(match)
    return ""


def _fits(query: Query, row: Sequence[Any], place: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether a row is another of DuckDB's, which may stand in this place: what they are sorted by is equal, up to the
    first key that noise decides."""
    if not _alike(row, other[: query.shown], query.loose, query.wide):
        return False
    keys = zip(place[query.shown :], other[query.shown :], query.exact_order, strict=True)
    for one, two, exact in keys:
        if not exact:  # of no rows there is noise alone
            return one is None or two is None or _near(one, two, True, 4.0)
        if one != two:
            return False
    return True


def _as_sets(query: Query, rows: list[Any], expected: list[Any]) -> str:
    """Every row of DuckDB's, but those without a key, is here; others here are groups of no rows."""
    left = list(rows)
    for other in expected:
        match = next((row for row in left if _alike(row, other[: query.shown], query.loose, query.wide)), None)
        if match is not None:
            left.remove(match)
        elif None not in other[: query.shown]:
            return f"there is no row {other[: query.shown]}"
    return ""


def _alike(row: Sequence[Any], other: Sequence[Any], loose: Sequence[bool], wide: Sequence[float]) -> bool:
    return all(map(_near, row, other, loose, wide))


def _near(value: Any, truth: Any, loose: bool, wide: float) -> bool:
    if truth is None or value is None:
        return (truth is None) if loose else (value is truth)
    if isinstance(value, bool) or isinstance(truth, bool):
        return value is truth
    if isinstance(value, float) and isinstance(truth, float):
        return abs(value - truth) <= wide + 3e-3 * abs(truth) or (truth != truth and loose)
    return type(value) is type(truth) and bool(value == truth)


def _plain(value: Any) -> Any:
    """Numbers as floats, points in time as such, what is missing as None: kinds that a person tells apart."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NaT or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float, decimal.Decimal)):
        return float(value)
    if isinstance(value, dt.datetime):
        return dt.datetime(*value.timetuple()[:6])
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day)
    return value
