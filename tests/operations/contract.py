"""What holds for every operation the library has, and how a room lists its own.

A room lists its operations in ``tests/operations/<room>.py`` as ``OPERATIONS``, a list of ``Case``. Being listed is
all that a new operation needs; being missed fails ``tests/test_operations.py``.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

import tests.operations
from discreet.auditing import replay
from discreet.errors import BudgetExceeded
from discreet.events import Event
from discreet.release import ONE_RECORD, Operation, Release, charged, unit_name

__all__ = ["CHECKS", "Case", "Log", "Spied", "SpyBook", "Worst", "every_case"]


class Log(list[str]):
    """What happened, in order: "charge", "read", "size"."""


class Spied:
    """A container that notes when its records are read, and when their number is."""

    def __init__(self, inside: Any, log: Log) -> None:
        self._inside, self._log = inside, log

    def __len__(self) -> int:
        self._log.append("size")
        return len(self._inside)

    def _read(self) -> Any:
        self._log.append("read")
        return self._inside

    def __iter__(self) -> Any:
        return iter(self._read())

    def __getitem__(self, index: Any) -> Any:
        return self._read()[index]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self._read(), dtype=dtype)


class SpiedMapping(Spied):
    """The same for a mapping."""

    def items(self) -> Any:
        return self._read().items()


@dataclass(frozen=True)
class Worst:
    """What an audit runs in place of a case's own data: neighbours at the full sensitivity, and how often.

    ``make`` gives another operation of the same kind, where the case's own would take too long, or claims nothing.
    """

    data: Any = field(default=None, repr=False)  # none: the case's own
    neighbour: Any = field(default=None, repr=False)
    make: Callable[..., Any] | None = None
    trials: int = 500
    read: Callable[[Any], Any] | None = None  # what is compared of a value; none: the case's result
    reach: float = 0.99  # the share of its declared sensitivity that these neighbours move some noisy step by


@dataclass(frozen=True)
class Case:
    """One operation: how it is made from public facts, data that it reads, and a neighbour under its adjacency.

    An operation that is bound to its source is made from it (``bound``), and takes no data. ``spy`` wraps the data so
    that reading is noted, where ``Spied`` does not do; ``sized`` says that the size of the container is public.
    An audit of it, which every operation has, takes data and neighbour as they are if they move what is noised by as
    much as is declared, and ``worst`` otherwise. ``holds`` says whether the entries of data are records, or values that
    a caller made of them; ``calls``, that a function of the user's reads them, which may fail in its own way.
    """

    name: str
    make: Callable[..., Any]
    data: Any = field(repr=False)
    neighbour: Any = field(repr=False)
    bound: bool = False
    sized: bool = False
    spy: Callable[[Any, Log], Any] = Spied
    result: Callable[[Any], Any] = field(default=lambda value: value, repr=False)  # what is compared of a value
    worst: Worst = Worst()
    holds: Literal["records", "values"] = "records"
    calls: bool = False

    def operation(self, data: Any) -> tuple[Any, Any]:
        """The operation and what its release takes."""
        return (self.make(data), None) if self.bound else (self.make(), data)

    def run(self, data: Any) -> Release[Any]:
        """A release, with what is published of it."""
        operation, given = self.operation(data)
        answer = charged(operation, given)
        return Release(self.result(answer.value), answer.event)


def every_case() -> list[Case]:
    """The operations of all rooms."""
    rooms = [name for _, name, _ in pkgutil.iter_modules(tests.operations.__path__) if name != "contract"]
    return [case for room in rooms for case in importlib.import_module(f"tests.operations.{room}").OPERATIONS]


class SpyBook:
    """A book that notes charges, or refuses them."""

    def __init__(self, log: Log, *, refuse: bool = False) -> None:
        self.log, self.refuse, self.charges = log, refuse, list[tuple[Event, str, str]]()
        self.seeds: list[bool] = []

    def charge(self, event: Event, label: str = "", *, unit: str = ONE_RECORD, reproducible: bool = False) -> None:
        self.log.append("charge")
        self.seeds.append(reproducible)
        if self.refuse:
            raise BudgetExceeded("refused")
        self.charges.append((event, label, unit))


def states_its_event_and_unit_before_data(case: Case) -> None:
    """Two builds from the same public facts promise the same, and an event survives its JSON."""
    log = Log()
    (one, _), (two, _) = case.operation(case.spy(case.data, log)), case.operation(case.neighbour)
    assert isinstance(one, Operation)
    assert one.event == two.event
    assert one.event == one.event  # a property: no state, no draw
    assert Event.from_json(one.event.to_json()) == one.event
    assert unit_name(one.unit) == two.unit
    assert "read" not in log


def is_charged_before_it_reads(case: Case) -> None:
    """Exactly one charge, of what was promised, and every look at a record comes after it."""
    log = Log()
    book = SpyBook(log)
    operation, given = case.operation(case.spy(case.data, log))
    charged(operation, given, book=book, label="asked")
    assert log.count("charge") == 1
    before, after = log[: log.index("charge")], log[log.index("charge") :]
    assert "read" in after
    assert "read" not in before
    assert case.sized or "size" not in before
    assert book.charges == [(operation.event, "asked", operation.unit)]
    assert book.seeds == [False]


def leaves_nothing_when_refused(case: Case) -> None:
    """A book that refuses stops it before a record is read."""
    log = Log()
    operation, given = case.operation(case.spy(case.data, log))
    try:
        charged(operation, given, book=SpyBook(log, refuse=True))
    except BudgetExceeded:
        assert "read" not in log
        assert case.sized or "size" not in log
    else:
        raise AssertionError("the refusal did not stop it")


def refuses_public_mistakes_before_the_charge(case: Case) -> None:
    """A source of randomness that is none is found first."""
    log = Log()
    operation, given = case.operation(case.spy(case.data, log))
    try:
        charged(operation, given, book=SpyBook(log), rng="no source")
    except (TypeError, ValueError):
        assert "charge" not in log
        assert "read" not in log
    else:
        raise AssertionError("the mistake was not found")


def gives_what_it_promised(case: Case) -> None:
    """The release's event and unit are those that were stated; a seed marks it, and its charge, and one seed gives one
    answer."""
    operation, given = case.operation(case.data)
    promised, book = operation.event, SpyBook(Log())
    answer, again = (charged(operation, given, rng=7, label="mine", book=book) for _ in range(2))
    assert book.seeds == [True, True]
    assert answer.event == promised == operation.event
    assert answer.unit == operation.unit
    assert answer.label == "mine"
    assert answer.reproducible
    assert not operation.release(given).reproducible
    np.testing.assert_equal(case.result(answer.value), case.result(again.value))


def passes_replay(case: Case) -> None:
    """Record-and-replay, in both orders."""
    replay(case.run, case.data, case.neighbour)
    replay(case.run, case.neighbour, case.data)


CHECKS = [
    states_its_event_and_unit_before_data,
    is_charged_before_it_reads,
    leaves_nothing_when_refused,
    refuses_public_mistakes_before_the_charge,
    gives_what_it_promised,
    passes_replay,
]
