"""What an operation promises, what it gives back, and what it needs of a book.

An operation is built from public facts alone. It states its ``event`` (the cost) and its ``error`` before any
data is read; ``release`` is the only place that reads private rows. Charge first, then release:

    book.charge(operation.event, label="income mean")
    answer = operation.release(data)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from discreet.events import Event

__all__ = ["Book", "Operation", "Release"]

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Release(Generic[T_co]):
    """A value that may be published, with what it cost.

    ``reproducible`` is true when a seed was given: such a value serves tests and experiments, and is not private,
    because whoever knows the seed can subtract the noise.
    """

    value: T_co
    event: Event
    reproducible: bool = False
    label: str = field(default="", compare=False)


@runtime_checkable
class Operation(Protocol):
    """Anything that can say what it costs before it reads data."""

    @property
    def event(self) -> Event:
        """The cost, known from public parameters alone."""
        ...

    def release(self, value: Any, rng: Any = None) -> Release[Any]:
        """Read the data and return a noisy answer."""
        ...


@runtime_checkable
class Book(Protocol):
    """What the other rooms know of a ledger: something that can be charged, and may refuse."""

    def charge(self, event: Event, label: str = "") -> object:
        """Record the cost durably, or raise ``BudgetExceeded`` and change nothing."""
        ...
