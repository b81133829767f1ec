"""Facts of selections and of reports that each record makes for itself."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from discreet import events as ev
from discreet.accounting.facts import LARGEST, Facts, register, scale_parameter, within
from discreet.accounting.neighbours import restate
from discreet.accounting.outward import product
from discreet.accounting.parts import Resolved
from discreet.accounting.pld.atoms import Atoms
from discreet.accounting.pld.bounded_range import BoundedRange
from discreet.accounting.pld.pairs import Pair
from discreet.adjacency import Adjacency

__all__ = ["epsilon_itself", "epsilon_over_one"]

_MANY = 10**15


def epsilon_itself(event: Any, adjacency: Adjacency) -> float:
    """The pure epsilon of an event that states it."""
    epsilon: float = event.epsilon
    return epsilon


def epsilon_over_one(event: Any, adjacency: Adjacency) -> tuple[float, float]:
    """The same as a quotient."""
    return event.epsilon, 1


def _report(epsilon: float, categories: int) -> Pair:
    """One report, of a record that is replaced: the truth of one, the truth of the other, or neither."""
    lie = math.exp(-epsilon)  # relative to the truth
    others = min(categories - 2, _MANY)  # more of them lose less
    masses = np.array([lie, others * lie, 1.0])
    losses = np.array([-epsilon, 0.0, epsilon])
    keep = np.array([True, others > 0, True])  # what rounds to zero under one law does not under the other
    return Atoms(losses[keep], (masses / masses.sum())[keep], mirrored=True)


register(
    ev.Exponential,
    Facts(  # bounded range: Cesar and Rogers (2021) for rho
        pure=epsilon_itself,
        quotient=epsilon_over_one,
        rho=lambda event, adjacency: product(event.epsilon, event.epsilon, 0.125),
        pair=lambda event, adjacency: within(event.epsilon, LARGEST, BoundedRange),
        enlarged=lambda event, k: scale_parameter(event, "epsilon", k),
        envelope=True,
    ),
)


def _reported(event: ev.RandomizedResponse, count: int, wanted: Adjacency, group: int) -> Resolved:
    """Truth has these odds against any other category, whatever a blank record reports: replacing one is one change."""
    return restate(replace(event, adjacency=wanted) if wanted is Adjacency.REPLACE else event, count, wanted, group)


register(
    ev.RandomizedResponse,
    Facts(
        restated=_reported,
        pure=epsilon_itself,
        quotient=epsilon_over_one,
        pair=lambda event, adjacency: within(
            event.epsilon, LARGEST, lambda epsilon: _report(epsilon, event.categories)
        ),
        enlarged=lambda event, k: scale_parameter(
            ev.PureDP(epsilon=event.epsilon, adjacency=event.adjacency), "epsilon", k
        ),
    ),
)
