"""From an event to its price in every currency a filter counts in.

A price is computed from the event alone. Where a currency has no theorem for a leaf, the price there is infinite and
that filter is out of the race for good; an event with no finite price at all is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from typing import cast

from scipy.special import expit, ndtri

from discreet import accounting, events
from discreet.accounting import basic, gdp, rdp
from discreet.accounting.neighbours import Choice, Leaf, resolve
from discreet.adjacency import Adjacency
from discreet.errors import BudgetExceeded, NotCertified, UnsupportedEvent
from discreet.events import Event
from discreet.ledger.amounts import NOTHING, ORDERS, Amounts, Number, exact, units

__all__ = ["approximate", "planned_price", "price", "refuse_nonprivate", "summed_price"]

_SLACK = 1e-12


@lru_cache(maxsize=4096)
def price(event: Event, adjacency: Adjacency, delta: float | None = None) -> Amounts:
    """What charging ``event`` adds to a book; with ``delta``, as the tight account's (epsilon, delta) of it all."""
    refuse_nonprivate(event)
    if delta is not None:
        epsilon = accounting.epsilon(event, delta=delta, adjacency=adjacency)
        if epsilon == math.inf:
            raise BudgetExceeded(f"The event has no finite epsilon at delta={delta:g}. Nothing was released.")
        return approximate(epsilon, delta)
    total = NOTHING
    for leaf, count in events.leaves(event).items():
        total = total + _leaf(leaf, adjacency) * count
    if all(value == math.inf for value in (total.pure, total.mu2, *total.renyi)):
        raise UnsupportedEvent(
            "No filter has a finite price for this event: its leaves are of kinds that no single theorem covers. "
            "Give charge(..., delta=) a part of the book's delta, and the tight account prices the event as a whole."
        )
    return total


def planned_price(event: Event, adjacency: Adjacency, delta: Fraction) -> Amounts | None:
    """What declaring ``event`` up front takes off a book: the tight account's epsilon at ``delta``, if it has one."""
    refuse_nonprivate(event)
    try:
        epsilon = accounting.epsilon(event, delta=float(delta), adjacency=adjacency)
    except (UnsupportedEvent, NotCertified):
        return None
    return Amounts(planned_epsilon=exact(epsilon), planned_delta=delta) if epsilon < math.inf else None


def summed_price(event: Event, adjacency: Adjacency) -> Amounts | None:
    """The same by basic composition, where every leaf states its (epsilon, delta): exact where numerics round up."""
    try:
        total = price(event, adjacency)
    except UnsupportedEvent:
        return None
    return Amounts(planned_epsilon=total.pure, planned_delta=total.delta) if total.pure < math.inf else None


def approximate(epsilon: float, delta: float) -> Amounts:
    """The price of anything (epsilon, delta)-DP: a pure event, and a chance of failing outright."""
    pure = events.PureDP(epsilon=epsilon)
    return Amounts(
        delta=exact(delta),
        pure=exact(epsilon),
        mu2=units(_pure_mu(epsilon) ** 2 * (1 + _SLACK)),
        renyi=_up(rdp.rdp_curve(pure, ORDERS, Adjacency.ADD_REMOVE)),
    )


def refuse_nonprivate(event: Event) -> None:
    """No budget covers a release without protection, wherever in the tree it hides."""
    if '"type":"NonPrivate"' in event.to_json():
        raise BudgetExceeded(
            "The event contains a release without protection (NonPrivate), which no finite budget covers. "
            "Nothing was released."
        )


def _leaf(leaf: Event, adjacency: Adjacency) -> Amounts:
    resolved = resolve(leaf, adjacency)
    if isinstance(leaf, events.ApproxDP) and isinstance(only := resolved.parts[0], Leaf):
        restated = cast(events.ApproxDP, only.event)
        return approximate(restated.epsilon, restated.delta)
    if resolved.slack:  # a truncated sampler: its overflow weighs e^ε, which a running total does not know
        return Amounts(pure=math.inf, mu2=math.inf, renyi=(math.inf,) * len(ORDERS))
    pure = _pure(resolved.parts)
    return Amounts(pure=pure, mu2=_mu2(leaf, adjacency, float(pure)), renyi=_renyi(leaf, adjacency))


def _pure(parts: Iterable[Leaf | Choice]) -> Number:
    total: Number = Fraction(0)
    for part in parts:
        one = _pure_leaf(part) if isinstance(part, Leaf) else max(_pure(option) for option in part.options)
        total = total + one * part.count
    return total


def _pure_leaf(leaf: Leaf) -> Number:
    """Exact where the parameter says it: a float quotient rounded up would make three thirds exceed one."""
    match leaf.event:
        case events.PureDP(epsilon=epsilon) | events.Exponential(epsilon=epsilon):
            return exact(epsilon)
        case events.RandomizedResponse(epsilon=epsilon):
            return exact(epsilon)
        case events.Laplace(noise_multiplier=noise):
            return 1 / exact(noise)
        case events.DiscreteLaplace(scale=scale, sensitivity=sensitivity):
            return sensitivity / exact(scale)
    return exact(basic.pure_of(leaf) * (1 + _SLACK))


def _mu2(leaf: Event, adjacency: Adjacency, pure: float) -> Number:
    try:
        mu = gdp.mu(leaf, adjacency)
    except UnsupportedEvent:
        mu = _pure_mu(pure)
    return units(mu**2 * (1 + _SLACK))


def _pure_mu(epsilon: float) -> float:
    """The Gaussian-DP parameter of a pure event: 2Φ⁻¹(e^ε/(1+e^ε)), from the small tail so that no digits are lost."""
    return -2 * float(ndtri(expit(-epsilon))) * (1 + _SLACK) if epsilon < 700 else math.inf


def _renyi(leaf: Event, adjacency: Adjacency) -> tuple[Number, ...]:
    try:
        curve = rdp.rdp_curve(leaf, ORDERS, adjacency)
    except (UnsupportedEvent, NotCertified):
        return (math.inf,) * len(ORDERS)
    return _up(curve)


def _up(curve: Iterable[float]) -> tuple[Number, ...]:
    return tuple(units(float(value) * (1 + _SLACK)) for value in curve)
