"""What a scan of the table is asked for, and what it finds of each group: exact whole numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from discreet.tables.columns import Bins
from discreet.tables.fixed_point import COARSE, FINE

__all__ = ["Pass", "Stats"]


@dataclass(frozen=True)
class Pass:
    """What one scan gathers for each group: rows, and of each column sums, or bins, or distinct values."""

    sums: tuple[tuple[str, int], ...] = ()  # column, and the steps of its grid
    bins: Bins | None = None
    distinct: str | None = None
    products: tuple[tuple[str, str], ...] = ()  # pairs among the coarse sums, which have values in the same rows
    per_unit: str | None = None  # the one sum is of each unit's total of this column, or of its rows if it is ""

    @property
    def apart(self) -> bool:
        """Whether it takes a scan of its own."""
        return bool(self.bins or self.distinct) or self.per_unit is not None


@dataclass
class Stats:
    """Exact whole numbers of one group."""

    numbers: Counter[Any] = field(default_factory=Counter)
    binned: dict[Bins, Counter[int]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows the group has."""
        return self.numbers["rows"]

    def counted(self, column: str, steps: int = FINE) -> int:
        """How many of them have a value there."""
        return self.numbers["count", column, steps]

    def total(self, column: str, steps: int = FINE) -> int:
        """The sum of k."""
        return self.numbers["sum", column, steps]

    def squares(self, column: str) -> int:
        """The sum of k², on the coarse grid."""
        return self.numbers["squares", column, COARSE]

    def product(self, left: str, right: str) -> int:
        """The sum of k·l, on the coarse grids."""
        return self.numbers["product", left, right]

    def bins(self, bins: Bins) -> list[int]:
        """How many rows fall in each bin."""
        found: Mapping[int, int] = self.binned.get(bins, {})
        return [found.get(number, 0) for number in range(bins.count)]

    def distinct(self, column: str) -> int:
        """How many different values there are."""
        return self.numbers["distinct", column]

    def join(self, other: Stats) -> None:
        """Take over what a further scan found of the same group, but its count of rows.

        A unit's rows are chosen anew in each scan, perhaps of another group: counted by two scans it would count twice.
        """
        self.numbers |= {name: value for name, value in other.numbers.items() if name != "rows"}
        self.binned |= other.binned
