"""Counts, sums and moments of each group: what they need of a scan, what meets noise, what is made of the noisy
numbers.

Sensitivities are for a unit with at most m rows. All are exact: the numbers are whole (see ``fixed_point``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from discreet import events
from discreet.mechanisms.budget import AdditiveMechanism, Budget
from discreet.random import Rng
from discreet.statistics.means import mean_of_pairs
from discreet.statistics.variances import variance_of_triples
from discreet.tables.confidence import LEVEL, POPULATION, around, half_of_moment, place_of_mean, reach, sample_interval
from discreet.tables.fixed_point import COARSE, FINE
from discreet.tables.passes import GroupedRows, ScanPass, Stats
from discreet.tables.scans import Whole
from discreet.tables.whole_values import holds_whole_numbers

__all__ = ["Aggregate", "Count", "Mean", "Sum", "UnitTotal", "Variance"]

SIZES = (100, 1_000, 10_000)  # rows in a group, for which explain() shows errors that depend on it


@dataclass(frozen=True)
class Aggregate(ABC):
    """One column of the answer."""

    kind: ClassVar[Literal["additive", "selecting"]] = "additive"
    width: ClassVar[int] = 1
    summable: ClassVar[bool] = True  # whether the noisy numbers of groups, added up, are those of the groups together

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in the answer, unless another is given."""

    @abstractmethod
    def scan(self, rows: GroupedRows) -> ScanPass:
        """What it needs of a scan; also refuses, before data is read, columns that do not suit."""

    @abstractmethod
    def sensitivity(self, rows: GroupedRows) -> Fraction | int:
        """The most that one unit changes ``exact``, in L1."""

    @abstractmethod
    def exact(self, rows: GroupedRows, stats: Stats) -> Sequence[Whole]:
        """The whole numbers or fractions that meet noise: columns with one entry per group."""

    @abstractmethod
    def estimate(self, rows: GroupedRows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        """The answer from noisy numbers, one row per group."""

    @abstractmethod
    def describe_error(self, rows: GroupedRows, mechanism: Any) -> str:
        """What the error stays within in 95 of 100 groups, from public facts."""

    def interval(
        self, rows: GroupedRows, mechanism: Any, noisy: NDArray[np.float64], cells: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Ends between which the answer without noise lies in 95 of 100 groups (``confidence``); none if not known.

        That of one number which is the answer itself; others say their own.
        """
        return around(noisy[:, 0], reach(mechanism, cells)) if self.width == self.entries(rows) == 1 else None

    def whole(self, rows: GroupedRows) -> bool:
        """Whether ``exact`` gives whole numbers that are answered as such, from public facts."""
        return False

    def shown_whole(self, rows: GroupedRows) -> bool:
        """Whether the answer without noise is a whole number, by public facts: then so is the one that is shown."""
        return self.whole(rows)

    def entries(self, rows: GroupedRows) -> int:
        """How many numbers of a group meet noise."""
        return self.width

    def mechanism(self, rows: GroupedRows, share: Budget, groups: int) -> Any:
        """The noise it uses."""
        return share.additive(self.sensitivity(rows), groups * self.entries(rows), whole=self.whole(rows))

    def event(self, rows: GroupedRows, mechanism: Any) -> events.Event:
        """What it costs."""
        return mechanism.event  # type: ignore[no-any-return]

    def noisy(self, rows: GroupedRows, mechanism: Any, stats: Stats, rng: Rng) -> NDArray[np.float64]:
        """The numbers of all groups, with noise, one row per group: all that is known of them from here on."""
        exact = np.stack(list(self.exact(rows, stats)), axis=1)
        return np.asarray(mechanism.release(exact, rng).value, np.float64).reshape(exact.shape)


@dataclass(frozen=True)
class Count(Aggregate):
    """How many rows there are; with a column, how many have a value there. Whole, with whole noise; may be negative."""

    column: str | None = None

    @property
    def name(self) -> str:
        return "count" if self.column is None else f"{self.column}_count"

    def scan(self, rows: GroupedRows) -> ScanPass:
        return ScanPass() if self.column is None else ScanPass(sums=((_check_bounded(rows, self.column), FINE),))

    def sensitivity(self, rows: GroupedRows) -> int:
        return rows.limit.rows

    def whole(self, rows: GroupedRows) -> bool:
        return True

    def exact(self, rows: GroupedRows, stats: Stats) -> Sequence[Whole]:
        return [stats.rows if self.column is None else stats.count_of(self.column)]

    def estimate(self, rows: GroupedRows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        return np.rint(noisy[:, 0]).astype(np.int64)

    def describe_error(self, rows: GroupedRows, mechanism: AdditiveMechanism) -> str:
        return f"±{mechanism.error(0.95):.4g}"


@dataclass(frozen=True)
class Sum(Aggregate):
    """The sum of clipped values; one row adds at most the larger magnitude of the bounds.

    A sum of whole numbers (by the type of the column, and the bounds) is whole, and so is its noise.
    """

    column: str

    @property
    def name(self) -> str:
        return f"{self.column}_sum"

    def scan(self, rows: GroupedRows) -> ScanPass:
        return ScanPass(sums=((_check_bounded(rows, self.column), FINE),))

    def sensitivity(self, rows: GroupedRows) -> Fraction:
        return rows.limit.rows * rows.grid(self.column).largest

    def whole(self, rows: GroupedRows) -> bool:
        return rows.whole(self.column)

    def shown_whole(self, rows: GroupedRows) -> bool:
        return holds_whole_numbers(rows, self.column)

    def exact(self, rows: GroupedRows, stats: Stats) -> Sequence[Whole]:
        grid = rows.grid(self.column)
        below = math.lcm(grid.low.denominator, grid.step.denominator)  # a power of two: doubles have no others
        low, step = int(grid.low * below), int(grid.step * below)
        rows_at_most = int(stats.rows.max(initial=1))  # a rehearsal has none, but numbers of the same size
        most = rows_at_most * (abs(low) + grid.top * step)
        if self.whole(rows) and most < 2**63:
            return [(stats.count_of(self.column) * low + stats.total(self.column) * step) // below]
        if most < 2**53:  # exact in doubles
            return [(stats.count_of(self.column) * low + stats.total(self.column) * step) / below]
        total = stats.count_of(self.column).astype(object) * low + stats.total(self.column).astype(object) * step
        return [total // below if self.whole(rows) else total * Fraction(1, below)]

    def estimate(self, rows: GroupedRows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        return noisy[:, 0]

    def describe_error(self, rows: GroupedRows, mechanism: AdditiveMechanism) -> str:
        return f"±{mechanism.error(0.95):.4g}"


@dataclass(frozen=True)
class UnitTotal(Sum):
    """The sum, over units, of each unit's total of a column, or of its rows, clipped to bounds of its own.

    No row is dropped: what a unit adds up to is cut instead. A unit counts in at most ``limit.spread`` groups, in each
    with at most the larger magnitude of those bounds. ``column`` is declared with them; ``of`` is what is added up.
    """

    of: str = ""

    @property
    def name(self) -> str:
        return f"{self.of}_sum" if self.of else "count"

    def scan(self, rows: GroupedRows) -> ScanPass:
        if self.of:
            rows.grid(self.of)
        return ScanPass(sums=((_check_bounded(rows, self.column), FINE),), per_unit=self.of)

    def sensitivity(self, rows: GroupedRows) -> Fraction:
        return (rows.limit.spread if rows.keys else 1) * rows.grid(self.column).largest

    def whole(self, rows: GroupedRows) -> bool:
        return not self.of and rows.grid(self.column).scale >= 1

    def shown_whole(self, rows: GroupedRows) -> bool:
        bounds = rows.grid(self.column).bounds
        ends_whole = float(bounds.low).is_integer() and float(bounds.high).is_integer()
        return not self.of or (ends_whole and holds_whole_numbers(rows, self.of))

    def estimate(self, rows: GroupedRows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        return noisy[:, 0] if self.of else np.rint(noisy[:, 0]).astype(np.int64)


@dataclass(frozen=True)
class Mean(Aggregate):
    r"""The mean of clipped values, where the number of rows is private too.

    What meets noise is the pair (Σk, Σ(K - k)): its L1 sensitivity is exactly K, for a sum *and* a count, because the
    two parts of a row always add up to K. With A and B the noisy pair, cut at zero, the answer is L + (U - L)·A/(A +
    B); if both are zero, which says that the group is tiny, the middle of the bounds (``statistics.means``).
    """

    column: str
    width = 2

    @property
    def name(self) -> str:
        return f"{self.column}_mean"

    def scan(self, rows: GroupedRows) -> ScanPass:
        return ScanPass(sums=((_check_bounded(rows, self.column), FINE),))

    def sensitivity(self, rows: GroupedRows) -> int:
        return rows.limit.rows * rows.grid(self.column).top

    def exact(self, rows: GroupedRows, stats: Stats) -> Sequence[Whole]:
        total, most = stats.total(self.column), stats.count_of(self.column) * rows.grid(self.column).top
        return [total, most - total]

    def estimate(self, rows: GroupedRows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        bounds = rows.grid(self.column).bounds
        return mean_of_pairs(noisy, (bounds.low, bounds.high))

    def interval(
        self, rows: GroupedRows, mechanism: Any, noisy: NDArray[np.float64], cells: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        bounds = rows.grid(self.column).bounds
        found = place_of_mean(noisy, mechanism, cells, mean_of_pairs(noisy, (0.0, 1.0)))
        return bounds.low + (bounds.high - bounds.low) * found

    def describe_error(self, rows: GroupedRows, mechanism: AdditiveMechanism) -> str:
        # A group of n rows at the edge of the bounds, the worst place: the error is that of one of the pair, over nK.
        bounds, top = rows.grid(self.column).bounds, rows.grid(self.column).top
        one = mechanism.error(0.95) / top * (bounds.high - bounds.low)
        return ", ".join(f"±{min(one / n, bounds.high - bounds.low):.4g} at {n:,} rows" for n in SIZES)


@dataclass(frozen=True)
class Variance(Aggregate):
    r"""The population variance of clipped values; that of the ``sample`` divides by one less; or its ``root``.

    With t = k/K, what meets noise is (Σt², Σ2t(1 - t), Σ(1 - t)²) times K²: three non-negative parts of every row that
    add up to K², so the L1 sensitivity is K² for the count and both moments together.
    """

    column: str
    sample: bool = False
    root: bool = False
    width = 3

    @property
    def name(self) -> str:
        return f"{self.column}_{'sample_' if self.sample else ''}{'deviation' if self.root else 'variance'}"

    def scan(self, rows: GroupedRows) -> ScanPass:
        return ScanPass(sums=((_check_bounded(rows, self.column), COARSE),))

    def sensitivity(self, rows: GroupedRows) -> int:
        return rows.limit.rows * rows.grid(self.column, COARSE).top ** 2

    def exact(self, rows: GroupedRows, stats: Stats) -> Sequence[Whole]:
        top = rows.grid(self.column, COARSE).top
        count, total, squares = (
            stats.count_of(self.column, COARSE),
            stats.total(self.column, COARSE),
            stats.squares(self.column),
        )
        return [squares, 2 * (top * total - squares), count * top**2 - 2 * top * total + squares]

    def estimate(self, rows: GroupedRows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        bounds = rows.grid(self.column).bounds
        found = variance_of_triples(noisy, (bounds.low, bounds.high))
        if self.sample:
            size = np.maximum(noisy.sum(axis=-1) / rows.grid(self.column, COARSE).top ** 2, 2.0)
            found = found * size / (size - 1)
        return np.sqrt(found) if self.root else found

    def interval(
        self, rows: GroupedRows, mechanism: Any, noisy: NDArray[np.float64], cells: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        bounds, most = rows.grid(self.column).bounds, 0.25
        share = np.maximum(noisy, 0.0) / np.maximum(np.maximum(noisy, 0.0).sum(axis=1, keepdims=True), 1.0)
        mean = share[:, 1] / 2 + share[:, 2]  # weights are derivatives, times n: see ``statistics.Variance``
        weights = np.stack([0 * mean, -mean, 1 - 2 * mean], 1) + (2 * mean**2 - share[:, 2])[:, None]
        half = half_of_moment(noisy, weights, mechanism, cells, most, 1.0, POPULATION if self.sample else LEVEL)
        ends = np.clip(around(variance_of_triples(noisy, (0.0, 1.0)), half), 0.0, most)
        ends *= (bounds.high - bounds.low) ** 2
        if self.sample:
            ends = sample_interval(ends, noisy, rows.grid(self.column, COARSE).top ** 2, mechanism, cells)
        return np.sqrt(ends) if self.root else ends

    def describe_error(self, rows: GroupedRows, mechanism: AdditiveMechanism) -> str:
        # The noise acts through weights whose absolute values add up to at most 1 (``statistics.Variance.error``).
        bounds, top = rows.grid(self.column).bounds, rows.grid(self.column, COARSE).top
        one = mechanism.error(0.95) / top**2
        squares = [min(one / n, 0.25) * (bounds.high - bounds.low) ** 2 for n in SIZES]
        # a root moves by at most the root of what its square moves by
        errors = [math.sqrt(square) if self.root else square for square in squares]
        return ", ".join(f"±{error:.4g} at {n:,} rows" for error, n in zip(errors, SIZES, strict=True))


def _check_bounded(rows: GroupedRows, column: str) -> str:
    rows.grid(column)
    return column
