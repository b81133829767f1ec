r"""The shape of a column from noisy counts: a tree of intervals, from the top, that opens where records are.

The line is cut into halves, quarters and so on towards zero (bounds are often far beyond most numbers, and noise far
out moves a mean most), each part with enough records into sixteen, those again, down to single numbers (or to a 4,096th
of the bounds). The parts of one depth are disjoint, so a record is in one of them at most: each depth is one
histogram of L2 sensitivity 1. All depths of a column share its budget, each with half of the one above, since what is
wrong there moves numbers furthest; which parts are opened follows from noisy counts alone. Numbers that are exactly a
bound or zero are parts of their own: clipping and "nothing" put many records there, and those at a far bound may be
most of a mean. They are counted again at each depth, which costs nothing more; fewer than 2σ are none.

Of a part with weight c and k children the noisy counts y are shifted to the sum c, drawn towards equal shares by James
and Stein's factor 1 - (k - 1)σ²/‖y - c/k‖² (zero where noise could explain all of it), and projected to what is
possible: none below zero, c in all. At the first depth counts below 2σ are none. So a smooth column at a small budget
stays smooth, a spike stays a spike, and a long tail ends where the budget no longer sees it.

Reference: Hay, Rastogi, Miklau and Suciu (2010) for histograms by trees; Zhang, Xiao and Xie (2016, PrivTree) for trees
that open where records are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.schema import Bounded
from discreet.synthesis.column_shape import Shape, ends
from discreet.synthesis.spending import Spending

__all__ = ["ColumnGrid", "measure_shape"]

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
_BRANCHES = 16
_STEPS = 4096  # of a column that is not of whole numbers
_MOST_STEPS = _BRANCHES**5
_ENOUGH = 3.0  # standard deviations of its children's noise: a part with less is not opened
_CERTAIN = 2.0  # standard deviations of the noise: fewer at a point, or beside certain parts, are none
_MOST_OPEN = 4096  # parts of one depth


@dataclass(frozen=True)
class ColumnGrid:
    """The finest steps of a column, and the numbers that are looked at by themselves: public facts."""

    column: Bounded
    is_whole: bool

    @cached_property
    def boundaries(self) -> Floats:
        """Where the steps begin and end; fewer where doubles between the bounds are few."""
        low, high = ends(self.column, self.is_whole)
        if not self.is_whole:
            return np.unique(np.linspace(low, high, _STEPS + 1))
        unit = max(1.0, float(math.ceil((high - low) / _MOST_STEPS)))
        return np.unique(np.append(np.arange(low, high, unit), high))

    @cached_property
    def points(self) -> tuple[float, ...]:
        """The bounds and zero, where there are other numbers between."""
        low, high = self.column.low, self.column.high
        if self.is_whole:
            low, high = math.ceil(low), math.floor(high)
        few = 2.0**53 if self.is_whole else 1e9 * (high - low)  # beyond, a number and the next one are hard to tell
        if self.steps <= _BRANCHES or max(abs(low), abs(high)) >= few:
            return ()
        return tuple(sorted({float(low), float(high), *([0.0] if low < 0 < high else [])}))

    def atom(self, point: float) -> tuple[float, float]:
        """The leaf of a point alone: the upper bound's ends there where numbers are not whole, others begin there."""
        if self.is_whole:
            return point, point + 1
        below = point == self.column.high
        return (math.nextafter(point, -math.inf), point) if below else (point, math.nextafter(point, math.inf))

    @property
    def steps(self) -> int:
        """How many there are."""
        return len(self.boundaries) - 1

    @cached_property
    def blocks(self) -> Places:
        """Where the parts of the first depth begin and end, in steps: halves, quarters, … towards zero, or towards the
        bound that is nearer to it.
        """
        nearest = int(np.argmin(np.abs(self.boundaries)))
        sides = [
            [0, *(2 ** np.arange(_bits(length)) * length // 2 ** _bits(length)), length]
            for length in (nearest, self.steps - nearest)
        ]
        return np.unique([*(nearest - np.array(sides[0])), *(nearest + np.array(sides[1]))])

    @property
    def depth(self) -> int:
        """How often parts are cut until they are steps."""
        widest = int(np.diff(self.blocks).max())
        return 1 + math.ceil(math.log(widest, _BRANCHES) - 1e-9)

    def counts(self, numbers: Floats, weights: Places) -> tuple[Places, Places]:
        """The weight of the numbers in each step that are no point, and of those at each point; NaN is nowhere."""
        points = np.array([weights[numbers == point].sum() for point in self.points], np.int64)
        others = ~np.isnan(numbers) & ~np.isin(numbers, self.points)
        step = np.searchsorted(self.boundaries, numbers[others], side="right") - 1
        counts = np.zeros(self.steps, np.int64)
        np.add.at(counts, np.clip(step, 0, self.steps - 1), weights[others])
        return counts, points


def measure_shape(
    grid: ColumnGrid,
    numbers: Floats,
    spending: Spending,
    rho: float,
    row_weights: Places | None = None,
    one: int = 1,
) -> Shape:
    """The shape of some numbers; ``rho`` is spent in all, half as much at each depth as at the one above.

    The whole ``row_weights`` of a unit's numbers, if given, add up to at most ``one``, which counts as one record.
    """
    steps, points = grid.counts(numbers, np.ones(len(numbers), np.int64) if row_weights is None else row_weights)
    below = np.append(0, np.cumsum(steps))  # records below each step
    parts = 2.0 ** -np.arange(grid.depth)
    shares = [float(share) for share in rho * (1 - 2.0**-40) * parts / parts.sum()]
    leaves, children = list[tuple[int, int, float]](), [grid.blocks]
    weights: Any = np.full(1, math.nan)
    at_points, paid = np.zeros(len(points)), 0.0
    for depth, share in enumerate(shares):
        starts = np.concatenate([cuts[:-1] for cuts in children])
        stops = np.concatenate([cuts[1:] for cuts in children])
        exact, noise = below[stops] - below[starts], spending.deviation(share)
        noisy = spending.counts(np.append(points, exact), share, one)
        at_points, paid, noisy = at_points + share * noisy[: len(points)], paid + share, noisy[len(points) :]
        if depth == 0:
            weights, noisy = np.array([max(float(noisy.sum()), noise)]), _only_certain(noisy, noise)
        found = _settle_children(noisy, children, weights, noise)
        enough = math.inf if depth == grid.depth - 1 else _ENOUGH * spending.deviation(shares[depth + 1])
        is_open = (found >= enough) & (stops - starts > 1)
        is_open[np.argsort(-found, kind="stable")[_MOST_OPEN:]] = False
        leaves += zip(starts[~is_open].tolist(), stops[~is_open].tolist(), found[~is_open].tolist(), strict=True)
        children = [_cuts(*part) for part in zip(starts[is_open].tolist(), stops[is_open].tolist(), strict=True)]
        weights = found[is_open]
        if not children:
            break
    at_points = at_points / paid
    certain = at_points >= _CERTAIN * spending.deviation(paid)
    return _as_shape(grid, leaves, np.where(certain, at_points, 0.0))


def _bits(length: int) -> int:
    """How often a length is halved until it is one."""
    return max(length - 1, 0).bit_length()


def _cuts(start: int, end: int) -> Places:
    """Steps at which a part is cut into sixteen, or into as many as it has."""
    return np.unique(np.linspace(start, end, min(_BRANCHES, end - start) + 1).astype(np.int64))


def _settle_children(noisy: Floats, children: list[Places], weights: Floats, noise: float) -> Floats:
    """What each parent's children weigh, by their noisy counts and the parent's weight."""
    families = np.split(noisy, np.cumsum([len(cuts) - 1 for cuts in children])[:-1])
    return np.concatenate([_settle(part, float(w), noise) for part, w in zip(families, weights, strict=True)])


def _only_certain(noisy: Floats, noise: float) -> Floats:
    """Counts that noise alone would rarely give, if there are any; of the others, none."""
    certain = noisy >= _CERTAIN * noise
    return np.where(certain, noisy, 0.0) if certain.any() else noisy


def _settle(noisy: Floats, weight: float, noise: float) -> Floats:
    """Noisy counts as shares of a weight: drawn towards equal ones, none below zero."""
    away = noisy - noisy.mean()
    square = float(away @ away)
    kept = max(0.0, 1 - (len(noisy) - 1) * noise**2 / square) if square > 0 else 0.0
    return _project(weight / len(noisy) + kept * away, weight)


def _project(values: Floats, total: float) -> Floats:
    """The nearest non-negative numbers of this sum: all are lowered by as much, and what is below zero is zero."""
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(falling > over)[-1])
    return np.asarray(np.maximum(values - over[last], 0.0))


def _as_shape(grid: ColumnGrid, leaves: list[tuple[int, int, float]], at_points: Floats) -> Shape:
    leaves.sort()
    edges: Any = grid.boundaries[[start for start, _, _ in leaves] + [grid.steps]]
    weights = np.array([weight for _, _, weight in leaves])
    if grid.points:
        edges, weights = _with_points(grid, edges, weights, at_points)
    return Shape(tuple(edges.tolist()), tuple(weights.tolist()), grid.is_whole)


def _with_points(grid: ColumnGrid, edges: Floats, weights: Floats, at_points: Floats) -> tuple[Floats, Floats]:
    """The same leaves, with a leaf of its own for each point."""
    atoms = [grid.atom(point) for point in grid.points]
    finer = np.unique(np.append(edges, atoms))
    found = np.diff(np.interp(finer, edges, np.append(0.0, np.cumsum(weights))))
    found[np.searchsorted(finer, [start for start, _ in atoms])] = at_points
    return finer, np.maximum(found, 0.0)
