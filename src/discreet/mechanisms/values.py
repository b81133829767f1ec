"""How values are read: numbers that a caller made of records, to be noised, scored or compared with a threshold.

Type and shape of a value are public, and refused where they are wrong before anything is charged (``check_numbers``).
What an entry is, is not: it may depend on records. So no entry is an error. What is no real number (NaN, ``None``, text
in a list) is *missing*, and has the meaning that its reader states: nothing where noise is added, the lowest score
where something is chosen. A number beyond all doubles, an infinity too, counts as the largest double. Neither moves two
numbers further apart than they were.

Decision 250.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.records import (
    REAL,
    beyond,
    check_readable,
    check_unnamed,
    element_type,
    entries,
    holds_numbers,
    is_fractional,
    quiet_doubles,
    readable,
)

__all__ = ["LARGEST", "check_numbers", "exact_number", "finite", "flat", "numbers"]

LARGEST = Fraction(sys.float_info.max)  # what a number beyond all doubles counts as
_WHOLE = (int, np.bool_, np.integer)


def check_numbers(value: Any, name: str = "value", *, whole: bool = False) -> tuple[int, ...]:
    """The shape of what is to be noised or scored: one real number, or an array or (nested) list of them.

    Refuses, by types and shapes alone, what is none: text, a mapping, a frame, an iterator, a ragged list, an array of
    another type; with ``whole``, floats too. What an entry of a list is, is not looked at, but for lists in lists.

    >>> check_numbers(3.0), check_numbers([[1, 2], [3, 4]])
    ((), (2, 2))
    """
    problem = "whole numbers, of an integer dtype" if whole else "finite real numbers of at most 64 bits"
    if isinstance(value, (Real, *REAL)) and not isinstance(value, np.timedelta64):
        if whole and not isinstance(value, _WHOLE):
            raise ValueError(f"{name} is a {type(value).__name__}, but must be {problem}: round it before.")
        return ()
    if getattr(value, "shape", None) != ():
        _check_listing(value, name, problem)
    if not holds_numbers(value) or (whole and is_fractional(value)):
        raise ValueError(f"{name} has dtype {element_type(value)}, but must be {problem}.")
    return _shape(value, name)


def _check_listing(value: Any, name: str, problem: str) -> None:
    """Refuse what is not read entry by entry."""
    kind = type(value)
    arrayed = hasattr(kind, "__array__") and (hasattr(value, "shape") or hasattr(kind, "__len__"))
    listing = arrayed or isinstance(value, (Sequence, memoryview))
    if not listing or isinstance(value, (str, bytes, bytearray, type, Mapping, Set)):
        raise ValueError(f"{name} is a {kind.__name__}, but must be {problem}: one, or a list or array of them.")
    check_unnamed(value, name)
    check_readable(value, name)


def _shape(value: Any, name: str) -> tuple[int, ...]:
    stated = getattr(value, "shape", None)
    if isinstance(stated, Sequence):
        return tuple(int(length) for length in stated)
    if not isinstance(value, Sequence):
        return (len(value),)
    inner = {_shape(x, name) if _is_nested(x) else () for x in value}
    if len(inner) > 1:
        raise ValueError(f"{name} is a list whose entries have different shapes, but must be rectangular.")
    return (len(value), *next(iter(inner), ()))


def _is_nested(entry: Any) -> bool:
    """Whether an entry of a list is a row of further ones."""
    return isinstance(entry, (list, tuple)) or (isinstance(entry, np.ndarray) and entry.ndim > 0)


def numbers(value: Any, missing: Fraction = Fraction(0)) -> NDArray[Any]:
    """Finite numbers in the shape of ``value``: as doubles or integers of one type, otherwise exactly, as fractions.

    NumPy would make one type of a list, and 2^60 + 1 beside 0.5 a double: one entry would round another.

    >>> numbers([1, 2]).dtype, numbers([0.5, float("nan")]).tolist(), numbers([2**60 + 1, "a"]).tolist()
    (dtype('int64'), [0.5, 0.0], [Fraction(1152921504606846977, 1), Fraction(0, 1)])
    """
    plain = readable(value)
    if isinstance(getattr(plain, "dtype", None), np.dtype) and plain.dtype.kind in "biuf" and plain.dtype.itemsize <= 8:
        return finite(np.asarray(plain), missing)
    shape = check_numbers(plain)
    every = flat(plain, len(shape))
    kinds = {type(x) for x in every}
    if kinds and kinds <= {float, np.float64}:
        return finite(np.array(every, np.float64), missing).reshape(shape)
    if kinds == {int} and all(abs(x) < 1 << 63 for x in every):
        return np.array(every, np.int64).reshape(shape)
    exact = np.empty(len(every), object)
    exact[:] = [exact_number(x, missing) for x in every]
    return exact.reshape(shape) if every else np.zeros(shape)


def finite(array: NDArray[Any], missing: Fraction = Fraction(0)) -> NDArray[Any]:
    """An array of numbers with doubles that are finite; integers as they are."""
    if array.dtype.kind != "f":
        return array
    doubles = quiet_doubles(array)
    if np.isfinite(doubles).all():
        return doubles
    largest = float(LARGEST)
    return np.asarray(np.nan_to_num(doubles, nan=float(missing), posinf=largest, neginf=-largest))


def flat(value: Any, dimensions: int) -> list[Any]:
    """The entries of nested containers, row by row."""
    if dimensions == 0:
        return [value]
    return [entry for part in entries(value) for entry in flat(part, dimensions - 1)]


def exact_number(x: Any, missing: Fraction = Fraction(0)) -> Fraction:
    """One value as a fraction, at most the largest double; ``missing`` if it is no real number. Never an error.

    >>> exact_number(0.5), exact_number("0.5"), exact_number(float("nan"), Fraction(-1))
    (Fraction(1, 2), Fraction(0, 1), Fraction(-1, 1))
    >>> exact_number(10**400) == LARGEST
    True
    """
    try:
        return max(-LARGEST, min(_fraction(x, missing), LARGEST))
    except OverflowError:
        return {math.inf: LARGEST, -math.inf: -LARGEST}.get(beyond(x), missing)
    except Exception:  # NaN, or an object that fails at whatever is done with it
        return missing


def _fraction(x: Any, missing: Fraction) -> Fraction:
    kind = type(x)  # not isinstance, nor methods of its own: a record may say anything of itself
    if issubclass(kind, np.timedelta64) or not issubclass(kind, REAL):
        held = getattr(x, "shape", None) == () and not issubclass(kind, np.generic)
        return exact_number(x.item(), missing) if held else missing  # of an array or tensor without dimensions
    if issubclass(kind, np.floating):
        return Fraction(*x.as_integer_ratio())
    if issubclass(kind, np.generic):
        return Fraction(x.item())  # NumPy's products would overflow
    if issubclass(kind, int):
        return Fraction(int.__add__(x, 0))
    if issubclass(kind, Decimal):
        near = Decimal.__float__(x)
        # Written out, the zeros of 1e999999999 would take forever.
        return Fraction(near) if near == 0 or math.isinf(near) else Fraction(*Decimal.as_integer_ratio(x))
    return Fraction(float.__add__(x, 0.0)) if issubclass(kind, float) else Fraction(*Fraction.as_integer_ratio(x))
