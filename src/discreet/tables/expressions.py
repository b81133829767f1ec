"""What may be computed from a row: arithmetic, comparisons, membership. Nothing that looks at other rows or can fail.

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
(-inf, inf)
>>> (col("income") / col("hours")).clip(0, 50).bounds(schema)
(0.0, 50.0)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

from discreet.errors import extra, number
from discreet.schema import Bounded, Categories, Schema, Unlisted
from discreet.tables.intervals import ANYTHING, TRUTH, Interval, arithmetic, function
from discreet.tables.scope import Scope

with extra("tables"):
    import narwhals as nw

__all__ = ["Expression", "check", "col", "columns", "joined"]

_WHOLE = 2.0**52  # doubles of this size and more are whole numbers
MOST_PARTS, DEEPEST = 4_000, 100  # of an expression; the values of is_in do not count


class Expression:
    """A function of one row. Build it from ``col(name)`` with Python's operators; ``&``, ``|``, ``~`` for logic."""

    __slots__ = ()
    __hash__ = object.__hash__

    def bounds(self, schema: Schema) -> Interval:
        """Numbers between which the value lies, from public facts; truth values lie in (0, 1)."""
        raise NotImplementedError

    def compiled(self, scope: Scope) -> nw.Expr:
        """The engine's expression, for the frame of ``scope`` as it then is."""
        raise NotImplementedError

    def logical(self) -> bool:
        """Whether it is a condition."""
        return False

    def __add__(self, other: Any) -> Expression:
        return _Binary("+", self, _operand(other))

    def __radd__(self, other: Any) -> Expression:
        return _Binary("+", _operand(other), self)

    def __sub__(self, other: Any) -> Expression:
        return _Binary("-", self, _operand(other))

    def __rsub__(self, other: Any) -> Expression:
        return _Binary("-", _operand(other), self)

    def __mul__(self, other: Any) -> Expression:
        return _Binary("*", self, _operand(other))

    def __rmul__(self, other: Any) -> Expression:
        return _Binary("*", _operand(other), self)

    def __truediv__(self, other: Any) -> Expression:
        return _Binary("/", self, _operand(other))

    def __rtruediv__(self, other: Any) -> Expression:
        return _Binary("/", _operand(other), self)

    def __neg__(self) -> Expression:
        return _Binary("-", _operand(0.0), self)

    def __lt__(self, other: Any) -> Expression:
        return _Compare("<", self, _operand(other))

    def __le__(self, other: Any) -> Expression:
        return _Compare("<=", self, _operand(other))

    def __gt__(self, other: Any) -> Expression:
        return _Compare(">", self, _operand(other))

    def __ge__(self, other: Any) -> Expression:
        return _Compare(">=", self, _operand(other))

    def __eq__(self, other: Any) -> Expression:  # type: ignore[override]
        if isinstance(other, str):
            return self.is_in([other])
        return _Compare("==", self, _operand(other))

    def __ne__(self, other: Any) -> Expression:  # type: ignore[override]
        return _Logic("~", (self.__eq__(other),))

    def __and__(self, other: Any) -> Expression:
        return joined("&", (self, other))

    def __or__(self, other: Any) -> Expression:
        return joined("|", (self, other))

    def __invert__(self) -> Expression:
        return _Logic("~", (_condition(self),))

    def __bool__(self) -> bool:
        raise TypeError(
            "An expression has no truth value of its own: write & for and, | for or, ~ for not, with parentheses."
        )

    def clip(self, low: float, high: float) -> Expression:
        """The value, moved to the nearer end where it lies outside."""
        ends = Bounded(low, high)
        return _Clip(_numeric(self), ends.low, ends.high)

    def is_in(self, values: Iterable[Any]) -> Expression:
        """Whether the value is one of ``values``."""
        return _IsIn(self, tuple(value if isinstance(value, str) else _plain(value) for value in values))

    def is_missing(self) -> Expression:
        """Whether there is no value."""
        return _Missing(self)

    def abs(self) -> Expression:
        """The magnitude."""
        return _Function("abs", _numeric(self))

    def floor(self) -> Expression:
        """The largest whole number that is not above the value."""
        return _Function("floor", _numeric(self))

    def sqrt(self) -> Expression:
        """The square root; of a negative number, missing."""
        return _Function("sqrt", _numeric(self))

    def log(self) -> Expression:
        """The natural logarithm; of a number that is not positive, missing."""
        return _Function("log", _numeric(self))


def col(name: str) -> Expression:
    """The value of a declared column."""
    return _Col(name)


def _operand(value: Any) -> Expression:
    if isinstance(value, Expression):
        return _numeric(value)
    return _Number(_plain(value))


def _plain(value: Any) -> float:
    return number("operand", float(value) if isinstance(value, bool) else value, low=-1e300, high=1e300)


def _numeric(value: Expression) -> Expression:
    if value.logical():
        raise ValueError("A condition stands where a number is needed: compare numbers, combine conditions with & | ~.")
    return value


def joined(sign: Literal["&", "|"], conditions: Iterable[Any]) -> Expression:
    """Conditions side by side; those that are joined by the same sign already are not nested."""
    sides = [_condition(side) for side in conditions]
    inner = (side.parts if isinstance(side, _Logic) and side.sign == sign else (side,) for side in sides)
    return _Logic(sign, tuple(part for parts in inner for part in parts))


def _condition(value: Any) -> Expression:
    if not isinstance(value, Expression) or not value.logical():
        raise ValueError(
            "A value stands where a condition is needed: write for example col('age') >= 18, in parentheses "
            "beside & and |."
        )
    return value


@dataclass(frozen=True, slots=True, eq=False)
class _Col(Expression):
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


@dataclass(frozen=True, slots=True, eq=False)
class _Number(Expression):
    value: float

    def bounds(self, schema: Schema) -> Interval:
        return self.value, self.value

    def compiled(self, scope: Scope) -> nw.Expr:
        return nw.lit(self.value, dtype=nw.Float64)


@dataclass(frozen=True, slots=True, eq=False)
class _Binary(Expression):
    sign: str
    left: Expression
    right: Expression

    def bounds(self, schema: Schema) -> Interval:
        return arithmetic(self.sign, self.left.bounds(schema), self.right.bounds(schema))

    def compiled(self, scope: Scope) -> nw.Expr:
        left, right = self.left.compiled(scope), self.right.compiled(scope)
        if self.sign == "/":  # a guard, because one engine raises on division by zero and another gives infinity
            right = scope.let(right)
            return scope.real(nw.when(right != 0.0).then(left / right))
        return scope.real(left + right if self.sign == "+" else left - right if self.sign == "-" else left * right)


@dataclass(frozen=True, slots=True, eq=False)
class _Clip(Expression):
    inner: Expression
    low: float
    high: float

    def bounds(self, schema: Schema) -> Interval:
        self.inner.bounds(schema)
        return self.low, self.high

    def compiled(self, scope: Scope) -> nw.Expr:
        return scope.let(self.inner.compiled(scope)).clip(self.low, self.high)


@dataclass(frozen=True, slots=True, eq=False)
class _Function(Expression):
    name: str
    inner: Expression

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


@dataclass(frozen=True, slots=True, eq=False)
class _Condition(Expression):
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


@dataclass(frozen=True, slots=True, eq=False)
class _Compare(_Condition):
    sign: str
    left: Expression
    right: Expression

    def compiled(self, scope: Scope) -> nw.Expr:
        left, right = self.left.compiled(scope), self.right.compiled(scope)
        found: nw.Expr = _COMPARISONS[self.sign](left, right)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class _Logic(_Condition):
    sign: str
    parts: tuple[Expression, ...]

    def compiled(self, scope: Scope) -> nw.Expr:
        parts = [part.compiled(scope) for part in self.parts]
        if self.sign == "~":
            return ~parts[0]
        join = operator.and_ if self.sign == "&" else operator.or_
        while len(parts) > 1:  # in pairs: an engine's tree is as deep as the logarithm of their number
            parts = [reduce(join, parts[at : at + 2]) for at in range(0, len(parts), 2)]
        return parts[0]


@dataclass(frozen=True, slots=True, eq=False)
class _IsIn(_Condition):
    inner: Expression
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.values or len({isinstance(value, str) for value in self.values}) > 1:
            raise ValueError("is_in needs at least one value, all text or all numbers.")

    def bounds(self, schema: Schema) -> Interval:
        column = schema[self.inner.name] if isinstance(self.inner, _Col) else None
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


@dataclass(frozen=True, slots=True, eq=False)
class _Missing(_Condition):
    inner: Expression

    def compiled(self, scope: Scope) -> nw.Expr:
        return self.inner.compiled(scope).is_null()


def columns(expression: Expression) -> set[str]:
    """The columns that an expression looks at."""
    return {part.name for part in _parts(expression) if isinstance(part, _Col)}


def check(expression: Expression, schema: Schema, *, condition: bool) -> None:
    """Refuse, before data is read, what cannot be computed from declared columns."""
    (_condition if condition else _numeric)(expression)
    for part in _parts(expression):
        part.bounds(schema)
        if isinstance(part, _Col) and isinstance(schema[part.name], Unlisted):
            raise ValueError(f"Column {part.name!r} is Unlisted, but an expression needs Bounded or Categories.")
        if isinstance(part, (_Binary, _Compare, _Clip, _Function)):
            for name in [p.name for p in _children(part) if isinstance(p, _Col)]:
                kind = schema[name]
                if isinstance(kind, Categories) and kind.textual:
                    raise ValueError(
                        f"Column {name!r} is text, but a number is needed here; text can be compared with == and is_in."
                    )


def _children(expression: Expression) -> list[Expression]:
    values = [getattr(expression, name) for name in getattr(expression, "__dataclass_fields__", {})]
    flat = [item for value in values for item in (value if isinstance(value, tuple) else (value,))]
    return [item for item in flat if isinstance(item, Expression)]


def _parts(expression: Expression) -> list[Expression]:
    """Every part, the whole included. What is larger or deeper than an engine plans in seconds is refused."""
    found, level, depth = [expression], [expression], 0
    while level := [child for part in level for child in _children(part)]:
        found, depth = found + level, depth + 1
        if len(found) > MOST_PARTS or depth > DEEPEST:
            raise ValueError(
                f"The expression has more than {MOST_PARTS:,} parts or is nested more than {DEEPEST} deep: use "
                "is_in for a list of values, or prepare the column in the engine first."
            )
    return found
