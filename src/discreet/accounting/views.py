"""What every accountant promises, and how one bound is turned into the other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from scipy.optimize import brentq

from discreet.accounting.outward import check_bound

__all__ = ["Account", "smallest_delta", "solve_epsilon"]


class Account(Protocol):
    """One view of a resolved event."""

    @property
    def inverts(self) -> bool:
        """Whether a delta is sought among epsilons, by accounts that know nothing else: dozens of questions each."""
        ...

    def epsilon(self, delta: float) -> float:
        """Certified upper bound on the smallest epsilon, for delta in [0, 1]."""
        ...

    def delta(self, epsilon: float) -> float:
        """Certified upper bound on the smallest delta, for epsilon ≥ 0."""
        ...


def solve_epsilon(delta_of: Callable[[float], float], delta: float, start: float = 1.0) -> float:
    """Smallest epsilon, from above and to some eleven digits, at which a decreasing delta(epsilon) is at most delta."""
    if check_bound(delta_of(0.0)) <= delta:
        return 0.0
    low, high = 0.0, start
    while check_bound(delta_of(high)) > delta:
        low, high = high, 2 * high
        if high > 1e9:
            return math.inf
    while low == 0 and high > 1e-60 and check_bound(delta_of(high / 4)) <= delta:
        high /= 4

    def gap(epsilon: float) -> float:
        value = check_bound(delta_of(epsilon))
        return (math.log(value) if value > 0 else -800.0) - math.log(delta)

    root = float(brentq(gap, low, high, xtol=1e-13 * high, rtol=1e-14))
    move = 1e-13 * high
    while delta_of(root) > delta:  # only the safe side counts
        root, move = root + move, 2 * move
    return root


def smallest_delta(epsilon_of: Callable[[float], float], epsilon: float) -> float:
    """Invert a decreasing epsilon(delta), from above, on a logarithmic scale down to 1e-300."""
    if epsilon_of(0.0) <= epsilon:
        return 0.0
    if epsilon_of(1.0) > epsilon:
        return 1.0
    far = 690.0  # of -log delta, along which epsilon grows
    if epsilon_of(math.exp(-far)) <= epsilon:
        return math.exp(-far)

    def gap(log: float) -> float:
        excess = epsilon_of(math.exp(-log)) - epsilon
        # of infinity, as much as of twice epsilon; and where epsilon is met on a whole range, its end is sought
        return min(excess, epsilon + 1.0) if excess > 0 else min(excess, -1e-12 * (epsilon + 1.0))

    root, move = float(brentq(gap, 0.0, far, xtol=1e-9, rtol=1e-12)), 1e-9
    while root > 0 and gap(root) > 0:  # only the safe side counts
        root, move = max(0.0, root - move), 2 * move
    return math.exp(-root)
