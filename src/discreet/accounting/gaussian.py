r"""The analytic Gaussian mechanism: its exact privacy profile, and the inverse in each argument.

With :math:`\mu = 1/z` for noise multiplier :math:`z`, testing :math:`N(0,1)` against :math:`N(\mu,1)` gives

.. math:: \delta(\epsilon) = \Phi\!\left(\tfrac{\mu}{2} - \tfrac{\epsilon}{\mu}\right)
          - e^{\epsilon}\,\Phi\!\left(-\tfrac{\mu}{2} - \tfrac{\epsilon}{\mu}\right).

Written as a difference of two Mills ratios it keeps its relative accuracy from delta 0.5 down to 1e-300.
Reference: Balle and Wang (2018), Theorem 8 and Algorithm 1 (the printed ``u*`` of many slides is a garbled form of it).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from numpy.polynomial.legendre import leggauss
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

from discreet.accounting.outward import FLOOR, inverse
from discreet.errors import nonnegative, number, positive

__all__ = ["gaussian_delta", "gaussian_epsilon", "gaussian_noise_multiplier"]

_UNIT = 2.0**-53
_SLACK = 1e-11  # relative; ten times the error measured against 60-digit arithmetic, on the safe side
_ROOT_HALF_PI = math.sqrt(math.pi / 2)
_LEGENDRE = tuple(zip(*(rule.tolist() for rule in leggauss(5)), strict=True))


def _mills(x: float) -> float:
    """Upper tail over density of the standard normal, for x > -20."""
    return _ROOT_HALF_PI * float(erfcx(x / math.sqrt(2)))


def _mills_slope(x: float) -> float:
    """Minus the derivative of the Mills ratio, 1 - x·mills(x), without cancellation for large x."""
    if x < 30:
        return 1 - x * _mills(x)
    y = 1 / (x * x)
    # asymptotic series; the first omitted term is below 3e-13 of the sum
    return y * (1 - 3 * y * (1 - 5 * y * (1 - 7 * y * (1 - 9 * y * (1 - 11 * y)))))


def _mills_drop(low: float, width: float) -> float:
    """mills(low) - mills(low + width), by quadrature of the slope when the two are close."""
    if width > 0.05:
        return _mills(low) - _mills(low + width)
    half = width / 2
    return half * math.fsum(weight * _mills_slope(low + half + half * node) for node, weight in _LEGENDRE)


def _delta(mu: float, epsilon: float, side: int = 1) -> float:
    """The profile at mu; it decreases in ``low``, which is moved by what it may have lost, up (side 1) or down (-1)."""
    if mu in (0.0, math.inf):
        return 0.0 if mu == 0 else 1.0
    low = epsilon / mu - mu / 2
    low -= side * 8 * _UNIT * (epsilon / mu + mu / 2)
    if not low < 40:
        return 0.0
    if low > -5:
        return math.exp(-low * low / 2) / math.sqrt(2 * math.pi) * _mills_drop(low, mu)
    # Here delta is close to one and a plain difference loses nothing: e^epsilon Φ(-high) = φ(low)·mills(high).
    return float(ndtr(-low)) - math.exp(-low * low / 2) / math.sqrt(2 * math.pi) * _mills(low + mu)


def gaussian_delta(*, noise_multiplier: float, epsilon: float) -> float:
    r"""Smallest delta for which Gaussian noise is (epsilon, delta)-DP.

    Guarantee: exact, rounded up, for any value whose L2 change per record is at most the sensitivity.

    >>> round(gaussian_delta(noise_multiplier=1.0, epsilon=1.0), 6)
    0.126937
    """
    return profile_delta(inverse(positive("noise_multiplier", noise_multiplier)), nonnegative("epsilon", epsilon))


def profile_delta(mu: float, epsilon: float, side: int = 1) -> float:
    """The same for a mu in [0, ∞], rounded up (side 1; zero only where mu is) or down (side -1)."""
    value = _delta(mu, epsilon, side) * (1 + side * _SLACK)
    return min(1.0, max(value, FLOOR) if side > 0 and mu > 0 else value)


def gaussian_epsilon(*, noise_multiplier: float, delta: float) -> float:
    """Smallest epsilon for which Gaussian noise is (epsilon, delta)-DP, rounded up.

    >>> round(gaussian_epsilon(noise_multiplier=1.0, delta=1e-5), 4)
    4.3772
    """
    noise_multiplier = positive("noise_multiplier", noise_multiplier)
    return profile_epsilon(inverse(noise_multiplier), number("delta", delta, low=0, high=1))


def profile_epsilon(mu: float, delta: float) -> float:
    """The same for a mu in (0, ∞]."""
    if delta >= 1 or profile_delta(mu, 0.0) <= delta:
        return 0.0
    if delta < FLOOR or mu > 1e100:
        return math.inf
    return _smallest(lambda epsilon: _delta(mu, epsilon), delta, start=mu * mu / 2 + mu)


def gaussian_noise_multiplier(*, epsilon: float, delta: float) -> float:
    """Smallest noise multiplier for which Gaussian noise is (epsilon, delta)-DP, rounded up.

    >>> round(gaussian_noise_multiplier(epsilon=1.0, delta=1e-5), 6)
    3.730632
    """
    epsilon = nonnegative("epsilon", epsilon)
    delta = number("delta", delta, low=0, high=1, open_low=True, open_high=True)
    return _smallest(lambda z: _delta(1 / z, epsilon), delta, start=1.0) if delta >= FLOOR else math.inf


def _smallest(decreasing: Callable[[float], float], target: float, start: float) -> float:
    """Smallest positive argument at which a decreasing function, with its slack, is at most ``target``."""
    target *= 1 - _SLACK

    def gap(log_x: float) -> float:
        value = decreasing(math.exp(log_x))
        return (math.log(value) if value > 0 else -1e4) - math.log(target)

    low = high = math.log(start)
    while gap(high) > 0:
        high += 2
    while gap(low) < 0 and low > -700:
        low -= 2
    root = high if gap(low) <= 0 else float(brentq(gap, low, high, xtol=1e-14, rtol=1e-14))
    while gap(root) > 0:  # the root finder may stop on either side: only the safe one counts
        root += 4e-15 * max(1.0, abs(root))
    return math.exp(root)
