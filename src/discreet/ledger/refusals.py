"""Why a charge is refused: which book, which limit, what is left of it, and what to do.

Everything said follows from prices, which are public. A release that is said to fit was tried: the books on the way up
would allow it now.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from discreet import accounting, events
from discreet.adjacency import Adjacency
from discreet.errors import DiscreetError
from discreet.events import Event
from discreet.ledger import groups, tree
from discreet.ledger.admission import plan_prices
from discreet.ledger.amounts import Amounts
from discreet.ledger.balance import balance
from discreet.ledger.filters import overdraws_delta
from discreet.ledger.tree import BookNode, charge_path

__all__ = ["pure_only", "refusal"]

_LARGEST = 1e3  # the epsilon, or one over the noise multiplier, above which a release is none that protects anybody
_SMALLEST = 1e-4  # of the limit: below that a release is not worth mentioning
_CLOSE = 1 + 1e-4
_DIGITS = Context(prec=3, rounding=ROUND_CEILING)


def refusal(path: list[BookNode], price: Amounts, label: str, rows: int = 1) -> str:
    """What the analyst is told of a charge that the books on the way up do not allow."""
    if (price.pure == math.inf or price.delta or price.quoted) and (without := pure_only(path, label)):
        return without
    moved = zip(path, tree.advance(path, price), strict=True)
    before, node = next((before, after) for before, after in moved if not after.within)
    why = _why(node, _label_text(label))
    room = _room(path, before, rows)
    return f"{why} Nothing was released. {room} Use more noise, or ask the data owner to raise the limit."


def _why(node: BookNode, named: str) -> str:
    """What the charge would have done to the book, which stands here as if it had been allowed."""
    stage, delta = node.stage, float(node.stage.delta)
    if overdraws_delta(stage.limit, stage.amounts):
        return (
            f"{named} would use more of delta={delta:g} for events that may fail outright than the "
            f"accounting rule (filter) {node.terms.filter!r} of book {node.name!r} allows."
        )
    total = stage.read().epsilon
    if total == math.inf:
        left = float(stage.limit.less(stage.amounts).delta)
        return (
            f"{named} has no finite epsilon at delta={left:g}, which is what plans left of book {node.name!r} with "
            f"limit delta={delta:g}."
        )
    limit = float(stage.epsilon)
    above = f"above the limit {limit:g} of book {node.name!r}"
    return f"{named} would raise epsilon to {_above_text(total, limit)} at delta={delta:g}, {above}."


def _above_text(total: float, limit: float) -> str:
    """A total with three decimals, or as many as it takes to see that it is above the limit.

    >>> _above_text(1.1, 1.0), _above_text(1.0001, 1.0), _above_text(1.00002, 1.0)
    ('1.100', '1.0001', '1.00002')
    """
    texts = (f"{total:.{digits}f}" for digits in range(3, 20))
    return next((text for text in texts if float(text) > limit), repr(total))


def pure_only(path: list[BookNode], label: str) -> str | None:
    """The refusal of an event that needs a delta by the first book on the way up that has none;
    nothing if all have some.
    """
    for node in path:
        if node.enforces and not node.stage.limit.delta:
            owns = "has no delta left since its limit was raised" if node.stage.delta else "has delta=0"
            return (
                f"{_label_text(label)} needs a delta, but book {node.name!r} {owns} and allows pure events only. "
                "Nothing was released. Ask for epsilon alone, or ask the data owner for a raise that has a delta."
            )
    return None


def _label_text(label: str) -> str:
    return repr(label) if label else "This charge"


# --- what is left ---------------------------------------------------------------------------------------------------


def _room(path: list[BookNode], refusing: BookNode, rows: int) -> str:
    """What the refusing book has left, as one subtracts, and the largest releases that would be allowed now."""
    stage = refusing.stage
    _, _, left = balance(stage.read().epsilon, float(stage.epsilon))
    delta = float(stage.limit.less(stage.amounts).delta)
    told = f"What is left: epsilon={left}" + (f" at delta={delta:g}." if delta else ".")
    pure = _largest(path, lambda size: events.PureDP(epsilon=size), 0.0, rows)
    noisy = _largest(path, lambda size: events.Gaussian(noise_multiplier=1 / size), delta, rows) if delta else ""
    if not pure and not noisy:
        return f"{told} Nothing more fits."
    fits = (pure and f"{pure} without delta", noisy and f"{noisy} with Gaussian noise")
    return f"{told} The largest release that fits: {', or '.join(filter(None, fits))}."


def _fits(path: list[BookNode], event: Event, rows: int) -> bool:
    """Whether a charge of the event would be allowed, as it is or as a plan."""
    adjacency: Adjacency = path[0].terms.adjacency
    try:
        if charge_path(path, groups.price(event, adjacency, None, rows)):
            return True
        return next(plan_prices(path, event, None, rows), None) is not None
    except (DiscreetError, ArithmeticError, ValueError):  # no theorem prices it here: nothing is said of it
        return False


def _largest(path: list[BookNode], family: Callable[[float], Event], delta: float, rows: int) -> str:
    """About the largest event of a family that grows with its parameter, and never a larger one: its own epsilon.
    Where all that were tried fit, it is said that larger ones may.
    """
    high = _LARGEST  # not the limit: with much of delta more than it may fit
    low = min(high, *(float(node.stage.epsilon) for node in path if node.enforces)) * _SMALLEST
    if not _fits(path, family(low), rows):
        return ""
    least = _fits(path, family(high), rows)
    if least:
        low = high
    while low * _CLOSE < high:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _fits(path, family(middle), rows) else (low, middle)
    rounder = float(_DIGITS.create_decimal_from_float(low))  # what is left may be a round number
    low = rounder if _fits(path, family(rounder), rows) else low
    try:
        epsilon = accounting.epsilon(family(low), delta=delta, adjacency=path[0].terms.adjacency)
    except (DiscreetError, ArithmeticError, ValueError):
        return ""
    if not 0 < epsilon < math.inf:
        return ""
    shown = f"{Context(prec=3, rounding=ROUND_FLOOR).create_decimal(repr(epsilon)).normalize():f}"
    return f"{'at least ' if least else ''}epsilon={shown}" + (f" at delta={delta:g}" if delta else "")
