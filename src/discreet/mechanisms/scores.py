"""Scores on a grid: what every selection mechanism looks at instead of floats.

A score is rounded to a multiple of a power of two, γ; a change of at most Δ becomes a whole number of at most
D = ⌊Δ/γ⌋ + 1 steps. The noise or weight is then a function of whole numbers: exp(-gap/t) with t = ⌈factor·D/ε⌉
steps, so the privacy loss is at most factor·D/t ≤ ε by integer arithmetic, with no float in between. γ is about
2^-32 of factor·Δ/ε, the score difference that matters; the rounding costs less than that fraction of the utility.

Decision 12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.adjacency import Adjacency
from discreet.errors import number, positive
from discreet.mechanisms.grid import above, floor_log2, in_range, power, wide
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import slack, store
from discreet.mechanisms.values import LARGEST, check_numbers, exact_number, numbers

__all__ = ["ScoreGrid", "ScoreSelection"]

T = TypeVar("T")

_BITS = 32
_SAFE = 1 << 61  # beyond this many steps, scores are handled as Python integers


@dataclass(frozen=True, slots=True)
class ScoreGrid:
    """Scores in steps of 2^``exponent``, sensitivity ``reach`` steps, weights exp(-gap/``scale``)."""

    exponent: int
    reach: int
    scale: int
    factor: int

    @staticmethod
    @lru_cache(maxsize=1024)
    def paying(sensitivity: float, epsilon: float, factor: int) -> ScoreGrid:
        """The grid on which ``factor`` times the sensitivity costs at most ``epsilon``."""
        delta = Fraction(in_range("sensitivity", sensitivity))
        budget = Fraction(number("epsilon", epsilon, low=2.0**-40, high=2.0**10))
        exponent = floor_log2(factor * delta / budget) - _BITS
        reach = math.floor(delta / power(exponent)) + 1
        return ScoreGrid(exponent, reach, math.ceil(slack * factor * reach / budget), factor)

    @property
    def epsilon(self) -> float:
        """What selection on this grid costs, rounded up."""
        return above(Fraction(self.factor * self.reach, self.scale))

    @property
    def step(self) -> Fraction:
        """The size of a grid step."""
        return power(self.exponent)

    def steps(self, value: Any) -> int:
        """One score as a whole number of steps; what is no number is the lowest of all."""
        return round(exact_number(value, -LARGEST) / self.step)

    def on_grid(self, scores: Any) -> NDArray[Any]:
        """Scores in whole steps, as doubles or, where one would be rounded, exactly: what replay compares."""
        array = _scores(scores)
        if array.dtype != object and not wide(array):
            with np.errstate(over="ignore"):
                steps = np.rint(array.astype(np.float64) / float(self.step))
            if np.isfinite(steps).all():
                return np.asarray(steps)
        return np.array([self.steps(x) for x in array.tolist()], object)

    def gaps(self, scores: Any, offsets: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """How many steps each score (plus its public offset) lies below the best, cut at 2^61.

        Cutting keeps the sensitivity: it replaces a score by the larger of itself and the best minus a constant,
        and both of these move by at most ``reach``.
        """
        array = _scores(scores)
        _check_line(array.shape)
        mixed = array.dtype == object
        step = float(self.step)
        exact = 2.0**53 if array.dtype.kind in "iu" else math.inf  # larger integers are no exact doubles
        if not mixed and np.abs(array.astype(np.float64)).max() < min(_SAFE // 2 * step, exact):
            placed = self.on_grid(array).astype(np.int64)
            placed = placed if offsets is None else placed + offsets
            return np.asarray(np.minimum(placed.max() - placed, _SAFE), dtype=np.int64)
        whole = [self.steps(x) for x in array.tolist()]
        whole = whole if offsets is None else [w + int(o) for w, o in zip(whole, offsets, strict=True)]
        best = max(whole)
        return np.array([min(best - w, _SAFE) for w in whole], np.int64)


def _scores(scores: Any) -> NDArray[Any]:
    """Finite scores; what is no number is the lowest of all."""
    return numbers(scores, missing=-LARGEST)


def _check_line(shape: tuple[int, ...]) -> int:
    """How many scores there are."""
    if len(shape) != 1 or not shape[0]:
        raise ValueError(f"scores has shape {shape}, but must be one-dimensional with at least one entry.")
    return shape[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreSelection(Mechanism[T]):
    """A choice by scores, each of which one record moves by at most ``sensitivity``; ``monotone``: all the same way."""

    sensitivity: float = 1.0
    epsilon: float = 1.0
    monotone: bool = False
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        store(self, epsilon=positive("epsilon", self.epsilon), adjacency=self.adjacency, monotone=bool(self.monotone))
        store(self, sensitivity=float(self.sensitivity) if self._grid else 0.0)

    def check(self, data: Any) -> None:
        """Refuse what is publicly no line of scores, or has too few of them."""
        self._check_count(_check_line(check_numbers(data, "scores")))

    def _check_count(self, count: int) -> None:
        """Refuse a public number of scores that does not suit."""

    @property
    def _grid(self) -> ScoreGrid:
        return ScoreGrid.paying(self.sensitivity, self.epsilon, 1 if self.monotone else 2)
