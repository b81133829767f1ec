"""Workloads over cells in a row: running sums, and every range.

>>> AllRanges(4).apply(np.array([1, 2, 3, 4])).tolist()
[1, 3, 6, 10, 2, 5, 9, 3, 7, 4]
>>> AllRanges(4).row(5).tolist()
[0.0, 1.0, 1.0, 0.0]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import whole
from discreet.workloads.workload import Floats, Workload, cells

__all__ = ["AllRanges", "Prefix"]


class _Line(Workload):
    """A workload over ``n`` cells in a row."""

    n: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", cells(self.n))

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

    def _row(self, i: int) -> Floats:
        return np.where(np.arange(self.n) <= i, 1.0, 0.0)

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
            out[place : place + self.n - i] = sums[i + 1 :] - sums[i]
            place += self.n - i
        return out

    def _row(self, i: int) -> Floats:
        first = np.arange(self.n)
        starts = first * self.n - first * (first - 1) // 2  # positions of the ranges of one cell
        low = int(np.searchsorted(starts, i, side="right")) - 1
        return np.where((first >= low) & (first <= low + i - starts[low]), 1.0, 0.0)

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
