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


class _OnMarginals(Strategy):
    """A strategy whose Gram matrix is a combination of the Π_R."""

    cells: tuple[int, ...]
    weights: dict[Attributes, int]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """One axis per attribute."""
        return self.cells

    @property
    @abstractmethod
    def spectrum(self) -> dict[Attributes, float]:
        """The eigenvalue of AᵀA on each Π_R that is measured."""

    def _spectral(self, v: Floats, values: dict[Attributes, float]) -> Floats:
        total = sum(value * np.broadcast_to(part(v, self.cells, s), v.shape) for s, value in values.items())
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
        return sum(dimension(self.cells, s) * value / spectrum[s] for s, value in owed.items())

    @property
    def _reals(self) -> dict[Attributes, float]:
        return {s: math.ldexp(w, -self.bits) for s, w in self.weights.items()}

    def _pieces(self, y: Floats) -> Iterable[tuple[Attributes, Floats]]:
        """The answers of each set, as a table over its attributes (others of length one)."""
        place = 0
        for s in self.weights:
            kept = tuple(d if i in s else 1 for i, d in enumerate(self.cells))
            yield s, y[place : place + math.prod(kept)].reshape(*kept, *y.shape[1:])
            place += math.prod(kept)

    @property
    def rows(self) -> int:
        """The cells of every measured table."""
        return sum(volume(self.cells, s) for s in self.weights)


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
        return max(
            w * math.prod(2 * d if i in s else d for i, d in enumerate(self.cells)) for s, w in self._reals.items()
        )

    @cached_property
    def spectrum(self) -> dict[Attributes, float]:
        """weight² × Π over R of dᵢ² × Π over the others of dᵢ."""
        return {
            s: w * w * float(volume(self.cells, range(len(self.cells)))) * volume(self.cells, s)
            for s, w in self._reals.items()
        }

    def _residual(self, x: Any, subset: Attributes) -> Any:
        return self._residual_only(marginal(x, self.cells, subset), subset)

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

    def _residual_only(self, piece: Any, subset: Attributes) -> Any:
        for i in subset:
            piece = self.cells[i] * piece - piece.sum(axis=i, keepdims=True)
        return piece

    def column_norm(self, norm: Norm) -> float:
        """A column of d I - J has entries d - 1 once and -1 otherwise; norms multiply."""
        if power_of(norm) == 1:
            return round_up(sum(w * math.prod(2 * (self.cells[i] - 1) for i in s) for s, w in self._reals.items()), 64)
        squares = sum(w * w * math.prod(self.cells[i] * (self.cells[i] - 1) for i in s) for s, w in self._reals.items())
        return round_up(math.sqrt(squares), 64 + len(self.weights))


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
        return max(w * volume(self.cells, others(self.cells, s)) for s, w in self._reals.items())

    @cached_property
    def spectrum(self) -> dict[Attributes, float]:
        """Every marginal says something about its subsets."""
        found: dict[Attributes, float] = {}
        for kept, w in self._reals.items():
            for subset in subsets(kept):
                found[subset] = found.get(subset, 0.0) + w * w * volume(self.cells, others(self.cells, kept))
        return found

    def exact(self, x: NDArray[Any]) -> NDArray[Any]:
        """Sums of whole numbers."""
        return np.concatenate([(w * marginal(x, self.cells, s)).reshape(-1) for s, w in self.weights.items()])

    def adjoint(self, y: Floats) -> Floats:
        """Every cell collects the marginal cells it is in."""
        total = np.zeros((*self.cells, *y.shape[1:]))
        for s, piece in self._pieces(y):
            total += self._reals[s] * piece
        return total

    def column_norm(self, norm: Norm) -> float:
        """One cell of each marginal."""
        power = power_of(norm)
        return round_up(sum(w**power for w in self._reals.values()) ** (1 / power), len(self.weights) + 2)

    def difference_norm(self, norm: Norm) -> float:
        """Two cells that differ in every attribute share only the total."""
        power = power_of(norm)
        apart = sum(2 * w**power for s, w in self._reals.items() if s)
        return round_up(float(apart) ** (1 / power), len(self.weights) + 3)


def optimal_residuals(workload: Marginals) -> Residuals:
    """The best strategy for marginals under Gaussian noise: its error is the singular-value bound.

    >>> w = Marginals((4, 5, 6), 2)
    >>> strategy = optimal_residuals(w)
    >>> error = strategy.trace(w) * strategy.column_norm("l2") ** 2
    >>> round(error / (w.nuclear_norm() ** 2 / w.size), 6)
    1.0
    """
    exact = {
        s: math.sqrt(math.sqrt(value) / workload.size / volume(workload.cells, s))
        for s, value in workload.eigenvalues().items()
    }
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
    everything = subsets(range(len(workload.cells))) if len(workload.cells) <= _ALL else list(owed)
    sets = sorted(everything, key=lambda s: (len(s), s))
    counts = np.array([volume(workload.cells, others(workload.cells, s)) for s in sets], float)
    inside = np.array([[float(set(small) <= set(large)) for large in sets] for small in sets]) * counts
    energy = np.array([dimension(workload.cells, s) * owed.get(s, 0.0) for s in sets])

    def objective(logs: Floats) -> tuple[float, Floats]:
        w = np.exp(logs)
        spectrum = inside @ w**2
        error, total = float((energy / spectrum).sum()), float(w.sum())
        slope = -2 * w**2 * (inside.T @ (energy / spectrum**2)) / error + 2 * w / total
        return math.log(error) + 2 * math.log(total), slope

    likely = [np.array([1.0 if s in workload.of else 0.05 for s in sets]), np.array([0.05] * (len(sets) - 1) + [1.0])]
    runs = [
        minimize(objective, np.log(start), jac=True, method="L-BFGS-B", bounds=[(-20.0, 20.0)] * len(sets))
        for start in likely
    ]
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
