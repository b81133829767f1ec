r"""Scores and gradient sums to about 32 digits: pairs of doubles, high + low, whose sum is the number.

Products and sums of doubles are split into their rounded value and the exact error of it (Dekker 1971; Knuth), and the
errors are carried along. A sum of m terms is then off by at most 4m·2^-106 times the sum of their sizes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["products", "scores", "subtract"]

Array = NDArray[np.float64]


@njit(cache=True, nogil=True, inline="always")
def _two_sum(a: Any, b: Any) -> Any:
    """a + b rounded, and what rounding left over."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@njit(cache=True, nogil=True, inline="always")
def _two_product(a: float, b: float) -> Any:
    """a·b rounded, and what rounding left over; sizes stay far below 2^996, where the split would overflow."""
    big_a, big_b = a * 134217729.0, b * 134217729.0  # 2^27 + 1 halves the digits
    a1, b1 = big_a - (big_a - a), big_b - (big_b - b)
    a2, b2 = a - a1, b - b1
    product = a * b
    return product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2


@njit(cache=True, nogil=True)
def _scores(rows: Any, high: Any, low: Any, out: Any, rest: Any) -> None:
    n, p = rows.shape
    for i in range(n):
        for c in range(high.shape[0]):
            total, error = 0.0, 0.0
            for j in range(p):
                product, left = _two_product(rows[i, j], high[c, j])
                total, lost = _two_sum(total, product)
                total, error = _two_sum(total, error + (lost + (left + rows[i, j] * low[c, j])))
            out[i, c], rest[i, c] = total, error


@njit(cache=True, nogil=True)
def _products(rows: Any, residuals: Any, out: Any, rest: Any) -> None:
    n, p = rows.shape
    for i in range(n):
        for c in range(residuals.shape[1]):
            for j in range(p):
                product, left = _two_product(rows[i, j], residuals[i, c])
                total, lost = _two_sum(out[c, j], product)
                out[c, j], rest[c, j] = _two_sum(total, rest[c, j] + (lost + left))


def scores(rows: Array, high: Array, low: Array) -> tuple[Array, Array]:
    """rows @ (high + low), as a pair of n × k."""
    out, rest = np.empty((len(rows), high.shape[1])), np.empty((len(rows), high.shape[1]))
    _scores(rows, np.ascontiguousarray(high.T), np.ascontiguousarray(low.T), out, rest)
    return out, rest


def products(rows: Array, residuals: Array) -> tuple[Array, Array]:
    """rowsᵀ @ residuals, as a pair of p × k.

    >>> products(np.array([[1.0], [1.0], [1.0]]), np.array([[1e20], [1.0], [-1e20]]))[0].item()
    1.0
    """
    out, rest = np.zeros((residuals.shape[1], rows.shape[1])), np.zeros((residuals.shape[1], rows.shape[1]))
    _products(rows, np.ascontiguousarray(residuals), out, rest)
    total, error = _two_sum(out, rest)
    return total.T, error.T


def subtract(high: Array, low: Array, step: Array) -> tuple[Array, Array]:
    """high + low - step, as a pair."""
    total, error = _two_sum(high, -step)
    total, error = _two_sum(total, error + low)
    return total, error
