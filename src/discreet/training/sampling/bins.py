"""Balls in bins: each record is put into one batch of a pass, by a coin of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.random import Rng
from discreet.training.sampling.base import Indices, Sampler, bins
from discreet.training.sampling.participation import BallsInBinsDealing, KeptBinsDealing, Participation

__all__ = ["BallsInBins", "KeptBins"]


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
        return bins(keys, self.steps_per_pass, rng)

    def draw(self, step: int, size: int, keys: Sequence[object], order: Indices | None, rng: Rng) -> Indices:
        """Those whose ball fell into this bin; ``order`` holds a bin for each record."""
        assert order is not None
        return np.flatnonzero(order[:size] == step % self.steps_per_pass)


@dataclass(frozen=True, kw_only=True)
class KeptBins(BallsInBins):
    """Every record falls into one of the batches of a pass at random, and is in that batch in every pass.

    For correlated noise: steps of a record are a pass apart. The bin is secret and drawn once, so the run is amplified
    once; with independent noise, bins that are drawn anew cost less.
    """

    kept = True

    @property
    def participation(self) -> Participation:
        """A bin a run."""
        return KeptBinsDealing(self.steps_per_pass)
