"""Numbers between which a value lies, carried through arithmetic. Rounding is to nearest: who needs a bound,
clips to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

__all__ = ["ANYTHING", "ROUNDED", "TRUTH", "WHOLE", "Interval", "arithmetic", "function"]

Interval: TypeAlias = tuple[float, float]
ANYTHING: Interval = (-math.inf, math.inf)
TRUTH: Interval = (0.0, 1.0)
WHOLE = 2.0**52  # doubles of this size and more are whole numbers


def _half_away(value: float) -> float:
    floor = math.floor(abs(value))
    return math.copysign(floor + (abs(value) - floor >= 0.5), value)


_NEAR: Mapping[str, Callable[[float], float]] = {
    "floor": math.floor,
    "trunc": math.trunc,
    "round": _half_away,  # SQL's ROUND
    "rint": round,  # halves to the even one, as SQL's CAST of a double
}


def _rounding(near: Callable[[float], float]) -> Callable[[float], float]:
    # floats again: products of whole numbers have no end, and none of floats is beyond infinity; of zeros one
    return lambda value: float(near(value)) + 0.0 if abs(value) < WHOLE else value


ROUNDED: Mapping[str, Callable[[float], float]] = {name: _rounding(near) for name, near in _NEAR.items()}


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


def function(name: str, inner: Interval) -> Interval:
    """Where a magnitude, a floor, a root or a logarithm lies; what has none is missing and lies nowhere.

    >>> huge = function("floor", (1e308, 1e308))
    >>> function("abs", (-3.0, 2.0)), function("sqrt", (-1.0, 9.0)), arithmetic("*", huge, huge)
    ((0.0, 3.0), (0.0, 3.0), (-inf, inf))
    """
    low, high = inner
    match name:
        case "abs":
            return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
        case _ if name in ROUNDED:
            return ROUNDED[name](low), ROUNDED[name](high)
        case "sqrt":
            return 0.0, math.sqrt(max(high, 0.0))
        case "log":
            return (math.log(low) if low > 0 else -math.inf), (math.log(high) if high > 0 else math.inf)
    raise ValueError(f"{name!r} is no function of a number.")
