r"""Differentially private coordinate descent (DP-CD): one coordinate at a time, each with its own step, clip and noise.

With M_j = c·Σ x_ij² + Λ the smoothness of coordinate j, an update of j is

.. math:: w_j \leftarrow \mathrm{prox}\Bigl(w_j - \tfrac{1}{M_j}\bigl(\tilde g_j + \Lambda w_j\bigr)\Bigr), \qquad
          \tilde g_j = \sum_i [r_i x_{ij}]_{-C_j}^{C_j} + \mathcal N(0, (z C_j)^2)

``passes`` rounds of p updates each (10, or 40 where the number of records stands above the noise, unless it is given;
so does the clip grow); what is returned is the mean of the iterates of the second half. The noise is z times the
coordinate's own clip whatever the clips are, so their choice is free:

``clipping="uniform"``
    C_j = C/√p.
``clipping="lipschitz"``
    C_j = C·√(M_j/ΣM): coordinates that matter more may be larger (the default).
``clipping="adaptive"``
    starts from the latter and follows the ``quantile`` of the derivatives, each update also releasing how many lie
    within the clip (Andrew et al. 2021).

Coordinates come in a random order, each once a round; or are drawn in proportion to M_j (``sampling="smoothness"``);
or the exponential mechanism picks a large \|g_j\|/√M_j, which is charged (``sampling="greedy"``), and the last iterate
is kept. The proximal step serves the L1 penalty (lasso, elastic net) and a box (``box``). M_j is public if declared
(``smoothness``: one bound on Σ x_ij² a column, in scaled units); otherwise the column sums of squares are released
first, with a tenth of the budget.

An update reads every record once: scores are shifted by what the update before it changed, and looked at, in one pass
over two columns of single precision, scores and targets: 32 bytes a record and coordinate.

Guarantee: the event; derivatives are cut and added exactly (``kernels``).

References: Mangold, Bellet, Salmon and Tommasi (2022); greedy: the same (2023). For convex objectives the ratio of
utilities to DP-SGD's runs from 1/√p to √p (a talk's 1/p to p is for the strongly convex case).

Decision 384.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from discreet import accounting, events, mechanisms, random
from discreet.adjacency import Adjacency
from discreet.errors import choice, number, whole
from discreet.linear import kernels
from discreet.linear.problem import MOST, Problem, Solution, clip_norm, noise_multiplier
from discreet.linear.rows import Records
from discreet.mechanisms.parameters import store

__all__ = ["CoordinateDescent"]

CLIP, PASSES = 0.5, (10, 40)  # more of both where n/zp is above 30
SMOOTHNESS_SHARE = 0.1  # of the budget, for column sums of squares
_STEEPEST = 2.0**28  # scores beyond it count as that: doubles below it are finer than the hair left for rounding
_COUNT_WEIGHT = 0.2  # of "how many lie within the clip" beside the derivative, in adaptive clipping
Array = NDArray[np.float64]


@lru_cache(maxsize=64)
def _greedy_scale(steps: int, epsilon: float, delta: float, adjacency: str, extra: events.Event | None) -> float:
    """t such that steps of Exponential(4/t) and Gaussian(t) meet the budget: as zCDP, 2/t² and 1/2t²."""

    def family(t: float) -> events.Event:
        run = (
            events.Exponential(epsilon=4 / t, adjacency=Adjacency(adjacency))
            + events.Gaussian(noise_multiplier=t, adjacency=Adjacency(adjacency))
        ) * steps
        return run if extra is None else run + extra

    return accounting.calibrate(family, epsilon=epsilon, delta=delta, adjacency=adjacency, start=100.0) * (1 + 1e-7)


@dataclass(frozen=True, kw_only=True)
class CoordinateDescent:
    """Noisy updates of single coordinates."""

    problem: Problem
    passes: int | None = None
    clip: float | None = None
    clipping: Literal["uniform", "lipschitz", "adaptive"] = "lipschitz"
    sampling: Literal["uniform", "smoothness", "greedy"] = "uniform"
    updates: int | None = None  # in all; by default passes times columns
    smoothness: tuple[float, ...] | None = None
    box: tuple[float, float] | None = None
    quantile: float = 0.8
    step: float = 1.0

    def __post_init__(self) -> None:
        store(
            self,
            passes=None if self.passes is None else whole("passes", self.passes, low=1, high=MOST),
            clip=None if self.clip is None else clip_norm(self.clip),
            step=number("step", self.step, low=2.0**-100, high=2.0**100),
            quantile=number("quantile", self.quantile, low=0, high=1, open_low=True, open_high=True),
        )
        for name, allowed in (
            ("clipping", ("uniform", "lipschitz", "adaptive")),
            ("sampling", ("uniform", "smoothness", "greedy")),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} is {getattr(self, name)!r}, but must be one of {', '.join(map(repr, allowed))}."
                )
        if self.updates is not None:
            store(self, updates=whole("updates", self.updates, low=1, high=MOST))
        if self.box is not None:
            low, high = (number("box", side, low=-math.inf, high=math.inf) for side in self.box)
            if not low < high:
                raise ValueError(f"box is {self.box!r}, but must be a pair (lower, upper), lower first.")
        if self.smoothness is not None:
            values = tuple(number("smoothness", value, low=2.0**-100, high=2.0**100) for value in self.smoothness)
            if len(values) != self.problem.features:
                raise ValueError(
                    f"smoothness has {len(values)} entries, but needs {self.problem.features}: one per column, "
                    "the intercept's included."
                )
            store(self, smoothness=values)

    @property
    def steps(self) -> int:
        """Updates in all."""
        return self.updates if self.updates is not None else (self.passes or PASSES[0]) * self.problem.features

    @property
    def bound(self) -> float:
        """C."""
        return CLIP if self.clip is None else self.clip

    @property
    def regularization(self) -> float:
        """Λ."""
        return self.problem.ridge(self.bound)

    def with_settings(self, size: float) -> CoordinateDescent:
        """The same with clip and passes decided, for about so many records; greedy choices are priced one by one, so
        that their number is none to be decided here.
        """
        problem, passes, clip = self.problem, self.passes, self.clip
        level = size / (problem.scale * problem.changes * problem.features)  # n/zp
        if clip is None:
            longest = min(2.0, problem.loss.lipschitz * problem.norm)
            clip = min(CLIP * max(level / 30, 1.0) ** 0.42, max(longest, CLIP))
        if passes is None and not self._greedy:
            passes = PASSES[level > 30]
        return replace(self, passes=passes, clip=clip)

    @cached_property
    def _measure(self) -> mechanisms.Gaussian | None:
        """The release of column sums of squares: a record's squares have norm at most R²."""
        if self.smoothness is not None:
            return None
        return self.problem.gaussian(self.problem.square * (1 + 2.0**-20), self.problem.rho(SMOOTHNESS_SHARE))

    @property
    def _greedy(self) -> bool:
        return choice("sampling", self.sampling, {"uniform": False, "smoothness": False, "greedy": True})

    @cached_property
    def noise_multiplier(self) -> float:
        """z: the noise of an update over its sensitivity."""
        problem, measure = self.problem, self._measure
        if self._greedy:
            return _greedy_scale(
                self.steps,
                problem.epsilon,
                problem.delta,
                str(problem.adjacency),
                None if measure is None else measure.event,
            )
        left = 1.0 if measure is None else 1 - SMOOTHNESS_SHARE
        return noise_multiplier(problem.epsilon, problem.delta) * math.sqrt(self.steps / left)

    def _mechanism(self, sensitivity: float) -> mechanisms.Gaussian:
        return self.problem.gaussian(sensitivity, 0.5 / self.noise_multiplier**2)

    @cached_property
    def _chooser(self) -> mechanisms.Exponential:
        """Of the steepest coordinate, on scores that one record moves by at most one (and a hair, for rounding)."""
        problem = self.problem
        return mechanisms.Exponential(
            sensitivity=problem.changes * (1 + 2.0**-20), epsilon=4 / self.noise_multiplier, adjacency=problem.adjacency
        )

    @property
    def _reach(self) -> float:
        """The sensitivity of one update in units of its clip."""
        adaptive = math.hypot(1.0, _COUNT_WEIGHT / 2) * (1 + 2.0**-20)
        return choice("clipping", self.clipping, {"uniform": 1.0, "lipschitz": 1.0, "adaptive": adaptive})

    @cached_property
    def event(self) -> events.Event:
        """Updates, greedy choices if any, and the columns' squares if they are not public."""
        # Whatever its clip, an update's noise is at least this multiple of its sensitivity; T updates of multiplier z√T
        # cost what one of z costs, so that their number need not be known here.
        multiplier, greedy = self.noise_multiplier, self._greedy
        multiplier = multiplier if greedy else multiplier / math.sqrt(self.steps) * (1 - 2.0**-40)
        run: events.Event = events.Gaussian(noise_multiplier=multiplier, adjacency=self.problem.adjacency)
        run = (run + self._chooser.event) * self.steps if greedy else run
        return run if self._measure is None else run + self._measure.event

    def solve(self, records: Records, rng: random.Rng) -> Solution:
        """Descend."""
        public = np.random.default_rng([int(word) for word in rng.words(4)])  # which coordinates: no secret
        return _CoordinateDescentRun(self, records, rng, public).solve()


class _CoordinateDescentRun:
    """One descent: the columns, the scores that every update shifts, and what was released so far."""

    def __init__(self, plan: CoordinateDescent, records: Records, rng: random.Rng, public: np.random.Generator) -> None:
        self.rng, self.public = rng, public
        self.columns = np.asfortranarray(records.rows, np.float32)  # each entry rounded by itself
        loss = plan.problem.loss
        self.kind = kernels.KINDS.get(loss.name, kernels.CUSTOM)
        self.raw, self.targets = records.targets, records.signs_or_targets(loss.name)
        self.width = float(getattr(loss, "width", 0.0))
        self.scores = np.zeros(len(records))
        self.moved, self.change = 0, 0.0  # the update that scores have yet to follow
        self.order: list[int] = []
        squares = self._squares(plan, records.rows)
        self.plan = plan = plan.with_settings(float(squares.max()))
        spread = plan.noise_multiplier * plan.bound * plan.problem.changes / math.sqrt(plan.steps)
        self.ridge = plan.problem.steady_ridge(plan.regularization, spread, float(squares.max()))
        self.smooth = loss.curvature * squares + self.ridge
        shares = {"uniform": np.ones_like(self.smooth), "lipschitz": self.smooth, "adaptive": self.smooth}
        weights = choice("clipping", plan.clipping, shares)
        self.clips = plan.bound * np.sqrt(weights / weights.sum())
        self.size = float(max(self.smooth.max() / loss.curvature, 1.0))
        adaptive = plan.clipping == "adaptive"
        self.mechanisms = [plan._mechanism(plan._reach if adaptive else float(clip)) for clip in self.clips]
        self.chooser = plan._chooser if plan._greedy else None

    def _squares(self, plan: CoordinateDescent, rows: Array) -> Array:
        if plan.smoothness is not None:
            return np.array(plan.smoothness)
        measure = plan._measure
        assert measure is not None
        step = kernels.grid_step(plan.problem.square)
        whole_squares = (rows**2 / step).astype(np.int64).sum(axis=0)
        noisy = measure.draw(kernels.exact(whole_squares, step), self.rng)
        return np.asarray(np.maximum(noisy, measure.error(0.7)))

    def _derivative(self, j: int, clip: float) -> Any:
        change, self.change = self.change, 0.0
        moved = self.columns[:, self.moved]
        if self.kind != kernels.CUSTOM:
            return kernels.column_sum(
                self.kind, self.columns[:, j], self.scores, self.targets, self.width, clip, moved, change
            )
        kernels.shift_scores(self.scores, moved, change)
        return kernels.column_sum(kernels.CUSTOM, self.columns[:, j], self._current(), self.targets, self.width, clip)

    def _current(self) -> Array:
        """Scores; or, for a loss the kernels do not know, its residuals."""
        if self.kind != kernels.CUSTOM:
            return self.scores
        residuals = self.plan.problem.loss.residual(self.scores[:, None], self.raw)[:, 0]
        return np.clip(np.nan_to_num(residuals, nan=0.0, posinf=0.0, neginf=0.0), -1e150, 1e150)

    def solve(self) -> Solution:
        plan = self.plan
        w, total = np.zeros(len(self.smooth)), np.zeros(len(self.smooth))
        first = plan.steps - 1 if plan._greedy else plan.steps // 2  # greedy steps are few and each large
        for t in range(plan.steps):
            self._update(w, self._pick(w))
            if t >= first:
                total += w
        # no clip: what clipping coordinates does to probabilities is not known
        return Solution(total[:, None] / (plan.steps - first), self.ridge, steps=plan.steps)

    def _pick(self, w: Array) -> int:
        plan, p = self.plan, len(w)
        if plan.sampling == "uniform":
            self.order = self.order or self.public.permutation(p).tolist()
            return self.order.pop()
        if plan.sampling == "smoothness":
            return int(self.public.choice(p, p=self.smooth / self.smooth.sum()))
        if plan.sampling != "greedy":
            raise ValueError(f"There is no rule for sampling={plan.sampling!r}.")
        slopes = np.array([float(self._derivative(j, self.clips[j])[0]) for j in range(p)])
        # |g_j + Λw_j|/√M_j, in units in which one record moves each by at most one
        unit = float((self.clips / np.sqrt(self.smooth)).max())
        scored = np.minimum(np.abs(slopes + self.ridge * w) / np.sqrt(self.smooth) / unit, _STEEPEST)
        assert self.chooser is not None
        return int(self.chooser.draw(scored, self.rng))

    def _update(self, w: Array, j: int) -> None:
        plan, clip = self.plan, float(self.clips[j])
        slope = self._release_derivative(j, clip)
        length = plan.step / self.smooth[j]
        new = w[j] - length * (slope + self.ridge * w[j])
        new = math.copysign(max(abs(new) - plan.problem.l1 * length, 0.0), new)
        new = new if plan.box is None else min(max(new, plan.box[0]), plan.box[1])
        new = min(max(new, -(2.0**15)), 2.0**15)
        self.moved, self.change, w[j] = j, new - w[j], new

    def _release_derivative(self, j: int, clip: float) -> float:
        """The noisy derivative; with adaptive clipping, also a noisy count, after which the clip moves."""
        plan = self.plan
        derivative = self._derivative(j, clip)
        if plan.clipping != "adaptive":
            return float(self.mechanisms[j].draw(derivative, self.rng)[0])
        inside = kernels.inside_count(self.kind, self.columns[:, j], self._current(), self.targets, self.width, clip)
        centred = _COUNT_WEIGHT * (inside - len(self.scores) / 2)
        pair = np.array([float(derivative[0]) / clip, centred])
        noisy = self.mechanisms[j].draw(pair, self.rng)
        share = noisy[1] / _COUNT_WEIGHT / self.size + 0.5
        self.clips[j] = clip * math.exp(-0.3 * (min(max(share, 0.0), 1.0) - plan.quantile))
        return float(noisy[0] * clip)
