r"""p-Identity: each cell, and p free queries, with the balance found by gradient descent; for Laplace noise.

A = [I; Θ] D with Θ ≥ 0 of p rows and D = diag(1/(1 + Σ Θ)), so that every column has L1 norm 1. The expected error is
smooth in Θ,

.. math:: f(\Theta) = \mathrm{tr}(S G S) - \mathrm{tr}\bigl((I + \Theta\Theta^\top)^{-1}\, \Theta S G S
          \Theta^\top\bigr),
          \qquad S = D^{-1},

and costs O(n p²) to evaluate when G is implicit, gradient included. It is not convex: the search starts at weighted
block sums, where a hierarchy would be.

Reference: McKenna, Miklau, Hay and Machanavajjhala (2018).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from discreet.workloads.matrices import quantise, whole_product
from discreet.workloads.strategy import Strategy, round_up
from discreet.workloads.workload import Floats, Norm, Workload, power_of

__all__ = ["PIdentity", "error_and_gradient", "optimal_p_identity"]


def error_and_gradient(theta: Floats, workload: Workload) -> tuple[float, Floats]:
    """f(Θ) and its gradient.

    >>> from discreet.workloads.ranges import AllRanges
    >>> error_and_gradient(np.zeros((1, 4)), AllRanges(4))[0]  # the identity strategy
    20.0
    """
    s = 1 + theta.sum(axis=0)
    diagonal = workload.gram_diagonal()
    scaled = theta * s
    through = workload.gram_apply(scaled.T).T  # Θ S G
    inner = np.linalg.inv(np.eye(len(theta)) + theta @ theta.T)
    kernel = through @ scaled.T
    value = float((s * s * diagonal).sum() - (inner * kernel).sum())
    across = inner @ through
    by_scale = 2 * s * diagonal - 2 * (across * theta).sum(axis=0)
    return value, 2 * inner @ kernel @ inner @ theta - 2 * across * s + by_scale


def optimal_p_identity(workload: Workload, p: int | None = None, steps: int = 300) -> PIdentity:
    """The best p-Identity strategy that L-BFGS finds for a workload over cells in a row.

    >>> from discreet.workloads.ranges import AllRanges
    >>> w = AllRanges(256)
    >>> strategy = optimal_p_identity(w)
    >>> float(round(np.sqrt(strategy.trace(w) / w.queries) * strategy.column_norm("l1"), 1))  # 9.3 for the identity
    5.7
    """
    n = workload.size
    p = p if p is not None else min(max(n // 16, 1), 64)
    start = _blocks(n, p)
    done = minimize(
        partial(_flat, rows=p, workload=workload),
        start.reshape(-1),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * start.size,
        options={"maxiter": steps, "maxfun": 2 * steps},
    )
    theta = np.asarray(done.x).reshape(p, n)
    s = 1 + theta.sum(axis=0)
    return PIdentity(1 / s, theta / s)


def _flat(flat: Floats, rows: int, workload: Workload) -> tuple[float, Floats]:
    value, gradient = error_and_gradient(flat.reshape(rows, -1), workload)
    return value, gradient.reshape(-1)


def _blocks(n: int, p: int) -> Floats:
    """p rows of blocks: halves, quarters, … of the domain, a little uneven so that symmetric rows can part."""
    theta, row, pieces = np.zeros((p, n)), 0, 1
    while row < p:
        for block in np.array_split(np.arange(n), min(pieces, n)):
            if row < p:
                theta[row, block] = 0.5
                row += 1
        pieces *= 2
    return theta + 0.01 * np.random.default_rng(0).random((p, n))  # public randomness: no data is near


@dataclass(frozen=True, eq=False)
class PIdentity(Strategy):
    """Weighted cells and a few dense queries, rounded to whole multiples of 2^-40 and measured exactly."""

    cells: Floats = field(repr=False)
    queries: Floats = field(repr=False)
    name: str = "optimised"

    @cached_property
    def _whole(self) -> tuple[Floats, int]:
        return quantise(np.concatenate([self.cells[None], self.queries]))

    @cached_property
    def _values(self) -> tuple[Floats, Floats]:
        values = self._whole[0] * 2.0**-self.bits
        return values[0], values[1:]

    @property
    def bits(self) -> int:
        """The places that were kept."""
        return self._whole[1]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The number of cells."""
        return self.cells.shape

    @property
    def rows(self) -> int:
        """One per cell and p more."""
        return int(self.cells.size + len(self.queries))

    @property
    def row_sum(self) -> float:
        """The largest L1 norm of a row."""
        cells, queries = self._values
        return max(float(cells.max()), float(queries.sum(axis=1).max()))

    def exact(self, x: NDArray[Any]) -> NDArray[Any]:
        """Whole weights times cells, and an exact product."""
        weights = self._whole[0][0].astype(np.int64).astype(object).reshape(-1, *[1] * (x.ndim - 1))
        return np.concatenate([weights * x.astype(object), whole_product(self._whole[0][1:], x)])

    def adjoint(self, y: Floats) -> Floats:
        """Aᵀ y."""
        cells, queries = self._values
        return np.asarray(_rows(cells, y) * y[: cells.size] + np.tensordot(queries.T, y[cells.size :], axes=1))

    def gram_apply(self, v: Floats) -> Floats:
        """AᵀA v."""
        cells, queries = self._values
        return _rows(cells**2, v) * v + np.tensordot(queries.T, np.tensordot(queries, v, axes=1), axes=1)

    @cached_property
    def _core(self) -> tuple[Floats, Floats]:
        """D⁻²Bᵀ and (I + B D⁻² Bᵀ)⁻¹ of the Woodbury identity."""
        cells, queries = self._values
        tall = (queries / cells**2).T
        return tall, np.linalg.inv(np.eye(len(queries)) + queries @ tall)

    def covariance(self, v: Floats) -> Floats:
        """(D² + BᵀB)⁻¹ v by the Woodbury identity: O(n p)."""
        tall, inner = self._core
        return v / _rows(self._values[0] ** 2, v) - np.tensordot(tall @ inner, np.tensordot(tall.T, v, axes=1), axes=1)

    def column_norm(self, norm: Norm) -> float:
        """The largest norm of a column."""
        power = power_of(norm)
        cells, queries = self._values
        return round_up(float((cells**power + (queries**power).sum(axis=0)).max()) ** (1 / power), len(queries) + 4)

    def difference_norm(self, norm: Norm) -> float:
        """Entries are positive: at most √2 columns in L2, 2 in L1."""
        return round_up(2 ** (1 / power_of(norm)), 2) * self.column_norm(norm)

    def closed_form(self, workload: Workload) -> float | None:
        """Σ Gⱼⱼ/Dⱼ² minus the correction of the Woodbury identity, with an implicit Gram matrix."""
        tall, inner = self._core
        return float(
            (workload.gram_diagonal() / self._values[0] ** 2).sum()
            - (inner * (tall.T @ workload.gram_apply(tall))).sum()
        )


def _rows(x: Floats, like: Floats) -> Floats:
    return x.reshape(-1, *[1] * (like.ndim - 1))
