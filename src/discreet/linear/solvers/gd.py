r"""Full-batch noisy gradient descent with momentum and averaging: the default for classification.

Each of T steps releases one clipped gradient sum with Gaussian noise; T such steps cost exactly what one costs whose
noise is √T times smaller. With momentum β and step η, on the sum of the losses (L its smoothness for n records):

.. math:: v \leftarrow \beta v - \eta\,(\tilde g(w) + \Lambda w), \qquad w \leftarrow w + v

and the mean of the later iterates is returned: of the second half, or of more where momentum arrives sooner. Λ is public and
by default proportional to the noise (see ``Problem.ridge``); η and β follow from Λ and n. Under add-remove n is private: it is
declared (``dataset_size``), or a noisy count takes 1 % of the budget. n sets the pace, never the noise.

Heavy-ball steps are stable on a quadratic below 2(1 + β)/L; ours are at most 3/L, and longer than 1/L only where β is
near its limit, that is where the signal is strong and T steps of 1/L would not arrive.

Guarantee: the event, for any loss; a record's gradient is clipped, exactly (``kernels``). With delta = 0 the noise is
Laplace, on an L1 sensitivity of √p·C (C itself for a single weight).

Reference: Bassily, Smith and Thakurta (2014); for the account, Dong, Roth and Su (2022), Corollary 3.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.errors import positive, whole
from discreet.linear import kernels
from discreet.linear.problem import Problem, Solution, count, counting, noise_multiplier
from discreet.linear.rows import Records
from discreet.linear.solvers._prox import Proximal
from discreet.mechanisms._common import store

__all__ = ["GradientDescent", "Pace"]

COUNT_SHARE = 0.01
LARGEST = 2.0**15  # weights are kept within this norm, so that no score overflows


@dataclass(frozen=True, slots=True)
class Pace:
    """Step size and momentum for a sum of n losses: from public numbers and a noisy count."""

    step: float
    momentum: float
    root: float  # of the condition number: about how many steps it takes to arrive

    @staticmethod
    def of(problem: Problem, size: float, regularization: float) -> Pace:
        """Heavy-ball momentum for the condition number of the regularised sum, at most 0.95."""
        smooth = problem.loss.curvature * problem.square * size + regularization
        root = math.sqrt(smooth / regularization) if regularization > 0 else math.inf
        momentum = min(((root - 1) / (root + 1)) ** 2 if root < math.inf else 1.0, 0.95)
        return Pace(min(3.0, max(1.0, root / 40)) / smooth, momentum, root)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientDescent:
    """T noisy full gradients, each record's clipped to ``clip``."""

    problem: Problem
    steps: int = 128
    clip: float = 0.4

    def __post_init__(self) -> None:
        store(self, steps=whole("steps", self.steps, low=1), clip=positive("clip", self.clip))

    @property
    def regularization(self) -> float:
        """Λ."""
        return self.problem.ridge(self.clip)

    @property
    def _counter(self) -> Any:
        return counting(self.problem, COUNT_SHARE)[0]

    @property
    def mechanism(self) -> Any:
        """The noise on one gradient sum."""
        problem, left = self.problem, 1.0 if self._counter is None else 1 - COUNT_SHARE
        if problem.delta > 0:
            rho = left / (2 * noise_multiplier(problem.epsilon, problem.delta) ** 2)
            return problem.gaussian(self.clip, rho / self.steps)
        spread = math.sqrt(math.prod(problem.shape)) * (1 + 2.0**-40)
        return problem.laplace(self.clip * spread, left * problem.epsilon / self.steps)

    @property
    def event(self) -> events.Event:
        """T gradients, and a count where the number of records is private."""
        steps: events.Event = self.mechanism.event * self.steps
        return steps if self._counter is None else steps + self._counter.event

    @property
    def gradient_noise(self) -> float:
        """The standard deviation of the noise, were all steps spent on one gradient."""
        mechanism = self.mechanism
        each = mechanism.sigma if self.problem.delta > 0 else math.sqrt(2) * mechanism.scale
        return float(each / math.sqrt(self.steps))

    def solve(self, records: Records, rng: random.Rng) -> Solution:
        """Descend."""
        ridge, mechanism = self.regularization, self.mechanism
        pace = Pace.of(self.problem, count(self.problem, records, self._counter, rng), ridge)
        near, first = Proximal.of(self.problem, LARGEST), min((self.steps - 1) / 2, 1.5 * pace.root)
        w = np.zeros(self.problem.shape)
        velocity, total, kept = np.zeros_like(w), np.zeros_like(w), 0
        for t in range(self.steps):
            gradient = mechanism.release(self._gradient(records, w), rng).value + ridge * w
            velocity = pace.momentum * velocity - pace.step * gradient
            moved = near(w + velocity, pace.step)
            velocity, w = moved - w, moved
            if t >= first:
                total, kept = total + w, kept + 1
        return Solution(total / kept, ridge, self.clip, self.gradient_noise)

    def _gradient(self, records: Records, w: NDArray[np.float64]) -> Any:
        residuals = self.problem.loss.residual(kernels.scores(records.rows, w), records.targets)
        return kernels.clipped_sum(records.rows, residuals, self.clip)
