"""How many records there are.

Decision 102.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from discreet.mechanisms.records import column
from discreet.release import Release
from discreet.statistics.asking import Asked, ask, spell_out
from discreet.statistics.bounded import present
from discreet.statistics.statistic import NoisyTotals

__all__ = ["Count", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count(NoisyTotals):
    """The number of records that are not missing (NaN, ``None``, text in a list of numbers).

    Noise: discrete Laplace of scale 1/ε with ``epsilon=``, Gaussian otherwise (with ``rho=`` whole, below a deviation
    of 1). The answer is not cut at zero, so that it is unbiased. Guarantee: one record moves the count by at most 1
    under every adjacency; under replace, by becoming missing. Reference: Ghosh, Roughgarden and Sundararajan (2009).

    >>> operation = Count(epsilon=0.5)
    >>> operation.error(confidence=0.95), round(operation.rmse(), 2)
    (6.0, 2.8)
    >>> operation.release(np.arange(1000), rng=1).value
    1000
    """

    _whole = True
    label = "count"

    def __post_init__(self) -> None:
        self._check()
        _ = self.mechanism

    @property
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        return Fraction(1), Fraction(1), 1

    def totals(self, values: Any) -> Any:
        """The exact number of records. Private."""
        return np.int64(present(column(values)).size)


@spell_out(Asked, "count")
def count(values: Any, **asked: Unpack[Asked]) -> Release[Any]:
    """The number of records that are not missing: see ``Count``.

    >>> count([1.0, 2.0, None], epsilon=20.0, rng=1).value
    2
    """
    return ask(Count, values, asked)
