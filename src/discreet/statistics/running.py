"""Running counts and running sums, as operations and as functions; how they are made: ``running_totals``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.parameters import store
from discreet.mechanisms.records import check_rows, column, rows
from discreet.release import Release
from discreet.statistics.asking import Asked, ask, spell_out
from discreet.statistics.bounded import Bounds, check_bounds
from discreet.statistics.running_totals import STEPS, Method, RunningTotals, period_of

__all__ = ["RunningCount", "RunningSum", "running_count", "running_sum"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningCount(RunningTotals):
    """How many records there are up to each period; ``data`` names the period of each.

    Guarantee: one record moves C times the counts by one column of C. Reference: Dwork et al. (2010); Fichtenberger,
    Henzinger and Upadhyay (2023).

    >>> operation = RunningCount(periods=365, rho=0.5)
    >>> round(operation.rmse(), 2), round(RunningCount(periods=365, rho=0.5, method="tree").rmse(), 2)
    (2.78, 4.69)
    >>> RunningCount(periods=3, epsilon=100.0).release([0, 0, 2, 2, 2, 9], rng=1).value.round() + 0
    array([2., 2., 5.])
    """

    label = "running count"

    @property
    def _amount(self) -> tuple[int, int]:
        return 1, 2

    @property
    def _unit(self) -> float:
        return 1.0

    def amounts(self, values: Any) -> NDArray[np.int64]:
        """Counts. Private."""
        at = period_of(column(values), self.periods)
        return np.bincount(at[at >= 0], minlength=self.periods).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSum(RunningTotals):
    """What the records add up to, up to each period; ``data`` are rows of a period and a value.

    A value beyond ``bounds`` is moved to the nearest of them, one that is missing adds nothing. Values are rounded to a
    2^-30th of the larger bound.

    Guarantee: one record moves C times the sums by one column of C, times the larger bound.

    >>> operation = RunningSum(periods=3, bounds=(0, 10), epsilon=2000.0)
    >>> operation.release([[0, 2.0], [2, 3.0], [2, 99.0]], rng=1).value.round() + 0
    array([ 2.,  2., 15.])
    """

    bounds: Bounds

    label = "running sum"

    def __post_init__(self) -> None:
        store(self, bounds=check_bounds(self.bounds), adjacency=self.adjacency)
        RunningTotals.__post_init__(self)

    @property
    def _amount(self) -> tuple[int, int]:
        return STEPS, 4

    @property
    def _unit(self) -> float:
        return max(map(abs, self.bounds)) / STEPS

    def check(self, data: Any) -> None:
        """Rows of two numbers."""
        check_rows(data, 2)

    def amounts(self, values: Any) -> NDArray[np.int64]:
        """Sums in units. Private."""
        table = rows(values, 2)
        at, value = period_of(table[:, 0], self.periods), table[:, 1]
        here = (at >= 0) & ~np.isnan(value)
        units = np.rint(np.clip(value[here], *self.bounds) / max(map(abs, self.bounds)) * STEPS).astype(np.int64)
        total = np.zeros(self.periods, np.int64)
        np.add.at(total, at[here], units)
        return total


@spell_out(Asked, "running count")
def running_count(values: Any, *, periods: int, method: Method = "auto", **asked: Unpack[Asked]) -> Release[Any]:
    """How many records there are up to each period: see ``RunningCount``.

    >>> running_count([0, 1, 1, 3], periods=4, rho=1e4, rng=1).value.round()
    array([1., 3., 3., 4.])
    """
    return ask(RunningCount, values, asked, periods=periods, method=method)


@spell_out(Asked, "running sum")
def running_sum(
    values: Any, *, periods: int, bounds: Bounds, method: Method = "auto", **asked: Unpack[Asked]
) -> Release[Any]:
    """What records (rows of a period and a value) add up to, up to each period: see ``RunningSum``.

    >>> running_sum([[0, 2.0], [1, -1.0]], periods=2, bounds=(-5, 5), rho=1e6, rng=1).value.round()
    array([2., 1.])
    """
    return ask(RunningSum, values, asked, periods=periods, bounds=bounds, method=method)
