"""How a declared column is read: cast, clipped, filled, put in steps, bins or codes. One row at a time, and nothing
fails.

Columns have names of our own from the source on, because engines take ``V0`` and ``v0`` for one name, and a column of
the table must never stand where a clipped one is meant.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dates import Dates, Times
from discreet.encoding.sources import Kind, Source
from discreet.encoding.values import KINDS
from discreet.errors import extra
from discreet.schema import Bounded, Categories, Schema, Unlisted, Value
from discreet.tables.bounding import Field
from discreet.tables.expressions import Expression, columns
from discreet.tables.fixed_point import FINE, FixedPoint
from discreet.tables.scope import Scope, with_steps

with extra("tables"):
    import narwhals as nw

__all__ = ["BinCut", "Columns", "ComputedRows", "even_edges"]

LONG = 1000  # categories


@dataclass(frozen=True)
class BinCut:
    """A bounded column cut at public edges: bin b holds edges[b] ≤ x < edges[b + 1], the last one its upper end too."""

    column: str
    edges: tuple[float, ...]

    @property
    def count(self) -> int:
        """How many bins there are."""
        return len(self.edges) - 1


@dataclass(frozen=True)
class ComputedRows:
    """Rows with derived columns, a scope for what else is computed of them, and derived columns before they were
    clipped to their bounds."""

    frame: Any
    scope: Scope
    unclipped: Mapping[str, nw.Expr]


@dataclass(frozen=True)
class Columns:
    """The declared columns of a source, as expressions of its engine."""

    source: Source
    schema: Schema
    derived: Mapping[str, Expression]
    missing_groups: frozenset[str] = frozenset()  # derived keys whose missing values are a group, as in SQL

    def compute(self, used: Collection[str], late: Collection[str] = ()) -> ComputedRows:
        """The source's rows with the derived columns that are ``used``, clipped to their bounds.

        A long list of categories is looked up once, as many comparisons would take seconds to plan; that of a ``late``
        column not here.
        """
        frame, derived = self.source.frame, {name: made for name, made in self.derived.items() if name in used}
        looked_up = {*used, *(name for made in derived.values() for name in columns(made))} - set(late)
        for name in self.schema:
            if name in looked_up and self._is_looked_up(name):
                values = _numbers(self.schema[name])  # type: ignore[arg-type]
                frame = self.source.engine.among(frame, self._own(name), values, f"in_{self._own(name)}")
        frame, scope = (
            nw.from_native(self._separate_kinds(frame)),
            Scope(self._operand, self.source.engine, self.schema),
        )
        unclipped: dict[str, nw.Expr] = {}
        for level in _levels(derived):  # those that stand on none of each other side by side
            scopes = [scope.beside() for _ in level]
            for name, own in zip(level, scopes, strict=True):
                value = self._derive(name, derived[name], own)
                if value is not None:
                    unclipped[name] = value
            frame = with_steps(frame, scopes)
        return ComputedRows(frame, scope, unclipped)

    def _derive(self, name: str, expression: Expression, scope: Scope) -> nw.Expr | None:
        """Note the steps of a derived column; its value before it is clipped, if it is a number."""
        declared, value = self.schema[name], expression.compile(scope)
        if self._kind(name) == "text":
            scope.let(scope.text(value), self._own(name))
            return None
        value = scope.let(value.cast(nw.Float64))  # a condition counts as 0 or 1
        clipped = value.clip(declared.low, declared.high) if isinstance(declared, Bounded) else value
        scope.let(clipped, self._own(name))
        return value

    def _separate_kinds(self, frame: Any) -> Any:
        """In pandas a column of text may hold anything, and was read as the classes of ``values.identity``: expressions
        see the texts among them."""
        if not self.source.pandas:
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

    def _is_looked_up(self, name: str) -> bool:
        """Whether a column's categories are too many to be written out. One that is derived has no others."""
        declared = self.schema.get(name)
        listed = isinstance(declared, Categories) and name not in self.derived
        return listed and len(declared.values) > LONG and self._span(name) is None

    def _span(self, name: str) -> tuple[int, int] | None:
        """First and last of categories that are consecutive whole numbers: such a key is its own code."""
        if name not in self._spans:
            self._spans[name] = _span(self.schema[name])
        return self._spans[name]

    @cached_property
    def _spans(self) -> dict[str, tuple[int, int] | None]:
        return {}

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
        if isinstance(declared, Categories) and name not in self.derived:
            return nw.when(self.is_declared(name)).then(raw)
        if isinstance(declared, (Dates, Times)):
            return nw.when((raw >= declared.low) & (raw <= declared.high)).then(raw)
        return raw

    def _operand(self, name: str) -> nw.Expr:
        """A column in an expression: a double, since an engine's small whole numbers would overflow."""
        if isinstance(self.schema[name], Unlisted) and self.source.pandas and name not in self.derived:
            return nw.col(f"text_{self._own(name)}")
        return self.read(name) if self._kind(name) == "text" else self.read(name).cast(nw.Float64)

    def odd(self, names: Collection[str], unclipped: Mapping[str, nw.Expr]) -> nw.Expr | None:
        """Whether a row has a NaN among these columns, which were read as numbers or missing: an engine that does what
        it was told never says so. None if none of them holds doubles.
        """
        doubles = [
            nw.col(own)
            for name, own in self.source.names.items()
            if name in names and self.source.kinds[name] == "number"
        ]
        doubles += [value for name, value in unclipped.items() if name in names]
        return reduce(operator.or_, [value.is_nan() for value in doubles]) if doubles else None

    # --- categories --------------------------------------------------------------------------------------------------

    def is_declared(self, name: str) -> nw.Expr:
        """Whether a row's category is one of those declared: of a derived column, whether it has one."""
        declared = self.schema[name]
        assert isinstance(declared, Categories)
        raw = self.raw(name)
        if name in self.derived:
            return ~raw.is_null()
        if self._is_looked_up(name):
            return nw.col(f"in_{self._own(name)}")
        if span := self._span(name):
            if self._kind(name) == "integer":
                return (raw >= span[0]) & (raw <= span[1])
            # the floor of a huge number fails in Spark; of an equality DuckDB, where a condition fixes the value, never
            # ends its plan, of a difference it does
            return raw - raw.clip(float(span[0]), float(span[1])).floor() == 0.0
        return raw.is_in(_numbers(declared))

    def is_checked_late(self, name: str) -> bool:
        """Whether rows of unknown categories may be dropped after the groups are formed, which is cheaper."""
        declared = self.schema[name]
        listed = isinstance(declared, Categories) and not self._gathers(name) and name not in self.derived
        return listed and self._span(name) is None

    def rows_with_group(self, name: str, *, early: bool) -> nw.Expr | None:
        """The rows that have a group by this key; none if that is seen later: ``other`` takes all, or unless ``early``
        unknown categories are dropped after the groups are formed."""
        declared = self.schema[name]
        if isinstance(declared, Unlisted):
            return ~self.raw(name).is_null()
        assert isinstance(declared, Categories)
        late = self.is_checked_late(name) and not early
        return None if self._gathers(name) or late else self.is_declared(name)

    def _gathers(self, name: str) -> bool:
        """Whether what has no category is a group too: under the name of ``other``, or as missing."""
        return getattr(self.schema[name], "other", None) is not None or name in self.missing_groups

    def key(self, number: int, name: str) -> tuple[Field, nw.Expr]:
        """A key as a field of the scan: consecutive whole numbers by their place, anything else as it is."""
        declared, field = self.schema[name], f"k{number}"
        if isinstance(declared, Categories) and (span := self._span(name)):
            code = self.raw(name).cast(nw.Int64) - span[0]
            code = nw.when(self.is_declared(name)).then(code) if self._gathers(name) else code
            return Field(field, size=span[1] - span[0] + 1, nullable=self._gathers(name)), code
        gathered = isinstance(declared, Categories) and self._gathers(name)
        return Field(field, kind=self._kind(name)), self.read(name) if gathered else self.raw(name)

    def late(self, number: int, name: str, totals: Any) -> Any:
        """The groups of a key that count, of the frame of all groups, where ``rows_with_group`` left them all."""
        if not self.is_checked_late(name):
            return totals
        engine, declared, key = self.source.engine, self.schema[name], f"k{number}"
        assert isinstance(declared, Categories)
        found = engine.among(totals, key, _numbers(declared), f"in_{key}")
        return found.filter(f"in_{key}")

    def labels_of(self, name: str) -> tuple[Any, ...]:
        """What the groups of a public key are called, in the order of answers."""
        declared = self.schema[name]
        assert isinstance(declared, Categories)
        return (*declared.values, None) if name in self.missing_groups else declared.labels

    def codes(self, name: str, found: Any) -> NDArray[np.int64]:
        """The place that each of a key's values has among the labels of its column; -1 for one that has none."""
        declared = self.schema[name]
        assert isinstance(declared, Categories)
        missing, held = np.ma.getmaskarray(found), np.ma.getdata(found)
        if span := self._span(name):
            places = np.empty(span[1] - span[0] + 1, np.int64)
            places[np.array(declared.values, np.int64) - span[0]] = np.arange(len(places))
            code = np.where(missing, 0, held).astype(np.int64)
            known = (code >= 0) & (code < len(places))
            code = np.where(known, places[np.where(known, code, 0)], -1)
        else:
            place = {label: number for number, label in enumerate(declared.values)}
            code = np.fromiter((place.get(value, -1) for value in held.tolist()), np.int64, len(held))
        return np.where(missing, len(declared.values) if self._gathers(name) else -1, code)

    def labels(self, name: str, found: Any) -> list[Any]:
        """What each of a key's values is called in answers; none for one that is in no group."""
        declared = self.schema[name]
        if isinstance(declared, Categories):
            return [None if code < 0 else self.labels_of(name)[code] for code in self.codes(name, found).tolist()]
        # one of -0.0 and 0.0, which are equal
        return [value + 0.0 if isinstance(value, float) else value for value in found.tolist()]

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

    def bin(self, bins: BinCut) -> tuple[Field, nw.Expr]:
        """The number of a row's bin."""
        value, low = self.read(bins.column), bins.edges[0]
        if bins.edges == even_edges(low, bins.edges[-1], bins.count):
            width = (bins.edges[-1] - low) / bins.count
            number = ((value - low) / width).floor().clip(0.0, float(bins.count - 1)).cast(nw.Int64)
        else:
            inner = [(value >= edge).cast(nw.Int64) for edge in bins.edges[1:-1]]
            number = sum(inner, (value >= value).cast(nw.Int64) - 1)  # from zero, or missing where the value is
        return Field("b", size=bins.count), number


def _levels(derived: Mapping[str, Expression]) -> list[list[str]]:
    """Derived columns in levels: what stands on one is in a later level."""
    level: dict[str, int] = {}
    for name, expression in derived.items():
        level[name] = max((level[part] + 1 for part in columns(expression) if part in level), default=0)
    return [[name for name, own in level.items() if own == number] for number in sorted(set(level.values()))]


def even_edges(low: float, high: float, count: int) -> tuple[float, ...]:
    """``count`` bins of one width."""
    return (*(low + (high - low) * i / count for i in range(count)), high)


def _span(declared: Any) -> tuple[int, int] | None:
    values = declared.values
    if not {int, bool} >= set(map(type, values)) or max(values) - min(values) + 1 != len(values):
        return None
    return int(min(values)), int(max(values))


def _numbers(declared: Categories) -> list[Value]:
    return [value if isinstance(value, str) else float(value) for value in declared.values]
