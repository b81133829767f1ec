r"""DP-SGD on a convex sum: Poisson-sampled minibatches, momentum, an averaged second half.

Each of T steps draws every record with probability q, sums the clipped gradients of the drawn, adds Gaussian noise and
divides by q, which estimates the full sum without the (private) number of records. A step is 1/L, times ``step``.

Guarantee: T Poisson-sampled Gaussians, calibrated by the numerical account. The coin of a record is a 64-bit word below
⌊q·2^64⌋, so a record is drawn with probability at most q. Full batches (``gd``) are more accurate at equal budget; sampling
is for data too large to pass over T times.

Reference: Song, Chaudhuri and Sarwate (2013); Bassily, Smith and Thakurta (2014); Abadi et al. (2016).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import accounting, events, mechanisms, random
from discreet.errors import number, positive, whole
from discreet.linear import kernels
from discreet.linear.problem import Problem, Solution, count, counting
from discreet.linear.rows import Records
from discreet.linear.solvers._prox import Proximal
from discreet.linear.solvers.gd import COUNT_SHARE, LARGEST
from discreet.mechanisms._common import store
from discreet.random.tap import coins

__all__ = ["StochasticGradientDescent", "drawn"]

_MARGIN = 1 + 1e-7  # over the calibrated multiplier, for the grid's rounding


def drawn(records: Records, rate: float, rng: random.Rng) -> Records:
    """A Poisson sample: each record by its own coin."""
    threshold = np.uint64(min(int(rate * 2.0**64), 2**64 - 1))
    return records.take(coins(records.keys, rng) < threshold) if rate < 1 else records


@lru_cache(maxsize=64)
def _noise(rate: float, steps: int, epsilon: float, delta: float, adjacency: str, extra: events.Event | None) -> float:
    def family(z: float) -> events.Event:
        run = events.PoissonSampled(rate=rate, event=events.Gaussian(noise_multiplier=z)) * steps
        return run if extra is None else run + extra

    return accounting.calibrate(family, epsilon=epsilon, delta=delta, adjacency=adjacency) * _MARGIN


@dataclass(frozen=True, slots=True, kw_only=True)
class StochasticGradientDescent:
    """T noisy minibatch gradients."""

    problem: Problem
    steps: int = 400
    rate: float = 0.1
    clip: float = 0.4
    step: float = 1.0  # times 1/L
    momentum: float = 0.9

    def __post_init__(self) -> None:
        store(self, steps=whole("steps", self.steps, low=1), clip=positive("clip", self.clip),
              step=positive("step", self.step), momentum=number("momentum", self.momentum, low=0, high=1, open_high=True),
              rate=number("rate", self.rate, low=0, high=1, open_low=True))

    @property
    def regularization(self) -> float:
        """Λ."""
        return self.problem.ridge(self.clip)

    @property
    def _counter(self) -> Any:
        return counting(self.problem, COUNT_SHARE)[0]

    @property
    def mechanism(self) -> mechanisms.Gaussian:
        """The noise on one sampled sum, at its add-remove sensitivity: the sampler restates it for other relations."""
        problem, counter = self.problem, self._counter
        z = _noise(self.rate, self.steps, problem.epsilon, problem.delta, str(problem.adjacency),
                   None if counter is None else counter.event)
        return mechanisms.Gaussian(sensitivity=self.clip, rho=0.5 / z**2)

    @property
    def event(self) -> events.Event:
        """T sampled gradients, and a count where the number of records is private."""
        run = events.PoissonSampled(rate=self.rate, event=self.mechanism.event) * self.steps
        return run if self._counter is None else run + self._counter.event

    def solve(self, records: Records, rng: random.Rng) -> Solution:
        """Descend."""
        ridge, mechanism = self.regularization, self.mechanism
        size = count(self.problem, records, self._counter, rng)
        length = self.step / (self.problem.loss.curvature * self.problem.square * size + ridge)
        near = Proximal.of(self.problem, LARGEST)
        w = np.zeros(self.problem.shape)
        velocity, total, kept = np.zeros_like(w), np.zeros_like(w), 0
        for t in range(self.steps):
            gradient = mechanism.release(self._gradient(drawn(records, self.rate, rng), w), rng).value / self.rate
            velocity = self.momentum * velocity - length * (gradient + ridge * w)
            moved = near(w + velocity, length)
            velocity, w = moved - w, moved
            if 2 * t >= self.steps - 1:
                total, kept = total + w, kept + 1
        return Solution(total / kept, ridge, self.clip)

    def _gradient(self, batch: Records, w: NDArray[np.float64]) -> Any:
        residuals = self.problem.loss.residual(kernels.scores(batch.rows, w), batch.targets)
        return kernels.clipped_sum(batch.rows, residuals, self.clip)
