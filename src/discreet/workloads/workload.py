r"""Workloads: the linear queries that must be answered, as implicit matrices over a histogram.

A workload W has one row per query and one column per cell of a declared domain. What error analysis needs of it is
small: the Gram matrix G = WᵀW through its diagonal, its action on a vector, and the energy of blocks of cells. The
structured workloads know these in closed form, so no matrix of queries × cells is ever built for them.

>>> AllRanges(4).apply(np.array([1, 2, 3, 4])).tolist()
[1, 3, 6, 10, 2, 5, 9, 3, 7, 4]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import whole

__all__ = ["DENSE_LIMIT", "AllRanges", "Floats", "Identity", "Norm", "Prefix", "Workload"]

Floats = NDArray[Any]  # of doubles; their shape and exact float type are not tracked
Norm = Literal["l1", "l2"]
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
        return largest if norm == "l1" else math.sqrt(largest)  # entries 0 and 1: the square is the sum

    def inverse_gram(self) -> tuple[Floats, Floats] | None:
        """Diagonal and off-diagonal of (WᵀW)⁻¹ where that is tridiagonal, otherwise none."""
        return None

    def products(self) -> list[tuple[Workload, ...]]:
        """The workload as a union of products, each one workload per axis; empty where it is not known to be one."""
        return [(self,)] if len(self.shape) == 1 else []


def _cells(n: object) -> int:
    return whole("n", n, low=1)


@dataclass(frozen=True)
class Identity(Workload):
    """Every cell of a histogram of ``n`` cells, or of a table of cells of a given shape.

    >>> Identity((2, 3)).queries
    6
    """

    n: int | tuple[int, ...]

    def __post_init__(self) -> None:
        shape = tuple(_cells(k) for k in (self.n if isinstance(self.n, tuple) else (self.n,)))
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


class _Line(Workload):
    """A workload over ``n`` cells in a row."""

    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", _cells(self.n))

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The shape of the histogram."""
        return (self.n,)

    def _blocks(self, width: int) -> tuple[Floats, Floats]:
        low = np.arange(0, self.n, width, dtype=np.float64)
        return low, np.minimum(low + width, self.n)


@dataclass(frozen=True)
class Prefix(_Line):
    """The cumulative counts x₀ + … + xᵢ of ``n`` cells: the empirical distribution function.

    WᵀW has entries n - max(i, j); its inverse is the second-difference matrix with a free left end.

    >>> Prefix(3).apply(np.array([5, 0, 2])).tolist()
    [5, 5, 7]
    """

    n: int

    @property
    def queries(self) -> int:
        """One per cell."""
        return self.n

    def apply(self, x: NDArray[Any]) -> NDArray[Any]:
        """Running sums."""
        return np.cumsum(x)

    def gram(self) -> Floats:
        """n - max(i, j)."""
        i = np.arange(self.n, dtype=np.float64)
        return self.n - np.maximum(i[:, None], i)

    def gram_apply(self, v: Floats) -> Floats:
        """Running sums from the left, then from the right."""
        sums: Floats = np.cumsum(np.cumsum(v, axis=0)[::-1], axis=0)[::-1]
        return sums

    def gram_diagonal(self) -> Floats:
        """n, n - 1, …, 1."""
        return np.arange(self.n, 0, -1, dtype=np.float64)

    def block_energy(self, width: int) -> float:
        """In a block a..b-1 of s cells the sums grow 1², 2², …, s², and stay at s² for the n - b queries after it."""
        low, high = self._blocks(width)
        s = high - low
        return float((s * (s + 1) * (2 * s + 1) / 6 + (self.n - high) * s * s).sum())

    def diagonal_sums(self) -> Floats:
        """Σᵢ (n - i - d): triangular numbers."""
        left = np.arange(self.n, 0, -1, dtype=np.float64)
        return left * (left + 1) / 2

    def nuclear_norm(self) -> float:
        """The singular values are 1/(2 sin((2k - 1)π/(4n + 2)))."""
        k = np.arange(1, self.n + 1)
        return float((0.5 / np.sin((2 * k - 1) * np.pi / (4 * self.n + 2))).sum())

    def inverse_gram(self) -> tuple[Floats, Floats]:
        """Second differences: 1, 2, 2, …, 2 with -1 beside them."""
        diagonal = np.full(self.n, 2.0)
        diagonal[0] = 1.0
        return diagonal, np.full(self.n - 1, -1.0)


@dataclass(frozen=True)
class AllRanges(_Line):
    """Every range count xᵢ + … + xⱼ of ``n`` cells, i ≤ j, ordered by i and then by j: n(n + 1)/2 queries.

    WᵀW has entries (min(i, j) + 1)(n - max(i, j)), n + 1 times the inverse of the second-difference matrix.

    >>> AllRanges(256).queries
    32896
    """

    n: int

    @property
    def queries(self) -> int:
        """n(n + 1)/2."""
        return self.n * (self.n + 1) // 2

    def apply(self, x: NDArray[Any]) -> NDArray[Any]:
        """Differences of running sums, filled in row by row."""
        sums = np.concatenate([np.zeros(1, np.asarray(x).dtype), np.cumsum(x)])
        out, place = np.empty(self.queries, sums.dtype), 0
        for i in range(self.n):
            out[place:place + self.n - i] = sums[i + 1:] - sums[i]
            place += self.n - i
        return out

    def index(self, first: int, last: int) -> int:
        """The position of the range of cells ``first`` to ``last``, both included.

        >>> AllRanges(4).index(1, 2)
        5
        """
        first, last = whole("first", first), whole("last", last)
        if not first <= last < self.n:
            raise ValueError(f"The range {first} to {last} is not inside the cells 0 to {self.n - 1}.")
        return first * self.n - first * (first - 1) // 2 + last - first

    def gram(self) -> Floats:
        """(min(i, j) + 1)(n - max(i, j))."""
        i = np.arange(self.n, dtype=np.float64)
        return np.asarray((np.minimum(i[:, None], i) + 1) * (self.n - np.maximum(i[:, None], i)))

    def gram_apply(self, v: Floats) -> Floats:
        """Two weighted running sums, one from each side."""
        ahead = np.arange(1, self.n + 1, dtype=np.float64).reshape(-1, *[1] * (v.ndim - 1))
        behind = ahead[::-1]
        left = np.cumsum(ahead * v, axis=0)
        right = np.cumsum((behind * v)[::-1], axis=0)[::-1] - behind * v
        total: Floats = behind * left + ahead * right
        return total

    def gram_diagonal(self) -> Floats:
        """(i + 1)(n - i): how many ranges cover a cell."""
        ahead = np.arange(1, self.n + 1, dtype=np.float64)
        return ahead * ahead[::-1]

    def block_energy(self, width: int) -> float:
        """Σ over p, q < s of (a + 1 + min)(n - a - max), from Σ min, Σ max and Σ min·max = (Σ p)²."""
        low, high = self._blocks(width)
        s, ahead, behind = high - low, low + 1, self.n - low
        smaller = s * (s - 1) * (2 * s - 1) / 6
        larger = s * s * (s - 1) - smaller
        return float((ahead * behind * s * s - ahead * larger + behind * smaller - (s * (s - 1) / 2) ** 2).sum())

    def diagonal_sums(self) -> Floats:
        """Σᵢ (i + 1)(m - i) with m = n - d: tetrahedral numbers."""
        m = np.arange(self.n, 0, -1, dtype=np.float64)
        return m * (m + 1) * (m + 2) / 6

    def nuclear_norm(self) -> float:
        """The singular values are √(n + 1)/(2 sin(kπ/(2n + 2)))."""
        k = np.arange(1, self.n + 1)
        return float(math.sqrt(self.n + 1) * (0.5 / np.sin(k * np.pi / (2 * self.n + 2))).sum())

    def inverse_gram(self) -> tuple[Floats, Floats]:
        """Second differences over n + 1."""
        return np.full(self.n, 2.0 / (self.n + 1)), np.full(self.n - 1, -1.0 / (self.n + 1))
