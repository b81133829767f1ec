r"""What ``gd``, ``sgd`` and ``svrg`` share: heavy-ball steps on released gradients, a proximal step, an averaged end.

.. math:: v \leftarrow \beta v - \eta\,(\tilde g(w) + \Lambda w), \qquad w \leftarrow \mathrm{prox}(w + v)

All of it is post-processing: the data are seen only through the gradients that a solver releases. Momentum restarts
from the step that was really made, so that a projection does not fight it. Under add-remove the number of records,
which sets the pace, is declared or counted with 1 % of the budget.

Decision 67.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import accounting, events, random
from discreet.adjacency import Adjacency
from discreet.errors import positive
from discreet.linear import kernels
from discreet.linear.problem import Problem, clip_norm, count, counting
from discreet.linear.rows import Records
from discreet.mechanisms.parameters import store
from discreet.random.tap import poisson_sample

__all__ = ["COUNT_SHARE", "Descending", "Pace", "sample_records", "sampled_noise"]

COUNT_SHARE = 0.01
CLIP = 0.4  # of gradients of norm up to √2: the noise shrinks more than the signal
LARGEST = 2.0**15  # weights are kept within this norm, so that no score overflows
_MARGIN = 1 + 1e-7  # over the calibrated multiplier, for the grid's rounding
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pace:
    """Step size, momentum, the step from which iterates are averaged, the ridge, and what turns a gradient."""

    step: float
    momentum: float
    first: float
    ridge: float | Array  # Λ, or one a weight
    turned: Callable[[Array], Array] = lambda gradient: gradient  # by what is known of the curvature


@dataclass(frozen=True, kw_only=True)
class Descending(ABC):
    """Clipped gradients and a descent along them; a subclass says which are released, and when."""

    problem: Problem
    clip: float | None = None  # None: the solver's own
    radius: float | None = None  # weights are projected to this ball

    def __post_init__(self) -> None:
        if self.clip is not None:
            store(self, clip=clip_norm(self.clip))
        if self.radius is not None:
            store(self, radius=positive("radius", self.radius))

    @property
    def bound(self) -> float:
        """The norm to which gradients are clipped."""
        return CLIP if self.clip is None else self.clip

    @property
    def regularization(self) -> float:
        """Λ."""
        return self.problem.ridge(self.bound)

    @cached_property
    def counter(self) -> Any:
        """What counts the records; nothing where their number is public."""
        return counting(self.problem, COUNT_SHARE)

    def _under_its_adjacency(self, event: events.Event) -> events.Event:
        """A cost under add-remove, said of a step that takes the number of records as public where they are
        replaced.
        """
        replaced = self.problem.changes == 2
        return events.ProvedUnder(adjacency=Adjacency.REPLACE, event=event) if replaced else event

    def _with_count(self, run: events.Event) -> events.Event:
        """A run's cost, and the count's."""
        return run if self.counter is None else run + self.counter.event

    def _size(self, records: Records, rng: random.Rng) -> float:
        return count(self.problem, records, self.counter, rng)

    @property
    @abstractmethod
    def spread(self) -> float:
        """The standard deviation of an entry of the mean of all released gradients."""

    def _ridge(self, size: float) -> float:
        """Λ, once the number of records is known."""
        return self.problem.steady_ridge(self.regularization, self.spread, size)

    def _smoothness(self, size: float) -> float:
        """L, of the regularised sum of so many losses."""
        return self.problem.loss.curvature * self.problem.square * size + self._ridge(size)

    def _residuals(self, records: Records, w: Array) -> Array:
        return self.problem.loss.residual(kernels.scores(records.rows, w), records.targets)

    def _gradient(self, records: Records, w: Array) -> Any:
        """Σ of clipped gradients, exactly."""
        return kernels.clipped_sum(records.rows, self._residuals(records, w), self.bound)

    def _descend(
        self, gradient: Callable[[Array], Array], steps: int, pace: Pace, within: Callable[[Array], Array] = lambda w: w
    ) -> Array:
        """The mean of the iterates from ``pace.first`` on; ``within`` says how far one may be from what is known."""
        ridge, w = pace.ridge, np.zeros(self.problem.shape)
        velocity, total, kept = np.zeros_like(w), np.zeros_like(w), 0
        for t in range(steps):
            velocity = pace.momentum * velocity - pace.step * pace.turned(gradient(w) + ridge * w)
            moved = within(self._near(w + velocity, pace.step))
            velocity, w = moved - w, moved
            if t >= pace.first:
                total, kept = total + w, kept + 1
        return total / kept

    def _near(self, w: Array, step: float) -> Array:
        """The proximal point: argmin α·‖u‖₁ + ‖u - w‖²/2·step, then the nearest in the ball."""
        if self.problem.l1:
            w = np.sign(w) * np.maximum(np.abs(w) - self.problem.l1 * step, 0.0)
        norm, largest = float(np.sqrt((w * w).sum())), min(LARGEST, self.radius or LARGEST)
        return w if norm <= largest else w * (largest / norm)


def sample_records(records: Records, rate: float, rng: random.Rng) -> Records:
    """A Poisson sample: each record by its own coin, a 64-bit word below ⌊rate·2^64⌋."""
    return records.take(poisson_sample(records.keys, rate, rng)) if rate < 1 else records


@lru_cache(maxsize=64)
def sampled_noise(
    rate: float, steps: int, full: int, epsilon: float, delta: float, adjacency: str, extra: events.Event | None
) -> float:
    """The noise multiplier at which ``steps`` Poisson-sampled and ``full`` full Gaussians, and ``extra``,
    meet the budget.
    """

    def family(z: float) -> events.Event:
        noise = events.Gaussian(noise_multiplier=z)
        run = events.PoissonSampled(rate=rate, event=noise) * steps
        run = run if not full else run + noise * full
        return run if extra is None else run + extra

    return accounting.calibrate(family, epsilon=epsilon, delta=delta, adjacency=adjacency) * _MARGIN
