"""Which records a step sees: a sampler draws the batches and states how records take part in them.

Nobody else states a sampling rate, so a shuffled loader cannot be accounted as Poisson. What taking part in this way
costs is said by the noise, for the sampler's ``participation``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.adjacency import Adjacency
from discreet.errors import whole
from discreet.random import Rng
from discreet.random.poisson import poisson_sample
from discreet.random.tap import coins
from discreet.release import ONE_RECORD
from discreet.training.participation import (
    BallsInBinsDealing,
    CyclicPoissonSampling,
    FixedOrderDealing,
    FixedSizeSampling,
    KeptBinsDealing,
    Participation,
    PoissonSampling,
    ShuffledDealing,
    TruncatedPoissonSampling,
)

__all__ = [
    "BallsInBins",
    "CyclicPoisson",
    "FixedOrder",
    "FixedSize",
    "KeptBins",
    "Poisson",
    "Sampler",
    "Shuffled",
    "TruncatedPoisson",
]

Indices = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Sampler(ABC):
    """How batches are drawn. ``dataset_size`` and ``batch_size`` are public; the number of records drawn is not."""

    batch_size: int
    dataset_size: int

    passes = False  # whether a batch belongs to its step, used or not
    kept = False  # whether what is drawn for the first pass serves all of them

    @property
    def unit(self) -> str:
        """Whom a batch is drawn by: records, unless the sampler bounds something larger."""
        return ONE_RECORD

    def __post_init__(self) -> None:
        whole("batch_size", self.batch_size, low=1)
        whole("dataset_size", self.dataset_size, low=1)

    @property
    def steps_per_pass(self) -> int:
        """Steps until every record has had its turn on average."""
        return math.ceil(self.dataset_size / self.batch_size)

    @property
    def rate(self) -> float:
        """The chance of a record to be in a batch."""
        return min(1.0, self.batch_size / self.dataset_size)

    @property
    def expected(self) -> float:
        """The public constant that divides sums: the expected number of records in a batch."""
        return self.rate * self.dataset_size

    @property
    def static_size(self) -> int | None:
        """The number of rows every batch is padded to, if it is."""
        return None

    @property
    def largest(self) -> int | None:
        """A number of units that a batch hardly ever exceeds, by public facts; none where sizes are public anyway."""
        return _hardly_exceeded(self.expected, self.dataset_size)

    @property
    def rows_per_unit(self) -> int:
        """The most records that a unit brings to a batch."""
        return 1

    @property
    @abstractmethod
    def participation(self) -> Participation:
        """How records take part in steps: what noise is priced for."""

    def check(self, records: int) -> None:
        """Refuse a loader of so many records that the batches are not priced for; before the charge."""
        if self.participation.adjacency is not Adjacency.ADD_REMOVE and self.dataset_size != records:
            raise ValueError(
                f"dataset_size is {self.dataset_size}, but must be the number of records: "
                f"{type(self).__name__} batches are priced for a public size."
            )

    def order(self, keys: Sequence[object], rng: Rng) -> Indices | None:
        """What is drawn once for a whole pass, or for all of them, of the records that ``keys`` name."""
        return None

    @abstractmethod
    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """The records of a step: indices below ``size``, the private number of records."""

    def owners(self, drawn: Indices) -> Indices | None:
        """Whose each record of a draw is, those of one unit after another; none where each is a unit by itself."""
        return None


def _hardly_exceeded(mean: float, most: int) -> int:
    """Six standard deviations above the mean of independent coins."""
    return min(most, math.ceil(mean + 6 * math.sqrt(mean) + 1))


def _bins(keys: Sequence[object], count: int, rng: Rng) -> Indices:
    """A bin for each record, by a coin of its own."""
    return (coins(keys, rng) % np.uint64(count)).astype(np.int64)


def _chosen(rate: float, keys: Sequence[object], rng: Rng) -> Indices:
    """Each record with probability ``rate``, rounded down to a multiple of 2^-64."""
    return np.flatnonzero(poisson_sample(keys, rate, rng))


@dataclass(frozen=True, kw_only=True)
class Poisson(Sampler):
    """Every record joins every batch by a coin of its own: batches vary in size and may be empty."""

    @property
    def participation(self) -> Participation:
        """A coin a record and step."""
        return PoissonSampling(self.rate)

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """Coins."""
        return _chosen(self.rate, keys, rng)


@dataclass(frozen=True, kw_only=True)
class TruncatedPoisson(Sampler):
    """Poisson batches cut to ``max_batch_size`` and, with ``padded``, filled up to it: every batch has the same shape.

    The chance of a cut is charged (Chua et al. 2024), for at most ``dataset_size`` records: a public bound on their
    number. More are refused. To leave some out would not do, by whatever rule: where one of the others leaves, one of
    them comes in, and two records change where one is paid for. By default the limit is six standard deviations above
    the mean.
    """

    max_batch_size: int | None = None
    padded: bool = True

    @property
    def limit(self) -> int:
        """The largest batch."""
        if self.max_batch_size is not None:
            return self.max_batch_size
        return _hardly_exceeded(self.expected, self.dataset_size)

    @property
    def largest(self) -> int:
        """The limit."""
        return self.limit

    @property
    def static_size(self) -> int | None:
        """The limit, if batches are padded."""
        return self.limit if self.padded else None

    @property
    def participation(self) -> Participation:
        """Coins, and the chance of a cut."""
        return TruncatedPoissonSampling(self.rate, self.limit, self.dataset_size)

    def check(self, records: int) -> None:
        """No more records than the chance of a cut is charged for."""
        if records > self.dataset_size:
            raise ValueError(
                f"dataset_size is {self.dataset_size}, but there are more records: {type(self).__name__} batches are "
                "priced for at most so many. Declare a public number that is never exceeded."
            )

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """Coins, and where there are too many heads a uniform choice among them."""
        found = _chosen(self.rate, keys, rng)
        if len(found) <= self.limit:
            return found
        return np.sort(rng.generator.choice(found, self.limit, replace=False))


@dataclass(frozen=True, kw_only=True)
class FixedSize(Sampler):
    """A uniform choice of exactly ``batch_size`` records, without replacement; the number of records is public."""

    largest = None

    @property
    def participation(self) -> Participation:
        """A choice a step."""
        return FixedSizeSampling(self.rate)

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """A choice."""
        return np.sort(rng.generator.choice(size, min(self.batch_size, size), replace=False))


@dataclass(frozen=True, kw_only=True)
class BallsInBins(Sampler):
    """In each pass every record falls into one of the batches at random; batches vary in size."""

    passes = True

    @property
    def expected(self) -> float:
        """The mean number of records in a bin."""
        return self.dataset_size / self.steps_per_pass

    @property
    def participation(self) -> Participation:
        """A bin a pass."""
        return BallsInBinsDealing(self.steps_per_pass)

    def order(self, keys: Sequence[object], rng: Rng) -> Indices:
        """Bins."""
        return _bins(keys, self.steps_per_pass, rng)

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """Those whose ball fell into this bin; ``order`` holds a bin for each record."""
        assert order is not None
        return np.flatnonzero(order[:size] == step % self.steps_per_pass)


@dataclass(frozen=True, kw_only=True)
class Shuffled(Sampler):
    """Each pass goes through all records in a random order; the number of records is public."""

    passes, largest = True, None

    @property
    def participation(self) -> Participation:
        """A place a pass."""
        return ShuffledDealing(self.steps_per_pass)

    def order(self, keys: Sequence[object], rng: Rng) -> Indices:
        """A permutation."""
        return rng.generator.permutation(len(keys))

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """The next ones in order."""
        assert order is not None
        start = step % self.steps_per_pass * self.batch_size
        return order[start : start + self.batch_size]


@dataclass(frozen=True, kw_only=True)
class KeptBins(BallsInBins):
    """Every record falls into one of the batches of a pass at random, and is in that batch in every pass.

    For correlated noise: steps of a record are a pass apart. No amplification is claimed.
    """

    kept = True

    @property
    def participation(self) -> Participation:
        """A bin a run."""
        return KeptBinsDealing(self.steps_per_pass)


@dataclass(frozen=True, kw_only=True)
class FixedOrder(Shuffled):
    """Every pass goes through all records in the same random order; the number of records is public.

    For correlated noise. Neighbours differ in a record that contributes nothing ("zero-out"), or another ("replace").
    """

    kept = True
    adjacency: Adjacency = Adjacency.ZERO_OUT

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))
        if self.adjacency is Adjacency.ADD_REMOVE:
            raise ValueError(
                "adjacency is 'add-remove', but a record that comes or goes moves all others in a fixed order: use "
                "KeptBins, or 'zero-out' or 'replace'."
            )

    @property
    def participation(self) -> Participation:
        """A place a run."""
        return FixedOrderDealing(self.steps_per_pass, self.adjacency)


@dataclass(frozen=True, kw_only=True)
class CyclicPoisson(Sampler):
    """Every record falls into one of ``parts`` parts; the parts take turns, and a record joins a batch by a coin.

    For banded noise of at most as many bands. A batch has ``batch_size`` records on average, of a declared
    ``dataset_size``.
    """

    passes, kept = True, True
    parts: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("parts", self.parts, low=1)

    @property
    def rate(self) -> float:
        """The chance of a record to be in a batch of its part."""
        return min(1.0, self.batch_size * self.parts / self.dataset_size)

    @property
    def expected(self) -> float:
        """The mean number of records in a batch."""
        return self.rate * self.dataset_size / self.parts

    @property
    def participation(self) -> Participation:
        """A part a run, a coin a turn."""
        return CyclicPoissonSampling(self.rate, self.parts)

    def order(self, keys: Sequence[object], rng: Rng) -> Indices:
        """Parts."""
        return _bins(keys, self.parts, rng)

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """Coins for all, heads in the part whose turn it is."""
        assert order is not None
        found = _chosen(self.rate, keys, rng)
        return found[order[found] == step % self.parts]
