r"""Several quantiles of whole numbers: the middle one splits the records, and either side has its own.

The middle quantile is chosen first (``statistics.ranks``); the quantiles below it are chosen among the records up to
it, those above among the others, and so on. A record takes part in one choice on each of ⌈log₂(m + 1)⌉ levels, so m
quantiles cost as much as that many.

*Proof.* On one level the choices are on disjoint records, and which records those are was released by the levels
before. Add-remove neighbours differ in one record, which takes part in one choice of the level: parallel composition,
one selection of range ε. Of a unit with r records, c of them in one of the choices, that choice has scale 2rD/ε and so
costs cε/r; the choices of a level add up to ε, though no longer as one selection of bounded range.

*Heaps.* Records at one place could not be split, so each candidate is widened to 2^bits, and ``spread`` puts the
records of a heap of w candidates there: the i-th at w times the bit-reversed i mod 2^bits. That depends on how many
there are, not on which; one record more is one more point, and none moves. Records that share a place even so, one in
2^bits of a heap, go to the lower side.

Reference: Kaplan, Schnapp and Stemmer (2022), "Differentially private approximate quantiles", Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from discreet import events
from discreet.adjacency import Adjacency
from discreet.errors import number
from discreet.random import Rng
from discreet.statistics.ranks import UNIT, Heaps, RankChoice

__all__ = ["NestedChoices", "rising", "spread"]


def rising(q: object) -> tuple[float, ...]:
    """Shares of several quantiles: from 0 to 1, in increasing order."""
    shares = tuple(number("q", share, low=0, high=1) for share in q)  # type: ignore[attr-defined]
    if not shares or any(not low < high for low, high in pairwise(shares)):
        raise ValueError("q must be at least one share, in increasing order.")
    return shares


@dataclass(frozen=True, slots=True)
class NestedChoices:
    """Chooses points of low..high near the quantiles ``shares``, each for ``epsilon``, of records at whole numbers.

    >>> choices = NestedChoices((0.25, 0.5, 0.75), 0, 1023, 0.5)
    >>> choices.levels, choices.event == events.Exponential(epsilon=0.5) * 2
    (2, True)
    """

    shares: tuple[float, ...]
    low: int
    high: int
    epsilon: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    records: int = 1  # of one unit, at most

    def __post_init__(self) -> None:
        """A record that is replaced is in two choices of a level, which the proof does not cover."""
        if self.adjacency is Adjacency.REPLACE and len(self.shares) > 1:
            raise ValueError(
                "adjacency is 'replace', but several quantiles are proved under 'add-remove' only: ask for "
                "that, and read the event's epsilon with adjacency='replace'."
            )

    @property
    def levels(self) -> int:
        """In how many choices a record takes part."""
        return len(self.shares).bit_length()

    @property
    def event(self) -> events.Event:
        """The cost: a selection on each level."""
        if self.records > 1:
            return events.PureDP(epsilon=self.epsilon) * self.levels
        return events.Exponential(epsilon=self.epsilon, adjacency=self.adjacency) * self.levels

    def error(self, confidence: float) -> float:
        """By how many ranks any of the points may miss, with at least this confidence.

        If the ends of a part miss by a and b ranks, its quantile at a share s is looked for (1 - s)a + sb ranks away.
        """
        each = 1 - (1 - confidence) / len(self.shares)

        def largest_miss(shares: tuple[float, ...], first: float, last: float, before: float, after: float) -> float:
            if not shares:
                return 0.0
            middle = len(shares) // 2
            share = shares[middle]
            place = _place(share, first, last)
            own = self._choice(place, self.low, self.high).error(each) + (1 - place) * before + place * after
            lower = largest_miss(shares[:middle], first, share, before, own)
            return max(own, lower, largest_miss(shares[middle + 1 :], share, last, own, after))

        return largest_miss(self.shares, 0.0, 1.0, 0.0, 0.0)

    def choose(self, heaps: Heaps, rng: Rng) -> list[int]:
        """The points, which do not fall."""
        return self._split(heaps, self.low, self.high, self.shares, 0.0, 1.0, rng)

    def _choice(self, share: float, low: int, high: int) -> RankChoice:
        target = min(UNIT, max(0, round(share * UNIT)))
        return RankChoice(target, low, high, self.epsilon, self.adjacency, self.records)

    def _split(
        self, heaps: Heaps, low: int, high: int, shares: tuple[float, ...], first: float, last: float, rng: Rng
    ) -> list[int]:
        """The quantiles ``shares`` of records that should be the part from ``first`` to ``last`` of all."""
        if not shares:
            return []
        middle = len(shares) // 2
        share = shares[middle]
        point = self._choice(_place(share, first, last), low, high).choose(heaps, rng)
        cut = int(np.searchsorted(heaps.first, point, side="right"))
        lower = Heaps(heaps.first[:cut], heaps.end[:cut], heaps.before[: cut + 1])
        upper = Heaps(heaps.first[cut:], heaps.end[cut:], heaps.before[cut:] - heaps.before[cut])
        left = self._split(lower, low, point, shares[:middle], first, share, rng)
        right = self._split(upper, point, high, shares[middle + 1 :], share, last, rng)
        return [*left, point, *right]


def _place(share: float, first: float, last: float) -> float:
    """A share of all as a share of the part from ``first`` to ``last``."""
    return (share - first) / (last - first) if last > first else 0.5


def spread(heaps: Heaps, bits: int) -> Heaps:
    """The records of each heap over the candidates that it has, each widened to 2^bits, as evenly as can be.

    >>> fine = spread(Heaps(np.array([5]), np.array([6]), np.array([0, 3])), 2)
    >>> (fine.first - (5 << 2)).tolist(), fine.before.tolist()
    ([0, 1, 2], [0, 1, 2, 3])
    """
    first, end, before = heaps
    counts, size = np.diff(before), 1 << bits
    held = np.minimum(counts, size)
    owner = np.repeat(np.arange(first.size), held)
    turn = np.arange(owner.size) - np.repeat(np.cumsum(held) - held, held)  # the first record to come here
    fine = (first[owner] << bits) + (end - first)[owner] * _reverse_bits(turn, bits)
    order = np.argsort(fine)
    numbers = (counts[owner] - turn + size - 1) >> bits  # the records turn, turn + 2^bits, turn + 2·2^bits, …
    return Heaps(fine[order], fine[order] + 1, np.append(0, np.cumsum(numbers[order])))


def _reverse_bits(value: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    reversed_bits = np.zeros_like(value)
    for place in range(bits):
        reversed_bits |= ((value >> place) & 1) << (bits - 1 - place)
    return reversed_bits
