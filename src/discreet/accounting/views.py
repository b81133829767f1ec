"""What every accountant promises: upper bounds on epsilon and on delta for a resolved event, or a refusal by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, TypeVar

from scipy.optimize import brentq

from discreet import events as ev
from discreet.accounting.neighbours import Choice, Leaf, Resolved, each_leaf
from discreet.accounting.outward import proved
from discreet.errors import UnsupportedEvent

__all__ = ["Account", "fold", "solve_epsilon", "unsupported"]

T = TypeVar("T")


class Account(Protocol):
    """One view of a resolved event."""

    def epsilon(self, delta: float) -> float:
        """Certified upper bound on the smallest epsilon, for delta in [0, 1]."""
        ...

    def delta(self, epsilon: float) -> float:
        """Certified upper bound on the smallest delta, for epsilon ≥ 0."""
        ...


def fold(
    parts: tuple[Leaf | Choice, ...],
    price: Callable[[Leaf], T],
    add: Callable[[T, T], T],
    times: Callable[[T, int], T],
    worst: Callable[[T, T], T],
    nothing: T,
) -> T:
    """Price every leaf, add up, and take the worst option of a parallel part: the only loop over parts there is."""
    total = nothing
    for part in parts:
        if isinstance(part, Leaf):
            cost = price(part)
        else:
            options = [fold(option, price, add, times, worst, nothing) for option in part.options]
            cost = options[0]
            for option in options[1:]:
                cost = worst(cost, option)
        total = add(total, times(cost, part.count))
    return total


def unsupported(accountant: str, event: ev.Event, reason: str) -> UnsupportedEvent:
    """The refusal of an accountant that has no theorem for a leaf."""
    return UnsupportedEvent(f"The {accountant} accountant cannot price {event.tag}: {reason}.")


def hopeless(resolved: Resolved) -> bool:
    """Whether something was published without protection."""
    return any(isinstance(leaf.event, ev.NonPrivate) for leaf in each_leaf(resolved.parts))


def solve_epsilon(delta_of: Callable[[float], float], delta: float, start: float = 1.0) -> float:
    """Smallest epsilon, from above and to about eleven digits, at which a decreasing delta(epsilon) is at most ``delta``."""
    if proved(delta_of(0.0)) <= delta:
        return 0.0
    low, high = 0.0, start
    while proved(delta_of(high)) > delta:
        low, high = high, 2 * high
        if high > 1e9:
            return math.inf
    while low == 0 and high > 1e-60 and proved(delta_of(high / 4)) <= delta:
        high /= 4

    def gap(epsilon: float) -> float:
        value = proved(delta_of(epsilon))
        return (math.log(value) if value > 0 else -800.0) - math.log(delta)

    root = float(brentq(gap, low, high, xtol=1e-13 * high, rtol=1e-14))
    move = 1e-13 * high
    while delta_of(root) > delta:  # only the safe side counts
        root, move = root + move, 2 * move
    return root
