"""WHERE, read with sqlglot onto the expressions of a row: each kind of node has one reader, in one table.

>>> import sqlglot
>>> from discreet.schema import Bounded, Schema
>>> expression(sqlglot.parse_one("ABS(age - 40) / 2"), {}).bounds(Schema(age=Bounded(0, 100)))
(0.0, 30.0)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from discreet.errors import extra
from discreet.tables.expressions import Expression, col, joined

with extra("tables"):
    from sqlglot import exp

__all__ = ["expression"]

Lists: TypeAlias = Mapping[str, list[Any]]  # the long lists that were taken out of the text, by what stands for them

_FUNCTIONS: Mapping[type[exp.Expression], Callable[[Expression], Expression]] = {
    exp.Neg: operator.neg,
    exp.Not: operator.invert,
    exp.Abs: Expression.abs,
    exp.Floor: Expression.floor,
    exp.Sqrt: Expression.sqrt,
    exp.Ln: Expression.log,
}
_OPERATORS: Mapping[type[exp.Expression], Callable[[Any, Any], Any]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
    exp.Div: operator.truediv,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
}


def expression(node: exp.Expression | None, lists: Lists) -> Any:
    """A condition or a value of one row; ``lists`` holds the long lists that were taken out of the text."""
    if node is None:  # DuckDB's @ is ABS, and sqlglot reads one that stands alone
        raise ValueError("WHERE has an operator or a function without what it works on.")
    match node:
        case exp.Column():
            return col(node.name)
        case exp.Literal():
            return node.this if node.is_string else float(node.this)
        case exp.Boolean():
            return float(bool(node.this))
        case exp.Paren():
            return expression(node.this, lists)
        case exp.Neg(this=exp.Literal() as inner) if not inner.is_string:
            return -float(inner.this)
        case exp.And() | exp.Or():  # a chain is read side by side: its tree is as deep as it is long
            sides: Iterable[Any] = node.flatten(unnest=False)
            return joined("&" if isinstance(node, exp.And) else "|", (expression(side, lists) for side in sides))
        case exp.Between() if not node.args.get("symmetric"):
            value, low, high = _of_a_row(node.this, lists), node.args["low"], node.args["high"]
            return (value >= expression(low, lists)) & (value <= expression(high, lists))
        case exp.In() if node.expressions:
            values = [expression(value, lists) for value in node.expressions]
            whole = lists.get(values[0], values) if isinstance(values[0], str) else values
            return _of_a_row(node.this, lists).is_in(whole)
        case exp.Is() if isinstance(node.expression, exp.Null):
            return _of_a_row(node.this, lists).is_missing()
    if type(node) in _FUNCTIONS and node.args.get("decimals") is None:
        return _FUNCTIONS[type(node)](_of_a_row(node.this, lists))
    if type(node) in _OPERATORS:
        return _operated(node, lists)
    raise ValueError(
        f"{node.sql(dialect='duckdb')} is not supported in WHERE. There are comparisons, AND, OR, NOT, IN, "
        "BETWEEN, IS NULL, + - * /, ABS, FLOOR, SQRT and LN."
    )


def _of_a_row(node: exp.Expression, lists: Lists) -> Expression:
    found = expression(node, lists)
    if not isinstance(found, Expression):
        raise ValueError(f"{node.sql()} does not look at any column.")
    return found


def _operated(node: exp.Expression, lists: Lists) -> Any:
    left, right = expression(node.this, lists), expression(node.expression, lists)
    if isinstance(left, str):
        left, right = right, left
    if not isinstance(left, Expression) and not isinstance(right, Expression):
        raise ValueError(f"{node.sql()} does not look at any column.")
    return _OPERATORS[type(node)](left, right)
