"""What may be computed from a row: arithmetic, comparisons, choices, texts, dates. Nothing looks at other rows or can
fail.

An expression sees a column as the schema reads it: clipped to its bounds, missing values filled or missing. Numbers are
doubles, whatever the table's own type, so nothing overflows; what has no value (a quotient by zero, the logarithm of a
negative number, the difference of two infinities) is missing, and a missing condition keeps nothing. Bounds follow from
the columns' bounds by interval arithmetic, and a derived column is clipped to them, so that no rounding of an engine's
logarithm can step outside.

>>> from discreet.schema import Bounded, Schema
>>> schema = Schema(income=Bounded(0, 1000), hours=Bounded(0, 80))
>>> (col("income") - 100).bounds(schema)
(-100.0, 900.0)
>>> (col("income") / col("hours")).bounds(schema)
(0.0, inf)
>>> (col("income") / col("hours")).clip(0, 50).bounds(schema)
(0.0, 50.0)

Decision 350.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from discreet.dates import seconds
from discreet.errors import number, whole
from discreet.schema import Bounded, Schema, Value, plain_category
from discreet.tables.choices import Among, AsNumber, Case, Coalesce
from discreet.tables.conditions import Compare, IsIn, Logic, Missing
from discreet.tables.intervals import Interval
from discreet.tables.nodes import Binary, Clip, Column, Function, Node, Number, Text
from discreet.tables.scope import Scope

if TYPE_CHECKING:
    import narwhals as nw

    from discreet.tables.accessors import DateMethods, TextMethods

__all__ = ["DIGITS", "Expression", "case", "col", "columns", "join_conditions", "operand", "round_to", "whole_quotient"]

DIGITS = 15  # that a double has


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """A function of one row. Build it from ``col(name)`` with Python's operators; ``&``, ``|``, ``~`` for logic."""

    node: Node
    __hash__ = object.__hash__

    def bounds(self, schema: Schema) -> Interval:
        """Numbers between which the value lies, from public facts; truth values lie in (0, 1)."""
        return self.node.bounds(schema)

    def compile(self, scope: Scope) -> nw.Expr:
        """The engine's expression, for the frame of ``scope`` as it then is."""
        return self.node.compile(scope)

    def logical(self) -> bool:
        """Whether it is a condition."""
        return self.node.logical()

    def __add__(self, other: Any) -> Expression:
        return Expression(Binary("+", self.node, _operand(other)))

    def __radd__(self, other: Any) -> Expression:
        return Expression(Binary("+", _operand(other), self.node))

    def __sub__(self, other: Any) -> Expression:
        return Expression(Binary("-", self.node, _operand(other)))

    def __rsub__(self, other: Any) -> Expression:
        return Expression(Binary("-", _operand(other), self.node))

    def __mul__(self, other: Any) -> Expression:
        return Expression(Binary("*", self.node, _operand(other)))

    def __rmul__(self, other: Any) -> Expression:
        return Expression(Binary("*", _operand(other), self.node))

    def __truediv__(self, other: Any) -> Expression:
        return Expression(Binary("/", self.node, _operand(other)))

    def __rtruediv__(self, other: Any) -> Expression:
        return Expression(Binary("/", _operand(other), self.node))

    def __floordiv__(self, other: Any) -> Expression:
        return Expression(whole_quotient(self.node, _operand(other)))

    def __rfloordiv__(self, other: Any) -> Expression:
        return Expression(whole_quotient(_operand(other), self.node))

    def __mod__(self, other: Any) -> Expression:
        return Expression(Binary("%", self.node, _operand(other)))

    def __neg__(self) -> Expression:
        return Expression(Binary("-", _operand(0.0), self.node))

    def __lt__(self, other: Any) -> Expression:
        return Expression(Compare("<", self.node, operand(other)))

    def __le__(self, other: Any) -> Expression:
        return Expression(Compare("<=", self.node, operand(other)))

    def __gt__(self, other: Any) -> Expression:
        return Expression(Compare(">", self.node, operand(other)))

    def __ge__(self, other: Any) -> Expression:
        return Expression(Compare(">=", self.node, operand(other)))

    def __eq__(self, other: Any) -> Expression:  # type: ignore[override]
        if isinstance(other, str):
            return self.is_in([other])
        return Expression(Compare("==", self.node, operand(other)))

    def __ne__(self, other: Any) -> Expression:  # type: ignore[override]
        return Expression(Logic("~", (self.__eq__(other).node,)))

    def __and__(self, other: Any) -> Expression:
        return join_conditions("&", (self, other))

    def __or__(self, other: Any) -> Expression:
        return join_conditions("|", (self, other))

    def __invert__(self) -> Expression:
        return Expression(Logic("~", (_condition(self),)))

    def __bool__(self) -> bool:
        raise TypeError(
            "An expression has no truth value of its own: write & for and, | for or, ~ for not, with parentheses."
        )

    def clip(self, low: float, high: float) -> Expression:
        """The value, moved to the nearer end where it lies outside."""
        ends = Bounded(low, high)
        return Expression(Clip(_numeric(self), ends.low, ends.high))

    def is_in(self, values: Iterable[Any]) -> Expression:
        """Whether the value is one of ``values``."""
        listed = tuple(value if isinstance(value, str) else _plain(value) for value in values)
        return Expression(IsIn(self.node, listed))

    def fill(self, *others: Any) -> Expression:
        """The value; where it is missing, the first of the others that is not."""
        return Expression(Coalesce((self.node, *map(operand, others))))

    def among(self, values: Iterable[Value], other: Value | None = None) -> Expression:
        """The value if it is one of a public list, otherwise ``other``, or missing: a key with declared categories."""
        listed = tuple(map(plain_category, values))
        return Expression(Among(self.node, listed, None if other is None else plain_category(other)))

    def as_number(self) -> Expression:
        """A condition as 1 or 0."""
        return Expression(AsNumber(self.node))

    @property
    def text(self) -> TextMethods:
        """What may be asked of a text."""
        from discreet.tables.accessors import TextMethods

        return TextMethods(self)

    @property
    def date(self) -> DateMethods:
        """What may be asked of a date or a time."""
        from discreet.tables.accessors import DateMethods

        return DateMethods(self)

    def is_missing(self) -> Expression:
        """Whether there is no value."""
        return Expression(Missing(self.node))

    def abs(self) -> Expression:
        """The magnitude."""
        return Expression(Function("abs", _numeric(self)))

    def floor(self) -> Expression:
        """The largest whole number that is not above the value."""
        return Expression(Function("floor", _numeric(self)))

    def sqrt(self) -> Expression:
        """The square root; of a negative number, missing."""
        return Expression(Function("sqrt", _numeric(self)))

    def round(self, decimals: int = 0) -> Expression:
        """The nearest number of so many decimals; of two, the one further from zero, as SQL's ROUND."""
        return Expression(round_to(_numeric(self), whole("decimals", decimals, low=-DIGITS, high=DIGITS)))

    def log(self) -> Expression:
        """The natural logarithm; of a number that is not positive, missing."""
        return Expression(Function("log", _numeric(self)))


def col(name: str) -> Expression:
    """The value of a declared column."""
    return Expression(Column(name))


def case(*branches: tuple[Expression, Any], otherwise: Any = None) -> Expression:
    """The value of the first condition that holds; if none does, ``otherwise``, or missing.

    >>> band = case((col("age") < 18, "minor"), (col("age") < 65, "adult"), otherwise="senior")
    """
    if not branches:
        raise ValueError("case needs at least one pair of a condition and a value.")
    conditions = tuple(_condition(condition) for condition, _ in branches)
    last = None if otherwise is None else operand(otherwise)
    return Expression(Case(conditions, tuple(operand(value) for _, value in branches), last))


def join_conditions(sign: Literal["&", "|"], conditions: Iterable[Any]) -> Expression:
    """Conditions side by side; those that are joined by the same sign already are not nested."""
    sides = [_condition(side) for side in conditions]
    inner = (side.parts if isinstance(side, Logic) and side.sign == sign else (side,) for side in sides)
    return Expression(Logic(sign, tuple(part for parts in inner for part in parts)))


def round_to(inner: Node, decimals: int) -> Node:
    """A number rounded to so many decimals, a half away from zero."""
    if decimals == 0:
        return Function("round", inner)
    scale = Number(10.0**decimals)
    return Binary("/", Function("round", Binary("*", inner, scale)), scale)


def whole_quotient(left: Node, right: Node) -> Node:
    """The quotient cut towards zero, as SQL's ``//``: what ``%`` leaves has the sign of ``left``."""
    return Function("trunc", Binary("/", left, right))


def operand(value: Any) -> Node:
    """An expression, a number, a text, a date or a time as a node."""
    if isinstance(value, Expression):
        return value.node
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, dt.date):
        return Number(seconds(value) or 0.0, moment=True)
    return Number(_plain(value))


def _operand(value: Any) -> Node:
    return _numeric(value) if isinstance(value, Expression) else Number(_plain(value))


def _plain(value: Any) -> float:
    return number("operand", float(value) if isinstance(value, bool) else value, low=-1e300, high=1e300)


def _numeric(value: Expression) -> Node:
    if value.logical():
        raise ValueError("A condition stands where a number is needed: compare numbers, combine conditions with & | ~.")
    return value.node


def _condition(value: Any) -> Node:
    if not isinstance(value, Expression) or not value.logical():
        raise ValueError(
            "A value stands where a condition is needed: write for example col('age') >= 18, in parentheses "
            "beside & and |."
        )
    return value.node


def columns(expression: Expression) -> set[str]:
    """The columns that an expression looks at."""
    found, level = set(), [expression.node]
    while level:
        found |= {part.name for part in level if isinstance(part, Column)}
        level = [child for part in level for child in part.children()]
    return found
