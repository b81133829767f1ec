r"""What an event about one row costs somebody who has at most k of them, in every currency a filter counts in.

Two data sets that differ in one unit are joined by at most k steps of one row each. What follows along such a path, for
each leaf of a composition (leaves run on the same data, one after the other, so that each may be restated by itself):

**Pure.** Log-ratios add along the path: ε becomes kε, for any event at all (Dwork and Roth 2014, Theorem 2.2).

**Gaussian.** μ-GDP becomes kμ-GDP, for any event that is μ-GDP (Dong, Roth and Su 2022, Theorem 2.14): μ² grows k²
times. An event that is kε-DP also has the μ of that, whichever is smaller.

**Rényi.** Divergences do not add along a path; k times the divergence at an order proves nothing. What holds is the
divergence of the mechanism whose sensitivity is k times as large (``neighbours.enlarged``): Laplace, Gaussian and their
discrete kin at a k-th of the noise, ρα becoming k²ρα for zCDP (Bun and Steinke 2016, Proposition 1.9), curves by the
weak triangle inequality at higher orders (Mironov 2017, Proposition 11) where k is a power of two; and that of a kε-DP
event. For anything else the order is out of the race, and the other filters decide.

**Approximate.** (ε, δ) becomes (kε, δ(1 + e^ε + … + e^{(k−1)ε})) (Vadhan 2017, Lemma 2.2).

**The whole.** Sampled and parallel events have no leaf-wise restatement beyond the pure one: the rows of a unit share a
sample, and spread over parts. The certified curve δ(ε) of the *whole* event holds for one row, and by the same lemma at
every point of it: δ_k(ε) ≤ δ(ε/k)(1 + e^{ε/k} + … + e^{(k−1)ε/k}). It is charged as the (ε, δ) that proves: as a plan,
or at the part of delta that ``charge(..., delta=)`` names; otherwise such a charge is refused.

Fewer rows than k cost less: a path may stand still. Under replace a unit may come back with another number of rows,
which rows replaced one by one never do, so that such a book has no bound k (``Terms`` refuses one).
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from discreet import accounting
from discreet.accounting.neighbours import for_group
from discreet.accounting.outward import growth
from discreet.adjacency import Adjacency
from discreet.errors import BudgetExceeded, NotCertified, UnsupportedEvent
from discreet.events import Event, leaves
from discreet.ledger import pricing
from discreet.ledger.amounts import NOTHING, ORDERS, Amounts, Number, exact

__all__ = ["planned_price", "price", "summed_price"]

_UP = 1 + 1e-12  # covers the rounding of parameters that were multiplied or divided by k


@lru_cache(maxsize=4096)
def price(event: Event, adjacency: Adjacency, delta: float | None = None, rows: int = 1, quote: float = 0.0) -> Amounts:
    """What charging ``event`` adds to a book whose unit has at most ``rows`` of the records it protects.

    ``delta``: the whole is priced there; ``quote``: the whole is priced there for the plain sum, leaves for the rest.
    """
    if quote:
        return pricing.quoted(price(event, adjacency, delta, rows), event, adjacency, quote, rows)
    if rows == 1:
        return pricing.price(event, adjacency, delta)
    pricing.refuse_nonprivate(event)
    if delta is not None:
        epsilon = accounting.epsilon(event, delta=delta, adjacency=adjacency, group_size=rows) * _UP
        if epsilon == math.inf:
            raise BudgetExceeded(f"The event has no finite epsilon at delta={delta:g} for {rows:,} rows at once. "
                                 "Nothing was released.")  # fmt: skip
        return pricing.approximate(epsilon, delta)
    total = NOTHING
    for leaf, count in leaves(event).items():
        total = total + _leaf(leaf, adjacency, rows) * count
    if all(value == math.inf for value in (total.pure, total.mu2, *total.renyi)):
        raise UnsupportedEvent(
            f"No accounting rule (filter) has a finite price for this event and {rows:,} rows at once: sampled and "
            "parallel events have one only as a whole. Give charge(..., delta=) a part of the book's delta, or plan "
            "the event in a book that is still fresh."
        )
    return total


def planned_price(event: Event, adjacency: Adjacency, delta: Fraction, rows: int = 1) -> Amounts | None:
    """What declaring ``event`` up front takes off a book: the tight account's epsilon at ``delta``, if it has one."""
    if rows == 1:
        return pricing.planned_price(event, adjacency, delta)
    pricing.refuse_nonprivate(event)
    try:
        epsilon = accounting.epsilon(event, delta=float(delta), adjacency=adjacency, group_size=rows) * _UP
    except (UnsupportedEvent, NotCertified):
        return None
    return Amounts(planned_epsilon=exact(epsilon), planned_delta=delta) if epsilon < math.inf else None


def summed_price(event: Event, adjacency: Adjacency, rows: int = 1) -> Amounts | None:
    """The same by basic composition, where every leaf states its (epsilon, delta): exact where numerics round up."""
    try:
        total = price(event, adjacency, rows=rows)
    except UnsupportedEvent:
        return None
    return Amounts(planned_epsilon=total.pure, planned_delta=total.delta) if total.pure < math.inf else None


def _leaf(leaf: Event, adjacency: Adjacency, rows: int) -> Amounts:
    one = pricing.price(leaf, adjacency)
    pure = one.pure * rows
    if one.delta:  # approximate DP, whose price is that of its epsilon beside a delta
        delta = one.delta * exact(growth(float(one.pure), rows))
        return replace(_of_pure(pure), delta=min(Fraction(1), delta))
    bound = _of_pure(pure)
    try:
        renyi = pricing.price(for_group(leaf, rows), adjacency).renyi
    except UnsupportedEvent:  # a sampler, a parallel part, a curve that ends too early
        renyi = (math.inf,) * len(ORDERS)
    return replace(bound, mu2=min(one.mu2 * rows**2, bound.mu2), renyi=tuple(map(min, renyi, bound.renyi)))


def _of_pure(epsilon: Number) -> Amounts:
    """The price of a pure event, its epsilon kept exact."""
    if epsilon == math.inf:
        return Amounts(pure=math.inf, mu2=math.inf, renyi=(math.inf,) * len(ORDERS))
    return replace(pricing.approximate(float(epsilon) * _UP, 0.0), pure=epsilon)
