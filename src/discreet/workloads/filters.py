r"""The optimal strategy for prefixes and ranges under Gaussian noise, in linear time: a few exponential filters.

**The problem.** With AᵀA = X and unit-variance noise per unit of L2 sensitivity, the expected error is tr(G X⁻¹) with
diag(X) ≤ 1, a convex problem. Its dual is a weighted singular-value bound: for any u ≥ 0 the error is at least
:math:`(\mathrm{tr}\,(U^{1/2} G U^{1/2})^{1/2})^2 / \sum u`, U = diag(u), and at the optimum
:math:`X = U^{-1/2} (U^{1/2} G U^{1/2})^{1/2} U^{-1/2}` with diag(X) = 1 (Li and Miklau 2012; Yuan et al. 2016).

**Structure.** For ``Prefix`` and ``AllRanges`` G⁻¹ = T is tridiagonal, so :math:`K = U^{-1/2} T U^{-1/2}` is too and
:math:`X = U^{-1/2} K^{-1/2} U^{-1/2}`. The inverse root is replaced by a rational function with J positive poles, the
quadrature of Hale, Higham and Trefethen (2008), which makes X a sum of inverses of tridiagonal matrices,

.. math:: X = \sum_j \omega_j (T + s_j U)^{-1} .

Each term is BᵀB for an exponential filter zᵢ = xᵢ + aᵢ zᵢ₋₁ with yᵢ = gᵢ zᵢ and 0 ≤ a ≤ 1 (the bidiagonal Cholesky
factor). The strategy measures the outputs of J filters. Being an approximation of the optimum, not of the strategy
that is used, the rational function costs error in the second order only; J = 12 is within 0.01 % of the optimum at n =
16,384.

**Search.** uᵢ ← uᵢ Xᵢᵢ until the primal error is within 0.05 % of the dual bound; every step is O(J n).

**Inference.** 1/r for the rational function r is again one, with known positive partial fractions, so
X⁻¹ = q₀U + b T + Σ vⱼ T (T + tⱼU)⁻¹ U: least squares is J tridiagonal solves, and so is the expected error.

Decision 31.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh_tridiagonal, solve_banded
from scipy.linalg.lapack import dpttrf, dpttrs
from scipy.optimize import brentq
from scipy.special import ellipj, ellipkm1

from discreet.workloads.strategy import Strategy, round_up
from discreet.workloads.workload import Floats, Norm, Workload, power_of

__all__ = ["Filters", "inverse_root_poles", "optimal_filters"]

_GAP = 5e-4  # of the squared error, between the strategy and the dual bound
_STEPS = 500  # it takes 8 for ranges, 64 for prefixes of 16,384 cells
_COEFFICIENT = 52  # binary places of filter coefficients: whole numbers over 2^52, and exact doubles
_STATE = 64  # binary places of a filter's state
_OUTPUT = 40  # binary places of an answer


def inverse_root_poles(low: float, high: float, terms: int) -> tuple[Floats, Floats]:
    """Weights ω and poles s > 0 with x^(-1/2) ≈ Σ ω/(x + s) for x from ``low`` to ``high``.

    Reference: Hale, Higham and Trefethen (2008): the midpoint rule after an elliptic change of variable.

    >>> weights, poles = inverse_root_poles(1e-4, 1.0, 12)
    >>> bool(abs((weights / (0.01 + poles)).sum() - 10) < 1e-4)
    True
    """
    quarter = float(ellipkm1(low / high))
    sn, cn, dn, _ = ellipj((np.arange(terms) + 0.5) * quarter / terms, 1 - low / high)
    return 2 / math.pi * quarter / terms * math.sqrt(low) * dn / cn**2, low * (sn / cn) ** 2


def optimal_filters(workload: Workload, terms: int = 12) -> Filters:
    """The strategy of least expected error under Gaussian noise, for a workload whose inverse Gram is tridiagonal.

    >>> from discreet.workloads.ranges import AllRanges
    >>> w = AllRanges(256)
    >>> strategy = optimal_filters(w)
    >>> round(math.sqrt(strategy.trace(w) / w.queries) * strategy.column_norm("l2"), 3)  # the SVD bound is 2.876
    2.902
    """
    tridiagonal = workload.inverse_gram()
    if tridiagonal is None or workload.size < 2:
        raise ValueError(
            f"{type(workload).__name__} has no tridiagonal inverse Gram matrix over two cells or more; use optimise()."
        )
    diagonal, beside = tridiagonal
    u = np.ones(workload.size)
    for _ in range(_STEPS):
        weights, poles = _poles(diagonal, beside, u, terms)
        x = _diagonal_of_strategy(diagonal, beside, u, weights, poles)
        value = float(u @ x)
        dual, error = value**2 / float(u.sum()), value * float(x.max())  # of X scaled to columns of norm at most 1
        if error <= dual * (1 + _GAP):
            break
        u = u * x
    return Filters(diagonal, beside, u, weights, poles)


def _diagonal_of_strategy(diagonal: Floats, beside: Floats, u: Floats, weights: Floats, poles: Floats) -> Floats:
    """The diagonal of X = Σ ω (T + sU)⁻¹: the squared norms of columns."""
    terms = [w * _inverse_diagonal(diagonal + s * u, beside) for w, s in zip(weights, poles, strict=True)]
    return np.asarray(sum(terms))


def _poles(diagonal: Floats, beside: Floats, u: Floats, terms: int) -> tuple[Floats, Floats]:
    """Poles for the spectrum of K = U^(-1/2) T U^(-1/2)."""
    root = 1 / np.sqrt(u)
    main, side = diagonal / u, beside * root[1:] * root[:-1]
    low = float(eigvalsh_tridiagonal(main, side, select="i", select_range=(0, 0))[0])
    return inverse_root_poles(low, max(2 * float(main.max()), low * 1.01), terms)


def _inverse_diagonal(diagonal: Floats, beside: Floats) -> Floats:
    """The diagonal of a tridiagonal inverse, from the pivots of eliminations from both ends."""
    down = dpttrf(diagonal, beside)[0]
    up = dpttrf(diagonal[::-1], beside[::-1])[0][::-1]
    inverse: Floats = 1 / (down + up - diagonal)
    return inverse


@dataclass(frozen=True, eq=False)
class Filters(Strategy):
    """Exponential filters zᵢ = xᵢ + aᵢ zᵢ₋₁, yᵢ = gᵢ zᵢ with several decays each; made by ``optimal_filters``.

    Sensitivity: columns hold gᵢ times products of a's, all positive, and their norms follow from a recursion over
    cells. Rounding: coefficients are whole multiples of 2^-52, the state is kept to 2^-64 and loses less than one unit
    a step; since a ≤ 1 the losses of n steps add up to less than n units; the answer is cut to 2^-40 once.
    """

    diagonal: Floats = field(repr=False)
    beside: Floats = field(repr=False)
    u: Floats = field(repr=False)
    omega: Floats = field(repr=False)
    poles: Floats = field(repr=False)
    bits: int = _OUTPUT
    name: str = "optimised"

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The number of cells."""
        return self.u.shape

    @property
    def rows(self) -> int:
        """One value per filter and cell."""
        return self.u.size * self.poles.size

    @property
    def rounding(self) -> float:
        """n units of the state and one of the answer."""
        return self.u.size * 2.0**-_STATE + 2.0**-_OUTPUT

    @property
    def row_sum(self) -> float:
        """Coefficients are at most 1."""
        return float(self.u.size)

    @cached_property
    def _pivots(self) -> list[tuple[Floats, Floats]]:
        """D and the multipliers of L, of T + sU = L D Lᵀ, for each pole."""
        return [dpttrf(self.diagonal + s * self.u, self.beside)[:2] for s in self.poles]

    @cached_property
    def _norm_squared(self) -> float:
        """The largest diagonal entry of X before scaling."""
        return float(_diagonal_of_strategy(self.diagonal, self.beside, self.u, self.omega, self.poles).max())

    @cached_property
    def decays(self) -> Floats:
        """a, one row per cell: minus the multipliers of the Cholesky factor, on the grid of coefficients."""
        a = np.zeros((self.u.size, self.poles.size))
        a[1:] = np.stack([-e for _, e in self._pivots], axis=1)
        return _on_grid(np.minimum(a, 1.0))

    @cached_property
    def gains(self) -> Floats:
        """g, one row per cell, scaled so that columns have norm 1, on the grid of coefficients."""
        g = np.sqrt(self.omega / np.stack([d for d, _ in self._pivots], axis=1) / self._norm_squared)
        return _on_grid(np.minimum(g, 1.0))

    def exact(self, x: NDArray[Any]) -> NDArray[Any]:
        """The recursions on integers of any length."""
        one_each = (-1, self.poles.size, *[1] * (x.ndim - 1))  # for every cell, a number a filter
        decays, gains = _whole(self.decays).reshape(one_each), _whole(self.gains).reshape(one_each)
        state: Any = np.zeros((self.poles.size, *x.shape[1:]), object)
        answers = np.empty((x.shape[0], *state.shape), object)
        for i, cell in enumerate(x.astype(object) << _STATE):
            state = (decays[i] * state >> _COEFFICIENT) + cell
            answers[i] = gains[i] * state >> (_COEFFICIENT + _STATE - _OUTPUT)
        return answers.reshape(-1, *x.shape[1:])

    def adjoint(self, y: Floats) -> Floats:
        """Σ over filters of √ω L⁻ᵀ D^(-1/2) y: a bidiagonal solve each."""
        columns = y.reshape(self.u.size, self.poles.size, -1)
        total = sum(
            _solve_transposed(multipliers, self.gains[:, j, None] * columns[:, j])
            for j, (_, multipliers) in enumerate(self._pivots)
        )
        return np.asarray(total).reshape(self.u.size, *y.shape[1:])

    def gram_apply(self, v: Floats) -> Floats:
        """X v."""
        total = np.zeros_like(v)
        for w, pivots in zip(self.omega, self._pivots, strict=True):
            total += w * _solve(pivots, v)
        return total / self._norm_squared

    @cached_property
    def _inverse(self) -> tuple[float, float, Floats, Floats]:
        """q₀, b, v, t of 1/r(x) = q₀ + b x + Σ v x/(x + t), r(x) = Σ ω/(x + s); a zero of r lies between two poles."""
        order = np.argsort(self.poles)
        omega, s = self.omega[order], self.poles[order]

        def zero_between(low: float, high: float) -> float:
            """Where r(-x) is zero, as a share of the way: ends that lie close together keep their digits."""

            def r(share: float) -> float:
                return float((omega / (s - low - share * (high - low))).sum())

            return float(brentq(r, 1e-15, 1 - 1e-15, xtol=1e-15))

        shares = np.array([zero_between(low, high) for low, high in pairwise(s)])
        t = s[:-1] + shares * np.diff(s)
        slopes = (omega[:, None] / (s[:, None] - t) ** 2).sum(axis=0)
        return float(1 / (omega / s).sum()), float(1 / omega.sum()), 1 / (slopes * t), t

    def covariance(self, v: Floats) -> Floats:
        """X⁻¹ v = q₀ U v + b T v + Σ vⱼ T (T + tⱼU)⁻¹ U v."""
        constant, slope, residues, zeros = self._inverse
        weighted = self.u.reshape(-1, *[1] * (v.ndim - 1)) * v
        inner = slope * v
        for residue, t in zip(residues, zeros, strict=True):
            inner = inner + residue * _solve(dpttrf(self.diagonal + t * self.u, self.beside)[:2], weighted)
        return (constant * weighted + self._times(inner)) * self._norm_squared

    def _times(self, v: Floats) -> Floats:
        """T v."""
        column = (-1, *[1] * (v.ndim - 1))
        out = self.diagonal.reshape(column) * v
        out[1:] += self.beside.reshape(column) * v[:-1]
        out[:-1] += self.beside.reshape(column) * v[1:]
        return out

    def column_norm(self, norm: Norm) -> float:
        """cᵢ = gᵢ^p + aᵢ₊₁^p cᵢ₊₁, summed over filters: the p-th power of the norm of column i."""
        p = power_of(norm)
        a, g = self.decays**p, self.gains**p
        tail = largest = np.zeros(self.poles.size)
        for i in range(self.u.size - 1, -1, -1):
            tail = g[i] + (a[i + 1] * tail if i + 1 < self.u.size else 0.0)
            largest = max(largest, tail, key=np.sum)
        return round_up(float(largest.sum()) ** (1 / p), 8 * self.u.size + self.poles.size)

    def difference_norm(self, norm: Norm) -> float:
        """Entries are positive, so columns are at an angle of at most 90°: √2 in L2, 2 in L1."""
        return round_up(2 ** (1 / power_of(norm)), 2) * self.column_norm(norm)

    def closed_form(self, workload: Workload) -> float | None:
        """tr(T⁻¹ X⁻¹) for the workload the filters were made for: q₀ tr(T⁻¹U) + b n + Σ vⱼ tr((T + tⱼU)⁻¹U)."""
        tridiagonal = workload.inverse_gram()
        if tridiagonal is None or not all(map(np.array_equal, tridiagonal, (self.diagonal, self.beside))):
            return None
        constant, slope, residues, zeros = self._inverse
        total = constant * float(_inverse_diagonal(self.diagonal, self.beside) @ self.u) + slope * self.u.size
        for residue, t in zip(residues, zeros, strict=True):
            total += residue * float(_inverse_diagonal(self.diagonal + t * self.u, self.beside) @ self.u)
        return total * self._norm_squared


def _on_grid(x: Floats) -> Floats:
    """To the nearest multiple of 2^-52."""
    return np.rint(x * 2.0**_COEFFICIENT) * 2.0**-_COEFFICIENT


def _whole(x: Floats) -> NDArray[Any]:
    """How many times 2^-52, as integers of any length."""
    return (x * 2.0**_COEFFICIENT).astype(np.int64).astype(object)


def _solve(pivots: tuple[Floats, Floats], v: Floats) -> Floats:
    """(L D Lᵀ)⁻¹ v."""
    solved: Floats = dpttrs(*pivots, v.reshape(len(v), -1))[0].reshape(v.shape)
    return solved


def _solve_transposed(multipliers: Floats, v: Floats) -> Floats:
    """Lᵀ z = v for a unit lower bidiagonal L with these multipliers."""
    solved: Floats = solve_banded((0, 1), np.stack([np.append(0.0, multipliers), np.ones(len(v))]), v)
    return solved
