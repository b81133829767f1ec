"""Whether the books on the way up admit a price, at which prices an event may be a plan, and why it is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from discreet.events import Event
from discreet.ledger import groups, tree
from discreet.ledger.amounts import Amounts, Number, exact
from discreet.ledger.filters import overdraws_delta
from discreet.ledger.tree import Node

__all__ = ["admitted", "planned", "pure_only", "refusal"]


def admitted(path: list[Node], price: Amounts) -> list[Node] | None:
    """The books on the way up after they were charged; nothing if one of them cannot stand the price, or has answers
    that were seen before a plan."""
    moved = tree.advance(path, price)
    for before, after in zip(path, moved, strict=True):
        if price.planned and before.stage.amounts.adaptive:
            return None
        if not after.within:
            return None
    return moved


def planned(path: list[Node], event: Event, delta: float | None, rows: int = 1) -> Iterator[Amounts]:
    """Prices at which the event can be a plan, cheapest in delta first; none where answers were already seen."""
    if any(node.stage.amounts.adaptive for node in path):
        return
    for share in _shares(path) if delta is None else [exact(delta)]:
        price = groups.planned_price(event, path[0].terms.adjacency, Fraction(share), rows)
        if price and admitted(path, price):
            yield price
    summed = groups.summed_price(event, path[0].terms.adjacency, rows) if delta is None else None
    if summed and admitted(path, summed):
        yield summed


def _shares(path: list[Node]) -> list[Number]:
    """Half and all of the delta left on the path, and of that left in the book itself: the books above a part may have
    none left and still bear it, when another part has paid as much."""
    lefts = [node.stage.limit.less(node.stage.amounts).delta for node in path if node.enforces]
    return sorted({share for left in (min(lefts), lefts[0]) if left > 0 for share in (exact(float(left / 2)), left)})


def refusal(path: list[Node], price: Amounts, label: str) -> str:
    """What the analyst is told: which book, which limit, why, and what to do."""
    moved = tree.advance(path, price)
    node = next(after for after in moved if not after.within)
    stage, epsilon, delta = node.stage, float(node.stage.epsilon), float(node.stage.delta)
    remedy = "Nothing was released. Use more noise, or ask the data owner to raise the limit."
    if (price.pure == math.inf or price.delta) and (without := pure_only(path, label)):
        return without
    if overdraws_delta(stage.limit, stage.amounts):
        return (
            f"{label!r} would use more of delta={delta:g} for events that may fail outright than the filter "
            f"{node.terms.filter!r} of book {node.name!r} allows. {remedy}"
        )
    total = stage.read().epsilon
    if total == math.inf:
        left = stage.limit.less(stage.amounts)
        return (
            f"{label!r} has no finite epsilon at delta={float(left.delta):g}, which is what plans left of book "
            f"{node.name!r} with limit delta={delta:g}. {remedy}"
        )
    return (
        f"{label!r} would raise epsilon to {total:.3f} at delta={delta:g}, above the limit {epsilon:g} of book "
        f"{node.name!r}. {remedy}"
    )


def pure_only(path: list[Node], label: str) -> str | None:
    """The refusal of an event that needs a delta by the first book on the way up that has none;
    nothing if all have some.
    """
    for node in path:
        if node.enforces and not node.stage.limit.delta:
            owns = "has no delta left since its limit was raised" if node.stage.delta else "has delta=0"
            return (
                f"{label!r} needs a delta, but book {node.name!r} {owns} and admits pure events only. Nothing was "
                "released. Ask for epsilon alone, or ask the data owner for a book, or a raise, that has a delta."
            )
    return None
