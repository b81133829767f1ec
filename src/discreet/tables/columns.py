"""How a declared column is read: cast, clipped, filled, put in steps, bins or codes. One row at a time, and nothing
fails.

Columns have names of our own from the source on, because engines take ``V0`` and ``v0`` for one name, and a column of
the table must never stand where a clipped one is meant.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from discreet.encoding.sources import Kind, Source
from discreet.encoding.values import KINDS
from discreet.errors import extra
from discreet.moments import Dates, Times
from discreet.schema import Bounded, Categories, Schema, Unlisted, Value
from discreet.tables.bounding import Field
from discreet.tables.expressions import Expression, columns
from discreet.tables.fixed_point import FINE, FixedPoint
from discreet.tables.scope import Scope

with extra("tables"):
    import narwhals as nw

__all__ = ["Bins", "Columns", "even_edges"]

LONG = 1000  # categories


@dataclass(frozen=True)
class Bins:
    """A bounded column cut at public edges: bin b holds edges[b] ≤ x < edges[b + 1], the last one its upper end too."""

    column: str
    edges: tuple[float, ...]

    @property
    def count(self) -> int:
        """How many bins there are."""
        return len(self.edges) - 1


@dataclass(frozen=True)
class Columns:
    """The declared columns of a source, as expressions of its engine."""

    source: Source
    schema: Schema
    derived: Mapping[str, Expression]

    def scope(self, used: Collection[str]) -> Scope:
        """The source's rows with the derived columns, clipped to their bounds: each a step, as later ones may use it.

        A long list of categories that is ``used`` is looked up once: as many comparisons would take seconds to plan.
        """
        frame = self.source.frame
        for name in {*used, *(part for expression in self.derived.values() for part in columns(expression))}:
            if self._long(name):
                values = _numbers(self.schema[name])  # type: ignore[arg-type]
                frame = self.source.engine.among(frame, self._own(name), values, f"in_{self._own(name)}")
        scope = Scope(nw.from_native(self._told_apart(frame)), self._operand, self.source.engine)
        for name, expression in self.derived.items():
            declared = self.schema[name]
            if self._kind(name) == "text":
                value = scope.text(expression.compiled(scope))
            else:
                value = scope.let(expression.compiled(scope).cast(nw.Float64))  # a condition counts as 0 or 1
                scope.unclipped[name] = value
                value = value.clip(declared.low, declared.high) if isinstance(declared, Bounded) else value
            scope.frame = scope.frame.with_columns(value.alias(self._own(name)))
        return scope

    def _told_apart(self, frame: Any) -> Any:
        """In pandas a column of text may hold anything, and was read as the classes of ``values.identity``: expressions
        see the texts among them."""
        if self.source.answers != "pandas":
            return frame
        engine, named = self.source.engine, [name for name, kind in self.schema.items() if isinstance(kind, Unlisted)]
        own = [self._own(name) for name in named if name not in self.derived]
        marks = {mark: f"starts_with({{0}}, '{mark}')" for mark in KINDS}
        others = " OR ".join(test for mark, test in marks.items() if mark != "text:")
        form = f"CASE WHEN {marks['text:']} THEN substr({{0}}, 6) WHEN {others} THEN NULL ELSE {{0}} END AS text_{{0}}"
        return engine.project(frame, ["*", *(form.format(column) for column in own)]) if own else frame

    def _kind(self, name: str) -> Kind:
        """How a column is held."""
        if name not in self.derived:
            return self.source.kinds[name]
        declared = self.schema[name]
        return (
            "text"
            if isinstance(declared, Unlisted) or (isinstance(declared, Categories) and declared.textual)
            else "number"
        )

    def _long(self, name: str) -> bool:
        declared = self.schema.get(name)
        return isinstance(declared, Categories) and len(declared.values) > LONG and _span(declared) is None

    def _own(self, name: str) -> str:
        return f"z{list(self.derived).index(name)}" if name in self.derived else self.source.names[name]

    def raw(self, name: str) -> nw.Expr:
        """A column as the source has it, of the kind that the declaration asks for."""
        return nw.col(self._own(name))

    def read(self, name: str) -> nw.Expr:
        """A column as the schema reads it: clipped, filled; an unknown category is missing."""
        declared, raw = self.schema[name], self.raw(name)
        if isinstance(declared, Bounded) and name not in self.derived:
            clipped = raw.clip(declared.low, declared.high)
            clipped = (clipped + 0.5).floor().cast(nw.Float64) if declared.whole else clipped
            return clipped if declared.missing == "drop" else clipped.fill_null(declared.missing)
        if isinstance(declared, Categories):
            return nw.when(self.known(name)).then(raw)
        if isinstance(declared, (Dates, Times)):
            return nw.when((raw >= declared.low) & (raw <= declared.high)).then(raw)
        return raw

    def _operand(self, name: str) -> nw.Expr:
        """A column in an expression: a double, since an engine's small whole numbers would overflow."""
        if isinstance(self.schema[name], Unlisted) and self.source.answers == "pandas" and name not in self.derived:
            return nw.col(f"text_{self._own(name)}")
        return self.read(name) if self._kind(name) == "text" else self.read(name).cast(nw.Float64)

    def odd(self, names: Collection[str], scope: Scope) -> nw.Expr | None:
        """Whether a row has a NaN among these columns, which were read as numbers or missing: an engine that does what
        it was told never says so. None if none of them holds doubles.
        """
        doubles = [
            nw.col(own)
            for name, own in self.source.names.items()
            if name in names and self.source.kinds[name] == "number"
        ]
        doubles += [value for name, value in scope.unclipped.items() if name in names]
        return reduce(operator.or_, [value.is_nan() for value in doubles]) if doubles else None

    # --- categories --------------------------------------------------------------------------------------------------

    def known(self, name: str) -> nw.Expr:
        """Whether a row's category is one of those declared."""
        declared = self.schema[name]
        assert isinstance(declared, Categories)
        raw = self.raw(name)
        if self._long(name):
            return nw.col(f"in_{self._own(name)}")
        if span := _span(declared):
            if self._kind(name) == "integer":
                return (raw >= span[0]) & (raw <= span[1])
            return raw.clip(float(span[0]), float(span[1])).floor() == raw  # the floor of a huge number fails in Spark
        return raw.is_in(_numbers(declared))

    def kept(self, name: str, *, early: bool) -> nw.Expr | None:
        """The rows that have a group by this key; none if that is seen later: ``other`` takes all, or unless ``early``
        unknown categories are dropped after the groups are formed, which is cheaper."""
        declared = self.schema[name]
        if isinstance(declared, Unlisted):
            return ~self.raw(name).is_null()
        assert isinstance(declared, Categories)
        later = _span(declared) is None and not early and not self._long(name)
        return None if declared.other is not None or later else self.known(name)

    def key(self, number: int, name: str) -> tuple[Field, nw.Expr]:
        """A key as a field of the scan: consecutive whole numbers by their place, anything else as it is."""
        declared, field = self.schema[name], f"k{number}"
        if isinstance(declared, Categories) and (span := _span(declared)):
            code = self.raw(name).cast(nw.Int64) - span[0]
            code = code if declared.other is None else nw.when(self.known(name)).then(code)
            return Field(field, size=span[1] - span[0] + 1, nullable=declared.other is not None), code
        gathered = isinstance(declared, Categories) and declared.other is not None
        return Field(field, kind=self._kind(name)), self.read(name) if gathered else self.raw(name)

    def late(self, number: int, name: str) -> nw.Expr | None:
        """The groups of a key that count, where ``kept`` left them all."""
        declared = self.schema[name]
        if (
            isinstance(declared, Categories)
            and declared.other is None
            and _span(declared) is None
            and not self._long(name)
        ):
            return nw.col(f"k{number}").is_in(_numbers(declared))
        return None

    def labels(self, name: str) -> Callable[[Any], Value | None]:
        """The category that a group's value means, or none."""
        declared = self.schema[name]
        if not isinstance(declared, Categories):
            # one of -0.0 and 0.0, which are equal
            return lambda found: found + 0.0 if isinstance(found, float) else found
        span = _span(declared)
        names = {value - span[0] if span else value: value for value in declared.values}  # type: ignore[operator]
        return lambda found: declared.other if found is None else names.get(found)

    def identity(self, name: str) -> tuple[Field, nw.Expr]:
        """A column whose different values are counted."""
        if name not in self.schema:  # the unit, which need not be declared
            return Field("d", kind=self.source.kinds[name]), nw.col(self.source.names[name])
        return Field("d", kind=self._kind(name)), self.read(name)

    # --- numbers -----------------------------------------------------------------------------------------------------

    def grid(self, name: str, steps: int = FINE) -> FixedPoint:
        """The grid of a bounded column."""
        declared = self.schema[name]
        if not isinstance(declared, Bounded):
            raise ValueError(
                f"Column {name!r} is declared as {type(declared).__name__}, but this needs Bounded(low, high)."
            )
        return FixedPoint(declared, steps)

    def steps(self, number: int, name: str, steps: int, kind: Any = nw.Int64) -> tuple[Field, nw.Expr]:
        """A bounded column in whole steps of its grid, at most 2^30."""
        grid = self.grid(name, steps)
        value = ((self.read(name) - grid.bounds.low) * grid.scale + 0.5).floor().cast(kind)
        return Field(f"v{number}", size=grid.top + 1, nullable=grid.bounds.missing == "drop"), value

    def bin(self, bins: Bins) -> tuple[Field, nw.Expr]:
        """The number of a row's bin."""
        value, low = self.read(bins.column), bins.edges[0]
        if bins.edges == even_edges(low, bins.edges[-1], bins.count):
            width = (bins.edges[-1] - low) / bins.count
            number = ((value - low) / width).floor().clip(0.0, float(bins.count - 1)).cast(nw.Int64)
        else:
            inner = [(value >= edge).cast(nw.Int64) for edge in bins.edges[1:-1]]
            number = sum(inner, (value >= value).cast(nw.Int64) - 1)  # from zero, or missing where the value is
        return Field("b", size=bins.count), number


def even_edges(low: float, high: float, count: int) -> tuple[float, ...]:
    """``count`` bins of one width."""
    return (*(low + (high - low) * i / count for i in range(count)), high)


def _span(declared: Categories) -> tuple[int, int] | None:
    """First and last of categories that are consecutive whole numbers: such a key is its own code."""
    whole = [value for value in declared.values if isinstance(value, int)]
    if len(whole) < len(declared.values) or max(whole) - min(whole) + 1 != len(whole):
        return None
    return int(min(whole)), int(max(whole))


def _numbers(declared: Categories) -> list[Value]:
    return [value if isinstance(value, str) else float(value) for value in declared.values]
