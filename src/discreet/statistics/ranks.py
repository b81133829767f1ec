r"""One quantile of whole numbers by the exponential mechanism, sampled exactly, however many candidates there are.

Candidates are the points j of a public range of whole numbers. With q = Q/2^20 the score of j is minus the distance,
in 2^-20 ranks, between q·n and the ranks that j may take among the records:

    u(j) = -max(0, (2^20 - Q)·below(j) - Q·(n - below(j)), Q·above(j) - (2^20 - Q)·(n - above(j))).

A record that is added raises or lowers each term by Q or 2^20 - Q, so u has sensitivity D = max(Q, 2^20 - Q); a
replaced record moves one step in each count, 2^20 in all. Scores are whole numbers and the law is
Pr[j] ∝ exp(u(j)/scale) with a whole scale ≥ 2D/ε: of range at most ε by integer arithmetic.

Between two records the score is constant, so candidates come in runs. A run whose score is u lies in layer
l = ⌊-u/c⌋ with c = ⌈scale·ln 2⌉, and all beyond the last layer in that one; its weight exp(u/scale) is at most 2^-l. A
point is proposed with probability proportional to 2^-l, which takes nothing but whole numbers, and accepted with
probability 2^l·exp(u/scale), decided exactly. That is the law above with no float in it. The best layer is
proposed at least half of the time that any is, and accepted at least half of the time, so a few proposals suffice.

Reference: Smith (2011), Algorithm 2, for the interval form; McSherry and Talwar (2007).

Decision 310.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.adjacency import Adjacency, changed_records
from discreet.mechanisms.grid import above
from discreet.mechanisms.parameters import slack
from discreet.random.bounds import exp_bounds
from discreet.random.tap import draw_output

__all__ = ["UNIT", "Heaps", "RankChoice", "heaps_from_counts", "heaps_from_runs"]

UNIT = 1 << 20  # parts of a rank
_LOG_TWO = Fraction(6931471805599453095, 10**19)  # the digits of ln 2, rounded up
_LAYERS = 128  # beyond this many halvings all candidates share a layer: together they are proposed hardly ever
_PROBES = 1025  # points at which replay compares scores: all of them, if the range has no more


class Heaps(NamedTuple):
    """Records in rising order: each heap's first candidate and one beyond its last; records before each, and in all."""

    first: NDArray[np.int64]
    end: NDArray[np.int64]
    before: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class RankChoice:
    """Chooses a point of low..high near the ``target``/2^20 quantile of records at whole numbers, for ``epsilon``."""

    target: int
    low: int
    high: int
    epsilon: float
    adjacency: Adjacency
    records: int = 1  # of one unit, at most

    @property
    def sensitivity(self) -> int:
        """How far the records of one unit move a score, in parts of a rank."""
        moved = {1: max(self.target, UNIT - self.target), 2: UNIT}
        return self.records * moved[changed_records(self.adjacency)]

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

    def scores(self, heaps: Heaps, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """The score of each point."""
        below = heaps.before[np.searchsorted(heaps.end, points, side="right")]
        up_to = heaps.before[np.searchsorted(heaps.first, points, side="right")]
        return self._score(below, up_to, int(heaps.before[-1]))

    def _score(self, below: NDArray[np.int64], up_to: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        q = self.target
        early = (UNIT - q) * below - q * (n - below)
        late = q * (n - up_to) - (UNIT - q) * up_to
        return np.asarray(-np.maximum(0, np.maximum(early, late)))

    def choose(self, heaps: Heaps, rng: random.Rng) -> int:
        """A point, for heaps within the range."""
        step, rest = divmod(self.high - self.low, _PROBES - 1)  # apart: their product with 1,024 need not fit
        probes = self.low + np.arange(_PROBES) * step + np.arange(_PROBES) * rest // (_PROBES - 1)
        return draw_output(self, self.scores(heaps, probes), "linf", self.sensitivity, lambda: self._draw(heaps, rng))

    def _draw(self, heaps: Heaps, rng: random.Rng) -> int:
        starts, sizes, gaps = self._runs(heaps)
        layers = np.minimum(gaps // math.ceil(self.scale * _LOG_TWO), _LAYERS)
        points = np.zeros(_LAYERS + 1, np.int64)
        np.add.at(points, layers, sizes)
        masses = [int(size) << (_LAYERS - layer) for layer, size in enumerate(points)]
        while True:
            layer, place = _propose(masses, rng)
            members = np.flatnonzero(layers == layer)
            ends = np.cumsum(sizes[members])
            position = int(np.searchsorted(ends, place, side="right"))
            run = members[position]
            if _accepts(layer, int(gaps[run]), self.scale, rng):
                return int(starts[run] + sizes[run] - (ends[position] - place))

    def _runs(self, heaps: Heaps) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """First points, sizes and score gaps of the runs of one score: each heap's points, and what lies between."""
        starts = np.empty(2 * heaps.first.size + 1, np.int64)
        starts[0], starts[1::2], starts[2::2] = self.low, heaps.first, heaps.end
        below, up_to = np.repeat(heaps.before, 2)[:-1], np.repeat(heaps.before, 2)[1:]
        up_to[0::2] = below[0::2]  # between heaps, nobody is on the point itself
        return starts, np.diff(starts, append=self.high + 1), -self._score(below, up_to, int(heaps.before[-1]))


def heaps_from_counts(counts: NDArray[np.int64]) -> Heaps:
    """How many records each of 0, 1, 2, … has, as ``choose`` takes it."""
    places = np.flatnonzero(counts)
    return Heaps(places, places + 1, np.append(0, np.cumsum(counts[places])))


def heaps_from_runs(first: NDArray[np.int64], end: NDArray[np.int64]) -> Heaps:
    """Records of which each stands at the candidates from ``first`` up to ``end``, as ``choose`` takes them."""
    first, place, counts = np.unique(first, return_index=True, return_counts=True)
    return Heaps(first, end[place], np.append(0, np.cumsum(counts)))


def _propose(masses: list[int], rng: random.Rng) -> tuple[int, int]:
    """A layer in proportion to its mass, points·2^(_LAYERS - layer), and one of its points."""
    draw = rng.below(sum(masses))
    for layer, mass in enumerate(masses):
        if draw < mass:
            return layer, draw >> (_LAYERS - layer)
        draw -= mass
    raise AssertionError("a draw below the total lies in a layer")


def _accepts(layer: int, gap: int, scale: int, rng: random.Rng) -> bool:
    """True with probability 2^layer·exp(-gap/scale), exactly."""
    exponent = Fraction(-gap, scale)

    def bounds(digits: int) -> tuple[Fraction, Fraction]:
        low, high = exp_bounds(exponent, digits + _LAYERS)  # more digits than 2^layer has
        return low * 2**layer, min(high * 2**layer, Fraction(1))

    return bool(random.bernoulli(bounds, 1, rng)[0])
