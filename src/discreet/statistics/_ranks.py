r"""One quantile of whole numbers by the exponential mechanism, sampled exactly, however many candidates there are.

Candidates are the points j of a public range of whole numbers. With q = Q/2^20 the score of j is minus the distance,
in 2^-20 ranks, between q·n and the ranks that j may take among the records:

    u(j) = -max(0, (2^20 - Q)·below(j) - Q·(n - below(j)), Q·above(j) - (2^20 - Q)·(n - above(j))).

A record that is added raises or lowers each term by Q or 2^20 - Q, so u has sensitivity D = max(Q, 2^20 - Q); a
replaced record moves one step in each count, 2^20 in all. Scores are whole numbers and the law is
Pr[j] ∝ exp(u(j)/scale) with a whole scale ≥ 2D/ε: of range at most ε by integer arithmetic.

Between two records the score is constant, so candidates come in segments of m points. A segment is proposed with
probability ∝ exp(u/scale + k·c/scale), where 2^k > m and c = ⌈scale·ln 2⌉ is whole, by ``random.weighted_index``; it
is accepted with probability m·exp(-k·c/scale) ≤ 1, decided exactly; a point of it is then drawn uniformly. That is the
law above with no float in it, at about two passes over the records.

Reference: Smith (2011), Algorithm 2, for the interval form; McSherry and Talwar (2007).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.mechanisms._common import slack
from discreet.mechanisms._grid import above
from discreet.random._bounds import exp_bounds
from discreet.random.tap import noised

__all__ = ["UNIT", "RankChoice"]

UNIT = 1 << 20  # parts of a rank
_PROBES = 1025  # points at which replay compares scores: all of them, if the range has no more


@dataclass(frozen=True, slots=True)
class RankChoice:
    """Chooses a point of low..high near the ``target``/2^20 quantile of records at whole numbers, for ``epsilon``."""

    target: int
    low: int
    high: int
    epsilon: float
    adjacency: Adjacency

    @property
    def sensitivity(self) -> int:
        """How far one record moves a score, in parts of a rank."""
        return UNIT if self.adjacency == Adjacency.REPLACE else max(self.target, UNIT - self.target)

    @property
    def scale(self) -> int:
        """The score difference that divides a probability by e."""
        return math.ceil(slack * 2 * self.sensitivity / Fraction(self.epsilon))

    @property
    def event(self) -> events.Exponential:
        """The cost, a bounded range of at most ``epsilon``."""
        return events.Exponential(epsilon=above(Fraction(2 * self.sensitivity, self.scale)), adjacency=self.adjacency)

    def error(self, confidence: float) -> float:
        """By how many ranks the chosen point may miss: (2D/ε)·ln(|T|/β) with β = 1 - confidence."""
        return self.scale / UNIT * math.log((self.high - self.low + 1) / (1 - confidence))

    def scores(self, records: NDArray[np.int64], points: NDArray[np.int64]) -> NDArray[np.int64]:
        """The score of each point among sorted records."""
        n, q = records.size, self.target
        below = np.searchsorted(records, points, side="left")
        over = n - np.searchsorted(records, points, side="right")
        early = (UNIT - q) * below - q * (n - below)
        late = q * over - (UNIT - q) * (n - over)
        return np.asarray(-np.maximum(0, np.maximum(early, late)))

    def choose(self, records: NDArray[np.int64], rng: random.Rng) -> int:
        """A point, for sorted records within the range."""
        probes = self.low + np.arange(_PROBES) * (self.high - self.low) // (_PROBES - 1)
        return noised(self, self.scores(records, probes), "linf", self.sensitivity, lambda: self._draw(records, rng))

    def _draw(self, records: NDArray[np.int64], rng: random.Rng) -> int:
        starts, sizes = self._segments(records)
        shifts = np.frexp(sizes.astype(np.float64))[1].astype(np.int64)  # 2^shift > size, and at most twice it
        step = _above_log_two(self.scale)
        gaps = -self.scores(records, starts) - shifts * step
        gaps -= gaps.min()
        while True:
            i = random.weighted_index(gaps, self.scale, rng)
            if _accepted(int(sizes[i]), int(shifts[i]) * step, self.scale, rng):
                return int(starts[i]) + rng.below(int(sizes[i]))

    def _segments(self, records: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First points and sizes of the runs of candidates with one score: each record's point, and what lies between."""
        distinct = np.unique(records)
        cuts = np.unique(np.concatenate(([self.low], distinct, distinct + 1, [self.high + 1])))
        return cuts[:-1], np.diff(cuts)


def _above_log_two(scale: int) -> int:
    return math.ceil(scale * Fraction(6931471805599453095, 10**19))  # the digits of ln 2, rounded up


def _accepted(size: int, offset: int, scale: int, rng: random.Rng) -> bool:
    """True with probability size·exp(-offset/scale), exactly."""
    exponent = Fraction(-offset, scale)

    def bounds(digits: int) -> tuple[Fraction, Fraction]:
        low, high = exp_bounds(exponent, digits + 20)  # a size of 64 bits takes twenty digits
        return size * low, min(size * high, Fraction(1))

    return bool(random.bernoulli(bounds, 1, rng)[0])

