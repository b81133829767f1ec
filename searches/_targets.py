"""What reads text from strangers. Each function takes any text; what it raises is a violation:
clean errors it expects.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from discreet import Bounded, Categories, Schema
from discreet.errors import DiscreetError
from discreet.events import Event

CLEAN = (DiscreetError, ValueError)


def event_text(text: str) -> None:
    """An event written as an expression; what is read says the same again as JSON."""
    from discreet.cli.parse import mentions, parse

    with contextlib.suppress(*CLEAN):
        event = parse(text, {"x": 2.0})
        assert Event.from_json(event.to_json()) == event
        mentions(text, "x")


def event_json(text: str) -> None:
    """An event as JSON, from a file."""
    from discreet.cli.options import decode

    with contextlib.suppress(*CLEAN):
        event = decode(text)
        assert Event.from_json(event.to_json()) == event


def schema_toml(text: str) -> None:
    """A schema file."""
    from discreet.schema import parse_schema

    with contextlib.suppress(*CLEAN):
        assert parse_schema(text).schema


def sql(text: str) -> None:
    """A SELECT, as far as its price."""
    with contextlib.suppress(*CLEAN):
        asked = _table().parse(text)
        assert isinstance(asked.operation(epsilon=1.0, delta=1e-6).event, Event)


def ledger_url(text: str) -> None:
    """Where a ledger is kept; nothing is opened."""
    from discreet.ledger import ledger, store

    parsed: Callable[[str], Any] = store.Address.parse if hasattr(store, "Address") else store._url
    with contextlib.suppress(*CLEAN):
        parsed(ledger._address(text))


@cache
def _table() -> Any:
    import pandas as pd

    from discreet.tables import table

    schema = Schema(a=Bounded(0, 10), b=Categories(["x", "y"]), c=Categories(range(5)))
    return table(pd.DataFrame({"a": [1.0], "b": ["x"], "c": [1]}), schema=schema)


TARGETS: Mapping[str, Callable[[str], None]] = {
    target.__name__: target for target in (event_text, event_json, schema_toml, sql, ledger_url)
}

SEEDS: Mapping[str, tuple[str, ...]] = {
    "event_text": (
        "poisson(0.01, gaussian(4)) * 1e4 + laplace(2)",
        "rdp([2, 3], (0.1, 0.2)) | pure(1/3)",
        "truncated_poisson(0.1, 20, 100, gaussian(x))",
        "gaussian(4, adjacency='replace') * 10000000000",
        "balls_in_bins(10, discrete_gaussian(3, sensitivity=2)) - -1",
        "'a' * 4000000000",
    ),
    "event_json": (
        '{"type":"PoissonSampled","rate":0.1,"event":{"type":"Gaussian","noise_multiplier":4.0}}',
        '{"type":"Composed","events":[{"type":"RDP","orders":[2,3],"epsilons":[0.1,1e3]},{"type":"NonPrivate"}]}',
        '{"type":"Repeated","count":10000000000,"event":{"type":"ApproxDP","epsilon":1,"delta":1e-6,"adjacency":"replace"}}',
    ),
    "schema_toml": (
        'unit = "id"\nmax_rows_per_unit = 2\n[columns]\na = { bounds = [0, 1], missing = 0 }\n',
        '[columns]\nb = { categories = ["x", "y"], other = "z" }\nc = { range = [1, 1000000000] }\n',
        "max_groups_per_unit = 1\n[columns.d]\nunlisted = true\n[columns.e]\nbounds = [-1e999, 1979-05-27]\n",
    ),
    "sql": (
        "SELECT b, AVG(a) AS m, COUNT(*) FROM t WHERE a BETWEEN 1 AND 2 OR NOT c IN (1, 2) GROUP BY b",
        "SELECT COUNT(DISTINCT b), MEDIAN(a), QUANTILE_CONT(a, 0.9) FROM t WHERE b = 'x' AND a IS NOT NULL",
        "SELECT VAR_POP(a), SUM(c) FROM t WHERE LN(a) < SQRT(ABS(-a)) / FLOOR(2 * c) - 1e300",
        "WITH x AS (SELECT 1) SELECT * FROM x JOIN y USING (z) HAVING 1 ORDER BY 1 LIMIT 3",
        "SELECT SUM(CASE WHEN a > 1 THEN 1 END) OVER (PARTITION BY b) FROM t; DROP TABLE t",
    ),
    "ledger_url": (
        "sqlite:///budget.db",
        "sqlite://",
        "postgresql+psycopg://user:p%40ss@host:5432/db?sslmode=require",
        "postgresql:///db?host=/tmp&port=1",
        "budget.db",
        "sqlite:///file:x?mode=memory&uri=true",
    ),
}
