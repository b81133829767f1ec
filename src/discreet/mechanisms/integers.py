"""Integer values and exact integer sums for the discrete mechanisms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.grid import check_entries
from discreet.mechanisms.records import numbers

__all__ = ["add_integers", "integers"]

_MAX = np.iinfo(np.int64).max


def integers(value: Any, max_size: int) -> NDArray[Any]:
    """Whole numbers as int64 where they fit, otherwise as Python integers. Never shows a value."""
    array = numbers(value)
    if array.dtype.kind not in "iub" and not (array.dtype == object and all(_is_whole(x) for x in array.flat)):
        raise ValueError("value must be whole numbers, of an integer dtype: round floats, or use a grid mechanism.")
    check_entries(array.shape, max_size)
    if array.dtype.kind == "O" or (array.dtype.kind == "u" and array.dtype.itemsize == 8):
        return array.astype(object)
    return array.astype(np.int64)


def _is_whole(x: object) -> bool:
    return isinstance(x, (int, np.integer, np.bool_))


def add_integers(value: NDArray[Any], noise: NDArray[np.int64]) -> Any:
    """The exact sum: an int for a scalar, otherwise int64; ``OverflowError`` where the noisy sum does not fit."""
    if value.ndim == 0:
        return int(value) + int(noise)
    if value.dtype == object:
        total = np.array([int(v) + int(n) for v, n in zip(value.flat, noise.flat, strict=True)], object)
        fits = all(abs(x) <= _MAX for x in total)
        out = total.astype(np.int64).reshape(value.shape) if fits else None
    else:
        out = value + noise
        fits = not bool((((value ^ out) & (noise ^ out)) < 0).any())  # wrapped iff both terms differ from it in sign
    if not fits:
        raise OverflowError("A noisy value does not fit in 64 bits.")
    return out
