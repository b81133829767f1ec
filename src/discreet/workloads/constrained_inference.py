r"""Constrained inference: the histogram that fits noisy measurements best and satisfies what is known for certain.

Without constraints this is least squares, which each strategy solves in its own fast way. With them the least-squares
histogram z is moved to the nearest one that satisfies them,

.. math:: \min_x \lVert M (x - z) \rVert^2 \quad\text{subject to}\quad x \in C,

C any of: no negative counts, counts that rise or fall from cell to cell, a known total. All are post-processing: they
cost no privacy. Consistency of sums needs no constraint, because every answer is computed from the one histogram.

**Projection never hurts.** Let C be convex and contain the truth x, and let p be the point of C nearest to an estimate
z in some norm that comes from an inner product. Then ‖p - x‖ ≤ ‖z - x‖ in the same norm: the angle at p between z and
any point of C is at least 90°. So the norm decides what is protected. ``project`` takes M = I: cells.
``constrained_inference`` takes M = W for a given workload: its total squared error never grows, in any run. Without one
it takes M = A, the norm of the measurements, which is maximum likelihood under Gaussian noise but may worsen other
queries: cut at zero, the noise on many empty cells has a bias that adds up in wide ranges.

Decision 32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.optimize import isotonic_regression, minimize

from discreet.errors import choice, number
from discreet.workloads.interior import nearest_nonnegative
from discreet.workloads.ranges import AllRanges, Prefix
from discreet.workloads.strategy import Measured
from discreet.workloads.workload import Floats, Identity, Workload

__all__ = ["Constraints", "Monotone", "check", "constrained_inference", "project"]

Monotone = Literal["increasing", "decreasing"]
_DIRECTIONS = {"increasing": 1, "decreasing": -1}
Quadratic = Callable[[Floats], Floats]  # v ↦ MᵀM v
_ROUNDS = 200  # of multipliers, each of which is a whole minimisation
_TOTAL_IS_MET = 1e-9  # relative to the total


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """What is known of the histogram from public facts. ``total`` must be public: under add-remove it usually is not.

    >>> Constraints(nonnegative=True, total=100)
    Constraints(nonnegative=True, monotone=None, total=100.0)
    """

    nonnegative: bool = False
    monotone: Monotone | None = None
    total: float | None = None

    def __post_init__(self) -> None:
        if self.monotone is not None:
            choice("monotone", self.monotone, _DIRECTIONS)
        if self.total is not None:
            total = number("total", self.total, low=0.0 if self.nonnegative else -(2.0**53), high=2.0**53)
            object.__setattr__(self, "total", total)

    def __bool__(self) -> bool:
        return self.nonnegative or self.monotone is not None or self.total is not None


def check(constraints: Constraints | None, shape: tuple[int, ...]) -> None:
    """Refuse what makes no sense for cells of this shape; before anything is charged."""
    if constraints is not None and constraints.monotone and len(shape) != 1:
        raise ValueError(f"monotone is {constraints.monotone!r}, but cells of shape {shape} have no single order.")


def project(
    x: Any, *, nonnegative: bool = False, monotone: Monotone | None = None, total: float | None = None
) -> Floats:
    """The nearest histogram, cell by cell (Euclidean), that satisfies the constraints; exact.

    Isotonic regression (pool adjacent violators) first; then a shift for the total, or the shift and cut of the
    simplex; or a cut at zero. Shifts and cuts are monotone functions of a cell, so they do not undo the first step,
    and the conditions of optimality show the result to be the projection on the intersection.

    >>> project([3.0, -1.0, 2.0], nonnegative=True, total=4.0).tolist()
    [2.5, 0.0, 1.5]
    >>> project([1.0, 3.0, 2.0], monotone="increasing").tolist()
    [1.0, 2.5, 2.5]
    """
    facts = Constraints(nonnegative=nonnegative, monotone=monotone, total=total)
    z = np.array(x, np.float64)
    if facts.monotone is not None:
        z = np.asarray(isotonic_regression(z, increasing=choice("monotone", facts.monotone, _DIRECTIONS) > 0).x)
    if facts.total is not None:
        return _simplex(z, facts.total) if facts.nonnegative else z + (facts.total - z.sum()) / z.size
    return np.maximum(z, 0.0) if facts.nonnegative else z


def _simplex(z: Floats, total: float) -> Floats:
    """max(z - τ, 0) with the τ that gives the total (Held, Wolfe and Crowder 1974)."""
    down = np.sort(z.reshape(-1))[::-1]
    shifts = (np.cumsum(down) - total) / np.arange(1, down.size + 1)
    last = int(np.flatnonzero(down >= shifts)[-1]) if (down >= shifts).any() else 0
    return np.asarray(np.maximum(z - shifts[last], 0.0))


def constrained_inference(
    strategy: Measured, y: Floats, constraints: Constraints | None = None, workload: Workload | None = None
) -> Floats:
    """The histogram nearest to the least-squares one that satisfies the constraints, in the norm of the workload.

    Without a workload the norm is that of the measurements; without constraints it is plain least squares.
    No negative counts under ``Prefix`` and ``AllRanges`` is isotonic regression of the running sums, exact in linear
    time; on grids with such axes an interior-point method (``workloads.interior``) takes over. Otherwise L-BFGS-B on
    implicit matrices handles bounds; a monotone histogram is written as the running sum of
    its steps, which turns the order into bounds; a total that must hold beside bounds adds a multiplier, improved
    round by round.

    >>> from discreet.workloads.trees import Hierarchy
    >>> noisy, facts = np.array([2.0, -1.0, 4.0]), Constraints(nonnegative=True)
    >>> constrained_inference(Hierarchy(3, (1,), (1,)), noisy, facts).tolist()
    [2.0, 0.0, 4.0]
    """
    check(constraints, strategy.shape)
    z = strategy.estimate(y)
    if not constraints:
        return z
    if constraints.total is not None:  # first the shift that the total asks for, where the measurements resist it least
        pull = strategy.covariance(np.ones(strategy.shape))
        z = z + pull * ((constraints.total - z.sum()) / pull.sum())
    if not (constraints.nonnegative or constraints.monotone):
        return np.asarray(z)
    if isinstance(workload, (Prefix, AllRanges)) and constraints == Constraints(nonnegative=True):
        return _rising_sums(z, workload)
    if isinstance(workload, Identity):
        return project(z, nonnegative=constraints.nonnegative, monotone=constraints.monotone, total=constraints.total)
    if workload is None:
        return _minimise_bounded(strategy.gram_apply, strategy.adjoint(y), z, constraints)
    on_a_grid = nearest_nonnegative(workload, z, constraints.total) if constraints.monotone is None else None
    if on_a_grid is not None:
        return on_a_grid
    gram = _on_tables(workload)
    return _minimise_bounded(gram, gram(z), z, constraints)


def _rising_sums(z: Floats, workload: Prefix | AllRanges) -> Floats:
    """Counts are not negative when running sums rise. ‖Wx‖² is the sum of squares of the running sums s under
    ``Prefix``, and n + 1 times the variance of 0 and s under ``AllRanges``, where a shift of all sums changes nothing.
    """
    if isinstance(workload, Prefix):
        sums = np.maximum(isotonic_regression(np.cumsum(z)).x, 0.0)
        return np.diff(sums, prepend=0.0)
    return np.diff(isotonic_regression(np.cumsum(np.append(0.0, z))).x)


def _on_tables(workload: Workload) -> Quadratic:
    """The workload's Gram matrix, of and into cells in their own shape."""
    return lambda v: workload.gram_apply(v.reshape(-1)).reshape(v.shape)


def _minimise_bounded(gram: Quadratic, linear: Floats, z: Floats, facts: Constraints) -> Floats:
    """min ½ xᵀMᵀM x - linearᵀx over the constraints, started at z; a total is met by multipliers (Hestenes 1969)."""
    if facts.total is None:
        return _minimise_over_bounds(gram, linear, z, facts)
    total, ones = facts.total, np.ones(z.shape)
    weight = 10 * float(gram(ones).sum()) / z.size**2  # ten times the curvature in the direction of the total

    def with_penalty(v: Floats) -> Floats:
        return np.asarray(gram(v) + weight * v.sum())

    x, multiplier = z, 0.0
    for _ in range(_ROUNDS):
        x = _minimise_over_bounds(with_penalty, linear + multiplier + weight * total, x, facts)
        gap = total - float(x.sum())
        if abs(gap) <= _TOTAL_IS_MET * (1 + abs(total)):
            break
        multiplier += weight * gap
    return x


def _minimise_over_bounds(gram: Quadratic, linear: Floats, start: Floats, facts: Constraints) -> Floats:
    """min ½ xᵀMᵀM x - linearᵀx where cells are not negative, or rise or fall.

    A histogram that rises is the running sum of its steps, x = S s, and one that falls is that read backwards. Over the
    steps the order is a bound, s ≥ 0, and the gradient is Sᵀ times that over cells.
    """
    guess = project(start, nonnegative=facts.nonnegative, monotone=facts.monotone)
    if facts.monotone is None:
        free, lowest = guess.reshape(-1), [0.0] * guess.size

        def to_cells(variables: Floats) -> Floats:
            return variables.reshape(start.shape)

        def to_free(gradient: Floats) -> Floats:
            return gradient.reshape(-1)

    else:
        upward = slice(None, None, choice("monotone", facts.monotone, _DIRECTIONS))  # from the lowest cell on
        free = np.diff(guess[upward], prepend=0.0)
        lowest = [0.0 if facts.nonnegative else -np.inf, *[0.0] * (free.size - 1)]  # the first step is a level

        def to_cells(variables: Floats) -> Floats:
            return np.asarray(np.cumsum(variables)[upward])

        def to_free(gradient: Floats) -> Floats:
            return np.asarray(np.cumsum(gradient[upward][::-1])[::-1])

    def objective(variables: Floats) -> tuple[float, Floats]:
        x = to_cells(variables)
        product = gram(x)
        return float((x * (product / 2 - linear)).sum()), to_free(product - linear)

    found = minimize(
        objective,
        free,
        jac=True,
        method="L-BFGS-B",
        bounds=[(low, np.inf) for low in lowest],
        options={"maxiter": 5000, "maxfun": 20_000, "maxcor": 30, "ftol": 1e-15, "gtol": 1e-9},
    )
    return np.asarray(to_cells(np.asarray(found.x)))
