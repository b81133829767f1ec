r"""DP-SVRG: full gradients now and then, and minibatches that correct them.

Each of S rounds releases a full clipped gradient at an anchor a; each of m inner steps draws a Poisson sample and releases
the sum of its clipped gradient *differences* between w and a. A difference is small where w is near a, so it is clipped to a
quarter of C and carries a quarter of the noise; the estimate is the full gradient plus the difference over q.

Guarantee: S·(Gaussian + m Poisson-sampled Gaussians), calibrated together by the numerical account.

Reference: Johnson and Zhang (2013); private: Wang, Ye and Xu (2017).
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
from discreet.linear.solvers.sgd import _MARGIN, drawn
from discreet.mechanisms._common import store

__all__ = ["VarianceReduced"]


def _family(z: float, rate: float, rounds: int, inner: int, extra: events.Event | None) -> events.Event:
    noise = events.Gaussian(noise_multiplier=z)
    run = (noise + events.PoissonSampled(rate=rate, event=noise) * inner) * rounds
    return run if extra is None else run + extra


@lru_cache(maxsize=64)
def _noise(rate: float, rounds: int, inner: int, epsilon: float, delta: float, adjacency: str,
           extra: events.Event | None) -> float:
    return accounting.calibrate(lambda z: _family(z, rate, rounds, inner, extra), epsilon=epsilon, delta=delta,
                                adjacency=adjacency) * _MARGIN


@dataclass(frozen=True, slots=True, kw_only=True)
class VarianceReduced:
    """S anchors with m corrected steps each."""

    problem: Problem
    rounds: int = 24
    inner: int = 8
    rate: float = 0.1
    clip: float = 0.4

    def __post_init__(self) -> None:
        store(self, rounds=whole("rounds", self.rounds, low=1), inner=whole("inner", self.inner, low=1),
              rate=number("rate", self.rate, low=0, high=1, open_low=True), clip=positive("clip", self.clip))

    @property
    def steps(self) -> int:
        """Inner steps in all."""
        return self.rounds * self.inner

    @property
    def regularization(self) -> float:
        """Λ."""
        return self.problem.ridge(self.clip)

    @property
    def _counter(self) -> Any:
        return counting(self.problem, COUNT_SHARE)[0]

    @property
    def noise_multiplier(self) -> float:
        """Of anchors and differences alike."""
        problem, counter = self.problem, self._counter
        return _noise(self.rate, self.rounds, self.inner, problem.epsilon, problem.delta, str(problem.adjacency),
                      None if counter is None else counter.event)

    def _mechanism(self, clip: float) -> mechanisms.Gaussian:
        return mechanisms.Gaussian(sensitivity=clip, rho=0.5 / self.noise_multiplier**2)

    @property
    def event(self) -> events.Event:
        """Anchors and sampled differences; a count where the number of records is private."""
        anchor, difference = self._mechanism(self.clip).event, self._mechanism(self.clip / 4).event
        run = (anchor + events.PoissonSampled(rate=self.rate, event=difference) * self.inner) * self.rounds
        return run if self._counter is None else run + self._counter.event

    def solve(self, records: Records, rng: random.Rng) -> Solution:
        """Descend."""
        problem, ridge = self.problem, self.regularization
        size = count(problem, records, self._counter, rng)
        length, momentum = 1 / (problem.loss.curvature * problem.square * size + ridge), 0.9
        near, anchors, differences = Proximal.of(problem, LARGEST), self._mechanism(self.clip), self._mechanism(self.clip / 4)
        w = np.zeros(problem.shape)
        velocity, total, kept = np.zeros_like(w), np.zeros_like(w), 0
        for t in range(self.rounds):
            anchor = w
            full = anchors.release(self._sum(records, self._residuals(records, anchor), self.clip), rng).value
            for _ in range(self.inner):
                batch = drawn(records, self.rate, rng)
                change = self._residuals(batch, w) - self._residuals(batch, anchor)
                noisy = differences.release(self._sum(batch, change, self.clip / 4), rng).value
                velocity = momentum * velocity - length * (full + noisy / self.rate + ridge * w)
                moved = near(w + velocity, length)
                velocity, w = moved - w, moved
                if 2 * t >= self.rounds - 1:
                    total, kept = total + w, kept + 1
        return Solution(total / kept, ridge, self.clip)

    def _residuals(self, records: Records, w: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.problem.loss.residual(kernels.scores(records.rows, w), records.targets)

    def _sum(self, records: Records, residuals: NDArray[np.float64], clip: float) -> Any:
        return kernels.clipped_sum(records.rows, residuals, clip)
