"""What looks wrong with an answer: means at their bounds, categories and days that no row seems to have.

Everything here is a function of noisy answers and of public facts, so it costs nothing. A file that writes its days,
numbers or categories otherwise than its schema says is read as empty cells, and the answer is noise: nothing else
would tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from discreet.schema import Categories
from discreet.tables.aggregates import Aggregate, Count, Mean, Sum
from discreet.tables.passes import GroupedRows

__all__ = ["JUDGED", "DoubtfulAnswer", "doubts"]

JUDGED = (Count, Mean, Sum)  # whose intervals tell
MOST_TOUCH = 0.8  # of the intervals: from here on something is wrong with the column, or groups are too small
_OWNER = "'discreet check' tells its owner"


class DoubtfulAnswer(UserWarning):
    """An answer that looks as if the file were written otherwise than its schema says."""


def doubts(
    rows: GroupedRows, aggregates: Sequence[tuple[str, Aggregate]], columns: Mapping[str, Sequence[Any]]
) -> Iterator[str]:
    """A sentence for each doubt, of an answer's columns: keys, and the ends ``..._low`` and ``..._high`` of what has
    an interval.

    >>> import polars as pl
    >>> from discreet.schema import Bounded
    >>> from discreet.tables.table import table
    >>> visits = table(pl.DataFrame({"days": ["3,5"]}), schema={"days": Bounded(0, 30)}).sum("days")
    >>> for line in doubts(visits.rows, visits.aggregates, {"days_sum_low": [-8.0], "days_sum_high": [7.5]}):
    ...     print(line.partition(".")[0])
    days_sum: the interval holds zero, so the noise hides whether there is anything to add up
    """
    known = [(name, one) for name, one in aggregates if f"{name}_low" in columns and f"{name}_high" in columns]
    for name, one in known:
        if isinstance(one, Mean):
            yield from _at_bounds(rows, name, one, _intervals(name, columns))
    counts = [name for name, one in known if isinstance(one, Count)]
    not_found = list(_not_found(rows, counts[0], columns)) if counts else []
    yield from not_found
    for name, one in known:
        if isinstance(one, Sum) or (isinstance(one, Count) and not not_found):
            yield from _nothing(name, one, _intervals(name, columns))


def _intervals(name: str, columns: Mapping[str, Sequence[Any]]) -> list[tuple[float, float]]:
    ends = zip(columns[f"{name}_low"], columns[f"{name}_high"], strict=True)
    return [(low, high) for low, high in ends if low is not None and high is not None]


def _at_bounds(rows: GroupedRows, name: str, mean: Mean, intervals: list[tuple[float, float]]) -> Iterator[str]:
    """A mean of which every interval reaches the bounds: the column was perhaps never read as meant."""
    bounds = rows.grid(mean.column).bounds
    touching = [low <= bounds.low or high >= bounds.high for low, high in intervals]
    # intervals fail in 5 of 100 groups, so that of many one or the other touches nothing by chance
    if intervals and not bounds.auto and sum(touching) >= MOST_TOUCH * len(intervals):
        every = "the interval touches" if len(intervals) == 1 else "all intervals touch"
        every = every if all(touching) else "nearly all intervals touch"
        yield (
            f"{name}: {every} the bounds {bounds.low:g} to {bounds.high:g}: check the bounds, and how the "
            "file writes its numbers (separator, decimal); or groups are too small for this epsilon"
        )


def _not_found(rows: GroupedRows, count: str, columns: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    """Declared texts of which the noise hides whether there is any row: they are often spelt another way."""
    for key in rows.keys:
        declared = rows.schema[key]
        if key not in columns or key in rows.derived or not isinstance(declared, Categories):
            continue
        seen = zip(columns[key], columns[f"{count}_low"], strict=True)
        present = {value for value, low in seen if low is not None and low > 0}
        absent = [value for value in dict.fromkeys(columns[key]) if value in declared.values]
        absent = [str(value) for value in absent if isinstance(value, str) and value not in present]
        if absent:
            named = ", ".join(map(repr, absent[:3])) + (f" and {len(absent) - 3} more" if absent[3:] else "")
            yield (
                f"{key}: the noise hides whether any row has {named}. If there should be some: are they spelt as "
                f"in the file (capitals, spaces), and is the file UTF-8? {_OWNER}"
            )


def _nothing(name: str, one: Aggregate, intervals: list[tuple[float, float]]) -> Iterator[str]:
    """A count of which no interval is above zero, or a sum of which all hold it: no cell was read as meant, perhaps."""
    counted = isinstance(one, Count)
    holding = [low <= 0 and (counted or high >= 0) for low, high in intervals]
    if not holding or sum(holding) < MOST_TOUCH * len(holding):
        return
    every = "the interval holds" if len(holding) == 1 else "all intervals hold"
    every = every if all(holding) else "nearly all intervals hold"
    what = "there are such rows" if counted else "there is anything to add up"
    yield (
        f"{name}: {every} zero, so the noise hides whether {what}. If there should be: does the file write days, "
        f"numbers and categories as the schema says (date_format, decimal, capitals)? {_OWNER}. Or groups are too "
        "small for this epsilon"
    )
