"""From an event to its price in every currency a filter counts in.

A price is computed from the event alone. Where a currency has no theorem for a leaf, the price there is infinite and
that filter is out of the race for good; an event with no finite price at all is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, reduce

from scipy.special import erfinv, expit, ndtri

from discreet import accounting, events
from discreet.accounting import rdp
from discreet.accounting.facts import approximate_of, mu_of, pure_of, quotient_of
from discreet.accounting.neighbours import resolve
from discreet.accounting.outward import SMALLEST
from discreet.accounting.parts import Choice, Leaf
from discreet.adjacency import Adjacency
from discreet.errors import BudgetExceeded, NotCertified, UnsupportedEvent
from discreet.events import Event
from discreet.ledger.amounts import NOTHING, ORDERS, Amounts, Number, exact, units

__all__ = ["approximate", "planned_price", "price", "quoted", "refuse_nonprivate", "summed_price"]

_SLACK = 1e-12
_LISTED = 10**6
_LARGEST = 700  # pure events beyond this have no Gaussian-DP parameter that floats can hold
_EVERYTHING = Amounts(pure=math.inf, mu2=math.inf, renyi=(math.inf,) * len(ORDERS))


@lru_cache(maxsize=4096)
def price(event: Event, adjacency: Adjacency, delta: float | None = None) -> Amounts:
    """What charging ``event`` adds to a book; with ``delta``, as the tight account's (epsilon, delta) of it all."""
    refuse_nonprivate(event)
    if delta is not None:
        epsilon = accounting.epsilon(event, delta=delta, adjacency=adjacency)
        if epsilon == math.inf:
            raise BudgetExceeded(f"The event has no finite epsilon at delta={delta:g}. Nothing was released.")
        return approximate(epsilon, delta)
    resolved = resolve(event, adjacency)
    # a truncated sampler's overflow weighs e^ε, which a running total does not know
    total = _EVERYTHING if resolved.slack else _total(resolved.parts)
    if all(value == math.inf for value in (total.pure, total.mu2, *total.renyi)):
        raise UnsupportedEvent(
            "No accounting rule (filter) has a finite price for this event: it has too little noise for one, or leaves "
            "of kinds that no single theorem covers. Nothing was released. Use more noise; or give charge(..., delta=) "
            "a part of the book's delta, and the tight account prices the event as a whole."
        )
    return total


def quoted(price: Amounts, event: Event, adjacency: Adjacency, delta: float, rows: int = 1) -> Amounts:
    """The price with the tight account's epsilon of the whole event at ``delta`` as its part of the plain sum; a price
    that is finite there already, and one for which no account has an epsilon, stay as they are.
    """
    if price.pure < math.inf or not delta:
        return price
    try:
        epsilon = accounting.epsilon(event, delta=delta, adjacency=adjacency, group_size=rows)
    except (UnsupportedEvent, NotCertified):
        return price
    return replace(price, pure=exact(epsilon), quoted=exact(delta)) if epsilon < math.inf else price


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


def approximate(epsilon: float, delta: float, count: int = 1) -> Amounts:
    """The price of anything (epsilon, delta)-DP: a pure event, and a chance of failing outright."""
    pure = Leaf(events.PureDP(epsilon=epsilon), Adjacency.ADD_REMOVE, 1)
    return Amounts(
        delta=exact(delta) * count,
        pure=exact(epsilon) * count,
        mu2=_square_units(_pure_mu(exact(epsilon)), count),
        renyi=_renyi(pure, count),
    )


def refuse_nonprivate(event: Event) -> None:
    """No budget covers a release without protection, wherever in the tree it hides."""
    if '"type":"NonPrivate"' in event.to_json():
        raise BudgetExceeded(
            "The event contains a release without protection (NonPrivate), which no finite budget covers. "
            "Nothing was released."
        )


def _total(parts: Iterable[Leaf | Choice], times: int = 1) -> Amounts:
    """The price of so many repetitions; of a parallel part, the dearest option in each currency."""
    total = NOTHING
    for part in parts:
        count = times * part.count
        if isinstance(part, Leaf):
            total = total + _leaf(part, count)
        else:
            total = total + reduce(Amounts.join, (_total(option, count) for option in part.options))
    return total


def _leaf(leaf: Leaf, count: int) -> Amounts:
    """The price of all repetitions of a leaf."""
    if (both := approximate_of(leaf)) is not None:
        return approximate(*both, count)
    pure = _pure_leaf(leaf)
    return Amounts(pure=pure * count, mu2=_mu2(leaf, pure, count), renyi=_renyi(leaf, count))


def _pure_leaf(leaf: Leaf) -> Number:
    """Exact where the parameter says it: a float quotient rounded up would make three thirds exceed one."""
    quotient = quotient_of(leaf)
    if quotient is None:
        return exact(pure_of(leaf) * (1 + _SLACK))
    above, below = (Fraction(value) if isinstance(value, int) else exact(value) for value in quotient)
    return above / below


def _mu2(leaf: Leaf, pure: Number, count: int) -> Number:
    try:
        mu = mu_of(leaf)
    except UnsupportedEvent:
        mu = _pure_mu(pure)
    return _square_units(mu, count)


def _square_units(mu: float, count: int) -> Number:
    """count·mu² in units: of the exact square, so that a tiny mu is not lost."""
    return _repeat_units(Fraction(mu) ** 2 * Fraction(1 + _SLACK), count) if mu < math.inf else math.inf


def _repeat_units(value: Fraction, count: int) -> Number:
    """What repetitions cost in units: the same as listing them, but for more than anybody lists rounded only once."""
    return units(value) * count if count <= _LISTED else units(value * count)


def _pure_mu(pure: Number) -> float:
    """The Gaussian-DP parameter of a pure event, 2Φ⁻¹(e^ε/(1+e^ε)): 2√2·erfinv(tanh(ε/2)), or from the small tail."""
    if pure >= _LARGEST or pure == 0:
        return math.inf if pure else 0.0
    epsilon = max(float(pure), SMALLEST)
    if epsilon < 1:  # the slope at zero is above one, and tiny values lose their digits
        return max(math.sqrt(8) * float(erfinv(math.tanh(epsilon / 2))) * (1 + _SLACK), epsilon)
    return -2 * float(ndtri(expit(-epsilon))) * (1 + _SLACK)


def _renyi(leaf: Leaf, count: int) -> tuple[Number, ...]:
    try:
        curve = rdp.leaf_curve(leaf, ORDERS)
    except (UnsupportedEvent, NotCertified):
        return (math.inf,) * len(ORDERS)
    return _up(curve, count)


def _up(curve: Iterable[float], count: int) -> tuple[Number, ...]:
    values = [float(value) * (1 + _SLACK) for value in curve]
    return tuple(_repeat_units(Fraction(value), count) if value < math.inf else math.inf for value in values)
