r"""Composition of lattice laws: exponential tilting and one Fourier transform, with certified bounds.

The masses of each loss are tilted by exp(c·l) so that the composed law is centred where delta is decided, transformed,
raised to their repetitions, multiplied and transformed back. The tilt makes relative accuracy independent of delta.

Errors, all explicit: wrap-around of the circular convolution (Chernoff bounds on both sides), rounding of the
transforms; discretisation is the lattices' own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import fft

from discreet.accounting.arrays import Array, Interval
from discreet.accounting.outward import FLOOR, times
from discreet.accounting.pld.discounting import Discounted
from discreet.accounting.pld.lattice import Lattice
from discreet.accounting.pld.tilts import Tilts
from discreet.accounting.views import solve_epsilon
from discreet.errors import NotCertified

__all__ = ["OUTSIDE", "Composition", "Window", "log_sum", "union"]

_UNIT = 2.0**-53
OUTSIDE = 34.0  # the tilted mass outside the window is at most exp(-34) on each side
_MAX_SIZE = 1 << 21
_NEGLIGIBLE = -100.0  # logarithm of what is left out of a spectrum whose first value is one
_NEAR = 60.0  # of the largest of up to 2^21 exponents: what the others add to the sum is below its rounding


def union(chances: list[tuple[float, int]]) -> float:
    """1 - ∏(1-p)^n."""
    if any(p >= 1 for p, n in chances if n):
        return 1.0
    return -math.expm1(-math.fsum(times(-math.log1p(-p), n) for p, n in chances))


@dataclass(frozen=True)
class Composition:
    """Lattice laws with one step, composed."""

    laws: list[tuple[Lattice, int]]
    _windows: dict[float, Window] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def step(self) -> float:
        """The lattice step."""
        return self.laws[0][0].step

    @cached_property
    def infinity(self) -> float:
        """Probability of an infinite loss."""
        return union([(law.infinity, count) for law, count in self.laws])

    @cached_property
    def missing(self) -> float:
        """Q's probability of a loss of minus infinity."""
        return union([(law.missing, count) for law, count in self.laws])

    @cached_property
    def offset(self) -> float:
        """What is to be taken off every composed loss."""
        return sum(count * law.offset for law, count in self.laws)

    @cached_property
    def ceiling(self) -> float:
        """No finite loss is above this."""
        return self.step * sum(n * (law.first + len(law.masses)) for law, n in self.laws) - self.offset

    def log_m(self, c: float) -> float:
        """K(c) of the finite part, offsets left out."""
        return sum(count * log_sum(law, c) for law, count in self.laws)

    def log_m_upper(self, c: float) -> float:
        """An upper bound on K(c) from fewer points."""
        return sum(count * _log_sum_exp(c * law.blocks[0] + np.log(law.blocks[1])) for law, count in self.laws)

    def moments(self, c: float) -> Interval:
        """Mean and variance of the tilted composition, roughly."""
        mean = variance = 0.0
        for law, count in self.laws:
            points, masses = law.blocks
            exponent = c * points + np.log(masses)
            weights = np.exp(np.maximum(exponent - exponent.max(), -700.0))
            weights /= weights.sum()
            m = float(weights @ points)
            mean += count * m
            variance += count * float(weights @ (points - m) ** 2)
        return mean, variance

    def _saddle(self, c: float) -> Interval:
        mean, variance = self.moments(c)
        epsilon = mean - 1 / c - 1 / (c + 1)
        curvature = variance + 1 / c**2 + 1 / (c + 1) ** 2
        log_delta = self.log_m_upper(c) - c * epsilon - math.log(c) - math.log1p(c)
        return epsilon, log_delta - math.log(2 * math.pi * curvature) / 2

    @cached_property
    def _tilts(self) -> Tilts:
        return Tilts(self._saddle, -12, 12)

    def _window(self, *, epsilon: float | None = None, log_delta: float = 0.0) -> Window:
        """The window whose tilt suits the question."""
        c = self._tilts.tilt(epsilon=epsilon, log_delta=log_delta)
        if c not in self._windows:
            self._windows[c] = Window(self, c)
        return self._windows[c]

    def delta(self, epsilon: float) -> Interval:
        """Bounds on this composition's delta(epsilon)."""
        return self._window(epsilon=epsilon + self.offset).delta(epsilon)

    def epsilon_upper(self, delta: float) -> float:
        """Upper bound on the smallest epsilon at which this composition's delta is at most the given one."""
        if delta <= self.infinity:
            return math.inf
        window = self._window(log_delta=math.log(delta - self.infinity))
        return solve_epsilon(lambda e: window.delta(e)[1], delta)

    def epsilon_lower(self, delta: float, high: float) -> float:
        """Lower bound on the same, which is known to be at most ``high``."""
        if delta <= self.infinity:
            return high
        window = self._window(log_delta=math.log(delta - self.infinity))
        low, gentler = 0.0, window
        while low == 0 and gentler.c > 1e-3:  # near the largest loss the best tilt is steep, and its rounding large
            low = _last_above(gentler, delta, min(high, self.ceiling), 1e-6 / window.c)
            gentler = Window(self, gentler.c / 30)
        return low


def _last_above(window: Window, delta: float, start: float, stride: float) -> float:
    """A point below ``start``, about as large as possible, where a lower bound on delta still reaches the target.

    The bound is sharp only near the tilt's own epsilon, so the search goes down from there.
    """
    high = point = start
    while window.delta(point)[0] < delta:
        if point == 0:
            return 0.0
        high, point, stride = point, max(0.0, point - stride), 4 * stride
    low = point
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if window.delta(middle)[0] >= delta else (low, middle)
    return low


def log_sum(law: Lattice, c: float) -> float:
    """log Σ mass·exp(c·loss)."""
    losses, logs = law.logarithms
    return _log_sum_exp(c * losses + logs)


def _log_sum_exp(exponent: Array) -> float:
    shift = float(exponent.max())
    near = exponent[exponent >= shift - _NEAR]
    return shift + math.log(float(np.exp(near - shift).sum()))


@dataclass(frozen=True)
class Window:
    """The composed law, tilted by c ≥ 0, on one period of the circular convolution."""

    whole: Composition
    c: float

    @cached_property
    def _k(self) -> float:
        return self.whole.log_m(self.c)

    @cached_property
    def frame(self) -> tuple[int, int]:
        """Period and first index: outside lies at most exp(-34) of the tilted mass on each side (Chernoff)."""
        whole, step = self.whole, self.whole.step
        scale = max(math.sqrt(whole.moments(self.c)[1]), step)
        slopes = [s / scale for s in (1e-3, 1e-2, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)]
        top = min((whole.log_m_upper(self.c + s) - self._k + OUTSIDE) / s for s in slopes)
        bottom = -min((whole.log_m_upper(self.c - s) - self._k + OUTSIDE) / s for s in slopes)
        top = min(top, step * sum(n * (law.first + len(law.masses)) for law, n in whole.laws))
        bottom = max(bottom, step * sum(n * law.first for law, n in whole.laws))
        first = math.floor(bottom / step) - 1
        size = max(16, math.ceil(top / step) + 2 - first)
        if size > _MAX_SIZE or abs(first) > 1 << 53:
            raise NotCertified(f"the lattice needs {size} points, from point {first} on.")
        return fft.next_fast_len(size, real=True), first

    @cached_property
    def law(self) -> tuple[Array, Array, float]:
        """Losses, tilted masses and a bound on the error of each mass."""
        size, first = self.frame
        noise, shift = 8 * _UNIT * math.log2(size), 0
        kept = np.arange(size // 2 + 1)  # the frequencies at which the product may be more than _NEGLIGIBLE
        total = np.ones(len(kept), dtype=np.complex128)
        log_size, wrong = np.zeros(len(kept)), np.zeros(len(kept))
        for law, count in self.whole.laws:
            transform, centre, lost = _transform(law, self.c, size)
            transform = transform[kept]
            modulus = np.clip(np.abs(transform), noise, 1.0)  # for the bounds: never below what it may be wrong by
            each, error = count * np.log(modulus), count * (noise + lost) / modulus
            more = each + error > _NEGLIGIBLE
            kept, log_size, wrong = kept[more], (log_size + each)[more], (wrong + error)[more]
            total = total[more] * _power(transform[more], count)
            shift += count * (law.first + centre)
        # |(φ+e)^n - φ^n| ≤ m^n ((1+e/m)^n - 1) for any m ≥ |φ|, and never more than 2
        error = np.minimum(np.exp(np.minimum(log_size + wrong, 1.0)) * -np.expm1(-wrong), 2.0)
        left_out = (size // 2 + 1 - len(kept)) * math.exp(_NEGLIGIBLE)
        spectrum = np.zeros(size // 2 + 1, dtype=np.complex128)
        spectrum[kept] = total
        masses = np.roll(fft.irfft(spectrum, size), (shift - first) % size)
        losses = self.whole.step * (first + np.arange(size)) - self.whole.offset
        return losses, masses, float(2 * (error.sum() + left_out + noise * np.abs(total).sum()) / size)

    @cached_property
    def _discounted(self) -> Discounted:
        return Discounted(self.law[1], self.c, self.whole.step)

    def _wrong(self, epsilon: float) -> float:
        """What wrap-around and rounding may have done, in units of tilted mass at epsilon."""
        per_step = -math.expm1(-self.c * self.whole.step)
        rounding = 64 * (1 + abs(self._k) + self.c * abs(epsilon)) + self._discounted.rounding
        return 2 * math.exp(-OUTSIDE) + self.law[2] / per_step + _UNIT * rounding

    def delta(self, epsilon: float) -> Interval:
        """Bounds on delta(epsilon)."""
        losses = self.law[0]
        start, value = int(np.searchsorted(losses, epsilon, side="right")), 0.0
        if start < len(losses):
            # exp(-c·gap)·(1 - exp(-gap)), gap = first + k·step, from what does not depend on first: nothing cancels
            first, (decayed, lost) = float(losses[start]) - epsilon, self._discounted.sums(start)
            value = math.exp(-self.c * first) * (-math.expm1(-first) * decayed + math.exp(-first) * lost)
        size = math.exp(min(self._k - self.c * (epsilon + self.whole.offset), 700.0))
        wrong, infinity = self._wrong(epsilon), self.whole.infinity
        return (
            max(0.0, size * (value - wrong)) + infinity * (1 - 1e-12),
            min(1.0, size * (value + wrong) + infinity * (1 + 1e-12) + FLOOR),
        )


def _power(transform: Array, count: int) -> Array:
    """φ^n, of at most one."""
    log_size = count * np.log(np.clip(np.abs(transform), 1e-300, 1.0))
    return np.asarray(np.exp(log_size + 1j * np.fmod(count * np.angle(transform), 2 * math.pi)))


def _transform(law: Lattice, c: float, size: int) -> tuple[Array, int, float]:
    """Fourier transform of the tilted law around its mean index, and what its weights may be wrong by altogether."""
    exponent, scale = c * law.losses, log_sum(law, c)
    with np.errstate(under="ignore"):
        logs = exponent + law.log_masses - scale
        weights = np.exp(logs)
    centre = round(float(weights @ np.arange(len(weights))))
    folded = np.bincount((np.arange(len(weights)) - centre) % size, weights=weights, minlength=size)
    # exp loses digits in proportion to the numbers whose sum it is given; log mass is that sum less the others
    lost = _UNIT * float(weights @ (8 + 3 * np.abs(exponent) + 2 * abs(scale) - np.maximum(logs, -700.0)))
    return fft.rfft(folded), centre, lost
