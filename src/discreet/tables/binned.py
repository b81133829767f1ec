"""What needs more of a group than its sums: distinct values, histograms, quantiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import events
from discreet.adjacency import Adjacency
from discreet.errors import number, whole
from discreet.mechanisms.budget import AdditiveMechanism, Budget
from discreet.random import Rng
from discreet.schema import Categories, Unlisted
from discreet.statistics.nested_ranks import NestedChoices, rising, spread
from discreet.statistics.ranks import UNIT, RankChoice, heaps_from_counts
from discreet.tables.aggregates import Aggregate
from discreet.tables.columns import BinCut, even_edges
from discreet.tables.passes import GroupedRows, ScanPass, Stats
from discreet.tables.scans import Whole
from discreet.tables.whole_values import holds_whole_numbers

__all__ = ["CountDistinct", "Histogram", "Quantile", "Quantiles"]

MOST_BINS = 1 << 20
_FINER = 12  # bits by which bins are widened, so that several quantiles can share one


@dataclass(frozen=True)
class CountDistinct(Aggregate):
    """How many different values a column has; a unit brings at most as many as it has rows.

    Different units are counted once per unit and group.
    """

    column: str
    summable = False

    @property
    def name(self) -> str:
        return f"{self.column}_distinct"

    def scan(self, rows: GroupedRows) -> ScanPass:
        if self.column == rows.limit.unit:
            return ScanPass(distinct=self.column)
        if not isinstance(rows.schema[self.column], (Unlisted, Categories)):
            raise ValueError(
                f"Column {self.column!r} is {type(rows.schema[self.column]).__name__}, but count_distinct needs "
                "Categories or Unlisted."
            )
        return ScanPass(distinct=self.column)

    def sensitivity(self, rows: GroupedRows) -> int:
        return (rows.limit.groups if rows.keys else 1) if self.column == rows.limit.unit else rows.limit.rows

    def whole(self, rows: GroupedRows) -> bool:
        return True

    def exact(self, rows: GroupedRows, stats: Stats) -> Sequence[Whole]:
        return [stats.distinct(self.column)]

    def estimate(self, rows: GroupedRows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        return np.rint(noisy[:, 0]).astype(np.int64)

    def describe_error(self, rows: GroupedRows, mechanism: AdditiveMechanism) -> str:
        return f"±{mechanism.error(0.95):.4g}"


@dataclass(frozen=True)
class Histogram(Aggregate):
    """Counts in bins: ``bins`` of one width between the bounds, or at public edges. An answer is one list per group.

    A value below the first edge or above the last lies in no bin, as in ``statistics.histogram``.
    """

    column: str
    bins: int | tuple[float, ...] = 10

    @property
    def name(self) -> str:
        return f"{self.column}_histogram"

    def cut(self, rows: GroupedRows) -> BinCut:
        """The bins, with those between the bounds and the edges, which are not shown."""
        return _cut(rows, self.column, self.bins)

    def _shown(self, rows: GroupedRows) -> slice:
        """The bins that are asked for, of those of ``cut``."""
        if not isinstance(self.bins, Sequence):
            return slice(0, self.cut(rows).count)
        below = int(self.bins[0] > rows.grid(self.column).bounds.low)
        return slice(below, below + len(self.bins) - 1)

    def scan(self, rows: GroupedRows) -> ScanPass:
        return ScanPass(bins=self.cut(rows))

    def sensitivity(self, rows: GroupedRows) -> int:
        return rows.limit.rows

    def whole(self, rows: GroupedRows) -> bool:
        return True

    def entries(self, rows: GroupedRows) -> int:
        shown = self._shown(rows)
        return int(shown.stop - shown.start)

    def interval(self, rows: GroupedRows, mechanism: Any, noisy: Any, cells: Any) -> None:
        return None  # one width for all bins, which explain() says

    def exact(self, rows: GroupedRows, stats: Stats) -> Sequence[Whole]:
        cut = self.cut(rows)
        return list(np.array(list(stats.bins(cut)), np.int64).reshape(stats.size, cut.count).T[self._shown(rows)])

    def estimate(self, rows: GroupedRows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        return np.rint(noisy).astype(np.int64)

    def describe_error(self, rows: GroupedRows, mechanism: AdditiveMechanism) -> str:
        return f"±{mechanism.error(0.95):.4g} in each of {self.entries(rows)} bins"


@dataclass(frozen=True)
class Quantile(Aggregate):
    r"""The q-quantile of clipped values, the middle of one of ``bins`` bins, by the exponential mechanism.

    Of a column of whole numbers a bin holds equally many of them, one where there are no more than ``bins``.

    The score of a bin is minus the distance between q·n and the ranks that its rows have, [below, below + inside]: of a
    bin that holds the quantile it is zero, however many rows are heaped there. It is the choice that
    ``statistics.quantile`` makes (``statistics.ranks``), sampled exactly; one row moves a score by at most max(q, 1 -
    q), with q rounded to 2^-20. Groups are disjoint, so a unit with one row pays once; with m rows the score may move m
    times as far, and what it pays in all groups still adds up to ε. An empty group gives a bin at random.

    Reference: Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates".
    """

    column: str
    q: float = 0.5
    bins: int = 1024
    kind = "selecting"
    summable = False

    def __post_init__(self) -> None:
        number("q", self.q, low=0, high=1)
        whole("bins", self.bins, low=1)

    @property
    def name(self) -> str:
        return f"{self.column}_median" if self.q == 0.5 else f"{self.column}_q{self.q:g}"

    def cut(self, rows: GroupedRows) -> BinCut:
        """The bins whose middles may be answered."""
        if (size := self._whole_numbers_in_a_bin(rows)) is None:
            return _cut(rows, self.column, self.bins)
        bounds = rows.grid(self.column).bounds
        count, low = math.ceil((bounds.high - bounds.low + 1) / size), bounds.low - 0.5
        return BinCut(self.column, even_edges(low, low + count * size, count))

    def _whole_numbers_in_a_bin(self, rows: GroupedRows) -> int | None:
        """How many, where public facts say that the column has no other values; otherwise none."""
        bounds = rows.grid(self.column).bounds
        ends_whole = bounds.low.is_integer() and bounds.high.is_integer() and max(-bounds.low, bounds.high) < 2**52
        if bounds.auto or not ends_whole or not holds_whole_numbers(rows, self.column):
            return None
        return math.ceil((bounds.high - bounds.low + 1) / self.bins)

    def scan(self, rows: GroupedRows) -> ScanPass:
        return ScanPass(bins=self.cut(rows))

    def sensitivity(self, rows: GroupedRows) -> int:
        return self._choice(rows, 1.0).sensitivity

    def _choice(self, rows: GroupedRows, epsilon: float) -> RankChoice:
        return RankChoice(
            round(self.q * UNIT), 0, self.cut(rows).count - 1, epsilon, Adjacency.ADD_REMOVE, rows.limit.rows
        )

    def mechanism(self, rows: GroupedRows, share: Budget, groups: int) -> RankChoice:
        epsilon = share.selection(bounded_range=rows.limit.rows == 1)
        _check_selection(epsilon, rows.limit.rows)
        return self._choice(rows, epsilon)

    def event(self, rows: GroupedRows, mechanism: RankChoice) -> events.Event:
        return mechanism.event if rows.limit.rows == 1 else events.PureDP(epsilon=mechanism.event.epsilon)

    def exact(self, rows: GroupedRows, stats: Stats) -> Sequence[Whole]:
        return list(stats.bins(self.cut(rows)))  # of a group each: there is a choice for each, and no noise

    def estimate(self, rows: GroupedRows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        edges, chosen = np.asarray(self.cut(rows).edges), noisy[:, 0].astype(int)
        middles = edges[chosen] + (edges[chosen + 1] - edges[chosen]) / 2
        if self._whole_numbers_in_a_bin(rows) is None:
            return np.asarray(middles)
        return np.asarray(np.minimum(np.floor(middles), rows.grid(self.column).bounds.high))

    def interval(self, rows: GroupedRows, mechanism: Any, noisy: Any, cells: Any) -> None:
        return None  # what is stated is a rank: which values have it is not released

    def noisy(self, rows: GroupedRows, mechanism: RankChoice, stats: Stats, rng: Rng) -> NDArray[np.float64]:
        chosen = [mechanism.choose(heaps_from_counts(counts), rng) for counts in stats.bins(self.cut(rows))]
        return np.array(chosen, np.float64).reshape(-1, 1)

    def describe_error(self, rows: GroupedRows, mechanism: RankChoice) -> str:
        edges, rank = self.cut(rows).edges, f"rank off by at most {mechanism.error(0.95):.4g} rows"
        one_value = self._whole_numbers_in_a_bin(rows) == 1
        return rank if one_value else f"{rank}, and half a bin of {edges[1] - edges[0]:.4g}"


@dataclass(frozen=True)
class Quantiles(Quantile):
    """Several quantiles of clipped values, as one list per group: the middle one splits the rows, and so on, so that m
    of them cost as much as ⌈log₂(m + 1)⌉ (``statistics.nested_ranks``).
    """

    q: tuple[float, ...] = (0.25, 0.5, 0.75)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", rising(self.q))
        whole("bins", self.bins, low=1)

    @property
    def name(self) -> str:
        return f"{self.column}_quantiles"

    def sensitivity(self, rows: GroupedRows) -> int:
        return rows.limit.rows * UNIT

    def mechanism(self, rows: GroupedRows, share: Budget, groups: int) -> Any:
        epsilon = share.selection(len(self.q).bit_length(), bounded_range=rows.limit.rows == 1)
        _check_selection(epsilon, rows.limit.rows)
        last = (self.cut(rows).count << _FINER) - 1
        return NestedChoices(self.q, 0, last, epsilon, Adjacency.ADD_REMOVE, rows.limit.rows)

    def event(self, rows: GroupedRows, mechanism: Any) -> events.Event:
        return mechanism.event  # type: ignore[no-any-return]

    def estimate(self, rows: GroupedRows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        columns = [Quantile.estimate(self, rows, noisy[:, [at]]) for at in range(noisy.shape[1])]
        return np.stack(columns, axis=1)

    def noisy(self, rows: GroupedRows, mechanism: Any, stats: Stats, rng: Rng) -> NDArray[np.float64]:
        chosen = [
            mechanism.choose(spread(heaps_from_counts(counts), _FINER), rng) for counts in stats.bins(self.cut(rows))
        ]
        return np.array(chosen, np.float64).reshape(stats.size, len(self.q)) // (1 << _FINER)

    def describe_error(self, rows: GroupedRows, mechanism: Any) -> str:
        return f"each: {Quantile.describe_error(self, rows, mechanism)}, and 1 in {1 << _FINER:,} of the rows of a bin"


def _check_selection(epsilon: float, rows: int) -> None:
    """Refuse an epsilon for which, divided among the rows of a unit, scales do not fit in 53 bits."""
    low, high = rows * 2.0**-30, rows * 2.0**10
    if not low <= epsilon <= high:
        allowed = f"at most epsilon = {high:g}" if epsilon > high else f"at least epsilon = {low:g}"
        raise ValueError(f"A median or quantile takes {allowed}, but its share of the budget is {epsilon:g}.")


def _cut(rows: GroupedRows, column: str, bins: int | tuple[float, ...]) -> BinCut:
    bounds = rows.grid(column).bounds
    if not isinstance(bins, Sequence):
        count = whole("bins", bins, low=1)
        if count > MOST_BINS:
            raise ValueError(f"bins is {count:,}, but may be {MOST_BINS:,} at most.")
        return BinCut(column, even_edges(bounds.low, bounds.high, count))
    if bounds.auto:  # which edges lie between bounds that are chosen, nobody knows before the charge
        raise ValueError(
            f'Column {column!r} is Bounded("auto"), but edges need declared bounds: give a number of bins.'
        )
    edges = tuple(number("bins", edge, low=bounds.low, high=bounds.high) for edge in bins)
    if len(edges) < 2 or any(a >= b for a, b in pairwise(edges)):
        raise ValueError("bins must be at least two edges that rise.")
    below = (bounds.low,) if edges[0] > bounds.low else ()
    # the last bin has its upper end; what is above it begins at the next double
    above = (math.nextafter(edges[-1], math.inf), bounds.high) if edges[-1] < bounds.high else (bounds.high,)
    return BinCut(column, (*below, *edges[:-1], *above))
