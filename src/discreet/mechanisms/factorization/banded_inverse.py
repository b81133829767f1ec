r"""Matrices whose inverse has few bands: the noise of a step is a weighted sum of the last p draws.

The p - 1 draws before are remembered, or drawn again from their streams. ``BandedInverse(p)`` takes the first p
coefficients of (1 - x)^{1/2} (BISR); ``optimised`` finds the best ones for a workload and a participation.

Reference: Kalinin et al. (2025), "Back to square roots" (BISR, BandInvMF).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from discreet.errors import whole
from discreet.mechanisms.factorization import toeplitz
from discreet.mechanisms.factorization.participation import Pattern, shifted_sum
from discreet.mechanisms.factorization.strategy import Measure, ToeplitzStrategy, minus, step_weights
from discreet.mechanisms.factorization.toeplitz import Floats
from discreet.mechanisms.factorization.workload import Workload

__all__ = ["BandedInverse", "shifted_sum_transpose", "weighted_draws"]

_LEAST = 1e-10  # a change of the loss that is not worth another step


class BandedInverse(ToeplitzStrategy):
    """C⁻¹ = T(a) for a few coefficients a, the first of them 1.

    >>> from discreet.mechanisms.factorization.participation import Pattern
    >>> few = BandedInverse.square_root(512, bands=8)
    >>> round(few.loss(Workload(512), Pattern.single(512)), 2)
    4.87
    >>> best = BandedInverse.optimised(Workload(512), Pattern.single(512), bands=8)
    >>> best.loss(Workload(512), Pattern.single(512)) < 3.6
    True
    """

    def __init__(self, a: ArrayLike, steps: int) -> None:
        few = toeplitz.single(a)[:steps]
        whole_series = np.concatenate([few, np.zeros(steps - len(few))])
        super().__init__(toeplitz.inverse(whole_series), whole_series)
        self.few, self.memory = few, len(few) - 1

    @classmethod
    def square_root(cls, steps: int, bands: int) -> BandedInverse:
        """The first coefficients of (1 - x)^{1/2}."""
        return cls(toeplitz.power_series(0.5, min(steps, whole("bands", bands, low=1))), steps)

    @classmethod
    def optimised(cls, workload: Workload, pattern: Pattern, bands: int, measure: Measure = "mean") -> BandedInverse:
        """The best coefficients 1, -α_1, -α_2, ... with α_j > 0 of sum below 1, so that C's are between 0 and 1, by
        L-BFGS from two beginnings."""
        steps = workload.steps
        first = cls.square_root(steps, bands)
        if first.memory == 0:
            return first
        found = [first]
        for exponent in (0.5, 0.9):
            shares = -toeplitz.power_series(exponent, len(first.few))[1:]
            best = minimize(
                _loss,
                np.log(shares / (1 - shares.sum())),
                args=(workload, pattern, measure),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": 500, "ftol": _LEAST},
            )
            found.append(cls(np.concatenate([[1.0], -_shares(best.x)]), steps))
        return min(found, key=lambda each: each.loss(workload, pattern, measure))

    def advance(self, step: int, draw: Callable[[], Any], memory: list[Any]) -> Any:
        """The last draws, weighted."""
        return weighted_draws(self.few, draw(), memory, self.memory)


def weighted_draws(a: Floats, fresh: Any, memory: list[Any], most: int) -> Any:
    """Σ a_j·y_{t-j}; ``memory`` holds the last ``most`` draws, the latest first."""
    noise = fresh * float(a[0])
    for weight, before in zip(a[1:], memory, strict=False):
        noise = minus(noise, before, -float(weight))
    memory.insert(0, fresh)
    del memory[most:]
    return noise


def _shares(theta: Floats) -> Floats:
    """Positive numbers of sum below 1: e^θ / (1 + Σ e^θ)."""
    high = max(0.0, float(theta.max()))
    grown = np.exp(theta - high)
    return np.asarray(grown / (grown.sum() + np.exp(-high)))


def _loss(theta: Floats, workload: Workload, pattern: Pattern, measure: Measure) -> tuple[float, Floats]:
    """The logarithm of the squared loss and its gradient, with the sensitivity of a falling C."""
    n, p = workload.steps, len(theta) + 1
    shares, a = _shares(theta), np.zeros(n)
    a[0], a[1:p] = 1.0, -shares
    c, w = toeplitz.inverse(a), workload.coefficients
    felt = toeplitz.product(w, a)
    weights = step_weights(n, measure)
    error = float((weights * felt * felt).sum())
    moved = shifted_sum(c, pattern)
    square = float(moved @ moved)
    back = toeplitz.transpose_product(c, 2 * shifted_sum_transpose(moved, pattern))  # T(a)⁻ᵀ = T(c)ᵀ
    slope = (
        toeplitz.transpose_product(c, back)[1:p] / square
        - toeplitz.transpose_product(w, 2 * weights * felt)[1:p] / error
    )
    return float(np.log(error * square)), shares * (slope - shares @ slope)


def shifted_sum_transpose(values: Floats, pattern: Pattern) -> Floats:
    """The transpose of ``shifted_sum``."""
    return shifted_sum(values[::-1], pattern)[::-1]
