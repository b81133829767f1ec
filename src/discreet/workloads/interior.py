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
        x = _Path(inverse, gram, np.transpose(z, order), total).solve()
    return None if x is None else np.transpose(x, back)


class _Path:
    """The points on the way: x, λ > 0 and ν."""

    def __init__(self, inverse: Bands, gram: Quadratic, z: Floats, total: float | None) -> None:
        self.inverse, self.gram, self.z, self.total = inverse, gram, z, total
        self.middle = inverse.lower[0].reshape(z.shape)
        self.x = np.maximum(z, max(float(np.abs(z).mean()), 1e-3))
        if total is not None:
            self.x *= total / self.x.sum()
        pull = self._pull(self.x)
        self.slope = np.maximum(pull, max(float(np.abs(pull).mean()), 1e-3))  # λ
        self.lift = 0.0  # ν
        self.length = float((z * np.asarray(gram(z))).sum()) / 2

    def _pull(self, x: Floats) -> Floats:
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
        pull = self._pull(self.x)
        worth = float((self.x - self.z).ravel() @ pull.ravel()) / 2
        both = self.slope + self.lift
        dual = self.lift * (self.total or 0.0) - float((both * (self.z + self.inverse.apply(both) / 2)).sum())
        return worth - dual <= _GAP * worth + _GAP**2 * self.length

    def _round_to_zero(self) -> Floats:
        """Cells that are zero in the limit are zero: those whose slope outweighs them."""
        x = np.where(self.x < self.slope * self.middle, 0.0, self.x)
        if self.total is None:
            return x
        x = x if x.any() else self.x  # a total far below the noise: no cell outweighs its slope
        return np.asarray(x * (self.total / x.sum()))

    def _advance(self) -> bool:
        x, slope, size = self.x, self.slope, self.x.size
        ratio = x / slope
        factor = self.inverse.lower.copy()
        factor[0] += ratio.reshape(-1)
        held = cholesky_banded(factor, lower=True, overwrite_ab=True, check_finite=False)

        def newton(b: Floats) -> Floats:
            y = cho_solve_banded((held, True), (ratio * b).reshape(-1), check_finite=False).reshape(b.shape)
            return np.where(ratio < self.middle, ratio * (b - y), self.inverse.apply(y))

        away = self._pull(x) - slope - self.lift
        ones = None if self.total is None else newton(np.ones(x.shape))

        def step(target: Floats) -> tuple[Floats, Floats, float]:  # towards x·λ = x·λ + target
            dx, lift = newton(target / x - away), 0.0
            if ones is not None:
                lift = ((self.total or 0.0) - float(x.sum()) - float(dx.sum())) / float(ones.sum())
                dx = dx + lift * ones
            return dx, (target - slope * dx) / x, lift

        product_now = x * slope
        dx, ds, _ = step(-product_now)
        near = min(_reach(x, dx), _reach(slope, ds))
        mean = float(product_now.sum()) / size
        ahead = float(((x + near * dx) * (slope + near * ds)).sum()) / size
        dx, ds, lift = step((ahead / mean) ** 3 * mean - product_now - dx * ds)
        reach = 0.995 * min(_reach(x, dx), _reach(slope, ds)) if np.isfinite(dx).all() and np.isfinite(ds).all() else 0
        self.x, self.slope, self.lift = x + reach * dx, slope + reach * ds, self.lift + reach * lift
        return reach > 1e-8


def _reach(value: Floats, step: Floats) -> float:
    """How much of a step, at most all, keeps a value from falling below zero."""
    down = step < 0
    return min(1.0, float((-value[down] / step[down]).min())) if down.any() else 1.0
