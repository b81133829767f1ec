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
``KeptBinsDealing``       add-remove    BallsInBins(k, all events of the run together)
``FixedOrderDealing``     zero-out      the event, once in k steps, without amplification
``CyclicPoisson...``      add-remove    PoissonSampled(rate, event), once in as many steps as parts
========================  ============  =======================================================

The last three keep a record at the same places of a run, so that correlated noise has a price with them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from discreet import events
from discreet.adjacency import Adjacency, changed_records
from discreet.events import Event
from discreet.mechanisms.factorization import Pattern, Strategy, kept_bins_event, why_not_amplified

__all__ = [
    "BallsInBinsDealing",
    "CyclicPoissonSampling",
    "FixedOrderDealing",
    "FixedSizeSampling",
    "KeptBinsDealing",
    "Participation",
    "PoissonSampling",
    "ShuffledDealing",
    "TruncatedPoissonSampling",
]


class Participation(ABC):
    """How a record comes to take part in steps. Public, and known before any data is read."""

    adjacency: Adjacency = Adjacency.ADD_REMOVE  # what a neighbour is; not add-remove where the number is public
    keeps_place: bool = False  # whether a record's step of a period is the same in all periods

    @property
    def movement(self) -> int:
        """By how many clip norms a neighbour moves the sum of a step in which it differs."""
        return changed_records(self.adjacency)

    @property
    def period(self) -> int:
        """A record takes part in at most one of so many steps, counted from a multiple of it; one: in any step."""
        return 1

    def pattern(self, steps: int) -> Pattern:
        """In which steps of a run one record may take part, for correlated noise; refused where it may be in any."""
        raise ValueError(
            f"{_name(self)} batches and correlated noise have no theorem together, because a record may be in steps "
            "that are next to each other. Leave sampler out; or use KeptBins or FixedOrder, or, for Banded noise, "
            "CyclicPoisson."
        )

    def correlated(self, strategy: Strategy, noise_multiplier: float) -> Event:
        """The cost of a whole run with noise through the strategy's matrix."""
        sensitivity = _sensitivity(strategy, self.pattern(strategy.steps)) * self.movement
        return events.Gaussian(noise_multiplier=noise_multiplier / sensitivity, adjacency=self.adjacency)

    @abstractmethod
    def sampled(self, event: Event) -> Event:
        """The cost of ``event`` on the records of one draw: of a step, or of a period in which each step runs it."""

    def run(self, counts: Mapping[Event, int]) -> Event:
        """The cost of a run in which so many draws run each event; every draw is a fresh one, unless said otherwise."""
        return sum((self.sampled(event) * count for event, count in counts.items()), events.Composed(events=()))


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

    rate: float
    adjacency = Adjacency.REPLACE

    def sampled(self, event: Event) -> Event:
        """Amplified by the rate."""
        return events.FixedSizeSampled(rate=self.rate, event=event)


@dataclass(frozen=True, slots=True)
class _OnceAPass(Participation):
    """Every record has one step of each pass."""

    steps_per_pass: int

    @property
    def period(self) -> int:
        """A pass."""
        return self.steps_per_pass


@dataclass(frozen=True, slots=True)
class BallsInBinsDealing(_OnceAPass):
    """In each pass every record falls into one of its steps, at random."""

    def sampled(self, event: Event) -> Event:
        """A pass, amplified by not knowing the bin."""
        return events.BallsInBins(bins=self.steps_per_pass, event=event)


@dataclass(frozen=True, slots=True)
class ShuffledDealing(_OnceAPass):
    """In each pass every record has one step, in a random order."""

    adjacency = Adjacency.REPLACE

    def sampled(self, event: Event) -> Event:
        """A pass, not amplified."""
        return events.Shuffled(event=event)


@dataclass(frozen=True, slots=True)
class _SamePlace(_OnceAPass):
    """Every record has one step of a pass, the same in all passes."""

    keeps_place = True

    def pattern(self, steps: int) -> Pattern:
        """Once a pass, at the same place."""
        return Pattern.passes(steps, self.steps_per_pass)


@dataclass(frozen=True, slots=True)
class KeptBinsDealing(_SamePlace):
    """Every record falls into one of the steps of a pass, at random and by itself, and keeps it in every pass.

    Amplified by not knowing the bin, once for the whole run. A record that comes or goes moves no other, so the price
    holds under add-remove.
    """

    def sampled(self, event: Event) -> Event:
        """All that a record meets in its bin."""
        return events.BallsInBins(bins=self.steps_per_pass, event=event)

    def run(self, counts: Mapping[Event, int]) -> Event:
        """The bin is drawn once: all passes together are one mixture, and not one a pass."""
        passes = sum((event * count for event, count in counts.items()), events.Composed(events=()))
        return self.sampled(passes) if counts else passes

    def correlated(self, strategy: Strategy, noise_multiplier: float) -> Event:
        """Amplified where the matrix has no negative entry and a row a step, which the proof needs; elsewhere the bins
        are taken as known."""
        if why_not_amplified(strategy) is not None:
            return Participation.correlated(self, strategy, noise_multiplier)
        return kept_bins_event(strategy, self.steps_per_pass, noise_multiplier)


@dataclass(frozen=True, slots=True)
class FixedOrderDealing(_SamePlace):
    """Every pass goes through the records in one order, which fixes their number: zero-out, or replace.

    Not amplified: nothing is proved of a mixture over orders, in which a record's place depends on all others'.
    """

    adjacency: Adjacency = Adjacency.ZERO_OUT

    def sampled(self, event: Event) -> Event:
        """A pass, not amplified."""
        return event


@dataclass(frozen=True, slots=True)
class CyclicPoissonSampling(Participation):
    """Every record falls into one of ``parts`` parts, by itself; the parts take turns, each sampled by coins.

    With a matrix of at most so many bands, a record's turns meet orthogonal columns: together they are as many steps of
    independent noise at the noise over the norm of a column (Choquette-Choo et al. 2023, "(Amplified) banded matrix
    factorization", Theorem 4).
    """

    rate: float
    parts: int
    keeps_place = True

    @property
    def period(self) -> int:
        """A turn of all parts."""
        return self.parts

    def pattern(self, steps: int) -> Pattern:
        """At every turn of its part."""
        return Pattern.passes(steps, self.parts)

    def correlated(self, strategy: Strategy, noise_multiplier: float) -> Event:
        """As many sampled steps as a part has turns."""
        if strategy.bands > self.parts:
            raise ValueError(
                f"CyclicPoisson has {self.parts} parts, but the noise has {strategy.bands} bands: the theorem needs a "
                "part for every band. Use Banded noise of at most so many bands, or KeptBins."
            )
        gaussian = events.Gaussian(
            noise_multiplier=noise_multiplier / _sensitivity(strategy, Pattern.single(strategy.steps))
        )
        return self.sampled(gaussian) * math.ceil(strategy.steps / self.parts)

    def sampled(self, event: Event) -> Event:
        """A turn, amplified by the rate."""
        return events.PoissonSampled(rate=self.rate, event=event)


@lru_cache(maxsize=64)  # asked for at every noise that a calibration tries
def _sensitivity(strategy: Strategy, pattern: Pattern) -> float:
    return strategy.sensitivity(pattern).value


def _name(participation: Participation) -> str:
    """What the sampler of a participation is called."""
    return type(participation).__name__.removesuffix("Sampling").removesuffix("Dealing")
