"""The dominating pair of mechanisms of bounded range, such as the exponential mechanism.

References: Dong, Durfee and Rogers (2020); Cesar and Rogers (2021).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.accounting.arrays import Array, Interval
from discreet.accounting.atoms import Atoms
from discreet.accounting.outward import product
from discreet.accounting.pairs import SMALLEST, Pair, Tails

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
        chances = [(t, -math.expm1(t - e) / -math.expm1(-e)) for t in (0.5 * e, 0.6 * e, 0.75 * e, 0.9 * e)]
        return tuple(Atoms(np.array([t - e, t]), np.array([1 - p, p])) for t, p in chances)

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

    def log_mgf(self, z: Array) -> Array:
        """Integral of an exponential over an interval."""
        e = self.epsilon
        x = (z + 0.5) * e
        ratio = np.where(np.abs(x) < 1e-6, 1 - x, -np.expm1(-2 * x) / np.where(x == 0, 1, 2 * x))
        return x - e / 2 + np.log(ratio * e / -math.expm1(-e))


def _exp_less(e: float, x: Array) -> Array:
    """exp(x - e) - exp(-e), accurate for small e and finite for large."""
    return np.asarray(math.exp(-e) * np.expm1(x) if e < 300 else np.exp(x - e) - math.exp(-e))
