"""At which prices an event may be a plan, and how often one fits.

Decision 21.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from discreet.events import Event
from discreet.ledger import groups
from discreet.ledger.amounts import Amounts, Number, exact
from discreet.ledger.filters import quoted_at
from discreet.ledger.tree import BookNode, charge_path
from discreet.ledger.units import charged_unit

__all__ = ["count_affordable", "plan_prices"]


def count_affordable(path: list[BookNode], event: Event, unit: str, asked: tuple[float, float] | None = None) -> int:
    """How many more times the books on the way up could be charged for ``event`` alone, up to a million; if it is
    asked for with an (epsilon, delta), as charges of it would be.
    """
    terms = path[0].terms
    rows = charged_unit(path[0].name, terms, unit, "the event").rows
    quote = quoted_at(asked, terms.limit) if asked else 0.0
    price = groups.price(event, terms.adjacency, None, rows, quote)
    fits, fails = 0, 1_000_001
    while fails - fits > 1:
        middle = (fits + fails) // 2
        fits, fails = (middle, fails) if charge_path(path, price * middle) else (fits, middle)
    return fits


def plan_prices(path: list[BookNode], event: Event, delta: float | None, rows: int = 1) -> Iterator[Amounts]:
    """Prices at which the event can be a plan, cheapest in delta first; none where answers were already seen."""
    if any(node.stage.amounts.adaptive for node in path):
        return
    for share in _shares(path) if delta is None else [exact(delta)]:
        price = groups.planned_price(event, path[0].terms.adjacency, Fraction(share), rows)
        if price and charge_path(path, price):
            yield price
    summed = groups.summed_price(event, path[0].terms.adjacency, rows) if delta is None else None
    if summed and charge_path(path, summed):
        yield summed


def _shares(path: list[BookNode]) -> list[Number]:
    """Half and all of the delta left on the path, and of that left in the book itself: the books above a part may have
    none left and still bear it, when another part has paid as much."""
    lefts = [node.stage.limit.less(node.stage.amounts).delta for node in path if node.enforces]
    return sorted({share for left in (min(lefts), lefts[0]) if left > 0 for share in (exact(float(left / 2)), left)})
