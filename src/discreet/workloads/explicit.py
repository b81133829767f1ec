"""Workloads written out as a matrix, among them the four queries of the lectures."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.workloads.workload import Floats, Norm, Workload, power_of

__all__ = ["Explicit", "four_queries"]


@dataclass(frozen=True, eq=False)
class Explicit(Workload):
    """Queries given as the rows of a matrix, one column per cell.

    >>> Explicit([[1, 1, 0], [0, 1, 1]]).apply(np.array([1, 2, 3])).tolist()
    [3.0, 5.0]
    """

    matrix: ArrayLike

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64)
        if matrix.ndim != 2 or 0 in matrix.shape or not np.isfinite(matrix).all():
            raise ValueError(
                f"matrix has shape {matrix.shape}, but must be finite numbers in rows (queries) and columns "
                "(cells), at least one of each."
            )
        matrix.setflags(write=False)
        object.__setattr__(self, "matrix", matrix)

    @property
    def rows(self) -> Floats:
        """The matrix as an array."""
        return np.asarray(self.matrix, np.float64)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The number of columns."""
        return (self.rows.shape[1],)

    @property
    def queries(self) -> int:
        """The number of rows."""
        return int(self.rows.shape[0])

    def apply(self, x: NDArray[Any]) -> NDArray[Any]:
        """The product with a histogram."""
        product: NDArray[Any] = self.rows @ x
        return product

    def _row(self, i: int) -> Floats:
        return np.array(self.rows[i])

    @cached_property
    def _gram(self) -> Floats:
        return self.rows.T @ self.rows

    def gram(self) -> Floats:
        """WᵀW."""
        return self._gram

    def nuclear_norm(self) -> float:
        """The sum of the singular values."""
        return float(np.linalg.svd(self.rows, compute_uv=False).sum())

    def column_norm(self, norm: Norm) -> float:
        """The largest L1 or L2 norm of a column."""
        return float(np.linalg.norm(self.rows, ord=power_of(norm), axis=0).max())


def four_queries() -> Explicit:
    """The lectures' example: men of low BMI, men, women of low BMI, women, over the four cells sex × BMI.

    >>> four_queries().apply(np.array([3, 4, 1, 9])).tolist()
    [3.0, 7.0, 1.0, 10.0]
    """
    return Explicit([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]])
