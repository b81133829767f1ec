r"""Objective perturbation: a random linear term, and the minimiser of the sum.

The minimiser w of Σℓ + Λ/2·‖w‖² + ⟨b, w⟩ reveals b = -∇(…)(w) given the data, so the density of w is that of b times
the Jacobian determinant of w ↦ b(w). A record shifts b by at most ℓR and multiplies the determinant by at most
e^κ, with κ = ln det(I + H/Λ) ≤ ``loss.log_determinant`` (ln(1 + cR²/Λ) for a Hessian of rank one). Hence:

delta = 0
    ‖b‖ from Γ(d, ℓR/ε′), uniform direction, with ε′ = ε - κ under add-remove; Γ(d, 2ℓR/ε′) with ε′ = ε - 2κ under
    replace. Where ε′ would not be positive, Λ is raised until κ (2κ) is ε/2, and ε′ = ε/2.
delta > 0
    b Gaussian. On a linear model the shift is r·x with r ≤ ℓ in size, so the privacy loss is at most
    |Z|·μ + μ²/2 + κ with Z standard normal and μ = ℓR/σ; where the label fixes the sign of r, Z may be cut at 0.
    δ(ε) is then at most 2·δ_Gauss(μ, ε - κ), or 1·δ_Gauss(μ, ε - κ) for one sign, as long as ε - κ ≥ μ²/2, and σ is the
    smallest for which both hold. Λ is raised until κ ≤ ε/2. For more than one score the shift x·rᵀ has no fixed
    direction: the loss is at most ‖Z‖·μ + μ²/2 + κ with Z of K entries, and δ(ε) at most Pr[‖Z‖ > (ε - κ - μ²/2)/μ].
    Under replace the add-remove theorem is used at half of ε, for a group of two.

Finite arithmetic: b is drawn within γ of an ideal b, and the optimiser stops at a certified gradient norm τ, which is
public and reached whatever the records are (``_minimise``), so the point found lies within (γ + τ)/Λ of the ideal
minimiser. A little exact noise covers that (``_noise.Cover``), for 2^-10 of ε. The intercept is a regularised feature:
an unpenalised one would break the determinant's bound.

References: Chaudhuri, Monteleoni and Sarwate (2011), Algorithm 2 and Theorem 9; Kifer, Smith and Thakurta (2012);
approximate minima, Iyengar et al. (2019); the two-sided Gaussian account of linear models, Redberg, Koskela and Wang
(2023).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import chi

from discreet import events, random
from discreet.accounting.gaussian import gaussian_noise_multiplier
from discreet.linear.problem import Problem, Solution
from discreet.linear.rows import Records
from discreet.linear.solvers._minimise import Minimisation, attainable
from discreet.linear.solvers._noise import COVER_SHARE, Cover, radial, radial_error, radial_norm
from discreet.random.tap import draw_output

__all__ = ["ObjectivePerturbation"]

TOLERANCE = 1e-6  # of a record's largest gradient
_STEPS = 1 << 44
_MARGIN = 1 - 1e-9
_DELTA_MARGIN = 1 - 1e-6  # so that numerical composition has room at the delta that was asked for


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation:
    """The minimiser of a randomly tilted sum."""

    problem: Problem

    def __post_init__(self) -> None:
        float(self.tolerance)  # a Λ for which none is proved is refused here, before anything is charged

    @property
    def _gradient(self) -> float:
        return self.problem.loss.lipschitz * self.problem.norm

    @property
    def _budget(self) -> tuple[float, float]:
        """What the tilt may cost: all of epsilon but the cover's share; halved, for the Gaussian theorem,
        under replace.
        """
        problem = self.problem
        epsilon = problem.epsilon * (1 - COVER_SHARE) * _MARGIN
        if problem.delta > 0 and problem.changes == 2:
            return epsilon / 2, problem.delta / (1 + math.exp(epsilon / 2)) * _DELTA_MARGIN
        return epsilon, problem.delta * _DELTA_MARGIN

    @property
    def _factor(self) -> int:
        """How often the determinant is paid: once a change, in the pure theorem."""
        return self.problem.changes if self.problem.delta == 0 else 1

    def _price(self, regularization: float) -> float:
        loss: Any = self.problem.loss
        return self._factor * float(loss.log_determinant(self.problem.square, regularization))

    @cached_property
    def regularization(self) -> float:
        """Λ: as asked, or as large as the theorem demands."""
        epsilon, delta = self._budget
        asked = self.problem.ridge(self._gradient)
        enough = self._price(asked) < epsilon if delta == 0 else self._price(asked) <= epsilon / 2
        if enough:
            return asked
        high = asked
        while self._price(high) > epsilon / 2:
            high *= 2
        root = float(
            brentq(lambda log: self._price(math.exp(log)) - epsilon / 2, math.log(asked), math.log(high), xtol=1e-12)
        )
        return math.exp(root) * (1 + 1e-9)

    @property
    def epsilon_left(self) -> float:
        """ε′ = ε - κ, what is left for the tilt itself."""
        return self._budget[0] - self._price(self.regularization)

    @cached_property
    def noise_scale(self) -> float:
        """Of the tilt: the scale of the Γ law, or the standard deviation."""
        problem, left, delta = self.problem, self.epsilon_left, self._budget[1]
        if delta == 0:
            return problem.changes * self._gradient / left
        return self._gradient * _multiplier(
            left, delta, problem.loss.outputs, bool(getattr(problem.loss, "one_signed", False))
        )

    @cached_property
    def tolerance(self) -> float:
        """τ, for tilts of a norm that is exceeded with probability below 2^-50."""
        problem, size = self.problem, math.prod(self.problem.shape)
        longest = (
            radial_norm(size, self.noise_scale) if problem.delta == 0 else self.noise_scale * (math.sqrt(size) + 9)
        )
        return max(
            TOLERANCE * self._gradient,
            attainable(problem.loss, problem.square, problem.features, self.regularization, longest),
        )

    @cached_property
    def _cover(self) -> Cover:
        size = math.prod(self.problem.shape)
        rounded = (
            radial_error(size, self.noise_scale)
            if self.problem.delta == 0
            else 2 * math.sqrt(size) * self.noise_scale / _STEPS
        )
        error = (rounded + self.tolerance) / self.regularization
        return Cover(error, size, self.problem.epsilon * COVER_SHARE, self.problem.adjacency)

    @property
    def event(self) -> events.Event:
        """The tilt's guarantee and the cover's, which is pure: their epsilons add up to what was asked for."""
        problem = self.problem
        if problem.delta == 0:
            return events.PureDP(epsilon=problem.epsilon, adjacency=problem.adjacency)
        return events.ApproxDP(
            epsilon=problem.epsilon, delta=problem.delta * _DELTA_MARGIN, adjacency=problem.adjacency
        )

    def solve(self, records: Records, rng: random.Rng) -> Solution:
        """Tilt, minimise, certify, cover."""
        problem, ridge = self.problem, self.regularization
        # Replay compares the gradients at a public point: what the tilt has to hide, there.
        still = Minimisation(problem.loss, records, problem.square, ridge, np.zeros(problem.shape))
        limit = self._gradient * problem.changes * (1 + 1e-9) + 2 * still.slack(np.zeros(problem.shape))

        def draw() -> Any:
            tilted = Minimisation(problem.loss, records, problem.square, ridge, self._tilt(rng))
            return self._cover.release(tilted.solve(self.tolerance), rng)

        weights = draw_output(self, still.gradient(np.zeros(problem.shape)), "l2", limit, draw)
        return Solution(weights, ridge)

    def _tilt(self, rng: random.Rng) -> NDArray[np.float64]:
        shape = self.problem.shape
        if self.problem.delta == 0:
            return radial(math.prod(shape), self.noise_scale, rng).reshape(shape)
        return np.asarray((random.gaussian_cells(_STEPS, shape, rng) + 0.5) * (self.noise_scale / _STEPS))


@lru_cache(maxsize=64)
def _multiplier(epsilon: float, delta: float, outputs: int, one_signed: bool) -> float:
    """σ/ℓR for the Gaussian tilt: the smallest for which both conditions of the module hold."""
    least = 1 / math.sqrt(2 * epsilon)  # μ²/2 ≤ ε
    if outputs == 1:
        return max(gaussian_noise_multiplier(epsilon=epsilon, delta=delta if one_signed else delta / 2), least)

    def excess(log_z: float) -> float:
        z = math.exp(log_z)
        return float(chi.logsf((epsilon - 0.5 / z**2) * z, outputs)) - math.log(delta)

    low, high = math.log(least), math.log(least) + 1
    while excess(high) > 0:
        high += 1
    return math.exp(float(brentq(excess, low, high, xtol=1e-12))) * (1 + 1e-9)
