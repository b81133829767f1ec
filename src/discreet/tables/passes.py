"""One scan of the table: filter, keys, fixed-point values, bounded contributions, and sums per group. Only those leave.

A pass is described before data is read and says what it will do; ``run`` reads the rows and gives exact whole numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any, TypeAlias

from discreet.encoding.engines import EngineFailed, quietly
from discreet.encoding.sources import Source
from discreet.errors import extra
from discreet.schema import Bounded, Categories, Schema, Unlisted, Value
from discreet.tables.bounding import ContributionLimit, Field, SecretKey, bound
from discreet.tables.columns import Columns
from discreet.tables.expressions import Expression
from discreet.tables.expressions import columns as referred
from discreet.tables.fixed_point import COARSE, FINE, FixedPoint
from discreet.tables.scans import Pass, Stats

with extra("tables"):
    import narwhals as nw

__all__ = ["GroupedRows", "Pass", "Progress", "Stats"]

UNIT, ODD = "unit_", "odd_"
Progress: TypeAlias = Callable[[float], None]
MISREAD = (
    "The engine did not read the rows as it was told to, so nothing is released. With an engine that does, this cannot "
    "happen, whatever the rows hold: report it, with the engine's version."
)
_LOW_HALF = (1 << 15) - 1


@dataclass(frozen=True)
class GroupedRows:
    """The rows a query counts: a source, read through a schema, filtered, in groups."""

    source: Source
    schema: Schema
    limit: ContributionLimit
    derived: Mapping[str, Expression] = field(default_factory=dict)
    conditions: tuple[Expression, ...] = ()
    keys: tuple[str, ...] = ()
    moments: frozenset[str] = frozenset()  # keys that are points in time, in seconds

    @cached_property
    def columns(self) -> Columns:
        """How columns are read."""
        return Columns(self.source, self.schema, self.derived)

    def deriving(self, name: str, expression: Expression) -> GroupedRows:
        """The same rows with one more bounded column, of an expression that is resolved already."""
        low, high = expression.bounds(self.schema)
        schema = Schema({**self.schema, name: Bounded(low, high)})
        return replace(self, schema=schema, derived={**self.derived, name: expression})

    def grid(self, name: str, steps: int = FINE) -> FixedPoint:
        """The grid of a bounded column."""
        return self.columns.grid(name, steps)

    def auto_bounds(self, aggregates: Any) -> tuple[str, ...]:
        """The columns that aggregates look at whose bounds are to be found; no expression may stand on them."""
        wanted = [aggregate.scan(self) for _, aggregate in aggregates]
        used = {name for scan in wanted for name in self.used(scan)}
        found = tuple(name for name in self.schema if name in used and getattr(self.schema[name], "auto", False))
        made = {name for expression in (*self.derived.values(), *self.conditions) for name in referred(expression)}
        if mixed := [name for name in found if name in made]:
            raise ValueError(
                f'Column {mixed[0]!r} is Bounded("auto") and used in an expression or filter, whose bounds must not '
                "depend on the data: declare its bounds, or aggregate it as it is."
            )
        return found

    def whole(self, name: str) -> bool:
        """Whether a bounded column holds whole numbers alone, by public facts: its type, its bounds,
        what missing means.
        """
        bounds = self.grid(name).bounds
        ends = [bounds.low, bounds.high, *([] if bounds.missing == "drop" else [bounds.missing])]
        typed = self.derived[name].logical() if name in self.derived else name in self.source.whole or bounds.whole
        return typed and self.grid(name).scale >= 1 and all(float(end).is_integer() for end in ends)

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

    # --- the scan ----------------------------------------------------------------------------------------------------

    def run(self, wanted: Pass, key: SecretKey, progress: Progress | None = None) -> dict[tuple[Any, ...], Stats]:
        """Read the rows, and add up each group."""
        return self.prepared(wanted, key)(progress)

    def prepared(self, wanted: Pass, key: SecretKey) -> Callable[[Progress | None], dict[tuple[Any, ...], Stats]]:
        """The scan, planned by the engine: what fails here fails on public facts, before a row is read."""
        totals, names = quietly(lambda: self._totals(wanted, key))

        def scan(progress: Progress | None) -> dict[tuple[Any, ...], Stats]:
            return quietly(lambda: self._gathered(wanted, self.source.engine.fetch(totals, progress), names))

        return scan

    def plan(self, wanted: Pass) -> str:
        """The query that DuckDB is given, for those who want to look: no data is read."""
        return str(self._totals(wanted, SecretKey(tuple(range(1, 129, 2))))[0].sql_query())

    def _totals(self, wanted: Pass, key: SecretKey) -> tuple[Any, list[str]]:
        """The engine's query, and the names of its sums."""
        keys = [f"k{number}" for number in range(len(self.keys))]
        fields, frame = self._select(wanted) if wanted.per_unit is None else self._unit_totals(wanted, keys)
        if self.limit.unit is not None:
            kind = self.source.kinds[self.limit.unit]
            limit = (
                self.limit
                if wanted.per_unit is None
                else replace(self.limit, rows=self.limit.spread, groups=self.limit.spread)
            )
            frame = nw.from_native(bound(self.source.engine, frame.to_native(), fields, keys, kind, limit, key))
        frame, reductions = self._reductions(wanted, frame)
        grouping = [*keys, *(["b"] if wanted.bins else [])]
        totals = frame.group_by(grouping).agg(*reductions.values()) if grouping else frame.select(*reductions.values())
        return self._without_unknown(totals).select(*grouping, *reductions).to_native(), list(reductions)

    def _select(self, wanted: Pass) -> tuple[list[Field], Any]:
        """Filtered rows: the unit, keys and values under names of our own."""
        columns, scope = self.columns, self.columns.scope(self.used(wanted))
        for condition in self.conditions:
            kept = condition.compiled(scope)
            scope.frame = scope.frame.filter(kept)
        frame = scope.frame
        for mask in [columns.kept(name, early=self.limit.unit is not None) for name in self.keys]:
            frame = frame if mask is None else frame.filter(mask)
        # Half as wide is a tenth faster to add up and to verify; packed beside others a number needs its 64 bits.
        kind = nw.Int32 if self.limit.unit is None else nw.Int64
        chosen = [columns.key(number, name) for number, name in enumerate(self.keys)]
        chosen += [columns.steps(number, name, steps, kind) for number, (name, steps) in enumerate(wanted.sums)]
        chosen += [columns.bin(wanted.bins)] if wanted.bins else []
        chosen += [columns.identity(wanted.distinct)] if wanted.distinct else []
        odd = columns.odd(self.used(wanted), scope)
        if odd is not None:
            chosen.append((Field(ODD, size=2, nullable=False), nw.when(odd).then(1).otherwise(0).cast(kind)))
        chosen = chosen or [(Field("one_", size=1, nullable=False), nw.lit(0))]
        unit = [] if self.limit.unit is None else [nw.col(self.source.names[self.limit.unit]).alias(UNIT)]
        frame = frame.with_columns(*unit, *(expression.alias(field.name) for field, expression in chosen))
        fields = [field for field, _ in chosen]
        return fields, frame.select(*([UNIT] if unit else []), *(field.name for field in fields))

    def _unit_totals(self, wanted: Pass, keys: list[str]) -> tuple[list[Field], Any]:
        """A row for each unit and group, which holds the unit's total there, clipped to its own bounds."""
        ((name, steps),), column = wanted.sums, wanted.per_unit
        fields, frame = self._select(Pass(sums=((column, FINE),) if column else ()))
        made = [nw.col("v0").count().alias("n"), nw.col("v0").sum().alias("s")] if column else [nw.len().alias("n")]
        odd = [nw.col(ODD).max().alias(ODD)] if ODD in [field.name for field in fields] else []
        frame = frame.group_by([UNIT, *keys]).agg(*made, *odd)
        total = nw.col("n").cast(nw.Float64)
        if column:
            own = self.grid(column)
            total = total * own.bounds.low + nw.col("s").cast(nw.Float64) / own.scale
            total = nw.when(nw.col("n") > 0).then(total)
        grid = self.grid(name, steps)
        value = ((total.clip(grid.bounds.low, grid.bounds.high) - grid.bounds.low) * grid.scale + 0.5).floor()
        frame = frame.with_columns(value.cast(nw.Int64).alias("v0"))
        kept = [field for field in fields if field.name in (*keys, *([ODD] if odd else []))]
        fields = [*kept, Field("v0", size=grid.top + 1)]
        return fields, frame.select(UNIT, *(field.name for field in fields))

    def unit_sizes(self, candidates: tuple[int, ...]) -> Callable[[], list[int]]:
        """How many units have more rows than each of some numbers, planned before it is read. Private."""

        def planned() -> Any:
            sizes = self._select(Pass())[1].group_by(UNIT).agg(nw.len().alias("n"))
            over = sum(((nw.col("n") > most).cast(nw.Int64) for most in candidates), nw.lit(0))
            return sizes.with_columns(over.alias("b")).group_by("b").agg(nw.len().alias("units")).to_native()

        plan = quietly(planned)

        def read() -> list[int]:
            found = Counter({int(b): int(n) for b, n in quietly(lambda: self.source.engine.fetch(plan, None))})
            return [sum(n for b, n in found.items() if b > place) for place in range(len(candidates))]

        return read

    def used(self, wanted: Pass) -> set[str]:
        """The columns that a pass looks at, and those that derived ones among them are made of."""
        names = {
            *self.keys,
            *(name for name, _ in wanted.sums),
            *([wanted.per_unit] if wanted.per_unit else []),
            *([wanted.bins.column] if wanted.bins else []),
        }
        names |= {name for name in (wanted.distinct, self.limit.unit) if name is not None}
        names |= {name for condition in self.conditions for name in referred(condition)}
        for name, expression in reversed(list(self.derived.items())):  # a derived column is made of earlier ones
            names |= referred(expression) if name in names else set()
        return names

    def _without_unknown(self, totals: Any) -> Any:
        for mask in [self.columns.late(number, name) for number, name in enumerate(self.keys)]:
            totals = totals if mask is None else totals.filter(mask)
        return totals

    def _reductions(self, wanted: Pass, frame: Any) -> tuple[Any, dict[str, nw.Expr]]:
        """Sums under names of our own; an engine without 128 bits adds halves."""
        wide = self.source.engine.adds_in_128_bits
        out = {"rows": nw.len()}
        halves: list[str] = []
        for number, (_, steps) in enumerate(wanted.sums):
            name = f"v{number}"
            out[f"count{number}"], out[f"least{number}"], out[f"most{number}"] = (
                nw.col(name).count(),
                nw.col(name).min(),
                nw.col(name).max(),
            )
            parts = [(name, "sum")]
            if steps == COARSE:
                frame = frame.with_columns((nw.col(name) * nw.col(name)).alias(f"q{number}"))
                parts.append((f"q{number}", "squares"))
            for part, kind in parts:
                halves += _summed(out, f"{kind}{number}", part, wide)
        places = {name: number for number, (name, steps) in enumerate(wanted.sums) if steps == COARSE}
        for number, (left, right) in enumerate(wanted.products):
            factors = nw.col(f"v{places[left]}"), nw.col(f"v{places[right]}")
            frame = frame.with_columns((factors[0] * factors[1]).alias(f"p{number}"))
            halves += _summed(out, f"product{number}", f"p{number}", wide)
        if halves:
            frame = nw.from_native(self.source.engine.project(frame.to_native(), ["*", *halves]))
        if ODD in frame.collect_schema().names():
            out[ODD] = nw.col(ODD).max()
        if wanted.distinct:
            out["different"], out["present"] = nw.col("d").n_unique(), nw.col("d").count()
        return frame, {name: expression.alias(name) for name, expression in out.items()}

    def _gathered(self, wanted: Pass, rows: list[tuple[Any, ...]], names: list[str]) -> dict[tuple[Any, ...], Stats]:
        groups: dict[tuple[Any, ...], Stats] = {}
        meaning = [self.columns.labels(key) for key in self.keys]
        for row in rows:
            labels = tuple(means(found) for means, found in zip(meaning, row, strict=False))
            if None in labels:
                continue
            rest = row[len(self.keys) :]
            bin_number, values = (rest[0], rest[1:]) if wanted.bins else (None, rest)
            found = {name: int(value or 0) for name, value in zip(names, values, strict=True)}
            stats = groups.setdefault(labels, Stats())
            _add(stats.numbers, wanted, found)
            self._verify(wanted, found, bin_number)
            if wanted.bins and bin_number is not None:
                stats.binned.setdefault(wanted.bins, Counter())[int(bin_number)] += found["rows"]
        return groups

    def _verify(self, wanted: Pass, found: Mapping[str, int], bin_number: int | None) -> None:
        """Refuse sums of values that are not what the engine was told to add up: clipped, on the grid, not NaN.

        Optimisers rewrite queries by what they believe of the data. What is added up is therefore looked at where it is
        added up. This cannot fail with an engine that does what it is told, whatever the rows hold.
        """
        sound = not found.get(ODD) and (
            bin_number is None or (wanted.bins is not None and 0 <= bin_number < wanted.bins.count)
        )
        for number, (column, steps) in enumerate(wanted.sums):
            top, count = self.grid(column, steps).top, found[f"count{number}"]
            sound &= found[f"least{number}"] >= 0 and found[f"most{number}"] <= top and count <= found["rows"]
            sound &= 0 <= _whole(found, "sum", number) <= count * top
        for number, (left, right) in enumerate(wanted.products):
            most = found["rows"] * self.grid(left, COARSE).top * self.grid(right, COARSE).top
            sound &= 0 <= _whole(found, "product", number) <= most
        if not sound:
            raise EngineFailed(MISREAD)


def _summed(out: dict[str, nw.Expr], name: str, part: str, wide: bool) -> list[str]:
    """The sum of a column of whole numbers below 2^30, or of its halves, which are then to be made."""
    if wide:
        out[name] = nw.col(part).sum()
        return []
    out[f"{name}h"], out[f"{name}l"] = nw.col(f"{part}h").sum(), nw.col(f"{part}l").sum()
    return [f"shiftright({part}, 15) AS {part}h", f"{part} & {_LOW_HALF} AS {part}l"]


def _whole(found: Mapping[str, int], kind: str, number: int) -> int:
    """A sum, which an engine without 128 bits gives in halves."""
    name = f"{kind}{number}"
    return found[name] if name in found else (found[f"{name}h"] << 15) + found[f"{name}l"]


def _add(numbers: Counter[Any], wanted: Pass, found: Mapping[str, int]) -> None:
    numbers["rows"] += found["rows"]
    for number, (column, steps) in enumerate(wanted.sums):
        numbers["count", column, steps] += found[f"count{number}"]
        numbers["sum", column, steps] += _whole(found, "sum", number)
        if steps == COARSE:
            numbers["squares", column, steps] += _whole(found, "squares", number)
    for number, (left, right) in enumerate(wanted.products):
        numbers["product", left, right] += _whole(found, "product", number)
    if wanted.distinct:
        missing = found["rows"] > found["present"]  # the engines count a missing value as one more
        numbers["distinct", wanted.distinct] += found["different"] - missing
