r"""Numerical composition on a lattice: exponential tilting and one Fourier transform, with certified bounds.

The masses of each loss are tilted by exp(c·l) so that the composed law is centred where delta is decided, transformed,
raised to their repetitions, multiplied and transformed back. The tilt makes relative accuracy independent of delta.
It serves what the contour cannot: losses with atoms, whose characteristic functions do not decay.

Errors, all explicit: discretisation (:mod:`discreet.accounting.lattice`), wrap-around of the circular convolution
(Chernoff bounds on both sides), rounding of the transforms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from discreet.accounting.lattice import Lattice, lower, upper
from discreet.accounting.pairs import Atoms, Pair, Supremum
from discreet.errors import NotCertified

__all__ = ["Grid", "compose"]

Array = NDArray[np.float64]
Interval = tuple[float, float]
Parts = Sequence[tuple[Pair, int]]

_UNIT = 2.0**-53
_DIGITS = 28.0
_MAX_SIZE = 1 << 21


@dataclass(frozen=True)
class Grid:
    """One direction of a composition, as pairs with repetitions."""

    parts: tuple[tuple[Pair, int], ...]

    @property
    def infinity(self) -> float:
        """Probability of an infinite loss."""
        log_finite = sum(count * math.log1p(-min(pair.infinity, 1 - 1e-16)) for pair, count in self.parts)
        return -math.expm1(log_finite)

    @cached_property
    def _total(self) -> int:
        return max(1, sum(count for _, count in self.parts))

    def step(self, tail: float = 1e-30) -> float:
        """Fine enough that the spread added by the lattice is small against the spread of the losses."""
        spread, reach, atom = 0.0, 0.0, 0.0
        for pair, count in self.parts:
            low, high = _coarse_range(pair, tail / self._total)
            spread += count * (high - low) ** 2 / 100
            reach = max(reach, high - low)
            if pair.atom > atom:
                atom = pair.atom
        width = 12 * math.sqrt(spread) + 2 * reach
        points = min(1 << 20, max(1 << 16, int(2400 * math.sqrt(self._total))))
        step = width / points
        return atom / math.ceil(atom / step) if atom else step

    def _composition(self, version: Callable[[Pair, float, float], Lattice], tail: float) -> Composition:
        step = self.step(tail)
        laws = [(version(pair, step, tail / (4 * self._total)), count) for pair, count in self.parts]
        return Composition(laws)

    def _lower_parts(self) -> Grid:
        """Parallel parts: the neighbour may always choose the same one, and the best single choice is a lower bound."""
        return Grid(tuple((pair.pairs[0] if isinstance(pair, Supremum) else pair, count) for pair, count in self.parts))

    def delta_bounds(self, epsilon: float) -> Interval:
        """Certified bounds on delta(epsilon)."""
        high = self._composition(upper, 1e-30).delta(epsilon)[1]
        if high > 0 and high < 1e-15:  # the tail sent to infinity must be small against delta
            high = self._composition(upper, high * 1e-12).delta(epsilon)[1]
        low = self._lower_parts()._composition(lower, 1e-30).delta(epsilon)[0]
        return min(low, high), high

    def epsilon_bounds(self, delta: float) -> Interval:
        """Certified bounds on the smallest epsilon with delta(epsilon) ≤ delta."""
        if delta <= self.infinity:
            return math.inf, math.inf
        tail = min(1e-30, delta * 1e-12)
        high = self._composition(upper, tail).epsilon(delta)[1]
        low = self._lower_parts()._composition(lower, tail).epsilon(delta)[0]
        return min(low, high), high


def _coarse_range(pair: Pair, tail: float) -> Interval:
    """Where a loss lives, to choose a step."""
    if math.isfinite(pair.highest) and math.isfinite(pair.lowest):
        return pair.lowest, pair.highest
    points = np.concatenate([-np.geomspace(1e3, 1e-9, 240), np.geomspace(1e-9, 1e3, 240)])
    pairs = pair.pairs if isinstance(pair, Supremum) else (pair,)
    low, high = math.inf, -math.inf
    for part in pairs:
        inside = points[(part.heads(points)[0] > 1e-12) & (part.tails(points)[0] - part.infinity > max(tail, 1e-60))]
        if len(inside):
            low, high = min(low, float(inside[0])), max(high, float(inside[-1]))
    return (low, high) if low < high else (-1e-9, 1e-9)


@dataclass(frozen=True)
class Composition:
    """Lattice laws with one step, composed."""

    laws: list[tuple[Lattice, int]]

    @cached_property
    def _step(self) -> float:
        return self.laws[0][0].step if self.laws else 1.0

    @cached_property
    def infinity(self) -> float:
        """Probability of an infinite loss."""
        return -math.expm1(sum(count * math.log1p(-min(law.infinity, 1 - 1e-16)) for law, count in self.laws))

    @cached_property
    def _offset(self) -> float:
        return sum(count * law.offset for law, count in self.laws)

    def _log_m(self, c: float) -> float:
        """K(c) of the finite part, offsets left out."""
        return sum(count * log_sum(law, c) for law, count in self.laws)

    def _moments(self, c: float) -> tuple[float, float]:
        mean = variance = 0.0
        for law, count in self.laws:
            losses = law.losses
            weights = _tilted(law, c)
            m = float(weights @ losses)
            mean += count * m
            variance += count * float(weights @ (losses - m) ** 2)
        return mean, variance

    def _saddle(self, c: float) -> tuple[float, float]:
        mean, variance = self._moments(c)
        epsilon = mean - 1 / c - 1 / (c + 1)
        curvature = variance + 1 / c**2 + 1 / (c + 1) ** 2
        return epsilon, self._log_m(c) - c * epsilon - math.log(c) - math.log1p(c) - math.log(2 * math.pi * curvature) / 2

    def _window(self, *, epsilon: float | None = None, log_delta: float = 0.0) -> Window:
        low, high = -12.0, 12.0
        while high - low > 0.05:
            middle = (low + high) / 2
            at = self._saddle(math.exp(middle))
            short = at[1] > log_delta if epsilon is None else at[0] < epsilon
            low, high = (middle, high) if short else (low, middle)
        return Window(self, math.exp(low))

    def delta(self, epsilon: float) -> Interval:
        """Bounds on this composition's delta(epsilon)."""
        return self._window(epsilon=epsilon + self._offset).delta(epsilon)

    def epsilon(self, delta: float) -> Interval:
        """Bounds on the smallest epsilon at which this composition's delta is at most the given one."""
        if delta <= self.infinity:
            return math.inf, math.inf
        return self._window(log_delta=math.log(delta - self.infinity)).epsilon(delta)


def log_sum(law: Lattice, c: float) -> float:
    exponent = c * law.losses
    with np.errstate(divide="ignore"):
        shift = float(np.max(exponent + np.log(law.masses)))
    return shift + math.log(float(law.masses @ np.exp(np.maximum(exponent - shift, -745.0))))


def _tilted(law: Lattice, c: float) -> Array:
    with np.errstate(divide="ignore", under="ignore"):
        return np.asarray(np.exp(c * law.losses + np.log(law.masses) - log_sum(law, c)))


@dataclass(frozen=True)
class Window:
    """The composed law, tilted by c, on one period of the circular convolution."""

    whole: Composition
    c: float

    @cached_property
    def _size(self) -> tuple[int, int, float]:
        """Period and first index of the window, and the tilted mass that may lie outside it."""
        whole, c, step = self.whole, self.c, self.whole._step
        k = whole._log_m(c)
        mean, variance = whole._moments(c)
        scale = max(math.sqrt(variance), step)
        slopes = [s / scale for s in (1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)]
        rises = [(s, whole._log_m(c + s) - k, whole._log_m(c - s) - k) for s in slopes]
        right = min((rise + _DIGITS + 6) / s for s, rise, _ in rises)
        left = min((rise + _DIGITS + 6) / s for s, _, rise in rises)
        top = min(right, step * sum(n * (law.first + len(law.masses)) for law, n in whole.laws) + step)
        bottom = max(-left, step * sum(n * law.first for law, n in whole.laws) - step)
        first = math.floor(bottom / step) - 1
        need = math.ceil(top / step) + 2 - first
        size = fft.next_fast_len(max(16, need), real=True)
        if size > _MAX_SIZE:
            raise NotCertified(f"the lattice needs {size} points.")
        return size, first, 2 * math.exp(-_DIGITS - 6)

    @cached_property
    def _law(self) -> tuple[Array, Array, float]:
        """Losses, tilted masses and a bound on the error of each mass."""
        size, first, _ = self._size
        total = np.ones(size // 2 + 1, dtype=np.complex128)
        slip = np.zeros(size // 2 + 1)
        noise = 8 * _UNIT * math.log2(size)
        shift = 0
        for law, count in self.whole.laws:
            weights = _tilted(law, self.c)
            centre = int(round(float(weights @ np.arange(len(weights)))))
            folded = np.zeros(size)
            np.add.at(folded, (np.arange(len(weights)) - centre) % size, weights)
            transform = fft.rfft(folded)
            modulus = np.minimum(np.abs(transform), 1.0)
            with np.errstate(divide="ignore"):
                log_modulus = np.where(modulus > 0, np.log(np.maximum(modulus, 1e-300)), -690.0)
            total *= np.exp(count * log_modulus + 1j * _turns(np.angle(transform), count))
            slip += count * (noise / np.maximum(modulus, noise))
            shift += count * (law.first + centre)
        # |(φ+e)^n - φ^n| ≤ |φ|^n ((1+e/|φ|)^n - 1), and never more than 2
        error = np.minimum(np.abs(total) * np.expm1(np.minimum(slip, 50.0)), 2.0)
        masses = fft.irfft(total, size)
        masses = np.roll(masses, (shift - first) % size)
        losses = self.whole._step * (first + np.arange(size)) - self.whole._offset
        return losses, masses, float(2 * error.sum() / size + noise * np.abs(total).sum() * 2 / size)

    @cached_property
    def _k(self) -> float:
        return self.whole._log_m(self.c)

    def _log_size(self, epsilon: float) -> float:
        """Log of what one unit of tilted mass at epsilon weighs."""
        return self._k - self.c * (epsilon + self.whole._offset)

    def _wrong(self, epsilon: float) -> float:
        """What wrap-around and rounding may have done to delta."""
        _, _, outside = self._size
        _, _, each = self._law
        per_step = -math.expm1(-self.c * self.whole._step)
        rounding = 64 * _UNIT * (1 + abs(self._k) + self.c * abs(epsilon)) + math.exp(-60)
        return math.exp(min(self._log_size(epsilon), 700.0)) * (outside + each / per_step + rounding)

    def delta(self, epsilon: float) -> Interval:
        """Bounds on delta(epsilon)."""
        losses, masses, _ = self._law
        start, stop = np.searchsorted(losses, [epsilon, epsilon + 60 / self.c], side="right")
        gap = losses[start:stop] - epsilon
        total = float(masses[start:stop] @ (np.exp(-self.c * gap) * -np.expm1(-gap)))
        value = math.exp(min(self._log_size(epsilon), 700.0)) * total
        wrong, infinity = self._wrong(epsilon), self.whole.infinity
        return max(0.0, value - wrong) + infinity * (1 - 1e-12), min(1.0, value + wrong + infinity * (1 + 1e-12))

    def epsilon(self, delta: float) -> Interval:
        """Points at which the bounds on delta cross the target, by bisection on each side."""
        return self._crossing(delta, 0), self._crossing(delta, 1)

    def _crossing(self, delta: float, side: int) -> float:
        if self.delta(0.0)[side] <= delta:
            return 0.0
        losses, _, _ = self._law
        low, high = 0.0, max(float(losses[-1]), 1e-9)
        while self.delta(high)[side] > delta:
            if high > 1e6:
                return math.inf
            high *= 2
        for _ in range(60):
            middle = (low + high) / 2
            if middle in (low, high):
                break
            low, high = (middle, high) if self.delta(middle)[side] > delta else (low, middle)
            if high - low < 1e-11 * high:
                break
        return high if side else low


def _turns(angle: Array, count: int) -> Array:
    """count·angle reduced to one turn, with the error of the angle kept to about count ulps."""
    return np.asarray(np.fmod(count * angle, 2 * math.pi))


def compose(parts: Parts, step: float) -> Atoms:
    """A pair on a lattice that dominates the composition, for use inside a sampler or a parallel part."""
    tail = 1e-18
    total = max(1, sum(count for _, count in parts))
    whole = Composition([(upper(pair, step, tail / total), count) for pair, count in parts])
    window = Window(whole, 0.0)
    losses, masses, each = window._law
    _, _, outside = window._size
    masses = np.maximum(masses, 0.0) + each
    extra = outside + each * len(masses)
    keep = masses > 0
    return Atoms(losses[keep], masses[keep], min(1.0, whole.infinity + extra))
