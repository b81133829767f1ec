"""In which steps a record may take part, as a value: what a sampler states, and what noise is priced for.

Nobody else states a sampling rate, so a shuffled loader cannot be accounted as Poisson. A participation knows what a
neighbour is, by how many clip norms one change of the data can move a sum (one where a record comes or goes, two where
it is replaced), and what an event costs that runs on the records of one draw.

========================  ============  =======================================================
participation             adjacency     an event on one draw
========================  ============  =======================================================
``PoissonSampling``       add-remove    PoissonSampled(rate, event), at every step
``TruncatedPoisson...``   add-remove    TruncatedPoissonSampled(rate, size, ..., event)
``FixedSizeSampling``     replace       FixedSizeSampled(rate, event)
``BallsInBinsDealing``    add-remove    BallsInBins(k, event), once in k steps
``ShuffledDealing``       replace       Shuffled(event), once in k steps, without amplification
========================  ============  =======================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from discreet import events
from discreet.adjacency import Adjacency
from discreet.events import Event

__all__ = [
    "BallsInBinsDealing",
    "FixedSizeSampling",
    "Participation",
    "PoissonSampling",
    "ShuffledDealing",
    "TruncatedPoissonSampling",
]


class Participation(ABC):
    """How a record comes to take part in steps. Public, and known before any data is read."""

    adjacency: ClassVar[Adjacency] = Adjacency.ADD_REMOVE

    @property
    def movement(self) -> int:
        """By how many clip norms a neighbour moves the sum of a step in which it differs."""
        return 2 if self.adjacency is Adjacency.REPLACE else 1

    @property
    def period(self) -> int:
        """A record takes part in at most one of so many steps, counted from a multiple of it; one: in any step."""
        return 1

    @abstractmethod
    def sampled(self, event: Event) -> Event:
        """The cost of ``event`` on the records of one draw: of a step, or of a period in which each step runs it."""


@dataclass(frozen=True, slots=True)
class PoissonSampling(Participation):
    """Every record joins every step by a coin of its own."""

    rate: float

    def sampled(self, event: Event) -> Event:
        """Amplified by the rate."""
        return events.PoissonSampled(rate=self.rate, event=event)


@dataclass(frozen=True, slots=True)
class TruncatedPoissonSampling(Participation):
    """The same, with batches cut to a largest size."""

    rate: float
    max_batch_size: int
    dataset_size: int

    def sampled(self, event: Event) -> Event:
        """The chance of a cut is charged."""
        return events.TruncatedPoissonSampled(
            rate=self.rate, max_batch_size=self.max_batch_size, dataset_size=self.dataset_size, event=event
        )


@dataclass(frozen=True, slots=True)
class FixedSizeSampling(Participation):
    """Every step sees a uniform choice of a fixed number of records."""

    adjacency: ClassVar[Adjacency] = Adjacency.REPLACE
    rate: float

    def sampled(self, event: Event) -> Event:
        """Amplified by the rate."""
        return events.FixedSizeSampled(rate=self.rate, event=event)


@dataclass(frozen=True, slots=True)
class BallsInBinsDealing(Participation):
    """In each pass every record falls into one of its steps, at random."""

    steps_per_pass: int

    @property
    def period(self) -> int:
        """A pass."""
        return self.steps_per_pass

    def sampled(self, event: Event) -> Event:
        """A pass, amplified by not knowing the bin."""
        return events.BallsInBins(bins=self.steps_per_pass, event=event)


@dataclass(frozen=True, slots=True)
class ShuffledDealing(Participation):
    """In each pass every record has one step, in a random order."""

    adjacency: ClassVar[Adjacency] = Adjacency.REPLACE
    steps_per_pass: int

    @property
    def period(self) -> int:
        """A pass."""
        return self.steps_per_pass

    def sampled(self, event: Event) -> Event:
        """A pass, not amplified."""
        return events.Shuffled(event=event)
