"""How far apart the values are that two neighbours hand to the noise, without rounding where that can be afforded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.random.tap import Norm

__all__ = ["between"]

_EXACT = 4096  # entries up to which distances are computed without rounding


def between(a: Any, b: Any, norm: Norm) -> Any:
    """The distance, exact for moderate sizes; none if shapes differ. Not-a-number is infinitely far from the rest."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        keys = sorted({*a, *b}, key=repr)
        a, b = ([x.get(key, 0) for key in keys] for x in (a, b))
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return None
    changed = [(x, y) for x, y in zip(a.reshape(-1).tolist(), b.reshape(-1).tolist(), strict=True) if x != y]
    if norm == "hamming":
        return len(changed)
    if any(isinstance(z, float) and not math.isfinite(z) for pair in changed for z in pair):
        return math.inf
    number: Callable[[Any], Any] = _exact if len(changed) <= _EXACT else float
    gaps = [abs(number(x) - number(y)) for x, y in changed]
    if norm == "linf":
        return max(gaps, default=0)
    if norm == "l1":
        return sum(gaps)
    if norm != "l2":
        raise ValueError(f"norm is {norm!r}, but must be 'hamming', 'linf', 'l1' or 'l2'.")
    square = sum(gap * gap for gap in gaps)
    return math.sqrt(square) * (1 - 1e-15)  # the root is rounded; do not let that look like a violation


def _exact(x: Any) -> Any:
    return x if type(x) is int else Fraction(x)
