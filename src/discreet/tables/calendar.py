"""Parts of a date and time, and the start of the year, month, week it lies in.

A point in time is a number of seconds since 1970 (``discreet.dates``) within declared ends. Hours, weekdays, weeks
are floors of doubles, which every engine computes alike; years and months are what the engine's calendar makes of a
day, the Gregorian one for all years in both engines. No time zone and no first day of the week takes part.

Decision 352.
"""

from __future__ import annotations

import datetime as dt
from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.dates import DAY, moment, seconds
from discreet.errors import extra, number
from discreet.schema import Schema
from discreet.tables.intervals import ANYTHING, Interval
from discreet.tables.nodes import MOST_VALUES, Domain, Kind, Node, whole_numbers
from discreet.tables.scope import Scope

with extra("tables"):
    import narwhals as nw

__all__ = ["PARTS", "STEPS", "Part", "Truncated", "months_later", "seconds_of", "steps_of"]

# what a part lies between; a year lies between those of the ends
PARTS: Mapping[str, Interval] = {
    "year": ANYTHING,
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),  # of ISO 8601
    "dayofyear": (1, 366),
    "day": (1, 31),
    "weekday": (0, 6),  # from Sunday
    "isoweekday": (1, 7),  # from Monday
    "hour": (0, 23),
    "minute": (0, 59),
}
STEPS = ("year", "quarter", "month", "week", "day", "hour", "minute")


def _floor(value: nw.Expr) -> nw.Expr:
    return value.floor().cast(nw.Float64)


@dataclass(frozen=True, slots=True)
class Part(Node):
    """The year, month, hour ... of a point in time."""

    name: str
    inner: Node

    def bounds(self, schema: Schema) -> Interval:
        if self.name != "year":
            return PARTS[self.name]
        low, high = self.inner.bounds(schema)
        return float(moment(low).year), float(moment(high).year)

    def domain(self, schema: Schema) -> Domain:
        return whole_numbers(*self.bounds(schema))

    def apply(self, *values: Any) -> float | None:
        return None if values[0] is None else float(_part(self.name, moment(values[0])))

    def compile(self, scope: Scope) -> nw.Expr:
        value = scope.let(self.inner.compile(scope))
        days = scope.let(_floor(value / DAY))
        match self.name:
            case "hour":
                return _floor((value - days * DAY) / 3600)
            case "minute":
                minutes = scope.let(_floor((value - days * DAY) / 60))
                return minutes - _floor(minutes / 60) * 60
            case "weekday":
                return days + 4 - _floor((days + 4) / 7) * 7
            case "isoweekday":
                return days + 4 - _floor((days + 3) / 7) * 7
        called = {"week": "weekofyear"} | {name: name for name in ("year", "quarter", "month", "day", "dayofyear")}
        return scope.from_sql(lambda day: f"CAST({called[self.name]}({scope.engine.date(day)}) AS DOUBLE)", days)


@dataclass(frozen=True, slots=True)
class Truncated(Node):
    """The start of the year, quarter, month, week (Monday), day, hour or minute of a point in time."""

    step: str
    inner: Node

    def bounds(self, schema: Schema) -> Interval:
        low, high = self.inner.bounds(schema)
        return _start(self.step, low), _start(self.step, high)

    def kind(self, schema: Schema) -> Kind:
        return "moment"

    def domain(self, schema: Schema) -> Domain:
        return steps_of(self.step, *self.inner.bounds(schema))

    def apply(self, *values: Any) -> float | None:
        return None if values[0] is None else _start(self.step, values[0])

    def compile(self, scope: Scope) -> nw.Expr:
        value = scope.let(self.inner.compile(scope))
        if self.step in ("hour", "minute"):
            size = 3600.0 if self.step == "hour" else 60.0
            return _floor(value / size) * size
        days = scope.let(_floor(value / DAY))
        match self.step:
            case "day":
                return days * DAY
            case "week":
                return (_floor((days + 3) / 7) * 7 - 3) * DAY
        return scope.from_sql(lambda day: scope.engine.days(_first(scope.engine.date(day), self.step)), days) * DAY


def _first(date: str, step: str) -> str:
    """The first day of a date's month, quarter or year, in SQL."""
    month = {"month": f"month({date})", "quarter": f"3 * quarter({date}) - 2", "year": "1"}[step]
    return f"make_date(year({date}), {month}, 1)"


# --- the same, of public values -------------------------------------------------------------------------------------


def _part(name: str, at: dt.datetime) -> int:
    match name:
        case "quarter":
            return (at.month + 2) // 3
        case "weekday":
            return at.isoweekday() % 7
        case "isoweekday":
            return at.isoweekday()
        case "week":
            return at.isocalendar().week
        case "dayofyear":
            return at.timetuple().tm_yday
        case "year" | "month" | "day" | "hour" | "minute":
            return int(getattr(at, name))
    raise ValueError(f"{name!r} is no part of a date: there are {', '.join(PARTS)}.")


def _start(step: str, value: float) -> float:
    at = moment(value)
    day = dt.datetime(at.year, at.month, at.day)
    match step:
        case "minute" | "hour":
            found = day + dt.timedelta(hours=at.hour, minutes=at.minute if step == "minute" else 0)
        case "week":
            found = day - dt.timedelta(days=at.weekday())
        case "month":
            found = day.replace(day=1)
        case "quarter":
            found = day.replace(month=3 * ((at.month + 2) // 3) - 2, day=1)
        case "year":
            found = day.replace(month=1, day=1)
        case "day":
            found = day
        case _:
            raise ValueError(f"{step!r} is no step of a calendar: there are {', '.join(STEPS)}.")
    return seconds(found) or 0.0


# the shortest and longest that a step may be, in seconds
_LENGTHS: Mapping[str, Interval] = {
    "minute": (60, 60),
    "hour": (3600, 3600),
    "day": (DAY, DAY),
    "week": (7 * DAY, 7 * DAY),
    "month": (28 * DAY, 31 * DAY),
    "quarter": (90 * DAY, 92 * DAY),
    "year": (365 * DAY, 366 * DAY),
}


def steps_of(step: str, low: float, high: float) -> Domain:
    """The starts of all years, months, ... between two points in time, if they are few."""
    shortest, longest = _LENGTHS[step]
    if not (high - low) / shortest < MOST_VALUES:
        return None
    found = [_start(step, low)]
    while (after := _start(step, min(found[-1] + longest, high))) > found[-1]:  # never beyond the calendar's last year
        found.append(after)
    return tuple(found)


def months_later(value: float, months: int) -> float:
    """The same day of a later or earlier month, or that month's last, in seconds.

    >>> moment(months_later(seconds("2024-01-31 18:30"), 1)), moment(months_later(seconds("2024-03-31"), -13))
    (datetime.datetime(2024, 2, 29, 18, 30), datetime.datetime(2023, 2, 28, 0, 0))
    """
    at = moment(value)
    year, month = divmod(12 * at.year + at.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise ValueError("The interval leaves the calendar, which has years 1 to 9999.")
    last = monthrange(year, month + 1)[1]
    return seconds(at.replace(year=year, month=month + 1, day=min(at.day, last))) or 0.0


def seconds_of(step: str, count: float) -> float:
    """So many days, hours ... in seconds; of months and years none, as they differ in length."""
    sizes = {"week": 7 * DAY, "day": DAY, "hour": 3600.0, "minute": 60.0, "second": 1.0}
    if step not in sizes:
        raise ValueError(
            f"An interval of {step}s has no fixed length: write days, or add it to a written date, as DATE "
            "'2024-01-31' + INTERVAL 1 MONTH."
        )
    return number("The number of an INTERVAL", count, low=-1e9, high=1e9) * sizes[step]
