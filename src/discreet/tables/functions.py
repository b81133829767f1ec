"""Functions of SQL that look at one row: choices, casts, rounding, texts, dates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from discreet.errors import extra
from discreet.moments import seconds
from discreet.tables.calendar import STEPS, Part, Truncated, shifted
from discreet.tables.choices import AsNumber, Case, Coalesce, Extreme
from discreet.tables.conditions import Compare, Logic
from discreet.tables.nodes import Binary, Function, Node, Number, Text
from discreet.tables.texts import Contains, TextFunction, like
from discreet.tables.where import Reader, only

with extra("tables"):
    from sqlglot import exp

__all__ = ["FUNCTIONS"]

Read = Callable[[Reader, Any], Node]

_PARTS = {"DAYOFWEEK": "weekday", "DOW": "weekday", "ISODOW": "isoweekday", "DAYOFMONTH": "day"} | {
    name.upper(): name for name in ("year", "quarter", "month", "day", "hour", "minute")
}
_WHOLE = {"INT", "BIGINT", "SMALLINT", "TINYINT", "UINT", "UBIGINT", "INT128"}
_REAL = {"DOUBLE", "FLOAT", "DECIMAL"}
_DIGITS = 15  # that a double has
_LONGEST = 1_000_000  # characters
_TIMES = {"TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"}


def _one(make: Callable[[Node], Node]) -> Read:
    def read(reader: Reader, node: exp.Expression) -> Node:
        only(node, "this")
        return make(reader.node(node.this))

    return read


def _rounded(inner: Node) -> Node:
    return Function("floor", Binary("+", inner, Number(0.5)))


def _round(reader: Reader, node: exp.Round) -> Node:
    only(node, "this", "decimals")
    inner = reader.node(node.this)
    if node.args.get("decimals") is None:
        return _rounded(inner)
    scale = Number(10.0 ** reader.whole(node.args["decimals"], "ROUND", -_DIGITS, _DIGITS))
    return Binary("/", _rounded(Binary("*", inner, scale)), scale)


def _power(reader: Reader, node: exp.Pow) -> Node:
    inner, power = reader.node(node.this), reader.number(node.expression)
    if power not in (2.0, 3.0):
        raise ValueError(f"{node.sql(dialect='duckdb')} is not supported: powers are 2 and 3.")
    square = Binary("*", inner, inner)
    return square if power == 2 else Binary("*", square, inner)


def _cast(reader: Reader, node: exp.Cast) -> Node:
    only(node, "this", "to", "safe")
    kind = node.to.this.name
    if isinstance(node.this, exp.Literal) and node.this.is_string and (kind == "DATE" or kind in _TIMES):
        found = seconds(node.this.this)
        if found is None:
            raise ValueError(f"{node.this.sql()} spells no date: write '2024-01-31' or '2024-01-31 18:30'.")
        return Number(found, moment=True)
    inner = reader.node(node.this)
    if kind in _WHOLE:
        return _rounded(AsNumber(inner))
    if kind in _REAL:
        return AsNumber(inner)
    if kind == "DATE":
        return Truncated("day", inner)
    if kind in _TIMES:
        return inner
    if kind == "BOOLEAN":
        return Logic("~", (Compare("==", AsNumber(inner), Number(0.0)),))
    raise ValueError(
        f"{node.sql(dialect='duckdb')} is not supported: there are casts to INTEGER, DOUBLE, BOOLEAN, DATE, TIMESTAMP."
    )


def _branch(reader: Reader, node: exp.Expression | None) -> Node | None:
    return None if node is None or isinstance(node, exp.Null) else reader.node(node)


def _case(reader: Reader, node: exp.Case) -> Node:
    only(node, "this", "ifs", "default")
    subject = None if node.this is None else reader.node(node.this)
    conditions, values = [], []
    for branch in node.args["ifs"]:
        test, value = reader.node(branch.this), _branch(reader, branch.args["true"])
        conditions.append(test if subject is None else Compare("==", subject, test))
        values.append(value)
    return _chosen(conditions, values, _branch(reader, node.args.get("default")), node)


def _if(reader: Reader, node: exp.If) -> Node:
    only(node, "this", "true", "false")
    value, other = _branch(reader, node.args["true"]), _branch(reader, node.args.get("false"))
    return _chosen([reader.node(node.this)], [value], other, node)


def _chosen(conditions: list[Node], values: list[Node | None], otherwise: Node | None, node: exp.Expression) -> Node:
    if all(value is None for value in (*values, otherwise)):
        raise ValueError(f"{node.sql(dialect='duckdb')} is always NULL.")
    # NULL is of any kind: a branch that is one is some other value, but never chosen
    some = next(value for value in (*values, otherwise) if value is not None)
    never = Case((Compare("<", Number(1.0), Number(0.0)),), (some,))
    return Case(tuple(conditions), tuple(never if value is None else value for value in values), otherwise)


def _coalesce(reader: Reader, node: exp.Coalesce) -> Node:
    only(node, "this", "expressions")
    parts = [part for part in (node.this, *node.expressions) if not isinstance(part, exp.Null)]
    return Coalesce(tuple(map(reader.node, parts)))


def _nullif(reader: Reader, node: exp.Nullif) -> Node:
    only(node, "this", "expression")
    inner, value = reader.node(node.this), reader.node(node.expression)
    return Case((Logic("~", (Compare("==", inner, value),)),), (inner,))


def _extreme(largest: bool) -> Read:
    def read(reader: Reader, node: exp.Expression) -> Node:
        only(node, "this", "expressions", "ignore_nulls")
        return Extreme(largest, tuple(reader.node(part) for part in (node.this, *node.expressions)))

    return read


# --- texts -----------------------------------------------------------------------------------------------------------


def _left(reader: Reader, node: exp.Left) -> Node:
    return TextFunction("part", reader.node(node.this), 1, reader.whole(node.expression, "LEFT", 0, _LONGEST))


def _substring(reader: Reader, node: exp.Substring) -> Node:
    only(node, "this", "start", "length")
    if node.args.get("length") is None:
        raise ValueError(f"{node.sql(dialect='duckdb')} is not supported: write SUBSTR(text, start, length).")
    start = reader.whole(node.args["start"], "The start of SUBSTR", 1, _LONGEST)
    size = reader.whole(node.args["length"], "The length of SUBSTR", 0, _LONGEST)
    return TextFunction("part", reader.node(node.this), start, size)


def _like(reader: Reader, node: exp.Like | exp.ILike) -> Node:
    only(node, "this", "expression", "negate")
    inner, pattern = reader.node(node.this), reader.text(node.expression)
    if isinstance(node, exp.ILike):
        inner, pattern = TextFunction("lower", inner), str(TextFunction("lower", Text("")).applied(pattern))
    found = like(inner, pattern)
    return Logic("~", (found,)) if node.args.get("negate") else found


def _has(where: Any) -> Read:
    def read(reader: Reader, node: exp.Expression) -> Node:
        only(node, "this", "expression")
        return Contains(where, reader.node(node.this), reader.text(node.expression))

    return read


# --- dates -----------------------------------------------------------------------------------------------------------


def _part(name: str) -> Read:
    return _one(lambda inner: Part(name, inner))


def _extract(reader: Reader, node: exp.Extract) -> Node:
    only(node, "this", "expression")
    return _named_part(node.this.name, reader.node(node.expression), node)


def _named_part(name: str, inner: Node, node: exp.Expression) -> Node:
    if name.upper() not in _PARTS:
        raise ValueError(
            f"{node.sql(dialect='duckdb')} is not supported: parts of a date are {', '.join(sorted(_PARTS))}."
        )
    return Part(_PARTS[name.upper()], inner)


def _truncated(reader: Reader, node: exp.Expression) -> Node:
    only(node, "this", "unit", "input_type_preserved")
    step = node.args["unit"].name.lower()
    if step not in STEPS:
        raise ValueError(f"{node.sql(dialect='duckdb')} is not supported: dates are cut to {', '.join(STEPS)}.")
    return Truncated(step, reader.node(node.this))


def _difference(reader: Reader, node: exp.DateDiff) -> Node:
    only(node, "this", "expression", "unit", "date_part_boundary")
    step = node.args["unit"].name.lower() if node.args.get("unit") else "day"
    size = shifted(step, 1.0) if step in STEPS else shifted("month", 1.0)
    late, early = (Truncated(step, reader.node(part)) for part in (node.this, node.expression))
    return Binary("*", Binary("-", late, early), Number(86_400.0 / size))


def _interval(reader: Reader, node: exp.Interval) -> Node:
    """In days, which is what is added to a date."""
    count = float(node.this.this) if isinstance(node.this, exp.Literal) else reader.number(node.this)
    return Number(shifted(node.args["unit"].name.lower(), count) / 86_400.0)


def _anonymous(reader: Reader, node: exp.Anonymous) -> Node:
    if node.name.lower() == "date_part" and len(node.expressions) == 2:
        return _named_part(reader.text(node.expressions[0]), reader.node(node.expressions[1]), node)
    raise ValueError(f"{node.sql(dialect='duckdb')} is not supported: prepare the column in the engine first.")


def _now(reader: Reader, node: exp.Expression) -> Node:
    raise ValueError(f"{node.sql(dialect='duckdb')} is not supported: write the date, as DATE '2024-01-31'.")


FUNCTIONS: Mapping[type[exp.Expression], Read] = {
    exp.Neg: _one(lambda inner: Binary("-", Number(0.0), inner)),
    exp.Abs: _one(lambda inner: Function("abs", inner)),
    exp.Floor: _one(lambda inner: Function("floor", inner)),
    exp.Ceil: _one(lambda inner: Binary("-", Number(0.0), Function("floor", Binary("-", Number(0.0), inner)))),
    exp.Sqrt: _one(lambda inner: Function("sqrt", inner)),
    exp.Ln: _one(lambda inner: Function("log", inner)),
    exp.Round: _round,
    exp.Pow: _power,
    exp.IntDiv: lambda reader, node: Function(
        "floor", Binary("/", reader.node(node.this), reader.node(node.expression))
    ),
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Case: _case,
    exp.If: _if,
    exp.Coalesce: _coalesce,
    exp.Nullif: _nullif,
    exp.Greatest: _extreme(True),
    exp.Least: _extreme(False),
    exp.Lower: _one(lambda inner: TextFunction("lower", inner)),
    exp.Upper: _one(lambda inner: TextFunction("upper", inner)),
    exp.Trim: _one(lambda inner: TextFunction("trim", inner)),
    exp.Left: _left,
    exp.Substring: _substring,
    exp.Like: _like,
    exp.ILike: _like,
    exp.StartsWith: _has("start"),
    exp.EndsWith: _has("end"),
    exp.Contains: _has("middle"),
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
    exp.TimestampTrunc: _truncated,
    exp.DateTrunc: _truncated,
    exp.Date: _one(lambda inner: Truncated("day", inner)),
    exp.DateDiff: _difference,
    exp.Interval: _interval,
    exp.Anonymous: _anonymous,
    exp.CurrentDate: _now,
    exp.CurrentTimestamp: _now,
}
