"""Differentially private learning with one account.

Every operation states, before it reads data, an event that says what it costs; accountants turn events into
certified guarantees; one ledger adds them up and refuses to overspend.

>>> import discreet as dp
>>> step = dp.events.PoissonSampled(rate=0.01, event=dp.events.Gaussian(noise_multiplier=4.0))
>>> round(dp.epsilon(step * 10_000, delta=1e-5), 4)
0.9469
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from discreet import events
from discreet.adjacency import Adjacency
from discreet.errors import (
    BudgetExceeded,
    DiscreetError,
    MissingExtra,
    NotCertified,
    UnitMismatch,
    UnsupportedAdjacency,
    UnsupportedEvent,
)
from discreet.events import Event
from discreet.release import Release
from discreet.schema import Bounded, Categories, Schema, Unlisted

if TYPE_CHECKING:
    from discreet import (
        accounting,
        auditing,
        datasets,
        ledger,
        linear,
        mechanisms,
        random,
        reporting,
        statistics,
        tables,
        training,
        workloads,
    )
    from discreet.accounting import Guarantee, calibrate, delta, epsilon, epsilon_bounds, guarantee
    from discreet.ledger import Book, Ledger
    from discreet.reporting import report
    from discreet.tables.table import table

__version__ = "0.1.0"

# Where each lazy name lives: numpy, scipy and numba load when one of these is first used, not before.
_LAZY = {
    "accounting": "",
    "auditing": "",
    "Book": "discreet.ledger",
    "calibrate": "discreet.accounting",
    "datasets": "",
    "delta": "discreet.accounting",
    "epsilon": "discreet.accounting",
    "epsilon_bounds": "discreet.accounting",
    "Guarantee": "discreet.accounting",
    "guarantee": "discreet.accounting",
    "ledger": "",
    "Ledger": "discreet.ledger",
    "linear": "",
    "mechanisms": "",
    "random": "",
    "report": "discreet.reporting",
    "reporting": "",
    "statistics": "",
    "table": "discreet.tables",
    "tables": "",
    "training": "",
    "workloads": "",
}

__all__ = [
    "Adjacency",
    "Book",
    "Bounded",
    "BudgetExceeded",
    "Categories",
    "DiscreetError",
    "Event",
    "Guarantee",
    "Ledger",
    "MissingExtra",
    "NotCertified",
    "Release",
    "Schema",
    "UnitMismatch",
    "Unlisted",
    "UnsupportedAdjacency",
    "UnsupportedEvent",
    "accounting",
    "auditing",
    "calibrate",
    "datasets",
    "delta",
    "epsilon",
    "epsilon_bounds",
    "events",
    "guarantee",
    "ledger",
    "linear",
    "mechanisms",
    "random",
    "report",
    "reporting",
    "statistics",
    "table",
    "tables",
    "training",
    "workloads",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    home = _LAZY[name]
    value = getattr(importlib.import_module(home), name) if home else importlib.import_module(f"discreet.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
