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

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.mechanisms.grid import above
from discreet.mechanisms.parameters import slack
from discreet.random.bounds import exp_bounds
from discreet.random.tap import draw_output

__all__ = ["UNIT", "Counted", "RankChoice", "positions_from_counts", "positions_from_records"]

Counted = tuple[NDArray[np.int64], NDArray[np.int64]]  # rising places of records; how many lie before each, and in all

UNIT = 1 << 20  # parts of a rank
_LOG_TWO = Fraction(6931471805599453095, 10**19)  # the digits of ln 2, rounded up
_LAYERS = 128  # beyond this many halvings all candidates share a layer: together they are proposed hardly ever
_PROBES = 1025  # points at which replay compares scores: all of them, if the range has no more


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
        return self.records * (UNIT if self.adjacency == Adjacency.REPLACE else max(self.target, UNIT - self.target))

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

    def scores(self, found: Counted, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """The score of each point."""
        places, before = found
        below, up_to = (before[np.searchsorted(places, points, side=side)] for side in ("left", "right"))
        return self._score(below, up_to, int(before[-1]))

    def _score(self, below: NDArray[np.int64], up_to: NDArray[np.int64], n: int) -> NDArray[np.int64]:
        q = self.target
        early = (UNIT - q) * below - q * (n - below)
        late = q * (n - up_to) - (UNIT - q) * up_to
        return np.asarray(-np.maximum(0, np.maximum(early, late)))

    def choose(self, found: Counted, rng: random.Rng) -> int:
        """A point, for records within the range."""
        probes = self.low + np.arange(_PROBES) * (self.high - self.low) // (_PROBES - 1)
        return draw_output(self, self.scores(found, probes), "linf", self.sensitivity, lambda: self._draw(found, rng))

    def _draw(self, found: Counted, rng: random.Rng) -> int:
        starts, sizes, gaps = self._runs(found)
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

    def _runs(self, found: Counted) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """First points, sizes and score gaps of the runs of one score: each record's point, and what lies between."""
        places, before = found
        starts = np.empty(2 * places.size + 1, np.int64)
        starts[0], starts[1::2], starts[2::2] = self.low, places, places + 1
        below, up_to = np.repeat(before, 2)[:-1], np.repeat(before, 2)[1:]
        up_to[0::2] = below[0::2]  # between records, nobody is on the point itself
        return starts, np.diff(starts, append=self.high + 1), -self._score(below, up_to, int(before[-1]))


def positions_from_counts(counts: NDArray[np.int64]) -> Counted:
    """How many records each of 0, 1, 2, … has, as ``choose`` takes it."""
    places = np.flatnonzero(counts)
    return places, np.append(0, np.cumsum(counts[places]))


def positions_from_records(records: NDArray[np.int64]) -> Counted:
    """Records at whole numbers, as ``choose`` takes them."""
    places, counts = np.unique(records, return_counts=True)
    return places, np.append(0, np.cumsum(counts))


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
