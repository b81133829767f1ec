"""Bounds of records of which nobody knows even the size: found privately, on a logarithmic scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from discreet.errors import number, whole
from discreet.mechanisms.parameters import store
from discreet.release import Release
from discreet.statistics.asking import Asked, ask, spell_out
from discreet.statistics.partition import Partition
from discreet.statistics.statistic import AdditiveStatistic

__all__ = ["Bounds", "bounds", "bounds_of_counts", "powers"]


def powers(smallest: int, largest: int) -> tuple[float, ...]:
    """The edges -2^largest, ..., -2^smallest, 0, 2^smallest, ..., 2^largest.

    >>> powers(0, 2)
    (-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0)
    """
    ends = [math.ldexp(1.0, exponent) for exponent in range(smallest, largest + 1)]
    return (*(-end for end in reversed(ends)), 0.0, *ends)


def bounds_of_counts(noisy: NDArray[Any], edges: tuple[float, ...], threshold: float) -> tuple[float, float]:
    """The outer edges of the bins whose noisy counts exceed a threshold; of the largest, if none does."""
    found = np.flatnonzero(np.asarray(noisy, np.float64) > threshold)
    first, last = (found[0], found[-1]) if len(found) else (int(np.argmax(noisy)),) * 2
    return edges[int(first)], edges[int(last) + 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds(AdditiveStatistic):
    """Powers of two between which nearly all records lie, for sums and means that need bounds.

    Records are counted between the powers of two from 2^``smallest`` to 2^``largest`` of either sign, and zero; what
    lies beyond counts at the end. The bounds are the outer edges of the bins whose noisy count exceeds what noise alone
    exceeds in any bin with probability 1 - ``confidence``: a few records far out are therefore cut off, which is what
    clipping is for. Fewer records than the threshold in every bin give the bin with the largest noisy count.

    Guarantee: that of ``Histogram``; the rest is post-processing. Nothing is gained where records are few: the bounds
    cost a share of the budget and cut what they miss. With some hundred records, declare generous ones.
    Reference: Wilson et al. (2020), "Differentially private SQL with bounded user contribution", §5.1.1.

    >>> Bounds(epsilon=0.1).release(np.linspace(100, 20_000, 30_000), rng=1).value
    (128.0, 32768.0)
    """

    smallest: int = -10
    largest: int = 40
    confidence: float = 0.95

    _whole = True
    label = "bounds"

    def __post_init__(self) -> None:
        self._check()
        low, high = whole("smallest", self.smallest, low=-900), whole("largest", self.largest, low=-900)
        if not low < high <= 490:
            raise ValueError(f"smallest is {low} and largest {high}, but smallest must be below largest, at most 490.")
        store(self, confidence=number("confidence", self.confidence, low=0, high=1, open_low=True, open_high=True))
        _ = self.mechanism

    @property
    def edges(self) -> tuple[float, ...]:
        """The candidates for a bound."""
        return powers(self.smallest, self.largest)

    @property
    def threshold(self) -> float:
        """The noisy count that a bin must exceed."""
        return self.mechanism.error(1 - (1 - self.confidence) / (len(self.edges) - 1))

    @property
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        moved = Fraction(2 if self._replace else 1)
        return moved, moved, len(self.edges) - 1

    def totals(self, values: Any) -> NDArray[np.int64]:
        """The exact counts. Private."""
        return Partition(bins=self.edges).counts(values, clamp=True)

    def answer(self, noisy: Any) -> tuple[float, float]:
        """The outer edges of what is not noise."""
        return bounds_of_counts(np.asarray(noisy), self.edges, self.threshold)

    @property
    def stated_error(self) -> Any:
        """None: how much lies beyond depends on the records."""
        return None


@spell_out(Asked, "bounds")
def bounds(
    values: Any, *, smallest: int = -10, largest: int = 40, confidence: float = 0.95, **asked: Unpack[Asked]
) -> Release[tuple[float, float]]:
    """Powers of two between which nearly all records lie: see ``Bounds``.

    >>> bounds(np.linspace(-3, 3, 10_000), epsilon=1.0, rng=1).value
    (-4.0, 4.0)
    """
    return ask(Bounds, values, asked, smallest=smallest, largest=largest, confidence=confidence)
