"""The tree of an expression: what each node computes of a row, and between which numbers that lies.

A node is a value that an engine never sees; ``compiled`` says it in the engine's words, with a guard wherever engines
disagree on what has no value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from discreet.errors import extra
from discreet.schema import Bounded, Categories, Schema
from discreet.tables.intervals import ANYTHING, TRUTH, Interval, arithmetic, function
from discreet.tables.scope import Scope

with extra("tables"):
    import narwhals as nw

__all__ = ["Binary", "Clip", "Column", "Compare", "Function", "IsIn", "Logic", "Missing", "Node", "Number"]

_WHOLE = 2.0**52  # doubles of this size and more are whole numbers


class Node:
    """A function of one row."""

    __slots__ = ()

    def bounds(self, schema: Schema) -> Interval:
        """Numbers between which the value lies, from public facts; truth values lie in (0, 1)."""
        raise NotImplementedError

    def compiled(self, scope: Scope) -> nw.Expr:
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
            case Categories(values=values) as kind if not kind.textual:
                return float(min(values)), float(max(values))
        return ANYTHING

    def compiled(self, scope: Scope) -> nw.Expr:
        return scope.column(self.name)


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A constant."""

    value: float

    def bounds(self, schema: Schema) -> Interval:
        return self.value, self.value

    def compiled(self, scope: Scope) -> nw.Expr:
        return nw.lit(self.value, dtype=nw.Float64)


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """A sum, difference, product or quotient."""

    sign: str
    left: Node
    right: Node

    def bounds(self, schema: Schema) -> Interval:
        return arithmetic(self.sign, self.left.bounds(schema), self.right.bounds(schema))

    def compiled(self, scope: Scope) -> nw.Expr:
        left, right = self.left.compiled(scope), self.right.compiled(scope)
        if self.sign == "/":  # a guard, because one engine raises on division by zero and another gives infinity
            right = scope.let(right)
            return scope.real(nw.when(right != 0.0).then(left / right))
        return scope.real(left + right if self.sign == "+" else left - right if self.sign == "-" else left * right)


@dataclass(frozen=True, slots=True)
class Clip(Node):
    """A value moved to the nearer end where it lies outside."""

    inner: Node
    low: float
    high: float

    def bounds(self, schema: Schema) -> Interval:
        self.inner.bounds(schema)
        return self.low, self.high

    def compiled(self, scope: Scope) -> nw.Expr:
        return scope.let(self.inner.compiled(scope)).clip(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Function(Node):
    """A magnitude, a floor, a root or a logarithm."""

    name: str
    inner: Node

    def bounds(self, schema: Schema) -> Interval:
        return function(self.name, self.inner.bounds(schema))

    def compiled(self, scope: Scope) -> nw.Expr:
        inner = scope.let(self.inner.compiled(scope))
        match self.name:
            case "abs":
                return inner.abs()
            case "floor":  # within what every engine's whole numbers hold; beyond it nothing is left to cut
                small = nw.when(inner.abs() < _WHOLE).then(inner).otherwise(0.0)
                return nw.when(inner.abs() < _WHOLE).then(small.floor().cast(nw.Float64)).otherwise(inner)
            case "sqrt":
                return nw.when(inner >= 0.0).then(nw.when(inner >= 0.0).then(inner).otherwise(0.0).sqrt())
        return nw.when(inner > 0.0).then(nw.when(inner > 0.0).then(inner).otherwise(1.0).log())


@dataclass(frozen=True, slots=True)
class Condition(Node):
    """Base of what is true, false or missing."""

    def bounds(self, schema: Schema) -> Interval:
        return TRUTH

    def logical(self) -> bool:
        return True


_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Compare(Condition):
    """A comparison of two numbers."""

    sign: str
    left: Node
    right: Node

    def compiled(self, scope: Scope) -> nw.Expr:
        left, right = self.left.compiled(scope), self.right.compiled(scope)
        found: nw.Expr = _COMPARISONS[self.sign](left, right)
        return found


@dataclass(frozen=True, slots=True)
class Logic(Condition):
    """Conditions that must all hold, or of which one must, or one that must not."""

    sign: str
    parts: tuple[Node, ...]

    def compiled(self, scope: Scope) -> nw.Expr:
        parts = [part.compiled(scope) for part in self.parts]
        if self.sign == "~":
            return ~parts[0]
        join = operator.and_ if self.sign == "&" else operator.or_
        while len(parts) > 1:  # in pairs: an engine's tree is as deep as the logarithm of their number
            parts = [reduce(join, parts[at : at + 2]) for at in range(0, len(parts), 2)]
        return parts[0]


@dataclass(frozen=True, slots=True)
class IsIn(Condition):
    """Membership in a list."""

    inner: Node
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.values or len({isinstance(value, str) for value in self.values}) > 1:
            raise ValueError("is_in needs at least one value, all text or all numbers.")

    def bounds(self, schema: Schema) -> Interval:
        column = schema[self.inner.name] if isinstance(self.inner, Column) else None
        if isinstance(self.values[0], str):
            if not isinstance(column, Categories) or not column.textual:
                raise ValueError("Text is compared with something that is not a column of text Categories.")
            if unknown := sorted(set(self.values) - set(column.values)):
                raise ValueError(f"{unknown[0]!r} is not among the Categories of {self.inner.name!r}.")  # type: ignore[attr-defined]
        elif (
            isinstance(column, Categories) and column.textual
        ):  # an engine would fail on the first text that is no number
            raise ValueError("Numbers are compared with a column of text Categories: write the values as text.")
        return TRUTH

    def compiled(self, scope: Scope) -> nw.Expr:
        inner = self.inner.compiled(scope)
        return inner == self.values[0] if len(self.values) == 1 else scope.among(inner, self.values)


@dataclass(frozen=True, slots=True)
class Missing(Condition):
    """Whether there is no value."""

    inner: Node

    def compiled(self, scope: Scope) -> nw.Expr:
        return self.inner.compiled(scope).is_null()
