r"""Totals that run: how many records, or how much, up to the end of each period.

One record is in one period and moves all totals from there on. Noise is added not to the totals but to C times the
amounts of the periods, with C a binary tree or the square root of prefix sums (``mechanisms.factorization``): the error
grows with log n, where a release of every total on its own would grow with √n. Each total is made of noisy values of
its own and earlier periods alone, so that they may be published one by one as time goes on.

Amounts are whole numbers, and C is of whole numbers too (roots are rounded to multiples of 2^-20, and what is added
up again is the inverse of that), so that what meets the noise is exact, and so is its sensitivity.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet.errors import choice, number, whole
from discreet.mechanisms.budget import AdditiveMechanism
from discreet.mechanisms.factorization import Banded, Strategy, Tree, Workload, toeplitz
from discreet.statistics.statistic import AdditiveStatistic

__all__ = ["STEPS", "Method", "RunningTotals", "period_of"]

Method = Literal["auto", "tree", "square-root"]

_UNITS = 1 << 20  # in a coefficient of the root
STEPS = 1 << 30  # in the largest amount of a record
_MOST_ROOTS, _MOST = 1 << 13, 1 << 20  # periods


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningTotals(AdditiveStatistic):
    """Running totals over ``periods`` periods, numbered from 0; a record in none of them is left out.

    ``method`` is "tree", for which a record counts in about log2 n nodes, or "square-root", which needs Gaussian noise
    to be good and at most 8,192 periods; "auto" takes the better one.
    """

    periods: int
    method: Method = "auto"

    def __post_init__(self) -> None:
        self._check()
        if whole("periods", self.periods, low=1) > _MOST:
            raise ValueError(f"periods is {self.periods}, but must be a whole number of at most {_MOST}.")
        if self.method not in ("auto", "tree", "square-root"):
            raise ValueError(f"method is {self.method!r}, but must be 'auto', 'tree' or 'square-root'.")
        if self.method == "square-root" and self.periods > _MOST_ROOTS:
            raise ValueError(f"method is 'square-root', but that is for at most {_MOST_ROOTS} periods: use 'tree'.")
        _ = self.mechanism

    @property
    def _rooted(self) -> bool:
        fits = self.budget.gaussian and self.periods <= _MOST_ROOTS
        return choice("method", self.method, {"auto": fits, "tree": False, "square-root": True})

    @property
    def _strategy(self) -> Strategy:
        return _root(self.periods) if self._rooted else Tree(self.periods)

    @property
    def _column(self) -> tuple[int, int, int]:
        """The sum and the sum of squares of the longest column of C, in units, and the number of rows."""
        if not self._rooted:
            return _depth(self.periods), _depth(self.periods), len(_nodes(self.periods))
        c = _units(self.periods)
        return int(c.sum()), int((c * c).sum()), self.periods

    @property
    @abstractmethod
    def _amount(self) -> tuple[int, int]:
        """The most that one record adds to its period, in whole units, and the most that replacing one moves it by."""

    @property
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        l1, square, size = self._column
        most, _ = self._amount
        if not self._replace:
            return Fraction(l1 * most), Fraction(square * most**2), size
        # To another period: both columns; within one: the difference, at most as long as both or as twice the larger.
        return Fraction(2 * l1 * most), Fraction(self._amount[1] * square * most**2), size

    @property
    def mechanism(self) -> AdditiveMechanism:
        """The noise on C times the amounts: whole noise where a tree counts."""
        l1, square, size = self._moves
        counts = self._amount[0] == 1 and not self._rooted
        return self.budget.additive(l1, size, square=square, whole=counts, adjacency=self.adjacency)

    @abstractmethod
    def amounts(self, values: Any) -> NDArray[np.int64]:
        """What the records of each period add up to, in whole units. Private."""

    @property
    @abstractmethod
    def _unit(self) -> float:
        """What a whole unit is worth."""

    def totals(self, values: Any) -> Any:
        """C times the amounts, exact. Private."""
        amounts = self.amounts(values)
        if self._rooted:
            c = _units(self.periods).astype(np.int64)
            high, low = amounts >> 20, amounts & (_UNITS - 1)  # so that no product leaves 64 bits
            parts = [np.convolve(c, part)[: self.periods] for part in (high, low)]
            return np.array([(int(h) << 20) + int(x) for h, x in zip(*parts, strict=True)], object)
        sums = np.concatenate([[0], np.cumsum(amounts)])
        start, length = np.array(_nodes(self.periods)).T
        return sums[start + length] - sums[start]

    def answer(self, noisy: Any) -> NDArray[np.float64]:
        """The running totals: of noisy values up to each period alone."""
        values = np.asarray(noisy, np.float64).reshape(-1)
        if self._rooted:
            felt = np.cumsum(_root(self.periods).inverse_coefficients)
            return toeplitz.product(felt, values) * (self._unit / _UNITS)
        tree, memory, given = Tree(self.periods), [], iter(values)  # type: ignore[var-annotated]
        steps = [tree.advance(step, lambda: next(given), memory) for step in range(self.periods)]
        return np.cumsum(steps) * self._unit

    def deviations(self) -> NDArray[np.float64]:
        """The standard deviation of the noise in each total."""
        scale = self._unit / (_UNITS if self._rooted else 1)
        return np.sqrt(self._strategy.errors(Workload(self.periods))) * self.mechanism.deviation * scale

    def rmse(self) -> float:
        """The root mean square of the noise, over all totals."""
        return float(np.sqrt(np.mean(self.deviations() ** 2)))

    def error(self, confidence: float = 0.95) -> float:
        """What the noise on any one total stays within, with at least this confidence: by its deviation, as a Gaussian
        or, for Laplace noise, by Chebyshev's inequality."""
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        far = NormalDist().inv_cdf((1 + confidence) / 2) if self.budget.gaussian else 1 / math.sqrt(1 - confidence)
        return float(self.deviations().max()) * far

    @property
    def stated_error(self) -> Any:
        """The error of the worst total, with 95 % confidence."""
        return self.error()


def period_of(entries: NDArray[Any], count: int) -> NDArray[np.int64]:
    """Each record's period; -1 for what is none."""
    if entries.dtype.kind == "f":
        fits = (entries >= 0) & (entries < count) & (entries == np.floor(entries))
    else:
        fits = (entries >= 0) & (entries < count)
    return np.where(fits, np.where(fits, entries, 0).astype(np.int64), -1)


@lru_cache(maxsize=8)
def _units(periods: int) -> NDArray[Any]:
    """The coefficients of the root in whole units, as Python's integers."""
    return np.array([int(x) for x in np.rint(toeplitz.power_series(-0.5, periods) * _UNITS)], object)


@lru_cache(maxsize=8)
def _root(periods: int) -> Banded:
    """C as it is used, and its inverse."""
    c = _units(periods).astype(np.float64) / _UNITS
    return Banded(c, periods)


@lru_cache(maxsize=8)
def _nodes(periods: int) -> list[tuple[int, int]]:
    return Tree(periods).nodes()


def _depth(periods: int) -> int:
    """How many nodes of the tree hold the first period, which no other exceeds."""
    return periods.bit_length()
