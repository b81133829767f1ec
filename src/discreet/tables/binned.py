"""What needs more of a group than its sums: distinct values, histograms, quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import events
from discreet.errors import number, whole
from discreet.mechanisms import Exponential, Gaussian, Laplace
from discreet.random import Rng
from discreet.schema import Categories, Unlisted
from discreet.tables.aggregates import Aggregate
from discreet.tables.budget import Share
from discreet.tables.columns import Bins, even_edges
from discreet.tables.passes import Pass, Rows, Stats

__all__ = ["CountDistinct", "Histogram", "Quantile"]

MOST_BINS = 1 << 20


@dataclass(frozen=True)
class CountDistinct(Aggregate):
    """How many different values a column has; a unit brings at most as many as it has rows."""

    column: str

    @property
    def name(self) -> str:
        return f"{self.column}_distinct"

    def scan(self, rows: Rows) -> Pass:
        if self.column in rows.derived or not isinstance(rows.schema[self.column], (Unlisted, Categories)):
            raise ValueError(f"Column {self.column!r} is Bounded or derived, but count_distinct needs Categories or Unlisted.")
        return Pass(distinct=self.column)

    def sensitivity(self, rows: Rows) -> int:
        return rows.limit.rows

    def exact(self, rows: Rows, stats: Stats) -> Sequence[int]:
        return [stats.distinct(self.column)]

    def estimate(self, rows: Rows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        return np.rint(noisy[:, 0]).astype(np.int64)

    def describe_error(self, rows: Rows, mechanism: Laplace | Gaussian) -> str:
        return f"±{mechanism.error(0.95):.4g}"


@dataclass(frozen=True)
class Histogram(Aggregate):
    """Counts in bins: ``bins`` of one width between the bounds, or at public edges. The answer holds a list a group."""

    column: str
    bins: int | tuple[float, ...] = 10

    @property
    def name(self) -> str:
        return f"{self.column}_histogram"

    def cut(self, rows: Rows) -> Bins:
        """The bins."""
        return _cut(rows, self.column, self.bins)

    def scan(self, rows: Rows) -> Pass:
        return Pass(bins=self.cut(rows))

    def mechanism(self, rows: Rows, share: Share, groups: int) -> Any:
        return share.additive(self.sensitivity(rows), groups * self.cut(rows).count)

    def sensitivity(self, rows: Rows) -> int:
        return rows.limit.rows

    def exact(self, rows: Rows, stats: Stats) -> Sequence[int]:
        return stats.bins(self.cut(rows))

    def estimate(self, rows: Rows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        return np.rint(noisy).astype(np.int64)

    def describe_error(self, rows: Rows, mechanism: Laplace | Gaussian) -> str:
        return f"±{mechanism.error(0.95):.4g} in each of {self.cut(rows).count} bins"


@dataclass(frozen=True)
class Quantile(Aggregate):
    r"""The q-quantile of clipped values, one of the edges of ``bins`` bins, by the exponential mechanism.

    The score of an edge is -|below - q·n|, where below is the number of rows under it; with q = a/b it is computed as the
    whole number -|b·below - a·n|, which one row moves by at most max(a, b - a). Groups are disjoint, so a unit with one
    row pays once; with m rows the score may move m times as far, and what it pays in all groups still adds up to ε.
    An empty group gives an edge at random.

    Reference: Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates".
    """

    column: str
    q: float = 0.5
    bins: int = 1024
    kind = "selecting"

    def __post_init__(self) -> None:
        number("q", self.q, low=0, high=1)
        whole("bins", self.bins, low=1)

    @property
    def name(self) -> str:
        return f"{self.column}_median" if self.q == 0.5 else f"{self.column}_q{self.q:g}"

    @property
    def _fraction(self) -> Fraction:
        return Fraction(repr(float(self.q))).limit_denominator(10_000)

    def cut(self, rows: Rows) -> Bins:
        """The bins whose edges may be answered."""
        return _cut(rows, self.column, self.bins)

    def scan(self, rows: Rows) -> Pass:
        return Pass(bins=self.cut(rows))

    def sensitivity(self, rows: Rows) -> int:
        q = self._fraction
        return rows.limit.rows * max(q.numerator, q.denominator - q.numerator)

    def mechanism(self, rows: Rows, share: Share, groups: int) -> Exponential:
        return share.selecting(self.sensitivity(rows), one_group=rows.limit.rows == 1)

    def event(self, rows: Rows, mechanism: Exponential) -> events.Event:
        return mechanism.event if rows.limit.rows == 1 else events.PureDP(epsilon=mechanism.event.epsilon)

    def exact(self, rows: Rows, stats: Stats) -> Sequence[int]:
        q = self._fraction
        below = [0, *accumulate(stats.bins(self.cut(rows)))]
        return [-abs(q.denominator * under - q.numerator * below[-1]) for under in below]

    def estimate(self, rows: Rows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        edges: NDArray[Any] = np.asarray(self.cut(rows).edges)[noisy[:, 0].astype(int)]
        return edges

    def release(self, rows: Rows, mechanism: Exponential, groups: Sequence[Stats], rng: Rng) -> NDArray[Any]:
        chosen = [mechanism.release(np.array(self.exact(rows, stats), np.int64), rng).value for stats in groups]
        return self.estimate(rows, np.array(chosen, np.float64).reshape(-1, 1))

    def describe_error(self, rows: Rows, mechanism: Exponential) -> str:
        edges = self.cut(rows).edges
        rank = mechanism.error(0.95, size=len(edges)) / self._fraction.denominator
        return f"rank off by at most {rank:.4g} rows, and a bin of {edges[1] - edges[0]:.4g}"


def _cut(rows: Rows, column: str, bins: int | tuple[float, ...]) -> Bins:
    bounds = rows.grid(column).bounds
    if isinstance(bins, int):
        if whole("bins", bins, low=1) > MOST_BINS:
            raise ValueError(f"bins is {bins:,}, but may be {MOST_BINS:,} at most.")
        return Bins(column, even_edges(bounds.low, bounds.high, bins))
    edges = tuple(number("bins", edge, low=bounds.low, high=bounds.high) for edge in bins)
    if len(edges) < 2 or any(a >= b for a, b in pairwise(edges)):
        raise ValueError("bins must be at least two edges that rise.")
    return Bins(column, (bounds.low, *edges[1:-1], bounds.high))
