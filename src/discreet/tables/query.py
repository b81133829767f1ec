"""A question about a table: groups and aggregates, with one price for all of them, known before the table is read."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from discreet.errors import whole
from discreet.habits import BUDGETS, answer_arguments
from discreet.mechanisms.budget import Budget, Noise
from discreet.random import RngLike
from discreet.release import Chargeable, Release, charged
from discreet.schema import Bounded, Schema
from discreet.tables.after import Order, Presentation
from discreet.tables.aggregates import Aggregate, Count, Mean, Sum, UnitTotal, Variance
from discreet.tables.answers import as_table
from discreet.tables.biases import SPELLED
from discreet.tables.binned import CountDistinct, Histogram, Quantile, Quantiles
from discreet.tables.choices import Case
from discreet.tables.choosing import ChoosingOperation
from discreet.tables.conditions import Logic, Missing
from discreet.tables.confidence import LEVEL
from discreet.tables.covariances import Covariance
from discreet.tables.derived import as_number, declaration_of
from discreet.tables.doubts import DoubtfulAnswer
from discreet.tables.error_targets import epsilon_for
from discreet.tables.expressions import Expression
from discreet.tables.habits import ColumnOfGroups, answer_budgets, refuse_habit
from discreet.tables.nodes import Column, Number
from discreet.tables.operation import Explanation, TableOperation
from discreet.tables.passes import GroupedRows, Progress
from discreet.tables.resolve import resolve_constants, text_columns
from discreet.tables.unmet_conditions import unmet_conditions

__all__ = ["TableQuery"]


@answer_budgets
@dataclass(frozen=True)
class TableQuery:
    """Aggregates for each group. Each method adds a column to the answer; ``release`` asks the question."""

    rows: GroupedRows = field(repr=False)
    aggregates: tuple[tuple[str, Aggregate], ...] = ()
    hidden: frozenset[str] = field(default=frozenset(), repr=False)
    after: Presentation | None = field(default=None, repr=False)
    levels: tuple[tuple[str, ...], ...] = field(default=(), repr=False)

    # --- what is asked -----------------------------------------------------------------------------------------------

    def count(self, column: str | None = None, *, unit_most: int | None = None, name: str | None = None) -> TableQuery:
        """How many rows, or how many with a value in ``column``.

        With ``unit_most`` all rows of a unit count, up to so many of them, instead of ``max_rows_per_unit``.
        """
        if unit_most is None:
            if column is None or isinstance(self.rows.schema[column], Bounded):
                return self._with(Count(column), name)
            return self._of_values(column, name)
        if column is not None:
            raise ValueError("unit_most is for count() of rows: for a column, sum() a derived one.")
        return self._with_unit_total("", (0, whole("unit_most", unit_most, low=1)), name)

    def sum(
        self, column: str, *, unit_bounds: tuple[float, float] | None = None, name: str | None = None
    ) -> TableQuery:
        """The sum of a bounded column.

        With ``unit_bounds`` all rows of a unit count, and what they add up to is clipped, instead of dropping rows.
        """
        if unit_bounds is None:
            return self._of_numbers(Sum(column), name)
        return self._with_unit_total(column, unit_bounds, name)

    def _with_unit_total(self, of: str, bounds: tuple[float, float], name: str | None) -> TableQuery:
        if self.rows.limit.unit is None:
            raise ValueError("unit_bounds or unit_most is given, but the table has no unit= whose totals they bound.")
        low, high = bounds
        own = f"{of or 'rows'} of a unit, from {low} to {high}"  # each total is clipped to bounds of its own
        if own in self.rows.schema and dict(self.rows.schema)[own] != Bounded(low, high):
            raise ValueError(f"A column is called {own!r}, as one that this needs: give it another name.")
        schema = Schema({**self.rows.schema, own: Bounded(low, high)})
        return replace(self, rows=replace(self.rows, schema=schema))._with(UnitTotal(own, of), name)

    def mean(self, column: str, *, name: str | None = None) -> TableQuery:
        """The mean of a bounded column."""
        return self._of_numbers(Mean(column), name)

    def variance(self, column: str, *, name: str | None = None) -> TableQuery:
        """The population variance of a bounded column."""
        return self._of_numbers(Variance(column), name)

    def deviation(self, column: str, *, name: str | None = None) -> TableQuery:
        """The standard deviation of a bounded column: the root of the population variance."""
        return self._of_numbers(Variance(column, root=True), name)

    def covariance(self, left: str, right: str, *, name: str | None = None) -> TableQuery:
        """The population covariance of two bounded columns, of rows that have a value in both."""
        return self._with_pair(left, right, name)

    def correlation(self, left: str, right: str, *, name: str | None = None) -> TableQuery:
        """The correlation of two bounded columns, of rows that have a value in both."""
        return self._with_pair(left, right, name, correlation=True)

    def quantile(self, column: str, q: float, *, bins: int = 1024, name: str | None = None) -> TableQuery:
        """The ``q``-quantile of a bounded column, to within a bin of its range."""
        return self._of_numbers(Quantile(column, q, bins), name)

    def quantiles(
        self, column: str, q: Iterable[float] = (0.25, 0.5, 0.75), *, bins: int = 1024, name: str | None = None
    ) -> TableQuery:
        """Several quantiles of a bounded column, as one list per group, for one charge."""
        return self._of_numbers(Quantiles(column, tuple(q), bins), name)

    def median(self, column: str, *, bins: int = 1024, name: str | None = None) -> TableQuery:
        """The median of a bounded column."""
        return self.quantile(column, 0.5, bins=bins, name=name)

    def histogram(self, column: str, bins: int | Iterable[float] = 10, *, name: str | None = None) -> TableQuery:
        """Counts of a bounded column in bins: their number, or their public edges."""
        return self._of_numbers(Histogram(column, tuple(bins) if isinstance(bins, Iterable) else bins), name)

    def count_distinct(self, column: str, *, name: str | None = None) -> TableQuery:
        """How many different values a column has."""
        return self._with(CountDistinct(column), name)

    def _of_numbers(self, aggregate: Any, name: str | None) -> TableQuery:
        """An aggregate of numbers, which categories that are numbers or truth values are too."""
        column, rows = aggregate.column, self.rows
        number = None if column in self.hidden or column in rows.moments else as_number(column, rows.schema)
        if number is None:
            return self._with(aggregate, name)
        own = f"{column} as a number"
        return self._deriving(own, number)._with(replace(aggregate, column=own), name or aggregate.name)

    def _of_values(self, column: str, name: str | None) -> TableQuery:
        """How many rows have a value in a column that is no number."""
        self._refuse_hidden(column)
        rows, own = self.rows, f"{column} has a value"
        one = Expression(Case((Logic("~", (Missing(Column(column)),)),), (Number(1.0),)))
        resolved = resolve_constants(one, rows.schema, text_columns(rows.source.kinds, rows.derived))
        return self._deriving(own, resolved)._with(Count(own), name or Count(column).name)

    def _deriving(self, own: str, expression: Expression) -> TableQuery:
        """The same question of rows with one more column, of an expression that is resolved already."""
        rows = self.rows
        if own not in rows.schema:
            schema = Schema({**rows.schema, own: declaration_of(own, expression, rows.schema)})
            return replace(self, rows=replace(rows, schema=schema, derived={**rows.derived, own: expression}))
        if own not in rows.derived or rows.derived[own].node != expression.node:
            raise ValueError(f"A column is called {own!r}, as one that this needs: give it another name.")
        return self

    def _with_pair(self, left: str, right: str, name: str | None, **kind: bool) -> TableQuery:
        one, other = (Column(column) for column in (left, right))
        first, second = f"{left} beside {right}", f"{right} beside {left}"
        rows = self.rows
        for made, kept, present in ((first, one, other), (second, other, one)):
            rows.grid(kept.name)
            both = Case((Logic("~", (Missing(present),)),), (kept,))
            if made not in rows.schema:
                rows = rows.deriving(made, Expression(both))
            elif made not in rows.derived or rows.derived[made].node != both:
                # of two columns that are not missing in the same rows, one row would move more than is paid for
                raise ValueError(f"A column is called {made!r}, as one that this needs: give it another name.")
        name = name or Covariance(left, right, **kind).name
        return replace(self, rows=rows)._with(Covariance(first, second, **kind), name)

    def totals(self, *levels: Iterable[str]) -> TableQuery:
        """Add rows of totals: for each level, sums of the noisy groups over all keys except those that it names.

        ``totals(["region"], [])`` of groups by region and sex gives each region, and everything, beside the groups:
        what SQL calls ROLLUP. They cost nothing and agree with the groups.
        """
        if self.rows.private_keys:
            raise ValueError(
                "Totals are of public groups, but a key is Unlisted: ask for them by a query of their own."
            )
        found = tuple(tuple(level) for level in levels)
        if unknown := [key for level in found for key in level if key not in self.rows.keys]:
            raise ValueError(f"{unknown[0]!r} is not among the keys: {', '.join(self.rows.keys)}.")
        return replace(self, levels=(self.rows.keys, *found))

    # --- what is made of the answer, which costs nothing ------------------------------------------------------------

    def order_by(self, name: str, *, descending: bool = False) -> TableQuery:
        """The rows of the answer sorted by one of its columns; ties in the order of the keys."""
        after = self._presentation()
        return replace(self, after=replace(after, order=(*after.order, Order(Column(name), descending))))

    def limit(self, count: int) -> TableQuery:
        """The first rows of the answer."""
        return replace(self, after=replace(self._presentation(), limit=whole("count", count, low=0)))

    def _presentation(self) -> Presentation:
        names = (*self.rows.keys, *(name for name, _ in self.aggregates))
        return self.after or Presentation(names, (tuple(map(Column, names)),))

    def _refuse_hidden(self, column: str | None) -> None:
        if column in self.hidden:
            raise ValueError(f"Column {column!r} was left out by select().")

    def _with(self, aggregate: Aggregate, name: str | None) -> TableQuery:
        self._refuse_hidden(getattr(aggregate, "column", None))
        aggregate.scan(self.rows)  # refuses what does not suit, now rather than later
        if self.after is not None:
            raise ValueError("An aggregate is added after order_by() or limit(): say those last.")
        name = name or aggregate.name
        if name in self.rows.keys or name in dict(self.aggregates):
            raise ValueError(f"Two columns of the answer are called {name!r}: give one another name=.")
        return replace(self, aggregates=(*self.aggregates, (name, aggregate)))

    # --- what it costs, and asking -----------------------------------------------------------------------------------

    def operation(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        rho: float | None = None,
        noise: Noise = "auto",
        errors: bool = False,
        progress: Progress | None = None,
    ) -> TableOperation | ChoosingOperation:
        """The question with a budget: its ``event`` and errors are known, and its ``release`` reads the table.

        ``epsilon`` alone is pure DP; with ``delta``, the better of Laplace and Gaussian noise; ``rho`` is zCDP.
        ``progress`` is called with the share of the scan that is done.
        """
        budget = Budget(epsilon, delta, rho, noise)
        if self.rows.limit.auto or self.rows.auto_bounds(self.aggregates):
            return ChoosingOperation.of(self, budget, progress, errors)
        return TableOperation.of(
            self.rows, self.aggregates, budget, self.label, progress, self.after, self.levels, errors
        )

    def explain(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        rho: float | None = None,
        noise: Noise = "auto",
    ) -> Explanation:
        """What will be done, its cost and its errors, before anything is spent."""
        return self.operation(epsilon, delta, rho=rho, noise=noise).explain()

    def epsilon_for(
        self,
        error: float,
        delta: float | None = None,
        *,
        rows: int | None = None,
        noise: Noise = "auto",
        confidence: float = LEVEL,
    ) -> float:
        """The least epsilon at which every answer is within ``error`` of the one without noise, in 95 of 100 groups.

        That is half the width of the interval beside each count, sum or mean. A mean's depends on how many rows a group
        has: ``rows`` is a rough number of them. Nothing is read or spent. The errors of tables are worked out for one
        ``confidence``, 0.95; another is refused.

        >>> import polars
        >>> from discreet import Bounded, Schema, table
        >>> people = table(polars.DataFrame({"age": [30.0, 40.0]}), schema=Schema(age=Bounded(0, 100)))
        >>> people.count().epsilon_for(error=20)
        0.147
        """
        if confidence != LEVEL:
            raise ValueError(
                f"confidence is {confidence!r}, but the errors of tables are worked out for {LEVEL} alone."
            )
        return epsilon_for(lambda epsilon: self.operation(epsilon, delta, noise=noise), error, rows)

    @answer_arguments(BUDGETS)
    def release(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        rho: float | None = None,
        noise: Noise = "auto",
        errors: bool = False,
        book: Chargeable | None = None,
        label: str = "",
        rng: RngLike = None,
        progress: Progress | None = None,
    ) -> Release[Any]:
        """Charge ``book``, read the table, and answer with a frame: pandas for pandas, otherwise polars.

        With ``errors`` columns ``..._low`` and ``..._high`` stand beside counts, sums, means, variances, covariances:
        between them lies the answer without noise, in at least 95 of 100 groups.
        """
        asked = self.operation(epsilon, delta, rho=rho, noise=noise, errors=errors, progress=progress)
        if self.rows.limit.default and not all(isinstance(one, UnitTotal) for _, one in self.aggregates):
            warnings.warn(
                f"One row of each {self.rows.limit.unit!r} counts, because max_rows_per_unit= was not given: where "
                "there are more, totals are too low. Say max_rows_per_unit=1 if that is meant, or more.",
                stacklevel=3,
            )
        for name in sorted(self.rows.source.spelled & self._columns()):
            warnings.warn(f"Column {name!r} is declared as numbers, but {SPELLED}.", stacklevel=3)
        having = None if self.after is None else self.after.having
        for line in unmet_conditions(self.rows, self._columns(), having):
            warnings.warn(f"A condition is met by no declared value. {line}", stacklevel=3)
        told: list[str] = []
        answer = charged(replace(asked, doubts=told), book=book, label=label, rng=rng)
        for line in told:
            with suppress(DoubtfulAnswer):  # a filter that makes errors of warnings must not lose what was paid for
                warnings.warn(f"This answer may not be what you meant. {line}.", DoubtfulAnswer, stacklevel=3)
        return answer

    def _columns(self) -> set[str]:
        return {name for _, aggregate in self.aggregates for name in self.rows.columns_used(aggregate.scan(self.rows))}

    @property
    def unit(self) -> str:
        """Whom the answer protects: a row, or the unit whose rows the table bounds."""
        return self.rows.limit.protects

    @property
    def label(self) -> str:
        """The question in a few words, for the book."""
        what = ", ".join(name for name, _ in self.aggregates) or "nothing"
        by = f" by {', '.join(self.rows.keys)}" if self.rows.keys else ""
        return f"{what}{by}"

    def __getitem__(self, column: str) -> ColumnOfGroups:
        """``table.group_by("sex")["cost"]`` is a column to ask a number of, for each group."""
        if not isinstance(column, str):
            raise TypeError("Groups are asked by the name of a column: table.group_by('sex')['cost'].mean().")
        return ColumnOfGroups(self, column)

    def __getattr__(self, name: str) -> Any:
        refuse_habit("question", name)

    def __repr__(self) -> str:
        return f"TableQuery({self.label})"

    def _repr_html_(self) -> str:
        return as_table({"asks": self.label, "of": self.rows.source.name, "unit": self.rows.limit.describe()})
