r"""Propose-test-release: answer well on data where that is safe, and say nothing elsewhere.

Call a data set *safe* if the base algorithm's answers on it and on each of its neighbours are as close as the base
event says. Let d(x) be the distance from x to the nearest unsafe data set, in records, or any lower bound of it that
is 0 on unsafe data and that one record changes by at most 1. The test adds discrete Laplace noise of scale 1/ε to
⌊d(x)⌋ (rounding down keeps "at most 1") and passes above a threshold that noise alone reaches with probability ≤ δ.

Guarantee. If x is safe, test and base compose: ε for the test plus the base event. If x is unsafe, d(x) = 0 and the
test passes with probability at most δ, so the pair is (ε, δ)-close whatever the base algorithm does. Both cases are
covered by ``ApproxDP(ε, δ) + base_event``.

Reference: Dwork and Lei (2009); Vadhan (2017), Section 3.2. See ``stable_mode``, ``clustered_mean``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.errors import number
from discreet.mechanisms.grid import above
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import slack, spent_delta, store
from discreet.mechanisms.thresholds import exceeding, least_threshold
from discreet.mechanisms.values import exact_number
from discreet.random.tap import draw_output

__all__ = ["NOTHING", "ProposeTestRelease"]

T = TypeVar("T")
NOTHING = events.Composed(events=())  # the cost of a base algorithm that is constant around safe data
_FAR = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposeTestRelease(Mechanism[T | None], Generic[T]):
    r"""Runs a base algorithm only if a private test says that the data is far from unsafe; otherwise answers ``None``.

    ``distance`` says how far data are from unsafe (what is no number is not far), ``base`` answers and makes its own
    noise. ``epsilon`` and ``delta`` pay for the test; ``base_event`` for the base algorithm on safe data (nothing, if
    there it does not depend on any one record).

    >>> test = ProposeTestRelease(epsilon=1.0, delta=1e-6)
    >>> test.threshold, test.event.epsilon <= 1.0
    (13, True)
    >>> far, near = (ProposeTestRelease(epsilon=1.0, delta=1e-6, distance=lambda x, d=d: d, base=str.upper)
    ...              for d in (1000, 0))
    >>> far.release("data", rng=1).value, near.release("data", rng=1).value
    ('DATA', None)
    """

    epsilon: float
    delta: float
    base_event: events.Event = NOTHING
    distance: Callable[[Any], Any] | None = field(default=None, repr=False)
    base: Callable[[Any], T] | None = field(default=None, repr=False)
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        store(
            self,
            epsilon=number("epsilon", self.epsilon, low=2.0**-40, high=2.0**10),
            adjacency=self.adjacency,
            delta=number("delta", self.delta, low=0, high=1, open_low=True, open_high=True),
        )
        assert self.threshold >= 0  # found, and kept, before anything is charged

    @property
    def scale(self) -> float:
        """The scale of the test's noise, in records."""
        return above(slack / Fraction(self.epsilon))

    @property
    def threshold(self) -> int:
        """The noisy distance that must be exceeded: noise alone does so with probability at most delta."""
        return least_threshold(self.scale, Fraction(spent_delta(self.delta)))

    @property
    def event(self) -> events.Event:
        """The cost of the test and, on safe data, of the base algorithm."""
        return self._test_event if self.base_event == NOTHING else self._test_event + self.base_event

    @property
    def _test_event(self) -> events.ApproxDP:
        return events.ApproxDP(
            epsilon=above(1 / Fraction(self.scale)), delta=spent_delta(self.delta), adjacency=self.adjacency
        )

    def error(self, confidence: float = 0.95) -> float:
        """The distance from unsafe data at which there is an answer with this confidence."""
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        return self.threshold + 1 + self.scale * max(0.0, math.log(1 / (2 * (1 - confidence))))

    def check(self, data: Any) -> None:
        """Refuse a test of nothing."""
        self._parts()

    def _parts(self) -> tuple[Callable[[Any], Any], Callable[[Any], T]]:
        if self.distance is None or self.base is None:
            raise ValueError("distance= or base= is missing, but both are needed to test data and answer.")
        return self.distance, self.base

    def draw(self, data: Any, rng: random.Rng) -> T | None:
        """``base(data)`` if the noisy ``distance(data)`` passes, otherwise ``None``."""
        distance, base = self._parts()
        try:
            far = distance(data)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(
                "distance failed on the data, but must give a number of at least 0 for every data set."
            ) from None
        steps = math.floor(max(Fraction(0), min(Fraction(_FAR), exact_number(far))))

        def passes() -> bool:
            return bool(exceeding({"distance": steps}, self.scale, self.threshold, rng))

        if self.base_event == NOTHING:  # test and answer are one output: replay must not ask unsafe data for theirs
            return draw_output(self, np.array([steps]), "linf", 1, lambda: base(data) if passes() else None)
        return base(data) if draw_output(self, np.array([steps]), "linf", 1, passes, event=self._test_event) else None
