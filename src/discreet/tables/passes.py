"""One scan of the table: filter, keys, fixed-point values, bounded contributions, and sums per group. Only those leave.

A pass is described before data is read and says what it will do; ``run`` reads the rows and gives exact whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.encoding.engines import plan_or_fail, quietly
from discreet.encoding.sources import Source
from discreet.errors import extra
from discreet.schema import Bounded, Categories, Schema, Unlisted
from discreet.tables.bounding import ContributionLimit, Field, SecretKey, bound
from discreet.tables.columns import Columns
from discreet.tables.expressions import Expression
from discreet.tables.expressions import columns as referred
from discreet.tables.fixed_point import COARSE, FINE, FixedPoint
from discreet.tables.gather import MISREAD, ODD, gather_groups, verify
from discreet.tables.possible_groups import can_no_row_meet, possible_places
from discreet.tables.scans import ScanPass, ScanResult, Stats, Whole
from discreet.tables.scope import with_steps

with extra("tables"):
    import narwhals as nw

__all__ = ["MISREAD", "GroupedRows", "PreparedScan", "Progress", "ScanPass", "ScanResult", "Stats"]

UNIT = "unit_"
Progress: TypeAlias = Callable[[float], None]


@dataclass(frozen=True)
class PreparedScan:
    """A scan that is planned: what reads the rows, and what it would find if there were none."""

    scan: Callable[[Progress | None], ScanResult]
    empty: ScanResult


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
    missing_groups: frozenset[str] = frozenset()  # derived keys whose missing values are a group

    @cached_property
    def columns(self) -> Columns:
        """How columns are read."""
        return Columns(self.source, self.schema, self.derived, self.missing_groups)

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
        used = {name for scan in wanted for name in self.columns_used(scan)}
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
        """How many groups may hold a row, by the declarations and conditions; a private key counts as one."""
        return self.combinations if self.possible_places is None else len(self.possible_places)

    @property
    def combinations(self) -> int:
        """How many groups the declarations give, whatever the conditions; a private key counts as one."""
        kinds = [self.schema[key] for key in self.keys]
        listed = [key for key, kind in zip(self.keys, kinds, strict=True) if isinstance(kind, Categories)]
        return math.prod([len(self.columns.labels_of(key)) for key in listed])

    @cached_property
    def possible_places(self) -> NDArray[np.int64] | None:
        """Where the public groups stand among all combinations, if some of those are none."""
        return possible_places(self)

    @cached_property
    def holds_no_row(self) -> bool:
        """Whether no row can meet the conditions, by public facts."""
        return can_no_row_meet(self)

    def public_keys(self, size: int) -> dict[str, list[Any]]:
        """Each key's value in the first public groups: the last key changes fastest, as in the declarations."""
        if (places := self.possible_places) is not None:
            listed = [self.columns.labels_of(key) for key in self.keys]
            codes = np.unravel_index(places[:size], [len(labels) for labels in listed])
            return {
                key: [labels[code] for code in code_of_key.tolist()]
                for key, labels, code_of_key in zip(self.keys, listed, codes, strict=True)
            }
        columns, inner = dict[str, list[Any]](), 1
        for key in reversed(self.keys):
            labels = self.columns.labels_of(key)
            some = labels[: -(-size // inner)]
            once = list(some) if inner == 1 else [label for label in some for _ in range(inner)]
            columns[key] = (once * -(-size // max(len(once), 1)))[:size]
            inner *= len(labels)
        return {key: columns[key] for key in self.keys}

    # --- the scan ----------------------------------------------------------------------------------------------------

    def run(self, wanted: ScanPass, key: SecretKey, progress: Progress | None = None) -> ScanResult:
        """Read the rows, and add up each group."""
        return self.prepare(wanted, key).scan(progress)

    def prepare(self, wanted: ScanPass, key: SecretKey) -> PreparedScan:
        """The scan, planned by the engine: what fails here fails on public facts, before a row is read."""
        totals, names = plan_or_fail(lambda: self._totals(wanted, key))

        def scan(progress: Progress | None) -> ScanResult:
            return quietly(lambda: gather_groups(self, wanted, self.source.engine.fetch(totals, progress), names))

        # what fails on no rows fails before the charge: decision 353
        empty = plan_or_fail(lambda: gather_groups(self, wanted, self.source.engine.dry_run(totals), names))
        return PreparedScan(scan, empty)

    def plan(self, wanted: ScanPass) -> str:
        """The query that DuckDB is given, for those who want to look: no data is read."""
        return str(self._totals(wanted, SecretKey(tuple(range(1, 129, 2))))[0].sql_query())

    def _totals(self, wanted: ScanPass, key: SecretKey) -> tuple[Any, list[str]]:
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
        native = totals.to_native()
        for number, name in enumerate(self.keys if self.limit.unit is None else ()):
            native = self.columns.late(number, name, native)
        native = nw.from_native(native).select(*grouping, *reductions).to_native()
        return self._in_halves(native, grouping, list(reductions))

    def _in_halves(self, totals: Any, grouping: list[str], names: list[str]) -> tuple[Any, list[str]]:
        """Sums in two columns of 64 bits each, which engines hand over as such, and the names of all columns."""
        engine = self.source.engine
        if not engine.adds_in_128_bits:  # then they were added up so
            return totals, names
        halves = {
            name: f"({name} >> {engine.half_bits}), {name} & {(1 << engine.half_bits) - 1}".split(", ")
            for name in names
            if name.startswith(("sum", "squares", "product"))
        }
        kept = [name for name in names if name not in halves]
        made = [
            f"CAST({part} AS BIGINT) AS {name}{end}"
            for name, parts in halves.items()
            for part, end in zip(parts, "hl", strict=True)
        ]
        return engine.project(totals, [*grouping, *kept, *made]), [
            *kept,
            *(f"{name}{end}" for name in halves for end in "hl"),
        ]

    def _select(self, wanted: ScanPass) -> tuple[list[Field], Any]:
        """Filtered rows: the unit, keys and values under names of our own."""
        columns, early = self.columns, self.limit.unit is not None
        late = {name for name in self.keys if columns.is_checked_late(name) and not early}
        made = columns.compute(self.columns_used(wanted), late - replace(self, keys=()).columns_used(wanted))
        frame, scopes = made.frame, [made.scope.beside() for _ in self.conditions]
        held = [condition.compile(scope) for condition, scope in zip(self.conditions, scopes, strict=True)]
        for place, condition in enumerate(self.conditions):
            if not referred(condition):  # no engine filters by a constant
                held[place] = scopes[place].let(held[place])
        frame = with_steps(frame, scopes).filter(*held) if scopes else frame
        for mask in [columns.rows_with_group(name, early=early) for name in self.keys]:
            frame = frame if mask is None else frame.filter(mask)
        # Half as wide is a tenth faster to add up and to verify; packed beside others a number needs its 64 bits.
        kind = nw.Int32 if self.limit.unit is None else nw.Int64
        chosen = [columns.key(number, name) for number, name in enumerate(self.keys)]
        chosen += [columns.steps(number, name, steps, kind) for number, (name, steps) in enumerate(wanted.sums)]
        chosen += [columns.bin(wanted.bins)] if wanted.bins else []
        chosen += [columns.identity(wanted.distinct)] if wanted.distinct else []
        odd = columns.odd(self.columns_used(wanted), made.unclipped)
        if odd is not None:
            chosen.append((Field(ODD, size=2, nullable=False), nw.when(odd).then(1).otherwise(0).cast(kind)))
        chosen = chosen or [(Field("one_", size=1, nullable=False), nw.lit(0))]
        unit = [] if self.limit.unit is None else [nw.col(self.source.names[self.limit.unit]).alias(UNIT)]
        frame = frame.with_columns(*unit, *(expression.alias(field.name) for field, expression in chosen))
        fields = [field for field, _ in chosen]
        frame = frame.select(*([UNIT] if unit else []), *(field.name for field in fields))
        return fields, nw.from_native(self.source.engine.stop_inlining(frame.to_native()))

    def _unit_totals(self, wanted: ScanPass, keys: list[str]) -> tuple[list[Field], Any]:
        """A row for each unit and group, which holds the unit's total there, clipped to its own bounds."""
        ((name, steps),), column = wanted.sums, wanted.per_unit
        fields, frame = self._select(ScanPass(sums=((column, FINE),) if column else ()))
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

        def unit_sizes() -> Any:
            sizes = self._select(ScanPass())[1].group_by(UNIT).agg(nw.len().alias("n"))
            over = sum(((nw.col("n") > most).cast(nw.Int64) for most in candidates), nw.lit(0))
            return sizes.with_columns(over.alias("b")).group_by("b").agg(nw.len().alias("units")).to_native()

        plan = plan_or_fail(unit_sizes)
        plan_or_fail(lambda: self.source.engine.dry_run(plan))

        def read() -> list[int]:
            over, units = quietly(lambda: self.source.engine.fetch(plan, None))
            return [int(units[over > place].sum()) for place in range(len(candidates))]

        return read

    def columns_used(self, wanted: ScanPass) -> set[str]:
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

    def _reductions(self, wanted: ScanPass, frame: Any) -> tuple[Any, dict[str, nw.Expr]]:
        """Sums under names of our own; an engine without 128 bits adds halves."""
        wide, bits = self.source.engine.adds_in_128_bits, self.source.engine.half_bits
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
                halves += _sum_in_parts(out, f"{kind}{number}", part, wide, bits)
        places = {name: number for number, (name, steps) in enumerate(wanted.sums) if steps == COARSE}
        for number, (left, right) in enumerate(wanted.products):
            factors = nw.col(f"v{places[left]}"), nw.col(f"v{places[right]}")
            frame = frame.with_columns((factors[0] * factors[1]).alias(f"p{number}"))
            halves += _sum_in_parts(out, f"product{number}", f"p{number}", wide, bits)
        if halves:
            frame = nw.from_native(self.source.engine.project(frame.to_native(), ["*", *halves]))
        if ODD in frame.collect_schema().names():
            out[ODD] = nw.col(ODD).max()
        if wanted.distinct:
            out["different"], out["present"] = nw.col("d").n_unique(), nw.col("d").count()
        return frame, {name: expression.alias(name) for name, expression in out.items()}

    def _verify(self, wanted: ScanPass, found: Mapping[str, Whole], bins: Any) -> None:
        verify(self, wanted, found, bins)


def _sum_in_parts(out: dict[str, nw.Expr], name: str, part: str, wide: bool, bits: int) -> list[str]:
    """The sum of a column of whole numbers below 2^30, or of its halves, which are then to be made."""
    if wide:
        out[name] = nw.col(part).sum()
        return []
    out[f"{name}h"], out[f"{name}l"] = nw.col(f"{part}h").sum(), nw.col(f"{part}l").sum()
    return [f"shiftright({part}, {bits}) AS {part}h", f"{part} & {(1 << bits) - 1} AS {part}l"]
