r"""Which records a step sees, and what that is worth: a sampler draws the batches and prices them.

Nobody else states a sampling rate, so a shuffled loader cannot be accounted as Poisson. Each sampler knows its adjacency,
the public constant that divides its sums, and by how many clip norms one change of the data can move a sum: one where a
record comes or goes, two where it is replaced.

==================  ============  =================================================================================
sampler             adjacency     price of a pass of k steps with noise multiplier z
==================  ============  =================================================================================
``Poisson``         add-remove    k times PoissonSampled(rate, Gaussian(z))
``TruncatedPoisson``  add-remove  k times TruncatedPoissonSampled(rate, size, ..., Gaussian(z))
``FixedSize``       replace       k times FixedSizeSampled(rate, Gaussian(z/2))
``BallsInBins``     add-remove    BallsInBins(k, Gaussian(z)), once: a record is in one batch
``Shuffled``        replace       Shuffled(Gaussian(z/2)), once, without amplification
``PerUser``         add-remove    as Poisson, for users: each brings at most so many records, clipped to a share of the norm
==================  ============  =================================================================================
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import events
from discreet.adjacency import Adjacency
from discreet.errors import whole
from discreet.random import Rng
from discreet.random.poisson import poisson_sample
from discreet.release import ONE_RECORD, Enforced, unit_name

__all__ = ["BallsInBins", "FixedSize", "PerUser", "Poisson", "Sampler", "Shuffled", "TruncatedPoisson"]

Indices = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """How batches are drawn. ``dataset_size`` and ``batch_size`` are public; the number of records drawn is not."""

    batch_size: int
    dataset_size: int

    adjacency = Adjacency.ADD_REMOVE
    movement = 1
    passes = False  # whether a pass is priced as a whole
    records_per_unit = 1

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

    def event(self, multipliers: Sequence[float]) -> events.Event:
        """The price of these steps, from the first, with their noise multipliers."""
        parts = [self._step(z) * count for z, count in sorted(Counter(multipliers).items())]
        return sum(parts, events.Composed(events=()))

    def _step(self, z: float) -> events.Event:
        raise NotImplementedError

    def _gaussian(self, z: float) -> events.Gaussian:
        return events.Gaussian(noise_multiplier=z / self.movement, adjacency=self.adjacency)

    def order(self, size: int, rng: Rng) -> Indices | None:
        """What is drawn once for a whole pass."""
        return None

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """The records of a step: indices below ``size``, the private number of records."""
        raise NotImplementedError


def _chosen(rate: float, keys: Sequence[object], rng: Rng) -> Indices:
    """Each record with probability ``rate``, rounded down to a multiple of 2^-64."""
    return np.flatnonzero(poisson_sample(keys, rate, rng))


@dataclass(frozen=True, kw_only=True)
class Poisson(Sampler):
    """Every record joins every batch by a coin of its own: batches vary in size and may be empty."""

    def _step(self, z: float) -> events.Event:
        return events.PoissonSampled(rate=self.rate, event=self._gaussian(z))

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """Coins."""
        return _chosen(self.rate, keys, rng)


@dataclass(frozen=True, kw_only=True)
class TruncatedPoisson(Sampler):
    """Poisson batches cut to ``max_batch_size`` and, with ``padded``, filled up to it: every batch has the same shape.

    The chance of a cut is charged (Chua et al. 2024). By default the limit is six standard deviations above the mean.
    """

    max_batch_size: int | None = None
    padded: bool = True

    @property
    def limit(self) -> int:
        """The largest batch."""
        if self.max_batch_size is not None:
            return self.max_batch_size
        return min(self.dataset_size, math.ceil(self.expected + 6 * math.sqrt(self.expected) + 1))

    @property
    def static_size(self) -> int | None:
        """The limit, if batches are padded."""
        return self.limit if self.padded else None

    def _step(self, z: float) -> events.Event:
        return events.TruncatedPoissonSampled(rate=self.rate, max_batch_size=self.limit, dataset_size=self.dataset_size,
                                              event=self._gaussian(z))

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """Coins, and where there are too many heads a uniform choice among them."""
        found = _chosen(self.rate, keys, rng)
        if len(found) <= self.limit:
            return found
        return np.sort(rng.generator.choice(found, self.limit, replace=False))


@dataclass(frozen=True, kw_only=True)
class FixedSize(Sampler):
    """A uniform choice of exactly ``batch_size`` records, without replacement; the number of records is public."""

    adjacency = Adjacency.REPLACE
    movement = 2

    def _step(self, z: float) -> events.Event:
        return events.FixedSizeSampled(rate=self.rate, event=self._gaussian(z))

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """A choice."""
        return np.sort(rng.generator.choice(size, min(self.batch_size, size), replace=False))


class _Passes(Sampler):
    """A sampler that deals every record to one batch of a pass."""

    passes = True

    def event(self, multipliers: Sequence[float]) -> events.Event:
        """One event a pass, begun passes included, at the least noise of the pass."""
        k = self.steps_per_pass
        least = [min(multipliers[i:i + k]) for i in range(0, len(multipliers), k)]
        return super().event(least)


@dataclass(frozen=True, kw_only=True)
class BallsInBins(_Passes):
    """In each pass every record falls into one of the batches at random; batches vary in size."""

    @property
    def expected(self) -> float:
        """The mean number of records in a bin."""
        return self.dataset_size / self.steps_per_pass

    def _step(self, z: float) -> events.Event:
        return events.BallsInBins(bins=self.steps_per_pass, event=self._gaussian(z))

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """Those whose ball fell into this bin; ``order`` holds a bin for each record."""
        assert order is not None
        return np.flatnonzero(order[:size] == step % self.steps_per_pass)


@dataclass(frozen=True, kw_only=True)
class Shuffled(_Passes):
    """Each pass goes through all records in a random order; the number of records is public."""

    adjacency = Adjacency.REPLACE
    movement = 2

    def _step(self, z: float) -> events.Event:
        return events.Shuffled(event=self._gaussian(z))

    def order(self, size: int, rng: Rng) -> Indices:
        """A permutation."""
        return rng.generator.permutation(size)

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """The next ones in order."""
        assert order is not None
        start = step % self.steps_per_pass * self.batch_size
        return order[start:start + self.batch_size]


@dataclass(frozen=True, kw_only=True)
class PerUser(Sampler):
    """Poisson sampling of users. Neighbours differ in one user with all their records.

    ``users`` names the user of each record; ``dataset_size`` and ``batch_size`` count users. A sampled user brings at most
    ``records_per_user`` of their records, chosen at random, each clipped to that share of the clip norm. A book is charged in
    the unit ``name``.
    """

    users: Any = field(repr=False, compare=False, default=())
    records_per_user: int = 1
    name: str = "user"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("records_per_user", self.records_per_user, low=1)
        unit_name(self.name)
        object.__setattr__(self, "records_per_unit", self.records_per_user)

    @property
    def unit(self) -> str:
        """The user, whose records the sampler bounds."""
        return Enforced(self.name)

    @cached_property
    def _groups(self) -> tuple[list[object], Indices, Indices]:
        """Users, their records one user after another, and where each user's begin."""
        names, of = np.unique(np.asarray(self.users), return_inverse=True)
        by_user = np.argsort(of, kind="stable")
        return names.tolist(), by_user, np.searchsorted(of[by_user], np.arange(len(names) + 1))

    def _step(self, z: float) -> events.Event:
        return events.PoissonSampled(rate=self.rate, event=self._gaussian(z))

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """Coins for users, then a choice among the records of each."""
        names, by_user, ends = self._groups
        if len(by_user) != size:
            raise ValueError("users does not name one user for each record.")
        found = []
        for user in _chosen(self.rate, names, rng):
            own = by_user[ends[user]:ends[user + 1]]
            if len(own) > self.records_per_user:
                own = rng.generator.choice(own, self.records_per_user, replace=False)
            found.append(own)
        return np.sort(np.concatenate(found)) if found else np.empty(0, np.int64)
