"""PATE: teachers learn from disjoint parts of private records, a student from their noisy votes on public ones.

``Teachers`` vote; an aggregator (``LNMax``, ``GNMax``, ``ConfidentGNMax``, ``InteractiveGNMax``) is the operation that
shows the winner; ``PATEClassifier`` does both and trains the student. The teachers are never shown and never kept.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from discreet.pate.aggregation import Aggregator, Answers, GNMax, LNMax
from discreet.pate.confident import ConfidentGNMax, InteractiveGNMax
from discreet.pate.costs import DataDependentCost, data_dependent_cost
from discreet.pate.sanitised import CostFigure, SanitisedCost

if TYPE_CHECKING:
    from discreet.pate.classifier import PATEClassifier
    from discreet.pate.voting import Teachers, counted

__all__ = [
    "Aggregator",
    "Answers",
    "ConfidentGNMax",
    "CostFigure",
    "DataDependentCost",
    "GNMax",
    "InteractiveGNMax",
    "LNMax",
    "PATEClassifier",
    "SanitisedCost",
    "Teachers",
    "counted",
    "data_dependent_cost",
]

_LAZY = {"PATEClassifier": "classifier", "Teachers": "voting", "counted": "voting"}  # they need an extra


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'discreet.pate' has no attribute {name!r}")
    return getattr(importlib.import_module(f"discreet.pate.{_LAZY[name]}"), name)
