"""Expressions of SQL, read with sqlglot onto the nodes of an expression: each kind has one reader, in one table.

>>> import sqlglot
>>> from discreet.schema import Bounded, Schema
>>> Reader({"age": "age"}).node(sqlglot.parse_one("ABS(Age - 40) / 2")).bounds(Schema(age=Bounded(0, 100)))
(0.0, 30.0)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from discreet.dates import DAY
from discreet.errors import extra, number
from discreet.tables.calendar import months_later
from discreet.tables.conditions import Compare, IsIn, Logic, Missing
from discreet.tables.expressions import Expression
from discreet.tables.mistakes import nearest
from discreet.tables.nodes import Binary, Column, Node, Number, Text
from discreet.tables.whole_values import is_integer

with extra("tables"):
    from sqlglot import exp

__all__ = ["Lists", "Reader", "only"]

Lists: TypeAlias = Mapping[str, list[Any]]  # the long lists that were taken out of the text, by what stands for them

_COMPARED: Mapping[type[exp.Expression], str] = {
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.EQ: "==",
    exp.NEQ: "==",  # whoever reads it negates it
}
_ARITHMETIC: Mapping[type[exp.Expression], str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_LARGEST = 1e300
_FORMS = (
    "Of a row there are comparisons, AND, OR, NOT, IN, BETWEEN, IS NULL, LIKE 'a_c%', arithmetic, CASE, COALESCE, CAST "
    "and functions of numbers, texts and dates, as ROUND, LOWER, SUBSTR, YEAR, DATE_TRUNC, DATE_DIFF."
)


def only(node: exp.Expression, *known: str) -> None:
    """Refuse a node with a part that is not read: passed over in silence, it would be answered wrongly."""
    if unread := [part for part, value in node.args.items() if value and part not in known]:
        raise ValueError(f"{node.sql(dialect='duckdb')} is not supported with {unread[0].upper()}. {_FORMS}")


@dataclass(frozen=True)
class Reader:
    """Reads expressions over columns with known ``names``, in small letters; ``tables`` are what columns may be
    qualified with, if that is known; ``unit`` is whose rows are bounded; ``is_integer`` tells what SQL types
    as an integer."""

    names: Mapping[str, str]
    lists: Lists = field(default_factory=dict)
    tables: Collection[str] | None = None
    unit: str = ""
    is_integer: Callable[[Node], bool] = is_integer

    def expression(self, node: exp.Expression) -> Expression:
        """A condition or a value of one row."""
        return Expression(self.node(node))

    def column(self, node: exp.Column) -> str:
        """The declared name of a column; as it is, if nothing is called so."""
        if node.table and self.tables is not None and node.table.lower() not in self.tables:
            raise ValueError(f"There is no table {node.table!r} in FROM, but {node.sql()} is asked for.")
        if (whole := f"{node.table}.{node.name}".lower()) in self.names:
            return self.names[whole]
        return self.names.get(node.name) or self.names.get(node.name.lower(), node.name)

    def node(self, node: exp.Expression | None) -> Node:
        """The same as a node."""
        from discreet.tables.functions import FUNCTIONS

        match node:
            case None:  # DuckDB's @ is ABS, and sqlglot reads one that stands alone
                raise ValueError("There is an operator or a function without what it works on.")
            case exp.Column():
                return Column(self._column_name(node))
            case exp.Star():
                raise ValueError("* stands in COUNT(*) alone: name a column.")
            case exp.Null():
                raise ValueError("NULL equals nothing and is no number: write IS NULL or IS NOT NULL.")
            case exp.Placeholder() | exp.Parameter():
                raise ValueError(f"{node.sql(dialect='duckdb')} is a parameter, but nothing fills it: write the value.")
            case exp.AggFunc() | exp.Window():
                raise ValueError(
                    f"{node.sql(dialect='duckdb')} looks at many rows, but stands where one is: write conditions on "
                    "aggregates after HAVING."
                )
            case exp.Literal():
                return Text(node.this) if node.is_string else Number(_constant(node.this))
            case exp.Boolean():
                return Number(float(bool(node.this)))
            case exp.Paren():
                return self.node(node.this)
            case exp.Neg(this=exp.Literal() as inner) if not inner.is_string:
                return Number(-_constant(inner.this))
            case exp.And() | exp.Or():  # a chain is read side by side: its tree is as deep as it is long
                parts: Iterable[Any] = node.flatten(unnest=False)
                sides = tuple(self.node(side) for side in parts)
                return Logic("&" if isinstance(node, exp.And) else "|", sides)
            case exp.Not():
                return Logic("~", (self.node(node.this),))
            case exp.Between():
                only(node, "this", "low", "high")
                value, low, high = (self.node(node.args[part]) for part in ("this", "low", "high"))
                return Logic("&", (Compare(">=", value, low), Compare("<=", value, high)))
            case exp.In() if node.expressions:
                only(node, "this", "expressions")
                return self._read_list(node)
            case exp.Is():
                return self._is(node)
            case exp.NEQ():
                return Logic("~", (self._read_operator(node),))
        if type(node) in _COMPARED or type(node) in _ARITHMETIC:
            return self._read_operator(node)
        if type(node) in FUNCTIONS:
            return FUNCTIONS[type(node)](self, node)
        if node.find(exp.Select):
            raise ValueError(
                "A subquery is not supported inside an expression: release it first, and write its answer."
            )
        raise ValueError(f"{node.sql(dialect='duckdb')} is not supported. {_FORMS}")

    def _column_name(self, node: exp.Column) -> str:
        """The declared name of a column that there is."""
        name = self.column(node)
        if name in self.names.values():
            return name
        if self.unit and name.lower() == self.unit.lower():
            raise ValueError(f"{name!r} is whose rows are protected: COUNT(DISTINCT {name}) alone may ask of it.")
        known = list(dict.fromkeys(self.names.values()))
        near, listed = nearest(name, known), ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
        if _is_alias(node, name):
            remedy = "it is a name that SELECT gives, which WHERE does not know; repeat what it stands for."
        elif near:
            remedy = f"did you mean {near!r}?"
        elif isinstance(node.parent, (exp.EQ, exp.NEQ, exp.In, exp.Like)):
            remedy = f"if it is text, write {name!r} in single quotes."
        else:
            kinds = "{ bounds = [low, high] }, { categories = [...] } or { unlisted = true }"
            remedy = f"add {name} = {kinds} to the schema."
        raise ValueError(f"Column {name!r} is not declared: {remedy} There are {listed or 'none'}.")

    def number(self, node: exp.Expression) -> float:
        """A constant."""
        found = self.node(node)
        if not isinstance(found, Number):
            raise ValueError(f"{node.sql(dialect='duckdb')} stands where a number must be written.")
        return found.constant

    def whole(self, node: exp.Expression, text: str, low: int, high: int) -> int:
        """A constant whole number, of what ``text`` says."""
        found = self.number(node)
        if not low <= found <= high or not found.is_integer():
            raise ValueError(f"{text} is not supported with {found:g}: give a whole number from {low} to {high}.")
        return int(found)

    def text(self, node: exp.Expression) -> str:
        """A constant text."""
        if not isinstance(node, exp.Literal) or not node.is_string:
            raise ValueError(f"{node.sql(dialect='duckdb')} must be a text in quotes.")
        return str(node.this)

    def _read_list(self, node: exp.In) -> Node:
        values = [self.node(value) for value in node.expressions]
        if not all(isinstance(value, (Number, Text)) for value in values):
            raise ValueError(f"{node.sql(dialect='duckdb')}: IN takes a list of constants.")
        constants: list[Any] = [value.constant for value in values]  # type: ignore[attr-defined]
        whole = self.lists.get(constants[0], constants) if isinstance(constants[0], str) else constants
        return IsIn(self._of_a_row(node.this), tuple(whole))

    def _is(self, node: exp.Is) -> Node:
        inner = self._of_a_row(node.this)
        match node.expression:
            case exp.Null():
                return Missing(inner)
            case exp.Boolean() as truth:
                held = Logic("&", (inner, Logic("~", (Missing(inner),))))
                return held if truth.this else Logic("&", (Logic("~", (inner,)), Logic("~", (Missing(inner),))))
        raise ValueError(f"{node.sql(dialect='duckdb')} is not supported: IS NULL, IS TRUE and IS FALSE are.")

    def _of_a_row(self, node: exp.Expression) -> Node:
        found = self.node(node)
        if not isinstance(found, Column) and not found.children():
            raise ValueError(f"{node.sql()} does not look at any column.")
        return found

    def _read_operator(self, node: exp.Expression) -> Node:
        only(node, "this", "expression", "typed", "safe")
        left, months = self.node(node.this), _months(node)
        if months and isinstance(left, Number) and left.moment:
            return Number(months_later(left.constant, months), moment=True)
        right = self.node(node.expression)
        if type(node) in _ARITHMETIC and isinstance(left, Number) and isinstance(right, Number):
            return _fold_constants(_ARITHMETIC[type(node)], left, right, node)
        if type(node) in _ARITHMETIC:
            if isinstance(left, Text) and isinstance(right, Text):
                raise ValueError(f"{node.sql()} does not look at any column.")
            return Binary(_ARITHMETIC[type(node)], left, right)
        if type(node) not in _COMPARED:
            raise ValueError(f"{node.sql(dialect='duckdb')} is not supported. {_FORMS}")
        compared = Compare(_COMPARED[type(node)], left, right)
        if isinstance(left, (Number, Text)) and isinstance(right, (Number, Text)):  # as 1 = 1, to which AND is added
            if isinstance(left, Text) != isinstance(right, Text):
                raise ValueError(f"{node.sql(dialect='duckdb')} compares a text with a number: write both alike.")
            return Number(float(bool(compared.apply(left.constant, right.constant))))
        return compared


def _fold_constants(sign: str, left: Number, right: Number, node: exp.Expression) -> Number:
    """Constants computed now; what is added to a date is in days."""
    if left.moment and right.moment and sign == "-":
        return Number((left.constant - right.constant) / DAY)
    if left.moment and (right.moment or sign not in "+-"):
        raise ValueError(f"{node.sql(dialect='duckdb')} is not supported: to a date, days are added.")
    found = Binary(sign, left, right).apply(left.constant, right.constant * (DAY if left.moment else 1.0))
    if found is None or not abs(found) <= _LARGEST or right.moment:
        raise ValueError(f"{node.sql(dialect='duckdb')} has no value.")
    return Number(found, left.moment)


def _months(node: exp.Expression) -> int:
    """The months that are added: whole ones of an INTERVAL of months, quarters or years; 0 for anything else."""
    added = node.expression
    if not isinstance(node, (exp.Add, exp.Sub)) or not isinstance(added, exp.Interval):
        return 0
    step, count = added.text("unit").lower().removesuffix("s"), added.text("this")
    many = int(count) if re.fullmatch("[+-]?[0-9]{1,5}", count) else 0
    return {"month": 1, "quarter": 3, "year": 12}.get(step, 0) * many * (1 if isinstance(node, exp.Add) else -1)


def _constant(text: str) -> float:
    return number("A number of the query", float(text), low=-_LARGEST, high=_LARGEST)


def _is_alias(node: exp.Column, name: str) -> bool:
    """Whether the SELECT around a column gives this name to something."""
    select = node.find_ancestor(exp.Select)
    return select is not None and any(isinstance(one, exp.Alias) and one.alias == name for one in select.expressions)
