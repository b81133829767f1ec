"""Batches of one size, drawn without replacement, each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from discreet.random import Rng
from discreet.training.sampling.base import Indices, Sampler
from discreet.training.sampling.participation import FixedSizeSampling, Participation

__all__ = ["FixedSize"]


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
