"""Basic composition: epsilons add up, deltas add up.

Leaves that are pure spend no delta. The others share what is left of it equally: each repetition gets the epsilon its
own exact profile gives at that share. Reference: Dwork and Roth (2014), Theorem 3.16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet import events as ev
from discreet.accounting.neighbours import Leaf, Resolved, resolve
from discreet.accounting.outward import SMALLEST, inverse, product, times
from discreet.accounting.views import fold, hopeless
from discreet.adjacency import Adjacency
from discreet.errors import NotCertified, UnsupportedEvent

__all__ = ["Basic", "pure_epsilon", "pure_sum", "single_epsilon"]

_UP = 1 + 1e-14


def pure_of(leaf: Leaf) -> float:
    """Epsilon at delta zero, or infinity."""
    event = leaf.event
    match event:
        case ev.Laplace():
            return inverse(event.noise_multiplier)
        case ev.DiscreteLaplace():
            return times(inverse(event.scale), event.sensitivity)
        case ev.Exponential() | ev.PureDP() | ev.RandomizedResponse():
            return event.epsilon
        case ev.ApproxDP():
            return event.epsilon if event.delta == 0 else math.inf
        case ev.GDP():
            return 0.0 if event.mu == 0 else math.inf
        case ev.ZCDP():
            return 0.0 if event.rho == 0 else math.inf
        case ev.PoissonSampled() | ev.FixedSizeSampled():
            if event.rate == 0:
                return 0.0
            inner = pure_epsilon(event.event, leaf.adjacency)
            return _amplified(inner, event.rate)
    return math.inf


def _amplified(epsilon: float, rate: float) -> float:
    """log(1 + q(e^ε - 1)): Poisson for add/remove, fixed size for replace (Balle, Barthe and Gaboardi 2018).

    Where e^ε leaves floats, log(1 + q·e^ε) with log q + ε rounded up, which keeps its digits near zero too.
    """
    if epsilon == 0 or not math.isfinite(epsilon):
        return epsilon
    if epsilon < 300:
        value = math.log1p(product(rate, math.expm1(epsilon))) * _UP
    else:
        log = math.log(rate) + epsilon
        log += 1e-15 * (epsilon - math.log(rate))  # more than both can have lost
        value = (max(log, 0.0) + math.log1p(math.exp(-abs(log)))) * _UP
    return min(epsilon, value + SMALLEST)


def pure_epsilon(event: ev.Event, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> float:
    """Sum of the pure epsilons of all leaves; infinity if one of them is not pure.

    >>> pure_epsilon(ev.Laplace(noise_multiplier=2.0) * 4)
    2.0
    """
    return pure_sum(resolve(event, Adjacency(adjacency)))


def pure_sum(resolved: Resolved) -> float:
    """The same for a resolved event; a truncated sampler is not pure."""
    return math.inf if resolved.slack else fold(resolved.parts, pure_of, lambda a, b: a + b, times, max, 0.0)


def single_epsilon(leaf: Leaf, delta: float) -> float:
    """The exact epsilon of one leaf at delta, from its own privacy profile."""
    from discreet.accounting.pld import PLD
    from discreet.accounting.rdp import Renyi

    pure = pure_of(leaf)
    if pure < math.inf or delta <= 0:
        return pure
    if isinstance(leaf.event, ev.ApproxDP) and leaf.event.delta == delta:
        return leaf.event.epsilon
    one = Resolved((Leaf(leaf.event, leaf.adjacency, 1, leaf.flip),))
    try:
        return PLD(one).epsilon(delta)
    except (UnsupportedEvent, NotCertified):
        return Renyi(one).epsilon(delta)


def own_delta(leaf: Leaf) -> float:
    """The delta a leaf brings with it."""
    return leaf.event.delta if isinstance(leaf.event, ev.ApproxDP) else 0.0


def divided(resolved: Resolved, delta: float, *, keep: bool) -> tuple[float, float] | None:
    """How delta is divided: what a repetition that is not pure may spend, and what is kept for a deviation.

    The leaves' own deltas come first, exactly; None if delta does not cover them. With ``keep``, all that is left is
    kept where no leaf needs a share, and half of it elsewhere.
    """

    def price(leaf: Leaf) -> tuple[Fraction, int]:
        own = Fraction(own_delta(leaf))
        return (own, 0) if own else (own, 0 if pure_of(leaf) < math.inf else 1)

    fixed, sharers = fold(
        resolved.parts,
        price,
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lambda cost, n: (cost[0] * n, cost[1] * n),
        lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
        (Fraction(0), 0),
    )
    left = Fraction(delta) - fixed
    if left < 0 or (left == 0 and sharers):
        return None
    if not sharers:
        return 0.0, float(left) * (1 - 1e-15) if keep else 0.0
    kept = left / 2 if keep else Fraction(0)
    return float((left - kept) / sharers) * (1 - 1e-15), float(kept) * (1 - 1e-15)


def leaf_epsilon(leaf: Leaf, share: float) -> float:
    """Epsilon of one repetition at its share of delta."""
    if isinstance(leaf.event, ev.ApproxDP) and leaf.event.delta:
        return leaf.event.epsilon
    return single_epsilon(leaf, share)


@dataclass(frozen=True)
class Basic:
    """Sums of epsilons and deltas."""

    resolved: Resolved

    def __post_init__(self) -> None:
        fold(self.resolved.parts, _check, lambda a, b: None, lambda a, n: None, lambda a, b: None, None)

    def epsilon(self, delta: float) -> float:
        """Upper bound."""
        if hopeless(self.resolved):
            return math.inf
        division = divided(self.resolved, delta, keep=False)
        if division is None:
            return math.inf
        share, _ = division
        return fold(
            self.resolved.parts,
            lambda leaf: leaf_epsilon(leaf, share),
            lambda a, b: a + b,
            times,
            max,
            0.0,
        )

    def delta(self, epsilon: float) -> float:
        """Upper bound: the smallest delta whose epsilon fits."""
        return smallest_delta(self.epsilon, epsilon)


def _check(leaf: Leaf) -> None:
    """Refuse now what no single-leaf account can price."""
    if not isinstance(leaf.event, (ev.NonPrivate, ev.ApproxDP)) and pure_of(leaf) == math.inf:
        single_epsilon(leaf, 0.5)


def smallest_delta(epsilon_of: object, epsilon: float) -> float:
    """Invert a decreasing epsilon(delta), from above, on a logarithmic scale down to 1e-300."""

    def excess(x: float) -> float:
        value: float = epsilon_of(math.exp(-x))  # type: ignore[operator]
        return value - epsilon

    if epsilon_of(0.0) <= epsilon:  # type: ignore[operator]
        return 0.0
    if excess(0.0) > 0:
        return 1.0
    # solve_epsilon finds where a decreasing function falls below a level: here -x ↦ ε(e^{-x}) grows with x
    low, high = 0.0, 690.0
    if excess(high) <= 0:
        return math.exp(-high)
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) <= 0 else (low, middle)
    return math.exp(-low)
