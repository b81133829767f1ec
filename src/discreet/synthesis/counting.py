r"""Counts of codes: how often each combination of some columns' cells occurs, and what a set of columns says beyond its
subsets.

For a set R of columns with d_i cells each, the *residual* of the counts M_R is Π_R M_R with Π_R = ⊗ (I - J/d_i). Over
the subsets R of c the residuals hold everything about M_c and nothing twice:

.. math:: M_c = \sum_{R \subseteq c} \frac{1}{\prod_{i \in c \setminus R} d_i}\, \Pi_R M_R \otimes 1

So counts that overlap are measured once (Xiao et al. 2023; ``workloads.residuals`` has the same spaces for tables that
fit in memory). Here only the counts of small sets are ever formed, whatever the number of columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.workloads.marginals import Attributes, subsets

__all__ = [
    "Codes",
    "Columns",
    "WeightedCodes",
    "closure",
    "counts",
    "difference_square",
    "project_residual",
    "reconstruct_counts",
    "share_of_cells",
    "whole_residual",
    "whole_weight",
]

Columns: TypeAlias = Attributes  # the places of some columns, in order
Codes: TypeAlias = NDArray[np.int32]  # one row per column, one entry per record


@dataclass(frozen=True, eq=False)
class WeightedCodes:
    """Codes of rows with whole weights: those of one unit add up to at most ``one``, which counts as one record."""

    codes: Codes
    weights: NDArray[np.int64]
    one: int


def whole_weight(codes: Codes | WeightedCodes) -> int:
    """What one record adds to ``counts`` in all."""
    return codes.one if isinstance(codes, WeightedCodes) else 1


@njit(cache=True, nogil=True)
def _count(codes: Any, columns: Any, strides: Any, weights: Any, out: Any) -> None:
    for j in range(codes.shape[1]):
        cell = 0
        for k in range(len(columns)):
            cell += strides[k] * codes[columns[k], j]
        out[cell] += weights[j] if len(weights) else 1


def counts(codes: Codes | WeightedCodes, columns: Columns, sizes: Sequence[int]) -> NDArray[np.int64]:
    """How many records each combination of the columns' cells has, or what their weights add up to.

    >>> counts(np.array([[0, 1, 1], [2, 0, 0]], np.int32), (0, 1), (2, 3)).tolist()
    [[0, 0, 1], [2, 0, 0]]
    """
    shape = tuple(sizes[i] for i in columns)
    strides = np.array([math.prod(shape[k + 1 :]) for k in range(len(shape))], np.int64)
    out = np.zeros(math.prod(shape), np.int64)
    weighted = codes if isinstance(codes, WeightedCodes) else WeightedCodes(codes, np.empty(0, np.int64), 1)
    _count(weighted.codes, np.array(columns, np.int64), strides, weighted.weights, out)
    return out.reshape(shape)


def closure(sets: Sequence[Columns]) -> list[Columns]:
    """The sets and all their subsets, small ones first."""
    found = {subset for columns in sets for subset in subsets(columns)}
    return sorted(found, key=lambda columns: (len(columns), columns))


def whole_residual(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Π d_i times the residual of whole counts: ⊗ (d_i I - J), in whole numbers, so that nothing is rounded.

    One record moves it by √(Π d_i (d_i - 1)) in L2: a column of d I - J holds d - 1 once and -1 otherwise, d(d - 1) in
    squares, and norms multiply.

    >>> whole_residual(np.array([3, 0, 0])).tolist()
    [6, -3, -3]
    """
    for axis, size in enumerate(table.shape):
        table = size * table - table.sum(axis=axis, keepdims=True)
    return table


def difference_square(shape: Sequence[int]) -> tuple[int, int]:
    """How far one record moves ``whole_residual``, squared: one more or less, and one exchanged for another.

    Exchanged, the columns x and y of ⊗ (d I - J) have the inner product Π d_i (d_i [x_i = y_i] - 1); the least over all
    patterns of agreement, the full one excepted, gives the largest distance.

    >>> difference_square((3,)), difference_square(())
    ((6, 18), (1, 1))
    """
    alone = math.prod(d * (d - 1) for d in shape)
    if not shape:
        return 1, 1  # of an exchange one side may not count at all
    patterns = [p for p in product((0, 1), repeat=len(shape)) if not all(p)]
    least = min(math.prod(d * (d * same - 1) for d, same in zip(shape, p, strict=True)) for p in patterns)
    return alone, max(alone, 2 * (alone - least))


def project_residual(noisy: NDArray[np.float64]) -> NDArray[np.float64]:
    """A noisy ``whole_residual`` as a residual: divided by Π d_i, and without the noise that lies outside its space."""
    table = noisy / float(math.prod(noisy.shape))
    for axis in range(noisy.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table


def reconstruct_counts(
    columns: Columns, sizes: Sequence[int], residuals: Mapping[Columns, NDArray[np.float64]]
) -> NDArray[np.float64]:
    """The counts of ``columns`` that the residuals of all its subsets say; that of a column of one cell is zero."""
    total = np.zeros(tuple(sizes[i] for i in columns))
    for part in subsets(tuple(i for i in columns if sizes[i] > 1)):
        spread = math.prod(sizes[i] for i in columns if i not in part)
        kept = tuple(sizes[i] if i in part else 1 for i in columns)
        total += residuals[part].reshape(kept) / spread
    return total


def share_of_cells(shape: Sequence[int]) -> Fraction:
    """Π (1 - 1/d_i): the share of its cells that a residual has dimensions."""
    return Fraction(math.prod(d - 1 for d in shape), math.prod(shape))
