r"""Intervals for differences and ratios of numbers that were released with intervals of their own.

Both numbers have to be released with noise of their own, as the cells of a table are. What is made of them is
post-processing, so it costs nothing. With a in (l₁, u₁) and b in (l₂, u₂) the difference has the interval

.. math:: a - b - \sqrt{(a - l_1)^2 + (u_2 - b)^2} \quad\text{to}\quad a - b + \sqrt{(u_1 - a)^2 + (b - l_2)^2}

at the same confidence, exactly for Gaussian noise and at least for Laplace noise from 92 % on (half-widths add up as
roots of squares do, and the sum of two such noises has lighter tails than either). The ratio's holds those r for which
the interval of a - r·b holds zero (Fieller 1954; Donner and Zou 2012). What the intervals do not hold, as sampling for
those of ``errors=True``, these do not hold either. Reference: Zou and Donner (2008).

>>> difference((40.0, 34.0, 46.0), (30.0, 22.0, 38.0))
(10.0, 0.0, 20.0)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.inference.simulation import Array

__all__ = ["difference", "ratio"]

WithInterval = tuple[Any, Any, Any]
"""A number, or a column of them, with the lower and the upper ends of intervals."""


def difference(first: WithInterval, second: WithInterval) -> WithInterval:
    """The first less the second, with its interval; of columns, one for each row.

    >>> middle, low, high = difference(([4.0, 5.0], [3.0, 4.0], [5.0, 6.0]), ([1.0, 5.0], [1.0, 5.0], [1.0, 5.0]))
    >>> low.tolist(), high.tolist()
    ([2.0, -1.0], [4.0, 1.0])
    """
    a, low_a, high_a = _ends("first", first)
    b, low_b, high_b = _ends("second", second)
    below, above = np.hypot(a - low_a, high_b - b), np.hypot(high_a - a, b - low_b)
    return _shown(a - b, a - b - below, a - b + above)


def ratio(first: WithInterval, second: WithInterval) -> WithInterval:
    """The first over the second, which is not negative; the interval is the whole line where the second's holds zero.

    >>> [round(float(part), 2) for part in ratio((40.0, 34.0, 46.0), (80.0, 72.0, 88.0))]
    [0.5, 0.41, 0.6]
    """
    a, low_a, high_a = _ends("first", first)
    b, low_b, high_b = _ends("second", second)
    sign = np.where(a < 0, -1.0, 1.0)
    a, low_a, high_a = sign * a, np.where(sign < 0, -high_a, low_a), np.where(sign < 0, -low_a, high_a)
    with np.errstate(all="ignore"):
        low = _root(a, b, a - low_a, high_b - b, -1.0)
        high = _root(a, b, high_a - a, b - low_b, 1.0)
        low, high = np.where(sign < 0, -high, low), np.where(sign < 0, -low, high)
        unknown = (low_b <= 0) | ~np.isfinite(low) | ~np.isfinite(high) | (2 * b <= high_b)
        value = np.where(b > 0, sign * a / b, np.nan)
    return _shown(value, np.where(unknown, -np.inf, low), np.where(unknown, np.inf, high))


def _root(a: Array, b: Array, of_first: Array, of_second: Array, side: float) -> Array:
    """The r with (a - r·b)² = of_first² + r²·of_second² on this side of a/b."""
    square = b**2 - of_second**2
    return np.asarray((a * b + side * np.sqrt((a * b) ** 2 - square * (a**2 - of_first**2))) / square)


def _ends(name: str, given: WithInterval) -> tuple[Array, Array, Array]:
    if len(given) != 3:
        raise ValueError(f"{name} must be a number and the two ends of its interval, or three columns of them.")
    value, low, high = (np.asarray(part, np.float64) for part in given)
    if not (low <= value).all() or not (value <= high).all():
        raise ValueError(f"{name} has an interval that does not hold its number.")
    return value, low, high


def _shown(*parts: Array) -> WithInterval:
    return tuple(float(part) if part.ndim == 0 else part for part in parts)  # type: ignore[return-value]
