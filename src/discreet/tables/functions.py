"""Functions of SQL that look at one row: choices, casts, rounding, texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from discreet.dates import seconds
from discreet.errors import extra
from discreet.tables.calendar import Truncated
from discreet.tables.choices import AsNumber, Case, Coalesce, Extreme
from discreet.tables.conditions import Compare, Logic
from discreet.tables.date_functions import DATES
from discreet.tables.expressions import DIGITS, round_to, whole_quotient
from discreet.tables.nodes import Binary, Function, Node, Number, Text
from discreet.tables.texts import Contains, Joined, Length, TextFunction, like
from discreet.tables.where import Reader, only

with extra("tables"):
    from sqlglot import exp

__all__ = ["FUNCTIONS"]

Read = Callable[[Reader, Any], Node]

_WHOLE = {"INT", "BIGINT", "SMALLINT", "TINYINT", "UINT", "UBIGINT", "INT128"}
_REAL = {"DOUBLE", "FLOAT"}
_LONGEST = 1_000_000  # characters
_TIMES = {"TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"}


def _one(make: Callable[[Node], Node]) -> Read:
    def read(reader: Reader, node: exp.Expression) -> Node:
        only(node, "this")
        return make(reader.node(node.this))

    return read


def _round(reader: Reader, node: exp.Round) -> Node:
    only(node, "this", "decimals")
    decimals = node.args.get("decimals")
    return round_to(reader.node(node.this), 0 if decimals is None else reader.whole(decimals, "ROUND", -DIGITS, DIGITS))


def _whole_quotient(reader: Reader, node: exp.IntDiv) -> Node:
    """The quotient of integers; of doubles SQL's // divides as / does."""
    left, right = reader.node(node.this), reader.node(node.expression)
    decimal = any(part.is_number and not part.this.isdecimal() for part in node.find_all(exp.Literal))
    # a double may hold whole numbers alone, and is divided as doubles are
    decimal |= any(not part.is_type(*exp.DataType.INTEGER_TYPES) for part in node.find_all(exp.Cast))
    decimal |= node.find(exp.Pow) is not None
    if decimal or not (reader.is_integer(left) and reader.is_integer(right)):
        divided = exp.Div(this=node.this.copy(), expression=node.expression.copy()).sql(dialect="duckdb")
        raise ValueError(
            f"{node.sql(dialect='duckdb')} is not supported where a number may have decimals, because SQL then divides "
            f"as by /: write FLOOR({divided}), or whole = true in the schema of a column of whole numbers."
        )
    return whole_quotient(left, right)


def _sign(inner: Node) -> Node:
    zero = Number(0.0)
    return Case(
        (Compare(">", inner, zero), Compare("<", inner, zero), Compare("==", inner, zero)),
        (Number(1.0), Number(-1.0), zero),
    )


def _log(reader: Reader, node: exp.Log) -> Node:
    """LOG(x) is that of base 10, LOG(b, x) that of base b."""
    only(node, "this", "expression")
    base = 10.0 if node.expression is None else reader.number(node.this)
    if not (base > 0 and base != 1):
        raise ValueError(f"{node.sql(dialect='duckdb')} is not supported: the base must be positive, and not 1.")
    inner = reader.node(node.this if node.expression is None else node.expression)
    return Binary("/", Function("log", inner), Number(math.log(base)))


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
    if kind == "DECIMAL":  # of so many digits in all, which a double has anyway, and so many after the point
        decimals = node.to.expressions[1].this if len(node.to.expressions) > 1 else exp.Literal.number(0)
        return round_to(AsNumber(inner), reader.whole(decimals, "DECIMAL", 0, DIGITS))
    if node.to.expressions:
        raise ValueError(f"{node.sql(dialect='duckdb')} is not supported: write the type without a length.")
    if kind in _WHOLE:
        return Function("rint", AsNumber(inner))
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
    return _case_of(conditions, values, _branch(reader, node.args.get("default")), node)


def _if(reader: Reader, node: exp.If) -> Node:
    only(node, "this", "true", "false")
    value, other = _branch(reader, node.args["true"]), _branch(reader, node.args.get("false"))
    return _case_of([reader.node(node.this)], [value], other, node)


def _case_of(conditions: list[Node], values: list[Node | None], otherwise: Node | None, node: exp.Expression) -> Node:
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


def _read_left(reader: Reader, node: exp.Left) -> Node:
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
        inner, pattern = TextFunction("lower", inner), str(TextFunction("lower", Text("")).apply(pattern))
    found = like(inner, pattern)
    return Logic("~", (found,)) if node.args.get("negate") else found


def _read_concatenation(reader: Reader, node: exp.DPipe) -> Node:
    only(node, "this", "expression", "safe")
    return Joined((reader.node(node.this), reader.node(node.expression)))


def _concat(reader: Reader, node: exp.Concat) -> Node:
    raise ValueError(f"{node.sql(dialect='duckdb')} is not supported: write a || b, which is NULL where a part is.")


def _has(where: Any) -> Read:
    def read(reader: Reader, node: exp.Expression) -> Node:
        only(node, "this", "expression")
        return Contains(where, reader.node(node.this), reader.text(node.expression))

    return read


FUNCTIONS: Mapping[type[exp.Expression], Read] = {
    exp.Neg: _one(lambda inner: Binary("-", Number(0.0), inner)),
    exp.Abs: _one(lambda inner: Function("abs", inner)),
    exp.Floor: _one(lambda inner: Function("floor", inner)),
    exp.Ceil: _one(lambda inner: Binary("-", Number(0.0), Function("floor", Binary("-", Number(0.0), inner)))),
    exp.Sqrt: _one(lambda inner: Function("sqrt", inner)),
    exp.Ln: _one(lambda inner: Function("log", inner)),
    exp.Log: _log,
    exp.Round: _round,
    exp.Trunc: _one(lambda inner: Function("trunc", inner)),
    exp.Sign: _one(_sign),
    exp.Pow: _power,
    exp.IntDiv: _whole_quotient,
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
    exp.DPipe: _read_concatenation,
    exp.Concat: _concat,
    exp.Length: _one(Length),
    exp.Left: _read_left,
    exp.Substring: _substring,
    exp.Like: _like,
    exp.ILike: _like,
    exp.StartsWith: _has("start"),
    exp.EndsWith: _has("end"),
    exp.Contains: _has("middle"),
    **DATES,
}
