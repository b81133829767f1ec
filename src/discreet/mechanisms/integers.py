"""Integer values and exact integer sums for the discrete mechanisms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.grid import check_entries
from discreet.mechanisms.values import numbers

__all__ = ["add_integers", "integers"]

_MAX = np.iinfo(np.int64).max


def integers(value: Any, max_size: int) -> NDArray[Any]:
    """Whole numbers as int64 where they fit, otherwise as Python integers; a fraction in a list is rounded down.

    That moves two numbers no further apart than the whole number that bounds their distance. Of a vector it may move
    every entry, so its sensitivity is to be stated of whole numbers: an array of floats is refused before the charge.
    """
    array = numbers(value)
    check_entries(array.shape, max_size)
    if array.dtype.kind == "u" and array.dtype.itemsize == 8:
        return array.astype(object)
    if array.dtype.kind in "iub":
        return array.astype(np.int64)
    exact = np.empty(array.shape, object)
    exact.reshape(-1)[:] = [math.floor(x) for x in array.reshape(-1).tolist()]
    return exact


def add_integers(value: NDArray[Any], noise: NDArray[np.int64]) -> Any:
    """The exact sum: an int for a scalar, otherwise int64, the nearest one where a noisy sum does not fit."""
    if value.ndim == 0:
        return int(value) + int(noise)
    if value.dtype == object:
        total = [int(v) + int(n) for v, n in zip(value.flat, noise.flat, strict=True)]
        return np.array([max(-_MAX, min(x, _MAX)) for x in total], np.int64).reshape(value.shape)
    out = value + noise
    wrapped = ((value ^ out) & (noise ^ out)) < 0  # iff both terms differ from it in sign
    return np.where(wrapped, np.where(value < 0, -_MAX, _MAX), out)
