"""Values that are chosen among others: CASE, COALESCE, the larger of two, a look into a public table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from discreet.errors import extra
from discreet.schema import Schema, Value
from discreet.tables.intervals import ANYTHING, Interval
from discreet.tables.nodes import Domain, Kind, Node
from discreet.tables.scope import Scope

with extra("tables"):
    import narwhals as nw

__all__ = ["Among", "AsNumber", "Case", "Coalesce", "Extreme", "Lookup"]


def _hull(intervals: Iterable[Interval]) -> Interval:
    ends = list(intervals)
    return min(low for low, _ in ends), max(high for _, high in ends)


def _union(domains: Iterable[Domain]) -> Domain:
    found = list(domains)
    known = [values for values in found if values is not None]
    return tuple(dict.fromkeys(value for values in known for value in values)) if len(known) == len(found) else None


@dataclass(frozen=True, slots=True)
class Case(Node):
    """The value of the first condition that holds; if none does, ``otherwise``, or missing."""

    conditions: tuple[Node, ...]
    values: tuple[Node, ...]
    otherwise: Node | None = None

    @property
    def _branches(self) -> tuple[Node, ...]:
        return self.values if self.otherwise is None else (*self.values, self.otherwise)

    def bounds(self, schema: Schema) -> Interval:
        return _hull(branch.bounds(schema) for branch in self._branches)

    def kind(self, schema: Schema) -> Kind:
        return self.values[0].kind(schema)

    def domain(self, schema: Schema) -> Domain:
        return _union(branch.domain(schema) for branch in self._branches)

    def apply(self, *values: Any) -> Any:
        count = len(self.conditions)
        chosen = next((value for held, value in zip(values, values[count:], strict=False) if held is True), _NONE)
        return chosen if chosen is not _NONE else None if self.otherwise is None else values[-1]

    def compile(self, scope: Scope) -> nw.Expr:
        # conditions first: what they need becomes columns of the frame, on which the values then stand
        held = [scope.let(condition.compile(scope)) for condition in self.conditions]
        values = [value.compile(scope) for value in self.values]
        found = None if self.otherwise is None else self.otherwise.compile(scope)
        for condition, value in zip(reversed(held), reversed(values), strict=True):
            branch = nw.when(condition).then(value)
            found = branch if found is None else branch.otherwise(found)
        assert found is not None
        return found


_NONE = object()


@dataclass(frozen=True, slots=True)
class Coalesce(Node):
    """The first of some values that is not missing."""

    parts: tuple[Node, ...]

    def bounds(self, schema: Schema) -> Interval:
        return _hull(part.bounds(schema) for part in self.parts)

    def kind(self, schema: Schema) -> Kind:
        return self.parts[0].kind(schema)

    def domain(self, schema: Schema) -> Domain:
        return _union(part.domain(schema) for part in self.parts)

    def apply(self, *values: Any) -> Any:
        return next((value for value in values if value is not None), None)

    def compile(self, scope: Scope) -> nw.Expr:
        *parts, last = [scope.let(part.compile(scope)) for part in self.parts]
        return reduce(lambda rest, part: nw.when(~part.is_null()).then(part).otherwise(rest), reversed(parts), last)


@dataclass(frozen=True, slots=True)
class Extreme(Node):
    """The largest or smallest of some numbers, of those that are not missing."""

    largest: bool
    parts: tuple[Node, ...]

    def bounds(self, schema: Schema) -> Interval:
        # each end by itself would be tighter, but a missing part leaves the others
        if len(self.parts) == 1:
            return self.parts[0].bounds(schema)
        ends, pick = [part.bounds(schema) for part in self.parts], max if self.largest else min
        whole = _hull(ends)
        certain = [
            bounds for part, bounds in zip(self.parts, ends, strict=True) if not part.children() and _is_constant(part)
        ]
        if not certain:
            return whole
        edge = pick(low for low, _ in certain)  # a constant is never missing, so it limits from one side
        return (max(whole[0], edge), whole[1]) if self.largest else (whole[0], min(whole[1], edge))

    def kind(self, schema: Schema) -> Kind:
        return self.parts[0].kind(schema)

    def domain(self, schema: Schema) -> Domain:
        return _union(part.domain(schema) for part in self.parts)

    def apply(self, *values: Any) -> Any:
        found = [value for value in values if value is not None]
        return (max(found) if self.largest else min(found)) if found else None

    def compile(self, scope: Scope) -> nw.Expr:
        parts = [scope.let(part.compile(scope)) for part in self.parts]

        def better(a: nw.Expr, b: nw.Expr) -> nw.Expr:
            wins = (a >= b) if self.largest else (a <= b)
            return scope.let(nw.when(b.is_null() | wins).then(a).otherwise(b))

        return reduce(better, parts)


def _is_constant(part: Node) -> bool:
    return hasattr(part, "constant")


@dataclass(frozen=True, slots=True)
class AsNumber(Node):
    """A condition as 1 or 0."""

    inner: Node

    def bounds(self, schema: Schema) -> Interval:
        return self.inner.bounds(schema)

    def domain(self, schema: Schema) -> Domain:
        return 0, 1

    def apply(self, *values: Any) -> float | None:
        return None if values[0] is None else float(values[0])

    def compile(self, scope: Scope) -> nw.Expr:
        return self.inner.compile(scope).cast(nw.Float64)


@dataclass(frozen=True, slots=True)
class Among(Node):
    """A value if it is one of a public list, otherwise ``other``, or missing: so its categories are declared."""

    inner: Node
    listed: tuple[Value, ...]
    other: Value | None = None

    def bounds(self, schema: Schema) -> Interval:
        values = [value for value in self.domain(schema) or () if not isinstance(value, str)]
        return (float(min(values)), float(max(values))) if values else ANYTHING

    def kind(self, schema: Schema) -> Kind:
        return self.inner.kind(schema)

    def domain(self, schema: Schema) -> Domain:
        return self.listed if self.other is None else tuple(dict.fromkeys((*self.listed, self.other)))

    def apply(self, *values: Any) -> Any:
        return values[0] if values[0] in self.listed else self.other

    def compile(self, scope: Scope) -> nw.Expr:
        inner = scope.let(self.inner.compile(scope))
        found = nw.when(scope.among(inner, self.listed)).then(inner)
        if self.other is None:
            return found
        return found.otherwise(nw.lit(self.other if isinstance(self.other, str) else float(self.other)))


@dataclass(frozen=True, slots=True)
class Lookup(Node):
    """What a public table says of a value; missing where it says nothing."""

    inner: Node
    keys: tuple[Value, ...]
    found: tuple[Value, ...]

    def bounds(self, schema: Schema) -> Interval:
        values = [value for value in self.found if not isinstance(value, str)]
        return (float(min(values)), float(max(values))) if values else ANYTHING

    def kind(self, schema: Schema) -> Kind:
        return "text" if isinstance(self.found[0], str) else "number"

    def domain(self, schema: Schema) -> Domain:
        return tuple(dict.fromkeys(self.found))

    def apply(self, *values: Any) -> Any:
        return dict(zip(self.keys, self.found, strict=True)).get(values[0])

    def compile(self, scope: Scope) -> nw.Expr:
        def literal(value: Value) -> str:
            return scope.engine.literal(value) if isinstance(value, str) else f"CAST({float(value)!r} AS DOUBLE)"

        pairs = " ".join(f"WHEN {literal(k)} THEN {literal(v)}" for k, v in zip(self.keys, self.found, strict=True))
        found = scope.from_sql(lambda name: f"CASE {name} {pairs} END", self.inner.compile(scope))
        return scope.text(found) if isinstance(self.found[0], str) else found
