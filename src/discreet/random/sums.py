"""Sums without rounding, so that a sum's sensitivity is the largest term and nothing more.

A float sum rounds at every addition, by amounts that depend on every other record and on their order; one record can
then move the result by far more than its own size (Casacuberta et al. 2022). Here every double is taken as the whole
number times a power of two that it is, parts are added as integers, and the total is an exact ``Fraction``, which the
grid mechanisms accept as it stands.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["exact_sum"]

_BLOCK = 1 << 26  # halves of 27 bits: 2^26 of them add up below 2^53, exactly, in a double


def exact_sum(values: ArrayLike) -> Fraction:
    """The exact sum of finite doubles or of integers, in any order the same.

    >>> exact_sum([1e16, 1.0, -1e16])
    Fraction(1, 1)
    >>> exact_sum(np.full(10, 2**62)) == 10 * 2**62
    True
    """
    array = np.asarray(values)
    if array.dtype.kind in "iub":
        return Fraction(_integer_sum(array.reshape(-1)))
    if array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise ValueError(f"values has dtype {array.dtype}, but must hold integers or floats of at most 64 bits.")
    if not np.isfinite(array).all():
        raise ValueError("values holds NaN or an infinity, but a sum needs finite numbers: clip and drop them first.")
    flat = array.astype(np.float64).reshape(-1)
    return sum((_float_sum(flat[i : i + _BLOCK]) for i in range(0, flat.size, _BLOCK)), Fraction(0))


def _integer_sum(values: NDArray[Any]) -> int:
    """High and low halves are added apart: neither can wrap, whatever the width of the type."""
    values = values.astype(np.uint64 if values.dtype.kind == "u" else np.int64)
    high, low = values >> 32, values & 0xFFFFFFFF
    return (int(high.sum()) << 32) + int(low.sum())


def _float_sum(values: NDArray[np.float64]) -> Fraction:
    """Mantissas are added per exponent, in two halves small enough that a double counts them exactly."""
    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = int(exponent.min(initial=0))
    high = np.bincount(exponent - lowest, weights=whole >> 26)
    low = np.bincount(exponent - lowest, weights=whole & (2**26 - 1))
    total = sum(((int(h) << 26) + int(lo)) << i for i, (h, lo) in enumerate(zip(high, low, strict=True)))
    shift = lowest - 53
    return Fraction(total << shift) if shift >= 0 else Fraction(total, 1 << -shift)
