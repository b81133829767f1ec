"""Every error the library raises on purpose, and the checks that raise the commonest one.

    Exception
    ├── DiscreetError
    │   ├── UnsupportedEvent        this accountant has no theorem for this event
    │   │   └── UnsupportedAdjacency    ... under this neighbouring relation
    │   ├── NotCertified            a bound exists but could not be computed to a useful width
    │   ├── BudgetExceeded          the charge was refused; nothing was released
    │   └── UnitMismatch            the charge protects another unit than the book keeps; nothing was released
    ├── MissingExtra(ImportError)   an optional dependency is absent; the text is the line that installs it
    └── ValueError                  a parameter is out of range; the text names it, its value and the range

No message ever contains a private value: only public parameters, names and limits.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import SupportsFloat, SupportsIndex, TypeVar, cast

__all__ = [
    "BudgetExceeded",
    "DiscreetError",
    "MissingExtra",
    "NotCertified",
    "UnitMismatch",
    "UnsupportedAdjacency",
    "UnsupportedEvent",
    "choice",
]

Option = TypeVar("Option")


class DiscreetError(Exception):
    """Base of the library's own errors."""


class UnsupportedEvent(DiscreetError):
    """An accountant was asked to price an event for which it has no theorem."""


class UnsupportedAdjacency(UnsupportedEvent):
    """An event was proved under another neighbouring relation, and none of the known conversions applies."""


class NotCertified(DiscreetError):
    """An engine could not reach a useful certified width; another accountant may."""


class BudgetExceeded(DiscreetError):
    """A charge would exceed the limit of a book. Nothing was charged and nothing was released."""


class UnitMismatch(DiscreetError):
    """A charge protects another unit than the book keeps. Nothing was charged and nothing was released."""


class MissingExtra(ImportError):
    """An optional dependency is not installed."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Turn a failed import of an optional dependency into the line that installs it.

    >>> with extra("ledger"):
    ...     import a_module_that_is_not_there
    Traceback (most recent call last):
    ...
    discreet.errors.MissingExtra: This needs an optional dependency: pip install "discreet[ledger]"
    (in a clone: -e ".[ledger]")
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("discreet"):
            raise
        line = f'pip install "discreet[{name}]" (in a clone: -e ".[{name}]")'
        raise MissingExtra(f"This needs an optional dependency: {line}") from error


def number(
    name: str, value: object, *, low: float, high: float, open_low: bool = False, open_high: bool = False
) -> float:
    """``value`` as a float inside the interval, or a ``ValueError`` that names both.

    >>> number("rate", 1.5, low=0, high=1)
    Traceback (most recent call last):
    ...
    ValueError: rate is 1.5, but must be a number in [0, 1].
    """
    try:
        result = math.nan if isinstance(value, (bool, str, bytes)) else float(cast(SupportsFloat, value))
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    if (result > low if open_low else result >= low) and (result < high if open_high else result <= high):
        return result + 0.0  # -0.0 becomes 0.0: what is equal reads the same
    allowed = f"a number in {'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
    raise ValueError(f"{name} is {value!r}, but must be {allowed}.")


def is_whole_text(value: object) -> bool:
    """Whether a value is text that can be written: half a character (a lone surrogate) cannot.

    >>> is_whole_text("é"), is_whole_text("\\ud800"), is_whole_text(b"e")
    (True, False, False)
    """
    return isinstance(value, str) and not any("\ud800" <= sign <= "\udfff" for sign in value)


def choice(name: str, value: object, options: Mapping[str, Option]) -> Option:
    """What stands beside the chosen word, or a ``ValueError`` that lists the words: nothing is taken by default.

    Decision 214.

    >>> choice("norm", "l2", {"l1": 1, "l2": 2})
    2
    >>> choice("norm", "L1", {"l1": 1, "l2": 2})
    Traceback (most recent call last):
    ...
    ValueError: norm is 'L1', but must be 'l1' or 'l2'.
    """
    if isinstance(value, str) and value in options:
        return options[value]
    *others, last = map(repr, options)
    raise ValueError(f"{name} is {value!r}, but must be {', '.join(others) + ' or ' if others else ''}{last}.")


def positive(name: str, value: object) -> float:
    """A finite number above zero."""
    return number(name, value, low=0, high=math.inf, open_low=True, open_high=True)


def nonnegative(name: str, value: object) -> float:
    """A finite number that is zero or more."""
    return number(name, value, low=0, high=math.inf, open_high=True)


def probability(name: str, value: object) -> float:
    """A number from 0 to 1."""
    return number(name, value, low=0, high=1)


def whole(name: str, value: object, *, low: int = 0, high: int | None = None) -> int:
    """An integer of at least ``low``, and at most ``high`` if that is given."""
    try:
        if isinstance(value, bool):
            raise TypeError
        result = operator.index(cast(SupportsIndex, value))
    except TypeError:
        raise ValueError(f"{name} is {value!r}, but must be a whole number of at least {low}.") from None
    if result < low:
        raise ValueError(f"{name} is {value!r}, but must be a whole number of at least {low}.")
    if high is not None and result > high:
        raise ValueError(f"{name} must be a whole number of at most {high}, but is larger.")
    return result
