"""The dominating pair of mechanisms of bounded range, such as the exponential mechanism.

References: Dong, Durfee and Rogers (2020); Cesar and Rogers (2021).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.accounting.arrays import Array, Interval
from discreet.accounting.outward import product
from discreet.accounting.pld.accurate import UNIT, Bounded, difference_of_sinhc, expm1, join, log1p
from discreet.accounting.pld.atoms import Atoms
from discreet.accounting.pld.pairs import SMALLEST, Pair, Tails

__all__ = ["BoundedRange"]

_ROUNDING = 1e-14


@dataclass(frozen=True)
class BoundedRange(Pair):
    r"""The worst of all mechanisms of bounded range epsilon, at every order at once.

    Maximising over the position of the interval gives :math:`\delta(x) = (e^{\epsilon/2} - e^{x/2})^2/(e^\epsilon - 1)`
    for |x| ≤ epsilon, so the loss has density proportional to exp(l/2) on [-epsilon, epsilon].
    """

    epsilon: float

    @property
    def symmetric(self) -> bool:
        """The density of the loss under Q is proportional to exp(-l/2)."""
        return True

    @property
    def attained(self) -> bool:
        """An envelope."""
        return False

    @property
    def raised(self) -> bool:
        """If epsilon is the smallest there is."""
        return self.epsilon <= SMALLEST

    @property
    def support(self) -> Interval:
        """Losses lie within ±epsilon."""
        return -self.epsilon, self.epsilon

    @property
    def attainable(self) -> tuple[Pair, ...]:
        """Some mechanisms of this range, with losses t and t - epsilon: each bounds from below what the worst does."""
        e = self.epsilon
        return tuple(_member(e, share * e) for share in (0.5, 0.6, 0.75, 0.9))

    def divergence(self, order: Array) -> Array:
        r"""Largest Rényi divergence of any member.

        With :math:`A = e^\epsilon` and :math:`x = e^t`, :math:`E[(P/Q)^{\alpha-1}] = x^{\alpha-1}((A - A^{1-\alpha}) -
        x(1 - A^{1-\alpha}))/(A-1)`, largest at :math:`x = \frac{\alpha-1}{\alpha}\frac{A - A^{1-\alpha}}{1 -
        A^{1-\alpha}}`. The envelope's own divergence is larger, because it is worst at all orders at once.

        ``inside`` is the difference of two numbers alpha times as large, so that its logarithm is some alpha units in
        the last place wrong, and the quotient by alpha - 1 no more than ``_ROUNDING``. Where that is more than the
        divergence, the bound by zero-concentrated DP is the sharper one.
        """
        e = self.epsilon
        c = order - 1
        whole, part = -np.expm1(-order * e), -np.expm1(-c * e)  # (A - A^{1-α})/A and 1 - A^{1-α}
        log_x = np.clip(np.log(c / order) + e + np.log(whole / part), 0.0, e)
        inside = whole - np.exp(log_x - e) * part
        computed = np.maximum(c * log_x + np.log(inside / -math.expm1(-e)), 0.0) / c * (1 + 1e-9)
        concentrated = np.maximum(product(e, e, 0.125) * order * (1 + 1e-12), SMALLEST)
        return np.asarray(np.minimum(np.minimum(computed + _ROUNDING * (1 + 1 / c), concentrated), e))

    def tails(self, losses: Array) -> Tails:
        """Integrals of exp(±l/2)."""
        e = self.epsilon
        x = np.clip(losses, -e, e)
        scale = -np.expm1(-e)
        return -np.expm1((x - e) / 2) / scale, _exp_less(e, (e - x) / 2) / scale

    def heads(self, losses: Array) -> Tails:
        """Integrals of exp(±l/2)."""
        e = self.epsilon
        x = np.clip(losses, -e, e)
        scale = -np.expm1(-e)
        return _exp_less(e, (e + x) / 2) / scale, -np.expm1(-(x + e) / 2) / scale

    def log_mgf(self, z: Array) -> Bounded:
        r"""K(z) = log sinhc((z + ½)ε) - log sinhc(ε/2), and a bound on its error, for Re z > 0.

        Where the arguments are large, :math:`z\epsilon + \log\bigl(1 + e^{-\epsilon}\frac{1 - e^{-2z\epsilon}}{1 -
        e^{-\epsilon}}\bigr) - \log(1 + 2z)`, which is the same.
        """
        near = (np.abs(z + 0.5) * self.epsilon <= 1) & (self.epsilon <= 2)
        return join(near, z, self._log_mgf_near, self._log_mgf_far)

    def _log_mgf_near(self, z: Array) -> Bounded:
        rise, error = difference_of_sinhc(z, self.epsilon)
        half = self.epsilon / 2
        scale = math.sinh(half) / half
        return log1p(rise / scale, error / scale * (1 + 1e-14))

    def _log_mgf_far(self, z: Array) -> Bounded:
        e = self.epsilon
        less, error = expm1(-2 * e * z)
        share = math.exp(-e) / -math.expm1(-e)
        one, one_error = log1p(-share * less, share * (error + 1e-15 * np.abs(less)) + 1e-300)
        two, two_error = log1p(2 * z)
        return e * z + one - two, one_error + two_error + 8 * UNIT * (np.abs(e * z) + np.abs(one) + np.abs(two))


@dataclass(frozen=True)
class _Member(Atoms):
    """A mechanism of bounded range with two losses; both laws have all their probability on them."""

    @property
    def missing(self) -> float:
        """None."""
        return 0.0

    @property
    def missing_error(self) -> float:
        """None, by construction."""
        return 0.0


def _member(epsilon: float, top: float) -> _Member:
    """Losses ``top`` and ``top - epsilon``, each with the chance that gives both laws a total of one."""
    whole = -math.expm1(-epsilon)
    low, high = math.exp(top - epsilon) * -math.expm1(-top) / whole, -math.expm1(top - epsilon) / whole
    return _Member(np.array([top - epsilon, top]), np.array([low, high]))


def _exp_less(e: float, x: Array) -> Array:
    """exp(x - e) - exp(-e), accurate for small e and finite for large."""
    return np.asarray(math.exp(-e) * np.expm1(x) if e < 300 else np.exp(x - e) - math.exp(-e))
