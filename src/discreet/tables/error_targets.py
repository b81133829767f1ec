"""The epsilon that an error asks for: half the width of the 95 % interval beside each answer, known before any reading.

The error of a count or a sum depends on public facts alone. That of a mean falls with the rows of its group, which are
private: who asks gives a rough number of them. Of totals over groups (ROLLUP) the groups themselves are meant, and of
groups whose names are private those that are surely shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from discreet.errors import positive
from discreet.tables.aggregates import Count, Mean, Sum
from discreet.tables.operation import TableOperation

__all__ = ["epsilon_for", "half_widths"]

LEAST, MOST = 1e-6, 1e3
DIGITS = 3  # of the answer, rounded up


def half_widths(operation: Any, rows: int | None = None) -> dict[str, float]:
    """Half the 95 % interval of each column of an answer, for groups of so many rows."""
    if not isinstance(operation, TableOperation):
        raise ValueError(
            "epsilon for an error needs declared bounds: with bounds found from the data, the error is not known "
            "beforehand. Write them into the schema: column = { bounds = [low, high] }."
        )
    places = zip(operation.aggregates, operation.sources, strict=True)
    return {name: _half(operation, name, aggregate, source, rows) for (name, aggregate), source in places}


def _half(operation: TableOperation, name: str, aggregate: Any, source: Any, rows: int | None) -> float:
    mechanism = operation.mechanisms[source.place]
    if mechanism is None:
        assert operation.selection is not None
        far = math.ceil(operation.selection.threshold + 100 * operation.selection.scale)  # where all groups are shown
        around = operation.selection.interval(np.array([far], np.int64))
        return float(around[0, 1] - around[0, 0]) / 2
    if isinstance(aggregate, (Count, Sum)):
        ends = aggregate.interval(operation.rows, mechanism, np.zeros((1, 1)), np.ones(1))
        assert ends is not None
        return float(ends[0, 1] - ends[0, 0]) / 2
    if not isinstance(aggregate, Mean):
        raise ValueError(
            f"No epsilon follows from an error of {name!r}, because that error depends on more than the noise. It does "
            "for counts, sums and means. Give an epsilon, and compare explain(epsilon), or --explain, for several."
        )
    if rows is None:
        raise ValueError(
            f"The error of {name!r} depends on how many rows a group has: give a rough number, rows=500 (--rows 500)."
        )
    # Near the edge of the bounds, the worst place, and away from it; and not below what ``explain`` states.
    grid = operation.rows.grid(aggregate.column)
    whole, span = float(rows * grid.top), grid.bounds.high - grid.bounds.low
    parts = np.array([[whole, 0.0], [whole / 2, whole / 2], [0.0, whole]])
    ends = aggregate.interval(operation.rows, mechanism, parts, np.ones(3))
    values = np.asarray(aggregate.estimate(operation.rows, parts), np.float64)
    stated = float(min(mechanism.error(0.95) / whole, 1.0) * span)
    return max(stated, float(np.maximum(ends[:, 1] - values, values - ends[:, 0]).max()))


def epsilon_for(operation: Callable[[float], Any], error: float, rows: int | None = None) -> float:
    """The least epsilon, to three digits and rounded up, at which no column's 95 % error exceeds ``error``."""
    positive("error", error)

    def good(epsilon: float) -> bool:
        return max(half_widths(operation(epsilon), rows).values()) <= error

    if not good(MOST):
        raise ValueError(f"error is {error:g}, which no epsilon up to {MOST:g} reaches: allow a larger one.")
    low, high = math.log(LEAST), math.log(MOST)
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if good(math.exp(middle)) else (middle, high)
    return _rounded_up(math.exp(high))


def _rounded_up(value: float) -> float:
    """To ``DIGITS`` digits.

    >>> _rounded_up(0.12345), _rounded_up(2.0)
    (0.124, 2.0)
    """
    unit = 10.0 ** (math.floor(math.log10(value)) + 1 - DIGITS)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.{DIGITS}g}")
