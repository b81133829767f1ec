"""What additive models share: a count of the records in each feature's bins, then rounds of measurements of them."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.estimators.bins import Bins
from discreet.estimators.sums import group_sums, noise_for
from discreet.fitting import FitPlan
from discreet.mechanisms import Budget

__all__ = ["BinnedRounds"]


class BinnedRounds(FitPlan):
    """A plan of ``rounds`` over features in ``bins``; a subclass is a dataclass that has these fields."""

    bins: Bins
    rounds: int
    budget: Budget
    movement: int

    counting_share: ClassVar[float]
    """The part of the budget that the counts of the bins take."""

    @cached_property
    def counting(self) -> Any:
        """Noise for the counts of all bins: a record is in one of each feature's."""
        features = len(self.bins.counts)
        share = self.budget.part(self.counting_share)
        return noise_for(share, features, features, sum(self.bins.sizes), self.movement)

    @property
    @abstractmethod
    def noises(self) -> list[Any]:
        """Noise for each feature's measurements, in every round the same."""

    @property
    def _counts_and_rounds(self) -> events.Event:
        """The cost of the counts, and of every round's measurements."""
        one_round: events.Event = self.noises[0].event
        for noise in self.noises[1:]:
            one_round = one_round + noise.event
        return self.counting.event + one_round * self.rounds  # type: ignore[no-any-return]

    def _noisy_counts(self, codes: NDArray[np.int64], rng: random.Rng) -> list[NDArray[np.float64]]:
        """How many records are in each bin, a feature at a time; a code of -1 is in none."""
        totals = [group_sums(np.ones(len(codes)), codes[:, j], size) for j, size in enumerate(self.bins.sizes)]
        return np.split(self.counting.draw(np.concatenate(totals), rng), np.cumsum(self.bins.sizes)[:-1])
