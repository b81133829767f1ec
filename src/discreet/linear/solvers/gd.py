r"""Full-batch noisy gradient descent with momentum and averaging: the default for classification.

Each of T steps releases one clipped gradient sum with Gaussian noise; T such steps cost exactly what one costs whose
noise is √T times smaller. Steps are those of ``_descent``; the mean of the later iterates is returned: of the second
half, or of more where momentum arrives sooner. Λ is public and by default proportional to the noise (see
``Problem.ridge``); step and momentum follow from Λ and n, which sets the pace, never the noise.

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

from discreet import events, random
from discreet.errors import whole
from discreet.linear.problem import Solution
from discreet.linear.rows import Records
from discreet.linear.solvers._descent import COUNT_SHARE, Descending, Pace
from discreet.mechanisms.parameters import store

__all__ = ["GradientDescent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientDescent(Descending):
    """T noisy full gradients, each record's clipped to ``clip``."""

    steps: int = 128

    def __post_init__(self) -> None:
        Descending.__post_init__(self)
        store(self, steps=whole("steps", self.steps, low=1))

    @property
    def mechanism(self) -> Any:
        """The noise on one gradient sum."""
        problem, left = self.problem, 1.0 if self.counter is None else 1 - COUNT_SHARE
        if problem.delta > 0:
            return problem.gaussian(self.clip, problem.rho(left / self.steps))
        spread = math.sqrt(math.prod(problem.shape)) * (1 + 2.0**-40)
        return problem.laplace(self.clip * spread, left * problem.epsilon / self.steps)

    @property
    def spread(self) -> float:
        """The standard deviation of an entry of the mean of all released gradients."""
        mechanism = self.mechanism
        each = mechanism.sigma if self.problem.delta > 0 else math.sqrt(2) * mechanism.scale
        return float(each) / math.sqrt(self.steps)

    @property
    def event(self) -> events.Event:
        """T gradients, and a count where the number of records is private."""
        return self._counted(self.mechanism.event * self.steps)

    def solve(self, records: Records, rng: random.Rng) -> Solution:
        """Descend."""
        mechanism, pace = self.mechanism, self._pace(self._size(records, rng))
        weights = self._descend(lambda w: mechanism.release(self._gradient(records, w), rng).value, self.steps, pace)
        return Solution(weights, pace.ridge, self.clip)

    def _pace(self, size: float) -> Pace:
        """Heavy-ball momentum for the condition number of the regularised sum, at most 0.95."""
        smooth, ridge = self._smoothness(size), self._ridge(size)
        root = math.sqrt(smooth / ridge)  # about how many steps it takes to arrive
        momentum = min(((root - 1) / (root + 1)) ** 2, 0.95)
        return Pace(min(3.0, max(1.0, root / 40)) / smooth, momentum, min((self.steps - 1) / 2, 1.5 * root), ridge)
