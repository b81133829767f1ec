r"""Strategies for marginals: the optimum under Gaussian noise, weighted marginals under Laplace noise.

All cells look alike to combinations of the projectors Π_R of ``workloads.marginals``, so diag(X) is constant and the
optimum under Gaussian noise is the singular-value bound itself: X ∝ √(WᵀW). It is measured as residuals (Xiao et al.
2023 measure the same spaces): for each R that some marginal of the workload contains, the whole-number table Π over R
of (dᵢ I - J), summed over the other attributes. For Laplace noise the marginals themselves are measured, with weights
found by descent (McKenna et al. 2018).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from discreet.workloads.marginals import Attributes, Marginals, dimension, marginal, others, part, subsets, volume
from discreet.workloads.strategy import Strategy, round_up
from discreet.workloads.workload import Floats, Identity, Norm, Workload, power_of

__all__ = ["MarginalCounts", "Residuals", "optimal_marginals", "optimal_residuals"]

_ALL = 8  # attributes up to which all sets of them may be measured under Laplace noise, not only the workload's
_FAINT = 0.05  # where descent starts for a table that is not thought to matter; zero could not grow
_LEAST = 1e-3  # of the largest weight: a table that weighs less is not measured


@dataclass(frozen=True, eq=False)
class _OnMarginals(Strategy):
    """A strategy whose Gram matrix is a combination of the Π_R.

    ``cells`` has the number of values of each attribute. A table over the attributes ``s`` is measured with the weight
    weights[s] / 2^bits: whole numbers, so that ``exact`` is.
    """

    cells: tuple[int, ...]
    weights: dict[Attributes, int]
    bits: int = 0
    name: str = "optimised"

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """One axis per attribute."""
        return self.cells

    @property
    @abstractmethod
    def spectrum(self) -> dict[Attributes, float]:
        """The eigenvalue of AᵀA on each Π_R that is measured."""

    def _combine(self, v: Floats, values: dict[Attributes, float]) -> Floats:
        """Σ over R of value × Π_R v."""
        total = sum(value * np.broadcast_to(part(v, self.cells, s), v.shape) for s, value in values.items())
        return np.asarray(total)

    def gram_apply(self, v: Floats) -> Floats:
        """Σ over R of eigenvalue × Π_R v."""
        return self._combine(v, self.spectrum)

    def covariance(self, v: Floats) -> Floats:
        """Σ over R of Π_R v / eigenvalue, on what is measured."""
        return self._combine(v, {s: 1 / value for s, value in self.spectrum.items()})

    def closed_form(self, workload: Workload) -> float | None:
        """Eigenvalue over eigenvalue, with multiplicity."""
        if isinstance(workload, Identity):
            workload = Marginals(self.cells, [range(len(self.cells))])
        if not isinstance(workload, Marginals):
            return None
        spectrum, owed = self.spectrum, workload.eigenvalues()
        if missing := [s for s in owed if s not in spectrum]:
            raise ValueError(f"The strategy does not measure the attributes {missing[0]} that the workload asks for.")
        return sum(dimension(self.cells, s) * value / spectrum[s] for s, value in owed.items())

    @property
    def _real_weights(self) -> dict[Attributes, float]:
        """The weights as numbers."""
        return {s: math.ldexp(w, -self.bits) for s, w in self.weights.items()}

    def _tables(self, y: Floats) -> Iterable[tuple[Attributes, Floats]]:
        """The answers of each set, as a table over its attributes (others of length one)."""
        start = 0
        for s in self.weights:
            shape = tuple(d if i in s else 1 for i, d in enumerate(self.cells))
            end = start + math.prod(shape)
            yield s, y[start:end].reshape(*shape, *y.shape[1:])
            start = end

    @property
    def rows(self) -> int:
        """The cells of every measured table."""
        return sum(volume(self.cells, s) for s in self.weights)


@dataclass(frozen=True, eq=False)
class Residuals(_OnMarginals):
    """For each set R, what its joint counts say beyond smaller sets: Π over R of (dᵢ I - J), times a whole weight."""

    @property
    def row_sum(self) -> float:
        """|entries| of a row add up to 2(d - 1) per attribute in R and to d for the others; sums on the way, to 2d."""
        return max(
            w * math.prod(2 * d if i in s else d for i, d in enumerate(self.cells))
            for s, w in self._real_weights.items()
        )

    @cached_property
    def spectrum(self) -> dict[Attributes, float]:
        """weight² × Π over R of dᵢ² × Π over the others of dᵢ."""
        return {
            s: w * w * float(volume(self.cells, range(len(self.cells)))) * volume(self.cells, s)
            for s, w in self._real_weights.items()
        }

    def exact(self, x: NDArray[Any]) -> NDArray[Any]:
        """Sums and multiples of whole numbers."""
        tables = {s: self._remove_means(marginal(x, self.cells, s), s) for s in self.weights}
        return np.concatenate([(w * tables[s]).reshape(-1) for s, w in self.weights.items()])

    def adjoint(self, y: Floats) -> Floats:
        """The same tables, spread over the other attributes."""
        weights, total = self._real_weights, np.zeros((*self.cells, *y.shape[1:]))
        for s, table in self._tables(y):
            total += weights[s] * self._remove_means(table, s)
        return total

    def _remove_means(self, table: Any, along: Attributes) -> Any:
        """d I - J along each of these attributes: d times the table less its means there, in whole numbers."""
        for i in along:
            table = self.cells[i] * table - table.sum(axis=i, keepdims=True)
        return table

    def column_norm(self, norm: Norm) -> float:
        """A column of d I - J has entries d - 1 once and -1 otherwise; norms multiply."""
        if power_of(norm) == 1:
            magnitudes = (w * math.prod(2 * (self.cells[i] - 1) for i in s) for s, w in self._real_weights.items())
            return round_up(sum(magnitudes), 64)
        squares = _residual_squares(self.cells, self._real_weights)
        return round_up(math.sqrt(squares), 64 + len(self.weights))


@dataclass(frozen=True, eq=False)
class MarginalCounts(_OnMarginals):
    """Marginals, each times a whole weight."""

    @property
    def row_sum(self) -> float:
        """The total, weighted."""
        return max(w * volume(self.cells, others(self.cells, s)) for s, w in self._real_weights.items())

    @cached_property
    def spectrum(self) -> dict[Attributes, float]:
        """Every marginal says something about its subsets."""
        eigenvalues: dict[Attributes, float] = {}
        for kept, w in self._real_weights.items():
            for subset in subsets(kept):
                more = w * w * volume(self.cells, others(self.cells, kept))
                eigenvalues[subset] = eigenvalues.get(subset, 0.0) + more
        return eigenvalues

    def exact(self, x: NDArray[Any]) -> NDArray[Any]:
        """Sums of whole numbers."""
        return np.concatenate([(w * marginal(x, self.cells, s)).reshape(-1) for s, w in self.weights.items()])

    def adjoint(self, y: Floats) -> Floats:
        """Every cell collects the marginal cells it is in."""
        weights, total = self._real_weights, np.zeros((*self.cells, *y.shape[1:]))
        for s, table in self._tables(y):
            total += weights[s] * table
        return total

    def column_norm(self, norm: Norm) -> float:
        """One cell of each marginal."""
        power = power_of(norm)
        return round_up(sum(w**power for w in self._real_weights.values()) ** (1 / power), len(self.weights) + 2)

    def difference_norm(self, norm: Norm) -> float:
        """Two cells that differ in every attribute share only the total."""
        power = power_of(norm)
        apart = sum(2 * w**power for s, w in self._real_weights.items() if s)
        return round_up(float(apart) ** (1 / power), len(self.weights) + 3)


def optimal_residuals(workload: Marginals) -> Residuals:
    """The best strategy for marginals under Gaussian noise: its error is the singular-value bound.

    >>> w = Marginals((4, 5, 6), 2)
    >>> strategy = optimal_residuals(w)
    >>> error = strategy.trace(w) * strategy.column_norm("l2") ** 2
    >>> round(error / (w.nuclear_norm() ** 2 / w.size), 6)
    1.0
    """
    wanted = {  # eigenvalues of √(WᵀW), which those of ``Residuals.spectrum`` are to be
        s: math.sqrt(math.sqrt(value) / workload.size / volume(workload.cells, s))
        for s, value in workload.eigenvalues().items()
    }
    norm = math.sqrt(_residual_squares(workload.cells, wanted))
    return Residuals(workload.cells, *_whole_weights({s: w / norm for s, w in wanted.items()}))


def _residual_squares(cells: tuple[int, ...], weights: dict[Attributes, float]) -> float:
    """The squares of a column of all residual tables: (d - 1)² + (d - 1) = d(d - 1) an attribute."""
    return sum(w * w * math.prod(cells[i] * (cells[i] - 1) for i in s) for s, w in weights.items())


def optimal_marginals(workload: Marginals) -> MarginalCounts:
    """Weights on marginals that suit Laplace noise, found by descent from the workload's own and from the full table.

    >>> list(optimal_marginals(Marginals((40, 50, 60), 1)).weights)
    [(0,), (1,), (2,)]
    >>> list(optimal_marginals(Marginals((3, 4, 5), 2)).weights)
    [(0, 1, 2)]
    """
    owed = workload.eigenvalues()
    everything = subsets(range(len(workload.cells))) if len(workload.cells) <= _ALL else list(owed)
    sets = sorted(everything, key=lambda s: (len(s), s))
    weights = _lightest_weights(workload, sets, owed)
    kept = {s: w for s, w in weights.items() if w > _LEAST}
    for s in workload.of:  # what the kept ones do not determine is measured, however little it weighs
        if not any(set(s) <= set(larger) for larger in kept):
            kept[s] = weights[s]
    return MarginalCounts(workload.cells, *_whole_weights(kept))


def _lightest_weights(
    workload: Marginals, sets: list[Attributes], owed: dict[Attributes, float]
) -> dict[Attributes, float]:
    """The weights w, the largest of them 1, of least error: (Σw)² Σ_R energy_R / spectrum_R, by L-BFGS in log w.

    spectrum = M w², with M[R, S] the cells of a table over what S leaves out, where S contains R.
    """
    summed = np.array([volume(workload.cells, others(workload.cells, s)) for s in sets], float)
    matrix = np.array([[float(set(small) <= set(large)) for large in sets] for small in sets]) * summed
    energy = np.array([dimension(workload.cells, s) * owed.get(s, 0.0) for s in sets])

    def log_error(logs: Floats) -> tuple[float, Floats]:
        """log of the error, and its gradient."""
        w = np.exp(logs)
        spectrum, total = matrix @ w**2, float(w.sum())
        error = float((energy / spectrum).sum())
        gradient = -2 * w**2 * (matrix.T @ (energy / spectrum**2)) / error + 2 * w / total
        return math.log(error) + 2 * math.log(total), gradient

    own = np.array([1.0 if s in workload.of else _FAINT for s in sets])
    whole_table = np.array([_FAINT] * (len(sets) - 1) + [1.0])
    runs = [
        minimize(log_error, np.log(start), jac=True, method="L-BFGS-B", bounds=[(-20.0, 20.0)] * len(sets))
        for start in (own, whole_table)
    ]
    logs = np.asarray(min(runs, key=lambda run: float(run.fun)).x)
    return dict(zip(sets, np.exp(logs - logs.max()).tolist(), strict=True))


def _whole_weights(weights: dict[Attributes, float]) -> tuple[dict[Attributes, int], int]:
    """Weights to 20 binary places of the smallest: whole numbers, and by which power of two they are to be divided."""
    bits = 20 - math.frexp(min(weights.values()))[1]
    return {s: max(1, round(math.ldexp(w, bits))) for s, w in weights.items()}, bits
