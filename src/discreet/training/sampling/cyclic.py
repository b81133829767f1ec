"""Cyclic Poisson sampling: the parts of the data in turn, each by independent coins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.errors import whole
from discreet.random import Rng
from discreet.training.sampling.base import Indices, Sampler, bins, chosen
from discreet.training.sampling.participation import CyclicPoissonSampling, Participation

__all__ = ["CyclicPoisson"]


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
        return bins(keys, self.parts, rng)

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """Coins for all, heads in the part whose turn it is."""
        assert order is not None
        drawn = chosen(self.rate, keys, rng)
        return drawn[order[drawn] == step % self.parts]
