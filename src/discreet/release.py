"""What an operation promises, what it gives back, and the one path on which a book is charged before data is read.

An operation is built from public facts alone. It states its ``event`` (the cost) and its ``unit`` (whom it protects)
before any data is read; ``release`` is the only place that reads private rows. ``charged`` is the path:

    what public facts can refuse  ─►  book.charge(event, label, unit)  ─►  operation.release(data)  ─►  Release

A cost is the cost of somebody: the *unit*, a record unless something else is said. Where the library bounds what a unit
contributes, by reading its identifiers, the unit is ``Enforced``; otherwise it is the user's word, and a book says so.

Decisions 98 and 133.
"""

from __future__ import annotations

import html
import math
import numbers
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from os import PathLike
from types import FrameType
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from discreet.events import Event

__all__ = [
    "ONE_RECORD",
    "Book",
    "Chargeable",
    "Enforced",
    "Operation",
    "Preparing",
    "Release",
    "charged",
    "is_reproducible",
    "pay",
    "unit_name",
]

T_co = TypeVar("T_co", covariant=True)

ONE_RECORD = "one record"
"""The unit of an operation that was told nothing else: a row."""


class Enforced(str):
    """The name of a unit whose contribution the library itself bounded, by the column of identifiers it names."""

    __slots__ = ()


def unit_name(unit: object) -> str:
    """``unit`` as the name of whom something protects: printable, plain text, which says nothing of who bounded it.

    >>> unit_name("patient")
    'patient'
    """
    if not isinstance(unit, str) or not unit.strip() or not unit.isprintable() or len(unit) > 200:
        raise ValueError(f"unit is {unit!r}, but must be 1 to 200 printable characters: the name of who is protected.")
    return str.__str__(unit)  # an Enforced is a caller's word here; only what enforces a unit may state one


@dataclass(frozen=True, slots=True)
class Release(Generic[T_co]):
    """A value that may be published, with what it cost and whom that protects.

    ``reproducible`` is true when a seed was given: such a value serves tests and experiments, and is not private,
    because whoever knows the seed can subtract the noise. ``error`` is what the operation said of its error before it
    read anything, with 95 % confidence: a number, or one for each column of the answer; none where it cannot say.
    """

    value: T_co
    event: Event
    reproducible: bool = False
    label: str = field(default="", compare=False)
    unit: str = field(default=ONE_RECORD, compare=False)
    error: Any = field(default=None, compare=False)

    def _repr_html_(self) -> str:
        inner = getattr(self.value, "_repr_html_", None)
        shown = inner() if inner is not None else f"<pre>{html.escape(repr(self.value))}</pre>"
        facts = {
            "label": self.label,
            "cost": str(self.event),
            "protects": self.unit,
            "error (95 %)": self.error,
            "": "made with a seed: not private" if self.reproducible else None,
        }
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(fact))}</td></tr>"
            for name, fact in facts.items()
            if fact is not None and fact != ""
        )
        return f"{shown}<table>{rows}</table>"


@runtime_checkable
class Operation(Protocol):
    """Anything that can say what it costs, and whom it protects, before it reads data."""

    @property
    def event(self) -> Event:
        """The cost, known from public parameters alone."""
        ...

    @property
    def unit(self) -> str:
        """Whom it protects: ``ONE_RECORD``, or the name of a unit."""
        ...

    def release(self, data: Any = None, rng: Any = None) -> Release[Any]:
        """Read the data and return a noisy answer. An operation that is bound to its source takes no data."""
        ...


@runtime_checkable
class Preparing(Protocol):
    """An operation that can find out, before it is paid for, whether it suits the container it will read."""

    def prepare(self, data: Any = None, rng: Any = None) -> Callable[[], Release[Any]]:
        """Refuse what public facts can tell (types, shapes, columns), read nothing, and return what reads.

        ``release(data, rng)`` is ``prepared(data, rng)()``.
        """
        ...


@runtime_checkable
class Chargeable(Protocol):
    """Something that can be charged, and may refuse."""

    def charge(self, event: Event, label: str = "", *, unit: str = ONE_RECORD, reproducible: bool = False) -> object:
        """Record the cost durably, or raise ``BudgetExceeded`` and change nothing.

        ``unit`` says whom the event protects; a book that keeps another raises ``UnitMismatch``. ``reproducible`` is
        given, and true, only where the release is made with a seed, which a book records as not private. One that has
        ``records_asked``, true, is also given ``asked``, the (epsilon, delta) that the operation was asked for with.
        """
        ...


@runtime_checkable
class Book(Chargeable, Protocol):
    """A ledger's book, which can also set an amount aside for an adaptive run."""

    def reserve(
        self, event: Event, label: str = "", *, unit: str = ONE_RECORD, reproducible: bool = False
    ) -> Chargeable:
        """Set the cost aside, durably, for charges still to come, which are drawn from what is returned."""
        ...


def is_reproducible(rng: Any) -> bool:
    """Whether an ``rng=`` or ``random_state=`` argument is a seed: a source says it itself, anything else but none is.

    >>> is_reproducible(None), is_reproducible(7)
    (False, True)
    """
    return rng is not None and bool(getattr(rng, "reproducible", True))


def pay(operation: Operation | Any, book: Chargeable | None, label: str = "", *, reproducible: bool = False) -> None:
    """Charge ``book``, if there is one, with what the operation states.

    ``charged`` calls it; a training run, which the user's own loop releases step by step, calls it alone. ``operation``
    needs no more than an event and a unit. What is ``reproducible`` is made with a seed: the book is told before
    anything is read, and one that cannot be told so refuses.
    """
    if isinstance(book, (str, PathLike)):
        raise ValueError(
            f"book is {str(book)!r}, but must be an open book. Nothing was read. Write book = "
            f'dp.Ledger({str(book)!r}).book("NAME"), and pass book=book.'
        )
    if book is not None:
        told: dict[str, Any] = {"reproducible": True} if reproducible else {}
        if getattr(book, "records_asked", False) and (asked := _asked(operation)):
            told["asked"] = asked
        book.charge(operation.event, label=label or _label(operation), unit=operation.unit, **told)


def charged(
    operation: Operation, data: Any = None, *, book: Chargeable | None = None, label: str = "", rng: Any = None
) -> Release[Any]:
    """The one path: refuse public mistakes, charge the book, then read the data.

    Whether the release is made with a seed is known before: by ``rng``, or by the operation's own ``reproducible``,
    where it holds a seed (an estimator's ``random_state``).

    >>> from discreet.statistics import Count
    >>> charged(Count(epsilon=1.0), [3, 1, 2], label="visits", rng=1).label
    'visits'
    """
    prepare = getattr(operation, "prepare", None)
    run = prepare(data, rng) if prepare is not None else lambda: operation.release(data, rng)
    seeded = is_reproducible(rng) or bool(getattr(operation, "reproducible", False))
    if not seeded:
        _warn_once(book)  # before the charge: a warning may be made an error
    pay(operation, book, label, reproducible=seeded)
    answer: Release[Any] = run()
    if book is not None and answer.reproducible and not seeded:
        raise RuntimeError(
            f"{type(operation).__name__} was made with a seed that it did not state, so its charge does not record "
            "it: the answer is withheld. Let the operation have a property 'reproducible' that is true."
        )
    name = label or answer.label or _label(operation)
    same = answer.label == name and answer.unit is operation.unit
    return answer if same else replace(answer, label=name, unit=operation.unit)


_NOT_CHARGED = (
    "No book counts this release, so nothing limits what many of them reveal together. Open one (ledger = "
    'dp.Ledger("budget.db"); book = ledger.open("study", epsilon=3, delta=1e-6)) and pass book=book. This is said once.'
)
_SEARCHED = (
    "A search or a cross-validation of scikit-learn fits this estimator many times on the same records. {}, and the "
    "scores read the records without noise: they are not private. discreet.tuning.search charges for the choice once. "
    "This is said once."
)
_FITTED_BESIDE = (
    "{}, of scikit-learn, is fitted to the same records in this pipeline without noise: what it learns of them (means, "
    "extremes, categories) is not private, and no book counts it. Leave it out and declare bounds= or feature_norm=, "
    "or use discreet.estimators (StandardScaler, MinMaxScaler, PCA). This is said once."
)
_LIBRARIES = ("discreet", "sklearn")  # whose callers wrote the line that a warning names
_said: set[str] = set()


def _warn_once(book: Chargeable | None) -> None:
    """Say, once in a process, that no book is charged, that every fit of a search is, or what else is fitted."""
    if "pipeline" not in _said and (beside := _fitted_beside()):
        _said.add("pipeline")
        warnings.warn(_FITTED_BESIDE.format(", ".join(beside)), stacklevel=_callers())
    if "search" not in _said and _inside_model_selection():
        _said.add("search")
        each = "Each fit is charged to the book" if book is not None else "Each fit is a release that no book counts"
        warnings.warn(_SEARCHED.format(each), stacklevel=_callers())
    elif book is None and "no book" not in _said:
        _said.add("no book")
        warnings.warn(_NOT_CHARGED, stacklevel=_callers())


def _frames() -> Iterator[tuple[str, FrameType]]:
    """The callers and their modules, from here outwards."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame.f_globals.get("__name__", ""), frame
        frame = frame.f_back


def _inside_model_selection() -> bool:
    return any(name.startswith("sklearn.model_selection") for name, _ in _frames())


def _fitted_beside() -> list[str]:
    """The earlier steps, of scikit-learn itself, of a pipeline that is being fitted: those that learn from records."""
    steps: list[Any] = []
    for name, frame in _frames():
        if name == "sklearn.pipeline":
            steps += [step for _, step in getattr(frame.f_locals.get("self"), "steps", ())][:-1]
    parts = (part for step in steps for part in _parts(step))
    return list(dict.fromkeys(type(part).__name__ for part in parts if _learns(part)))


def _parts(step: Any) -> Iterator[Any]:
    """A step, or those that it is composed of."""
    named = (getattr(step, name, None) for name in ("transformers", "transformer_list", "steps"))
    if (inside := next((parts for parts in named if parts), None)) is None:
        yield step
        return
    for part in inside:
        yield from _parts(part[1])


def _learns(step: Any) -> bool:
    """Whether a step of scikit-learn takes something from the records; categories that are given are not taken."""
    if not type(step).__module__.startswith("sklearn.") or isinstance(getattr(step, "categories", None), (list, tuple)):
        return False
    tags = getattr(step, "__sklearn_tags__", None)
    return tags is None or bool(tags().requires_fit)


def _callers() -> int:
    """How far up the first caller outside of the library is, for a warning that names the user's own line."""
    callers = list(_frames())[1:]  # from the caller of this function outwards
    places = (place for place, (name, _) in enumerate(callers) if name.partition(".")[0] not in _LIBRARIES)
    inside = next(places, len(callers) - 1)
    return inside + 1


def _asked(operation: Any) -> tuple[float, float] | None:
    """The operation's own epsilon and delta, or its ``asked``; a book records them, and trusts its account alone."""
    own = getattr(operation, "epsilon", None), getattr(operation, "delta", None)
    epsilon, delta = getattr(operation, "asked", None) or own
    if not isinstance(epsilon, numbers.Real) or not 0 < float(epsilon) < math.inf:
        return None
    if delta is not None and (not isinstance(delta, numbers.Real) or not 0 <= float(delta) < 1):
        return None
    return float(epsilon), float(delta or 0)


def _label(operation: Any) -> str:
    """What the operation calls itself in a book: its own words, or none."""
    return str(getattr(operation, "label", ""))
