"""How the answer of a query looks: no longer than a screen, an interval with each number, and below it what no interval
holds (caps, bounds, groups that are not shown), all of it made of what was released and of public facts.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from discreet.cli import show

if TYPE_CHECKING:
    from discreet.tables.query import TableQuery

__all__ = ["SHOWN", "Answer", "chart"]

SHOWN = 20  # rows of an answer on a screen
BAR = 40  # characters of the longest bar


class Answer:
    """The rows of an answer, and which of its columns are the ends of intervals."""

    def __init__(self, frame: Any, asked: TableQuery) -> None:
        self.frame, self.asked = frame, asked
        self.names: list[str] = list(frame.columns)
        self.rows: list[list[Any]] = [list(row) for row in frame.rows()]
        self.sorted_by: str | None = None
        # what groups are called: years and codes are no amounts
        self.labels: set[str] = set(asked.rows.keys) if asked.after is None else asked.after.made_of(asked.rows.keys)

    @property
    def with_ends(self) -> list[str]:
        """Columns that have an interval: the two after them are its ends."""
        return [
            name
            for place, name in enumerate(self.names)
            if self.names[place + 1 : place + 3] == [f"{name}_low", f"{name}_high"]
        ]

    @property
    def _ends(self) -> set[str]:
        return {f"{name}_{end}" for name in self.with_ends for end in ("low", "high")}

    @property
    def measure(self) -> str | None:
        """The first column of numbers that is no key: what groups are compared by."""
        for place, name in enumerate(self.names):
            values = [row[place] for row in self.rows if row[place] is not None]
            if name in self.labels or name in self._ends or not values:
                continue
            if all(isinstance(value, Real) and not isinstance(value, bool) for value in values):
                return name
        return None

    def column(self, name: str) -> list[Any]:
        """The values of a column."""
        place = self.names.index(name)
        return [row[place] for row in self.rows]

    def first(self, most: int) -> list[list[Any]]:
        """The rows that are shown: all of them if they are few, otherwise the largest where nobody asked for an
        order.
        """
        if most == 0 or len(self.rows) <= most:
            return self.rows
        after, by = self.asked.after, self.measure
        if by is None or (after is not None and after.order):
            return self.rows[:most]
        self.sorted_by, place = by, self.names.index(by)
        return sorted(self.rows, key=lambda row: -math.inf if row[place] is None else row[place], reverse=True)[:most]

    def print(self, most: int = SHOWN) -> None:
        """The table, and how many rows are not in it."""
        rows = self.first(most)
        shown = [name for name in self.names if name not in self._ends]
        headers = [header for name in shown for header in (name, *self._interval_header(name))]
        show.table("", headers, [[cell for name in shown for cell in self._cells(row, name)] for row in rows])
        if len(rows) < len(self.rows):
            which = f"the largest by {self.sorted_by}" if self.sorted_by else "the first"
            more = len(self.rows) - len(rows)
            show.say(f"... and {more:,} more; shown are {which}. --out FILE writes all of them, --show 0 prints them.")

    def _interval_header(self, name: str) -> list[str]:
        return [f"95 % interval of {name}"] if name in self.with_ends else []

    def _cells(self, row: Sequence[Any], name: str) -> list[str]:
        place = self.names.index(name)
        if name in self.labels:
            return [label(row[place])]
        if name not in self.with_ends:
            return [cell(row[place])]
        low, high = row[place + 1], row[place + 2]
        return [cell(row[place]), "" if low is None or high is None else f"{cell(low)} to {cell(high)}"]

    def notes(self, errors: dict[str, str] | None, shown_size: int | None) -> list[str]:
        """Lines below the table: errors of what has no interval, what caps and declarations leave out, what looks
        wrong."""
        from discreet.tables.biases import column_biases
        from discreet.tables.doubts import doubts

        left_out = [
            *self._cap(errors or {}),
            *column_biases(self.asked.rows, [one for _, one in self.asked.aggregates]),
        ]
        columns = {name: self.column(name) for name in self.names}
        wrong = [*doubts(self.asked.rows, self.asked.aggregates, columns), *self._too_few(shown_size)]
        return [*self._stated(errors or {}), *dict.fromkeys(self._with_decimals()), *left_out, *wrong]

    def _with_decimals(self) -> Iterator[str]:
        """Columns whose quantiles have decimals, though their bounds are whole numbers, as those of ages are."""
        from discreet.tables.binned import Quantile, Quantiles
        from discreet.tables.whole_values import holds_whole_numbers

        rows = self.asked.rows
        for name, one in self.asked.aggregates:
            if name not in self.names or not isinstance(one, (Quantile, Quantiles)) or one.column in rows.derived:
                continue
            bounds = rows.grid(one.column).bounds
            if not holds_whole_numbers(rows, one.column) and float(bounds.low).is_integer() and bounds.high % 1 == 0:
                yield f"{one.column}: if its numbers are whole, whole = true in the schema makes such an answer whole"

    def _stated(self, errors: dict[str, str]) -> Iterator[str]:
        """The error of each column without an interval; and what was chosen for a share of the cost."""
        known = set(self.with_ends) | {name for name, _ in self.asked.aggregates if name not in self.names}
        for name, error in errors.items():
            if name == "max_rows_per_unit":
                continue  # the cap says it
            if name not in known:
                yield f"{name}: {error}" + (" (95 %)" if name in self.names else "")

    def _cap(self, errors: dict[str, str]) -> Iterator[str]:
        """The bias of a cap, which is often larger than the noise."""
        from discreet.tables.aggregates import UnitTotal

        limit = self.asked.rows.limit
        if limit.unit is None or all(isinstance(one, UnitTotal) for _, one in self.asked.aggregates):
            return
        most = int(errors.get("max_rows_per_unit", limit.rows)) if limit.auto else limit.rows
        rows = "1 row" if most == 1 else f"{most:,} rows"
        yield f"counts at most {rows} per {limit.unit!r}: further rows are not counted, nor in any interval"

    def _too_few(self, size: int | None) -> Iterator[str]:
        """Why fewer groups are shown than were asked for."""
        limit = None if self.asked.after is None else self.asked.after.limit
        if size is not None and limit is not None and len(self.rows) < limit:
            yield (
                f"{len(self.rows)} of the {limit} rows asked for: values that the schema does not list are shown only "
                f"where enough rows have them. Of groups with {size:,} rows, 95 of 100 are shown: a larger epsilon or "
                "delta, or max_rows_per_unit = 1, lets smaller ones show."
            )


def cell(entry: Any) -> str:
    """A value for a person: numbers with separators, and with six digits or, where that is more, all before the point.

    >>> cell(1_545_612.3), cell(21.07639), cell(7.0), cell(12)
    ('1,545,612', '21.0764', '7', '12')
    """
    if isinstance(entry, bool) or not isinstance(entry, Real):
        return str(entry)
    if isinstance(entry, Integral):
        return f"{int(entry):,}"
    figure = float(entry)
    whole = figure.is_integer() or abs(figure) >= 1e5
    return f"{figure:,.0f}" if whole and abs(figure) < 1e15 else f"{figure:,.6g}"


def label(entry: Any) -> str:
    """What a group is called: a year or a code has no separators.

    >>> label(2024), label(10.0), label("a"), label(None)
    ('2024', '10', 'a', 'None')
    """
    return f"{entry:.0f}" if isinstance(entry, float) and entry.is_integer() else str(entry)


def chart(answer: Answer, most: int = SHOWN) -> list[str]:
    """Bars of the shown groups, by the first column of numbers; what is below zero has none."""
    if answer.measure is None:
        return ["no chart: the answer has no column of numbers"]
    rows, place = answer.first(most), answer.names.index(answer.measure)
    labels = [at for at, name in enumerate(answer.names) if name in answer.labels]
    names = [", ".join(label(row[at]) for at in labels) or answer.measure for row in rows]
    values = [0.0 if row[place] is None else float(row[place]) for row in rows]
    top = max([*values, 0.0]) or 1.0
    sign = "█" if "█".encode(sys.stdout.encoding or "utf-8", "ignore") else "#"
    width = max(map(len, names), default=0)
    lines = [
        f"{name.ljust(width)}  {(sign * round(BAR * max(value, 0.0) / top)).ljust(BAR)}  {cell(row[place])}"
        for name, value, row in zip(names, values, rows, strict=True)
    ]
    return [f"{answer.measure}:", *lines]
