"""Differentially private learning with one account.

Every operation states, before it reads data, an event that says what it costs; accountants turn events into
certified guarantees; one ledger adds them up and refuses to overspend.

>>> import discreet as dp
>>> step = dp.events.PoissonSampled(rate=0.01, event=dp.events.Gaussian(noise_multiplier=4.0))
>>> round(dp.epsilon(step * 10_000, delta=1e-5), 4)
0.9469

Decision 2.
"""

from __future__ import annotations

import importlib
from pkgutil import iter_modules
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
from discreet.schema import Bounded, Categories, Dates, Schema, Times, Unlisted, read_schema

if TYPE_CHECKING:  # the rooms that are there, and those to come, which a type checker passes over until they are
    from discreet import (  # type: ignore[attr-defined, unused-ignore]
        accounting,
        auditing,
        datasets,
        desk,
        encoding,
        estimators,
        features,
        inference,
        ledger,
        linear,
        mechanisms,
        pate,
        random,
        reporting,
        statistics,
        synthesis,
        tables,
        training,
        tuning,
        workloads,
    )
    from discreet.accounting import Guarantee, calibrate, delta, epsilon, epsilon_bounds, guarantee
    from discreet.ledger import Book, Ledger
    from discreet.reporting import report
    from discreet.tables.table import table

__version__ = "0.1.0"

# Each package beside this file is a room, and an attribute by being there. numpy, scipy and numba load when a room, or
# a name that one of them lends, is first used, not before.
_ROOMS = frozenset(found.name for found in iter_modules(__path__) if found.ispkg and found.name != "cli")
_LAZY = {
    "Book": "ledger",
    "Guarantee": "accounting",
    "Ledger": "ledger",
    "calibrate": "accounting",
    "delta": "accounting",
    "epsilon": "accounting",
    "epsilon_bounds": "accounting",
    "guarantee": "accounting",
    "report": "reporting",
    "table": "tables",
}

__all__ = [
    "Adjacency",
    "Book",
    "Bounded",
    "BudgetExceeded",
    "Categories",
    "Dates",
    "DiscreetError",
    "Event",
    "Guarantee",
    "Ledger",
    "MissingExtra",
    "NotCertified",
    "Release",
    "Schema",
    "Times",
    "UnitMismatch",
    "Unlisted",
    "UnsupportedAdjacency",
    "UnsupportedEvent",
    "accounting",
    "auditing",
    "calibrate",
    "datasets",
    "delta",
    "desk",
    "encoding",
    "epsilon",
    "epsilon_bounds",
    "estimators",
    "events",
    "features",
    "guarantee",
    "inference",
    "ledger",
    "linear",
    "mechanisms",
    "pate",
    "random",
    "read_schema",
    "report",
    "reporting",
    "statistics",
    "synthesis",
    "table",
    "tables",
    "training",
    "tuning",
    "workloads",
]
# A room to come has its place above for type checkers; at run time its name appears with its package.
__all__[:] = [name for name in __all__ if name in globals() or name in _LAZY or name in _ROOMS]


def __getattr__(name: str) -> Any:
    if name not in _LAZY and name not in _ROOMS:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    room = importlib.import_module(f"discreet.{_LAZY.get(name, name)}")
    value = globals()[name] = getattr(room, name) if name in _LAZY else room
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
