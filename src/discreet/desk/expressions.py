"""Expressions of a table as tagged JSON. They are read by building them again with the methods that people use, so that
what those refuse is refused: no node is made of what a stranger wrote.

>>> from discreet.tables import col
>>> wire = write_expression((col("age") >= 18) & col("ward").is_in(["north"]))
>>> str(read_expression(wire).node) == str(((col("age") >= 18) & col("ward").is_in(["north"])).node)
True
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import reduce
from typing import Any

from discreet.errors import choice
from discreet.tables.calendar import Part, Truncated
from discreet.tables.choices import Among, AsNumber, Case, Coalesce
from discreet.tables.conditions import Compare, IsIn, Logic, Missing
from discreet.tables.expressions import Expression, case, col
from discreet.tables.nodes import Binary, Clip, Column, Function, Node, Number, Text
from discreet.tables.texts import Contains, Joined, Length, Like, TextFunction

__all__ = ["read_expression", "write_expression"]

_ARITHMETIC = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod}
_COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq}
_FUNCTIONS: Mapping[str, Callable[[Expression], Expression]] = {
    "abs": Expression.abs,
    "floor": Expression.floor,
    "sqrt": Expression.sqrt,
    "log": Expression.log,
}
_PARTS = dict.fromkeys(("year", "quarter", "month", "week", "day", "weekday", "hour"))
_CASES = dict.fromkeys(("lower", "upper", "trim"))
_PLACES = {"start": "starts_with", "end": "ends_with", "middle": "contains"}


def _constant(constant: Any, moment: bool) -> Expression:
    if moment is not True and moment is not False:
        raise ValueError("moment must be true or false.")
    return Expression(Number(_finite(constant), moment=moment))


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= 1e300:
        raise ValueError("constant must be a number.")
    return float(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("A text must be text.")
    return value


def _logic(sign: Any, parts: list[Expression]) -> Expression:
    if sign == "~" and len(parts) == 1:
        return ~parts[0]
    join = choice("sign", sign, {"&": operator.and_, "|": operator.or_})
    if not parts:
        raise ValueError("A condition has no parts.")
    joined: Expression = reduce(join, parts)
    return joined


def _case(conditions: Any, values: Any, otherwise: Any) -> Expression:
    return case(*zip(conditions, values, strict=True), otherwise=otherwise)


def _text_function(name: Any, inner: Any, start: Any, size: Any) -> Expression:
    if name == "part":
        return inner.text.part(start, size)  # type: ignore[no-any-return]
    choice("name", name, _CASES)
    return getattr(inner.text, name)()  # type: ignore[no-any-return]


def _part(name: Any, inner: Any) -> Expression:
    choice("name", name, _PARTS)
    return getattr(inner.date, name)()  # type: ignore[no-any-return]


_BUILDERS: Mapping[type[Node], Callable[..., Expression]] = {
    Column: lambda name: col(_text(name)),
    Number: _constant,
    Text: lambda constant: Expression(Text(_text(constant))),
    Binary: lambda sign, left, right: choice("sign", sign, _ARITHMETIC)(left, right),
    Clip: lambda inner, low, high: inner.clip(low, high),
    Function: lambda name, inner: choice("name", name, _FUNCTIONS)(inner),
    Compare: lambda sign, left, right: choice("sign", sign, _COMPARISONS)(left, right),
    IsIn: lambda inner, values: inner.is_in(values),
    Logic: _logic,
    Missing: lambda inner: inner.is_missing(),
    Among: lambda inner, listed, other: inner.among(listed, other),
    AsNumber: lambda inner: inner.as_number(),
    Case: _case,
    Coalesce: lambda parts: parts[0].fill(*parts[1:]),
    TextFunction: _text_function,
    Length: lambda inner: inner.text.length(),
    Contains: lambda where, inner, part: getattr(inner.text, choice("where", where, _PLACES))(_text(part)),
    Joined: lambda parts: parts[0].text.followed_by(*parts[1:]),
    Like: lambda inner, pattern: inner.text.like(_text(pattern)),
    Part: _part,
    Truncated: lambda step, inner: inner.date.start(_text(step)),
}
_KINDS = {kind.__name__: kind for kind in _BUILDERS}


def write_expression(expression: Expression) -> dict[str, Any]:
    """The expression as JSON; a kind that has no method of its own travels as SQL alone."""
    return _write(expression.node)


def _write(node: Node) -> dict[str, Any]:
    if type(node) not in _BUILDERS:
        raise ValueError(f"{type(node).__name__} cannot be sent as it is: ask by SQL instead.")
    parts = {field.name: _write_value(getattr(node, field.name)) for field in fields(node)}  # type: ignore[arg-type]
    return {"node": type(node).__name__, **parts}


def _write_value(value: Any) -> Any:
    if isinstance(value, Node):
        return _write(value)
    if isinstance(value, tuple):
        return [_write_value(item) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise ValueError(f"A {type(value).__name__} cannot be sent: write a number or a text.")


def read_expression(wire: Any) -> Expression:
    """The expression that JSON describes, or a ``ValueError``."""
    if not isinstance(wire, dict):
        raise ValueError("An expression is an object with a 'node'.")
    values = dict(wire)
    kind = choice("node", values.pop("node", None), _KINDS)
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    if set(values) != set(names):
        raise ValueError(f"{kind.__name__} has the parts {', '.join(names)}, all of them, and no others.")
    parts = {name: _read_value(values[name]) for name in names}
    try:
        return _BUILDERS[kind](**parts)
    except (TypeError, AttributeError, IndexError, ArithmeticError, RecursionError):
        raise ValueError(f"{kind.__name__} cannot be built of these parts.") from None


def _read_value(value: Any) -> Any:
    if isinstance(value, dict):
        return read_expression(value)
    if isinstance(value, list):
        return [_read_value(item) for item in value]
    return value
