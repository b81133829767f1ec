"""Basic composition: epsilons add up, deltas add up.

Leaves that are pure spend no delta. The others share what is left of it equally: each repetition gets the epsilon its
own exact profile gives at that share. Reference: Dwork and Roth (2014), Theorem 3.16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from discreet.accounting.facts import approximate_of, facts_of, own_delta, pure_of
from discreet.accounting.outward import times
from discreet.accounting.parts import Leaf, Resolved, fold
from discreet.accounting.pld.composition import PLD
from discreet.accounting.rdp import Renyi
from discreet.accounting.sums import hopeless
from discreet.accounting.views import smallest_delta
from discreet.errors import NotCertified, UnsupportedEvent

__all__ = ["Basic", "divide_delta", "leaf_epsilon", "single_epsilon"]


def single_epsilon(leaf: Leaf, delta: float) -> float:
    """The exact epsilon of one run of a leaf at delta, from its own privacy profile."""
    return _single_epsilon(replace(leaf, count=1), delta)


@lru_cache(maxsize=512)  # several accounts ask for the same share of delta
def _single_epsilon(leaf: Leaf, delta: float) -> float:
    pure = pure_of(leaf)
    if pure < math.inf or delta <= 0:
        return pure
    both = approximate_of(leaf)
    if both is not None and both[1] == delta:
        return both[0]
    try:
        return _numerical(leaf).epsilon(delta)
    except (UnsupportedEvent, NotCertified):
        return Renyi(Resolved((leaf,))).epsilon(delta)


@lru_cache(maxsize=32)  # asked at one share of delta after the other, and its pairs may be compositions
def _numerical(leaf: Leaf) -> PLD:
    return PLD(Resolved((leaf,)))


def divide_delta(resolved: Resolved, delta: float, *, keep: bool) -> tuple[float, float] | None:
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
    both = approximate_of(leaf)
    return both[0] if both is not None and both[1] else single_epsilon(leaf, share)


@dataclass(frozen=True)
class Basic:
    """Sums of epsilons and deltas."""

    resolved: Resolved
    inverts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        fold(self.resolved.parts, _check, lambda a, b: None, lambda a, n: None, lambda a, b: None, None)

    def epsilon(self, delta: float) -> float:
        """Upper bound."""
        if hopeless(self.resolved):
            return math.inf
        division = divide_delta(self.resolved, delta, keep=False)
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
    stated = facts_of(leaf.event).hopeless or approximate_of(leaf) is not None
    if not stated and pure_of(leaf) == math.inf:
        single_epsilon(leaf, 0.5)
