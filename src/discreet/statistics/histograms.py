"""Counts over public bins or categories, and the distribution function they give."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from discreet.errors import number, positive
from discreet.mechanisms.parameters import store
from discreet.release import Release
from discreet.statistics.asking import Asked, ask, spell_out
from discreet.statistics.partition import Partition
from discreet.statistics.statistic import AdditiveStatistic, NoisyTotals

__all__ = ["Cdf", "Histogram", "cdf", "histogram"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram(NoisyTotals):
    """How many records fall in each public bin, or in each public category.

    ``bins`` are edges: e₀ ≤ x < e₁ is the first bin, and the last bin includes its upper edge. Records in no bin,
    of no category, or missing are left out: declare a bin up to infinity, or a category, to count them.

    Noise: discrete Laplace of scale 1/ε (2/ε under replace) with ``epsilon=``, Gaussian otherwise (with ``rho=``
    whole, below a deviation of 1). Guarantee: a record is in at most one part, so adding it moves the counts by 1 in
    L1 and L2; a replaced record leaves one part and enters another, by 2 in L1 and √2 in L2. Counts are not cut at
    zero. Reference: Dwork et al. (2006).

    >>> operation = Histogram(categories=("a", "b", "c"), epsilon=1.0)
    >>> operation.error(confidence=0.95), round(operation.rmse(), 2)
    (3.0, 1.36)
    >>> operation.release(["a"] * 50 + ["b"] * 100 + ["z"], rng=1).value
    array([50, 99, -2])
    """

    bins: tuple[float, ...] | None = None
    categories: tuple[Hashable, ...] | None = None

    _whole = True
    label = "histogram"

    def __post_init__(self) -> None:
        self._check()
        parts = Partition.of(self.bins, self.categories)
        store(self, bins=parts.bins, categories=parts.categories)
        _ = self.mechanism

    @property
    def parts(self) -> Partition:
        """The public bins or categories, in the order of the answer."""
        return Partition(self.bins, self.categories)

    @property
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        moved = Fraction(2 if self._replace else 1)
        return moved, moved, len(self.parts)

    def check(self, data: Any) -> None:
        """A column of numbers, or of what the categories are."""
        self.parts.check(data)

    def totals(self, values: Any) -> NDArray[np.int64]:
        """The exact counts. Private."""
        return self.parts.counts(values)

    def answer(self, noisy: Any) -> NDArray[Any]:
        """The noisy counts: int64 where the noise is whole, otherwise floats."""
        return np.asarray(noisy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cdf(AdditiveStatistic):
    """The share of records below each upper edge of public ``bins``; the last is 1. Records beyond an end count there.

    The noisy histogram is added up from the left, divided by its total, and projected on what a distribution function
    can be (increasing, between 0 and 1), which never moves it away from the truth.
    Guarantee: that of ``Histogram``; the rest is post-processing. With no positive total the answer is uniform.

    With more than a few dozen bins a tree of counts does better: see the workloads.

    >>> operation = Cdf(bins=(0, 10, 20, 30), epsilon=1.0)
    >>> operation.release([5] * 250 + [15] * 250 + [25] * 500, rng=1).value.round(2)
    array([0.25, 0.5 , 1.  ])
    """

    bins: tuple[float, ...]

    _whole = True
    label = "cdf"

    def __post_init__(self) -> None:
        self._check()
        store(self, bins=Partition.of(self.bins, None).bins)
        _ = self.mechanism

    @property
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        moved = Fraction(2 if self._replace else 1)
        return moved, moved, len(self.bins) - 1

    def totals(self, values: Any) -> NDArray[np.int64]:
        """The exact counts. Private."""
        return Partition(self.bins).counts(values, clamp=True)

    def answer(self, noisy: Any) -> NDArray[np.float64]:
        """The distribution function at the upper edges."""
        sums = np.cumsum(np.asarray(noisy, float))
        if sums[-1] <= 0:
            return np.arange(1, len(sums) + 1) / len(sums)
        shares = isotonic_regression(sums[:-1] / sums[-1]).x if len(sums) > 1 else sums[:0]
        return np.append(np.clip(shares, 0.0, 1.0), 1.0)

    def rmse(self, *, n: float, cdf: Iterable[float] | None = None) -> NDArray[np.float64]:
        """The root mean square error at each upper edge before projection, to first order in 1/n.

        With F(eᵢ) supposed (``cdf``, one number an edge) it is s·√(i(1-F)² + (k-i)F²)/n; without, the worst of F = 0,
        1.
        """
        k = len(self.bins) - 1
        left = np.arange(1, k + 1)
        noise = self.mechanism.deviation / positive("n", n)
        if cdf is None:
            return np.asarray(noise * np.sqrt(np.where(left < k, np.maximum(left, k - left), 0)))
        share = np.array([number("cdf", f, low=0, high=1) for f in cdf])
        if share.size != k:
            raise ValueError(f"cdf has {share.size} entries, but there are {k} upper edges.")
        return np.asarray(noise * np.sqrt(left * (1 - share) ** 2 + (k - left) * share**2))

    def error(self, confidence: float = 0.95, *, n: float) -> NDArray[np.float64]:
        """What the error at each upper edge stays within, with at least this confidence, whatever the distribution.

        Chebyshev's inequality: the root mean square over √(1 - confidence).
        """
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        return np.asarray(self.rmse(n=n) / np.sqrt(1 - confidence))


@spell_out(Asked, "histogram")
def histogram(
    values: Any,
    *,
    bins: Iterable[float] | None = None,
    categories: Iterable[Hashable] | None = None,
    **asked: Unpack[Asked],
) -> Release[NDArray[Any]]:
    """Counts over public bins or categories: see ``Histogram``.

    >>> histogram([1, 2, 2, 9], bins=[0, 2, 4], epsilon=30.0, rng=1).value
    array([1, 2])
    """
    parts = Partition.of(bins, categories)
    return ask(Histogram, values, asked, bins=parts.bins, categories=parts.categories)


@spell_out(Asked, "cdf")
def cdf(values: Any, bins: Iterable[float], **asked: Unpack[Asked]) -> Release[NDArray[np.float64]]:
    """The distribution function at the upper edges of public bins: see ``Cdf``.

    >>> cdf([1, 1, 3, 3], bins=[0, 2, 4], epsilon=50.0, rng=1).value
    array([0.5, 1. ])
    """
    return ask(Cdf, values, asked, bins=tuple(bins))
