"""Numbers between which a value lies, carried through arithmetic. Rounding is to nearest: who needs a bound,
clips to it.
"""

from __future__ import annotations

import math
from typing import TypeAlias

__all__ = ["ANYTHING", "TRUTH", "Interval", "arithmetic", "function"]

Interval: TypeAlias = tuple[float, float]
ANYTHING: Interval = (-math.inf, math.inf)
TRUTH: Interval = (0.0, 1.0)


def arithmetic(sign: str, left: Interval, right: Interval) -> Interval:
    """Where a sum, difference, product or quotient lies.

    >>> arithmetic("*", (-1, 2), (3, 4))
    (-4, 8)
    >>> arithmetic("/", (1, 2), (-1, 1))
    (-inf, inf)
    """
    (a, b), (c, d) = left, right
    if sign == "+":
        return a + c, b + d
    if sign == "-":
        return a - d, b - c
    if sign == "/" and c <= 0 <= d:
        return ANYTHING
    corners = [x * y if sign == "*" else x / y for x in (a, b) for y in (c, d)]
    return (min(corners), max(corners)) if all(map(math.isfinite, corners)) else ANYTHING


def function(name: str, inner: Interval) -> Interval:
    """Where a magnitude, a floor, a root or a logarithm lies; what has none is missing and lies nowhere.

    >>> function("abs", (-3.0, 2.0)), function("sqrt", (-1.0, 9.0))
    ((0.0, 3.0), (0.0, 3.0))
    """
    low, high = inner
    match name:
        case "abs":
            return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
        case "floor":
            return (math.floor(low) if math.isfinite(low) else low), (math.floor(high) if math.isfinite(high) else high)
        case "sqrt":
            return 0.0, math.sqrt(max(high, 0.0))
    return (math.log(low) if low > 0 else -math.inf), (math.log(high) if high > 0 else math.inf)
