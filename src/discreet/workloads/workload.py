r"""Workloads: the linear queries that must be answered, as implicit matrices over a histogram.

A workload W has one row per query and one column per cell of a declared domain. What error analysis needs of it is
small: the Gram matrix G = WᵀW through its diagonal, its action on a vector, and the energy of blocks of cells. The
structured workloads know these in closed form, so no matrix of queries × cells is ever built for them.

>>> Identity(3).apply(np.array([1, 2, 3])).tolist()
[1, 2, 3]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import choice, whole

__all__ = ["DENSE_LIMIT", "Floats", "Identity", "Norm", "Workload", "cells", "power_of"]

Floats = NDArray[Any]  # of doubles; their shape and exact float type are not tracked
Norm = Literal["l1", "l2"]


def power_of(norm: Norm) -> int:
    """The p of an Lp norm: a sensitivity is never taken in another norm than the one that was named.

    >>> power_of("l2")
    2
    """
    return choice("norm", norm, {"l1": 1, "l2": 2})


DENSE_LIMIT = 4096  # cells up to which a dense Gram matrix may be built for what has no closed form


class Workload(ABC):
    """Linear queries over a histogram of ``shape``; all answers are ``apply(histogram)``."""

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @property
    @abstractmethod
    def queries(self) -> int:
        """The number of queries."""

    @abstractmethod
    def apply(self, x: NDArray[Any]) -> NDArray[Any]:
        """W x: every answer on the histogram ``x``, exactly if it holds integers and the queries do too."""

    def row(self, i: int) -> Floats:
        """Query ``i`` as its weights on the cells, in their shape."""
        if not 0 <= whole("i", i) < self.queries:
            raise ValueError(f"i is {i}, but there are {self.queries} queries, counted from 0.")
        return self._row(i)

    @abstractmethod
    def _row(self, i: int) -> Floats:
        """The weights of query ``i``."""

    @abstractmethod
    def gram(self) -> Floats:
        """The dense Gram matrix WᵀW, for domains of moderate size."""

    def gram_apply(self, v: Floats) -> Floats:
        """WᵀW v, along the first axis of ``v``."""
        return self.gram() @ v

    def gram_diagonal(self) -> Floats:
        """The squared norm of every column of W."""
        return np.diagonal(self.gram()).copy()

    def block_energy(self, width: int) -> float:
        """Σ ‖W 1_B‖² over the blocks B of ``width`` neighbouring cells (the last one may be shorter)."""
        starts = np.arange(0, self.size, width)
        rows = np.add.reduceat(self.gram(), starts, axis=0)
        return float(np.trace(np.add.reduceat(rows, starts, axis=1)))

    def diagonal_sums(self) -> Floats:
        """The sum of each upper diagonal of WᵀW: what a translation-invariant strategy sees of it."""
        gram = self.gram()
        return np.array([np.trace(gram, offset=d) for d in range(self.size)])

    def nuclear_norm(self) -> float:
        """The sum of the singular values of W."""
        return float(np.sqrt(np.maximum(np.linalg.eigvalsh(self.gram()), 0.0)).sum())

    def column_norm(self, norm: Norm) -> float:
        """The largest L1 or L2 norm of a column: how far one record moves the answers."""
        largest = float(self.gram_diagonal().max())
        return largest if power_of(norm) == 1 else math.sqrt(largest)  # entries 0 and 1: the square is the sum

    def inverse_gram(self) -> tuple[Floats, Floats] | None:
        """Diagonal and off-diagonal of (WᵀW)⁻¹ where that is tridiagonal, otherwise none."""
        return None

    def products(self) -> list[tuple[Workload, ...]]:
        """The workload as a union of products, each one workload per axis; empty where it is not known to be one."""
        return [(self,)] if len(self.shape) == 1 else []


def cells(n: object) -> int:
    """A number of cells: whole, at least one."""
    return whole("n", n, low=1)


@dataclass(frozen=True)
class Identity(Workload):
    """Every cell of a histogram of ``n`` cells, or of a table of cells of a given shape.

    >>> Identity((2, 3)).queries
    6
    """

    n: int | tuple[int, ...]

    def __post_init__(self) -> None:
        shape = tuple(cells(k) for k in (self.n if isinstance(self.n, tuple) else (self.n,)))
        object.__setattr__(self, "n", shape[0] if len(shape) == 1 else shape)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of the histogram."""
        return self.n if isinstance(self.n, tuple) else (self.n,)

    @property
    def queries(self) -> int:
        """One per cell."""
        return self.size

    def apply(self, x: NDArray[Any]) -> NDArray[Any]:
        """The histogram itself, in one row."""
        return np.asarray(x).reshape(-1)

    def _row(self, i: int) -> Floats:
        row = np.zeros(self.size)
        row[i] = 1.0
        return row.reshape(self.shape)

    def gram(self) -> Floats:
        """The identity."""
        return np.eye(self.size)

    def gram_apply(self, v: Floats) -> Floats:
        """``v``."""
        return v

    def gram_diagonal(self) -> Floats:
        """Ones."""
        return np.ones(self.size)

    def block_energy(self, width: int) -> float:
        """One per cell."""
        return float(self.size)

    def diagonal_sums(self) -> Floats:
        """The main diagonal, and nothing else."""
        sums = np.zeros(self.size)
        sums[0] = self.size
        return sums

    def nuclear_norm(self) -> float:
        """One per cell."""
        return float(self.size)

    def products(self) -> list[tuple[Workload, ...]]:
        """The cells of every axis."""
        return [tuple(Identity(k) for k in self.shape)]
