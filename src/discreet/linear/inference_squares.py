r"""Intervals for least squares whatever the errors' variances: noisy sufficient statistics and a private sandwich.

Rows x have norm at most R (the intercept's column is √0.4, since a longer one would lend its noise to the slopes),
targets lie in [-1, 1]. Two releases, in this order:

1. A = S + E and b = v + f, with S = Σxxᵀ, v = Σxy and Gaussian noise; the estimate is w = A⁻¹b.
2. M = Σe²xxᵀ + F at that w, e = y - m the residuals and m = x·w cut to [-1, 1]. Nothing is cut of e: |m| is at most
   r = min(1, max |x·w|), so that |e| ≤ 1 + r, which w says, and this bounds what one record can do.

With a = A⁻¹c, the error of c·w is exactly a·(Σxε + f - Ew₀), ε the errors and w₀ the truth. Its variance is, to first
order,

.. math:: a^\top\Bigl[\Sigma\varepsilon^2xx^\top + \sigma_b^2 I + \tfrac{\sigma^2}{2}(\|w\|^2 I + ww^\top)\Bigr]a

No variance of an error is assumed equal to another's (White 1980; HC0). a·Ma is known up to noise of deviation σ_M‖a‖²;
0.35 of that is added and the sum taken as at least 0: an interval from a variance that is sometimes too low, sometimes
too high, covers too seldom, and this makes up for it where σ_M‖a‖² is at most the rest (95 % stays above 94.7 %; at 1.5
times, 94 %).

A is known to u = 3.5σ/λ of itself, λ its smallest eigenvalue: see ``inference_parts``. Where the features are so nearly
collinear that u reaches 1 *every* interval is infinite, also that of a feature which has no part in it: noise σ on its
correlation with a direction in which the data say nothing moves its coefficient in proportion to what is unknown there.

What is assumed: records are independent, E[xε] = 0, rows and targets lie inside the declared bounds (one that is cut is
another record), and the line stays inside the target's bounds where there are records.

References: White (1980); for noisy sufficient statistics, Vu and Slavkovic (2009); for their intervals, Sheffet (2017).

Decision 108.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import events, mechanisms, random
from discreet.linear import kernels
from discreet.linear.inference_parts import Array, Estimates, positive_part, shaken, smallest, unknown, widening
from discreet.linear.problem import Problem
from discreet.linear.rows import Map, Records

__all__ = ["SquaresIntervals"]

STATISTICS_SHARE, MEAT_SHARE = 0.7, 0.3  # of 1/σ², in which Gaussian costs add up
COLUMN = math.sqrt(0.4)  # the intercept's
SAFE = 3.5  # deviations of the noise on A that an eigenvalue must exceed
SPARE = 0.35  # deviations of the noise on the sandwich that are added


@dataclass(frozen=True, slots=True)
class SquaresIntervals:
    """Two releases: A and b, then the sandwich at w."""

    problem: Problem
    mapping: Map

    @property
    def square(self) -> float:
        """R², with the intercept's column as it is here."""
        return 1 + COLUMN**2 if self.mapping.intercept else 1.0

    @property
    def statistics(self) -> mechanisms.Gaussian:
        """The packed Σxxᵀ and R·Σxy, of norm √2·R² together."""
        return self.problem.gaussian(math.sqrt(2) * self.square * (1 + 2.0**-20), self.problem.rho(STATISTICS_SHARE))

    @property
    def sandwich(self) -> mechanisms.Gaussian:
        """The packed Σe²xxᵀ, in units of the largest e²."""
        return self.problem.gaussian(self.square * (1 + 2.0**-20), self.problem.rho(MEAT_SHARE))

    @property
    def event(self) -> events.Event:
        """Both releases."""
        return self.statistics.event + self.sandwich.event

    def solve(self, records: Records, jacobian: Array, rng: random.Rng) -> Estimates:
        """Estimates of ``jacobian`` @ weights."""
        rows = records.rows.copy()
        if self.mapping.intercept:
            rows[:, -1] *= COLUMN
            jacobian = jacobian * np.append(np.ones(rows.shape[1] - 1), COLUMN)
        p, norm, sigma = rows.shape[1], math.sqrt(self.square), float(self.statistics.sigma or 0.0)
        packed = kernels.gram_sum(rows, records.targets, norm, math.sqrt(2) * self.square)
        released = self.statistics.release(packed, rng).value
        matrix, vector = kernels.unpack_symmetric(released[:-p], p), released[-p:] / norm
        wider = widening(SAFE * sigma / low) if (low := smallest(matrix)) else math.inf
        weights = np.asarray(np.linalg.solve(matrix, vector)) if wider < math.inf else np.zeros(p)
        meat, spread = self._meat(rows, records.targets, weights, rng)
        if wider == math.inf:
            return unknown(jacobian @ weights)
        a = np.asarray(np.linalg.solve(matrix, jacobian.T), np.float64)  # a column for each coefficient
        # the truth may be longer than w, by as much
        known = (sigma / norm) ** 2 * np.eye(p) + shaken(sigma, weights * wider)
        cautious = meat + SPARE * spread * np.eye(p)
        variances = _forms(a, known) + np.maximum(_forms(a, cautious), 0.0)
        covariance = a.T @ (known + positive_part(cautious)) @ a
        r_squared = self._r_squared(matrix, vector, weights, meat)
        return Estimates(jacobian @ weights, variances * wider**2, covariance * wider**2, r_squared)

    def _r_squared(self, matrix: Array, vector: Array, weights: Array, meat: Array) -> float:
        """1 - SSE / SST: SSE is in the sandwich, whose last entry is that of the intercept's column; the rest of SST
        is in Σxxᵀ and Σxy, since the residuals of least squares are orthogonal to the line.
        """
        if not self.mapping.intercept:
            return math.nan
        size, total = float(matrix[-1, -1]) / COLUMN**2, float(vector[-1]) / COLUMN
        explained = float(weights @ matrix @ weights) - total**2 / max(size, 1.0)
        left = max(float(meat[-1, -1]) / COLUMN**2, 0.0)
        return float(np.clip(explained / max(explained + left, 1e-300), 0.0, 1.0))

    def _meat(self, rows: Array, targets: Any, weights: Array, rng: random.Rng) -> tuple[Array, float]:
        """Σe²xxᵀ at released weights, and the deviation of the noise on it."""
        slopes, column = (weights[:-1], weights[-1]) if self.mapping.intercept else (weights, 0.0)
        limit = 1 + min(1.0, float(np.linalg.norm(slopes)) + COLUMN * abs(float(column)))
        residuals = targets - np.clip(kernels.scores(rows, weights[:, None])[:, 0], -1, 1)
        shares = np.clip(residuals / limit, -1, 1)
        packed = kernels.gram_sum(rows * shares[:, None], np.zeros(len(rows)), 1.0, self.square)[: -rows.shape[1]]
        noisy = kernels.unpack_symmetric(self.sandwich.release(packed, rng).value, rows.shape[1])
        return limit**2 * noisy, limit**2 * float(self.sandwich.sigma or 0.0)


def _forms(a: Array, matrix: Array) -> Array:
    """aᵀ·matrix·a of each column."""
    return np.asarray(np.einsum("ij,ik,kj->j", a, matrix, a))
