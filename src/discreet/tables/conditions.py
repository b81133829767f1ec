"""Conditions of a row: comparisons, logic, membership. True, false or missing."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from discreet.errors import extra
from discreet.schema import Categories, Schema
from discreet.tables.intervals import TRUTH, Interval
from discreet.tables.mistakes import mistake, nearest
from discreet.tables.nodes import Column, Domain, Kind, Node
from discreet.tables.scope import Scope

with extra("tables"):
    import narwhals as nw

__all__ = ["Compare", "Condition", "IsIn", "Logic", "Missing"]


@dataclass(frozen=True, slots=True)
class Condition(Node):
    """Base of what is true, false or missing."""

    def bounds(self, schema: Schema) -> Interval:
        return TRUTH

    def kind(self, schema: Schema) -> Kind:
        return "truth"

    def domain(self, schema: Schema) -> Domain:
        return False, True

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
    """A comparison of two numbers, or of two points in time; of texts, whether they are equal."""

    sign: str
    left: Node
    right: Node

    def __post_init__(self) -> None:
        if self.sign not in _COMPARISONS:
            raise ValueError(f"{self.sign!r} is no comparison: there are {', '.join(_COMPARISONS)}.")

    def apply(self, *values: Any) -> bool | None:
        return None if None in values else bool(_COMPARISONS[self.sign](*values))

    def compile(self, scope: Scope) -> nw.Expr:
        left, right = self.left.compile(scope), self.right.compile(scope)
        found: nw.Expr = _COMPARISONS[self.sign](left, right)
        return found


@dataclass(frozen=True, slots=True)
class Logic(Condition):
    """Conditions that must all hold, or of which one must, or one that must not."""

    sign: str
    parts: tuple[Node, ...]

    def __post_init__(self) -> None:
        if self.sign not in ("&", "|", "~"):
            raise ValueError(f"{self.sign!r} joins no conditions: there are &, | and ~.")

    def apply(self, *values: Any) -> bool | None:
        if self.sign == "~":
            return None if values[0] is None else not values[0]
        decisive = self.sign == "|"  # one such part decides; otherwise a missing one does
        return decisive if decisive in values else None if None in values else not decisive

    def compile(self, scope: Scope) -> nw.Expr:
        parts = [part.compile(scope) for part in self.parts]
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
            said = "needs at least one value, all text or all numbers."
            raise mistake(f"is_in {said}", f"IN {said}")

    def bounds(self, schema: Schema) -> Interval:
        column = schema[self.inner.name] if isinstance(self.inner, Column) else None
        if isinstance(self.values[0], str):
            if self.inner.kind(schema) != "text":
                raise mistake(
                    "Text is compared with something that is not a column of text Categories.",
                    "Text is compared with something that holds no text: write numbers without quotes.",
                )
            if isinstance(column, Categories) and (unknown := sorted(set(self.values) - set(column.values))):
                raise _unknown(unknown[0], self.inner.name, column)  # type: ignore[attr-defined]
        elif self.inner.kind(schema) == "text":  # an engine would fail on the first text that is no number
            raise mistake(
                "Numbers are compared with a column of text Categories: write the values as text.",
                "Numbers are compared with text: write the values in single quotes.",
            )
        return TRUTH

    def apply(self, *values: Any) -> bool | None:
        return None if values[0] is None else values[0] in self.values

    def compile(self, scope: Scope) -> nw.Expr:
        inner = self.inner.compile(scope)
        return inner == self.values[0] if len(self.values) == 1 else scope.among(inner, self.values)


@dataclass(frozen=True, slots=True)
class Missing(Condition):
    """Whether there is no value."""

    inner: Node

    def apply(self, *values: Any) -> bool:
        return values[0] is None

    def compile(self, scope: Scope) -> nw.Expr:
        return self.inner.compile(scope).is_null()


def _unknown(value: str, name: str, column: Categories) -> ValueError:
    if value == column.other:
        said = f"{value!r} is the group of rows with none of the values that {name!r} declares: to select them, write"
        return mistake(f"{said} col({name!r}).is_missing().", f"{said} {name} IS NULL.")
    near = nearest(value, map(str, column.values))
    meant = f"; did you mean {near!r}?" if near else "."
    said = f"{value!r} is not among the"
    return mistake(f"{said} Categories of {name!r}{meant}", f"{said} categories that {name!r} is declared with{meant}")
