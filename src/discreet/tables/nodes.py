"""The tree of an expression: what each node computes of a row, and between which numbers that lies.

A node is a value that an engine never sees. It says one function three times: ``compile``, in the engine's words, with
a guard wherever engines disagree on what has no value; ``apply``, in Python, for public values (categories, released
answers, and tests that hold the engines to it); ``bounds`` and ``domain``, what may come out, from public facts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import product
from typing import Any, Literal, TypeAlias

from discreet.dates import Dates, Times
from discreet.errors import extra
from discreet.schema import Bounded, Categories, Schema, Unlisted, Value
from discreet.tables.intervals import ANYTHING, Interval, arithmetic
from discreet.tables.number_functions import number_function
from discreet.tables.scope import Scope

with extra("tables"):
    import narwhals as nw

__all__ = [
    "MOST_VALUES",
    "Binary",
    "Clip",
    "Column",
    "Domain",
    "Function",
    "Kind",
    "Node",
    "Number",
    "Text",
    "integral",
    "whole_numbers",
]

Kind: TypeAlias = Literal["number", "truth", "text", "moment"]
Domain: TypeAlias = tuple[Value, ...] | None  # every value that may come out, in the order of answers; none if unknown

MOST_VALUES = 1 << 20  # that are looked at to find a domain: as many as groups are answered


class Node:
    """A function of one row."""

    __slots__ = ()

    def children(self) -> tuple[Node, ...]:
        """The nodes it is made of."""
        values = [getattr(self, field.name) for field in fields(self)]  # type: ignore[arg-type]
        flat = [item for value in values for item in (value if isinstance(value, tuple) else (value,))]
        return tuple(item for item in flat if isinstance(item, Node))

    def bounds(self, schema: Schema) -> Interval:
        """Numbers between which the value lies, from public facts; truth values lie in (0, 1)."""
        return ANYTHING

    def kind(self, schema: Schema) -> Kind:
        """What comes out."""
        return "number"

    def domain(self, schema: Schema) -> Domain:
        """All that may come out, if it is made of few values."""
        inner = [child.domain(schema) for child in self.children()]
        known = [values for values in inner if values is not None]
        if len(known) < len(inner) or math.prod(map(len, known)) > MOST_VALUES:
            return None
        return tuple(dict.fromkeys(found for row in product(*known) if (found := self.apply(*row)) is not None))

    def apply(self, *values: Any) -> Any:
        """What it makes of its children's values, or none."""
        raise NotImplementedError

    def value(self, row: Mapping[str, Any]) -> Any:
        """What it is for a row of Python's values."""
        return self.apply(*(child.value(row) for child in self.children()))

    def compile(self, scope: Scope) -> nw.Expr:
        """The engine's expression, for the frame of ``scope`` as it then is."""
        raise NotImplementedError

    def logical(self) -> bool:
        """Whether it is a condition."""
        return False


@dataclass(frozen=True, slots=True)
class Column(Node):
    """The value of a declared column."""

    name: str

    def bounds(self, schema: Schema) -> Interval:
        match schema[self.name]:
            case Bounded(low, high, _):
                return low, high
            case Dates() | Times() as declared:
                return declared.low, declared.high
            case Categories(values=values) as kind:
                return ANYTHING if kind.textual else (float(min(values)), float(max(values)))
            case Unlisted():
                return ANYTHING
        raise _no_column(self.name, schema)

    def kind(self, schema: Schema) -> Kind:
        match schema[self.name]:
            case Dates() | Times():
                return "moment"
            case Unlisted():
                return "text"
            case Categories() as declared:
                return "text" if declared.textual else "number"
            case Bounded():
                return "number"
        raise _no_column(self.name, schema)

    def domain(self, schema: Schema) -> Domain:
        match schema[self.name]:
            case Categories(values=values):
                return values
            case Dates() as days:
                from discreet.tables.calendar import steps_of

                return steps_of("day", days.low, days.high)
            case Bounded() | Times() | Unlisted():
                return None
        raise _no_column(self.name, schema)

    def value(self, row: Mapping[str, Any]) -> Any:
        return row[self.name]

    def compile(self, scope: Scope) -> nw.Expr:
        return scope.column(self.name)


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A constant; ``moment`` for a point in time, in seconds."""

    constant: float
    moment: bool = False

    def bounds(self, schema: Schema) -> Interval:
        return self.constant, self.constant

    def kind(self, schema: Schema) -> Kind:
        return "moment" if self.moment else "number"

    def apply(self, *values: Any) -> float:
        return self.constant

    def compile(self, scope: Scope) -> nw.Expr:
        return nw.lit(self.constant, dtype=nw.Float64)


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A constant text."""

    constant: str

    def kind(self, schema: Schema) -> Kind:
        return "text"

    def apply(self, *values: Any) -> str:
        return self.constant

    def compile(self, scope: Scope) -> nw.Expr:
        return nw.lit(self.constant)


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """A sum, difference, product, quotient, or the rest of a division, which has the sign of what is divided."""

    sign: str
    left: Node
    right: Node

    def bounds(self, schema: Schema) -> Interval:
        return arithmetic(self.sign, self.left.bounds(schema), self.right.bounds(schema))

    def domain(self, schema: Schema) -> Domain:
        found = Node.domain(self, schema)
        if found is not None or self.sign != "%" or not (integral(self.left) and integral(self.right)):
            return found
        (low, high), divisor = self.bounds(schema), max(map(abs, self.right.bounds(schema)))
        return whole_numbers(max(low, 1 - divisor), min(high, divisor - 1))

    def kind(self, schema: Schema) -> Kind:
        return (
            "moment"
            if self.sign in "+-" and "moment" in (self.left.kind(schema), self.right.kind(schema))
            else "number"
        )

    def apply(self, *values: Any) -> float | None:
        left, right = values
        if left is None or right is None or (self.sign in "/%" and right == 0):
            return None
        try:
            match self.sign:
                case "+":
                    found = left + right
                case "-":
                    found = left - right
                case "*":
                    found = left * right
                case "/":
                    found = left / right
                case "%":
                    found = math.fmod(left, right)
                case _:
                    raise AssertionError(self.sign)
        except (ValueError, OverflowError):
            return None
        return found if found == found else None

    def compile(self, scope: Scope) -> nw.Expr:
        left, right = self.left.compile(scope), self.right.compile(scope)
        low, high = self.right.bounds(scope.schema)
        match self.sign:
            case "+":
                found = left + right
            case "-":
                found = left - right
            case "*":
                found = left * right
            case "%":
                found = scope.from_sql(lambda a, b: f"CASE WHEN {b} <> 0 THEN {a} % {b} END", left, right)
            case "/" if low > 0 or high < 0:
                found = left / right
            case "/":  # a guard, because one engine raises on division by zero and another gives infinity
                right = scope.let(right)
                found = nw.when(right != 0.0).then(left / right)
            case _:
                raise ValueError(f"{self.sign!r} is no arithmetic.")
        return found if scope.finite(self.left, self.right) else scope.real(found)


@dataclass(frozen=True, slots=True)
class Clip(Node):
    """A value moved to the nearer end where it lies outside."""

    inner: Node
    low: float
    high: float

    def bounds(self, schema: Schema) -> Interval:
        self.inner.bounds(schema)
        return self.low, self.high

    def apply(self, *values: Any) -> float | None:
        return None if values[0] is None else max(self.low, min(self.high, values[0]))

    def compile(self, scope: Scope) -> nw.Expr:
        return scope.let(self.inner.compile(scope)).clip(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Function(Node):
    """A magnitude, a whole number near by, a root or a logarithm: one of ``number_functions``."""

    name: str
    inner: Node

    def __post_init__(self) -> None:
        number_function(self.name)

    def bounds(self, schema: Schema) -> Interval:
        return number_function(self.name).bounds(self.inner.bounds(schema))

    def domain(self, schema: Schema) -> Domain:
        match number_function(self.name).domain:
            case "unknown":
                return None
            case "values":
                return Node.domain(self, schema)
            case "whole":
                found = Node.domain(self, schema)
                return whole_numbers(*self.bounds(schema)) if found is None else found
        raise ValueError(f"{self.name!r} says nothing that is known of what comes out.")

    def apply(self, *values: Any) -> float | None:
        (value,) = values
        return None if value is None else number_function(self.name).value(float(value))

    def compile(self, scope: Scope) -> nw.Expr:
        value = self.inner.compile(scope)
        return number_function(self.name).compile(scope, value, self.inner.bounds(scope.schema))


def _no_column(name: str, schema: Schema) -> ValueError:
    return ValueError(f"Column {name!r} is declared as {type(schema[name]).__name__}, of which tables know nothing.")


def whole_numbers(low: float, high: float) -> Domain:
    """The whole numbers between two, if they are few."""
    if not (math.isfinite(low) and math.isfinite(high)) or high - low >= MOST_VALUES:
        return None
    return tuple(range(math.ceil(low), math.floor(high) + 1))


def integral(node: Node) -> bool:
    """Whether whole numbers alone come out, by the look of it."""
    match node:
        case Number(constant=constant):
            return constant.is_integer()
        case Function(name=name) if number_function(name).domain == "whole":
            return True
        case Binary(sign=sign, left=left, right=right) if sign in "+-*%":
            return integral(left) and integral(right)
        case Clip(inner=inner, low=low, high=high):
            return integral(inner) and low.is_integer() and high.is_integer()
    return False
