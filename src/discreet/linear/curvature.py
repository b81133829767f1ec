r"""Second moments for a pace: Σ xxᵀ of rows with entries in [-1, 1], by matrix products that are exact.

A float product of matrices rounds by amounts that depend on all rows. Here every entry is cut, towards zero, to whole
parts of 2^-16: products of two are whole numbers up to 2^32, of which doubles add 2^20 exactly in any order, with or
without fused instructions; the blocks are added as 64-bit integers, which hold 2^29 records. Cutting lengthens no row.

The upper triangle is packed with its off-diagonal entries times 11/8, a little below √2: a factor that whole numbers
bear. The packed xxᵀ of a row of norm at most R then has norm at most R².
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from discreet.linear.kernels import exact

__all__ = ["second_moments", "symmetric"]

PARTS = 1 << 16
_ROWS = 1 << 14  # a block that stays in cache; exact up to 2^20
_WEIGHT = 11  # eighths, of an entry beside the diagonal


def second_moments(rows: NDArray[np.float64]) -> object:
    """The packed upper triangle of Σ xxᵀ, exactly: doubles where they can hold it, otherwise fractions.

    >>> second_moments(np.array([[0.5, 1.0], [0.5, -1.0]])).tolist()
    [0.5, 0.0, 2.0]
    """
    total = np.zeros((rows.shape[1],) * 2, np.int64)
    for at in range(0, len(rows), _ROWS):
        parts = np.trunc(rows[at : at + _ROWS] * PARTS)
        total += (parts.T @ parts).astype(np.int64)
    left, right = np.triu_indices(rows.shape[1])
    packed = total[left, right]
    wide = packed.astype(object) if len(packed) and int(np.abs(packed).max()) >= 1 << 59 else packed
    weighted = wide * np.where(left == right, 8, _WEIGHT)
    return exact(weighted, 1 / (8 * PARTS**2))


def symmetric(packed: NDArray[np.float64], features: int) -> NDArray[np.float64]:
    """The matrix whose upper triangle ``second_moments`` packs."""
    left, right = np.triu_indices(features)
    matrix = np.zeros((features, features))
    matrix[left, right] = packed / np.where(left == right, 1.0, _WEIGHT / 8)
    return np.asarray(matrix + np.triu(matrix, 1).T)
