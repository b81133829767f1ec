r"""Numerical composition by a contour integral: delta(epsilon) with certified bounds, at any delta.

For independent privacy losses with log-moment-generating functions K and repetitions n,

.. math:: \delta(\epsilon) = \frac{1}{2\pi i}\int_{c-i\infty}^{c+i\infty} \frac{e^{\sum n K(z) - z\epsilon}}{z(z+1)}\,dz
          \qquad (c > 0),

because :math:`(1-e^{\epsilon-\ell})_+` is the inverse Laplace transform of :math:`e^{z(\ell-\epsilon)}/z(z+1)`. The
line runs through the saddle point, where the integrand is a narrow bump, and the trapezoid rule with step h sums it.
The cost does not depend on the repetitions, and the relative accuracy does not depend on delta.

The error has four parts, all explicit (period P = 2π/h):

aliasing
    The sum equals :math:`\sum_m e^{mcP}\delta(\epsilon + mP)` (Poisson summation): every term is non-negative, so the
    sum is never too low. Terms m < 0 are at most :math:`e^{-|m|cP}`; terms m > 0 obey Chernoff's bound at a larger c.
truncation
    :mod:`discreet.accounting.pld.stopping` bounds the integrand beyond the last node.
quadrature
    The error of K (:meth:`Rule.error`), times the repetitions.
rounding
    Included in the previous; plus that of the final sum.

Reference for dominating pairs and composition: Zhu, Dong and Wang (2022), Theorem 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
from scipy.optimize import brentq

from discreet.accounting.arrays import Array, Interval
from discreet.accounting.outward import FLOOR
from discreet.accounting.pld.mixtures import Mixtures, Rule
from discreet.accounting.pld.stopping import Stop
from discreet.accounting.pld.tilts import Tilts
from discreet.accounting.pld.transforms import Transform
from discreet.errors import NotCertified

__all__ = ["Contour", "Interval"]


Nodes: TypeAlias = tuple[Array, Array, Array]

_UNIT = 2.0**-53
_MANY = 20  # distinct mixtures, above which six digits of delta have to do instead of ten
_MAX_TERMS = 20_000
_RIGHT_OF_C = (1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0)


@dataclass(frozen=True)
class Contour:
    """One direction of a composition: sampled Gaussians, one plain Gaussian of total ``mu``, and closed transforms."""

    mixtures: Mixtures | None
    mu: float
    closed: tuple[tuple[Transform, int], ...]
    infinity: float  # probability of an infinite loss; the transforms are of the finite part
    _lines: dict[float, Line] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def repetitions(self) -> float:
        """How many sampled losses are added up: what multiplies the error of one."""
        return 1.0 if self.mixtures is None else max(1.0, float(self.mixtures.counts.sum()))

    @property
    def digits(self) -> float:
        """Each part of the error aims at exp(-digits) of delta: 1e-10, or 1e-6 where every node costs much."""
        return 14.0 if self.mixtures is not None and len(self.mixtures.counts) > _MANY else 23.0

    @property
    def ceiling(self) -> float:
        """The largest finite loss of the composition."""
        if self.mu > 0 or (self.mixtures is not None and self.mixtures.kind != "add"):
            return math.inf
        top = sum(count * transform.scale for transform, count in self.closed)
        return top if self.mixtures is None else top + float(self.mixtures.counts @ -np.log1p(-self.mixtures.rates))

    def pieces(self) -> list[Mixtures]:
        """The sampled Gaussians, a few at a time."""
        return [] if self.mixtures is None else self.mixtures.pieces()

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """K, K' and K'' of the whole composition at a real point, good to about a millionth."""
        result = np.array([self.mu**2 * c * (c + 1) / 2, self.mu**2 * (c + 0.5), self.mu**2])
        if self.mixtures is not None:
            rule = self.mixtures.rule(c, 0.0, 14.0 + math.log(self.repetitions))
            result += np.stack([rule.log_m, rule.mean, rule.variance]) @ self.mixtures.counts
        for transform, count in self.closed:
            result += count * np.array(transform.cumulants(c))
        k, mean, variance = result.tolist()
        return k, mean, variance

    def log_m_upper(self, c: float) -> float:
        """An upper bound on K(c) of the whole composition, to about a millionth."""
        total = self.mu**2 * c * (c + 1) / 2 * (1 + 8 * _UNIT)
        if self.mixtures is not None:
            rule = self.mixtures.rule(c, 0.0, 14.0 + math.log(self.repetitions))
            each = rule.log_m + rule.error(np.zeros(1))[:, 0] + rule.log_m_rounding
            total += float(each @ self.mixtures.counts)
        for transform, count in self.closed:
            value, error = transform.log_mgf(np.array([c], dtype=complex))
            total += count * float(value.real[0] + error[0])
        return total

    def _saddle(self, c: float) -> tuple[float, float]:
        """(epsilon, log delta) for which the line through c is the steepest descent, by the leading term."""
        k, mean, variance = self.cumulants(c)
        epsilon = mean - 1 / c - 1 / (c + 1)
        curvature = variance + 1 / c**2 + 1 / (c + 1) ** 2
        return epsilon, k - c * epsilon - math.log(c) - math.log1p(c) - math.log(2 * math.pi * curvature) / 2

    @cached_property
    def _tilts(self) -> Tilts:
        return Tilts(self._saddle, -12, 14)

    def _line(self, *, epsilon: float | None = None, log_delta: float = 0.0) -> Line:
        """The line that is steepest, or nearly, for the given epsilon or delta. Any other would be valid, only less
        sharp.
        """
        c = self._tilts.tilt(epsilon=epsilon, log_delta=log_delta)
        if c not in self._lines:
            if self.cumulants(c)[2] < 1e-200:
                raise NotCertified("the losses are too small for the contour.")
            centre, depth = self._saddle(c)
            self._lines[c] = Line(self, c, centre, min(depth, -1e-3))
        return self._lines[c]

    def delta_bounds(self, epsilon: float) -> Interval:
        """Certified bounds on delta(epsilon), epsilon ≥ 0."""
        if epsilon >= self.ceiling * (1 + 1e-12):
            return self.infinity, self.infinity
        return self._line(epsilon=epsilon).delta(epsilon)

    def epsilon_bounds(self, delta: float) -> Interval:
        """Certified bounds on the smallest epsilon with delta(epsilon) ≤ delta."""
        if delta <= self.infinity:
            return math.inf, math.inf
        line = self._line(log_delta=math.log(delta - self.infinity))
        epsilon = line.solve(delta)
        if abs(epsilon - line.centre) * line.c > 5:  # the leading term misled: the bump is not Gaussian
            line = self._line(epsilon=epsilon)
            epsilon = line.solve(delta)
        return line.outward(epsilon, delta, -1), line.outward(epsilon, delta, +1)

    def epsilon_lower(self, delta: float, high: float) -> float:
        """Certified lower bound on the same, which is known to be at most ``high``."""
        return min(self.epsilon_bounds(delta)[0], high)

    def delta_upper(self, epsilon: float) -> float:
        """Certified upper bound on delta(epsilon)."""
        return self.delta_bounds(epsilon)[1]

    def epsilon_upper(self, delta: float) -> float:
        """Certified upper bound on the smallest epsilon with delta(epsilon) ≤ delta."""
        return self.epsilon_bounds(delta)[1]


@dataclass(frozen=True)
class Line:
    """A vertical line through c, with everything that does not depend on epsilon computed once."""

    parts: Contour
    c: float
    centre: float  # the epsilon this line serves best; its bounds hold at any other, only wider
    log_delta: float

    @cached_property
    def _cumulants(self) -> tuple[float, float, float]:
        return self.parts.cumulants(self.c)

    @cached_property
    def _chernoff(self) -> tuple[Array, Array]:
        """Points λ > c and upper bounds on K(λ) there."""
        values: list[float] = []
        for factor in _RIGHT_OF_C:
            try:
                values.append(self.parts.log_m_upper(self.c * factor))
            except NotCertified:
                break
        if not values:
            raise NotCertified("no point to the right of the contour could be evaluated.")
        return self.c * np.array(_RIGHT_OF_C[: len(values)]), np.array(values)

    @cached_property
    def period(self) -> float:
        """Long enough for both aliases to fall below the tolerance."""
        wanted = self.parts.digits - self.log_delta
        points, values = self._chernoff
        right = float(np.min((values - points * self.centre + wanted) / (points - self.c)))
        return max(wanted / self.c, right)

    @property
    def step(self) -> float:
        """Distance between nodes."""
        return 2 * math.pi / self.period

    @cached_property
    def _stop(self) -> Stop:
        k, _, variance = self._cumulants
        parts = self.parts
        goal = -(parts.digits + k - self.c * self.centre - self.log_delta)
        return Stop(parts.pieces(), parts.mu, self.c, self.step, variance, goal, parts.digits, parts.repetitions)

    @property
    def _nodes(self) -> Nodes:
        """z, K(z) and a bound on the error of K at every node."""
        if isinstance(self._nodes_or_refusal, NotCertified):
            raise self._nodes_or_refusal.with_traceback(None)
        return self._nodes_or_refusal

    @cached_property
    def _nodes_or_refusal(self) -> Nodes | NotCertified:
        """A refusal is remembered too: it costs as much as an answer, and is asked for as often."""
        try:
            return self._make_nodes()
        except NotCertified as refusal:
            return refusal

    def _make_nodes(self) -> Nodes:
        count = int(self._stop.height / self.step) + 2
        if count > _MAX_TERMS:
            raise NotCertified(f"the contour needs {count} terms.")
        t = self.step * np.arange(count)
        z = self.c + 1j * t
        k = self.parts.mu**2 * z * (z + 1) / 2
        error = 8 * _UNIT * np.abs(k)
        for piece in self.parts.pieces():
            rule = piece.rule(self.c, float(t[-1]), self.parts.digits + 14 + math.log(self.parts.repetitions))
            value, slip = self._sampled_gaussian_cumulant(rule, t)
            k, error = k + value, error + slip
        for transform, repeats in self.parts.closed:
            value, slip = transform.log_mgf(z)
            k = k + repeats * value
            error = error + repeats * slip
        return z, k, error

    def _sampled_gaussian_cumulant(self, rule: Rule, t: Array) -> tuple[Array, Array]:
        """K of the sampled Gaussians at every node, and its error."""
        n = rule.mixtures.counts
        psi, slip = rule.characteristic(self.step, len(t)), rule.error(t)
        size = np.abs(1 + psi)
        if np.any(2 * slip > size):
            raise NotCertified("the characteristic function is below the quadrature's resolution.")
        drift = np.outer(rule.mean, t)
        near_one = np.log1p(np.maximum(2 * psi.real + psi.real**2 + psi.imag**2, -0.9)) / 2
        modulus = np.where(size > 0.5, near_one, np.log(size))
        angle = np.arctan2(psi.imag, 1 + psi.real) + drift
        error = rule.log_m_rounding[:, None] + slip - np.log1p(-slip / size)
        rounding = 8 * _UNIT * (np.abs(modulus) + np.abs(angle) + np.abs(drift))
        return n @ (rule.log_m[:, None] + modulus + 1j * angle), n @ (error + rounding)

    def _sum(self, epsilon: float) -> Interval:
        """The trapezoid sum at epsilon, and a bound on what quadrature, rounding and truncation did to it."""
        z, k, error = self._nodes
        exponent = k - z * epsilon
        shift = float(exponent.real[0])
        terms = np.exp(exponent - shift) / (z * (z + 1))
        terms[1:] *= 2  # the nodes below the axis are the conjugates
        slack = error + _UNIT * (8 * np.abs(z) * epsilon + 8 * np.abs(exponent) + len(z))
        size = math.exp(min(shift, 700.0))
        wrong = float(np.abs(terms) @ np.expm1(np.minimum(slack, 700.0))) * self.step / (2 * math.pi)
        return size * float(terms.real.sum()) * self.step / (2 * math.pi), size * (wrong + self._stop.truncation)

    def _aliases(self, epsilon: float) -> float:
        points, values = self._chernoff
        left = math.exp(-self.c * self.period) / -math.expm1(-self.c * self.period)
        gap = (points - self.c) * self.period
        right = np.exp(np.minimum(values - points * epsilon - gap, 700.0)) / -np.expm1(-gap)
        return left + float(np.min(right))

    def delta(self, epsilon: float) -> Interval:
        """Certified bounds on delta(epsilon)."""
        value, wrong = self._sum(epsilon)
        low = max(0.0, value - wrong - self._aliases(epsilon))
        return (
            min(1.0, (low + self.parts.infinity) * (1 - 4 * _UNIT)),
            min(1.0, (value + wrong + self.parts.infinity) * (1 + 4 * _UNIT) + FLOOR),
        )

    def solve(self, delta: float) -> float:
        """The epsilon at which the sum equals delta, uncertified."""
        goal = math.log(delta - self.parts.infinity)

        def gap(epsilon: float) -> float:
            value, _ = self._sum(epsilon)
            return (math.log(value) if value > 0 else -800.0) - goal

        low = high = max(self.centre, 0.0)
        stride = 1 / self.c
        while gap(low) < 0:
            if low == 0:
                return 0.0
            low, stride = max(0.0, low - stride), 2 * stride
        while gap(high) > 0:
            high, stride = high + stride, 2 * stride
        return low if low == high else float(brentq(gap, low, high, xtol=1e-14, rtol=1e-14))

    def outward(self, epsilon: float, delta: float, side: int) -> float:
        """The nearest point below (side -1) or above (+1) epsilon that the bounds prove to be on that side."""
        if side > 0 and epsilon == 0 and self.delta(0.0)[1] <= delta:
            return 0.0
        move = 1e-13 * (1 + epsilon)
        for _ in range(80):
            point = epsilon + side * move
            if point <= 0:
                return 0.0
            low, high = self.delta(point)
            if (high <= delta) if side > 0 else (low >= delta):
                return point
            move *= 1.5
        return math.inf if side > 0 else 0.0
