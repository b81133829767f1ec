"""Rows into the unit ball, each by itself: what ``rows.Map`` does to every record, in one pass."""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from discreet.linear.kernels import square_of

__all__ = ["place"]


@njit(cache=True, nogil=True)
def _shrunk(row: Any, norm: float, inside: float) -> None:
    """A row of finite numbers, of whatever size, shrunk to the ball of radius ``norm`` and divided by it."""
    top = 0.0
    for j in range(len(row)):
        top = max(top, abs(row[j]))
    top = top if top > 0.0 else 1.0  # divided out first, so that nothing overflows
    length = 0.0
    for j in range(len(row)):
        length += (row[j] / top) * (row[j] / top)
    length = math.sqrt(length)  # between 1 and √d
    far = top / norm * length > inside
    for j in range(len(row)):
        row[j] = row[j] / top / length * inside if far else row[j] / norm


@njit(cache=True, nogil=True, error_model="numpy")
def place(features: Any, shift: Any, scale: Any, norm: float, bounded: bool, inside: float, out: Any) -> None:
    """(x - shift)/scale, cut to [-1, 1] if ``bounded``, shrunk to the ball of radius ``norm`` and divided by it.

    A row with an entry that is not finite becomes NaN. ``out`` may have one column more, for the intercept, which is
    set to one.
    """
    n, d = features.shape
    for i in range(n):
        row, blank = out[i, :d], 0.0
        for j in range(d):
            x = (features[i, j] - shift[j]) / scale[j]
            blank += (features[i, j] + x) * 0.0  # NaN if either is not finite, or their sum
            row[j] = x
        if bounded:
            for j in range(d):
                x = row[j] if row[j] < 1.0 else 1.0
                row[j] = x if x > -1.0 else -1.0
        if out.shape[1] > d:
            out[i, d] = 1.0
        if math.isnan(blank) and not _finite(features[i], row):
            out[i, :] = math.nan
            continue
        square = square_of(row)
        if 2.0**-900 < square < 2.0**900:  # no square has vanished that counts, none has overflowed
            length = math.sqrt(square)
            factor = inside / length if length > inside * norm else 1.0 / norm
            for j in range(d):
                row[j] *= factor
        else:
            _shrunk(row, norm, inside)


@njit(cache=True, nogil=True)
def _finite(features: Any, row: Any) -> bool:
    good = True
    for j in range(len(row)):
        good = good and math.isfinite(features[j]) and math.isfinite(row[j])
    return good
