"""What may be computed from a row: arithmetic, comparisons, membership. Nothing that looks at other rows or can fail.

An expression sees a column as the schema reads it: clipped to its bounds, missing values filled or missing. Numbers are
doubles, so nothing overflows; what has no value (a quotient by zero, the logarithm of a negative number) is missing,
and a missing condition keeps nothing. Bounds follow from the columns' bounds by interval arithmetic, and
a derived column is clipped to them, so that no rounding of an engine's logarithm can step outside.

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

import math
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet.errors import extra, number
from discreet.schema import Bounded, Categories, Schema, Unlisted

if TYPE_CHECKING:
    import narwhals as nw

__all__ = ["Expression", "col"]

Interval: TypeAlias = tuple[float, float]
ANYTHING: Interval = (-math.inf, math.inf)
TRUTH: Interval = (0.0, 1.0)


class Expression:
    """A function of one row. Build it from ``col(name)`` with Python's operators; ``&``, ``|``, ``~`` for logic."""

    __slots__ = ()
    __hash__ = object.__hash__

    def bounds(self, schema: Schema) -> Interval:
        """Numbers between which the value lies, from public facts; truth values lie in (0, 1)."""
        raise NotImplementedError

    def compiled(self, column: Callable[[str], nw.Expr]) -> nw.Expr:
        """The engine's expression; ``column`` gives the engine's expression of a column."""
        raise NotImplementedError

    def columns(self) -> frozenset[str]:
        """The columns it reads."""
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
        return _Logic("&", (_condition(self), _condition(other)))

    def __or__(self, other: Any) -> Expression:
        return _Logic("|", (_condition(self), _condition(other)))

    def __invert__(self) -> Expression:
        return _Logic("~", (_condition(self),))

    def __bool__(self) -> bool:
        raise TypeError("An expression has no truth value of its own: write & for and, | for or, ~ for not, with parentheses.")

    def clip(self, low: float, high: float) -> Expression:
        """The value, moved to the nearer end where it lies outside."""
        ends = Bounded(low, high)
        return _Clip(_numeric(self), ends.low, ends.high)

    def is_in(self, values: Iterable[Any]) -> Expression:
        """Whether the value is one of ``values``."""
        return _IsIn(self, tuple(values))

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
    if isinstance(value, bool):
        value = float(value)
    return _Number(number("operand", value, low=-1e300, high=1e300))


def _numeric(value: Expression) -> Expression:
    if value.logical():
        raise ValueError("A condition stands where a number is needed: compare numbers, combine conditions with & | ~.")
    return value


def _condition(value: Any) -> Expression:
    if not isinstance(value, Expression) or not value.logical():
        raise ValueError("A value stands where a condition is needed: write for example col('age') >= 18, in parentheses "
                         "beside & and |.")
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

    def compiled(self, column: Callable[[str], nw.Expr]) -> nw.Expr:
        return column(self.name)

    def columns(self) -> frozenset[str]:
        return frozenset([self.name])


@dataclass(frozen=True, slots=True, eq=False)
class _Number(Expression):
    value: float

    def bounds(self, schema: Schema) -> Interval:
        return self.value, self.value

    def compiled(self, column: Callable[[str], nw.Expr]) -> nw.Expr:
        with extra("tables"):
            import narwhals as nw
        return nw.lit(self.value, dtype=nw.Float64)

    def columns(self) -> frozenset[str]:
        return frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class _Binary(Expression):
    sign: str
    left: Expression
    right: Expression

    def bounds(self, schema: Schema) -> Interval:
        (a, b), (c, d) = self.left.bounds(schema), self.right.bounds(schema)
        if self.sign == "+":
            return a + c, b + d
        if self.sign == "-":
            return a - d, b - c
        if self.sign == "/" and c <= 0 <= d:
            return ANYTHING
        corners = [x * y if self.sign == "*" else x / y for x in (a, b) for y in (c, d)]
        return (min(corners), max(corners)) if all(map(math.isfinite, corners)) else ANYTHING

    def compiled(self, column: Callable[[str], nw.Expr]) -> nw.Expr:
        left, right = self.left.compiled(column), self.right.compiled(column)
        if self.sign == "/":  # a guard, because one engine raises on division by zero and another gives infinity
            with extra("tables"):
                import narwhals as nw
            return nw.when(right != 0.0).then(left / right)
        return left + right if self.sign == "+" else left - right if self.sign == "-" else left * right

    def columns(self) -> frozenset[str]:
        return self.left.columns() | self.right.columns()


@dataclass(frozen=True, slots=True, eq=False)
class _Clip(Expression):
    inner: Expression
    low: float
    high: float

    def bounds(self, schema: Schema) -> Interval:
        self.inner.bounds(schema)
        return self.low, self.high

    def compiled(self, column: Callable[[str], nw.Expr]) -> nw.Expr:
        return self.inner.compiled(column).clip(self.low, self.high)

    def columns(self) -> frozenset[str]:
        return self.inner.columns()


@dataclass(frozen=True, slots=True, eq=False)
class _Function(Expression):
    name: str
    inner: Expression

    def bounds(self, schema: Schema) -> Interval:
        low, high = self.inner.bounds(schema)
        match self.name:
            case "abs":
                return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
            case "floor":
                return (math.floor(low) if math.isfinite(low) else low), (math.floor(high) if math.isfinite(high) else high)
            case "sqrt":
                return 0.0, math.sqrt(max(high, 0.0))
        return (math.log(low) if low > 0 else -math.inf), (math.log(high) if high > 0 else math.inf)

    def compiled(self, column: Callable[[str], nw.Expr]) -> nw.Expr:
        with extra("tables"):
            import narwhals as nw
        inner = self.inner.compiled(column)
        match self.name:
            case "abs":
                return inner.abs()
            case "floor":
                return inner.floor()
            case "sqrt":
                return nw.when(inner >= 0.0).then(nw.when(inner >= 0.0).then(inner).otherwise(0.0).sqrt())
        return nw.when(inner > 0.0).then(nw.when(inner > 0.0).then(inner).otherwise(1.0).log())

    def columns(self) -> frozenset[str]:
        return self.inner.columns()


@dataclass(frozen=True, slots=True, eq=False)
class _Condition(Expression):
    """Base of what is true, false or missing."""

    def bounds(self, schema: Schema) -> Interval:
        return TRUTH

    def logical(self) -> bool:
        return True


@dataclass(frozen=True, slots=True, eq=False)
class _Compare(_Condition):
    sign: str
    left: Expression
    right: Expression

    def compiled(self, column: Callable[[str], nw.Expr]) -> nw.Expr:
        left, right = self.left.compiled(column), self.right.compiled(column)
        match self.sign:
            case "<":
                return left < right
            case "<=":
                return left <= right
            case ">":
                return left > right
            case ">=":
                return left >= right
        return left == right

    def columns(self) -> frozenset[str]:
        return self.left.columns() | self.right.columns()


@dataclass(frozen=True, slots=True, eq=False)
class _Logic(_Condition):
    sign: str
    parts: tuple[Expression, ...]

    def compiled(self, column: Callable[[str], nw.Expr]) -> nw.Expr:
        first, *rest = (part.compiled(column) for part in self.parts)
        return ~first if not rest else first & rest[0] if self.sign == "&" else first | rest[0]

    def columns(self) -> frozenset[str]:
        return frozenset().union(*(part.columns() for part in self.parts))


@dataclass(frozen=True, slots=True, eq=False)
class _IsIn(_Condition):
    inner: Expression
    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.values or len({isinstance(value, str) for value in self.values}) > 1:
            raise ValueError("is_in needs at least one value, all text or all numbers.")

    def bounds(self, schema: Schema) -> Interval:
        if isinstance(self.values[0], str):
            column = schema[self.inner.name] if isinstance(self.inner, _Col) else None
            if not isinstance(column, Categories) or not column.textual:
                raise ValueError("Text is compared with something that is not a column of text Categories.")
            if unknown := sorted(set(self.values) - set(column.values)):
                raise ValueError(f"{unknown[0]!r} is not among the Categories of {self.inner.name!r}.")  # type: ignore[attr-defined]
        return TRUTH

    def compiled(self, column: Callable[[str], nw.Expr]) -> nw.Expr:
        inner = self.inner.compiled(column)
        found: nw.Expr = reduce(operator.or_, [inner == value for value in self.values])
        return found

    def columns(self) -> frozenset[str]:
        return self.inner.columns()


@dataclass(frozen=True, slots=True, eq=False)
class _Missing(_Condition):
    inner: Expression

    def compiled(self, column: Callable[[str], nw.Expr]) -> nw.Expr:
        return self.inner.compiled(column).is_null()

    def columns(self) -> frozenset[str]:
        return self.inner.columns()


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
                    raise ValueError(f"Column {name!r} is text, but a number is needed here; text can be compared with == "
                                     "and is_in.")


def _children(expression: Expression) -> list[Expression]:
    values = [getattr(expression, name) for name in getattr(expression, "__dataclass_fields__", {})]
    flat = [item for value in values for item in (value if isinstance(value, tuple) else (value,))]
    return [item for item in flat if isinstance(item, Expression)]


def _parts(expression: Expression) -> list[Expression]:
    return [expression, *(part for child in _children(expression) for part in _parts(child))]
