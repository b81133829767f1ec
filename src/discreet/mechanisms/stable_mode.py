"""The mode, released exactly where it is stable: propose-test-release on counts, over any domain.

A noisy histogram needs the list of possible values; this needs none, not even a finite domain, because only the two
largest counts matter. In exchange it needs delta, and a lead of about ln(1/delta)/epsilon records. On small domains or
with small leads, ``NoisyMax`` on the histogram is better; ``experiments/ptr_mode.py`` shows where they cross.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.errors import choice
from discreet.mechanisms.canonical import keys
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import store
from discreet.mechanisms.propose_test_release import ProposeTestRelease
from discreet.mechanisms.records import check_line

__all__ = ["StableMode"]

Ranked = list[tuple[Any, int]]  # the two largest counts, and whose they are


@dataclass(frozen=True, slots=True, kw_only=True)
class StableMode(Mechanism[Any]):
    """The most frequent value, or ``None`` if its lead may be too small.

    Let G be the lead of the largest count over the second. One record added or removed changes G by 1, and the mode
    can change only if G ≤ 1: the distance to unsafe data is G - 1. One record replaced changes G by 2: ⌈G/2⌉ - 1.
    Equal counts, and empty data, are unsafe. Equal values are one, in the form that ``mechanisms.canonical`` gives all
    of them (NaN is ``"nan"``); a record that has none (a list, an object) is left out.

    Guarantee: (epsilon, delta)-DP; on safe data the answer is constant around it, so the base algorithm is free.
    Reference: Dwork and Lei (2009); Smith and Thakurta (2013) for the distance of a maximum.

    >>> StableMode(epsilon=1.0, delta=1e-6).release(["a"] * 60 + ["b"] * 5, rng=1).value
    'a'
    >>> StableMode(epsilon=1.0, delta=1e-6).release([0.5, 1.5, 2.5], rng=1).value is None
    True
    """

    epsilon: float
    delta: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        store(self, adjacency=self.adjacency)
        store(self, epsilon=self._test.epsilon, delta=self._test.delta)

    @property
    def _test(self) -> ProposeTestRelease[Any]:
        return ProposeTestRelease(
            epsilon=self.epsilon, delta=self.delta, adjacency=self.adjacency, distance=self._distance, base=_first
        )

    @property
    def event(self) -> events.Event:
        """The cost."""
        return self._test.event

    @property
    def _lead_per_change(self) -> int:
        """How far a neighbour moves the lead; a blank record is priced as another value, which is never too little."""
        return choice("adjacency", str(self.adjacency), {"add-remove": 1, "replace": 2, "zero-out": 2})

    def error(self, confidence: float = 0.95) -> float:
        """The lead, in records, at which the mode is answered with this confidence; an answer is exact."""
        distance = self._test.error(confidence)
        return self._lead_per_change * (distance + 1)

    def check(self, data: Any) -> None:
        """Refuse what is publicly no sequence of records."""
        check_line(data)

    def draw(self, data: Sequence[Any], rng: random.Rng) -> Any:
        """The mode of the records, or ``None``."""
        return self._test.draw(Counter(keys(data)).most_common(2), rng)

    def _distance(self, ranked: Ranked) -> int:
        first, second = [count for _, count in ranked] + [0] * (2 - len(ranked))
        lead = first - second
        return -(-lead // self._lead_per_change) - 1


def _first(ranked: Ranked) -> Any:
    return ranked[0][0] if ranked else None
