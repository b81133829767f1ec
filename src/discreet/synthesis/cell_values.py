"""Numbers within the cells of a bounded column: drawn uniformly, and shares of cells between two ends.

A cell of real numbers is a segment. One of whole numbers, or of days, has the whole numbers in [low, high), the last
cell those in [low, high]; a cell without any stands for the next one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.random import Rng
from discreet.schema import Bounded

__all__ = ["drawn_numbers", "shares_between"]

Floats = NDArray[np.float64]


def drawn_numbers(column: Bounded, edges: Sequence[float], cells: NDArray[np.int32], whole: bool, rng: Rng) -> Floats:
    """A number of each cell; NaN for the cell after the last bin, which is that of missing entries."""
    inside = np.clip(np.array(edges), column.low, column.high)
    at = np.minimum(cells, len(inside) - 2)
    share = (rng.words(len(cells)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    if whole:
        first, last = (ends[at] for ends in _wholes(column, inside))
        drawn = first + np.floor(share * (last - first + 1))
    else:
        low, high = inside[at], inside[at + 1]
        drawn = low + share * (high - low)
    return np.where(cells > at, math.nan, drawn)


def shares_between(column: Bounded, edges: Sequence[float], low: float, high: float, whole: bool) -> Floats:
    """The share of each bin's numbers that lies in [low, high].

    >>> shares_between(Bounded(0, 10), (0, 5, 10), 4, 6, whole=False).tolist()
    [0.2, 0.2]
    >>> shares_between(Bounded(0, 9), (0, 5, 9), 4, 6, whole=True).tolist()       # one of 0..4, two of 5..9
    [0.2, 0.4]
    """
    inside = np.clip(np.array(edges), column.low, column.high)
    if whole:
        first, last = _wholes(column, inside)
        found = np.floor(np.minimum(high, last)) - np.ceil(np.maximum(low, first)) + 1
        return np.asarray(np.maximum(found, 0.0) / (last - first + 1))
    width = np.diff(inside)  # zero for a bin beyond the bounds, which no number is in
    covered = np.minimum(high, inside[1:]) - np.maximum(low, inside[:-1])
    return np.asarray(np.divide(np.maximum(covered, 0.0), width, out=np.zeros(len(width)), where=width > 0))


def _wholes(column: Bounded, inside: Floats) -> tuple[Floats, Floats]:
    """The first and the last whole number of each bin."""
    most = math.floor(column.high)
    first = np.minimum(np.ceil(inside[:-1]), most)
    last = np.append(np.ceil(inside[1:-1]) - 1, most)
    return first, np.maximum(first, last)
