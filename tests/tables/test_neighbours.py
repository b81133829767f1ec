"""Hostile neighbours, generated: a record more of anything, in any container, changes what its cost covers and nothing
else.

Hundreds here; thousands by ``python -m searches neighbours``.
"""

from __future__ import annotations

import os
import shutil

import pytest

from discreet.auditing import ReplayError
from discreet.encoding import engines
from discreet.tables import passes
from searches._containers import CONTAINERS, one_connection, spark
from searches._neighbours import cases, check
from searches._operations import OPERATIONS

EXAMPLES = int(os.environ.get("DISCREET_EXAMPLES", "5"))  # raise it to look harder
TABLES = {name: found for name, found in CONTAINERS.items() if found[0] in ("table", "relation", "mapping")}
ARRAYS = {name: found for name, found in CONTAINERS.items() if found[0] in ("column", "rows")}


@pytest.mark.parametrize(
    ("containers", "size"), [(TABLES, 12 * EXAMPLES), (ARRAYS, 50 * EXAMPLES)], ids=["tables", "arrays"]
)
def test_neighbours_are_told_apart_by_nothing_that_was_not_paid_for(containers, size):
    """Every operation and every container is among the cases, and they answer."""
    with one_connection():
        tried = cases(size, seed=13, containers=containers)
        assert all(check(case) for case in tried)
    held = {found[0] for found in containers.values()}
    assert {case.operation.name for case in tried} == {
        operation.name for operation in OPERATIONS if held & set(operation.takes)
    }
    assert {case.container for case in tried} == set(containers)


def test_the_search_has_power(monkeypatch):
    """NaN that is asked for by one comparison, and not verified, is found in files that have statistics."""
    once = lambda self, name, spelled, truth=False: f"NULLIF(CAST({self.quote(name)} AS DOUBLE), 'NaN')"  # noqa: E731
    monkeypatch.setattr(engines.Engine, "double", once)
    monkeypatch.setattr(engines.Engine, "number", lambda self, double: double)
    monkeypatch.setattr(passes.GroupedRows, "_verify", lambda *found: None)
    files = {"parquet by polars": ("table", ("floats",), CONTAINERS["parquet by polars"][2])}
    found = [case for case in cases(2000, seed=2, containers=files) if case.operation.name == "table, filled, a row"]
    with one_connection(), pytest.raises(ReplayError, match="differs by"):
        assert all(map(check, found))


@pytest.mark.slow(sibling="test_neighbours_are_told_apart_by_nothing_that_was_not_paid_for")
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java: install a Java 17 runtime")
def test_spark_tells_no_neighbours_apart(spark_session):
    """The same generator, on Spark's frames."""
    frames = {"spark": ("relation", ("floats", "whole", "texts"), spark(spark_session))}
    for case in cases(40, seed=3, containers=frames):
        assert check(case, frames, fresh=False, reaches=("socket.connect",))  # to the engine
