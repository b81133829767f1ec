"""Choosing hyper-parameters without leaking: three ways, over anything that is an operation.

``from_public`` tunes on public data and transfers; ``exponential`` chooses among models that were trained privately,
by scores of bounded sensitivity; ``select`` trains a random number of candidates and keeps the best, for little more
than one of them costs. ``PrivateSearch`` is ``select`` in scikit-learn's manner, ``search`` for
torch models.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from discreet.tuning.choices import exponential, from_public
from discreet.tuning.scores import Correct, Score, Total, squared_errors
from discreet.tuning.selection import Chosen, Selection, select
from discreet.tuning.space import candidates

if TYPE_CHECKING:
    from discreet.tuning.estimators import PrivateSearch
    from discreet.tuning.networks import search

__all__ = [
    "Chosen",
    "Correct",
    "PrivateSearch",
    "Score",
    "Selection",
    "Total",
    "candidates",
    "exponential",
    "from_public",
    "search",
    "select",
    "squared_errors",
]


def __getattr__(name: str) -> Any:
    if name == "PrivateSearch":
        from discreet.tuning.estimators import PrivateSearch  # needs scikit-learn

        return PrivateSearch
    if name == "search":
        from discreet.tuning.networks import search  # needs torch

        return search
    raise AttributeError(f"module 'discreet.tuning' has no attribute {name!r}")
