r"""Output perturbation: the exact minimiser, and noise as large as one record can move it.

The minimiser of a Λ-strongly convex sum moves by at most ℓR/Λ when a record of gradient norm at most ℓR is added or
removed, and by twice that when one is replaced; an optimiser stopped at a certified gradient norm τ adds 2τ/Λ. τ is
public, and reached whatever the records are (``_minimise``): whether there is an answer does not depend on them.

delta = 0
    noise of density ∝ exp(-ε‖z‖/Δ): norm from Γ(d, Δ/ε), uniform direction. (Lecture notes often print the exponent
    upside down; the density falls with ε‖z‖.)
delta > 0
    Gaussian noise on the exact grid, which has no float caveat and a fraction of the norm for large d.

Reference: Chaudhuri, Monteleoni and Sarwate (2011), Algorithm 1; sensitivity: their Corollary 8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from discreet import events, mechanisms, random
from discreet.linear.problem import Problem, Solution
from discreet.linear.rows import Records
from discreet.linear.solvers._minimise import Minimisation, attainable
from discreet.linear.solvers._noise import COVER_SHARE, Cover, radial, radial_error
from discreet.random.tap import draw_output

__all__ = ["OutputPerturbation"]

TOLERANCE = 1e-4  # of a record's largest gradient


@dataclass(frozen=True, kw_only=True)
class OutputPerturbation:
    """The minimiser plus noise."""

    problem: Problem

    def __post_init__(self) -> None:
        float(self.tolerance)  # a Λ for which none is proved is refused here, before anything is charged

    @property
    def regularization(self) -> float:
        """Λ; by default ten times what the other solvers take, since here noise moves every direction,
        not only flat ones.
        """
        asked = self.problem.regularization
        return asked if asked is not None else 10 * self.problem.ridge(self._gradient)

    @property
    def _gradient(self) -> float:
        return self.problem.loss.lipschitz * self.problem.norm

    @property
    def tolerance(self) -> float:
        """τ."""
        problem = self.problem
        return max(
            TOLERANCE * self._gradient,
            attainable(problem.loss, problem.square, problem.features, self.regularization, 0.0),
        )

    @property
    def sensitivity(self) -> float:
        """How far one change of the data can move the computed minimiser, in L2."""
        return (self._gradient * self.problem.changes + 2 * self.tolerance) / self.regularization * (1 + 2.0**-40)

    @property
    def _pure_scale(self) -> float:
        return self.sensitivity / (self.problem.epsilon * (1 - COVER_SHARE))

    @cached_property
    def mechanism(self) -> Any:
        """The noise: Gaussian on the minimiser, or the cover of the radial noise."""
        problem = self.problem
        if problem.delta > 0:
            return mechanisms.Gaussian(
                sensitivity=self.sensitivity, rho=problem.rho(), adjacency=problem.adjacency, max_size=problem.entries()
            )
        size = math.prod(problem.shape)
        return Cover(radial_error(size, self._pure_scale), size, problem.epsilon * COVER_SHARE, problem.adjacency)

    @property
    def event(self) -> events.Event:
        """One Gaussian release, or pure DP."""
        if self.problem.delta > 0:
            event: events.Event = self.mechanism.event
            return event
        return events.PureDP(epsilon=self.problem.epsilon, adjacency=self.problem.adjacency)

    def solve(self, records: Records, rng: random.Rng) -> Solution:
        """Minimise, certify, perturb."""
        problem, ridge = self.problem, self.regularization
        exact = Minimisation(problem.loss, records, problem.square, ridge, np.zeros(problem.shape))
        found = exact.solve(self.tolerance)
        if problem.delta > 0:
            return Solution(self.mechanism.draw(found, rng), ridge)
        cover, scale = self.mechanism, self._pure_scale

        def draw() -> Any:
            noise = radial(found.size, scale, rng).reshape(found.shape)
            return cover.release(found + noise, rng)

        return Solution(draw_output(self, found, "l2", self.sensitivity, draw), ridge)
