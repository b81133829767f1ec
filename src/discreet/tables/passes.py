"""One scan of the table: filter, keys, fixed-point values, bounded contributions, and sums per group. Only those leave.

A pass is described before data is read and says what it will do; ``run`` reads the rows and gives exact whole numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

from discreet.errors import extra
from discreet.schema import Bounded, Categories, Schema, Unlisted, Value
from discreet.tables.bounding import Bounds, Field, SecretKey, bound
from discreet.tables.engines import quietly
from discreet.tables.expressions import Expression
from discreet.tables.fixed_point import COARSE, FINE, FixedPoint
from discreet.tables.sources import Source

with extra("tables"):
    import narwhals as nw

__all__ = ["Bins", "Pass", "Rows", "Stats"]

UNIT = "unit_"
Progress: TypeAlias = Callable[[float], None]
_LOW_HALF = (1 << 15) - 1


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
class Pass:
    """What one scan gathers for each group: rows, and of each column sums, or bins, or distinct values."""

    sums: tuple[tuple[str, int], ...] = ()  # column, and the steps of its grid
    bins: Bins | None = None
    distinct: str | None = None


@dataclass
class Stats:
    """Exact whole numbers of one group."""

    numbers: Counter[Any] = field(default_factory=Counter)

    @property
    def rows(self) -> int:
        """How many rows the group has."""
        return self.numbers["rows"]

    def counted(self, column: str, steps: int = FINE) -> int:
        """How many of them have a value there."""
        return self.numbers["count", column, steps]

    def total(self, column: str, steps: int = FINE) -> int:
        """The sum of k."""
        return self.numbers["sum", column, steps]

    def squares(self, column: str) -> int:
        """The sum of k², on the coarse grid."""
        return self.numbers["squares", column, COARSE]

    def bin(self, bins: Bins, number: int) -> int:
        """How many rows fall in one bin."""
        return self.numbers[bins, number]

    def distinct(self, column: str) -> int:
        """How many different values there are."""
        return self.numbers["distinct", column]


@dataclass(frozen=True)
class Rows:
    """The rows a query counts: a source, read through a schema, filtered, in groups."""

    source: Source
    schema: Schema
    limit: Bounds
    derived: Mapping[str, Expression] = field(default_factory=dict)
    conditions: tuple[Expression, ...] = ()
    keys: tuple[str, ...] = ()

    # --- reading a column ------------------------------------------------------------------------------------------

    def column(self, name: str) -> nw.Expr:
        """A column as the schema reads it: NaN missing, clipped, filled; an unknown category is missing."""
        declared = self.schema[name]
        raw = self._raw(name) if name not in self.derived else self._derived(name)
        if isinstance(declared, Bounded):
            read = raw.clip(declared.low, declared.high)
            return read if declared.missing == "drop" else read.fill_null(declared.missing)
        if isinstance(declared, Categories):
            return nw.when(self._known(name)).then(raw)
        return raw

    def _derived(self, name: str) -> nw.Expr:
        value = self.derived[name].compiled(self.column).cast(nw.Float64)  # a condition counts as 0 or 1
        return _no_nan(value)

    def _raw(self, name: str) -> nw.Expr:
        kind, raw = self.source.kinds[name], nw.col(name)
        if isinstance(self.schema[name], Bounded):
            raw = raw.cast(nw.Float64)
        return _no_nan(raw) if kind == "number" else raw

    def _known(self, name: str) -> nw.Expr:
        """Whether a row's category is one of those declared."""
        declared = self.schema[name]
        assert isinstance(declared, Categories)
        raw = self._raw(name)
        if span := _span(declared):
            inside = (raw >= span[0]) & (raw <= span[1])
            return inside if self.source.kinds[name] == "integer" else inside & (raw.floor() == raw)
        return raw.is_in([_number(value) for value in declared.values])

    def steps(self, name: str, steps: int) -> nw.Expr:
        """A bounded column in whole steps of its grid."""
        grid = self.grid(name, steps)
        return ((self.column(name) - grid.bounds.low) * grid.scale + 0.5).floor().cast(nw.Int64)

    def grid(self, name: str, steps: int = FINE) -> FixedPoint:
        """The grid of a bounded column."""
        declared = self.schema[name]
        if not isinstance(declared, Bounded):
            raise ValueError(f"Column {name!r} is declared as {type(declared).__name__}, but this needs Bounded(low, high).")
        return FixedPoint(declared, steps)

    def _bin(self, bins: Bins) -> nw.Expr:
        value = self.column(bins.column)
        low, width = bins.edges[0], (bins.edges[-1] - bins.edges[0]) / bins.count
        if bins.edges == even_edges(low, bins.edges[-1], bins.count):
            return ((value - low) / width).floor().clip(0.0, float(bins.count - 1)).cast(nw.Int64)
        inner = [(value >= edge).cast(nw.Int64) for edge in bins.edges[1:-1]]
        first = (value >= value).cast(nw.Int64) - 1  # zero, or missing where the value is
        return sum(inner, first)

    # --- keys --------------------------------------------------------------------------------------------------------

    @property
    def private_keys(self) -> bool:
        """Whether the set of groups is itself private."""
        return any(isinstance(self.schema[key], Unlisted) for key in self.keys)

    @property
    def public_groups(self) -> int:
        """How many groups the declarations give; a private key counts as one."""
        kinds = [self.schema[key] for key in self.keys]
        return math.prod([len(kind.labels) for kind in kinds if isinstance(kind, Categories)])

    def cells(self) -> Iterator[tuple[Value, ...]]:
        """Every public group, in the order of the declarations."""
        return product(*(self.schema[key].labels for key in self.keys))  # type: ignore[union-attr]

    def _key_field(self, number: int, key: str) -> tuple[Field, nw.Expr]:
        declared, name = self.schema[key], f"k{number}"
        text = self.source.kinds[key] == "text"
        if isinstance(declared, Unlisted):
            return Field(name, text=text), self._raw(key)
        assert isinstance(declared, Categories)
        if span := _span(declared):
            code = self._raw(key).cast(nw.Int64) - span[0]
            code = code if declared.other is None else nw.when(self._known(key)).then(code)
            return Field(name, size=span[1] - span[0] + 1), code
        return Field(name, text=text), self._raw(key) if declared.other is None else self.column(key)

    def _labels(self, key: str) -> Callable[[Any], Value | None]:
        """The category that a group's value means, or none."""
        declared = self.schema[key]
        if not isinstance(declared, Categories):
            return lambda found: found
        span = _span(declared)
        names = {value - span[0] if span else value: value for value in declared.values}  # type: ignore[operator]
        return lambda found: declared.other if found is None else names.get(found)

    # --- the scan ----------------------------------------------------------------------------------------------------

    def run(self, wanted: Pass, key: SecretKey, progress: Progress | None = None) -> dict[tuple[Any, ...], Stats]:
        """Read the rows, and add up each group."""
        return quietly(lambda: self._run(wanted, key, progress))

    def _run(self, wanted: Pass, key: SecretKey, progress: Progress | None) -> dict[tuple[Any, ...], Stats]:
        totals, names = self._totals(wanted, key)
        return self._gathered(wanted, self.source.engine.fetch(totals, progress), names)

    def plan(self, wanted: Pass) -> str:
        """The query that DuckDB is given, for those who want to look: no data is read."""
        return str(self._totals(wanted, SecretKey(tuple(range(1, 129, 2))))[0].sql_query())

    def _totals(self, wanted: Pass, key: SecretKey) -> tuple[Any, list[str]]:
        """The engine's query, and the names of its sums."""
        fields, frame = self._select(wanted)
        keys = [f"k{number}" for number in range(len(self.keys))]
        if self.limit.unit is not None:
            text = self.source.kinds[self.limit.unit] == "text"
            frame = nw.from_native(bound(self.source.engine, frame.to_native(), fields, keys, text, self.limit, key))
        frame, reductions = self._reductions(wanted, frame)
        grouping = [*keys, *(["b"] if wanted.bins else [])]
        totals = frame.group_by(grouping).agg(*reductions.values()) if grouping else frame.select(*reductions.values())
        return self._without_unknown(totals).select(*grouping, *reductions).to_native(), list(reductions)

    def _select(self, wanted: Pass) -> tuple[list[Field], Any]:
        """Filtered rows: the unit, keys and values under names of our own."""
        frame = nw.from_native(self.source.frame)
        for condition in self.conditions:
            frame = frame.filter(condition.compiled(self.column))
        for name in self.keys:
            if (mask := self._kept(name)) is not None:
                frame = frame.filter(mask)
        chosen = [self._key_field(number, name) for number, name in enumerate(self.keys)]
        for number, (name, steps) in enumerate(wanted.sums):
            chosen.append((Field(f"v{number}", size=self.grid(name, steps).top + 1), self.steps(name, steps)))
        if wanted.bins:
            chosen.append((Field("b", size=wanted.bins.count), self._bin(wanted.bins)))
        if wanted.distinct:
            chosen.append((Field("d", text=self.source.kinds.get(wanted.distinct) == "text"), self._identity(wanted.distinct)))
        if not chosen:
            chosen.append((Field("one_", size=1), nw.lit(0)))
        unit = [] if self.limit.unit is None else [nw.col(self.limit.unit).alias(UNIT)]
        frame = frame.with_columns(*unit, *(expression.alias(field.name) for field, expression in chosen))
        fields = [field for field, _ in chosen]
        return fields, frame.select(*([UNIT] if unit else []), *(field.name for field in fields))

    def _kept(self, name: str) -> nw.Expr | None:
        declared = self.schema[name]
        if isinstance(declared, Unlisted):
            return ~self._raw(name).is_null()
        assert isinstance(declared, Categories)
        if declared.other is not None or (_span(declared) is None and self.limit.unit is None):
            return None  # gathered under one name, or dropped after the groups are formed, which is cheaper
        return self._known(name)

    def _identity(self, name: str) -> nw.Expr:
        return self.column(name) if isinstance(self.schema[name], Categories) else self._raw(name)

    def _without_unknown(self, totals: Any) -> Any:
        for number, name in enumerate(self.keys):
            declared = self.schema[name]
            if isinstance(declared, Categories) and declared.other is None and _span(declared) is None:
                totals = totals.filter(nw.col(f"k{number}").is_in([_number(value) for value in declared.values]))
        return totals

    def _reductions(self, wanted: Pass, frame: Any) -> tuple[Any, dict[str, nw.Expr]]:
        """Sums under names of our own; an engine without 128 bits adds halves."""
        wide = self.source.engine.adds_in_128_bits
        out = {"rows": nw.len()}
        halves: list[str] = []
        for number, (_, steps) in enumerate(wanted.sums):
            name = f"v{number}"
            out[f"count{number}"] = nw.col(name).count()
            parts = [(name, "sum")]
            if steps == COARSE:
                frame = frame.with_columns((nw.col(name) * nw.col(name)).alias(f"q{number}"))
                parts.append((f"q{number}", "squares"))
            for part, kind in parts:
                if wide:
                    out[f"{kind}{number}"] = nw.col(part).sum()
                else:
                    halves += [f"shiftright({part}, 15) AS {part}h", f"{part} & {_LOW_HALF} AS {part}l"]
                    out[f"{kind}{number}h"], out[f"{kind}{number}l"] = nw.col(f"{part}h").sum(), nw.col(f"{part}l").sum()
        if halves:
            frame = nw.from_native(self.source.engine.project(frame.to_native(), ["*", *halves]))
        if wanted.distinct:
            out["different"], out["present"] = nw.col("d").n_unique(), nw.col("d").count()
        return frame, {name: expression.alias(name) for name, expression in out.items()}

    def _gathered(self, wanted: Pass, rows: list[tuple[Any, ...]], names: list[str]) -> dict[tuple[Any, ...], Stats]:
        groups: dict[tuple[Any, ...], Stats] = {}
        meaning = [self._labels(key) for key in self.keys]
        for row in rows:
            labels = tuple(means(found) for means, found in zip(meaning, row, strict=False))
            if None in labels:
                continue
            rest = row[len(self.keys):]
            bin_number, values = (rest[0], rest[1:]) if wanted.bins else (None, rest)
            found = {name: int(value or 0) for name, value in zip(names, values, strict=True)}
            _add(groups.setdefault(labels, Stats()).numbers, wanted, found, bin_number)
        return groups


def _add(numbers: Counter[Any], wanted: Pass, found: Mapping[str, int], bin_number: int | None) -> None:
    def whole(kind: str, number: int) -> int:
        name = f"{kind}{number}"
        return found[name] if name in found else (found[f"{name}h"] << 15) + found[f"{name}l"]

    numbers["rows"] += found["rows"]
    for number, (column, steps) in enumerate(wanted.sums):
        numbers["count", column, steps] += found[f"count{number}"]
        numbers["sum", column, steps] += whole("sum", number)
        if steps == COARSE:
            numbers["squares", column, steps] += whole("squares", number)
    if wanted.bins and bin_number is not None:
        numbers[wanted.bins, int(bin_number)] += found["rows"]
    if wanted.distinct:
        missing = found["rows"] > found["present"]  # the engines count a missing value as one more
        numbers["distinct", wanted.distinct] += found["different"] - missing


def _no_nan(value: nw.Expr) -> nw.Expr:
    return nw.when(~value.is_nan()).then(value)


def _span(declared: Categories) -> tuple[int, int] | None:
    """First and last of categories that are consecutive whole numbers: such a key is its own code."""
    whole = [value for value in declared.values if isinstance(value, int)]
    if len(whole) < len(declared.values) or max(whole) - min(whole) + 1 != len(whole):
        return None
    return int(min(whole)), int(max(whole))


def _number(value: Value) -> Value:
    return value if isinstance(value, str) else float(value)


def even_edges(low: float, high: float, count: int) -> tuple[float, ...]:
    """``count`` bins of one width."""
    return (*(low + (high - low) * i / count for i in range(count)), high)
