r"""What a set of proved (delta, epsilon) pairs says about an attacker.

If P(S) ≤ e^ε Q(S) + δ both ways, a test with false-positive rate x has true-positive rate at most
min(δ + e^ε x, 1 − e^{−ε}(1 − δ − x)) (Wasserman and Zhou 2010; Kairouz, Oh and Viswanath 2015). Each pair is a theorem
of its own, so the best of them may be taken at every x.

For an odometer, epsilon is a function of what was seen. The bound is then on the book as a process that is closed
before any reading exceeds the one shown: every outcome of that process satisfies all the pairs at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

__all__ = ["true_positive_rate"]


def true_positive_rate(false_positive_rate: float, pairs: Iterable[tuple[float, float]]) -> float:
    """The best true-positive rate that the (delta, epsilon) pairs leave possible.

    >>> true_positive_rate(0.01, [(0.0, 0.0)])
    0.01
    >>> round(true_positive_rate(0.01, [(1e-6, 1.0)]), 4)
    0.0272
    """
    best = 1.0
    for delta, epsilon in pairs:
        if math.isfinite(epsilon):
            growth = math.exp(min(epsilon, 700.0)) * false_positive_rate + delta
            decay = 1 - math.exp(-epsilon) * max(0.0, 1 - delta - false_positive_rate)
            best = min(best, growth, decay)
    return best


def trade_off(pairs: list[tuple[float, float]], points: int = 201) -> tuple[list[float], list[float]]:
    """False-positive rates and the false-negative rates below which no attacker can get."""
    rates = [float(x) for x in np.linspace(0, 1, points)]
    return rates, [1 - true_positive_rate(x, pairs) for x in rates]
