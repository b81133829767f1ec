"""Dates and times as numbers: seconds since 1970, in UTC. What a text, a date or a time of day means is said here once.

A time with a zone is its instant in UTC; one without is taken as it is written. The calendar is the Gregorian one, also
for years before it was. Text follows one grammar: ``2024-02-29``, or with a time after a space or a ``T``:
``2024-02-29 18:30``, ``2024-02-29T18:30:05.25``, and perhaps a zone, ``Z`` or ``+02:00``. Anything else is missing.

>>> seconds("1970-01-02"), seconds(dt.date(1970, 1, 1)), seconds("2023-02-30"), seconds("1970-01-01T00:01:00.5")
(86400.0, 0.0, None, 60.5)
>>> seconds("1970-01-01T00:01:00Z"), seconds("1970-01-01 02:01+02:00")
(60.0, 60.0)
>>> moment(86400.0), moment(86401.5)
(datetime.datetime(1970, 1, 2, 0, 0), datetime.datetime(1970, 1, 2, 0, 0, 1, 500000))
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Any

__all__ = ["DAY", "OFFSET", "SPELLED", "UTC", "Dates", "Times", "moment", "seconds"]

DAY = 86_400.0
_DAY, _TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}", "[ T]([01][0-9]|2[0-3]):[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?"
SPELLED = f"{_DAY}({_TIME})?"  # without a zone
UTC, OFFSET = f"{_DAY}{_TIME}Z", f"{_DAY}{_TIME}[-+]([01][0-9]|2[0-3]):[0-5][0-9]"
_SPELLED = re.compile(f"{SPELLED}|{UTC}|{OFFSET}", re.ASCII)
_EPOCH, _MICROSECOND = dt.datetime(1970, 1, 1), dt.timedelta(microseconds=1)


def seconds(value: Any) -> float | None:
    """Seconds since 1970 of a date, a time, or a text that spells one; none for anything else."""
    try:
        if isinstance(value, str):
            value = dt.datetime.fromisoformat(value) if _SPELLED.fullmatch(value) else None
        if isinstance(value, dt.datetime):
            ahead = value.utcoffset() or dt.timedelta()
            since = value.replace(tzinfo=None) - _EPOCH - ahead
            return float((since // _MICROSECOND) / 1e6)  # as engines compute it, to the last bit
        if isinstance(value, dt.date):
            return (value.toordinal() - _EPOCH.toordinal()) * DAY
    except Exception:  # an object may do anything when it is looked at
        return None
    return None


def moment(value: float) -> dt.datetime:
    """The time that a number of seconds is."""
    try:
        return _EPOCH + dt.timedelta(seconds=value)
    except (OverflowError, ValueError):
        raise ValueError(f"A time may lie {value:g} seconds from 1970, but the calendar has years 1 to 9999.") from None


def _end(name: str, value: Any) -> dt.datetime:
    found = seconds(value)
    if found is None:
        raise ValueError(f"{name} is {value!r}, but must be a date or a time: '2024-01-31', or of Python's datetime.")
    return moment(found)


@dataclass(frozen=True, slots=True)
class _Span:
    """From ``first`` to ``last``, both included."""

    first: Any
    last: Any

    @property
    def low(self) -> float:
        """The first, in seconds."""
        return seconds(self.first) or 0.0

    @property
    def high(self) -> float:
        """The last, in seconds."""
        return seconds(self.last) or 0.0


@dataclass(frozen=True, slots=True)
class Times(_Span):
    """Points in time from ``first`` to ``last``; what lies outside is missing. A day given as ``last`` is all of it.

    >>> round(Times("2024-01-01", "2024-12-31").high - Times("2024-01-01", "2024-12-31").low)
    31622400
    """

    def __post_init__(self) -> None:
        first, last = _end("first", self.first), _end("last", self.last)
        day = (isinstance(self.last, str) and len(self.last) == 10) or type(self.last) is dt.date
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "last", last + dt.timedelta(days=1, microseconds=-1) if day else last)
        if not self.low < self.high:
            raise ValueError(f"first is {self.first} and last {self.last}, but first must come before last.")


@dataclass(frozen=True, slots=True)
class Dates(_Span):
    """Days from ``first`` to ``last``, both included; a time counts as its day. What lies outside is missing.

    >>> Dates("2024-02-28", "2024-03-01").days
    3
    """

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", _end("first", self.first).date())
        object.__setattr__(self, "last", _end("last", self.last).date())
        if not self.first <= self.last:
            raise ValueError(f"first is {self.first} and last {self.last}, but first must not come after last.")

    @property
    def days(self) -> int:
        """How many days there are."""
        return int((self.last - self.first).days) + 1
