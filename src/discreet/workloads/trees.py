r"""Hierarchies and wavelets: strategies made of nested blocks, with linear-time inference.

Let P₀ = I, P₁, …, P_h average over blocks of nested widths. Both strategies have AᵀA = Σ μₗ (Pₗ - Pₗ₊₁) with P_{h+1} =
0: commuting projectors, so inverse, least squares and expected error are sums over levels,

.. math:: (A^\top A)^{-1} = \sum_l \mu_l^{-1} (P_l - P_{l+1}), \qquad
          \mathrm{tr}(G (A^\top A)^{-1}) = \sum_l \mu_l^{-1} (t_l - t_{l+1}), \quad
          t_l = \tfrac{1}{w_l}\sum_B 1_B^\top G\, 1_B .

Applying the inverse is one pass of block means up the tree and one down: the two passes of Hay et al. (2010), for any
branching and any weight per level.

A domain that the widths do not divide is padded with cells known to be empty.

Decision 104.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import choice
from discreet.workloads.strategy import Strategy, round_up
from discreet.workloads.workload import Floats, Norm, Workload, power_of

__all__ = ["Hierarchy", "Nested", "Wavelet", "tree_widths"]


def tree_widths(n: int, branching: int) -> tuple[int, ...]:
    """Block widths 1, b, b², … below ``n``, and then the whole domain, padded to a multiple of the last.

    >>> tree_widths(256, 16), tree_widths(10, 4)
    ((1, 16, 256), (1, 4, 12))
    """
    widths = [1]
    while widths[-1] * branching < n:
        widths.append(widths[-1] * branching)
    if n > 1:
        widths.append(-(-n // widths[-1]) * widths[-1])
    return tuple(widths)


class Nested(Strategy):
    """A strategy whose Gram matrix is a combination of nested block averages."""

    n: int
    widths: tuple[int, ...]
    weights: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        """The cells, without the padding."""
        return (self.n,)

    @property
    def padded(self) -> int:
        """The number of cells with the padding."""
        top = self.widths[-1]
        return -(-self.n // top) * top

    @property
    @abstractmethod
    def spectrum(self) -> Floats:
        """The eigenvalue of AᵀA on each level, finest first."""

    @property
    def _reals(self) -> Floats:
        return np.array(self.weights, np.float64) * 2.0**-self.bits

    def _pad(self, v: NDArray[Any]) -> NDArray[Any]:
        if self.padded == self.n:
            return v
        return np.concatenate([v, np.zeros((self.padded - self.n, *v.shape[1:]), v.dtype)])

    def _sums(self, v: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Block sums of a padded vector, one level after another, finest first."""
        width = 1
        for wider in self.widths:
            v = v.reshape(-1, wider // width, *v.shape[1:]).sum(axis=1)
            width = wider
            yield v

    def _spectral(self, v: Floats, values: Floats) -> Floats:
        """Σ valuesₗ (Pₗ - Pₗ₊₁) v: means up, corrections down."""
        means = [s / w for s, w in zip(self._sums(self._pad(v)), self.widths, strict=True)]
        out = means[-1] * values[-1]
        for level in range(len(means) - 2, -1, -1):
            times = self.widths[level + 1] // self.widths[level]
            out = np.repeat(out - values[level] * means[level + 1], times, axis=0) + values[level] * means[level]
        return np.asarray(out[: self.n])

    def covariance(self, v: Floats) -> Floats:
        """The inverse of the Gram matrix, in linear time."""
        return self._spectral(v, 1 / self.spectrum)

    def gram_apply(self, v: Floats) -> Floats:
        """The Gram matrix, in linear time."""
        return self._spectral(v, self.spectrum)

    def closed_form(self, workload: Workload) -> float | None:
        """A sum over levels of the workload's energy on blocks."""
        if len(workload.shape) != 1:
            return None
        energies = [workload.block_energy(width) / width for width in self.widths] + [0.0]
        return float(-(np.diff(energies) / self.spectrum).sum())


@dataclass(frozen=True)
class Hierarchy(Nested):
    """The counts of blocks of nested ``widths``, those of one width multiplied by a weight of ``bits`` binary places.

    With widths (1,) it is the identity strategy; with a single wide block, the total. The weights say how the budget is
    divided between the levels.

    Reference: Hay, Rastogi, Miklau and Suciu (2010); Qardaji, Yang and Li (2013) on branching.

    >>> strategy = Hierarchy(8, widths=(1, 2, 4, 8), weights=(1, 1, 1, 1))
    >>> strategy.rows, round(strategy.column_norm("l1"), 9), round(strategy.column_norm("l2"), 9)
    (15, 4.0, 2.0)
    """

    n: int
    widths: tuple[int, ...]
    weights: tuple[int, ...]
    bits: int = 0
    name: str = "hierarchy"
    for_laplace: Hierarchy | None = field(default=None, repr=False)  # what suits Laplace noise, if that was left open

    def for_noise(self, noise: str) -> Strategy:
        """The tree for this noise, where the choice was left open."""
        return choice("noise", noise, {"gaussian": self, "laplace": self.for_laplace or self})

    @property
    def rows(self) -> int:
        """One per block."""
        return sum(self.padded // width for width in self.widths)

    @property
    def row_sum(self) -> float:
        """The widest block, weighted."""
        return float((self._reals * self.widths).max())

    @property
    def spectrum(self) -> Floats:
        """μₗ = Σ over levels m up to l of weight² × width: finer counts say something about coarser means."""
        return np.cumsum(self._reals**2 * self.widths)

    def exact(self, x: NDArray[Any]) -> NDArray[Any]:
        """Block sums times whole weights."""
        return np.concatenate([weight * s for weight, s in zip(self.weights, self._sums(self._pad(x)), strict=True)])

    def adjoint(self, y: Floats) -> Floats:
        """Every cell collects the weighted answers of its blocks."""
        out, stop = np.zeros((1, *y.shape[1:])), len(y)
        for level in range(len(self.widths) - 1, -1, -1):
            blocks = self.padded // self.widths[level]
            out = np.repeat(out, blocks // len(out), axis=0) + self._reals[level] * y[stop - blocks : stop]
            stop -= blocks
        return out[: self.n]

    def estimate(self, y: Floats) -> Floats:
        """Least squares on the padded domain."""
        whole = Hierarchy(self.padded, self.widths, self.weights, self.bits)
        return whole.covariance(whole.adjoint(y))[: self.n]

    def column_norm(self, norm: Norm) -> float:
        """One block a level."""
        return _norm(self.weights, self.bits, norm)

    def difference_norm(self, norm: Norm) -> float:
        """Two cells that share no block below the widest; those that all cells share cancel."""
        apart = [w for w, width in zip(self.weights, self.widths, strict=True) if width < self.n]
        return _norm(apart * 2, self.bits, norm)


@dataclass(frozen=True)
class Wavelet(Nested):
    """The Haar wavelet: the total, and for each block the left half's count minus the right half's; weights by level.

    ``weights`` go from the differences inside pairs up to the total. Unlike a hierarchy it measures nothing twice.

    Reference: Xiao, Wang and Gehrke (2010).

    >>> strategy = Wavelet(8, widths=(1, 2, 4, 8), weights=(1, 1, 1, 1))
    >>> strategy.rows, round(strategy.column_norm("l2"), 9)
    (8, 2.0)
    """

    n: int
    widths: tuple[int, ...]
    weights: tuple[int, ...]
    bits: int = 0
    name: str = "wavelet"

    @property
    def rows(self) -> int:
        """One per cell of the padded domain."""
        return self.padded

    @property
    def row_sum(self) -> float:
        """The total."""
        return float((self._reals * [*self.widths[1:], self.widths[-1]]).max())

    @property
    def spectrum(self) -> Floats:
        """weight² × the width of the block that a difference spans."""
        return self._reals**2 * [*self.widths[1:], self.widths[-1]]

    def exact(self, x: NDArray[Any]) -> NDArray[Any]:
        """Differences of neighbouring block sums, then the total, times whole weights."""
        sums = list(self._sums(self._pad(x)))
        differences = [weight * (s[::2] - s[1::2]) for weight, s in zip(self.weights, sums, strict=False) if len(s) > 1]
        return np.concatenate([*differences, self.weights[-1] * sums[-1]])

    def adjoint(self, y: Floats) -> Floats:
        """From the total down: each half collects its block's answer with its sign."""
        out, stop = self._reals[-1] * y[-1:], len(y) - 1
        for level in range(len(self.widths) - 2, -1, -1):
            d = self._reals[level] * y[stop - len(out) : stop]
            stop -= len(out)
            out = np.stack([out + d, out - d], axis=1).reshape(-1, *y.shape[1:])
        return np.asarray(out[: self.n])

    def estimate(self, y: Floats) -> Floats:
        """Least squares on the padded domain, where the strategy is square: its inverse."""
        whole = Wavelet(self.padded, self.widths, self.weights, self.bits)
        return whole.covariance(whole.adjoint(y))[: self.n]

    def column_norm(self, norm: Norm) -> float:
        """One difference a level, and the total."""
        return _norm(self.weights, self.bits, norm)

    def difference_norm(self, norm: Norm) -> float:
        """Cells that part at a level: twice its weight there, two blocks at each finer level, nothing above."""
        if self.n == 1:
            return 0.0
        fine = self.weights[:-1]
        return max(_norm([*fine[:level] * 2, 2 * weight], self.bits, norm) for level, weight in enumerate(fine))


def _norm(weights: Any, bits: int, norm: Norm) -> float:
    """The norm of whole weights in units of 2^-bits, a little raised."""
    if power_of(norm) == 1:
        return round_up(float(Fraction(sum(weights), 1 << bits)), 1)
    return round_up(math.sqrt(Fraction(sum(w * w for w in weights), 1 << 2 * bits)), 2)
