"""Quantiles of bounded records: one, the median, or many.

Decisions 52 and 311.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from discreet import events
from discreet.errors import number, whole
from discreet.mechanisms.parameters import store
from discreet.mechanisms.records import column
from discreet.random import Rng
from discreet.release import Release
from discreet.schema import Bounded
from discreet.statistics.asking import Asked, AskedWithoutDelta, ask, spell_out
from discreet.statistics.bounded import Bounds, check_bounds
from discreet.statistics.nested_ranks import NestedChoices, rising, spread
from discreet.statistics.ranks import UNIT, Heaps, RankChoice, heaps_from_runs
from discreet.statistics.round_numbers import RoundGrid
from discreet.statistics.statistic import Statistic

__all__ = ["Quantile", "Quantiles", "median", "quantile", "quantiles"]

_STEPS = 1 << 20
_FINER = 20  # bits by which places are widened, so that many quantiles can share a heap


def _check_grid(statistic: Quantile | Quantiles) -> None:
    """Store the bounds and the grid between them: whole numbers where the bounds say that records are whole."""
    bounds, steps = statistic.bounds, whole("steps", statistic.steps, low=1)
    are_whole = isinstance(bounds, Bounded) and bounds.whole
    low, high = check_bounds(bounds)
    if are_whole:
        steps = int(high - low)
    if steps > 1 << 32:
        raise ValueError(f"steps is {steps}, but must be a whole number of at most 2^32.")
    store(statistic, bounds=Bounded(low, high, whole=True) if are_whole else (low, high), steps=steps)


def _grid(statistic: Quantile | Quantiles) -> RoundGrid:
    return RoundGrid(check_bounds(statistic.bounds), statistic.steps)


def _in_range(each: float) -> float:
    """An epsilon of one selection for which scales fit in 53 bits."""
    return number("epsilon of one selection", each, low=2.0**-30, high=2.0**10)


def _value(statistic: Quantile | Quantiles, candidate: int) -> float:
    """A candidate's number: an ``int`` where records are declared whole."""
    value = _grid(statistic).value(candidate)
    return int(value) if isinstance(statistic.bounds, Bounded) else value


def _heaps(statistic: Quantile | Quantiles, data: Any) -> Heaps:
    first, end = _grid(statistic).runs(column(data))
    return heaps_from_runs(first[first >= 0], end[first >= 0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantile(Statistic):
    """A value that has about a share ``q`` of the records below it, by the exponential mechanism.

    Records are moved to the nearest of ``bounds`` if beyond it, and each is rounded to a public grid of ``steps`` equal
    steps between them; the answer is a point of that grid, and round numbers weigh more before any record speaks
    (``statistics.round_numbers``). Of ``Bounded(0, 99, whole=True)`` the grid and the answer are whole numbers. A
    missing record is left out. q is rounded to 2^-20. Without records, each precision of decimals is equally likely.

    Guarantee: of range ε (``epsilon=``), sampled exactly (``statistics.ranks``). One record moves scores by max(q, 1-q)
    ranks, so the median of add-remove neighbours pays half of what a maximum would. ``error`` is in ranks.
    Reference: McSherry and Talwar (2007); Smith (2011).

    >>> operation = Quantile(q=0.5, bounds=(0, 100), epsilon=1.0)
    >>> round(operation.error(confidence=0.95), 1)
    18.6
    >>> round(operation.release(np.linspace(0, 80, 10_000), rng=1).value)
    40
    """

    q: float = 0.5
    bounds: Bounds | Bounded
    steps: int = _STEPS

    label = "quantile"

    def __post_init__(self) -> None:
        self._check()
        if self.delta is not None:
            raise ValueError("delta is given, but one quantile costs epsilon alone: leave delta out.")
        store(self, q=number("q", self.q, low=0, high=1))
        _check_grid(self)
        _ = self.event

    @property
    def mechanism(self) -> RankChoice:
        """The choice of a point of the grid, and its cost."""
        each = _in_range(self.budget.selection())
        return RankChoice(round(self.q * UNIT), 0, _grid(self).size - 1, each, self.adjacency)

    @property
    def event(self) -> events.Event:
        """The cost, known from public facts alone."""
        return self.mechanism.event

    def error(self, confidence: float = 0.95) -> float:
        """By how many records the answer's rank may miss q·n, with at least this confidence."""
        return self.mechanism.error(number("confidence", confidence, low=0, high=1, open_high=True))

    @property
    def stated_error(self) -> Any:
        """The error with 95 % confidence."""
        return self.error()

    def draw(self, data: Any, rng: Rng) -> float:
        """The noisy quantile."""
        return _value(self, self.mechanism.choose(_heaps(self, data), rng))


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles(Statistic):
    """Values that have about the shares ``q`` of the records below them, in increasing order.

    The middle quantile is chosen first; it splits the records, and so on (``statistics.nested_ranks``): m quantiles
    cost as much as ⌈log₂(m + 1)⌉. Records that share a point of the grid are told apart by their number.

    Guarantee: one selection of bounded range a level; on one level the choices are on disjoint records. Only for
    add-remove (and zero-out), where that is parallel composition. Otherwise as ``Quantile``. ``error`` adds up the
    levels.
    Reference: Kaplan, Schnapp and Stemmer (2022), "Differentially private approximate quantiles", Algorithm 1.

    >>> operation = Quantiles(q=(0.25, 0.5, 0.75), bounds=(0, 100), epsilon=1.0)
    >>> operation.levels, round(operation.error(confidence=0.95), 1)
    (2, 100.8)
    >>> operation.release(np.linspace(0, 80, 100_000), rng=1).value.round()
    array([20., 40., 60.])
    """

    q: tuple[float, ...]
    bounds: Bounds | Bounded
    steps: int = _STEPS

    label = "quantiles"

    def __post_init__(self) -> None:
        self._check()
        store(self, q=rising(self.q))
        _check_grid(self)
        _ = self.event

    @property
    def levels(self) -> int:
        """In how many choices a record takes part."""
        return len(self.q).bit_length()

    @property
    def mechanism(self) -> NestedChoices:
        """The choices of points of the grid, and their cost."""
        each = _in_range(self.budget.selection(self.levels))
        return NestedChoices(self.q, 0, (_grid(self).size << _FINER) - 1, each, self.adjacency)

    @property
    def event(self) -> events.Event:
        """The cost: a selection on each level."""
        return self.mechanism.event

    def error(self, confidence: float = 0.95) -> float:
        """By how many records any of the ranks may miss, with at least this confidence."""
        return self.mechanism.error(number("confidence", confidence, low=0, high=1, open_high=True))

    @property
    def stated_error(self) -> Any:
        """The error with 95 % confidence."""
        return self.error()

    def draw(self, data: Any, rng: Rng) -> NDArray[np.float64]:
        """The noisy quantiles."""
        chosen = self.mechanism.choose(spread(_heaps(self, data), _FINER), rng)
        return np.array([_value(self, point >> _FINER) for point in chosen])


@spell_out(AskedWithoutDelta, "quantile")
def quantile(
    values: Any, q: float, bounds: Bounds | Bounded, *, steps: int = _STEPS, **asked: Unpack[AskedWithoutDelta]
) -> Release[float]:
    """A quantile of bounded records: see ``Quantile``.

    >>> round(quantile(np.arange(10_000), 0.9, bounds=(0, 10_000), epsilon=1.0, rng=1).value, -2)
    9000.0
    """
    return ask(Quantile, values, asked, q=q, bounds=bounds, steps=steps)


@spell_out(AskedWithoutDelta, "median")
def median(
    values: Any, bounds: Bounds | Bounded, *, steps: int = _STEPS, **asked: Unpack[AskedWithoutDelta]
) -> Release[float]:
    """The median of bounded records: ``quantile`` at 0.5.

    >>> round(median(np.arange(10_000), bounds=(0, 10_000), epsilon=1.0, rng=1).value, -2)
    5000.0
    """
    return quantile(values, 0.5, bounds, steps=steps, **asked)


@spell_out(Asked, "quantiles")
def quantiles(
    values: Any, q: Iterable[float], bounds: Bounds | Bounded, *, steps: int = _STEPS, **asked: Unpack[Asked]
) -> Release[NDArray[np.float64]]:
    """Several quantiles of bounded records: see ``Quantiles``.

    >>> quantiles(np.arange(100_000), [0.1, 0.9], bounds=(0, 1e5), epsilon=1.0, rng=1).value.round(-3)
    array([10000., 90000.])
    """
    return ask(Quantiles, values, asked, q=tuple(q), bounds=bounds, steps=steps)
