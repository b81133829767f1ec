"""The sum of bounded records, without rounding."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

from discreet.mechanisms.records import column
from discreet.release import Release
from discreet.statistics.asking import Asked, ask, spell_out
from discreet.statistics.bounded import Bounds, check_bounds, exact_total
from discreet.statistics.statistic import NoisyTotals

__all__ = ["Sum", "sum_"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum(NoisyTotals):
    r"""The sum of the records, each moved to the nearest of ``bounds`` = (L, U) if it lies beyond them.

    A missing record adds zero. Integers and doubles are added exactly, in any order.

    Guarantee: one record moves the sum by at most max(\|L\|, \|U\|) under add-remove; under replace, where a record may
    also become missing, by max(U, 0) - min(L, 0). No rounding adds to that (Casacuberta et al. 2022).

    >>> operation = Sum(bounds=(0, 100), epsilon=1.0)
    >>> round(operation.rmse(), 2), round(operation.error(confidence=0.95), 1)
    (141.42, 299.6)
    >>> round(operation.release([50.0] * 1000 + [1e300], rng=1).value, -3)
    50000.0
    """

    bounds: Bounds

    label = "sum"

    def __post_init__(self) -> None:
        self._check()
        object.__setattr__(self, "bounds", check_bounds(self.bounds))
        _ = self.mechanism

    @property
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        low, high = (Fraction(end) for end in self.bounds)
        reach = max(high, Fraction(0)) - min(low, Fraction(0)) if self._replace else max(abs(low), abs(high))
        return reach, reach**2, 1

    def totals(self, values: Any) -> Any:
        """The exact sum of the bounded records. Private."""
        return exact_total(column(values), self.bounds)[0]


@spell_out(Asked, "sum")
def sum_(values: Any, bounds: Bounds, **asked: Unpack[Asked]) -> Release[Any]:
    """The sum of bounded records: see ``Sum``. In this room it is called ``sum``.

    >>> round(sum_([1, 2, 3], bounds=(0, 10), epsilon=1e4, rng=1).value, 1)
    6.0
    """
    return ask(Sum, values, asked, bounds=bounds)
