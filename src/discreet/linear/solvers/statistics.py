r"""Noisy sufficient statistics for the squared loss: one release, from which every penalty is solved for free.

With rows x of norm at most R and targets in [-1, 1], H = Σ xxᵀ and v = Σ x·y are all a quadratic objective needs. The
packed upper triangle of xxᵀ (off-diagonal entries times √2) has norm ‖x‖² ≤ R², and xy has norm at most R; v is
scaled by R so that the two share a sensitivity of √2·R². One Gaussian release covers them. Then

.. math:: \min_w \tfrac12 w^\top (\hat H + \lambda I) w - \hat v^\top w + \alpha\|w\|_1

is post-processing, for any Λ and α. λ is the larger of Λ and what lifts Ĥ above its own noise: the noise has norm about
2σ√p, so λ ≥ 2σ√p - λ_min(Ĥ), which is read off Ĥ itself. The count is in the intercept's corner of H; no size is
needed.

Guarantee: the event. The sums are exact: records' contributions are rounded to a grid and added as integers
(``kernels``).

References: Vu and Slavkovic (2009); Dwork, Talwar, Thakurta and Zhang (2014); the choice of λ follows Wang (2018),
AdaSSP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.linear import kernels
from discreet.linear.problem import Problem, Solution
from discreet.linear.rows import Records

__all__ = ["SufficientStatistics"]

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SufficientStatistics:
    """Σ xxᵀ and Σ xy with noise, and the penalised quadratic they define."""

    problem: Problem

    @property
    def sensitivity(self) -> float:
        """Of the packed matrix and the scaled vector, together."""
        return math.sqrt(2) * self.problem.square * (1 + 2.0**-20)

    @property
    def _entries(self) -> int:
        p = self.problem.features
        return p * (p + 1) // 2 + p

    @cached_property
    def mechanism(self) -> Any:
        """The noise."""
        problem = self.problem
        if problem.delta > 0:
            return problem.gaussian(self.sensitivity, problem.rho(), self._entries)
        return problem.laplace(
            self.sensitivity * math.sqrt(self._entries) * (1 + 2.0**-40), problem.epsilon, self._entries
        )

    @property
    def event(self) -> events.Event:
        """One release."""
        event: events.Event = self.mechanism.event
        return event

    @property
    def noise(self) -> float:
        """The standard deviation of one packed entry."""
        mechanism = self.mechanism
        return float(mechanism.sigma if self.problem.delta > 0 else math.sqrt(2) * mechanism.scale)

    def solve(self, records: Records, rng: random.Rng) -> Solution:
        """Sum, release, solve."""
        packed = kernels.gram_sum(records.rows, records.targets.astype(np.float64), self.problem.norm, self.sensitivity)
        p, noisy = self.problem.features, self.mechanism.draw(packed, rng)
        hessian, vector = kernels.unpack_symmetric(noisy[:-p], p), noisy[-p:] / self.problem.norm
        asked = self.problem.regularization or 0.0
        spread = 2 * self.noise / math.sqrt(2) * math.sqrt(p)
        lift = max(asked, spread - float(np.linalg.eigvalsh(hessian)[0]))
        weights = _quadratic(hessian + lift * np.eye(p), vector, self.problem.l1)
        return Solution(weights[:, None], lift)


def _quadratic(hessian: Array, vector: Array, l1: float) -> Array:
    """The minimiser of w·Hw/2 - v·w + α‖w‖₁: a linear system, or accelerated proximal gradients."""
    if not l1:
        return np.asarray(np.linalg.solve(hessian, vector), np.float64)
    smooth = float(np.linalg.eigvalsh(hessian)[-1])
    w = np.zeros_like(vector)
    ahead, pace = w, 1.0
    for _ in range(5000):
        step = ahead - (hessian @ ahead - vector) / smooth
        new = np.sign(step) * np.maximum(np.abs(step) - l1 / smooth, 0)
        quicker = (1 + math.sqrt(1 + 4 * pace**2)) / 2
        ahead, moved = new + (pace - 1) / quicker * (new - w), float(np.abs(new - w).max())
        w, pace = new, quicker
        if moved <= 1e-12 * max(1.0, float(np.abs(w).max())):
            break
    return w
