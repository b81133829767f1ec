"""How records are read: each by itself, so that one record can change nothing but its own contribution.

A NumPy array of numbers is read as it is, integers exactly. Anything else (a list, an array of objects) is read entry
by entry as doubles, because NumPy would choose one type for all entries and so round one record because of another.
Whatever is not a real number (NaN, ``None``, text in a list, a complex number, a list) is *missing*, that is NaN. An
infinity is a number beyond every bound. Only shape and type of an array are looked at before that, and only they can
raise an error; none can raise a warning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["column", "double", "numbers", "rows"]

_REAL = (int, float, np.bool_, np.integer, np.floating, Decimal, Fraction)


def numbers(value: Any) -> NDArray[Any]:
    """What is to be noised or scored, as an array; one that is not of a single type keeps its entries, as objects.

    NumPy would make one type of them, and 2^60 + 1 beside 0.5 a double: one entry would round another.

    >>> numbers([1, 2]).dtype, numbers([0.5, 1.5]).dtype, numbers([2**60 + 1, 0.5]).tolist()
    (dtype('int64'), dtype('float64'), [1152921504606846977, 0.5])
    """
    if isinstance(getattr(value, "dtype", None), np.dtype):
        return np.asarray(value)
    array = np.asarray(value, dtype=object)
    kinds = {type(x) for x in array.flat}
    if kinds <= {float, np.float64}:
        return array.astype(np.float64)
    if kinds == {int} and all(abs(x) < 1 << 63 for x in array.flat):
        return array.astype(np.int64)
    return array


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
    if isinstance(values, (str, bytes, Mapping)):
        raise ValueError("values is text or a mapping, but must list one record an entry.")
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
        return np.array([double(x) for x in values], np.float64)
    return np.array([_row(x, dimension) for x in values], np.float64).reshape(-1, dimension)


def double(x: Any) -> float:
    """One record as a double; NaN if it is not a real number.

    >>> double(Decimal("0.5")), double(10**400), double("0.5"), double(1 + 0j), double(np.array(2))
    (0.5, inf, nan, nan, 2.0)
    """
    kind = type(x)
    if kind is float:
        return float(x)
    try:
        if issubclass(kind, _REAL) and not issubclass(kind, np.timedelta64):
            return float(x)
        # An array or tensor of no dimensions holds one number. Whatever else has a __float__ may warn from there.
        return double(x.item()) if getattr(x, "shape", None) == () and not issubclass(kind, np.generic) else math.nan
    except OverflowError:
        return math.inf if x > 0 else -math.inf
    except Exception:  # a signalling NaN, or an object that fails at whatever is done with it
        return math.nan


def _row(x: Any, dimension: int) -> list[float]:
    try:
        entries = [double(entry) for entry in x] if not isinstance(x, (str, bytes, Mapping)) else []
    except Exception:  # not a row of anything
        entries = []
    return entries if len(entries) == dimension else [math.nan] * dimension
