r"""DP-SVRG: full gradients now and then, and minibatches that correct them.

Each of S rounds releases a full clipped gradient at an anchor a; each of m inner steps draws a Poisson sample and
releases the sum of its clipped gradient *differences* between w and a. A difference is small where w is near a, so it
is clipped to a quarter of C and carries a quarter of the noise; the estimate is the full gradient plus the difference
over q.

A loss whose slope is not bounded (the squared one) changes its gradient by up to cR²·‖w - a‖. Were that clipped, the
estimate would still point downhill long after the minimum is passed, and momentum would swing ever further; so w stays
within C/2cR² of its anchor, where a row of half the largest square is not clipped. That is a function of released
numbers.

Guarantee: S·(Gaussian + m Poisson-sampled Gaussians), calibrated together by the numerical account.

Reference: Johnson and Zhang (2013); private: Wang, Ye and Xu (2017).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet import events, mechanisms, random
from discreet.errors import number, whole
from discreet.linear import kernels
from discreet.linear.problem import Solution
from discreet.linear.rows import Records
from discreet.linear.solvers._descent import Descending, Pace, sample_records, sampled_noise
from discreet.mechanisms.parameters import store

__all__ = ["VarianceReduced"]

MOMENTUM = 0.9
SHARE = 0.25  # of the clip, for differences
Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class VarianceReduced(Descending):
    """S anchors with m corrected steps each."""

    rounds: int = 24
    inner: int = 8
    rate: float = 0.1

    def __post_init__(self) -> None:
        Descending.__post_init__(self)
        store(
            self,
            rounds=whole("rounds", self.rounds, low=1),
            inner=whole("inner", self.inner, low=1),
            rate=number("rate", self.rate, low=0, high=1, open_low=True),
        )

    @property
    def steps(self) -> int:
        """Inner steps in all."""
        return self.rounds * self.inner

    @cached_property
    def anchor_noise(self) -> mechanisms.Gaussian:
        """On a full gradient sum."""
        return self._noise(self.bound)

    @cached_property
    def difference_noise(self) -> mechanisms.Gaussian:
        """On a sampled sum of differences."""
        return self._noise(self.bound * SHARE)

    def _noise(self, clip: float) -> mechanisms.Gaussian:
        """Of one multiplier for anchors and differences alike."""
        problem, counter = self.problem, self.counter
        z = sampled_noise(
            self.rate,
            self.steps,
            self.rounds,
            problem.epsilon,
            problem.delta,
            str(problem.adjacency),
            None if counter is None else counter.event,
        )
        return mechanisms.Gaussian(sensitivity=clip, rho=0.5 / z**2, max_size=problem.entries())

    @property
    def event(self) -> events.Event:
        """Anchors and sampled differences; a count where the number of records is private."""
        anchor, difference = self.anchor_noise.event, self.difference_noise.event
        step = events.PoissonSampled(rate=self.rate, event=difference)
        return self._with_count(
            self._under_its_adjacency(step) * self.steps + self._under_its_adjacency(anchor) * self.rounds
        )

    @property
    def spread(self) -> float:
        """The standard deviation of an entry of the mean of all estimates."""
        sigma = float(self.anchor_noise.sigma or 0.0)
        return sigma * math.hypot(1 / math.sqrt(self.rounds), SHARE / self.rate / math.sqrt(self.steps))

    @property
    def reach(self) -> float:
        """How far from their anchor weights may go, before most differences would be clipped."""
        loss = self.problem.loss
        return (
            math.inf if loss.lipschitz < math.inf else 2 * SHARE * self.bound / (loss.curvature * self.problem.square)
        )

    def solve(self, records: Records, rng: random.Rng) -> Solution:
        """Descend."""
        size = self._size(records, rng)
        pace = Pace(1 / self._smoothness(size), MOMENTUM, (self.steps - 1) / 2, self._ridge(size))
        run = _VarianceReducedRun(self, records, rng)
        weights = self._descend(run.gradient, self.steps, pace, run.within)
        return Solution(weights, self._ridge(size), self.bound, self.steps)


class _VarianceReducedRun:
    """One descent: the anchor, the gradient released there, and how many steps were made."""

    def __init__(self, plan: VarianceReduced, records: Records, rng: random.Rng) -> None:
        self.plan, self.records, self.rng, self.done = plan, records, rng, 0
        self.anchors, self.differences = plan.anchor_noise, plan.difference_noise
        self.anchor = self.full = np.zeros(plan.problem.shape)

    def gradient(self, w: Array) -> Array:
        """The estimate at w; every m-th becomes the anchor."""
        plan = self.plan
        if self.done % plan.inner == 0:
            self.anchor, self.full = w, self.anchors.draw(plan._gradient(self.records, w), self.rng)
        self.done += 1
        batch = sample_records(self.records, plan.rate, self.rng)
        with np.errstate(all="ignore"):  # infinite slopes of a loss of one's own: no warning tells that there are any
            change = plan._residuals(batch, w) - plan._residuals(batch, self.anchor)
        noisy = self.differences.draw(kernels.clipped_sum(batch.rows, change, plan.bound * SHARE), self.rng)
        return np.asarray(self.full + noisy / plan.rate)

    def within(self, w: Array) -> Array:
        """The nearest point to w within reach of the anchor."""
        moved = w - self.anchor
        far = float(np.sqrt((moved * moved).sum())) / self.plan.reach
        return w if far <= 1 else self.anchor + moved / far
