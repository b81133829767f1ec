"""Functions of SQL that look at a date or a time: its parts, the start of its month, differences and intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from discreet.dates import seconds
from discreet.errors import extra
from discreet.tables.calendar import STEPS, Part, Truncated, seconds_of
from discreet.tables.mistakes import nearest
from discreet.tables.nodes import Binary, Function, Node, Number, Text
from discreet.tables.where import Reader, only

with extra("tables"):
    from sqlglot import exp

__all__ = ["DATES"]

Read = Callable[[Reader, Any], Node]

_OF_A_YEAR = {"year": 1.0, "quarter": 4.0, "month": 12.0}
_PARTS = {
    "DAYOFWEEK": "weekday",
    "DOW": "weekday",
    "ISODOW": "isoweekday",
    "DAYOFMONTH": "day",
    "DOY": "dayofyear",
    "WEEKOFYEAR": "week",
} | {name.upper(): name for name in ("year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute")}
_MEANT = {"WEEKDAY": "DAYOFWEEK, where Sunday is 0, or ISODOW, where Monday is 1"}  # engines number it differently


def _part(name: str) -> Read:
    def read(reader: Reader, node: exp.Expression) -> Node:
        only(node, "this")
        return Part(name, reader.node(node.this))

    return read


def _extract(reader: Reader, node: exp.Extract) -> Node:
    only(node, "this", "expression")
    return _named_part(node.this.name, reader.node(node.expression), node)


def _named_part(name: str, inner: Node, node: exp.Expression) -> Node:
    if name.upper() not in _PARTS:
        raise ValueError(
            f"{node.sql(dialect='duckdb')} is not supported: parts of a date are {', '.join(sorted(_PARTS))}."
        )
    return Part(_PARTS[name.upper()], inner)


def _read_truncation(reader: Reader, node: exp.Expression) -> Node:
    only(node, "this", "unit", "input_type_preserved")
    step = node.args["unit"].name.lower()
    if step not in STEPS:
        raise ValueError(f"{node.sql(dialect='duckdb')} is not supported: dates are cut to {', '.join(STEPS)}.")
    return Truncated(step, reader.node(node.this))


def _difference(reader: Reader, node: exp.DateDiff) -> Node:
    only(node, "this", "expression", "unit", "date_part_boundary")
    step = node.args["unit"].name.lower() if node.args.get("unit") else "day"
    if step not in STEPS:
        raise ValueError(f"{node.sql(dialect='duckdb')} is not supported: differences are in {', '.join(STEPS)}.")
    ends = [_moment(reader.node(part)) for part in (node.this, node.expression)]
    if step in _OF_A_YEAR:
        late, early = (_months_of(step, end) for end in ends)
        return Binary("-", late, early)
    if step == "week":  # whole weeks of days, wherever a week begins
        late, early = (Truncated("day", end) for end in ends)
        return Function("trunc", Binary("/", Binary("-", late, early), Number(7.0)))
    late, early = (Truncated(step, end) for end in ends)
    days = Binary("-", late, early)
    # of whole steps, so that rounding takes away what a quotient of doubles adds
    return Function("rint", Binary("/", days, Number(seconds_of(step, 1.0) / 86_400.0)))


def _moment(node: Node) -> Node:
    """A text that spells a date, as the date."""
    found = seconds(node.constant) if isinstance(node, Text) else None
    return node if found is None else Number(found, moment=True)


def _months_of(step: str, inner: Node) -> Node:
    """How many years, quarters or months there are up to a date."""
    year = Part("year", inner)
    return year if step == "year" else Binary("+", Binary("*", year, Number(_OF_A_YEAR[step])), Part(step, inner))


def _interval(reader: Reader, node: exp.Interval) -> Node:
    """In days, which is what is added to a date; as many as a column says, too."""
    unit, count = node.args.get("unit"), node.this
    refusal = f"{node.sql(dialect='duckdb')} is not supported: write INTERVAL 3 DAY."
    if not isinstance(unit, exp.Var) or count is None:  # none, or a span as DAY TO HOUR
        raise ValueError(refusal)
    step = unit.name.lower().removesuffix("s")
    if not isinstance(count, exp.Literal):
        many = reader.node(count)
        if not isinstance(many, Number):
            return Binary("*", many, Number(seconds_of(step, 1.0) / 86_400.0))
        return Number(seconds_of(step, many.constant) / 86_400.0)
    try:
        found = float(count.this)
    except ValueError:
        raise ValueError(refusal) from None
    return Number(seconds_of(step, found) / 86_400.0)


def _read_addition(reader: Reader, node: exp.DateAdd | exp.DateSub) -> Node:
    sign = exp.Add if isinstance(node, exp.DateAdd) else exp.Sub
    if node.args.get("unit") or not isinstance(node.expression, exp.Interval):
        raise ValueError(f"{node.sql(dialect='duckdb')} is not supported: write day + INTERVAL 3 DAY.")
    return reader.node(sign(this=node.this, expression=node.expression))


def _anonymous(reader: Reader, node: exp.Anonymous) -> Node:
    if node.name.lower() in ("now", "getdate"):
        return _now(reader, node)
    if node.name.lower() == "date_part" and len(node.expressions) == 2:
        return _named_part(reader.text(node.expressions[0]), reader.node(node.expressions[1]), node)
    from discreet.tables.functions import FUNCTIONS

    known = [name for kind in FUNCTIONS if issubclass(kind, exp.Func) for name in kind.sql_names()]
    near = _MEANT.get(node.name.upper()) or nearest(node.name, known)
    remedy = f"did you mean {near}?" if near else "compute the column before, where the table is made."
    raise ValueError(f"{node.sql(dialect='duckdb')} is not supported: {remedy}")


def _now(reader: Reader, node: exp.Expression) -> Node:
    raise ValueError(f"{node.sql(dialect='duckdb')} is not supported: write the date, as DATE '2024-01-31'.")


def _refuse_spelling(reader: Reader, node: exp.Expression) -> Node:
    raise ValueError(
        f"{node.sql(dialect='duckdb')} is not supported: dates are not written out; group by "
        "date_trunc('month', ...), month(...) or dayofweek(...)."
    )


def _day(reader: Reader, node: exp.Expression) -> Node:
    only(node, "this")
    return Truncated("day", reader.node(node.this))


DATES: Mapping[type[exp.Expression], Read] = {
    exp.Year: _part("year"),
    exp.Quarter: _part("quarter"),
    exp.Month: _part("month"),
    exp.Day: _part("day"),
    exp.DayOfMonth: _part("day"),
    exp.DayOfWeek: _part("weekday"),
    exp.DayOfWeekIso: _part("isoweekday"),
    exp.Hour: _part("hour"),
    exp.Minute: _part("minute"),
    exp.Extract: _extract,
    exp.TimestampTrunc: _read_truncation,
    exp.DateTrunc: _read_truncation,
    exp.Date: _day,
    exp.DateDiff: _difference,
    exp.Interval: _interval,
    exp.Anonymous: _anonymous,
    exp.CurrentDate: _now,
    exp.CurrentTimestamp: _now,
    exp.Week: _part("week"),
    exp.WeekOfYear: _part("week"),
    exp.DayOfYear: _part("dayofyear"),
    exp.DateAdd: _read_addition,
    exp.DateSub: _read_addition,
    exp.TimeToStr: _refuse_spelling,
    exp.Monthname: _refuse_spelling,
    exp.Dayname: _refuse_spelling,
}
