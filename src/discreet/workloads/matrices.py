"""Strategies given by a matrix: all queries of a workload, and the optimum for a small one under Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.workloads.explicit import Explicit
from discreet.workloads.ranges import AllRanges, Prefix
from discreet.workloads.strategy import Strategy, round_up
from discreet.workloads.workload import Floats, Identity, Norm, Workload, power_of

__all__ = ["AllQueries", "Matrix", "all_queries", "optimal_matrix", "quantise", "whole_product"]

_HALF = 20  # binary places of half a matrix entry
_PLACES = 2 * _HALF  # binary places that are kept of a matrix entry, relative to the largest


def quantise(matrix: Floats) -> tuple[Floats, int]:
    """Whole numbers M and ``bits``; M·2^-bits is ``matrix`` to 40 places, times a power of two that makes it near 1.

    Small whole entries are kept as they are. The scale of a strategy is of no consequence: its sensitivity has it too.

    >>> whole, bits = quantise(np.array([[0.5, 3.25]]))
    >>> (whole * 2.0**-bits).tolist()
    [[0.125, 0.8125]]
    """
    if not np.isfinite(matrix).all() or not matrix.any():
        raise ValueError("matrix must hold finite numbers, not all of them zero.")
    if (matrix == np.rint(matrix)).all() and np.abs(matrix).max() < 2**_HALF:
        return matrix.astype(np.float64), 0
    exponent = _PLACES - math.frexp(float(np.abs(matrix).max()))[1]
    return np.rint(np.ldexp(matrix, exponent)), _PLACES


def whole_product(matrix: Floats, x: NDArray[Any]) -> NDArray[Any]:
    """matrix @ x for whole entries of at most 40 bits, unrounded: both are cut so that products are exact doubles.

    >>> whole_product(np.array([[1.0, 2.0]]), np.array([2**60, 5], object)).tolist()
    [1152921504606846986]
    """
    high = np.floor(matrix * 2.0**-_HALF)
    halves = ((matrix - high * 2.0**_HALF, 0), (high, _HALF))
    part = 53 - (_HALF + 1) - matrix.shape[1].bit_length()
    sign, rest, shift = np.where(x < 0, -1, 1), np.abs(x.astype(object)), 0
    total: Any = np.zeros((matrix.shape[0], *x.shape[1:]), object)
    while (rest != 0).any():
        low = ((rest & ((1 << part) - 1)) * sign).astype(np.float64)
        for half, place in halves:
            if half.any():
                total = total + (np.tensordot(half, low, axes=1).astype(np.int64).astype(object) << shift + place)
        rest, shift = rest >> part, shift + part
    return np.asarray(total)


@dataclass(frozen=True, eq=False)
class Matrix(Strategy):
    """The rows of a matrix, rounded to whole multiples of 2^-bits; what is measured is the rounded matrix, exactly.

    >>> Matrix(np.array([[1.0, 1.0], [0.0, 1.0]])).column_norm("l1") >= 2
    True
    """

    matrix: Floats = field(repr=False)
    name: str = "matrix"

    @cached_property
    def _whole(self) -> tuple[Floats, int]:
        return quantise(np.asarray(self.matrix, np.float64))

    @cached_property
    def values(self) -> Floats:
        """The matrix that is measured."""
        return self._whole[0] * 2.0**-self.bits

    @property
    def bits(self) -> int:
        """The places that were kept."""
        return self._whole[1]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The number of columns."""
        return (self._whole[0].shape[1],)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self._whole[0].shape[0])

    @property
    def row_sum(self) -> float:
        """The largest L1 norm of a row."""
        return float(np.abs(self.values).sum(axis=1).max())

    def exact(self, x: NDArray[Any]) -> NDArray[Any]:
        """An exact product of whole numbers."""
        return whole_product(self._whole[0], x)

    def adjoint(self, y: Floats) -> Floats:
        """Aᵀ y."""
        return np.tensordot(self.values.T, y, axes=1)

    def gram_apply(self, v: Floats) -> Floats:
        """AᵀA v."""
        return self.adjoint(np.tensordot(self.values, v, axes=1))

    @cached_property
    def _inverse(self) -> Floats:
        return np.linalg.pinv(self.values.T @ self.values, rcond=1e-10, hermitian=True)

    def covariance(self, v: Floats) -> Floats:
        """The pseudo-inverse of AᵀA."""
        return np.tensordot(self._inverse, v, axes=1)

    def closed_form(self, workload: Workload) -> float | None:
        """tr(WᵀW (AᵀA)⁺), if the measurements determine every query at all."""
        gram = workload.gram()
        seen = self._inverse @ (self.values.T @ (self.values @ gram))
        if np.abs(seen - gram).max() > 1e-6 * np.abs(gram).max():
            raise ValueError(
                f"The strategy {self.name!r} does not determine every query of the workload: measure more rows."
            )
        return float((self._inverse * gram).sum())

    def column_norm(self, norm: Norm) -> float:
        """The largest norm of a column."""
        return round_up(float(np.linalg.norm(self.values, ord=power_of(norm), axis=0).max()), self.rows + 2)

    def difference_norm(self, norm: Norm) -> float:
        """Every pair of columns."""
        a = self.values
        power = power_of(norm)
        gaps = [float((np.abs(a - a[:, j, None]) ** power).sum(axis=0).max()) for j in range(a.shape[1])]
        return round_up(max(gaps) ** (1 / power), self.rows + 4)


@dataclass(frozen=True, eq=False)
class AllQueries(Strategy):
    """The queries of ``Prefix`` or ``AllRanges`` themselves, without their matrix. Refused at sizes nobody measures."""

    workload: Prefix | AllRanges
    bits: int = 0
    name: str = "all queries"

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The workload's."""
        return self.workload.shape

    @property
    def rows(self) -> int:
        """One per query."""
        return self.workload.queries

    @property
    def row_sum(self) -> float:
        """A query may cover every cell."""
        return float(self.workload.n)

    def exact(self, x: NDArray[Any]) -> NDArray[Any]:
        """Sums of whole numbers."""
        columns = [self.workload.apply(column) for column in x.reshape(self.workload.n, -1).T]
        return np.stack(columns, axis=1).reshape(-1, *x.shape[1:])

    def adjoint(self, y: Floats) -> Floats:
        """Every cell collects the queries that cover it."""
        flat = y.reshape(len(y), -1)
        if isinstance(self.workload, Prefix):
            return np.cumsum(flat[::-1], axis=0)[::-1].reshape(-1, *y.shape[1:])
        n = self.workload.n
        first, last = np.triu_indices(n)
        out = np.zeros((n + 1, flat.shape[1]))
        np.add.at(out, first, flat)
        np.subtract.at(out, last + 1, flat)
        return np.cumsum(out, axis=0)[:n].reshape(-1, *y.shape[1:])

    def gram_apply(self, v: Floats) -> Floats:
        """The workload's Gram matrix."""
        return self.workload.gram_apply(v)

    def covariance(self, v: Floats) -> Floats:
        """Its inverse, which is tridiagonal."""
        diagonal, beside = self.workload.inverse_gram()
        column = (-1, *[1] * (v.ndim - 1))
        out = diagonal.reshape(column) * v
        out[1:] += beside.reshape(column) * v[:-1]
        out[:-1] += beside.reshape(column) * v[1:]
        return out

    def column_norm(self, norm: Norm) -> float:
        """The workload's."""
        return round_up(self.workload.column_norm(norm), 2)

    def difference_norm(self, norm: Norm) -> float:
        """Entries are positive: at most √2 columns in L2, 2 in L1."""
        return round_up(2 ** (1 / power_of(norm)), 2) * self.column_norm(norm)

    def closed_form(self, workload: Workload) -> float | None:
        """tr(G G⁻¹) = n for the workload itself."""
        return float(self.workload.n) if workload == self.workload else None


def all_queries(workload: Workload) -> Strategy:
    """Measure the queries themselves, all at once: the first idea, and rarely the best.

    >>> all_queries(AllRanges(4)).rows
    10
    """
    from discreet.workloads.products import Product, ProductStrategy
    from discreet.workloads.trees import Hierarchy

    if isinstance(workload, (Prefix, AllRanges)):
        return AllQueries(workload)
    if isinstance(workload, Identity) and len(workload.shape) == 1:
        return Hierarchy(workload.size, (1,), (1,), name="all queries")
    if isinstance(workload, Product):
        return ProductStrategy(tuple(all_queries(factor) for factor in workload.factors), name="all queries")
    if isinstance(workload, Explicit):
        return Matrix(workload.rows, name="all queries")
    raise ValueError(f"{type(workload).__name__} has no strategy of all queries; take identity() or optimise().")


def optimal_matrix(workload: Workload, gap: float = 5e-4, steps: int = 300) -> Matrix:
    r"""The strategy of least expected error under Gaussian noise, densely: for any workload of moderate size.

    The fixed point of ``workloads.filters`` with dense square roots: X = U^(-1/2) (U^(1/2) G U^(1/2))^(1/2) U^(-1/2),
    uᵢ ← uᵢ Xᵢᵢ, until the error is within ``gap`` of the dual bound. Cells that no query covers are not measured.

    >>> from discreet.workloads.explicit import four_queries
    >>> strategy = optimal_matrix(four_queries())
    >>> round(strategy.trace(four_queries()) * strategy.column_norm("l2") ** 2, 2)  # the identity strategy has 6
    5.24
    """
    gram = workload.gram()
    covered = np.diagonal(gram) > 0
    part = gram[np.ix_(covered, covered)]
    u = np.sqrt(np.diagonal(part))
    for _ in range(steps):
        half = np.sqrt(u)
        values, vectors = np.linalg.eigh(half[:, None] * part * half)
        roots = np.sqrt(np.maximum(values, 0.0))
        scaled = vectors**2 @ roots  # u X, on the diagonal
        if float((scaled / u).max()) * float(u.sum()) <= float(roots.sum()) * (1 + gap):
            break
        u = scaled
    keep = roots > roots.max() * 1e-7
    factor = np.zeros((int(keep.sum()), gram.shape[0]))
    factor[:, covered] = np.sqrt(roots[keep])[:, None] * vectors[:, keep].T / half
    factor /= np.linalg.norm(factor, axis=0).max()
    return Matrix(factor, name="optimised")
