"""The shape of a bounded column: how its numbers lie within the cells of the model, with point masses.

A shape is a histogram of many narrow leaves, [edge, next edge) each, and weights that were measured privately or are
uniform. A leaf of one number is an *atom*: of a column of whole numbers, a leaf one wide; of others, a leaf that ends
at the very next double. Numbers of a cell are drawn by the leaves inside it, uniformly within a leaf; whole columns
have the leaves [v, v + 1), and a number drawn there is v.

>>> shape = Shape((0.0, 1.0, 10.0), (9.0, 1.0), is_whole=True)   # nine tenths are zeros
>>> shape.share((0.0,), (5.0,)).round(3).tolist(), shape.cut(4, least=0.5)
([0.944], (0.0, 1.0, 6.0, 10.0))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.random import Rng
from discreet.schema import Bounded

__all__ = ["Shape", "ends", "spans", "uniform_shape"]

Floats = NDArray[np.float64]
_DIGITS, _MOST_DIGITS = 5, 300
_FLOOR = 1e-9  # of the weight is spread evenly, so that no cell is without numbers


@dataclass(frozen=True)
class Shape:
    """Leaves between rising edges, and their weights."""

    edges: tuple[float, ...]
    weights: tuple[float, ...]
    is_whole: bool

    def __post_init__(self) -> None:
        edges, weights = np.array(self.edges), np.array(self.weights)
        if len(edges) != len(weights) + 1 or not (np.diff(edges) > 0).all() or not np.isfinite(edges).all():
            raise ValueError("a shape needs rising edges, one more than weights")
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise ValueError("a shape needs finite weights of at least zero")

    @cached_property
    def _edges(self) -> Floats:
        return np.array(self.edges)

    @cached_property
    def _cumulative(self) -> Floats:
        """The share of numbers below each edge; it rises everywhere."""
        widths = np.diff(self._edges) / (self._edges[-1] - self._edges[0])
        weights = np.array(self.weights)
        shares = weights / weights.sum() if weights.sum() > 0 else widths
        return np.append(0.0, np.cumsum((1 - _FLOOR) * shares + _FLOOR * widths))

    @cached_property
    def atoms(self) -> NDArray[np.bool_]:
        """Which leaves hold one number alone."""
        low, high = self._edges[:-1], self._edges[1:]
        return np.asarray(high - low == 1 if self.is_whole else high <= np.nextafter(low, math.inf))

    def below(self, ends: Any) -> Floats:
        """The share of numbers below each of some ends."""
        return np.asarray(np.interp(ends, self._edges, self._cumulative))

    def share(self, low: Any, high: Any) -> Floats:
        """The share of numbers in each [low, high)."""
        return np.maximum(self.below(high) - self.below(low), 0.0)

    def draw(self, low: Floats, high: Floats, rng: Rng) -> Floats:
        """A number of each [low, high)."""
        part = (rng.words(len(low)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        first, last = self.below(low), self.below(high)
        leaf = np.searchsorted(self._cumulative, first + part * (last - first), side="right") - 1
        leaf = np.clip(leaf, 0, len(self.weights) - 1)
        start, end = np.maximum(self._edges[leaf], low), np.minimum(self._edges[leaf + 1], high)
        inside = (rng.words(len(low)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        drawn = start + inside * (end - start)
        if self.is_whole:
            return np.asarray(np.clip(np.floor(drawn), low, high - 1))
        atom = np.where(self._edges[leaf + 1] == self._edges[-1], self._edges[leaf + 1], self._edges[leaf])
        return np.where(self.atoms[leaf], atom, self._short(np.clip(drawn, low, high), low, high))

    def _short(self, numbers: Floats, low: Floats, high: Floats) -> Floats:
        """Numbers with as many decimals as a 100,000th of the bounds has, where that leaves them in [low, high): what
        was measured is coarser, and further digits would only look exact.
        """
        digits = _DIGITS - math.floor(math.log10(self._edges[-1] - self._edges[0]))
        if abs(digits) > _MOST_DIGITS:
            return numbers
        unit = 10.0**-digits
        nearest, below = np.round(numbers, digits), np.round(np.floor(numbers / unit) * unit, digits)
        tried = [nearest, below, np.round(below + unit, digits)]
        return np.select([(low <= short) & (short < high) for short in tried], tried, numbers) + 0.0  # -0.0 is 0.0

    def cut(self, count: int, least: float) -> tuple[float, ...]:
        """Edges of at most ``count`` cells: heavy atoms are alone, the rest has cells of about equal weight, no lighter
        than ``least``. An atom of half of ``least`` is heavy by its records or by its part of the variance: few
        records at a far bound may be most of a mean.
        """
        weights = np.array(self.weights)
        parts = np.maximum(weights / max(weights.sum(), 1e-300), self._parts_of_variance())
        heavy = np.flatnonzero(self.atoms & (parts >= 1 / count) & (weights >= least / 2))
        heavy = heavy[np.argsort(-parts[heavy], kind="stable")][: (count - 1) // 2]
        alone = {end for leaf in heavy for end in (self.edges[leaf], self.edges[leaf + 1])}
        rest = np.append(0.0, np.cumsum(np.where(np.isin(np.arange(len(weights)), heavy), 0.0, weights)))
        edges = sorted({self.edges[0], self.edges[-1], *alone})
        for parts in range(min(count, int(rest[-1] / least)) if least > 0 else count, 1, -1):
            inner = self._edges_at(rest, rest[-1] * np.arange(1, parts) / parts)
            found = sorted({self.edges[0], self.edges[-1], *alone, *inner})
            if len(found) <= count + 1:
                return tuple(found)
        return tuple(edges)

    def _parts_of_variance(self) -> Floats:
        """The share of the column's variance that each leaf brings, as if its numbers lay in its middle."""
        weights = np.diff(self._cumulative)
        middle = self._edges[:-1] / 2 + self._edges[1:] / 2
        reach = float(self._edges[-1] - self._edges[0])  # divided by, so that no square is too large
        squares = weights * ((middle - weights @ middle) / reach) ** 2
        return np.asarray(squares / max(float(squares.sum()), 1e-300))

    def _edges_at(self, cumulative: Floats, goals: Floats) -> list[float]:
        """Where a cumulative weight passes each goal; whole columns are cut at whole numbers, atoms not at all."""
        leaf = np.clip(np.searchsorted(cumulative, goals, side="left") - 1, 0, len(self.weights) - 1)
        low, high = self._edges[leaf], self._edges[leaf + 1]
        width = np.maximum(cumulative[leaf + 1] - cumulative[leaf], 1e-300)
        place = low + np.clip((goals - cumulative[leaf]) / width, 0.0, 1.0) * (high - low)
        place = np.where(self.atoms[leaf], high, np.rint(place) if self.is_whole else place)
        return [float(end) for end in place if self.edges[0] < end < self.edges[-1]]


def uniform_shape(column: Bounded, is_whole: bool) -> Shape:
    """Nothing is known but the bounds."""
    return Shape(ends(column, is_whole), (1.0,), is_whole)


def ends(column: Bounded, is_whole: bool) -> tuple[float, float]:
    """Where the leaves of a column begin and end."""
    low, high = column.low, column.high
    return (float(math.ceil(low)), float(math.floor(high) + 1)) if is_whole else (low, high)


def spans(column: Bounded, edges: Sequence[float], is_whole: bool) -> tuple[Floats, Floats]:
    """Where the numbers of each cell lie: [low, high). A cell of a whole column without any stands for the next one."""
    inside = np.clip(np.array(edges), column.low, column.high)
    if not is_whole:
        return inside[:-1], inside[1:]
    most = math.floor(column.high)
    first = np.minimum(np.ceil(inside[:-1]), most)
    last = np.append(np.ceil(inside[1:-1]) - 1, most)
    return first, np.maximum(first, last) + 1
