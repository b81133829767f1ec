r"""Full-batch noisy gradient descent with momentum and averaging: the default wherever delta is above 0.

Each of T steps releases one clipped gradient sum with Gaussian noise; T such steps cost exactly what one costs whose
noise is √T times smaller. Steps are those of ``_descent``; the mean of the later iterates is returned: of the second
half, or of more where momentum arrives sooner. Λ is proportional to the noise: a quarter of it (``Problem.ridge``), an
eighth where the curvature is known. For the squared loss it is √p/6 of it, since weights are about 1/√p where noise and
data meet, more where data are few (decision 383), less for the intercept, and a declared Λ is the least.

What is not asked for follows from public facts and the number of records n, once that is public or counted; with z the
noise multiplier of the whole budget, n/z says how far the data stand above the noise.

``curvature``
    The share of the budget that Σ xxᵀ is released with, before the descent. Gradients are then turned by the inverse of
    a matrix that exceeds the Hessian, as far as the noise lets one tell, so that directions in which the data hardly
    vary do not wait for the others. It is worth its price where n/z is large beside the number of columns.
    In many columns a classifier gains from a rough one: no direction is known well, but plain steps, as short as the
    longest direction asks for, would not arrive along all others.
``clip``
    0.4·(n/30zp)^0.42 for p columns, 0.4 at least, and at most 2 or what the loss itself bounds: a clipped loss has a
    minimiser of its own, which costs more than the noise where data are many. Beside a rough curvature
    0.1·(n/4zp^1.5)^0.42, and 0.1 at least.
``steps``
    128; 64 where the curvature is known and n/zp is above 100; 32 where n/z is above 40·p^1.5.

Guarantee: the event, for any loss. With n fixed, what is released are Gaussians whose costs add up to one Gaussian's,
whatever the shares, the clips and their number; so the cost is the count's and that Gaussian's, for every n that was
counted. A record's gradient is clipped, exactly (``kernels``, ``fused``). With delta = 0 there are T Laplace releases,
on an L1 sensitivity of √p·C (C itself for a single weight), and no curvature.

Heavy-ball steps are stable on a quadratic below 2(1 + β)/L; ours are at most 3/L, and longer than 1/L only where β is
near its limit, that is where the signal is strong and T steps of 1/L would not arrive.

Reference: Bassily, Smith and Thakurta (2014); for the account, Dong, Roth and Su (2022), Corollary 3.3; boosting on
noisy second moments, Tang, Aydore, Kearns, Rho, Roth, Wang, Wang and Wu (2023).

Decisions 68, 107, 382, 383 and 389.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import events, mechanisms, random
from discreet.errors import number, whole
from discreet.linear import fused, kernels
from discreet.linear.curvature import second_moments, symmetric
from discreet.linear.problem import MOST, Solution
from discreet.linear.rows import Records
from discreet.linear.solvers._descent import CLIP, COUNT_SHARE, Descending, Pace
from discreet.mechanisms.parameters import store

__all__ = ["GradientDescent"]

# Chosen on census records, made-up ones and Adult's training file (docs/decisions/0382).
STEPS = 128
FEWER, ENOUGH = 64, 100.0  # fewer steps where the curvature is known and n/zp is above ENOUGH
FEWEST, PLENTY = 32, 40.0  # and where n/z is above PLENTY·p^1.5, so that the curvature is known well
SHARE = 0.1  # of the budget, for the curvature
WORTH = 4.0  # which is worth it where n/z is above WORTH·p^1.5: eigenvalues then stand above its noise
WIDEST = 4000  # columns of a Σ xxᵀ that is worth its time
ROUGHLY = frozenset({"logistic", "softmax"})
WIDE, ROUGH_WORTH = 256, 10.0  # above so many columns, where n/z is above ROUGH_WORTH·p:
ROUGH_SHARE, ROUGH_CLIP = 0.05, 0.1
CAUTION, LEVEL = 3.0, 0.3  # Λ where data are few over ``steady_ridge``; the intercept's Λ over the others' (383)
NOISY, WIDER, WIDEST_CLIP = 30.0, 0.42, 2.0  # the clip grows as (n/zp)^0.42 from n/zp = 30 on
Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class GradientDescent(Descending):
    """T noisy full gradients, each record's clipped to ``clip``, turned by a noisy Σ xxᵀ if that has a share."""

    steps: int | None = None
    curvature: float | None = None

    def __post_init__(self) -> None:
        Descending.__post_init__(self)
        if self.steps is not None:
            store(self, steps=whole("steps", self.steps, low=1, high=MOST))
        if self.curvature is not None:
            store(self, curvature=number("curvature", self.curvature, low=0, high=0.9))
            if self.curvature and (self.problem.delta == 0 or self._flat):
                raise ValueError(
                    "curvature is given, but takes Gaussian noise (a delta above 0), no L1 penalty and no radius."
                )
        _ = self.mechanism, self.moments if self.curvature else None  # what no noise pays for is refused now

    @property
    def _flat(self) -> bool:
        """Whether steps have to be along the gradient: proximal points are not known in other metrics."""
        return bool(self.problem.l1) or self.radius is not None

    def with_settings(self, size: float) -> GradientDescent:
        """The same with everything decided, for about so many records."""
        problem = self.problem
        p, level = problem.features, size / (problem.scale * problem.changes)  # n/z
        share, steps, clip = self.curvature, self.steps, self.clip
        knowable = problem.delta > 0 and not self._flat and p <= WIDEST
        is_rough = knowable and problem.loss.name in ROUGHLY and p > WIDE and level > ROUGH_WORTH * p
        if share is None:
            share = ROUGH_SHARE if is_rough else SHARE if knowable and level > WORTH * p**1.5 else 0.0
        if steps is None:
            steps = FEWER if share and level > ENOUGH * p else STEPS
            steps = FEWEST if share and level > PLENTY * p**1.5 else steps
        if clip is None and problem.delta > 0:
            least, enough = (ROUGH_CLIP, WORTH * p**1.5) if is_rough and share else (CLIP, NOISY * p)
            longest = min(WIDEST_CLIP, problem.loss.lipschitz * problem.norm)
            clip = min(least * max(level / enough, 1.0) ** WIDER, max(longest, least))
        return replace(self, steps=steps, curvature=share, clip=CLIP if clip is None else clip)

    # --- what it costs ---------------------------------------------------------------------------------------------

    @property
    def _left(self) -> float:
        """The share of the budget that a count leaves."""
        return 1.0 if self.counter is None else 1 - COUNT_SHARE

    @cached_property
    def mechanism(self) -> Any:
        """The noise on one gradient sum."""
        problem, steps = self.problem, self.steps or STEPS
        left = self._left * (1 - (self.curvature or 0.0))
        if problem.delta > 0:
            return problem.gaussian(self.bound, problem.rho(left / steps))
        spread = math.sqrt(math.prod(problem.shape)) * (1 + 2.0**-40)
        return problem.laplace(self.bound * spread, left * problem.epsilon / steps)

    @cached_property
    def moments(self) -> mechanisms.Gaussian:
        """The noise on the packed Σ xxᵀ, of which a record has norm at most R²."""
        problem, p = self.problem, self.problem.features
        share = self._left * (self.curvature or 0.0)
        return problem.gaussian(problem.square * (1 + 2.0**-20), problem.rho(share), p * (p + 1) // 2)

    @property
    def spread(self) -> float:
        """The standard deviation of an entry of the mean of all released gradients."""
        mechanism = self.mechanism
        each = mechanism.sigma if self.problem.delta > 0 else math.sqrt(2) * mechanism.scale
        return float(each) / math.sqrt(self.steps or STEPS)

    @cached_property
    def event(self) -> events.Event:
        """One Gaussian for everything that a count leaves the budget for, and the count; T gradients if delta is 0."""
        problem = self.problem
        if problem.delta == 0:
            return self._with_count(self.mechanism.event * (self.steps or STEPS))
        multiplier = (1 - 2.0**-40) / math.sqrt(2 * problem.rho(self._left))
        return self._with_count(events.Gaussian(noise_multiplier=multiplier, adjacency=problem.adjacency))

    # --- what it does ----------------------------------------------------------------------------------------------

    def solve(self, records: Records, rng: random.Rng) -> Solution:
        """Count, decide, measure the curvature if that is worth it, descend."""
        size = self._size(records, rng)
        plan = self.with_settings(size)
        assert plan.steps is not None
        pace = plan._preconditioned_pace(size, records, rng) if plan.curvature else plan._pace(size)
        mechanism, gradient = plan.mechanism, plan._gradients(records)
        weights = plan._descend(lambda w: mechanism.draw(gradient(w), rng), plan.steps, pace)
        return Solution(weights, plan._ridge(size), plan.bound, plan.steps)

    def _gradients(self, records: Records) -> Callable[[Array], Any]:
        """Σ of clipped gradients at given weights, exactly; in one pass where the loss has one score."""
        loss = self.problem.loss
        if loss.name not in kernels.KINDS:
            return lambda w: self._gradient(records, w)
        rows, targets = (
            records.rows.astype(np.float32),
            records.signs_or_targets(loss.name),
        )  # however many: each row by itself
        norms = fused.lengths(rows)
        kind, width = kernels.KINDS[loss.name], float(getattr(loss, "width", 0.0))
        return lambda w: fused.gradient_sum(kind, rows, norms, targets, w[:, 0], width, self.bound)

    def _ridge(self, size: float) -> float:
        """Λ, once the number of records is known."""
        problem, asked = self.problem, self.problem.regularization
        if problem.loss.name == "squared":
            own = self.spread * math.sqrt(problem.features) / 6
            return max(own, CAUTION * problem.steady_ridge(0.0, self.spread, size) if asked is None else asked)
        return self.regularization / 2 if self.curvature and asked is None else self.regularization

    def _penalties(self, ridge: float) -> Any:
        """Λ of each weight: all records agree on the intercept of least squares, which needs less of it."""
        problem = self.problem
        if problem.loss.name != "squared" or problem.regularization is not None or not problem.intercept:
            return ridge
        return np.concatenate([np.full((problem.features - 1, 1), ridge), [[LEVEL * ridge]]])

    def _pace(self, size: float) -> Pace:
        """Heavy-ball momentum for the condition number of the regularised sum, at most 0.95."""
        smooth, ridge = self._smoothness(size), self._ridge(size)
        return self._momentum(math.sqrt(smooth / ridge), 1 / smooth, ridge)

    def _momentum(self, root: float, step: float, ridge: float, turned: Any = None) -> Pace:
        """``root``: about how many steps it takes to arrive."""
        root = min(root, 2.0**100)  # infinity over infinity is no number
        steps, momentum = self.steps or STEPS, min(((root - 1) / (root + 1)) ** 2, 0.95)
        long, first = min(3.0, max(1.0, root / 40)) * step, min((steps - 1) / 2, 1.5 * root)
        return Pace(long, momentum, first, self._penalties(ridge), *([] if turned is None else [turned]))

    def _preconditioned_pace(self, size: float, records: Records, rng: random.Rng) -> Pace:
        """The pace for gradients turned by M⁻¹, where M exceeds the Hessian of the regularised sum.

        The noise on Σ xxᵀ has norm about 2s√p, so that its eigenvalues and that much more exceed the true ones; all of
        them are at most n·R².
        """
        problem, noise, p = self.problem, self.moments, self.problem.features
        found, vectors = np.linalg.eigh(symmetric(noise.draw(second_moments(records.rows), rng), p))
        hidden = 2 * noise.deviation / 1.375 * math.sqrt(p)
        ridge, bend = self._ridge(size), problem.loss.curvature
        most = bend * np.minimum(np.maximum(found, 0.0) + hidden, problem.square * size) + ridge
        least = bend * np.maximum(found - hidden / 2, 0.0) + ridge
        # the Hessian of a loss that is no square is less than its bound by some factor, taken to be 16 at most
        root = max(math.sqrt(float((most / least).max())), 1.0 if problem.loss.name == "squared" else 4.0)
        return self._momentum(root, 1.0, ridge, lambda g: vectors @ ((vectors.T @ g) / most[:, None]))
