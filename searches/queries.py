"""Random SELECTs against plain DuckDB: ``python -m searches queries``.

At an epsilon of a million every query is answered as plain DuckDB answers it, in all that is seen (rows, their order,
names, kinds of values, what is missing), or refused in words before the charge; and nothing fails after the charge.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections import Counter
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import discreet as dp
from discreet.errors import DiscreetError
from searches import _cases
from searches._queries import Query, draw_query
from searches._query_answers import difference, plain, unlike_kinds
from searches._query_rows import PUBLIC, ROWS, SCHEMA

CONTAINERS = ("polars", "pandas", "Arrow", "Parquet", "CSV")


def main(size: int | None = None, seed: int = 1) -> None:
    """Try ``size`` queries, 10^4 by default; raise at the first that is answered wrongly, or fails when paid."""
    warnings.simplefilter("ignore")
    tried = Counter[str]()
    for number in range(10_000 if size is None else size):
        case = draw_case(seed, number)
        with _cases.saving("queries", case):
            tried[retry(case)] += 1
        if not tried.total() % 250:
            print(f"queries: {_counts(tried)}; {time.process_time():.0f} s of processor time", flush=True)
    print(f"queries: {_counts(tried)}; none answered otherwise than by DuckDB, none failed when paid")


def _counts(tried: Counter[str]) -> str:
    return ", ".join(f"{number} {what}" for what, number in sorted(tried.items()))


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
        relation = _truth().sql(query.plain)
        expected, types = relation.fetchall(), relation.types
    except duckdb.Error as error:
        expected, types = error, []
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
        tuple(map(plain, row)) for row in (value.itertuples(index=False) if container == "pandas" else value.rows())
    ]
    wrong = difference(query, names, rows, [tuple(map(plain, row)) for row in expected])
    if wrong := wrong or unlike_kinds(value, types):
        raise AssertionError(f"{wrong}: {query.asked}\nours {rows[:6]}\nDuckDB {expected[:6]}")
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
    connection.execute("SET ieee_floating_point_ops = false")  # a quotient by zero is missing, as in tables
    connection.execute("SET error_on_division_by_zero = false")
    connection.register("people", ROWS.to_arrow())
    for name, frame in PUBLIC.items():
        connection.register(name, frame.to_arrow())
    return connection
