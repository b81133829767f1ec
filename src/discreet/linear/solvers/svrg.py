r"""DP-SVRG: full gradients now and then, and minibatches that correct them.

Each of S rounds releases a full clipped gradient at an anchor a; each of m inner steps draws a Poisson sample and releases
the sum of its clipped gradient *differences* between w and a. A difference is small where w is near a, so it is clipped to a
quarter of C and carries a quarter of the noise; the estimate is the full gradient plus the difference over q.

Guarantee: S·(Gaussian + m Poisson-sampled Gaussians), calibrated together by the numerical account.

Reference: Johnson and Zhang (2013); private: Wang, Ye and Xu (2017).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet import events, mechanisms, random
from discreet.errors import number, whole
from discreet.linear import kernels
from discreet.linear.problem import Solution
from discreet.linear.rows import Records
from discreet.linear.solvers._descent import Descending, Pace, drawn, sampled_noise
from discreet.mechanisms._common import store

__all__ = ["VarianceReduced"]

MOMENTUM = 0.9
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceReduced(Descending):
    """S anchors with m corrected steps each."""

    rounds: int = 24
    inner: int = 8
    rate: float = 0.1

    def __post_init__(self) -> None:
        Descending.__post_init__(self)
        store(self, rounds=whole("rounds", self.rounds, low=1), inner=whole("inner", self.inner, low=1),
              rate=number("rate", self.rate, low=0, high=1, open_low=True))

    @property
    def steps(self) -> int:
        """Inner steps in all."""
        return self.rounds * self.inner

    def _mechanism(self, clip: float) -> mechanisms.Gaussian:
        """Noise of one multiplier for anchors and differences alike."""
        problem, counter = self.problem, self.counter
        z = sampled_noise(self.rate, self.steps, self.rounds, problem.epsilon, problem.delta, str(problem.adjacency),
                          None if counter is None else counter.event)
        return mechanisms.Gaussian(sensitivity=clip, rho=0.5 / z**2, max_size=problem.entries())

    @property
    def event(self) -> events.Event:
        """Anchors and sampled differences; a count where the number of records is private."""
        anchor, difference = self._mechanism(self.clip).event, self._mechanism(self.clip / 4).event
        return self._counted(events.PoissonSampled(rate=self.rate, event=difference) * self.steps + anchor * self.rounds)

    def solve(self, records: Records, rng: random.Rng) -> Solution:
        """Descend."""
        pace = Pace(1 / self._smoothness(self._size(records, rng)), MOMENTUM, (self.steps - 1) / 2)
        estimates = self._estimates(records, rng)
        next(estimates)
        return Solution(self._descend(estimates.send, self.steps, pace), self.regularization, self.clip)

    def _estimates(self, records: Records, rng: random.Rng) -> Generator[Array, Array, None]:
        """Is sent weights, and answers with the estimated gradient there; every m-th becomes the anchor."""
        anchors, differences = self._mechanism(self.clip), self._mechanism(self.clip / 4)
        estimate = np.zeros(self.problem.shape)
        for t in range(self.steps):
            w = yield estimate
            if t % self.inner == 0:
                anchor, full = w, anchors.release(self._gradient(records, w), rng).value
            batch = drawn(records, self.rate, rng)
            with np.errstate(all="ignore"):  # infinite slopes of a loss of one's own: no warning tells that there are any
                change = self._residuals(batch, w) - self._residuals(batch, anchor)
            estimate = full + differences.release(kernels.clipped_sum(batch.rows, change, self.clip / 4), rng).value / self.rate
        yield estimate
