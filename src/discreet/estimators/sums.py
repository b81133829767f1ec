"""Sums of bounded rows that are exact in any order, so that one record moves them by what was stated and no more.

Numbers are cut to whole parts, towards zero, so that no entry and no norm grows; or, where that would bias what is
learnt, rounded to the nearest part inside a ball that was made smaller before. Whole numbers below 2^53 add up exactly
in doubles, whatever the order, which the limit on records (2^29) and the sizes of the parts guarantee.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adjacency import Adjacency
from discreet.mechanisms import Budget

__all__ = ["COARSE", "FINE", "cut", "group_sums", "in_ball", "noise_for", "room_to_round", "scale_to_unit"]

FINE = 1 << 20  # parts of one number that is added up: 2^29 records stay below 2^49
COARSE = 1 << 12  # parts of a number whose products are added up: below 2^53
LARGEST = 1 << 26  # numbers in one noisy vector: what does not fit in memory is found before the charge


def scale_to_unit(
    rows: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Each feature from its bounds to [-1, 1], cut there; NaN where it is missing."""
    with np.errstate(all="ignore"):
        placed = (rows - (low + high) / 2) / ((high - low) / 2)
    return np.clip(placed, -1.0, 1.0)


def in_ball(rows: NDArray[np.float64], norm: float) -> NDArray[np.float64]:
    """Rows divided by ``norm`` and shrunk, if need be, to length 1; a row with a missing number is zero."""
    usable = np.isfinite(rows).all(axis=1, keepdims=True)
    found = np.ascontiguousarray(np.where(usable, rows, 0.0) / norm)  # summed in one order, of however many rows
    length = np.sqrt((found * found).sum(axis=1)) * (1 + 2.0**-40)  # no rounding of a length leaves the ball
    return np.asarray(found / np.maximum(length, 1.0)[:, None])


def cut(values: NDArray[np.float64], parts: int) -> NDArray[np.float64]:
    """Whole parts of numbers in [-1, 1], towards zero."""
    return np.trunc(values * parts)


def room_to_round(size: int, parts: int) -> float:
    """The length to which rows of ``size`` numbers are shrunk, so that rounded to the nearest part they stay in the
    unit ball: an entry moves by half a part, a row by √size of them.
    """
    return 1 - math.sqrt(size) / (2 * parts)


def group_sums(
    values: NDArray[np.float64], groups: NDArray[np.int64], size: int, parts: int = FINE
) -> NDArray[np.float64]:
    """The sum in each of ``size`` groups of numbers in [-1, 1]; a record of group -1 counts nowhere."""
    chosen = groups >= 0
    totals = np.bincount(groups[chosen], weights=cut(values[chosen], parts), minlength=size)
    return np.asarray(totals / parts)


def noise_for(budget: Budget, reach: Fraction | int, square: Fraction | int, size: int, movement: int) -> Any:
    """Noise for ``size`` numbers of which a record moves ``reach`` in L1 and √``square`` in L2; under replace,
    a neighbour is two records' movement away.
    """
    if size > LARGEST:
        raise ValueError(f"The model needs {size} noisy numbers at once, but at most {LARGEST}: fewer bins or levels.")
    adjacency = Adjacency.REPLACE if movement == 2 else Adjacency.ADD_REMOVE
    return budget.additive(reach * movement, size, square=square * movement**2, adjacency=adjacency)
