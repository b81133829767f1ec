"""Dates as numbers: a column of dates between two public days is read as tables read it (dates, times, ISO text such as
2024-02-29), binned as days, and drawn as ISO text.

To the model a date is a whole number of days since 1970-01-01. What names no day between the two, like a missing entry,
falls into the cell of missing ones: each row is judged by itself.

Decisions 364 and 366.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.schema import Bounded, Dates, Declaration, Schema, Unlisted

__all__ = ["as_iso_text", "as_read", "day", "declared_dates", "with_dates", "written_day"]

_MOST_DAYS = 1 << 16
_EPOCH = date(1970, 1, 1).toordinal()


def day(value: Any) -> int:
    """A date, or its ISO text, as days since 1970-01-01.

    >>> day("1970-02-01"), written_day(31)
    (31, '1970-02-01')
    """
    try:
        return (value if isinstance(value, date) else date.fromisoformat(value)).toordinal() - _EPOCH
    except (TypeError, ValueError):
        raise ValueError(f"{value!r} is no date: write it as '2024-02-29'.") from None


def written_day(days: float) -> str:
    """The day of a number, as ISO text."""
    return date.fromordinal(int(days) + _EPOCH).isoformat()


def declared_dates(schema: Schema, dates: Mapping[str, tuple[Any, Any]]) -> dict[str, tuple[Any, Any]]:
    """The columns of dates with their ends: those that the schema declares, and those that are named beside it.

    >>> declared_dates(Schema(seen=Dates("2024-01-01", "2024-01-31")), {})
    {'seen': (datetime.date(2024, 1, 1), datetime.date(2024, 1, 31))}
    """
    found = {name: (c.first, c.last) for name, c in schema.items() if isinstance(c, Dates)}
    if twice := sorted(found.keys() & dates.keys()):
        raise ValueError(f"dates names {twice[0]!r}, which the schema declares as Dates: say it once.")
    return found | dict(dates)


def with_dates(facts: Declaration, dates: Mapping[str, tuple[Any, Any]]) -> Declaration:
    """The same facts, with each column of dates as a number of days between its first and its last one."""
    columns: dict[str, Any] = dict(facts.schema)
    for name, ends in dates.items():
        if not isinstance(columns.get(name, Unlisted()), (Unlisted, Dates)) or name == facts.unit:
            raise ValueError(f"dates names {name!r}, which is the unit, or declared otherwise: leave it out there.")
        if not isinstance(ends, (tuple, list)) or len(ends) != 2:
            raise ValueError(f"dates of {name!r} must be a pair: its first and its last day.")
        first, last = map(day, ends)
        if not first < last < first + _MOST_DAYS:
            raise ValueError(f"dates of {name!r} must be a first day and a later one, at most {_MOST_DAYS:,} in all.")
        columns[name] = Bounded(first, last)
    return replace(facts, schema=Schema(columns)) if dates else facts


def as_read(facts: Declaration, dates: tuple[str, ...]) -> Declaration:
    """What the encoder is told: such a column holds dates, however a container writes them."""
    columns: dict[str, Any] = dict(facts.schema)
    for name in dates:
        column = columns[name]
        columns[name] = Dates(written_day(column.low), written_day(column.high))
    return replace(facts, schema=Schema(columns)) if dates else facts


def as_iso_text(days: NDArray[np.float64]) -> NDArray[Any]:
    """Numbers of days as ISO text; ``None`` for NaN."""
    missing = np.isnan(days)
    text = np.where(missing, 0, days).astype("M8[D]").astype(str).astype(object)
    text[missing] = None
    return np.asarray(text)
