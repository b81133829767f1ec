"""Which groups may be named at all, when their names are private: noise on every count, and a threshold."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.errors import number, whole
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.records import entries
from discreet.mechanisms.thresholds import exceeding, noise_tail
from discreet.mechanisms.values import exact_number
from discreet.random.tap import draw_output

__all__ = ["KeySelection"]

_SLACK = 1 + Fraction(1, 1 << 40)


@dataclass(frozen=True)
class KeySelection(Mechanism[dict[Any, int]]):
    r"""Noisy counts of the groups whose noisy count exceeds a threshold, where a unit has ``rows`` rows in ``groups``
    groups.

    Law: discrete Laplace noise of scale rows/ε on the count of every group that has rows; a group is shown if its noisy
    count exceeds τ.

    Guarantee: (epsilon, delta)-DP. Groups with rows on both sides differ by at most ``rows`` in L1, which costs
    epsilon. A unit alone in j ≤ ``groups`` groups is shown there with probability at most delta: the tail of the noise
    is convex in a group's count, so the worst division of its rows is one group with rows - j + 1 and the others with
    one each, and τ is the least whole number for which the sum of their tails is at most delta, for every j.

    Reference: Korolova et al. (2009); for several groups a unit, Desfontaines et al. (2022).

    >>> KeySelection(epsilon=1.0, delta=1e-6).threshold
    14
    >>> shown = KeySelection(epsilon=1.0, delta=1e-6).release({("a",): 100, ("b",): 1}, rng=1).value
    >>> list(shown)
    [('a',)]
    """

    epsilon: float
    delta: float
    rows: int = 1
    groups: int = 1

    def __post_init__(self) -> None:
        number("epsilon", self.epsilon, low=2.0**-40, high=2.0**10)
        number("delta", self.delta, low=1e-300, high=1, open_high=True)
        whole("rows", self.rows, low=1)
        whole("groups", self.groups, low=1)

    @cached_property
    def scale(self) -> float:
        """The scale of the noise on a count."""
        return math.nextafter(float(_SLACK * self.rows / Fraction(self.epsilon)), math.inf)

    @cached_property
    def threshold(self) -> int:
        """The noisy count that must be exceeded."""
        allowed = Fraction(self.delta) / _SLACK
        low, high = (
            self.rows - 1,
            self.rows + max(1, math.ceil(self.scale * (math.log(4 * self.groups) - math.log(self.delta)))),
        )
        while self._leak(high) > allowed:
            high *= 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._leak(middle) <= allowed else (middle, high)
        return high

    def _leak(self, threshold: int) -> Fraction:
        """The chance that any group of a lone unit is shown, at most."""
        most = min(self.groups, self.rows)
        single = noise_tail(self.scale, threshold - 1)
        return max(noise_tail(self.scale, threshold - (self.rows - j + 1)) + (j - 1) * single for j in _some(most))

    @property
    def event(self) -> events.ApproxDP:
        """The cost."""
        spent = Fraction(self.rows) / Fraction(self.scale)
        return events.ApproxDP(
            epsilon=math.nextafter(float(spent), math.inf), delta=float(Fraction(self.delta) / _SLACK)
        )

    def error(self, confidence: float = 0.95) -> float:
        """The size at which a group is shown with this confidence."""
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        return self.threshold + 1 + self.scale * max(0.0, math.log(1 / (2 * (1 - confidence))))

    def check(self, data: Any) -> None:
        """Refuse what is publicly no mapping from groups to counts."""
        if isinstance(data, type) or not callable(getattr(data, "items", None)) or hasattr(type(data), "columns"):
            raise ValueError(f"counts is a {type(data).__name__}, but must be a mapping from each group to its count.")

    def interval(self, counts: NDArray[np.int64], confidence: float = 0.95) -> NDArray[np.float64]:
        """Ends between which the counts without noise of groups that are shown lie, each with this confidence.

        That a group is shown tells of its noise: of one whose count is at most the threshold, the noisy count is beyond
        it by a number that does not depend on the count at all. So m is within if of the noisy counts of a group of m
        rows *that is shown*, no fewer than (1 - confidence)/2 are as large, and as small, as the one that was seen.
        """
        seen, half = np.asarray(counts, np.float64), (1 - confidence) / 2
        reach = math.ceil(self.scale * (4 - math.log(half)))  # further than either end

        def beyond(x: NDArray[np.float64]) -> NDArray[np.float64]:  # Pr[N > x]
            tail = np.exp(-(np.maximum(x, -1 - x) + 1) / self.scale) / (1 + math.exp(-1 / self.scale))
            return np.where(x >= 0, tail, 1 - tail)

        def as_large(m: NDArray[np.float64]) -> NDArray[np.bool_]:
            return np.asarray(beyond(seen - 1 - m) >= half * beyond(self.threshold - m))

        def as_small(m: NDArray[np.float64]) -> NDArray[np.bool_]:
            shown = beyond(self.threshold - m)
            return np.asarray(shown - beyond(seen - m) >= half * shown)

        low = _first(as_large, np.maximum(seen - reach, 0.0), seen)
        high = _first(lambda m: ~as_small(m), seen, seen + reach + self.threshold) - 1
        return np.stack([np.where(as_large(np.ones_like(seen)), 1.0, np.maximum(low, 1.0)), high], axis=1)

    def draw(self, data: Mapping[Any, int], rng: random.Rng) -> dict[Any, int]:
        """Shown groups with their noisy counts, in an order that depends on their names alone."""
        # In an order of their own before noise is drawn: engines list groups in any order, and a seed should mean one
        # answer.
        groups = zip(data.keys(), entries(data), strict=True) if hasattr(data, "to_list") else data.items()
        exact = {key: math.floor(exact_number(count)) for key, count in groups}
        counts = dict(sorted(exact.items(), key=lambda item: repr(item[0])))

        return draw_output(self, counts, "l1", self.rows, lambda: exceeding(counts, self.scale, self.threshold, rng))


def _first(
    holds: Callable[[NDArray[np.float64]], NDArray[np.bool_]], low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The first whole numbers above ``low`` for which something holds, that holds from some number up to ``high``."""
    low, high = low.copy(), high.copy()
    while np.any(high - low > 1):
        middle = np.floor((low + high) / 2)
        held = holds(middle)
        high, low = np.where(held, middle, high), np.where(held, low, middle)
    return high


def _some(most: int) -> range:
    # The sum of tails is convex in j too (an exponential falling, a line rising): its ends decide.
    return range(1, most + 1, max(1, most - 1))
