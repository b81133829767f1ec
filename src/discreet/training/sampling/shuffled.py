"""Passes over the data in a random order, which is not amplified, or in the order it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.adjacency import Adjacency
from discreet.random import Rng
from discreet.training.sampling.base import Indices, Sampler
from discreet.training.sampling.participation import FixedOrderDealing, Participation, ShuffledDealing

__all__ = ["FixedOrder", "Shuffled"]


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
