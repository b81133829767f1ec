r"""AboveThreshold and the sparse vector technique: many questions, paid for only when the answer is yes.

The variant that is private (Lyu, Su and Li 2017, Algorithm 1, after Dwork and Roth's Algorithm 1), of which four of
six published relatives are not:

1. the threshold's noise is drawn once per round and *renewed after every positive answer*;
2. every query gets its own fresh noise, never reused;
3. the query noise is scaled to 2Δ (Δ if all queries move the same way), not to Δ alone;
4. only "above" or "below" is told, never the noisy value that decided;
5. the round ends at its positive answer, and the next one is a new charge.

The budget of a round is divided between threshold and query noise as 1 : 2^(2/3) (monotone 1 : 1), which minimises
the variance of their difference. Values and noise live on a grid, as whole numbers, sampled exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.errors import number, positive, whole
from discreet.mechanisms.grid import above, floor_log2, in_range, power
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import slack, store
from discreet.mechanisms.records import check_column, entries
from discreet.mechanisms.values import LARGEST, exact_number
from discreet.random.tap import draw_output
from discreet.release import Chargeable, pay
from discreet.sessions import PaidOnce, one_at_a_time

__all__ = ["AboveThreshold", "Round", "SparseVector", "ThresholdSession"]


@dataclass(frozen=True, slots=True)
class _Noise:
    """Whole-number scales: threshold noise, query noise, and the reach of one record, in steps of 2^exponent."""

    exponent: int
    reach: int
    threshold: int
    query: int
    factor: int

    @property
    def epsilon(self) -> float:
        return above(Fraction(self.reach, self.threshold) + Fraction(self.factor * self.reach, self.query))

    def steps(self, value: Any) -> int:
        """A value in whole steps; what is no number is below every threshold."""
        return round(exact_number(value, -LARGEST) / power(self.exponent))


@lru_cache(maxsize=1024)
def _noise(sensitivity: float, epsilon: float, monotone: bool) -> _Noise:
    factor = 1 if monotone else 2
    budget = Fraction(epsilon) / slack
    first = budget / (1 + Fraction(factor ** (2 / 3)))
    exponent = floor_log2(Fraction(sensitivity) / budget) - 32
    reach = math.floor(Fraction(sensitivity) / power(exponent)) + 1
    return _Noise(exponent, reach, math.ceil(reach / first), math.ceil(factor * reach / (budget - first)), factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class AboveThreshold(Mechanism[int | None]):
    r"""Answers "is this value above the threshold?" until the first yes, for one ``epsilon`` in all.

    Law: yes iff u + Lap(2Δ/ε₂) ≥ T + Lap(Δ/ε₁), with ε₁ + ε₂ = ε; one threshold noise a round, fresh query noise.
    ``monotone=True`` (a record moves all the values the same way, as counts) needs half the query noise.

    Guarantee: epsilon-DP for any number of questions, adaptively chosen.
    Reference: Dwork and Roth (2014), Theorem 3.23; Lyu, Su and Li (2017), Theorems 2 and 5.

    >>> mechanism = AboveThreshold(threshold=100.0, sensitivity=1.0, epsilon=2.0)
    >>> mechanism.release([3.0, 20.0, 500.0, 7.0], rng=1).value
    2
    """

    threshold: float
    sensitivity: float = 1.0
    epsilon: float = 1.0
    monotone: bool = False
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        infinite = math.inf
        store(
            self,
            threshold=number("threshold", self.threshold, low=-infinite, high=infinite, open_low=True, open_high=True),
            sensitivity=in_range("sensitivity", self.sensitivity),
            monotone=bool(self.monotone),
            epsilon=number("epsilon", self.epsilon, low=2.0**-40, high=2.0**10),
            adjacency=self.adjacency,
        )

    @property
    def _noise(self) -> _Noise:
        return _noise(self.sensitivity, self.epsilon, self.monotone)

    @property
    def event(self) -> events.PureDP:
        """The cost of a round, up to and including its positive answer."""
        return events.PureDP(epsilon=self._noise.epsilon, adjacency=self.adjacency)

    def error(self, confidence: float = 0.95, *, size: int) -> float:
        """How far on the wrong side of the threshold any of ``size`` answers may be, with this confidence."""
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        noise, half = self._noise, (1 - confidence) / 2
        steps = noise.threshold * math.log(1 / half) + noise.query * math.log(whole("size", size, low=1) / half)
        return float(power(noise.exponent)) * (steps + 2)

    def start(self, rng: random.RngLike = None) -> Round:
        """A round of questions: ``ask`` until it says yes."""
        return Round(self, random.as_rng(rng))

    def check(self, data: Any) -> None:
        """Refuse what is publicly no sequence of numbers."""
        check_column(data)

    def draw(self, data: Iterable[Any], rng: random.Rng) -> int | None:
        """The position of the first value found above the threshold, or none."""
        asked = self.start(rng)
        return next((i for i, value in enumerate(entries(data)) if asked.ask(value)), None)


class Round(PaidOnce):
    """One run of AboveThreshold: it has its own threshold noise, and ends at the first yes."""

    def __init__(self, mechanism: AboveThreshold, rng: random.Rng) -> None:
        super().__init__()
        self._mechanism, self._noise, self._rng = mechanism, mechanism._noise, rng
        self._bar = self._noise.steps(mechanism.threshold) + int(random.laplace_cells(self._noise.threshold, (), rng))
        self.over = False
        self.reproducible = rng.reproducible

    @one_at_a_time
    def ask(self, value: Any) -> bool:
        """Whether ``value`` was found above the threshold. After a yes the round is over."""
        if self.over:
            raise ValueError("The round is over: it ends at its positive answer. Start, and charge, another.")
        steps = self._noise.steps(value)
        self.over = draw_output(
            self._mechanism,
            np.array([steps], object),
            "linf",
            self._noise.reach,
            lambda: steps + int(random.laplace_cells(self._noise.query, (), self._rng)) >= self._bar,
            once=self,
        )  # all questions of a round are paid for together
        return self.over


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector(Mechanism[list[int]]):
    """Answers threshold questions with up to ``max_positives`` yeses; each yes costs ``epsilon``, a no costs nothing.

    A composition of rounds of ``AboveThreshold``, each with fresh threshold noise. With a book, every round is
    charged before it begins, so a session whose questions all come back "no" has paid for one round only.

    Guarantee: max_positives × epsilon-DP; with a book, what was charged (under a filter, since the number of rounds
    depends on the answers).
    Reference: Dwork and Roth (2014), Section 3.6.

    >>> mechanism = SparseVector(threshold=100.0, sensitivity=1.0, epsilon=2.0, max_positives=2)
    >>> mechanism.release([3.0, 500.0, 7.0, 900.0, 950.0], rng=1).value
    [1, 3]
    """

    threshold: float
    max_positives: int
    sensitivity: float = 1.0
    epsilon: float = 1.0
    monotone: bool = False
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        store(
            self,
            max_positives=whole("max_positives", self.max_positives, low=1),
            adjacency=self.adjacency,
            epsilon=positive("epsilon", self.epsilon),
        )
        assert self.round

    @property
    def round(self) -> AboveThreshold:
        """What runs from one yes to the next."""
        return AboveThreshold(
            threshold=self.threshold,
            sensitivity=self.sensitivity,
            epsilon=self.epsilon,
            monotone=self.monotone,
            adjacency=self.adjacency,
            unit=self.unit,
        )

    @property
    def event(self) -> events.Event:
        """The cost of a whole session."""
        return self.round.event * self.max_positives

    def error(self, confidence: float = 0.95, *, size: int) -> float:
        """As for ``AboveThreshold``, over all ``size`` answers and every round's threshold noise."""
        missed = (1 - number("confidence", confidence, low=0, high=1, open_high=True)) / self.max_positives
        return self.round.error(1 - missed, size=size)

    def start(
        self, rng: random.RngLike = None, book: Chargeable | None = None, label: str = "sparse vector"
    ) -> ThresholdSession:
        """A session of questions; ``book`` is charged for each round before it begins."""
        return ThresholdSession(self, random.as_rng(rng), book, label)

    def check(self, data: Any) -> None:
        """Refuse what is publicly no sequence of numbers."""
        check_column(data)

    def draw(self, data: Iterable[Any], rng: random.Rng) -> list[int]:
        """The positions of the values found above the threshold, at most ``max_positives`` of them."""
        session, found = self.start(rng), []
        for i, value in enumerate(entries(data)):
            if session.over:
                break
            if session.ask(value):
                found.append(i)
        return found


class ThresholdSession(PaidOnce):
    """A run of the sparse vector technique."""

    def __init__(self, mechanism: SparseVector, rng: random.Rng, book: Chargeable | None, label: str) -> None:
        super().__init__()
        self._mechanism, self._rng, self._book, self._label = mechanism, rng, book, label
        self._round: Round | None = None
        self.positives = 0
        self.reproducible = rng.reproducible

    @property
    def over(self) -> bool:
        """Whether every yes has been given."""
        return self.positives == self._mechanism.max_positives

    @one_at_a_time
    def ask(self, value: Any) -> bool:
        """Whether ``value`` was found above the threshold. A new round is charged first, and may be refused."""
        if self.over:
            raise ValueError(f"The session is over: it has given its {self.positives} positive answers.")
        if self._round is None or self._round.over:
            pay(self._mechanism.round, self._book, self._label, reproducible=self.reproducible)
            self._round = self._mechanism.round.start(self._rng)
        answer = self._round.ask(value)
        self.positives += answer
        return answer
