"""How records are read: each by itself, so that one record can change nothing but its own contribution.

A NumPy array of numbers is read as it is, integers exactly. Anything else (a list, an array of objects) is read entry
by entry as doubles, because NumPy would choose one type for all entries and so round one record because of another.
Whatever is not a number (NaN, ``None``, text in a list) is *missing*. An infinity is a number beyond every bound.
Only shape and type are looked at before that, and only they can raise an error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import number
from discreet.random import exact_sum

__all__ = ["BITS", "Bounds", "check_bounds", "column", "exact_total", "positions", "present", "rows"]

Bounds = tuple[float, float]

BITS = 30  # of a record's place between its bounds: squares and products of two such numbers fit in 64 bits
_WIDEST = 2.0**900  # so that differences and scales stay inside the range of doubles


def check_bounds(bounds: object, name: str = "bounds") -> Bounds:
    """Public bounds as two doubles, the lower first.

    >>> check_bounds((0, 200_000))
    (0.0, 200000.0)
    """
    if not isinstance(bounds, Sequence) or isinstance(bounds, (str, bytes)) or len(bounds) != 2:
        raise ValueError(f"{name} is {bounds!r}, but must be a pair (low, high) of public numbers.")
    low, high = (number(name, end, low=-_WIDEST, high=_WIDEST) for end in bounds)
    if Fraction(low) != bounds[0] or Fraction(high) != bounds[1]:
        raise ValueError(f"{name} is {tuple(bounds)!r}, but both ends must be doubles exactly: {(low, high)!r} would do.")
    if not high - low >= 1 / _WIDEST:
        raise ValueError(f"{name} is {tuple(bounds)!r}, but the lower end must come first and differ from the upper.")
    return low + 0.0, high + 0.0


def column(values: Any) -> NDArray[Any]:
    """One-dimensional numbers: booleans, integers or floats of at most 64 bits."""
    array = _array(values)
    if array.ndim != 1:
        raise ValueError(f"values has {array.ndim} dimensions, but must have one: a number for each record.")
    return array


def rows(values: Any, dimension: int) -> NDArray[np.float64]:
    """Doubles of shape (records, dimension)."""
    array = _array(values, dimension)
    if array.ndim != 2 or array.shape[1] != dimension:
        raise ValueError(f"values must have shape (records, {dimension}), as declared by the public dimension.")
    return array.astype(np.float64)


def _array(values: Any, dimension: int | None = None) -> NDArray[Any]:
    if isinstance(getattr(values, "dtype", None), np.dtype):
        array = np.asarray(values)
        if array.dtype.kind in "fiu" and array.dtype.itemsize <= 8:
            return array
        if array.dtype.kind == "b":
            return array.astype(np.uint8)
        if array.dtype.kind != "O":
            raise ValueError(f"values has dtype {array.dtype}, but must hold integers or floats of at most 64 bits.")
        values = array
    if dimension is None:
        return np.array([_double(x) for x in values], np.float64)
    return np.array([_row(x, dimension) for x in values], np.float64).reshape(-1, dimension)


def _double(x: Any) -> float:
    if isinstance(x, (str, bytes)):
        return math.nan  # which float() would parse
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf
    except Exception:  # an object may do anything in its __float__
        return math.nan


def _row(x: Any, dimension: int) -> list[float]:
    try:
        entries = [_double(entry) for entry in x] if not isinstance(x, (str, bytes)) else []
    except Exception:  # not a row of anything
        entries = []
    return entries if len(entries) == dimension else [math.nan] * dimension


def present(array: NDArray[Any]) -> NDArray[Any]:
    """The records that are not missing."""
    return array[~np.isnan(array)] if array.dtype.kind == "f" else array


def exact_total(array: NDArray[Any], bounds: Bounds) -> tuple[Fraction, int]:
    """The sum of the present records, each moved to the nearest bound if beyond it, without rounding; and their number."""
    here = present(array)
    if here.dtype.kind == "f":
        return exact_sum(np.clip(here.astype(np.float64), *bounds)), here.size
    least, most = math.ceil(bounds[0]), math.floor(bounds[1])  # an integer is below the bound iff it is below this
    low, high = here < least, here > most
    beyond = int(low.sum()) * Fraction(bounds[0]) + int(high.sum()) * Fraction(bounds[1])
    return exact_sum(here[~(low | high)]) + beyond, here.size


def positions(array: NDArray[Any], bounds: Bounds, steps: int = 1 << BITS) -> NDArray[np.int64]:
    """Where each record lies between its bounds, rounded to a whole number of ``steps``-ths; -1 if it is missing."""
    low, high = bounds
    missing = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, bool)
    x = np.clip(np.where(missing, low, array.astype(np.float64)), low, high)
    # Subtraction and division round monotonically, so the quotient stays in [0, 1].
    return np.where(missing, -1, np.rint((x - low) / (high - low) * steps)).astype(np.int64)
