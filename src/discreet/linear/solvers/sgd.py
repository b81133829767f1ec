r"""DP-SGD on a convex sum: Poisson-sampled minibatches, momentum, an averaged second half.

Each of T steps draws every record with probability q, sums the clipped gradients of the drawn, adds Gaussian noise and
divides by q, which estimates the full sum without the (private) number of records. A step is 1/L, times ``step``.

Guarantee: T Poisson-sampled Gaussians, calibrated by the numerical account. The coin of a record is a 64-bit word below
⌊q·2^64⌋, so a record is drawn with probability at most q. Full batches (``gd``) are more accurate at equal budget;
sampling is for data too large to pass over T times.

Reference: Song, Chaudhuri and Sarwate (2013); Bassily, Smith and Thakurta (2014); Abadi et al. (2016).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet import events, mechanisms, random
from discreet.errors import number, positive, whole
from discreet.linear.problem import Solution
from discreet.linear.rows import Records
from discreet.linear.solvers._descent import Descending, Pace, sample_records, sampled_noise
from discreet.mechanisms.parameters import store

__all__ = ["StochasticGradientDescent"]


@dataclass(frozen=True, kw_only=True)
class StochasticGradientDescent(Descending):
    """T noisy minibatch gradients."""

    steps: int = 400
    rate: float = 0.1
    step: float = 1.0  # times 1/L
    momentum: float = 0.9

    def __post_init__(self) -> None:
        Descending.__post_init__(self)
        store(
            self,
            steps=whole("steps", self.steps, low=1),
            step=positive("step", self.step),
            momentum=number("momentum", self.momentum, low=0, high=1, open_high=True),
            rate=number("rate", self.rate, low=0, high=1, open_low=True),
        )

    @cached_property
    def mechanism(self) -> mechanisms.Gaussian:
        """The noise on one sampled sum, at its add-remove sensitivity: the sampler restates it for other relations."""
        problem, counter = self.problem, self.counter
        z = sampled_noise(
            self.rate,
            self.steps,
            0,
            problem.epsilon,
            problem.delta,
            str(problem.adjacency),
            None if counter is None else counter.event,
        )
        return mechanisms.Gaussian(sensitivity=self.bound, rho=0.5 / z**2, max_size=problem.entries())

    @property
    def spread(self) -> float:
        """The standard deviation of an entry of the mean of all released gradients."""
        return float(self.mechanism.sigma or 0.0) / self.rate / math.sqrt(self.steps)

    @cached_property
    def event(self) -> events.Event:
        """T sampled gradients, and a count where the number of records is private."""
        step = events.PoissonSampled(rate=self.rate, event=self.mechanism.event)
        return self._with_count(self._under_its_adjacency(step) * self.steps)

    def solve(self, records: Records, rng: random.Rng) -> Solution:
        """Descend."""
        mechanism = self.mechanism
        size = self._size(records, rng)
        pace = Pace(self.step / self._smoothness(size), self.momentum, (self.steps - 1) / 2, self._ridge(size))

        def gradient(w: NDArray[np.float64]) -> NDArray[np.float64]:
            batch = sample_records(records, self.rate, rng)
            return np.asarray(mechanism.draw(self._gradient(batch, w), rng) / self.rate)

        return Solution(self._descend(gradient, self.steps, pace), self._ridge(size), self.bound, self.steps)
