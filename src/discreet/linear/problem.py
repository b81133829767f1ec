"""What is to be minimised and under which budget: public facts, known before any record is read.

Decision 64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from discreet import mechanisms, random
from discreet.accounting.gaussian import gaussian_noise_multiplier
from discreet.adjacency import Adjacency, changed_records
from discreet.errors import nonnegative, number, positive, whole
from discreet.mechanisms.budget import Budget
from discreet.mechanisms.grid import DEFAULT_MAX_SIZE
from discreet.mechanisms.parameters import store

if TYPE_CHECKING:
    from discreet.linear.losses import Loss

__all__ = ["MOST", "Problem", "Solution", "clip_norm", "count", "counting", "noise_multiplier"]

MOST = 1 << 53  # records that may be declared, or steps: doubles hold them
LARGEST = 1 << 26  # weights: for more, rounding each entry of a gradient to its grid could exceed the clip
_MARGIN = 1 + 1e-9  # what calibrated noise exceeds the smallest by, so that no account's rounding tells them apart


def clip_norm(value: object) -> float:
    """A norm to clip gradients to, of a size at which the factors that shrink them are ordinary doubles."""
    return number("clip", value, low=2.0**-400, high=2.0**400)


@lru_cache(maxsize=256)
def noise_multiplier(epsilon: float, delta: float) -> float:
    """The Gaussian noise multiplier that (epsilon, delta) allows all steps together, and a hair more."""
    return gaussian_noise_multiplier(epsilon=epsilon, delta=delta) * _MARGIN


@lru_cache(maxsize=64)
def _gaussian(sensitivity: float, rho: float, adjacency: Adjacency, max_size: int) -> mechanisms.Gaussian:
    # a solver's plan and what is decided of it later ask for the same noise, a frozen value: calibrated once
    return mechanisms.Gaussian(sensitivity=sensitivity, rho=rho, adjacency=adjacency, max_size=max_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    r"""Minimise :math:`\sum_i \ell(W^\top x_i, y_i) + \tfrac{\Lambda}{2}\|W\|^2 + \alpha\|W\|_1` over rows of norm at
    most R.

    A sum and not a mean: with a public Λ nothing then depends on the number of records, which is private under
    add-remove.

    ``size`` is the number of records where that is public: the data's own under replace, a declared figure otherwise.
    It sets step sizes, never sensitivities.
    """

    loss: Loss
    epsilon: float
    delta: float  # 0, or none when it is made: pure
    square: float  # R²
    features: int  # with the intercept's column
    intercept: bool = False  # whether there is one; it is the last
    regularization: float | None = None  # Λ; None: the solver's own, from the noise
    l1: float = 0.0
    size: int | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        budget = Budget(self.epsilon, self.delta)
        store(
            self,
            epsilon=budget.epsilon,
            delta=budget.delta or 0.0,
            adjacency=self.adjacency,
            l1=nonnegative("l1", self.l1),
            features=whole("features", self.features, low=1),
        )
        if self.regularization is not None:
            store(self, regularization=positive("regularization", self.regularization))
        if math.prod(self.shape) > LARGEST:
            raise ValueError(
                f"The model has {math.prod(self.shape)} weights (features times scores), but at most {LARGEST}."
            )
        if self.size is not None:
            store(self, size=whole("dataset_size", self.size, low=1, high=MOST))
        if self.adjacency is Adjacency.ZERO_OUT:
            raise ValueError("adjacency is 'zero-out', but must be 'add-remove' or 'replace'.")

    @property
    def norm(self) -> float:
        """R."""
        return math.sqrt(self.square)

    @property
    def changes(self) -> int:
        """How many records a neighbour adds or removes: replacing one is both."""
        return changed_records(self.adjacency)

    @property
    def shape(self) -> tuple[int, int]:
        """Of the weights."""
        return self.features, self.loss.outputs

    @property
    def scale(self) -> float:
        """Noise over sensitivity that the whole budget buys, for one entry: exact for Gaussian,
        typical for pure noise.
        """
        if self.delta > 0:
            return noise_multiplier(self.epsilon, self.delta)
        return math.sqrt(self.features * self.loss.outputs) / self.epsilon

    def ridge(self, sensitivity: float) -> float:
        """Λ: as declared, or where the noise moves an entry of the minimiser by at most 4 in directions without data.

        Noise of scale s on the gradient moves the minimiser by s/Λ there. Weights of useful models on rows of unit norm
        are of that size, so that a smaller Λ buys noise and a larger one costs signal.
        """
        return self.regularization if self.regularization is not None else self.scale * sensitivity * self.changes / 4

    def steady_ridge(self, ridge: float, spread: float, size: float) -> float:
        """Λ for targets in [-1, 1] and about ``size`` records, with noise of standard deviation s on the sum of
        gradients.

        Noise moves a weight along a direction of curvature h by s/(h + Λ), and Λ moves it by Λw/(h + Λ). The two
        together are least at Λ = s²/hw². Weights of a squared loss on unit rows are about 1, h about size·‖x‖²/p, with
        ‖x‖² about 0.3, and s twice the ``spread`` of all released gradients, as only the later iterates are averaged.
        Where the noise is small beside the data, ``ridge`` is the larger and stays.
        """
        if self.regularization is not None or self.loss.name != "squared":
            return ridge
        return max(ridge, (2 * spread) ** 2 * self.features / (0.3 * size))

    def rho(self, share: float = 1.0) -> float:
        """The zCDP cost of a share of the budget, all of which buys one Gaussian release:
        costs of Gaussians add up exactly.
        """
        return share / (2 * noise_multiplier(self.epsilon, self.delta) ** 2)

    def gaussian(self, sensitivity: float, rho: float, entries: int = 1) -> mechanisms.Gaussian:
        """Gaussian noise on a sum in which one record counts for at most ``sensitivity``, at a zCDP cost.

        ``entries`` is how many are released together, if those are more than the model's weights.
        """
        return _gaussian(self.changes * sensitivity, rho, self.adjacency, self.entries(entries))

    def laplace(self, sensitivity: float, epsilon: float, entries: int = 1) -> mechanisms.Laplace:
        """As ``gaussian``, pure, on an L1 sensitivity."""
        return mechanisms.Laplace(
            sensitivity=self.changes * sensitivity,
            epsilon=epsilon,
            adjacency=self.adjacency,
            max_size=self.entries(entries),
        )

    def entries(self, least: int = 1) -> int:
        """A public bound on the entries of a release, as mechanisms ask for it."""
        return max(DEFAULT_MAX_SIZE, math.prod(self.shape), least)


@dataclass(frozen=True, slots=True)
class Solution:
    """Private weights (p × k), and how they were found: the Λ used, the norm to which gradients were clipped, if any,
    and the number of steps.
    """

    weights: NDArray[np.float64]
    regularization: float
    clip: float | None = None
    steps: int = 1


def count(problem: Problem, records: Any, mechanism: Any, rng: random.Rng) -> float:
    """The public size, or a noisy count of usable records, never below its own error."""
    if mechanism is None:
        return float(problem.size if problem.size is not None else max(len(records), 1))
    noisy = float(mechanism.draw(int(records.usable.sum()), rng))
    return max(noisy, float(mechanism.error(0.7)))


def counting(problem: Problem, share: float) -> Any:
    """The mechanism that counts the records for ``share`` of the budget, unless their number is public."""
    if problem.size is not None or problem.adjacency is Adjacency.REPLACE:
        return None
    if problem.delta > 0:
        return problem.gaussian(1.0, problem.rho(share))
    return problem.laplace(1.0, share * problem.epsilon)
