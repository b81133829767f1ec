r"""Marginals of a table with several attributes: the workload, and the spaces it is made of.

For attributes of d₁, …, d_k categories let Π_R, for a set R of attributes, project on what only R's joint distribution
can tell: (I - J/d) on the attributes in R, J/d on the others, J all ones. The Π_R are orthogonal and add up to the
identity; the marginal on S has Gram matrix Σ over R ⊆ S of (Π over i ∉ S of dᵢ) Π_R. So workload and strategy are lists
of eigenvalues, one per R, with multiplicity Π over R of (dᵢ - 1).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import whole
from discreet.workloads.explicit import Explicit
from discreet.workloads.workload import DENSE_LIMIT, Floats, Identity, Workload

__all__ = ["Attributes", "Marginals", "dimension", "marginal", "others", "part", "subsets", "volume"]

Attributes = tuple[int, ...]


def subsets(attributes: Iterable[int]) -> list[Attributes]:
    """Every subset, the empty one first."""
    chosen = tuple(attributes)
    return [subset for size in range(len(chosen) + 1) for subset in combinations(chosen, size)]


def others(shape: Sequence[int], subset: Attributes) -> Attributes:
    """The attributes outside a subset."""
    return tuple(i for i in range(len(shape)) if i not in subset)


def volume(shape: Sequence[int], attributes: Iterable[int]) -> int:
    """The number of combinations of categories of some attributes."""
    return math.prod(shape[i] for i in attributes)


def dimension(shape: Sequence[int], subset: Attributes) -> int:
    """The dimension of Π_R."""
    return math.prod(shape[i] - 1 for i in subset)


def marginal(x: NDArray[Any], shape: Sequence[int], subset: Attributes) -> NDArray[Any]:
    """The sums over the attributes outside a subset, whose axes are kept with length one.

    So a total is an array too: of Python's integers NumPy's own would be a bare one.
    """
    return np.asarray(x.sum(axis=others(shape, subset), keepdims=True))


def part(v: Any, shape: Sequence[int], subset: Attributes) -> Any:
    """Π_R v, on the first axes of ``v``; the axes outside R are kept with length one."""
    v = v.mean(axis=others(shape, subset), keepdims=True) if len(subset) < len(shape) else v
    for i in subset:
        v = v - v.mean(axis=i, keepdims=True)
    return v


@dataclass(frozen=True)
class Marginals(Workload):
    """The counts of every combination of categories of each listed set of attributes.

    ``of`` is a list of sets of attributes, or a number k for all sets of k.

    >>> Marginals((2, 3), [(0,), (1,)]).apply(np.array([[1, 2, 3], [4, 5, 6]])).tolist()
    [6, 15, 5, 7, 9]
    >>> Marginals((2, 3, 4), 2).of
    ((0, 1), (0, 2), (1, 2))
    """

    cells: tuple[int, ...]
    of: Any

    def __post_init__(self) -> None:
        cells = tuple(whole("cells", d, low=1) for d in self.cells)
        sets = self.of if isinstance(self.of, Iterable) else combinations(range(len(cells)), whole("of", self.of))
        chosen = tuple(tuple(sorted(whole("of", i) for i in subset)) for subset in sets)
        if not cells or not chosen or any(len(set(s)) < len(s) or (s and s[-1] >= len(cells)) for s in chosen):
            raise ValueError(
                f"of is {self.of!r}, but must list sets of attributes 0 to {len(cells) - 1}, at least one."
            )
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "of", chosen)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """One axis per attribute."""
        return self.cells

    @property
    def queries(self) -> int:
        """All cells of all marginals."""
        return sum(volume(self.cells, subset) for subset in self.of)

    def apply(self, x: NDArray[Any]) -> NDArray[Any]:
        """One marginal after another."""
        return np.concatenate([marginal(x, self.cells, subset).reshape(-1) for subset in self.of])

    def _row(self, i: int) -> Floats:
        sizes = np.cumsum([volume(self.cells, subset) for subset in self.of])
        at = int(np.searchsorted(sizes, i, side="right"))
        subset, row = self.of[at], np.zeros(self.cells)
        place = np.unravel_index(i - (sizes[at - 1] if at else 0), tuple(self.cells[a] for a in subset))
        row[tuple(place[subset.index(a)] if a in subset else slice(None) for a in range(len(self.cells)))] = 1.0
        return row

    def eigenvalues(self) -> dict[Attributes, float]:
        """The eigenvalue of WᵀW on each Π_R that it sees."""
        found: dict[Attributes, float] = {}
        for kept in self.of:
            for subset in subsets(kept):
                found[subset] = found.get(subset, 0.0) + volume(self.cells, others(self.cells, kept))
        return found

    def gram(self) -> Floats:
        """Densely, for small tables."""
        if self.size > DENSE_LIMIT:
            raise ValueError(f"A dense Gram matrix is limited to {DENSE_LIMIT} cells; this domain has {self.size}.")
        return self.gram_apply(np.eye(self.size))

    def gram_apply(self, v: Floats) -> Floats:
        """Σ over R of eigenvalue × Π_R v."""
        table = v.reshape(*self.cells, *v.shape[1:])
        total = sum(
            value * np.broadcast_to(part(table, self.cells, s), table.shape) for s, value in self.eigenvalues().items()
        )
        return np.asarray(total).reshape(v.shape)

    def gram_diagonal(self) -> Floats:
        """One per marginal: every cell is in one cell of each."""
        return np.full(self.size, float(len(self.of)))

    def nuclear_norm(self) -> float:
        """Roots of eigenvalues, with multiplicity."""
        return sum(dimension(self.cells, s) * math.sqrt(value) for s, value in self.eigenvalues().items())

    def products(self) -> list[tuple[Workload, ...]]:
        """Cells of the attributes in a set, totals of the others."""
        return [
            tuple(Identity(d) if i in s else Explicit(np.ones((1, d))) for i, d in enumerate(self.cells))
            for s in self.of
        ]
