"""A question about a table: groups and aggregates, with one price for all of them, known before the table is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from discreet import events
from discreet.errors import extra
from discreet.random import RngLike, as_rng
from discreet.release import ONE_RECORD, Book, Enforced, Release
from discreet.schema import Bounded
from discreet.tables.aggregates import Aggregate, Count, Mean, Sum, Variance
from discreet.tables.binned import CountDistinct, Histogram, Quantile
from discreet.tables.bounding import SecretKey
from discreet.tables.budget import Budget, Noise
from discreet.tables.keys import KeySelection
from discreet.tables.passes import Pass, Progress, Rows, Stats

__all__ = ["Explanation", "Query"]

MOST_GROUPS = 1 << 20


@dataclass(frozen=True)
class Query:
    """Aggregates for each group. Each method adds a column to the answer; ``release`` asks the question."""

    rows: Rows = field(repr=False)
    aggregates: tuple[tuple[str, Aggregate], ...] = ()
    hidden: frozenset[str] = field(default=frozenset(), repr=False)

    # --- what is asked -----------------------------------------------------------------------------------------------

    def count(self, column: str | None = None, *, name: str | None = None) -> Query:
        """How many rows, or how many with a value in ``column``."""
        return self._with(Count(column), name)

    def sum(self, column: str, *, name: str | None = None) -> Query:
        """The sum of a bounded column."""
        return self._with(Sum(column), name)

    def mean(self, column: str, *, name: str | None = None) -> Query:
        """The mean of a bounded column."""
        return self._with(Mean(column), name)

    def variance(self, column: str, *, name: str | None = None) -> Query:
        """The population variance of a bounded column."""
        return self._with(Variance(column), name)

    def quantile(self, column: str, q: float, *, bins: int = 1024, name: str | None = None) -> Query:
        """The ``q``-quantile of a bounded column, to within a bin of its range."""
        return self._with(Quantile(column, q, bins), name)

    def median(self, column: str, *, bins: int = 1024, name: str | None = None) -> Query:
        """The median of a bounded column."""
        return self.quantile(column, 0.5, bins=bins, name=name)

    def histogram(self, column: str, bins: int | Iterable[float] = 10, *, name: str | None = None) -> Query:
        """Counts of a bounded column in bins: their number, or their public edges."""
        return self._with(Histogram(column, bins if isinstance(bins, int) else tuple(bins)), name)

    def count_distinct(self, column: str, *, name: str | None = None) -> Query:
        """How many different values a column has."""
        return self._with(CountDistinct(column), name)

    def _with(self, aggregate: Aggregate, name: str | None) -> Query:
        column = getattr(aggregate, "column", None)
        if column in self.hidden:
            raise ValueError(f"Column {column!r} was left out by select().")
        aggregate.scan(self.rows)  # refuses what does not suit, now rather than later
        name = name or aggregate.name
        if name in self.rows.keys or name in dict(self.aggregates):
            raise ValueError(f"Two columns of the answer are called {name!r}: give one another name=.")
        return replace(self, aggregates=(*self.aggregates, (name, aggregate)))

    # --- what it costs -----------------------------------------------------------------------------------------------

    def event(self, epsilon: float | None = None, delta: float | None = None, *, rho: float | None = None,
              noise: Noise = "auto") -> events.Event:
        """The cost of a release with this budget, from public facts alone."""
        return _Plan.of(self, Budget(epsilon, delta, rho, noise)).event

    def explain(self, epsilon: float | None = None, delta: float | None = None, *, rho: float | None = None,
                noise: Noise = "auto") -> Explanation:
        """Plan, cost and error bars, before anything is spent."""
        return _Plan.of(self, Budget(epsilon, delta, rho, noise)).explained()

    # --- asking ------------------------------------------------------------------------------------------------------

    def release(self, epsilon: float | None = None, delta: float | None = None, *, rho: float | None = None,
                noise: Noise = "auto", book: Book | None = None, label: str = "", rng: RngLike = None,
                progress: Progress | None = None) -> Release[Any]:
        """Charge ``book``, read the table, and answer with a frame: pandas for pandas, otherwise polars.

        ``epsilon`` alone is pure DP; with ``delta``, the better of Laplace and Gaussian noise; ``rho`` is zCDP.
        ``progress`` is called with the share of the scan that is done.
        """
        plan = _Plan.of(self, Budget(epsilon, delta, rho, noise))
        label, source = label or self.label, as_rng(rng)
        run = plan.prepared(source)
        if book is not None:
            book.charge(plan.event, label=label, unit=self.unit)
        answer = run(progress)
        return Release(answer, plan.event, reproducible=source.reproducible, label=label)

    @property
    def unit(self) -> str:
        """Whom the answer protects: a row, or the unit whose rows the table bounds."""
        name = self.rows.limit.unit
        return ONE_RECORD if name is None else Enforced(name)

    @property
    def label(self) -> str:
        """The question in a few words, for the book."""
        what = ", ".join(name for name, _ in self.aggregates) or "nothing"
        by = f" by {', '.join(self.rows.keys)}" if self.rows.keys else ""
        return f"{what}{by}"

    def __repr__(self) -> str:
        return f"Query({self.label})"


@dataclass(frozen=True)
class _Plan:
    """A query with its budget divided: every mechanism is fixed, nothing is read yet."""

    query: Query
    selection: KeySelection | None
    mechanisms: tuple[Any, ...]  # one an aggregate; none where the selection of keys already counts

    @classmethod
    def of(cls, query: Query, budget: Budget) -> _Plan:
        rows = query.rows
        if not query.aggregates:
            raise ValueError("The query has no aggregate: add count(), sum(), mean(), variance(), quantile(), histogram() or "
                             "count_distinct().")
        groups = rows.public_groups
        if groups > MOST_GROUPS:
            raise ValueError(f"The keys have {groups:,} combinations, but at most {MOST_GROUPS:,} public groups are answered: "
                             "group by fewer columns.")
        private = rows.private_keys
        free = [private and aggregate == Count() for _, aggregate in query.aggregates]
        kinds = [aggregate.kind for (_, aggregate), done in zip(query.aggregates, free, strict=True) if not done]
        shares = iter(budget.shares([*(["keys"] if private else []), *kinds]))  # type: ignore[list-item]
        selection = None
        if private:
            share = next(shares)
            assert share.epsilon is not None
            assert share.delta is not None
            selection = KeySelection(share.epsilon, share.delta, rows.limit.rows, rows.limit.groups)
        size = groups if not private else MOST_GROUPS
        mechanisms = tuple(None if done else aggregate.mechanism(rows, next(shares), size)
                           for (_, aggregate), done in zip(query.aggregates, free, strict=True))
        return cls(query, selection, mechanisms)

    @property
    def _parts(self) -> list[tuple[str, Aggregate, Any]]:
        return [(name, aggregate, mechanism) for (name, aggregate), mechanism
                in zip(self.query.aggregates, self.mechanisms, strict=True)]

    @property
    def event(self) -> events.Event:
        """What all of it costs together."""
        rows, first = self.query.rows, self.selection and self.selection.event
        rest = [aggregate.event(rows, mechanism) for _, aggregate, mechanism in self._parts if mechanism is not None]
        return sum(rest, first or 0)  # type: ignore[return-value]

    def scans(self) -> list[Pass]:
        """The passes over the table: one for all sums, one for each set of bins, one for each count of distinct values."""
        wanted = [aggregate.scan(self.query.rows) for _, aggregate in self.query.aggregates]
        sums = tuple(dict.fromkeys(item for scan in wanted for item in scan.sums))
        others = list(dict.fromkeys(scan for scan in wanted if scan.bins or scan.distinct))
        plain = any(not (scan.bins or scan.distinct) for scan in wanted) or self.selection is not None
        return [*([Pass(sums=sums)] if plain else []), *others]

    def prepared(self, rng: Any) -> Callable[[Progress | None], Any]:
        """What reads the table and adds the noise, planned by the engine as far as that goes without reading."""
        rows, key = self.query.rows, SecretKey.draw(rng)
        scans = [rows.prepared(scan, key) for scan in self.scans()]
        return lambda progress: self._run(scans, rng, progress)

    def _run(self, scans: list[Callable[[Progress | None], dict[tuple[Any, ...], Stats]]], rng: Any,
             progress: Progress | None) -> Any:
        rows = self.query.rows
        first, *rest = [scan(_part(progress, number, len(scans))) for number, scan in enumerate(scans)]
        found: dict[tuple[Any, ...], Stats] = first
        for group, stats in chain.from_iterable(scan.items() for scan in rest):
            found.setdefault(group, Stats()).join(stats)
        cells: list[tuple[Any, ...]]
        shown: Mapping[tuple[Any, ...], int] = {}
        if self.selection is None:
            cells = list(rows.cells())
        else:
            shown = self.selection.release({group: stats.rows for group, stats in found.items() if stats.rows}, rng).value
            cells = list(shown)
        groups = [found.get(cell, Stats()) for cell in cells]
        answers = {name: [shown[cell] for cell in cells] if mechanism is None else
                   aggregate.release(rows, mechanism, groups, rng) for name, aggregate, mechanism in self._parts}
        return _frame(rows, cells, answers)

    def explained(self) -> Explanation:
        """The plan as a value that prints itself."""
        rows = self.query.rows
        errors = {name: "that of the selection of groups" if mechanism is None else aggregate.describe_error(rows, mechanism)
                  for name, aggregate, mechanism in self._parts}
        if self.selection is None:
            groups = f"{rows.public_groups} public"
        else:
            groups = f"those shown: 95 of 100 with {math.ceil(self.selection.error(0.95))} rows"
        return Explanation(source=rows.source.name, unit=rows.limit.describe(), filters=len(rows.conditions),
                           keys=rows.keys, groups=groups, scans=len(self.scans()), event=self.event, errors=errors)


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

    def __str__(self) -> str:
        by = f"by {', '.join(self.keys)} ({self.groups})" if self.keys else "all rows together"
        lines = [f"table   {self.source}", f"unit    {self.unit}", f"groups  {by}",
                 f"rows    {f'those that pass {self.filters} filter(s)' if self.filters else 'all'}, read {self.scans} time(s)",
                 f"cost    {self.event}"]
        return "\n".join([*lines, *(f"error   {name}: {error} (95 %)" for name, error in self.errors.items())])

    __repr__ = __str__


def _part(progress: Progress | None, number: int, count: int) -> Progress | None:
    return None if progress is None else lambda share: progress((number + share) / count)


def _frame(rows: Rows, cells: list[tuple[Any, ...]], answers: Mapping[str, Any]) -> Any:
    """The answer as a frame of the user's kind; lists of a histogram stay lists."""
    columns: dict[str, Any] = {key: [cell[number] for cell in cells] for number, key in enumerate(rows.keys)}
    columns |= {name: [list(map(int, entry)) for entry in values] if getattr(values, "ndim", 1) == 2 else list(values)
                for name, values in answers.items()}
    with extra("tables"):
        if rows.source.answers == "pandas":
            import pandas as pd

            return pd.DataFrame(columns)
        import polars as pl
    return pl.DataFrame(columns, strict=False)


def derived_column(name: str, bounds: tuple[float, float]) -> Bounded:
    """The declaration of a derived column, whose bounds follow from its expression."""
    if not all(map(math.isfinite, bounds)) or not bounds[0] < bounds[1]:
        raise ValueError(f"The bounds of {name!r} do not follow from its columns: end the expression with .clip(low, high).")
    return Bounded(*bounds)
