"""The operations of ``discreet.desk``: questions about a table as a whole.

The fit of synthetic data is listed in ``synthesis.py``; the rows that are drawn from it take no seed.
"""

from __future__ import annotations

from typing import Any

from discreet.desk.whole_tables import FitQuestion, MarginalsQuestion, WholeTableOperation
from discreet.schema import Bounded, Categories, Declaration, Schema
from tests.operations.contract import Case, Worst
from tests.operations.linear import spied_columns

VISITS: dict[str, list[Any]] = {
    "ward": ["north", "south", None, "north"] * 10,
    "days": [3.0, 30.0, 7.5, None] * 10,
    "who": list(range(40)),
}
FEWER = {name: values[1:] for name, values in VISITS.items()}
FACTS = Declaration(Schema(ward=Categories(["north", "south"]), days=Bounded(0, 30)), unit="who")
PURE = {"epsilon": 1.0, "delta": None, "rho": None, "noise": "auto"}
APPROXIMATE = PURE | {"delta": 1e-6}


def counts(value: Any) -> Any:
    return value[0]["count"].to_numpy()


def coefficients(value: Any) -> Any:
    return value[0]["coefficient"].to_numpy()


def rows_and_text(value: Any) -> tuple[Any, Any]:
    frame, text = value
    return frame.to_dict(as_series=False), text


OPERATIONS = [
    Case(
        "WholeTableOperation, marginals",
        lambda: WholeTableOperation(MarginalsQuestion((("ward",),)), FACTS, PURE),
        VISITS,
        FEWER,
        spy=spied_columns,
        sized=True,
        result=rows_and_text,
        worst=Worst(read=counts),
    ),
    Case(
        "WholeTableOperation, fit",
        lambda: WholeTableOperation(FitQuestion("days"), FACTS, APPROXIMATE),
        VISITS,
        FEWER,
        spy=spied_columns,
        sized=True,
        result=rows_and_text,
        worst=Worst(trials=400, read=coefficients),
    ),
]
