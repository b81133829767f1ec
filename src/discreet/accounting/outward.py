"""Arithmetic of prices that errs on the safe side: nothing positive rounds to zero, nothing overflows with an error.

Decisions 80 and 220.
"""

from __future__ import annotations

import math
from fractions import Fraction

from discreet.errors import NotCertified

__all__ = ["FLOOR", "SMALLEST", "check_bound", "growth", "inverse", "product", "root", "share", "times"]

SMALLEST = 5e-324  # the smallest float above zero: what a positive price that rounds to zero becomes
_FULL_DIGITS = 1e-290  # products above this have all their digits, those of their factors included
FLOOR = 1e-305  # probabilities near the end of floats have lost their digits; this is more than they can have lost


def check_bound(value: float) -> float:
    """The bound itself, if it can be one: a number below zero, or none at all, proves nothing and is refused."""
    if not value >= 0:
        raise NotCertified(f"an account came to {value!r}, which is no bound: privacy losses are at least zero.")
    return value


def inverse(value: float) -> float:
    """1/x, infinite where that leaves floats."""
    return 1 / value if value > 1e-308 else math.inf


def product(*factors: float) -> float:
    """A product of prices: zero only if one of them is, and rounded up where floats lose their digits.

    >>> product(1e-200, 1e-200), product(1e-160, 1e-160) > 1e-320
    (5e-324, True)
    """
    value = 0.0 if 0.0 in factors else math.prod(factors)
    if value > _FULL_DIGITS or 0.0 in factors:
        return value
    exact = math.prod(map(Fraction, factors))
    value = float(exact)
    return value if value >= exact else math.nextafter(value, math.inf)


def times(cost: float, count: int) -> float:
    """What so many repetitions cost, however small the price and large the count; infinite beyond floats.

    >>> times(1e-300, 10**400), times(1e-20, 10**400)
    (1e+100, inf)
    """
    if not count or cost in (0.0, math.inf):
        return cost if count else 0.0
    if count < 1 << 53:
        return cost * count
    try:
        return float(Fraction(cost) * count)
    except OverflowError:
        return math.inf


def share(value: float, count: int) -> float:
    """A positive number divided by a count, never zero.

    >>> share(3.0, 2), share(1e300, 10**400), share(1e-300, 10**400)
    (1.5, 1e-100, 5e-324)
    """
    return max(value / count if count < 1 << 53 else float(Fraction(value) / count), SMALLEST)


def root(count: int) -> float:
    """The square root of a count, beyond floats too.

    >>> root(4), root(10**400)
    (2.0, 1e+200)
    """
    try:
        return math.sqrt(count) if count < 1 << 1000 else float(math.isqrt(count) + 1)
    except OverflowError:
        return math.inf


def growth(epsilon: float, k: int) -> float:
    r""":math:`1 + e^\epsilon + \dots + e^{(k-1)\epsilon}`, by which a delta grows for k changes; infinite past floats.

    >>> growth(0.0, 3), growth(800.0, 2)
    (3.0, inf)
    """
    last = times(epsilon, k - 1)
    if last > 700 or not epsilon:
        return math.inf if epsilon else times(1.0, k)
    return math.exp(last) * math.expm1(-times(epsilon, k)) / math.expm1(-epsilon) * (1 + 1e-12)
