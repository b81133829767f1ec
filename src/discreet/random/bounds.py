"""Certified bounds on exp, and the last word on a close call: exact, in integers of any size.

The decimal module rounds ``exp`` correctly at any precision, so one step outward on either side encloses the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from discreet.random.source import Rng

__all__ = ["Interval", "exp_bounds", "uniform_below"]

Interval = tuple[Fraction, Fraction]


def exp_bounds(x: Fraction, digits: int = 40) -> Interval:
    """Two rationals with exp(x) between them, that agree to about ``digits`` digits, relative or absolute.

    >>> low, high = exp_bounds(Fraction(-1), digits=30)
    >>> float(low), float(high - low) < 1e-29
    (0.36787944117144233, True)
    """
    if x < -3 * digits:  # below 10^-digits: say just that, rather than write the zeros out
        return Fraction(0), Fraction(1, 10**digits)
    down = Context(prec=digits, rounding=ROUND_FLOOR, Emin=-(10**9), Emax=10**9)
    up = Context(prec=digits, rounding=ROUND_CEILING, Emin=-(10**9), Emax=10**9)
    low = down.exp(down.divide(Decimal(x.numerator), Decimal(x.denominator)))
    high = up.exp(up.divide(Decimal(x.numerator), Decimal(x.denominator)))
    return Fraction(down.next_minus(low)), Fraction(up.next_plus(high))


def uniform_below(
    bounds: Callable[[int, Interval], Interval], rng: Rng, *, word: int | None = None, inner: int | None = None
) -> bool:
    """Whether U < p, decided exactly, for U uniform on [0, 1) of which ``word`` holds the first 64 bits.

    ``bounds(digits, (a, b))`` encloses p for an inner uniform known to lie in [a, b]; ``inner`` holds that one's
    first 64 bits. Both are lengthened, and p sharpened, until the order is certain: almost surely after one round.
    """
    outer = rng.word() if word is None else word
    inside = rng.word() if inner is None else inner
    bits = 64
    while True:
        one = 1 << bits
        low, high = bounds(bits, (Fraction(inside, one), Fraction(inside + 1, one)))  # digits > bits · log10(2)
        if outer + 1 <= low * one:
            return True
        if outer >= high * one:
            return False
        outer, inside, bits = outer << 64 | rng.word(), inside << 64 | rng.word(), bits + 64
