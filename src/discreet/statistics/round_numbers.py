r"""The candidates of a quantile: a public grid on which round numbers weigh more.

People's numbers are heaped: ages are whole, incomes are multiples of a thousand. On a grid of a million equal
candidates a heap is one of a million, and a small ε chooses beside it. So each precision of decimals (tens, ones,
tenths, …) gets in all the weight that the grid has, shared by its multiples between the bounds: with L precisions a
multiple of the coarsest is about (steps + 1)/(L + 1) times as likely, before any record speaks, as a point of the
grid, and no point of the grid loses more than a factor of L + 1, which the exponential mechanism pays with
ln(L + 1)/ε more ranks of error.

Weights are whole numbers: a point of weight w is a run of w candidates of one score, so what is proved of the choice
among equal candidates (``statistics.ranks``) holds as it stands. They depend on public facts alone.

Reference: McSherry and Talwar (2007), Definition 2: the exponential mechanism with a base measure.

Decision 311.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.statistics.bounded import Bounds, positions

__all__ = ["RoundGrid"]

_MOST_MARKS = 1 << 17  # round numbers of the finest precision: an array of each is kept
_LARGEST = 1 << 53  # multiples beyond this are not all floats


@dataclass(frozen=True, slots=True)
class RoundGrid:
    """The points of ``steps`` equal steps between the bounds, numbered so that round ones have several numbers.

    >>> grid = RoundGrid((0.0, 20.0), 20)
    >>> [grid.value(number) for number in range(grid.size)][:14]  # tens: 0, 10, 20; 21 candidates more
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    """

    bounds: Bounds
    steps: int

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return self.steps + 1 + sum(precision.copies * precision.count for precision in self._precisions)

    def runs(self, records: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first candidate of each record's point, and one beyond its last; a missing record has -1."""
        place = positions(records, self.bounds, self.steps)
        return np.where(place < 0, -1, self._first(place)), np.where(place < 0, -1, self._first(place + 1))

    def value(self, candidate: int) -> float:
        """The number that a candidate stands for."""
        marks = self._marks
        last = int(np.searchsorted(self._first(marks.places), candidate, side="right")) - 1
        if last >= 0 and candidate < self._first(marks.places[last] + 1):
            return float(marks.values[last])
        low, high = self.bounds
        place = candidate - int(marks.before[last + 1])
        return min(high, low + (high - low) * (place / self.steps))

    def _first(self, place: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first candidate of a point of the grid."""
        marks = self._marks
        return np.asarray(place + marks.before[np.searchsorted(marks.places, place, side="left")])

    @property
    def _precisions(self) -> tuple[_Precision, ...]:
        return _precisions_of(self.bounds, self.steps)

    @property
    def _marks(self) -> _Marks:
        return _marks_of(self.bounds, self.steps)


@dataclass(frozen=True, slots=True)
class _Precision:
    """The multiples ``first``·10^power, … of a power of ten, and how many more candidates each of them has."""

    power: int
    first: int
    count: int
    copies: int


@dataclass(frozen=True, slots=True)
class _Marks:
    """Round numbers in rising order: the point of the grid of each, and how many candidates the earlier ones add."""

    values: NDArray[np.float64]
    places: NDArray[np.int64]
    before: NDArray[np.int64]


@lru_cache(maxsize=64)
def _precisions_of(bounds: Bounds, steps: int) -> tuple[_Precision, ...]:
    low, high = map(Fraction, bounds)
    precisions: list[_Precision] = []
    for power in range(math.floor(math.log10(bounds[1] - bounds[0])), -400, -1):
        unit = Fraction(10) ** power
        first, last = math.ceil(low / unit), math.floor(high / unit)
        count = last - first + 1
        if 2 * count > steps or count > _MOST_MARKS or max(-first, last) > _LARGEST:
            break
        if count > 2:  # fewer are no precision, only a place
            precisions.append(_Precision(power, first, count, (steps + 1) // count))
    return tuple(precisions)


@lru_cache(maxsize=4)  # of a few megabytes, at most, each
def _marks_of(bounds: Bounds, steps: int) -> _Marks:
    precisions = _precisions_of(bounds, steps)
    if not precisions:
        return _Marks(np.zeros(0), np.zeros(0, np.int64), np.zeros(1, np.int64))
    finest = precisions[-1]
    multiples = finest.first + np.arange(finest.count)
    copies = np.zeros(finest.count, np.int64)
    for precision in precisions:
        copies[multiples % 10 ** (precision.power - finest.power) == 0] += precision.copies
    unit = 10.0 ** abs(finest.power)  # where that is exact, one rounding, as of a decimal number in a file
    values = np.asarray(multiples * unit if finest.power >= 0 else multiples / unit, np.float64)
    return _Marks(values, positions(values, bounds, steps), np.append(0, np.cumsum(copies)))
