"""The Poisson sampler: each record joins each batch independently, with one probability (Poisson sampling).

Decision 407.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.random import Rng
from discreet.training.sampling.base import Indices, Sampler, chosen, hardly_exceeded
from discreet.training.sampling.participation import Participation, PoissonSampling, TruncatedPoissonSampling

__all__ = ["Poisson", "TruncatedPoisson"]


@dataclass(frozen=True, kw_only=True)
class Poisson(Sampler):
    """Every record joins every batch by a coin of its own: batches vary in size and may be empty."""

    @property
    def participation(self) -> Participation:
        """A coin a record and step."""
        return PoissonSampling(self.rate)

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """Coins."""
        return chosen(self.rate, keys, rng)


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
        return hardly_exceeded(self.expected, self.dataset_size)

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
        drawn = chosen(self.rate, keys, rng)
        if len(drawn) <= self.limit:
            return drawn
        return np.sort(rng.generator.choice(drawn, self.limit, replace=False))
