"""A question about a table with a budget: an operation, bound to its table, with one price for all that is asked."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from discreet import events
from discreet.mechanisms.budget import Budget
from discreet.random import RngLike, as_rng, seeded
from discreet.random.tap import unheard
from discreet.release import Release
from discreet.tables.after import Presentation
from discreet.tables.aggregates import Aggregate, Count
from discreet.tables.answers import Totals, as_frame
from discreet.tables.biases import biases
from discreet.tables.bounding import SecretKey
from discreet.tables.doubts import JUDGED, doubts
from discreet.tables.keys import KeySelection
from discreet.tables.passes import GroupedRows, Progress, ScanPass, ScanResult, Stats
from discreet.tables.together import MeasuredFrom, measured_aggregates
from discreet.tables.unmet_conditions import unmet_conditions
from discreet.tables.whole_values import as_whole, widen_to_whole

__all__ = ["Explanation", "TableOperation"]

MOST_GROUPS = 1 << 20
_MOST_JUDGED = 1 << 10  # groups of which it is said what looks wrong


@dataclass(frozen=True)
class TableOperation:
    """A question about a table with its budget divided: every mechanism is fixed, nothing is read yet.

    It is bound to its table: ``release()`` takes no data.
    """

    rows: GroupedRows = field(repr=False)
    aggregates: tuple[tuple[str, Aggregate], ...]
    selection: KeySelection | None
    mechanisms: tuple[Any, ...]  # one for each that is measured; none where the selection of keys already counts
    label: str = ""
    progress: Progress | None = field(default=None, repr=False, compare=False)
    after: Presentation | None = field(default=None, repr=False)
    levels: tuple[tuple[str, ...], ...] = ()  # the keys of each set of totals; none for the groups themselves
    errors: bool = False  # whether the answer has columns of its own for what noise does to it
    kept: tuple[Aggregate, ...] = field(default=(), repr=False)  # what meets noise (``together``), a mechanism each
    sources: tuple[MeasuredFrom, ...] = field(default=(), repr=False)  # what each aggregate is read from
    asked: tuple[float | None, float | None] | None = field(  # epsilon and delta
        default=None, repr=False, compare=False
    )
    doubts: list[str] | None = field(default=None, repr=False, compare=False)  # to be filled with what looks wrong

    @classmethod
    def of(
        cls,
        rows: GroupedRows,
        aggregates: tuple[tuple[str, Aggregate], ...],
        budget: Budget,
        label: str = "",
        progress: Progress | None = None,
        after: Presentation | None = None,
        levels: tuple[tuple[str, ...], ...] = (),
        errors: bool = False,
    ) -> TableOperation:
        """The budget, divided among the selection of keys, where they are private, and the aggregates."""
        if not aggregates:
            raise ValueError(
                "The query has no aggregate: add count(), sum(), mean(), variance(), quantile(), histogram() or "
                "count_distinct()."
            )
        groups = rows.public_groups
        if rows.combinations > MOST_GROUPS:
            raise ValueError(
                f"The keys have {rows.combinations:,} combinations, but at most {MOST_GROUPS:,} public groups are "
                "answered: group by fewer columns."
            )
        if not groups or rows.holds_no_row:
            raise ValueError(_no_answer(rows))
        if after is not None and after.shows_nothing:
            raise ValueError(
                "No row would be shown, whatever the answer is: LIMIT is 0, or HAVING never holds. Nothing was read or "
                "charged: leave it out. explain() and --explain show plan and cost for nothing."
            )
        private = rows.private_keys
        kept, sources = measured_aggregates([aggregate for _, aggregate in aggregates])
        free = [private and aggregate == Count() for aggregate in kept]
        kinds = [aggregate.kind for aggregate, done in zip(kept, free, strict=True) if not done]
        shares = iter(budget.shares([*(["keys"] if private else []), *kinds]))  # type: ignore[list-item]
        selection = None
        if private:
            share = next(shares)
            assert share.epsilon is not None
            assert share.delta is not None
            selection = KeySelection(share.epsilon, share.delta, rows.limit.rows, rows.limit.groups)
        size = groups if not private else MOST_GROUPS
        mechanisms = tuple(
            None if done else aggregate.mechanism(rows, next(shares), size)
            for aggregate, done in zip(kept, free, strict=True)
        )
        asked = budget.epsilon, budget.delta
        return cls(
            rows, aggregates, selection, mechanisms, label, progress, after, levels, errors, kept, sources, asked
        )

    @cached_property
    def _measured(self) -> list[tuple[Aggregate, Any]]:
        """What meets noise, and the noise it meets: equal shares of the budget, the smaller noise (decision 62)."""
        return list(zip(self.kept, self.mechanisms, strict=True))

    @cached_property
    def _read(self) -> list[tuple[str, Aggregate, MeasuredFrom]]:
        """The columns of the answer, and what each is read from."""
        return [(name, aggregate, one) for (name, aggregate), one in zip(self.aggregates, self.sources, strict=True)]

    @cached_property
    def event(self) -> events.Event:
        """What all of it costs together."""
        rows, first = self.rows, self.selection and self.selection.event
        rest = [aggregate.event(rows, mechanism) for aggregate, mechanism in self._measured if mechanism is not None]
        return sum(rest, first or 0)  # type: ignore[return-value]

    @property
    def unit(self) -> str:
        """Whom the answer protects: a row, or the unit whose rows the table bounds."""
        return self.rows.limit.protects

    def scans(self) -> list[ScanPass]:
        """The passes over the table: one for all sums, one for each set of bins,
        one for each count of distinct values.
        """
        wanted = [aggregate.scan(self.rows) for _, aggregate in self.aggregates]
        sums = tuple(dict.fromkeys(item for scan in wanted if not scan.apart for item in scan.sums))
        products = tuple(dict.fromkeys(item for scan in wanted for item in scan.products))
        others = list(dict.fromkeys(scan for scan in wanted if scan.apart))
        plain = any(not scan.apart for scan in wanted) or self.selection is not None
        return [*([ScanPass(sums=sums, products=products)] if plain else []), *others]

    def release(self, data: None = None, rng: RngLike = None) -> Release[Any]:
        """Read the table, and answer with a frame: pandas for pandas, otherwise polars."""
        return self.prepare(data, rng)()

    def prepare(self, data: None = None, rng: RngLike = None) -> Callable[[], Release[Any]]:
        """What reads the table and adds the noise, planned by the engine as far as that goes without reading."""
        if data is not None:
            raise ValueError("data is given, but the question is bound to its table: leave it out.")
        source = as_rng(rng)
        key = SecretKey.draw(source)
        scans, told = [self.rows.prepare(scan, key) for scan in self.scans()], self.explain()
        self._rehearse([prepared.empty for prepared in scans])

        def run() -> Release[Any]:
            parts = [_part(self.progress, number, len(scans)) for number in range(len(scans))]
            found = [prepared.scan(part) for prepared, part in zip(scans, parts, strict=True)]
            return Release(
                self._answer(found, source),
                told.event,
                reproducible=source.reproducible,
                label=self.label,
                unit=self.unit,
                error=told.errors,
            )

        return run

    def _rehearse(self, empty: list[ScanResult]) -> None:
        """Answer for the first groups as if there were no rows, with noise that nobody sees: what is made of the
        engine's sums must not fail after the charge."""
        first = np.full(empty[0].stats.size, -1)
        first[:2] = np.arange(len(first[:2]))
        few = [ScanResult(scan.names, scan.stats.at_places(first, len(first[:2]))) for scan in empty]
        with unheard():
            self._answer(few, seeded(0))

    def _answer(self, found: list[ScanResult], rng: Any) -> Any:
        rows = self.rows
        shown: Mapping[tuple[Any, ...], int] = {}
        if self.selection is None:
            stats = found[0].stats
            keys = rows.public_keys(stats.size)
            for scan in found[1:]:
                stats.join(scan.stats)
        else:
            names, held = found[0].names or (), found[0].stats.rows.tolist()
            shown = self.selection.release(
                {name: count for name, count in zip(names, held, strict=True) if count}, rng
            ).value
            stats = _stats_of_cells(found, list(shown))
            keys = {key: [cell[number] for cell in shown] for number, key in enumerate(rows.keys)}
        noisy = [
            None if mechanism is None else aggregate.noisy(rows, mechanism, stats, rng)
            for aggregate, mechanism in self._measured
        ]
        totals = Totals.of(stats.size, keys, self.levels)
        answers: dict[str, Any] = {}
        ends: dict[str, Any] = {}
        whole = {name for name, aggregate in self.aggregates if aggregate.shown_whole(rows)}
        judged = self.doubts is not None and not rows.private_keys and totals.size <= _MOST_JUDGED
        for name, aggregate, read in self._read:
            if (drawn := noisy[read.place]) is None:
                assert self.selection is not None
                answers[name] = np.array(list(shown.values()), np.int64)
                ends[name] = widen_to_whole(self.selection.interval(answers[name])) if self.errors else None
                continue
            numbers, mechanism = totals.add_totals(drawn[:, read.columns]), self.mechanisms[read.place]
            answers[name] = aggregate.estimate(rows, numbers)
            ends[name] = (
                aggregate.interval(rows, mechanism, numbers, totals.sizes)
                if self.errors or (judged and isinstance(aggregate, JUDGED))
                else None
            )
            if name in whole:
                answers[name] = as_whole(answers[name])
                ends[name] = None if ends[name] is None else widen_to_whole(ends[name])
        known = {name: found for name, found in ends.items() if found is not None}
        if judged:
            self._judge(totals, known)
        return as_frame(rows, totals, answers, self.after, known if self.errors else {}, whole)

    def _judge(self, totals: Totals, ends: Mapping[str, Any]) -> None:
        """Write down what looks wrong with the columns that are shown."""
        assert self.doubts is not None
        shown = [pair for pair in self.aggregates if self.after is None or pair[0] in self.after.names]
        columns = dict(totals.keys)
        for name, found in ends.items():
            columns |= {f"{name}_low": found[:, 0].tolist(), f"{name}_high": found[:, 1].tolist()}
        self.doubts[:] = doubts(self.rows, shown, columns)

    def explain(self) -> Explanation:
        """What will be done, its cost and its errors."""
        rows = self.rows
        stated = [
            "that of the selection of groups" if mechanism is None else aggregate.describe_error(rows, mechanism)
            for aggregate, mechanism in self._measured
        ]
        errors = {name: stated[read.place] for name, _, read in self._read}
        used = {name for _, aggregate in self.aggregates for name in rows.columns_used(aggregate.scan(rows))}
        if self.selection is None:
            groups = f"{rows.public_groups} public"
        else:
            groups = f"those shown: 95 of 100 with {math.ceil(self.selection.error(0.95))} rows"
        return Explanation(
            source=rows.source.name,
            unit=rows.limit.describe(),
            filters=len(rows.conditions),
            keys=rows.keys,
            groups=groups,
            scans=len(self.scans()),
            event=self.event,
            errors=errors,
            bias="\n".join(biases(rows, [aggregate for _, aggregate in self.aggregates])) or None,
            doubts=unmet_conditions(rows, used, None if self.after is None else self.after.having),
            note="" if self.after is None else "columns, rows and order of the answer are made of what was released",
        )


@dataclass(frozen=True)
class Explanation:
    """What a query will do, what it will cost, and how good the answer will be. Prints as a few lines."""

    source: str
    unit: str
    filters: int
    keys: tuple[str, ...]
    groups: str
    scans: int
    event: events.Event
    errors: Mapping[str, str]
    bias: str | None = None  # a line for each thing that is cut, left out or capped
    note: str = ""
    doubts: tuple[str, ...] = ()  # conditions that no declared value meets

    def __str__(self) -> str:
        chosen = f"those that pass {self.filters} filter(s)" if self.filters else "all"
        by = f"by {', '.join(self.keys)} ({self.groups})" if self.keys else "all rows together"
        lines = [
            f"table   {self.source}",
            f"unit    {self.unit}",
            f"groups  {by}",
            f"rows    {chosen}, read {self.scans} time(s)",
            f"cost    {self.event}",
        ]
        lines += [f"error   {name}: {error} (95 %)" for name, error in self.errors.items()]
        lines += [f"bias    {line}" for line in (self.bias or "").splitlines()]
        lines += [f"check   {line}" for line in self.doubts]
        return "\n".join([*lines, *([f"after   {self.note}"] if self.note else [])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _no_answer(rows: GroupedRows) -> str:
    """Why nothing is asked of rows of which there is none, by public facts."""
    what = "No group can meet the conditions" if rows.keys else "No row can meet the conditions"
    answer = "the answer would have no rows" if rows.keys else "the answer would be that of an empty table"
    reasons = "".join(
        f" {line.rstrip('.?')}{'?' if line.endswith('?') else '.'}" for line in unmet_conditions(rows, ())
    )
    return (
        f"{what}, by what is declared: {answer}.{reasons} Nothing was read or charged: mend the conditions (WHERE, "
        "filter), or the declarations."
    )


def _stats_of_cells(found: Sequence[ScanResult], cells: Sequence[tuple[Any, ...]]) -> Stats:
    """What scans found of some groups, whose set is private."""
    place = {cell: number for number, cell in enumerate(cells)}
    out = Stats(len(cells))
    for number, scan in enumerate(found):
        places = np.array([place.get(name, -1) for name in scan.names or ()], np.int64)
        stats = scan.stats.at_places(places, len(cells))
        out.join(stats) if number else out.numbers.update(stats.numbers)
    return out


def _part(progress: Progress | None, number: int, count: int) -> Progress | None:
    return None if progress is None else lambda share: progress((number + share) / count)
