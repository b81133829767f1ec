"""A question about a table: groups and aggregates, with one price for all of them, known before the table is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from discreet.mechanisms.budget import Budget, Noise
from discreet.random import RngLike
from discreet.release import Chargeable, Release, charged
from discreet.tables.aggregates import Aggregate, Count, Mean, Sum, Variance
from discreet.tables.binned import CountDistinct, Histogram, Quantile
from discreet.tables.operation import Explanation, TableOperation
from discreet.tables.passes import GroupedRows, Progress

__all__ = ["TableQuery"]


@dataclass(frozen=True)
class TableQuery:
    """Aggregates for each group. Each method adds a column to the answer; ``release`` asks the question."""

    rows: GroupedRows = field(repr=False)
    aggregates: tuple[tuple[str, Aggregate], ...] = ()
    hidden: frozenset[str] = field(default=frozenset(), repr=False)

    # --- what is asked -----------------------------------------------------------------------------------------------

    def count(self, column: str | None = None, *, name: str | None = None) -> TableQuery:
        """How many rows, or how many with a value in ``column``."""
        return self._with(Count(column), name)

    def sum(self, column: str, *, name: str | None = None) -> TableQuery:
        """The sum of a bounded column."""
        return self._with(Sum(column), name)

    def mean(self, column: str, *, name: str | None = None) -> TableQuery:
        """The mean of a bounded column."""
        return self._with(Mean(column), name)

    def variance(self, column: str, *, name: str | None = None) -> TableQuery:
        """The population variance of a bounded column."""
        return self._with(Variance(column), name)

    def quantile(self, column: str, q: float, *, bins: int = 1024, name: str | None = None) -> TableQuery:
        """The ``q``-quantile of a bounded column, to within a bin of its range."""
        return self._with(Quantile(column, q, bins), name)

    def median(self, column: str, *, bins: int = 1024, name: str | None = None) -> TableQuery:
        """The median of a bounded column."""
        return self.quantile(column, 0.5, bins=bins, name=name)

    def histogram(self, column: str, bins: int | Iterable[float] = 10, *, name: str | None = None) -> TableQuery:
        """Counts of a bounded column in bins: their number, or their public edges."""
        return self._with(Histogram(column, bins if isinstance(bins, int) else tuple(bins)), name)

    def count_distinct(self, column: str, *, name: str | None = None) -> TableQuery:
        """How many different values a column has."""
        return self._with(CountDistinct(column), name)

    def _with(self, aggregate: Aggregate, name: str | None) -> TableQuery:
        column = getattr(aggregate, "column", None)
        if column in self.hidden:
            raise ValueError(f"Column {column!r} was left out by select().")
        aggregate.scan(self.rows)  # refuses what does not suit, now rather than later
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
        progress: Progress | None = None,
    ) -> TableOperation:
        """The question with a budget: its ``event`` and errors are known, and its ``release`` reads the table.

        ``epsilon`` alone is pure DP; with ``delta``, the better of Laplace and Gaussian noise; ``rho`` is zCDP.
        ``progress`` is called with the share of the scan that is done.
        """
        return TableOperation.of(self.rows, self.aggregates, Budget(epsilon, delta, rho, noise), self.label, progress)

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

    def release(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        rho: float | None = None,
        noise: Noise = "auto",
        book: Chargeable | None = None,
        label: str = "",
        rng: RngLike = None,
        progress: Progress | None = None,
    ) -> Release[Any]:
        """Charge ``book``, read the table, and answer with a frame: pandas for pandas, otherwise polars."""
        asked = self.operation(epsilon, delta, rho=rho, noise=noise, progress=progress)
        return charged(asked, book=book, label=label, rng=rng)

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

    def __repr__(self) -> str:
        return f"TableQuery({self.label})"

