r"""What intervals of a regression know of its model: residuals, curvatures, and what bounds them.

A model of the mean of y given a score η = x·w, of which the score equation Σ s²(μ(η) - y)x = 0 is solved. One record's
residual is at most ``reach`` and its curvature μ'(η) at most ``bend``; both may depend on released weights.

========== ================== =================== ==================== ============
family     residual           at most             curvature            at most
========== ================== =================== ==================== ============
squares    m - y, m cut to ±1 1 + min(1, max|m|)  1                    1
logistic   p - y              1                   p(1 - p)             1/4
Poisson    t·(μe - y)         the highest count   t·μe                 highest count
========== ================== =================== ==================== ============

Poisson counts have an exposure e ≤ 1, and a record whose expected count at full exposure is beyond the highest has the
weight t, which brings it there: again a function of the features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import expit

from discreet.linear.inference_parts import Array

__all__ = ["Bounds", "Family", "Poisson", "Shares", "binomial", "squares"]


class Shares(NamedTuple):
    """Parts of the budget, in 1/σ²: the second moment, the steps of the start, each with its number, and the last
    step's gradient, Hessian and sandwich (none: the model's own variance).
    """

    moments: float
    start: float
    steps: int
    gradient: float
    hessian: float
    sandwich: float


class Bounds(NamedTuple):
    """What one record's residual and curvature cannot exceed."""

    reach: float
    bend: float


class Family(Protocol):
    """A model of means."""

    @property
    def shares(self) -> Shares:
        """How the budget is divided."""
        ...

    @property
    def changes_slope(self) -> bool:
        """Whether the curvature depends on the weights: then a long step cannot be trusted."""
        ...

    def bounds(self, largest: float) -> Bounds:
        """For scores of at most this size."""
        ...

    def terms(self, scores: Array, targets: Array) -> tuple[Array, Array]:
        """Residuals and curvatures, one for each record."""
        ...


@dataclass(frozen=True, slots=True)
class _Squares:
    """Targets in [-1, 1], whatever the variances of their errors."""

    shares = Shares(moments=0.1, start=0.1, steps=1, gradient=0.5, hessian=0.15, sandwich=0.15)
    changes_slope = False

    def bounds(self, largest: float) -> Bounds:
        return Bounds(1 + min(1.0, largest), 1.0)

    def terms(self, scores: Array, targets: Array) -> tuple[Array, Array]:
        return np.clip(scores, -1, 1) - targets, np.ones(len(scores))


@dataclass(frozen=True, slots=True)
class _Binomial:
    """Two classes, 1 and any other."""

    shares = Shares(moments=0.08, start=0.3, steps=3, gradient=0.45, hessian=0.17, sandwich=0.0)
    changes_slope = True

    def bounds(self, largest: float) -> Bounds:
        return Bounds(1.0, 0.25)

    def terms(self, scores: Array, targets: Array) -> tuple[Array, Array]:
        return expit(scores) - (targets == 1), expit(scores) * expit(-scores)


@dataclass(frozen=True, slots=True)
class Poisson:
    """Counts up to ``highest``; targets are rows of a count and an exposure."""

    highest: float

    shares = Shares(moments=0.08, start=0.3, steps=3, gradient=0.4, hessian=0.12, sandwich=0.1)
    changes_slope = True

    def bounds(self, largest: float) -> Bounds:
        return Bounds(self.highest, self.highest)

    def terms(self, scores: Array, targets: Array) -> tuple[Array, Array]:
        cap = math.log(self.highest)
        weight = np.exp(np.minimum(cap - scores, 0.0))  # brings the mean at full exposure to the highest count
        mean = np.exp(np.minimum(scores, cap)) * targets[:, 1]  # weight · mean
        return mean - weight * targets[:, 0], mean


squares, binomial = _Squares(), _Binomial()
