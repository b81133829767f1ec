"""The operations of ``discreet.tables``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

import discreet as dp
from discreet.encoding.duckdb import DuckDB
from discreet.tables.keys import KeySelection
from tests.operations.contract import Case, Log, SpiedMapping, Worst

ROWS = [{"who": i, "educ": 1 + i % 2, "income": float(i), "zip": "a" if i < 30 else "b"} for i in range(40)]
BOTH = [*ROWS, *({"who": 99, "educ": 1, "income": 100.0, "zip": "a"} for _ in range(2))]  # a unit with all it may have
SCHEMA = dp.Schema(educ=dp.Categories([1, 2]), income=dp.Bounded(0, 100), zip=dp.Unlisted())


class SpiedRows(list[Any]):
    """Rows of a table whose engine notes when they are read."""

    def __init__(self, inside: Any, log: Log) -> None:
        super().__init__(inside)
        self.log = log


class NotingDuckDB(DuckDB):
    """An engine that notes when it is asked for rows."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self.log = log

    def fetch(self, frame: Any, progress: Any) -> Any:
        self.log.append("read")
        return super().fetch(frame, progress)


def table(rows: list[Any], **unit: Any) -> dp.tables.Table:
    opened = dp.table(pl.DataFrame(list(rows)), schema=SCHEMA, **unit)
    if isinstance(rows, SpiedRows):
        return replace(opened, source=replace(opened.source, engine=NotingDuckDB(rows.log)))
    return opened


def shown(frame: Any) -> Any:
    return frame.to_dict(as_series=False)


COUNTS = {("a",): 90, ("b",): 1, ("c",): 30}

OPERATIONS = [
    Case(
        "KeySelection",
        lambda: KeySelection(1.0, 1e-6),
        COUNTS,
        {**COUNTS, ("c",): 29},
        spy=SpiedMapping,
        holds="values",
    ),
    Case(
        "KeySelection, a key less",
        lambda: KeySelection(1.0, 1e-6, 2, 2),
        COUNTS,
        {("a",): 89, ("c",): 30},
        spy=SpiedMapping,
        holds="values",
    ),
    Case(
        "TableOperation",
        lambda rows: table(rows).group_by("educ").mean("income").median("income").operation(epsilon=1.0),
        ROWS,
        ROWS[1:],
        bound=True,
        spy=SpiedRows,
        result=shown,
        worst=Worst(trials=100),
    ),
    Case(
        "TableOperation, by unit, private keys",
        lambda rows: table(rows, unit="who", max_rows_per_unit=2).group_by("zip").sum("income").operation(1.0, 1e-3),
        ROWS,
        ROWS[1:],
        bound=True,
        spy=SpiedRows,
        result=shown,
        worst=Worst(BOTH, ROWS, trials=100, read=lambda frame: {row[0]: row[1:] for row in frame.rows()}),
    ),
    Case(
        "TableOperation, SQL with totals and intervals",
        lambda rows: (
            table(rows)
            .parse("SELECT educ, AVG(income * 2) AS a, COUNT(*) AS n FROM t GROUP BY ROLLUP (educ) ORDER BY n")
            .operation(epsilon=1.0, errors=True)
        ),
        ROWS,
        ROWS[1:],
        bound=True,
        spy=SpiedRows,
        result=shown,
        worst=Worst(trials=100, read=lambda frame: sorted(frame["n"].to_list())),
    ),
    Case(
        "ChoosingOperation",
        lambda rows: table(rows, unit="who", max_rows_per_unit="auto").group_by("educ").sum("income").operation(1.0),
        ROWS,
        ROWS[1:],
        bound=True,
        spy=SpiedRows,
        result=shown,
        worst=Worst(BOTH, ROWS, trials=100),
    ),
    Case(
        "TableOperation, totals of units",
        lambda rows: table(rows, unit="who").sum("income", unit_bounds=(0, 50)).operation(1.0),
        ROWS,
        ROWS[1:],
        bound=True,
        spy=SpiedRows,
        result=shown,
        worst=Worst(BOTH, ROWS, trials=100),
    ),
]
