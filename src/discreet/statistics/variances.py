"""The variance of bounded records."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from discreet.errors import number, positive
from discreet.mechanisms.parameters import store
from discreet.mechanisms.records import check_column, check_size, column
from discreet.random import exact_sum
from discreet.release import Release
from discreet.statistics.asking import Asked, ask, spell_out
from discreet.statistics.bounded import BITS, Bounds, check_bounds, positions
from discreet.statistics.statistic import AdditiveStatistic, public_size

__all__ = ["Variance", "variance", "variance_of_triples"]

_ONE = 1 << BITS


@dataclass(frozen=True, slots=True, kw_only=True)
class Variance(AdditiveStatistic):
    r"""The variance (divided by n, not n - 1) of the records, each moved to the nearest of ``bounds`` = (L, U).

    **The number of records is private.** With t the place of a record between its bounds, the three totals of

    .. math:: (1-t)^2, \qquad 2t(1-t), \qquad t^2

    are released together. They are not negative and add up to (t + 1 - t)² = 1, so one record moves them by exactly 1
    in L1, and by at most 1 in L2: count, mean and second moment for the price of one count. (The pair of ``Mean`` is
    the same with exponent 1.) A missing record adds nothing.

    **The number of records is public** (``adjacency="replace"``, ``n=``). The variance is Σ_{i<j}(x_i - x_j)²/n²; one
    record takes part in n - 1 terms, so moves it by at most (n-1)(U-L)²/n². A missing record is at the middle.

    Places are rounded to multiples of 2^-30, record by record; totals are then whole numbers, added exactly. The answer
    is cut to [0, (U-L)²/4].

    >>> operation = Variance(bounds=(0, 10), epsilon=1.0)
    >>> round(operation.rmse(n=10_000), 4), round(operation.rmse(n=10_000, mean=5, variance=2.0), 4)
    (0.0141, 0.006)
    >>> round(operation.release(np.arange(10_000) % 10, rng=1).value)
    8
    """

    bounds: Bounds
    n: int | None = None

    label = "variance"

    def __post_init__(self) -> None:
        self._check()
        store(self, bounds=check_bounds(self.bounds), n=public_size(self.n, self._replace, low=2))
        _ = self.mechanism

    @property
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        if self.n is None:
            return Fraction(1), Fraction(1), 3
        reach = Fraction(self.n - 1, self.n**2)
        return reach, reach**2, 1

    def check(self, data: Any) -> None:
        """A column, of the public size if there is one."""
        check_column(data)
        check_size(data, self.n)

    def totals(self, values: Any) -> Any:
        """The three exact totals, or with n public the exact variance, in units of the bounds. Private."""
        place = positions(column(values), self.bounds)
        if self.n is None:
            k = place[place >= 0]
            out = np.empty(3, object)
            out[:] = [exact_sum(part) / _ONE**2 for part in ((_ONE - k) ** 2, 2 * k * (_ONE - k), k**2)]
            return out
        if place.size != self.n:
            raise ValueError(f"values has {place.size} records, but n={self.n} was declared.")
        k = np.where(place < 0, _ONE // 2, place)
        return (exact_sum(k**2) / self.n - (exact_sum(k) / self.n) ** 2) / _ONE**2

    def answer(self, noisy: Any) -> float:
        """The variance from noisy totals; none that is positive (no records) gives half of what is possible."""
        width = self.bounds[1] - self.bounds[0]
        if self.n is not None:
            place = float(noisy)
        else:
            return float(variance_of_triples(noisy, self.bounds))
        return width**2 * min(0.25, max(0.0, place))

    def rmse(self, *, n: float | None = None, mean: float | None = None, variance: float | None = None) -> float:
        """The root mean square error against the variance of the bounded records.

        With n private: to first order in 1/n, at a supposed ``mean`` and ``variance``, or else at the worst ones.
        """
        size, width = self._size(n), self.bounds[1] - self.bounds[0]
        noise = self.mechanism.deviation / size
        if self.n is not None or mean is None or variance is None:
            return width**2 * min(0.25, noise)
        return width**2 * min(0.25, noise * float(np.linalg.norm(self._influence(mean, variance))))

    def error(self, confidence: float = 0.95, *, n: float | None = None) -> float:
        """What the noise stays within, with this confidence, whatever the mean and the variance.

        The noise acts through weights whose absolute values add up to at most 1 (see ``_influence``); a convex
        combination of symmetric log-concave noises is no wider than one of them (Proschan 1965).
        """
        width = self.bounds[1] - self.bounds[0]
        return width**2 * min(0.25, self.mechanism.error(confidence) / self._size(n))

    @property
    def stated_error(self) -> Any:
        """The error with 95 % confidence."""
        return None if self.n is None else self.error()

    def _influence(self, mean: float, variance: float) -> NDArray[np.float64]:
        """How the variance answers to noise on each total: derivatives, times n. Their L1 norm is at most 1."""
        low, high = self.bounds
        t = (number("mean", mean, low=low, high=high) - low) / (high - low)
        square = t**2 + number("variance", variance, low=0, high=(high - low) ** 2 / 4) / (high - low) ** 2
        return np.array([0.0, -t, 1 - 2 * t]) + 2 * t**2 - square

    def _size(self, n: float | None) -> float:
        if self.n is not None:
            return 1.0
        if n is None:
            raise ValueError("n is missing, but the error depends on the number of records: assume one with n=.")
        return positive("n", n)


def variance_of_triples(noisy: Any, bounds: Bounds) -> NDArray[np.float64]:
    """Variances from noisy triples on the last axis, in any unit; without a positive entry,
    half of what is possible.
    """
    total = np.maximum(noisy, 0.0)
    whole = total.sum(axis=-1, keepdims=True)
    share = np.where(whole > 0, total / np.where(whole > 0, whole, 1.0), np.array([0.375, 0.25, 0.375]))
    place = share[..., 2] - (share[..., 1] / 2 + share[..., 2]) ** 2
    return np.asarray((bounds[1] - bounds[0]) ** 2 * np.clip(place, 0.0, 0.25))


@spell_out(Asked, "variance")
def variance(values: Any, bounds: Bounds, *, n: int | None = None, **asked: Unpack[Asked]) -> Release[float]:
    """The variance of bounded records: see ``Variance``.

    >>> round(variance([0, 1] * 5000, bounds=(0, 2), epsilon=1.0, rng=1).value, 2)
    0.25
    """
    return ask(Variance, values, asked, bounds=bounds, n=n)
