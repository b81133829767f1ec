"""Which records a step sees: a sampler draws the batches and states how records take part in them.

Nobody else states a sampling rate, so a shuffled loader cannot be accounted as Poisson. What taking part in this way
costs is said by the noise, for the sampler's ``participation``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.adjacency import Adjacency
from discreet.errors import whole
from discreet.random import Rng
from discreet.random.tap import coins, poisson_sample
from discreet.release import ONE_RECORD
from discreet.training.sampling.participation import Participation

__all__ = ["Indices", "Sampler", "bins", "chosen", "hardly_exceeded"]

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
        return hardly_exceeded(self.expected, self.dataset_size)

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

    def with_canaries(self, count: int) -> Sampler:
        """One that also draws so many units more, after all others."""
        return replace(self, dataset_size=self.dataset_size + count)

    def order(self, keys: Sequence[object], rng: Rng) -> Indices | None:
        """What is drawn once for a whole pass, or for all of them, of the records that ``keys`` name."""
        return None

    @abstractmethod
    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """The records of a step: indices below ``size``, the private number of records."""

    def owners(self, drawn: Indices) -> Indices | None:
        """Whose each record of a draw is, those of one unit after another; none where each is a unit by itself."""
        return None


def hardly_exceeded(mean: float, most: int) -> int:
    """Six standard deviations above the mean of independent coins."""
    return min(most, math.ceil(mean + 6 * math.sqrt(mean) + 1))


def bins(keys: Sequence[object], count: int, rng: Rng) -> Indices:
    """A bin for each record, by a coin of its own."""
    return (coins(keys, rng) % np.uint64(count)).astype(np.int64)


def chosen(rate: float, keys: Sequence[object], rng: Rng) -> Indices:
    """Each record with probability ``rate``, rounded down to a multiple of 2^-64."""
    return np.flatnonzero(poisson_sample(keys, rate, rng))
