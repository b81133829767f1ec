r"""What noise is made of: a matrix C, and a stream that turns fresh noise into the noise of each step.

The sums of a run, one per row, are released as x + C⁻¹z, which is C⁻¹(Cx + z): post-processing of fresh Gaussian noise
z on Cx. How far one record moves Cx is the *sensitivity*; how much of the noise a workload A feels is the *error*, the
squared norms of the rows of AC⁻¹. Noise is *streamed*: ``advance`` gives the noise of one step after another from fresh
draws and a short memory, for arrays of any library that can be added and multiplied by numbers.

Reference: Li et al. (2015) for the mechanism; Denisov et al. (2022) for adaptive streams.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import numpy as np

from discreet.errors import choice, whole
from discreet.mechanisms.factorization import toeplitz
from discreet.mechanisms.factorization.participation import Bound, Pattern, matrix_sensitivity, toeplitz_sensitivity
from discreet.mechanisms.factorization.toeplitz import Floats
from discreet.mechanisms.factorization.workload import Workload

__all__ = ["Measure", "Strategy", "ToeplitzStrategy", "minus", "noise_matrix", "squared_rows", "step_weights", "times"]

Measure = Literal["mean", "max"]


def step_weights(steps: int, measure: Measure) -> Floats:
    """How often a squared noise coefficient counts: in every later step for the mean, once for the last and largest.

    >>> step_weights(4, "mean").tolist(), step_weights(2, "max").tolist()
    ([1.0, 0.75, 0.5, 0.25], [1.0, 1.0])
    """
    return np.asarray(choice("measure", measure, {"mean": (steps - np.arange(steps)) / steps, "max": np.ones(steps)}))


_UP = 1 + 1e-9


class Strategy(ABC):
    """A matrix C for ``steps`` steps, and the stream that applies its inverse."""

    steps: int
    memory: int  # vectors of the size of a sum that are kept from step to step
    bands: int  # below the diagonal and on it; a column has nothing further down

    @abstractmethod
    def matrix(self) -> Floats:
        """C, dense: a column per step."""

    @abstractmethod
    def advance(self, step: int, draw: Callable[[], Any], memory: list[Any]) -> Any:
        """The noise of a step; ``draw`` gives fresh noise of unit variance, ``memory`` is kept from step to step and
        begins empty. Steps come in order, each once. What is returned may be remembered: it is for reading."""

    def sensitivity(self, pattern: Pattern) -> Bound:
        """How far one record moves C times the sums, in l2, rounded up."""
        return matrix_sensitivity(self.matrix(), pattern)

    @property
    def column_norm(self) -> float:
        """The sensitivity of one participation, rounded up."""
        return self.sensitivity(Pattern.single(self.steps)).value

    def variances(self) -> Floats:
        """The variance of the noise of each step, at unit variance of what is drawn."""
        return squared_rows(noise_matrix(self))

    def errors(self, workload: Workload) -> Floats:
        """The variance of the noise in each row of the workload, at unit variance of what is drawn."""
        return squared_rows(workload.apply(noise_matrix(self)))

    def error(self, workload: Workload, measure: Measure = "mean") -> float:
        """The root of the mean, or of the largest, of ``errors``."""
        errors = self.errors(workload)
        return math.sqrt(choice("measure", measure, {"mean": float(errors.mean()), "max": float(errors.max())}))

    def loss(self, workload: Workload, pattern: Pattern, measure: Measure = "mean") -> float:
        """The error at noise that is as large as the sensitivity: what strategies are compared by."""
        return self.error(workload, measure) * self.sensitivity(pattern).value


class ToeplitzStrategy(Strategy):
    """C = T(c); its inverse is T(a)."""

    def __init__(self, c: Floats, a: Floats) -> None:
        self.coefficients, self.inverse_coefficients, self.steps = c, a, whole("steps", len(c), low=1)

    @cached_property
    def bands(self) -> int:  # type: ignore[override]
        """Up to the last coefficient."""
        return len(np.trim_zeros(self.coefficients, "b"))

    def matrix(self) -> Floats:
        """C, dense."""
        return toeplitz.matrix(self.coefficients)

    def sensitivity(self, pattern: Pattern) -> Bound:
        """In O(n) where a theorem gives it."""
        return toeplitz_sensitivity(self.coefficients, pattern)

    def variances(self) -> Floats:
        """The squared coefficients so far."""
        return np.cumsum(self.inverse_coefficients**2)

    def errors(self, workload: Workload) -> Floats:
        """Of a Toeplitz workload the sums of squared coefficients, in O(n log n)."""
        if not workload.is_toeplitz:
            return squared_rows(workload.apply(toeplitz.matrix(self.inverse_coefficients)))
        felt = (
            np.cumsum(self.inverse_coefficients)
            if workload.is_prefix
            else toeplitz.product(workload.coefficients, self.inverse_coefficients)
        )
        return np.cumsum(felt * felt)


def squared_rows(values: Floats) -> Floats:
    """The squared norm of each row."""
    return np.asarray((values * values).sum(axis=1))


def minus(total: Any, other: Any, weight: float) -> Any:
    """``total - weight·other``; of a tensor in place, where no other array of its size is needed."""
    if hasattr(total, "sub_"):
        return total.sub_(other, alpha=weight)
    total -= weight * other
    return total


def times(value: Any, factor: float) -> Any:
    """``factor·value``, in place."""
    value *= factor
    return value


def noise_matrix(strategy: Strategy) -> Floats:
    """The matrix that the stream of a strategy applies to its fresh draws: row t is the noise of step t."""
    draws, memory, rows = 2 * strategy.steps, [], []  # type: ignore[var-annotated]
    count = 0

    def draw() -> Floats:
        nonlocal count
        unit = np.zeros(draws)
        unit[count] = 1.0
        count += 1
        return unit

    for step in range(strategy.steps):
        rows.append(np.array(strategy.advance(step, draw, memory)))
    return np.array(rows)[:, : max(count, 1)]
