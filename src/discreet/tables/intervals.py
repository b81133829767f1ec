"""Numbers between which a value lies, carried through arithmetic. Rounding is to nearest: who needs a bound,
clips to it.
"""

from __future__ import annotations

import math
from typing import TypeAlias

__all__ = ["ANYTHING", "TRUTH", "WHOLE", "Interval", "arithmetic"]

Interval: TypeAlias = tuple[float, float]
ANYTHING: Interval = (-math.inf, math.inf)
TRUTH: Interval = (0.0, 1.0)
WHOLE = 2.0**52  # doubles of this size and more are whole numbers


def arithmetic(sign: str, left: Interval, right: Interval) -> Interval:
    """Where a sum, difference, product or quotient lies.

    >>> arithmetic("*", (-1, 2), (3, 4))
    (-4, 8)
    >>> arithmetic("/", (1, 2), (-1, 1))
    (-inf, inf)
    """
    (a, b), (c, d) = left, right
    if sign == "%":  # what is left has the sign of what is divided, and is smaller than both
        most = min(max(abs(c), abs(d)), max(abs(a), abs(b)))
        return (-most if a < 0 else 0.0), (most if b > 0 else 0.0)
    if sign == "+":
        return a + c, b + d
    if sign == "-":
        return a - d, b - c
    if sign not in "*/":
        raise ValueError(f"{sign!r} is no arithmetic.")
    if sign == "/" and c <= 0 <= d:
        return _by_zero(left, right)
    corners = [x * y if sign == "*" else x / y for x in (a, b) for y in (c, d)]
    return (min(corners), max(corners)) if all(map(math.isfinite, corners)) else ANYTHING


def _by_zero(left: Interval, right: Interval) -> Interval:
    """A quotient whose divisor may be arbitrarily small, but is not zero: then it is missing. Its sign may be known.

    >>> _by_zero((0, 8), (0, 4)), _by_zero((1, 8), (-4, 0)), _by_zero((-1, 8), (0, 4))
    ((0.0, inf), (-inf, -0.25), (-inf, inf))
    """
    (a, b), (c, d) = left, right
    if c < 0 < d or a < 0 < b or c == d:
        return ANYTHING
    nearest = (a if a >= 0 else b) / (d if d > 0 else c)
    if not math.isfinite(nearest):
        return ANYTHING
    positive = (a >= 0) == (d > 0)
    return (nearest, math.inf) if positive else (-math.inf, nearest)
