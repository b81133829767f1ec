"""Does a recorded price follow from its event? Every price is computed again, by the rules the entry names.

Prices come from floating-point functions, whose last digits differ between machines: a price agrees with another within
a part in 10⁹, far above what they differ by and far below what anyone could gain. No price is below zero.

Decision 91.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

from discreet.adjacency import Adjacency
from discreet.errors import UnsupportedEvent
from discreet.events import BallsInBins, Event, KeptBins, Parallel
from discreet.ledger import groups, pricing
from discreet.ledger.amounts import ORDERS, Amounts, Number
from discreet.ledger.errors import ChainBroken, LedgerError

__all__ = ["BEFORE", "CURRENT", "check_price"]

CURRENT = "3"  # written into every entry; a change of prices needs another name, and a way to judge this one
ONE_LATTICE = "2"  # parallel parts shared a lattice, and passes had a coarser one: both cost more than today
UNQUOTED = "1"  # none with a quote; passes in random bins were not amplified, and cost more than today
BEFORE = ""  # entries from before prices were tied to events: some were low, so these must reach today's price

_COARSER = (Parallel.tag, BallsInBins.tag, KeptBins.tag)
_DEARER = {ONE_LATTICE: _COARSER, UNQUOTED: _COARSER}  # what cost more by earlier rules
_ROUNDING = Fraction(1, 10**9)
_UNITS = 16  # of 1e-15, for what numerics give near zero
# The least room of each number: none for sums of parameters, which a book may keep smaller than any fixed room.
_LEAST = (Fraction(_UNITS, 10**15), *(Fraction(0),) * 4, *(Fraction(_UNITS),) * (1 + len(ORDERS)))


@lru_cache(maxsize=4096)  # a history is mostly the same few events
def check_price(event: str, price: str, adjacency: Adjacency, rules: str, rows: int = 1) -> Amounts:
    """The recorded price, if its rules give it for this event and so many rows at once; otherwise ``ChainBroken``, or
    ``LedgerError`` where this version cannot judge."""
    if rules not in (CURRENT, *_DEARER, BEFORE):
        raise LedgerError(
            f"was priced by the rules {rules!r}, which this version of discreet does not know: it cannot be "
            "judged. Upgrade discreet."
        )
    recorded, cost = Amounts.from_json(price), Event.from_json(event)
    pricing.refuse_nonprivate(cost)
    if min(_numbers(recorded)) < 0:
        raise ChainBroken("has a price below zero, but there are no refunds.")
    if recorded.quoted and rules in (UNQUOTED, BEFORE):
        raise ChainBroken("has a quote, but there were none when it was written.")
    more = rules == BEFORE or any(tag in event for tag in _DEARER.get(rules, ()))
    if not any(_agrees(recorded, expected, more) for expected in _prices(cost, recorded, adjacency, rows)):
        raise ChainBroken("has a price that does not follow from its event.")
    return recorded


def _prices(event: Event, recorded: Amounts, adjacency: Adjacency, rows: int) -> Iterator[Amounts | None]:
    """What the event may cost: as a plan, leaf by leaf and perhaps quoted, or as a whole at the part of delta that the
    price names."""
    if recorded.planned:
        yield groups.planned_price(event, adjacency, Fraction(recorded.planned_delta), rows)
        yield groups.summed_price(event, adjacency, rows)
        return
    try:
        yield groups.price(event, adjacency, None, rows, float(recorded.quoted))
    except UnsupportedEvent:
        yield None
    if recorded.delta:
        yield groups.price(event, adjacency, float(recorded.delta), rows)


def _agrees(recorded: Amounts, expected: Amounts | None, more: bool) -> bool:
    if expected is None:
        return False
    numbers = zip(_numbers(recorded), _numbers(expected), _LEAST, strict=True)
    return all(_close(one, other, least, more=more) for one, other, least in numbers)


def _close(recorded: Number, expected: Number, least: Fraction, *, more: bool) -> bool:
    if recorded == expected or math.inf in (recorded, expected):
        return recorded == expected or (more and recorded == math.inf)
    room = _ROUNDING * Fraction(expected) + least
    return recorded >= expected - room and (more or recorded <= expected + room)


def _numbers(amounts: Amounts) -> tuple[Number, ...]:
    planned = (amounts.planned_epsilon, amounts.planned_delta)
    return (*planned, amounts.delta, amounts.pure, amounts.quoted, amounts.mu2, *amounts.renyi)
