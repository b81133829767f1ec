"""What a scan of the table is asked for, and what it finds of all groups: exact whole numbers, a column each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.tables.columns import BinCut
from discreet.tables.fixed_point import COARSE, FINE

__all__ = ["ScanPass", "ScanResult", "Stats", "Whole"]

Whole: TypeAlias = NDArray[Any]  # whole numbers, one per group: of 64 bits, or Python's where those might not do


@dataclass(frozen=True)
class ScanPass:
    """What one scan gathers for each group: rows, and of each column sums, or bins, or distinct values."""

    sums: tuple[tuple[str, int], ...] = ()  # column, and the steps of its grid
    bins: BinCut | None = None
    distinct: str | None = None
    products: tuple[tuple[str, str], ...] = ()  # pairs among the coarse sums, which have values in the same rows
    per_unit: str | None = None  # the one sum is of each unit's total of this column, or of its rows if it is ""

    @property
    def apart(self) -> bool:
        """Whether it takes a scan of its own."""
        return bool(self.bins or self.distinct) or self.per_unit is not None


@dataclass
class Stats:
    """Exact whole numbers of ``size`` groups: every column has one entry per group."""

    size: int
    numbers: dict[Any, Whole] = field(default_factory=dict)
    binned: dict[BinCut, tuple[Whole, Whole, Whole]] = field(default_factory=dict)  # group, bin, rows: rising by group

    def _column(self, *name: Any) -> Whole:
        return self.numbers.get(name, np.zeros(self.size, np.int64))

    @property
    def rows(self) -> Whole:
        """How many rows each group has."""
        return self._column("rows")

    def count_of(self, column: str, steps: int = FINE) -> Whole:
        """How many of them have a value there."""
        return self._column("count", column, steps)

    def total(self, column: str, steps: int = FINE) -> Whole:
        """The sum of k."""
        return self._column("sum", column, steps)

    def squares(self, column: str) -> Whole:
        """The sum of k², on the coarse grid."""
        return self._column("squares", column, COARSE)

    def product(self, left: str, right: str) -> Whole:
        """The sum of k·l, on the coarse grids."""
        return self._column("product", left, right)

    def distinct(self, column: str) -> Whole:
        """How many different values there are."""
        return self._column("distinct", column)

    def bins(self, bins: BinCut) -> Iterator[Whole]:
        """How many rows fall in each bin, group by group: all bins of all groups need not fit in memory."""
        none = np.zeros(0, np.int64)
        groups, numbers, rows = self.binned.get(bins, (none, none, none))
        starts = np.searchsorted(groups, np.arange(self.size + 1))
        for group in range(self.size):
            counts, held = np.zeros(bins.count, np.int64), slice(starts[group], starts[group + 1])
            np.add.at(counts, numbers[held], rows[held])
            yield counts

    def join(self, other: Stats) -> None:
        """Take over what a further scan found of the same groups, but its count of rows.

        A unit's rows are chosen anew in each scan, perhaps of another group: counted by two scans it would count twice.
        """
        self.numbers |= {name: column for name, column in other.numbers.items() if name != ("rows",)}
        self.binned |= other.binned

    def at_places(self, places: NDArray[np.int64], size: int) -> Stats:
        """The same numbers where group i is one of ``size``, at ``places[i]``; of a place that several have, the sum;
        what has place -1 is left out."""
        out = Stats(size)
        kept = places >= 0
        for name, column in self.numbers.items():
            added = np.zeros(size, column.dtype)
            np.add.at(added, places[kept], column[kept])
            out.numbers[name] = added
        for bins, (groups, numbers, rows) in self.binned.items():
            moved = places[groups]
            order = np.argsort(moved, kind="stable")
            order = order[moved[order] >= 0]
            out.binned[bins] = moved[order], numbers[order], rows[order]
        return out


@dataclass(frozen=True)
class ScanResult:
    """What a scan found: the ``names`` of the groups in the order of ``stats``, where their set is private; none where
    they are all public groups, in the order of the declarations."""

    names: tuple[tuple[Any, ...], ...] | None
    stats: Stats
