r"""No negative counts on a grid, in the norm of ranges or prefixes of its axes: an interior-point method with a
certificate.

The histogram nearest to z,

.. math:: \min_x p(x) = \tfrac12 (x - z)^T G (x - z) \quad\text{subject to}\quad x \ge 0 \ (\text{and } 1^T x = t),

G = WᵀW for a product of ``Prefix``, ``AllRanges`` and cells. G is full and its condition grows as n⁴ on an n × n grid,
so that methods of gradients crawl; but K = G⁻¹ is a product of second differences, a band of a few entries per row. A
step of Newton's method solves (G + λ/x) dx = b, and with K that is

.. math:: (K + x/\lambda)\, y = (x/\lambda)\, b, \qquad dx = K y = (x/\lambda)(b - y),

one banded Cholesky factor of a well-scaled matrix. Steps are Mehrotra's (1992), some 20 in all.

*Certificate.* For any λ ≥ 0 and ν the dual value d = νt - ωᵀz - ½ ωᵀKω with ω = λ + ν bounds the minimum from below,
and p is strongly convex in its own norm, so ½‖W(x - x*)‖² ≤ p(x) - d. It ends when p - d ≤ 10⁻¹⁰ p: the answers are
then within 10⁻⁵ of the length that z was moved by (or within 10⁻¹⁰ of their own, where z hardly moves). What does not
get there gives nothing: another method takes over.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import permutations, product

import numpy as np
from scipy.linalg import cho_solve_banded, cholesky_banded

from discreet.workloads.workload import Floats, Identity, Workload

__all__ = ["Bands", "bands", "nearest_nonnegative"]

Quadratic = Callable[[Floats], Floats]  # v ↦ WᵀW v
_WORK = 2e10  # cells × band², up to which a factor takes about a second
_GAP = 1e-10
_STEPS = 80
_SHORT_OF_THE_EDGE = 0.995  # of the way to where an entry would be zero


@dataclass(frozen=True, eq=False)
class Bands:
    """K = (WᵀW)⁻¹ of a workload over a grid: the product of a tridiagonal matrix for each axis."""

    axes: tuple[tuple[Floats, Floats], ...]  # diagonal, and what stands beside it

    @property
    def shape(self) -> tuple[int, ...]:
        """The grid."""
        return tuple(diagonal.size for diagonal, _ in self.axes)

    def apply(self, v: Floats) -> Floats:
        """K v, axis by axis."""
        for axis, (diagonal, beside) in enumerate(self.axes):
            v = np.moveaxis(v, axis, -1)
            found = v * diagonal
            found[..., 1:] += v[..., :-1] * beside
            found[..., :-1] += v[..., 1:] * beside
            v = np.moveaxis(found, -1, axis)
        return v

    @cached_property
    def lower(self) -> Floats:
        """The diagonals from the main one down, as LAPACK holds them."""
        strides = [math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))]
        rows = np.zeros((self.width + 1, math.prod(self.shape)))
        for steps in product(*((-1, 0, 1) if beside.any() else (0,) for _, beside in self.axes)):
            offset = sum(step * stride for step, stride in zip(steps, strides, strict=True))
            if steps >= (0,) * len(steps):  # the first step that is not zero is downward
                rows[offset] += reduce(
                    np.multiply.outer,
                    [_below_diagonal(*axis, step) for axis, step in zip(self.axes, steps, strict=True)],
                ).reshape(-1)
        return rows

    @property
    def width(self) -> int:
        """How far from the main diagonal the last one is."""
        reach = [int(bool(beside.any())) for _, beside in self.axes]
        return sum(step * math.prod(self.shape[axis + 1 :]) for axis, step in enumerate(reach))


def _below_diagonal(diagonal: Floats, beside: Floats, step: int) -> Floats:
    """The entry ``step`` below the diagonal, in each column."""
    return diagonal if step == 0 else np.append(beside, 0.0) if step > 0 else np.append(0.0, beside)


def bands(workload: Workload | None) -> tuple[Bands, tuple[int, ...]] | None:
    """K in bands, with the order of axes in which they are narrowest; none where the workload has no such inverse, or
    one that is too wide.

    >>> from discreet.workloads import AllRanges, Prefix, Product
    >>> found, order = bands(Product((Prefix(3), AllRanges(2))))
    >>> found.width, order, bands(AllRanges(4))[0].lower[1].tolist()
    (3, (0, 1), [-0.2, -0.2, -0.2, 0.0])
    """
    parts = workload.products() if workload is not None else []
    axes = [_tridiagonal(factor) for factor in parts[0]] if len(parts) == 1 else [None]
    if not all(axis is not None for axis in axes) or len(axes) > 4:
        return None
    known = [axis for axis in axes if axis is not None]
    orders = {order: Bands(tuple(known[axis] for axis in order)) for order in permutations(range(len(known)))}
    order = min(orders, key=lambda order: orders[order].width)
    best = orders[order]
    return (best, order) if math.prod(best.shape) * best.width**2 <= _WORK else None


def _tridiagonal(factor: Workload) -> tuple[Floats, Floats] | None:
    if isinstance(factor, Identity):
        return np.ones(factor.size), np.zeros(factor.size - 1)
    return factor.inverse_gram()


def nearest_nonnegative(workload: Workload, z: Floats, total: float | None = None) -> Floats | None:
    """The histogram without negative counts (and with this total) nearest to ``z`` in the norm of the workload's
    answers; none if the workload is of another kind, or the certificate was not reached.

    >>> from discreet.workloads import Prefix, Product
    >>> nearest_nonnegative(Product((Prefix(2), Prefix(2))), np.array([[-1.0, 2.0], [3.0, 1.0]])).round(3)
    array([[0., 1.],
           [2., 2.]])
    """
    found = bands(workload)
    if found is None or (total is not None and not total > 0):
        return None
    if z.min() >= 0 and (total is None or math.isclose(float(z.sum()), total)):
        return z
    inverse, order = found
    back = np.argsort(order)

    def gram(v: Floats) -> Floats:
        moved = np.transpose(v, back)
        return np.transpose(workload.gram_apply(moved.reshape(-1)).reshape(moved.shape), order)

    with np.errstate(all="ignore"):  # what is no number is never certified
        x = _InteriorPoint(inverse, gram, np.transpose(z, order), total).solve()
    return None if x is None else np.transpose(x, back)


class _InteriorPoint:
    """A point on the way: x > 0, its multipliers λ > 0, and ν, that of the total."""

    def __init__(self, inverse: Bands, gram: Quadratic, z: Floats, total: float | None) -> None:
        self.inverse, self.gram, self.z, self.total = inverse, gram, z, total
        self.diagonal = inverse.lower[0].reshape(z.shape)  # of K
        self.x = np.maximum(z, max(float(np.abs(z).mean()), 1e-3))
        if total is not None:
            self.x *= total / self.x.sum()
        gradient = self._gradient(self.x)
        self.lam = np.maximum(gradient, max(float(np.abs(gradient).mean()), 1e-3))
        self.nu = 0.0
        self.answers = float((z * np.asarray(gram(z))).sum()) / 2  # ½‖Wz‖²

    def _gradient(self, x: Floats) -> Floats:
        """∇p(x) = G (x - z)."""
        return np.asarray(self.gram(x - self.z))

    def solve(self) -> Floats | None:
        """The end of the path, if it is reached."""
        try:
            for _ in range(_STEPS):
                if self._is_certified():
                    return self._round_to_zero()
                if not self._advance():
                    return None
        except (ArithmeticError, np.linalg.LinAlgError):  # numbers beyond what doubles hold, or no factor
            return None
        return None

    def _is_certified(self) -> bool:
        """Whether p - d is small beside p, or beside all that the answers are."""
        primal = float((self.x - self.z).ravel() @ self._gradient(self.x).ravel()) / 2
        omega = self.lam + self.nu
        dual = self.nu * (self.total or 0.0) - float((omega * (self.z + self.inverse.apply(omega) / 2)).sum())
        return primal - dual <= _GAP * primal + _GAP**2 * self.answers

    def _round_to_zero(self) -> Floats:
        """Cells that are zero in the limit are zero: those that their multiplier outweighs."""
        x = np.where(self.x < self.lam * self.diagonal, 0.0, self.x)
        if self.total is None:
            return x
        x = x if x.any() else self.x  # a total far below the noise: no cell outweighs its multiplier
        return np.asarray(x * (self.total / x.sum()))

    def _advance(self) -> bool:
        """One step of Mehrotra's: where x·λ = 0 would lead says how far it is to be lowered now."""
        newton, residual = self._newton(), self._gradient(self.x) - self.lam - self.nu
        along = None if self.total is None else newton(np.ones(self.x.shape))
        products = self.x * self.lam
        mean = float(products.sum()) / products.size

        dx, dlam, _ = self._direction(newton(-products / self.x - residual), along, -products)
        share = min(_reach(self.x, dx), _reach(self.lam, dlam))
        predicted = float(((self.x + share * dx) * (self.lam + share * dlam)).sum()) / products.size

        centring = (predicted / mean) ** 3 * mean
        change = centring - products - dx * dlam
        dx, dlam, dnu = self._direction(newton(change / self.x - residual), along, change)
        if not (np.isfinite(dx).all() and np.isfinite(dlam).all()):
            return False
        share = _SHORT_OF_THE_EDGE * min(_reach(self.x, dx), _reach(self.lam, dlam))
        self.x, self.lam, self.nu = self.x + share * dx, self.lam + share * dlam, self.nu + share * dnu
        return share > 1e-8

    def _newton(self) -> Quadratic:
        """b ↦ (G + λ/x)⁻¹ b, by one factor of K + x/λ."""
        ratio = self.x / self.lam
        matrix = self.inverse.lower.copy()
        matrix[0] += ratio.reshape(-1)
        factor = cholesky_banded(matrix, lower=True, overwrite_ab=True, check_finite=False)

        def solve(b: Floats) -> Floats:
            y = cho_solve_banded((factor, True), (ratio * b).reshape(-1), check_finite=False).reshape(b.shape)
            # of the two forms of the answer, cell by cell, the one that loses fewer digits
            return np.where(ratio < self.diagonal, ratio * (b - y), self.inverse.apply(y))

        return solve

    def _direction(self, dx: Floats, along: Floats | None, change: Floats) -> tuple[Floats, Floats, float]:
        """The steps of x, λ and ν that, to first order, change each x·λ by so much: ``dx``, moved ``along`` what a unit
        of ν moves until the total is met.
        """
        dnu = 0.0
        if along is not None and self.total is not None:
            dnu = (self.total - float(self.x.sum()) - float(dx.sum())) / float(along.sum())
            dx = dx + dnu * along
        return dx, (change - self.lam * dx) / self.x, dnu


def _reach(value: Floats, step: Floats) -> float:
    """How much of a step, at most all, keeps a value from falling below zero."""
    down = step < 0
    return min(1.0, float((-value[down] / step[down]).min())) if down.any() else 1.0
