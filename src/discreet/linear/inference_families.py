r"""What intervals of a regression know of its model: residuals, curvatures, weights, and what bounds them.

A model of the mean μ(η) of y given a score η = x·w; solved is Σ s²t·(μ - y)x = 0. The weight t is a function of the
score alone, hence of features and released weights: it makes what a record can do the same everywhere, and biases
nothing (see ``inference_whitening`` for s).

========== ============================= =============== ======== ==========
family     weight t                      t·residual      at most  t·μ' ≤
========== ============================= =============== ======== ==========
squares    1/(1 + |η|)                   t·(η - y)       1        1
logistic   1                             p - y           1        1/4
Poisson    min(1, cap/μ)                 t·(μe - y)      highest  cap
========== ============================= =============== ======== ==========

Where noise is next to nothing (``quiet``) a residual of least squares may be 2 before it has a weight, and they are the
ordinary ones. Poisson counts have an exposure e ≤ 1 and a cap of at most ``highest``, which it is where noise is quiet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import expit

from discreet.linear.inference_parts import Array

__all__ = ["Family", "Limits", "PoissonCounts", "Shares", "binomial", "squares"]


class Shares(NamedTuple):
    """Parts of the budget, in 1/σ²: the second moment, each step of the start, and the last step's gradient, Hessian
    and sandwich (none: the model's own variance).
    """

    moments: float
    start: tuple[float, ...]
    gradient: float
    hessian: float
    sandwich: float


class Limits(NamedTuple):
    """What one record's weighted residual and curvature cannot exceed."""

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

    @property
    def quiet(self) -> float:
        """C² is at least this part of n/z²: so little noise that weights would cost more than they save."""
        ...

    @property
    def spread(self) -> float:
        """B²/C²."""
        ...

    def bounds(self, quiet: bool) -> Limits:
        """What holds for every record."""
        ...

    def terms(self, scores: Array, targets: Array, quiet: bool) -> tuple[Array, Array]:
        """Weighted residuals and curvatures, one for each record."""
        ...


@dataclass(frozen=True, slots=True)
class _Squares:
    """Targets in [-1, 1], whatever the variances of their errors."""

    shares = Shares(moments=0.1, start=(0.1,), gradient=0.5, hessian=0.15, sandwich=0.15)
    changes_slope = False
    spread = 1.5
    quiet = 1e-4  # residuals are often a tenth of the target's bounds or less

    def bounds(self, quiet: bool) -> Limits:
        return Limits(2.0 if quiet else 1.0, 1.0)

    def terms(self, scores: Array, targets: Array, quiet: bool) -> tuple[Array, Array]:
        weights = np.minimum(self.bounds(quiet).reach / (1 + np.abs(scores)), 1.0)
        return weights * (scores - targets), weights


@dataclass(frozen=True, slots=True)
class _Binomial:
    """Two classes, 1 and any other."""

    shares = Shares(moments=0.1, start=(0.02, 0.02, 0.03, 0.08, 0.2), gradient=0.35, hessian=0.2, sandwich=0.0)
    changes_slope = True
    spread = 1.0
    quiet = 0.01

    def bounds(self, quiet: bool) -> Limits:
        return Limits(1.0, 0.25)

    def terms(self, scores: Array, targets: Array, quiet: bool) -> tuple[Array, Array]:
        return expit(scores) - (targets == 1), expit(scores) * expit(-scores)


@dataclass(frozen=True, slots=True)
class PoissonCounts:
    """Counts up to ``highest``; targets are rows of a count and an exposure; a mean beyond ``cap`` has a weight."""

    highest: float
    cap: float

    shares = Shares(moments=0.1, start=(0.02, 0.02, 0.03, 0.08, 0.15), gradient=0.35, hessian=0.15, sandwich=0.1)
    changes_slope = True
    spread = 1.0
    quiet = 0.001

    def bounds(self, quiet: bool) -> Limits:
        """What holds for every record."""
        return Limits(self.highest, self.highest if quiet else self.cap)

    def terms(self, scores: Array, targets: Array, quiet: bool) -> tuple[Array, Array]:
        """Weighted residuals and curvatures, one for each record."""
        cap = math.log(self.bounds(quiet).bend)
        weights = np.exp(np.minimum(cap - scores, 0.0))  # brings the mean at full exposure to the cap
        means = np.exp(np.minimum(scores, cap)) * targets[:, 1]  # weighted already
        return means - weights * targets[:, 0], means


squares, binomial = _Squares(), _Binomial()
