"""Functions of a text. Letters are those of ASCII where case matters and a space is a space: so that every engine, and
Python, make the same of every text, whatever language or collation is set.
"""

from __future__ import annotations

import math
import string
from dataclasses import dataclass
from typing import Any, Literal

from discreet.errors import extra
from discreet.schema import Schema
from discreet.tables.conditions import Condition
from discreet.tables.intervals import Interval
from discreet.tables.nodes import Kind, Node
from discreet.tables.scope import Scope

with extra("tables"):
    import narwhals as nw

__all__ = ["Contains", "Joined", "Length", "Like", "TextFunction", "like"]

_LOWER, _UPPER = string.ascii_lowercase, string.ascii_uppercase
_TO_LOWER, _TO_UPPER = str.maketrans(_UPPER, _LOWER), str.maketrans(_LOWER, _UPPER)


@dataclass(frozen=True, slots=True)
class TextFunction(Node):
    """A text in lower or upper case (ASCII letters), without spaces around it, or ``size`` characters from a place."""

    name: Literal["lower", "upper", "trim", "part"]
    inner: Node
    start: int = 1
    size: int = 0

    def kind(self, schema: Schema) -> Kind:
        return "text"

    def apply(self, *values: Any) -> str | None:
        (text,) = values
        if not isinstance(text, str):  # a private key of pandas may be anything
            return None
        match self.name:
            case "lower":
                return str(text.translate(_TO_LOWER))
            case "upper":
                return str(text.translate(_TO_UPPER))
            case "trim":
                return str(text.strip(" "))
            case "part":
                return str(text[self.start - 1 : self.start - 1 + self.size])
        raise ValueError(f"{self.name!r} is no function of a text.")

    def compile(self, scope: Scope) -> nw.Expr:
        forms = {
            "lower": lambda name: f"translate({name}, '{_UPPER}', '{_LOWER}')",
            "upper": lambda name: f"translate({name}, '{_LOWER}', '{_UPPER}')",
            "trim": scope.engine.trim,
            "part": lambda name: f"substr({name}, {self.start}, {self.size})",
        }
        return scope.text(scope.from_sql(forms[self.name], self.inner.compile(scope)))


@dataclass(frozen=True, slots=True)
class Joined(Node):
    """Texts one after another; missing where one is."""

    parts: tuple[Node, ...]

    def kind(self, schema: Schema) -> Kind:
        return "text"

    def apply(self, *values: Any) -> str | None:
        return "".join(values) if all(isinstance(value, str) for value in values) else None

    def compile(self, scope: Scope) -> nw.Expr:
        parts = [part.compile(scope) for part in self.parts]
        return scope.text(scope.from_sql(lambda *names: " || ".join(names), *parts))


@dataclass(frozen=True, slots=True)
class Length(Node):
    """How many characters a text has."""

    inner: Node

    def bounds(self, schema: Schema) -> Interval:
        return 0.0, math.inf

    def apply(self, *values: Any) -> float | None:
        return float(len(values[0])) if isinstance(values[0], str) else None

    def compile(self, scope: Scope) -> nw.Expr:
        return scope.from_sql(lambda name: f"CAST(length({name}) AS DOUBLE)", self.inner.compile(scope))


@dataclass(frozen=True, slots=True)
class Contains(Condition):
    """Whether a text starts or ends with a part, or contains it."""

    where: Literal["start", "end", "middle"]
    inner: Node
    part: str

    def apply(self, *values: Any) -> bool | None:
        (text,) = values
        if not isinstance(text, str):
            return None
        match self.where:
            case "start":
                return bool(text.startswith(self.part))
            case "end":
                return bool(text.endswith(self.part))
            case "middle":
                return self.part in text
        raise ValueError(f"{self.where!r} is no place in a text.")

    def compile(self, scope: Scope) -> nw.Expr:
        literal = scope.engine.literal(self.part)
        return scope.from_sql(lambda name: scope.engine.has(self.where, name, literal), self.inner.compile(scope))


@dataclass(frozen=True, slots=True)
class Like(Condition):
    """Whether all of a text matches a pattern of SQL: % is any text, _ any character, no sign escapes another."""

    inner: Node
    pattern: str

    def apply(self, *values: Any) -> bool | None:
        (text,) = values
        if not isinstance(text, str):
            return None
        ends = {0}  # how much of the text the pattern so far may have taken
        for sign in self.pattern:
            if sign == "%":
                ends = set(range(min(ends), len(text) + 1)) if ends else ends
            else:
                ends = {end + 1 for end in ends if end < len(text) and sign in ("_", text[end])}
        return len(text) in ends

    def compile(self, scope: Scope) -> nw.Expr:
        return scope.from_sql(lambda name: scope.engine.like(name, self.pattern), self.inner.compile(scope))


def like(inner: Node, pattern: str) -> Node:
    """SQL's LIKE; a part with % before it, after it, or both is looked for as such, which is quicker."""
    from discreet.tables.conditions import IsIn

    part = pattern.strip("%")
    if "%" in part or "_" in part:
        return Like(inner, pattern)
    before, after = pattern.startswith("%"), pattern.endswith("%")
    if not before and not after:
        return IsIn(inner, (part,))
    return Contains("middle" if before and after else "end" if before else "start", inner, part)
