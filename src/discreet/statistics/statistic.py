"""What every statistic has in common: a budget, a cost and an error before data, one place that reads data.

A budget is ``epsilon=`` alone (pure DP: Laplace noise), ``epsilon=`` with ``delta=``, or ``rho=`` (zCDP), the last two
with Gaussian noise. An *additive* statistic is three steps, which other rooms may take one by one: ``totals`` reads
the records and is private, ``mechanism`` adds the noise and carries the cost, ``answer`` is post-processing.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from discreet import events
from discreet.adjacency import Adjacency, changed_records
from discreet.errors import whole
from discreet.mechanisms.budget import AdditiveMechanism, Budget
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import store
from discreet.mechanisms.records import check_column
from discreet.random import Rng

__all__ = ["AdditiveStatistic", "NoisyTotals", "Statistic", "public_size"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic(Mechanism[Any]):
    """A question about records, with public facts and a budget, that knows its cost before it reads any."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def _check(self) -> None:
        budget = Budget(self.epsilon, self.delta, self.rho)  # not the kept one: True equals 1.0 there
        store(self, epsilon=budget.epsilon, delta=budget.delta, rho=budget.rho, adjacency=self.adjacency)

    @property
    def budget(self) -> Budget:
        """What it may cost."""
        return _budget(self.epsilon, self.delta, self.rho)

    @property
    def _replace(self) -> bool:
        return changed_records(self.adjacency) == 2

    def check(self, data: Any) -> None:
        """Refuse what is publicly wrong about a container: its type or its shape. No record is looked at."""
        check_column(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveStatistic(Statistic):
    """A function of a few totals over the records, to which noise is added together."""

    @property
    @abstractmethod
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        """How far one record moves the totals in L1, the square of how far in L2, and the number of totals."""

    _whole = False  # totals are integers of integer L1 sensitivity

    @property
    def mechanism(self) -> AdditiveMechanism:
        """The noise on the totals, and its cost."""
        l1, square, size = self._moves
        return self.budget.additive(l1, size, square=square, whole=self._whole, adjacency=self.adjacency)

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

    def draw(self, data: Any, rng: Rng) -> Any:
        """Totals, noise, answer."""
        return self.answer(self.mechanism.draw(self.totals(data), rng))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyTotals(AdditiveStatistic):
    """Totals that are the answer themselves, so that the error is the noise's."""

    def error(self, confidence: float = 0.95) -> float:
        """What the noise on one total stays within, with this confidence."""
        return self.mechanism.error(confidence)

    def rmse(self) -> float:
        """The root mean square of the noise on one total."""
        return self.mechanism.deviation

    @property
    def stated_error(self) -> Any:
        """The error with 95 % confidence."""
        return self.mechanism.stated_error

    def answer(self, noisy: Any) -> Any:
        """The noisy totals themselves: whole numbers where the noise is whole, otherwise floats."""
        return noisy


_budget = lru_cache(maxsize=256)(Budget)  # parsed once for equal words: a release asks for it several times


def public_size(n: object, replace: bool, *, low: int = 1) -> int | None:
    """``n`` as a public number of records, which replace needs and the other relations must not be given."""
    if not replace:
        if n is not None:
            raise ValueError(
                "n is given, but the number of records is private unless adjacency='replace'. Leave it out."
            )
        return None
    if n is None:
        raise ValueError("n is missing, but adjacency='replace' makes the number of records public: declare it as n=.")
    return whole("n", n, low=low)
