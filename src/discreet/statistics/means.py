"""The mean of bounded records, when their number is private and when it is public.

Decision 50.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from discreet.errors import number, positive
from discreet.mechanisms.parameters import store
from discreet.mechanisms.records import check_column, check_size, column
from discreet.release import Release
from discreet.statistics import errors
from discreet.statistics.asking import Asked, ask, spell_out
from discreet.statistics.bounded import Bounds, check_bounds, exact_total
from discreet.statistics.statistic import AdditiveStatistic, public_size

__all__ = ["Mean", "binary_mean", "mean", "mean_of_pairs"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(AdditiveStatistic):
    r"""The mean of the records, each moved to the nearest of ``bounds`` = (L, U) if it lies beyond them.

    **The number of records is private** (add-remove, zero-out). The pair

    .. math:: A = \sum_i \frac{x_i - L}{U - L}, \qquad B = \sum_i \frac{U - x_i}{U - L}

    is released together, and the mean is :math:`L + (U-L)\,A/(A+B)`. Guarantee: a record adds (t, 1-t) to the pair,
    with t in [0, 1]; its L1 norm is t + (1-t) = 1 exactly and its L2 norm √(t² + (1-t)²) ≤ 1. In L1 nothing is
    wasted: what records can add spans exactly the ball the noise was made for. A missing record adds (0, 0). The
    noise on the mean has standard deviation √(t² + (1-t)²)·(U-L)·s/n, where s is that of the noise on one sum: half the
    variance, in the middle of the bounds, of noise on the sum and the count separately.

    **The number of records is public** (``adjacency="replace"``, ``n=``). Noise is added to the mean, which one record
    moves by at most (U-L)/n. A missing record counts as the middle of the bounds.

    The answer is cut to the bounds; noisy sums that are both negative (no, or few, records) give their middle.
    Reference: for the pair, the sensitivity polytope of Hardt and Talwar (2010); n public: Dwork et al. (2006).

    >>> operation = Mean(bounds=(0, 200_000), epsilon=1.0)
    >>> round(operation.error(n=5_000), 1), round(operation.rmse(n=5_000, mean=50_000), 1)
    (119.8, 44.7)
    >>> round(operation.release(np.full(5_000, 50_000), rng=1).value, -3)
    50000.0
    """

    bounds: Bounds
    n: int | None = None

    label = "mean"

    def __post_init__(self) -> None:
        self._check()
        store(self, bounds=check_bounds(self.bounds), n=public_size(self.n, self._replace))
        _ = self.mechanism

    @property
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        if self.n is None:
            return Fraction(1), Fraction(1), 2
        return Fraction(1, self.n), Fraction(1, self.n**2), 1

    def check(self, data: Any) -> None:
        """A column, of the public size if there is one."""
        check_column(data)
        check_size(data, self.n)

    def totals(self, values: Any) -> Any:
        """The exact pair (A, B), or with n public the exact mean as a part of the bounds. Private."""
        low, high = (Fraction(end) for end in self.bounds)
        array = column(values)
        total, present = exact_total(array, self.bounds)
        if self.n is None:
            pair = np.empty(2, object)
            pair[:] = (total - present * low) / (high - low), (present * high - total) / (high - low)
            return pair
        if array.size != self.n:
            raise ValueError(f"values has {array.size} records, but n={self.n} was declared.")
        return ((total - present * low) / (high - low) + Fraction(self.n - present, 2)) / self.n

    def answer(self, noisy: Any) -> Any:
        """The mean from a noisy pair on the last axis (any number of pairs before it), or from a noisy place."""
        low, high = self.bounds
        if self.n is not None:
            return low + (high - low) * min(1.0, max(0.0, noisy))
        mean = mean_of_pairs(noisy, self.bounds)
        return float(mean) if mean.ndim == 0 else mean

    def error(self, confidence: float = 0.95, *, n: float | None = None, mean: float | None = None) -> float:
        """What the noise on the mean stays within, with this confidence.

        ``n`` is a public or supposed number of records (under replace, the declared one). Without ``mean`` the error
        holds whatever the mean is; with a supposed ``mean`` it is the exact quantile there, up to √2 smaller.
        """
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        size, width = self._size(n), self.bounds[1] - self.bounds[0]
        if mean is None:
            return width * min(1.0, self.mechanism.error(confidence) / (1 if self.n else size))
        return width * errors.quantile(self._tail(size, mean), 1 - confidence)

    @property
    def stated_error(self) -> Any:
        """The error with 95 % confidence."""
        return None if self.n is None else self.error()

    def rmse(self, *, n: float | None = None, mean: float | None = None) -> float:
        """The root mean square error against the mean of the bounded records, at most or (with ``mean``) exactly."""
        size, width = self._size(n), self.bounds[1] - self.bounds[0]
        typical = self.mechanism.deviation / (1 if self.n else size)
        return width * min(1.0, typical if mean is None else errors.root_mean_square(self._tail(size, mean), typical))

    def mse(self, *, variance: float, n: float | None = None, mean: float | None = None) -> float:
        """The mean squared error against the mean of the population the records were drawn from.

        ``variance`` is the population's: sampling adds variance/n to the noise. For a proportion p and public n this
        is p(1-p)/n + 2/(nε)².

        >>> operation = Mean(bounds=(0, 1), epsilon=0.5, adjacency="replace", n=100)
        >>> round(operation.mse(variance=0.3 * 0.7), 6) == round(0.3 * 0.7 / 100 + 2 / (100 * 0.5) ** 2, 6)
        True
        """
        return float(variance) / self._size(n) + self.rmse(n=n, mean=mean) ** 2

    def _size(self, n: float | None) -> float:
        if n is None and self.n is None:
            raise ValueError("n is missing, but the error depends on the number of records: assume one with n=.")
        return positive("n", self.n if n is None else n)

    def _tail(self, n: float, mean: float) -> errors.Tail:
        low, high = self.bounds
        place = (number("mean", mean, low=low, high=high) - low) / (high - low)
        return errors.single_tail(self.mechanism, place) if self.n else errors.pair_tail(self.mechanism, n, place)


def mean_of_pairs(noisy: Any, bounds: Bounds) -> NDArray[np.float64]:
    """Means from noisy pairs (A, B) on the last axis, in any unit; one without a positive entry gives the middle."""
    low, high = bounds
    pair = np.maximum(noisy, 0.0)
    whole = pair.sum(axis=-1)
    return np.asarray(low + (high - low) * np.where(whole > 0, pair[..., 0] / np.where(whole > 0, whole, 1.0), 0.5))


@spell_out(Asked, "mean")
def mean(values: Any, bounds: Bounds, *, n: int | None = None, **asked: Unpack[Asked]) -> Release[float]:
    """The mean of bounded records: see ``Mean``.

    >>> round(mean([20, 30, 40] * 1000, bounds=(0, 100), epsilon=1.0, rng=1).value)
    30
    """
    return ask(Mean, values, asked, bounds=bounds, n=n)


@spell_out(Asked, "binary mean")
def binary_mean(values: Any, *, n: int | None = None, **asked: Unpack[Asked]) -> Release[float]:
    """The proportion of ones among zeros and ones: the mean with bounds (0, 1). With n public, its error against the
    population's p is p(1-p)/n + 2/(nε)² (``Mean.mse``).

    >>> round(binary_mean([True] * 300 + [False] * 700, epsilon=1.0, rng=1).value, 2)
    0.3
    """
    return mean(values, (0, 1), n=n, **asked)
