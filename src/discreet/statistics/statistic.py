"""What every statistic has in common: a budget, a cost and an error before data, one place that reads data.

A budget is ``epsilon=`` alone (pure DP: Laplace noise), ``epsilon=`` with ``delta=``, or ``rho=`` (zCDP), the last two
with Gaussian noise. An *additive* statistic is three steps, which other rooms may take one by one: ``totals`` reads
the records and is private, ``mechanism`` adds the noise and carries the cost, ``answer`` is post-processing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from discreet import events
from discreet.adjacency import Adjacency
from discreet.errors import number, positive, whole
from discreet.mechanisms import DiscreteLaplace, Gaussian, Laplace
from discreet.mechanisms.grid import above
from discreet.mechanisms.parameters import one_of, store
from discreet.random import RngLike
from discreet.release import ONE_RECORD, Book, Release, unit_name
from discreet.statistics.records import check_column

__all__ = ["Additive", "Mechanism", "Statistic", "deviation", "public_size", "released", "selection_epsilon"]

Mechanism = Laplace | Gaussian | DiscreteLaplace


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic(ABC):
    """A question about records, with public facts and a budget, that knows its cost before it reads any."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    unit: str = ONE_RECORD  # whom each record is all of: the caller's word

    def _check(self) -> None:
        if one_of(epsilon=self.epsilon, rho=self.rho) == "epsilon":
            store(self, epsilon=positive("epsilon", self.epsilon))
        else:
            store(self, rho=positive("rho", self.rho))
        if self.delta is not None:
            if self.epsilon is None:
                raise ValueError("delta given with rho, but it belongs with epsilon.")
            store(self, delta=number("delta", self.delta, low=0, high=1, open_low=True, open_high=True))
        store(self, adjacency=self.adjacency, unit=unit_name(self.unit))

    @property
    def _replace(self) -> bool:
        return self.adjacency is Adjacency.REPLACE

    @property
    @abstractmethod
    def event(self) -> events.Event:
        """The cost, known from public facts alone."""

    def check_data(self, values: Any) -> None:
        """Refuse, before a charge, what is publicly wrong about a container: its type or its shape. No record is looked at."""
        check_column(values)

    @abstractmethod
    def release(self, values: Any, rng: RngLike = None) -> Release[Any]:
        """Read the records and return a noisy answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Additive(Statistic):
    """A function of a few totals over the records, to which noise is added together."""

    @property
    @abstractmethod
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        """How far one record moves the totals in L1, the square of how far in L2, and the number of totals."""

    _whole = False  # totals are integers of integer L1 sensitivity

    @property
    def mechanism(self) -> Mechanism:
        """The noise on the totals, and its cost."""
        l1, square, size = self._moves
        return _mechanism(l1, square, size, self._whole, self.epsilon, self.delta, self.rho, self.adjacency)

    @property
    def event(self) -> events.Event:
        """The cost, known from public facts alone."""
        return self.mechanism.event

    @abstractmethod
    def totals(self, values: Any) -> Any:
        """The exact totals over the records. Private: only ``mechanism`` may see them."""

    @abstractmethod
    def answer(self, noisy: Any) -> Any:
        """The statistic as a function of noisy totals: post-processing."""

    def release(self, values: Any, rng: RngLike = None) -> Release[Any]:
        """Read the records and return a noisy answer."""
        noisy = self.mechanism.release(self.totals(values), rng)
        return Release(self.answer(noisy.value), noisy.event, reproducible=noisy.reproducible)


@lru_cache(maxsize=1024)
def _mechanism(l1: Fraction, square: Fraction, size: int, whole: bool, epsilon: float | None, delta: float | None,
               rho: float | None, adjacency: Adjacency) -> Mechanism:
    if epsilon is not None and delta is None:
        if whole:
            return DiscreteLaplace(sensitivity=int(l1), epsilon=epsilon, max_size=size, adjacency=adjacency)
        return Laplace(sensitivity=above(l1), epsilon=epsilon, max_size=size, adjacency=adjacency)
    return Gaussian(sensitivity=_root_above(square), epsilon=epsilon, delta=delta, rho=rho, max_size=size,
                    adjacency=adjacency)


def _root_above(square: Fraction) -> float:
    """The smallest double whose square is at least this, or the one after it."""
    root = math.sqrt(square)
    return root if Fraction(root) ** 2 >= square else math.nextafter(root, math.inf)


def deviation(mechanism: Mechanism) -> float:
    """The standard deviation of the noise on one total."""
    if isinstance(mechanism, Gaussian):
        assert mechanism.sigma is not None
        return mechanism.sigma
    assert mechanism.scale is not None
    if isinstance(mechanism, Laplace):
        return math.sqrt(2) * mechanism.scale
    return 1 / (math.sqrt(2) * math.sinh(1 / (2 * mechanism.scale)))  # variance 2p/(1-p)² with p = exp(-1/scale)


def public_size(n: object, replace: bool, *, low: int = 1) -> int | None:
    """``n`` as a public number of records, which replace needs and the other relations must not be given."""
    if not replace:
        if n is not None:
            raise ValueError("n is given, but the number of records is private unless adjacency='replace'. Leave it out.")
        return None
    if n is None:
        raise ValueError("n is missing, but adjacency='replace' makes the number of records public: declare it as n=.")
    return whole("n", n, low=low)


@lru_cache(maxsize=256)
def selection_epsilon(count: int, epsilon: float | None, delta: float | None, rho: float | None) -> float:
    """What each of ``count`` selections of bounded range may cost: their events add up to the budget and no more.

    A selection of range ε is ε²/8-zCDP (Cesar and Rogers 2021).
    """
    if rho is not None:
        return math.sqrt(8 * rho / count) * (1 - 2.0**-40)
    assert epsilon is not None
    alone = epsilon / count * (1 - 2.0**-50)
    if delta is None:
        return alone
    from discreet.accounting import calibrate

    def family(each: float) -> events.Event:
        return events.Exponential(epsilon=each) * count

    return max(alone, calibrate(family, epsilon=epsilon, delta=delta, start=alone) * (1 - 2.0**-40))


def released(statistic: Statistic, values: Any, book: Book | None, label: str, rng: RngLike) -> Release[Any]:
    """Look at the container's type, charge the book, then read the records."""
    statistic.check_data(values)
    if book is not None:
        book.charge(statistic.event, label=label, unit=statistic.unit)
    answer = statistic.release(values, rng)
    return Release(answer.value, answer.event, reproducible=answer.reproducible, label=label)
