"""PATE: teachers learn from disjoint parts of private records, a student from their noisy votes on public ones.

``Teachers`` vote; an aggregator (``LNMax``, ``GNMax``, ``ConfidentGNMax``, ``InteractiveGNMax``) is the operation that
shows the winner; ``PATEClassifier`` does both and trains the student. ``PATEGAN`` and ``GPATE`` train a generator of
synthetic records instead. The teachers are never shown and never kept.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from discreet.pate.aggregation import Aggregator, GNMax, LNMax, VoteAnswers
from discreet.pate.confident import ConfidentGNMax, InteractiveGNMax
from discreet.pate.gnmax_cost import DataDependentCost, data_dependent_cost
from discreet.pate.sanitised import CostFigure, SanitisedCost

if TYPE_CHECKING:
    from discreet.pate.classifier import PATEClassifier
    from discreet.pate.g_pate import GPATE
    from discreet.pate.pate_gan import PATEGAN
    from discreet.pate.voting import Teachers, count_votes
    from discreet.synthesis.layouts import Images

__all__ = [
    "GPATE",
    "PATEGAN",
    "Aggregator",
    "ConfidentGNMax",
    "CostFigure",
    "DataDependentCost",
    "GNMax",
    "Images",
    "InteractiveGNMax",
    "LNMax",
    "PATEClassifier",
    "SanitisedCost",
    "Teachers",
    "VoteAnswers",
    "count_votes",
    "data_dependent_cost",
]

_LAZY = {  # they need an extra
    "GPATE": "pate.g_pate",
    "Images": "synthesis.layouts",
    "PATEClassifier": "pate.classifier",
    "PATEGAN": "pate.pate_gan",
    "Teachers": "pate.voting",
    "count_votes": "pate.voting",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'discreet.pate' has no attribute {name!r}")
    return getattr(importlib.import_module(f"discreet.{_LAZY[name]}"), name)
