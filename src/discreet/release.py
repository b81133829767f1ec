"""What an operation promises, what it gives back, and what it needs of a book.

An operation is built from public facts alone. It states its ``event`` (the cost) and its ``error`` before any
data is read; ``release`` is the only place that reads private rows. Charge first, then release:

    book.charge(operation.event, label="income mean", unit=operation.unit)
    answer = operation.release(data)

A cost is the cost of somebody: the *unit*, a record unless something else is said. Where the library bounds what a unit
contributes, by reading its identifiers, the unit is ``Enforced``; otherwise it is the user's word, and a book says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from discreet.events import Event

__all__ = ["ONE_RECORD", "Book", "Enforced", "Operation", "Release", "unit_name"]

T_co = TypeVar("T_co", covariant=True)

ONE_RECORD = "one record"
"""The unit of an operation that was told nothing else: a row."""


class Enforced(str):
    """The name of a unit whose contribution the library itself bounded, by the column of identifiers it names."""

    __slots__ = ()


def unit_name(unit: object) -> str:
    """``unit`` as the name of whom something protects: printable text.

    >>> unit_name("patient")
    'patient'
    """
    if not isinstance(unit, str) or not unit.strip() or not unit.isprintable() or len(unit) > 200:
        raise ValueError(f"unit is {unit!r}, but must be 1 to 200 printable characters: the name of whom it protects.")
    return unit


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

    @property
    def unit(self) -> str:
        """Whom it protects: ``ONE_RECORD``, or the name of a unit."""
        ...

    def release(self, value: Any, rng: Any = None) -> Release[Any]:
        """Read the data and return a noisy answer."""
        ...


@runtime_checkable
class Book(Protocol):
    """What the other rooms know of a ledger: something that can be charged, and may refuse."""

    def charge(self, event: Event, label: str = "", *, unit: str = ONE_RECORD) -> object:
        """Record the cost durably, or raise ``BudgetExceeded`` and change nothing.

        ``unit`` says whom the event protects; a book that keeps another raises ``UnitMismatch``.
        """
        ...
