r"""Marginals of a table with several attributes, and their optimal strategies.

For attributes of d₁, …, d_k categories let Π_R, for a set R of attributes, project on what only R's joint distribution
can tell: (I - J/d) on the attributes in R, J/d on the others, J all ones. The Π_R are orthogonal and add up to the
identity; the marginal on S has Gram matrix Σ over R ⊆ S of (Π over i ∉ S of dᵢ) Π_R. So workload and strategy are lists
of eigenvalues, one per R, with multiplicity Π over R of (dᵢ - 1).

All cells look alike to such matrices, so diag(X) is constant and the optimum under Gaussian noise is the singular-value
bound itself: X ∝ √(WᵀW). It is measured as residuals (Xiao et al. 2023 measure the same spaces): for each R that some
marginal of the workload contains, the whole-number table Π over R of (dᵢ I - J), summed over the other attributes.
For Laplace noise the marginals themselves are measured, with weights found by descent (McKenna et al. 2018).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from discreet.errors import whole
from discreet.workloads.strategy import Strategy, raised
from discreet.workloads.workload import DENSE_LIMIT, Explicit, Floats, Identity, Norm, Workload

__all__ = ["MarginalCounts", "Marginals", "Residuals", "optimal_marginals", "optimal_residuals"]

Attributes = tuple[int, ...]
_ALL = 8  # attributes up to which all sets of them may be measured under Laplace noise, not only the workload's


def _subsets(attributes: Iterable[int]) -> list[Attributes]:
    chosen = tuple(attributes)
    return [subset for size in range(len(chosen) + 1) for subset in combinations(chosen, size)]


def _others(shape: Sequence[int], subset: Attributes) -> Attributes:
    return tuple(i for i in range(len(shape)) if i not in subset)


def _volume(shape: Sequence[int], attributes: Iterable[int]) -> int:
    return math.prod(shape[i] for i in attributes)


def _dimension(shape: Sequence[int], subset: Attributes) -> int:
    return math.prod(shape[i] - 1 for i in subset)


def _part(v: Any, shape: Sequence[int], subset: Attributes) -> Any:
    """Π_R v, on the first axes of ``v``; the axes outside R are kept with length one."""
    v = v.mean(axis=_others(shape, subset), keepdims=True) if len(subset) < len(shape) else v
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
        sets = combinations(range(len(cells)), whole("of", self.of)) if isinstance(self.of, int) else self.of
        chosen = tuple(tuple(sorted(whole("of", i) for i in subset)) for subset in sets)
        if not cells or not chosen or any(len(set(s)) < len(s) or (s and s[-1] >= len(cells)) for s in chosen):
            raise ValueError(f"of is {self.of!r}, but must list sets of attributes 0 to {len(cells) - 1}, at least one.")
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "of", chosen)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """One axis per attribute."""
        return self.cells

    @property
    def queries(self) -> int:
        """All cells of all marginals."""
        return sum(_volume(self.cells, subset) for subset in self.of)

    def apply(self, x: NDArray[Any]) -> NDArray[Any]:
        """One marginal after another."""
        return np.concatenate([x.sum(axis=_others(self.cells, subset)).reshape(-1) for subset in self.of])

    def eigenvalues(self) -> dict[Attributes, float]:
        """The eigenvalue of WᵀW on each Π_R that it sees."""
        found: dict[Attributes, float] = {}
        for marginal in self.of:
            for subset in _subsets(marginal):
                found[subset] = found.get(subset, 0.0) + _volume(self.cells, _others(self.cells, marginal))
        return found

    def gram(self) -> Floats:
        """Densely, for small tables."""
        if self.size > DENSE_LIMIT:
            raise ValueError(f"A dense Gram matrix is limited to {DENSE_LIMIT} cells; this domain has {self.size}.")
        return self.gram_apply(np.eye(self.size))

    def gram_apply(self, v: Floats) -> Floats:
        """Σ over R of eigenvalue × Π_R v."""
        table = v.reshape(*self.cells, *v.shape[1:])
        total = sum(value * np.broadcast_to(_part(table, self.cells, s), table.shape)
                    for s, value in self.eigenvalues().items())
        return np.asarray(total).reshape(v.shape)

    def gram_diagonal(self) -> Floats:
        """One per marginal: every cell is in one cell of each."""
        return np.full(self.size, float(len(self.of)))

    def nuclear_norm(self) -> float:
        """Roots of eigenvalues, with multiplicity."""
        return sum(_dimension(self.cells, s) * math.sqrt(value) for s, value in self.eigenvalues().items())

    def products(self) -> list[tuple[Workload, ...]]:
        """Cells of the attributes in a set, totals of the others."""
        return [tuple(Identity(d) if i in s else Explicit(np.ones((1, d))) for i, d in enumerate(self.cells)) for s in self.of]


class _OnMarginals(Strategy):
    """A strategy whose Gram matrix is a combination of the Π_R."""

    cells: tuple[int, ...]
    weights: dict[Attributes, int]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """One axis per attribute."""
        return self.cells

    @property
    def spectrum(self) -> dict[Attributes, float]:
        """The eigenvalue of AᵀA on each Π_R that is measured."""
        raise NotImplementedError

    def _spectral(self, v: Floats, values: dict[Attributes, float]) -> Floats:
        total = sum(value * np.broadcast_to(_part(v, self.cells, s), v.shape) for s, value in values.items())
        return np.asarray(total)

    def gram_apply(self, v: Floats) -> Floats:
        """Σ over R of eigenvalue × Π_R v."""
        return self._spectral(v, self.spectrum)

    def covariance(self, v: Floats) -> Floats:
        """Σ over R of Π_R v / eigenvalue, on what is measured."""
        return self._spectral(v, {s: 1 / value for s, value in self.spectrum.items()})

    def closed_form(self, workload: Workload) -> float | None:
        """Eigenvalue over eigenvalue, with multiplicity."""
        if isinstance(workload, Identity):
            workload = Marginals(self.cells, [range(len(self.cells))])
        if not isinstance(workload, Marginals):
            return None
        spectrum, owed = self.spectrum, workload.eigenvalues()
        if missing := [s for s in owed if s not in spectrum]:
            raise ValueError(f"The strategy does not measure the attributes {missing[0]} that the workload asks for.")
        return sum(_dimension(self.cells, s) * value / spectrum[s] for s, value in owed.items())

    @property
    def _reals(self) -> dict[Attributes, float]:
        return {s: math.ldexp(w, -self.bits) for s, w in self.weights.items()}

    def _pieces(self, y: Floats) -> Iterable[tuple[Attributes, Floats]]:
        """The answers of each set, as a table over its attributes (others of length one)."""
        place = 0
        for s in self.weights:
            kept = tuple(d if i in s else 1 for i, d in enumerate(self.cells))
            yield s, y[place:place + math.prod(kept)].reshape(*kept, *y.shape[1:])
            place += math.prod(kept)

    @property
    def rows(self) -> int:
        """The cells of every measured table."""
        return sum(_volume(self.cells, s) for s in self.weights)


@dataclass(frozen=True, eq=False)
class Residuals(_OnMarginals):
    """For each set R, what its joint counts say beyond smaller sets: Π over R of (dᵢ I - J), times a whole weight."""

    cells: tuple[int, ...]
    weights: dict[Attributes, int]
    bits: int = 0
    name: str = "optimised"

    @property
    def row_sum(self) -> float:
        """|entries| of a row add up to 2(d - 1) per attribute in R and to d for the others; sums on the way, to 2d."""
        return max(w * math.prod(2 * d if i in s else d for i, d in enumerate(self.cells))
                   for s, w in self._reals.items())

    @cached_property
    def spectrum(self) -> dict[Attributes, float]:
        """weight² × Π over R of dᵢ² × Π over the others of dᵢ."""
        return {s: w * w * float(_volume(self.cells, range(len(self.cells)))) * _volume(self.cells, s)
                for s, w in self._reals.items()}

    def _residual(self, x: Any, subset: Attributes) -> Any:
        x = x.sum(axis=_others(self.cells, subset), keepdims=True) if len(subset) < len(self.cells) else x
        for i in subset:
            x = self.cells[i] * x - x.sum(axis=i, keepdims=True)
        return x

    def exact(self, x: NDArray[Any]) -> NDArray[Any]:
        """Sums and multiples of whole numbers."""
        return np.concatenate([(w * self._residual(x, s)).reshape(-1) for s, w in self.weights.items()])

    def adjoint(self, y: Floats) -> Floats:
        """The same tables, spread over the other attributes."""
        shape = (*self.cells, *y.shape[1:])
        total = np.zeros(shape)
        for s, piece in self._pieces(y):
            total += self._reals[s] * self._residual_only(piece, s)
        return total

    def _residual_only(self, piece: Floats, subset: Attributes) -> Floats:
        for i in subset:
            piece = self.cells[i] * piece - piece.sum(axis=i, keepdims=True)
        return piece

    def column_norm(self, norm: Norm) -> float:
        """A column of d I - J has entries d - 1 once and -1 otherwise; norms multiply."""
        if norm == "l1":
            return raised(sum(w * math.prod(2 * (self.cells[i] - 1) for i in s) for s, w in self._reals.items()), 64)
        squares = sum(w * w * math.prod(self.cells[i] * (self.cells[i] - 1) for i in s) for s, w in self._reals.items())
        return raised(math.sqrt(squares), 64 + len(self.weights))


@dataclass(frozen=True, eq=False)
class MarginalCounts(_OnMarginals):
    """Marginals, each times a whole weight."""

    cells: tuple[int, ...]
    weights: dict[Attributes, int]
    bits: int = 0
    name: str = "optimised"

    @property
    def row_sum(self) -> float:
        """The total, weighted."""
        return max(w * _volume(self.cells, _others(self.cells, s)) for s, w in self._reals.items())

    @cached_property
    def spectrum(self) -> dict[Attributes, float]:
        """Every marginal says something about its subsets."""
        found: dict[Attributes, float] = {}
        for marginal, w in self._reals.items():
            for subset in _subsets(marginal):
                found[subset] = found.get(subset, 0.0) + w * w * _volume(self.cells, _others(self.cells, marginal))
        return found

    def exact(self, x: NDArray[Any]) -> NDArray[Any]:
        """Sums of whole numbers."""
        return np.concatenate([(w * x.sum(axis=_others(self.cells, s))).reshape(-1) for s, w in self.weights.items()])

    def adjoint(self, y: Floats) -> Floats:
        """Every cell collects the marginal cells it is in."""
        total = np.zeros((*self.cells, *y.shape[1:]))
        for s, piece in self._pieces(y):
            total += self._reals[s] * piece
        return total

    def column_norm(self, norm: Norm) -> float:
        """One cell of each marginal."""
        power = 1 if norm == "l1" else 2
        return raised(sum(w**power for w in self._reals.values()) ** (1 / power), len(self.weights) + 2)

    def difference_norm(self, norm: Norm) -> float:
        """Two cells that differ in every attribute share only the total."""
        power = 1 if norm == "l1" else 2
        apart = sum(2 * w**power for s, w in self._reals.items() if s)
        return raised(float(apart) ** (1 / power), len(self.weights) + 3)


def optimal_residuals(workload: Marginals) -> Residuals:
    """The best strategy for marginals under Gaussian noise: its error is the singular-value bound.

    >>> w = Marginals((4, 5, 6), 2)
    >>> strategy = optimal_residuals(w)
    >>> error = strategy.trace(w) * strategy.column_norm("l2") ** 2
    >>> round(error / (w.nuclear_norm() ** 2 / w.size), 6)
    1.0
    """
    exact = {s: math.sqrt(math.sqrt(value) / workload.size / _volume(workload.cells, s))
             for s, value in workload.eigenvalues().items()}
    squares = sum(w * w * math.prod(workload.cells[i] * (workload.cells[i] - 1) for i in s) for s, w in exact.items())
    weights, bits = _whole_weights({s: w / math.sqrt(squares) for s, w in exact.items()})
    return Residuals(workload.cells, weights, bits)


def optimal_marginals(workload: Marginals) -> MarginalCounts:
    """Weights on marginals that suit Laplace noise, found by descent from the workload's own and from the full table.

    >>> list(optimal_marginals(Marginals((40, 50, 60), 1)).weights)
    [(0,), (1,), (2,)]
    >>> list(optimal_marginals(Marginals((3, 4, 5), 2)).weights)
    [(0, 1, 2)]
    """
    owed = workload.eigenvalues()
    everything = _subsets(range(len(workload.cells))) if len(workload.cells) <= _ALL else list(owed)
    sets = sorted(everything, key=lambda s: (len(s), s))
    counts = np.array([_volume(workload.cells, _others(workload.cells, s)) for s in sets], float)
    inside = np.array([[float(set(small) <= set(large)) for large in sets] for small in sets]) * counts
    energy = np.array([_dimension(workload.cells, s) * owed.get(s, 0.0) for s in sets])

    def objective(logs: Floats) -> tuple[float, Floats]:
        w = np.exp(logs)
        spectrum = inside @ w**2
        error, total = float((energy / spectrum).sum()), float(w.sum())
        slope = -2 * w**2 * (inside.T @ (energy / spectrum**2)) / error + 2 * w / total
        return math.log(error) + 2 * math.log(total), slope

    likely = [np.array([1.0 if s in workload.of else 0.05 for s in sets]), np.array([0.05] * (len(sets) - 1) + [1.0])]
    runs = [minimize(objective, np.log(start), jac=True, method="L-BFGS-B", bounds=[(-20.0, 20.0)] * len(sets))
            for start in likely]
    logs = np.asarray(min(runs, key=lambda run: float(run.fun)).x)
    exact = dict(zip(sets, np.exp(logs - logs.max()).tolist(), strict=True))
    kept = {s: w for s, w in exact.items() if w > 1e-3}
    for s in workload.of:  # what the kept ones do not determine is measured, however little it weighs
        if not any(set(s) <= set(larger) for larger in kept):
            kept[s] = exact[s]
    return MarginalCounts(workload.cells, *_whole_weights(kept))


def _whole_weights(weights: dict[Attributes, float]) -> tuple[dict[Attributes, int], int]:
    """Weights to 20 significant places of the smallest."""
    bits = 20 - math.frexp(min(weights.values()))[1]
    return {s: max(1, round(math.ldexp(w, bits))) for s, w in weights.items()}, bits
