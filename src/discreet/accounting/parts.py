"""What is priced once an event has been restated for a neighbouring relation: leaves and choices; and the one fold.

Decision 81.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from discreet import events as ev
from discreet.adjacency import Adjacency
from discreet.errors import UnsupportedEvent

__all__ = ["Choice", "Leaf", "Part", "Resolved", "each_leaf", "fold"]

T = TypeVar("T")


@dataclass(frozen=True)
class Leaf:
    """An event to be priced ``count`` times for ``adjacency``; ``flip`` exchanges the two directions."""

    event: ev.Event
    adjacency: Adjacency
    count: int = 1
    flip: bool = False


@dataclass(frozen=True)
class Choice:
    """Parallel composition: the neighbour decides which of the options is charged, ``count`` times."""

    options: tuple[tuple[Leaf | Choice, ...], ...]
    count: int
    event: ev.Event


Part = Leaf | Choice


@dataclass(frozen=True)
class Resolved:
    """Everything to be priced, and the total probability by which a truncated sampler differs from its ideal.

    ``ideal`` and ``slack`` belong together: ``parts``, which accounts and wrappers read, exist only without slack.
    ``is_loose`` says that what is priced may cost more than the event itself: nothing follows from below.
    """

    ideal: tuple[Part, ...]
    slack: float = 0.0
    is_loose: bool = False

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is priced, where that is the whole truth."""
        if self.slack:
            raise UnsupportedEvent(
                "TruncatedPoissonSampled cannot be priced here: its overflow is a delta of the whole event, which "
                "neither a curve nor a part of an event can hold."
            )
        return self.ideal


def each_leaf(parts: tuple[Part, ...]) -> Iterator[Leaf]:
    """Every leaf, those inside parallel parts included."""
    for part in parts:
        if isinstance(part, Leaf):
            yield part
        else:
            for option in part.options:
                yield from each_leaf(option)


def fold(
    parts: tuple[Part, ...],
    price: Callable[[Leaf], T],
    add: Callable[[T, T], T],
    times: Callable[[T, int], T],
    worst: Callable[[T, T], T],
    nothing: T,
) -> T:
    """Price every leaf, add up, and take the worst option of a parallel part: the only loop over parts there is."""
    total = nothing
    for part in parts:
        if isinstance(part, Leaf):
            cost = price(part)
        else:
            options = [fold(option, price, add, times, worst, nothing) for option in part.options]
            cost = options[0]
            for option in options[1:]:
                cost = worst(cost, option)
        total = add(total, times(cost, part.count))
    return total
