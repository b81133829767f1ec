"""What one release was asked for with; charged by hand, what its event costs by itself, at the book's delta.

These figures are for reading, not for adding up. The book proves less than their sum, because it composes events and
not epsilons; and each speaks of its own release alone, as if nothing else had been published.
"""

from __future__ import annotations

import math
from functools import lru_cache

from discreet import accounting
from discreet.adjacency import Adjacency
from discreet.errors import UnitMismatch, UnsupportedEvent
from discreet.events import Event
from discreet.ledger.admission import count_affordable
from discreet.ledger.chain import Entry
from discreet.ledger.snapshot import Standing

__all__ = ["alone", "epsilon_asked", "room_for_more"]

MANY = 1_000_000  # beyond which nobody counts


def alone(entry: Entry, adjacency: Adjacency, delta: float) -> float | None:
    """The epsilon of an entry's own event, for as many rows as it was charged for; none where nothing is charged or
    no account prices the event for these neighbours.

    Infinite where the event has no pure guarantee and the book no delta.
    """
    if not entry.event:
        return None
    rows = entry.unit.rows if entry.unit else 1
    return _price(entry.event, adjacency, delta, rows)


def epsilon_asked(entry: Entry, adjacency: Adjacency, delta: float) -> float | None:
    """The epsilon that a release was asked for with; where nobody said one, that of its event alone."""
    return entry.asked[0] if entry.asked is not None else alone(entry, adjacency, delta)


def room_for_more(book: Standing) -> str:
    """How many more releases like the last one a book has room for, in words; nothing where that is not known.

    It is a number to plan with: what a release adds depends on those before it, and on their order.
    """
    last = book.last
    if last is None or (event := last.cost) is None:
        return ""
    try:
        count = count_affordable(list(book.path), event, last.unit.unit if last.unit else book.terms.unit, last.asked)
    except (UnsupportedEvent, UnitMismatch):
        return ""  # it was paid as a plan, or under other terms
    shown = f"more than {MANY:,}" if count >= MANY else f"about {count:,}" if count else "no"
    name = f" ({last.label})" if last.label else ""
    return f"room for {shown} more release{'' if count == 1 else 's'} like the last one{name}"


@lru_cache(maxsize=4096)  # a report lists many charges of few kinds
def _price(event: str, adjacency: Adjacency, delta: float, rows: int) -> float | None:
    try:
        guarantee = accounting.guarantee(Event.from_json(event), adjacency=adjacency, group_size=rows)
        found = guarantee.epsilon(delta)
    except UnsupportedEvent:
        return None
    return found if not math.isnan(found) else None
