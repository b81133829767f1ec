r"""Banded Toeplitz matrices: participations that are as far apart as there are bands meet orthogonal columns.

Then k participations cost √k times one, and Poisson sampling of the parts of the data in turn amplifies them. The
noise of a step is the fresh draw less what the last bands - 1 noises say: they are remembered. With ``normalised``
every column has norm 1: late columns, which the end of the run cuts short, are not smaller than they may be.

Reference: Choquette-Choo et al. (2023), "(Amplified) banded matrix factorization"; Toeplitz: McKenna (2024).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from discreet.errors import whole
from discreet.mechanisms.factorization import toeplitz
from discreet.mechanisms.factorization.participation import Bound, Pattern, matrix_sensitivity
from discreet.mechanisms.factorization.strategy import (
    Measure,
    Strategy,
    ToeplitzStrategy,
    minus,
    squared_rows,
    step_weights,
    times,
)
from discreet.mechanisms.factorization.toeplitz import Floats
from discreet.mechanisms.factorization.workload import Workload

__all__ = ["Banded", "NormalisedBanded"]


_BLOCK = 256


class Banded(ToeplitzStrategy):
    """C = T(c) for a few coefficients c.

    >>> from discreet.mechanisms.factorization.participation import Pattern
    >>> best = Banded.optimised(Workload(256), bands=8)
    >>> round(best.loss(Workload(256), Pattern.single(256)), 3)
    4.548
    """

    def __init__(self, c: ArrayLike, steps: int) -> None:
        few = np.asarray(c, np.float64)[:steps]
        whole_series = np.concatenate([few, np.zeros(steps - len(few))])
        super().__init__(whole_series, toeplitz.inverse(whole_series))
        self.few, self.memory = few, len(few) - 1

    @classmethod
    def optimised(cls, workload: Workload, bands: int, measure: Measure = "mean") -> Banded:
        """The least error times the norm of a column: best for one participation, and for k that are ``bands`` or more
        apart, by L-BFGS."""
        steps, w = workload.steps, workload.coefficients
        bands = min(steps, whole("bands", bands, low=1))
        starts = [toeplitz.power_series(-0.5, bands)[1:], 1 - np.arange(1, bands) / bands]
        found = [
            minimize(
                _loss,
                start,
                args=(w, measure),
                jac=True,
                method="L-BFGS-B",
                bounds=[(-1.0, 1.0)] * (bands - 1),
                options={"maxiter": 500, "ftol": 1e-12, "gtol": 1e-8},
            ).x
            for start in starts[: bands - 1]
        ]
        best = min([*found, *starts], key=lambda tail: _loss(tail, w, measure)[0])
        return cls(np.concatenate([[1.0], best]), steps)

    def advance(self, step: int, draw: Callable[[], Any], memory: list[Any]) -> Any:
        """x_t = y_t - Σ c_j·x_{t-j}."""
        noise = times(draw(), 1 / float(self.few[0]))
        for weight, before in zip(self.few[1:] / self.few[0], memory, strict=False):
            noise = minus(noise, before, float(weight))
        memory.insert(0, noise)
        del memory[self.memory :]
        return noise


class NormalisedBanded(Strategy):
    """A banded C with every column divided by its norm; the stream's steps are multiplied by them."""

    def __init__(self, inside: Banded) -> None:
        c = inside.coefficients
        self.inside, self.steps, self.bands, self.memory = inside, inside.steps, inside.bands, inside.memory
        self.norms = np.sqrt(np.cumsum(c * c))[::-1]

    def matrix(self) -> Floats:
        """C, dense."""
        return self.inside.matrix() / self.norms

    def sensitivity(self, pattern: Pattern) -> Bound:
        """√k where bands do not reach from one participation to the next."""
        pattern.check(self.steps)
        if self.bands <= pattern.separation:
            return Bound(float(np.sqrt(pattern.participations)) * (1 + 1e-9), True)
        return matrix_sensitivity(self.matrix(), pattern)

    def variances(self) -> Floats:
        """Those of the banded noise, times the squared norms."""
        return np.asarray(self.inside.variances() * self.norms**2)

    def errors(self, workload: Workload) -> Floats:
        """Of a Toeplitz workload as if no column were cut short, and the last rows anew; otherwise column by column."""
        if workload.is_toeplitz:
            return self._toeplitz_errors(workload)
        n, a, total = self.steps, self.inside.inverse_coefficients, np.zeros(self.steps)
        for start in range(0, n, _BLOCK):  # columns of C⁻¹, some at a time
            apart = np.subtract.outer(np.arange(n), np.arange(start, min(n, start + _BLOCK)))
            columns = np.where(apart >= 0, a[np.maximum(apart, 0)], 0.0) * self.norms[:, None]
            total += squared_rows(workload.apply(columns))
        return total

    def _toeplitz_errors(self, workload: Workload) -> Floats:
        n, a, w, most = self.steps, self.inside.inverse_coefficients, workload.coefficients, float(self.norms[0])
        first = n - self.bands + 1  # columns from here on end before their last band
        felt = np.cumsum(a) if workload.is_prefix else toeplitz.product(w, a)
        errors = most**2 * np.cumsum(felt * felt)
        for t in range(first, n):
            row = most * felt[t::-1]
            for i in range(first, t + 1):
                row[: i + 1] += w[t - i] * (self.norms[i] - most) * a[i::-1]
            errors[t] = row @ row
        return errors

    def advance(self, step: int, draw: Callable[[], Any], memory: list[Any]) -> Any:
        """The banded noise, times the norm of the step's column."""
        return self.inside.advance(step, draw, memory) * float(self.norms[step])


def _loss(tail: Floats, w: Floats, measure: Measure) -> tuple[float, Floats]:
    """The logarithm of the squared loss and its gradient: T(c)b = w, so that db = -T(c)⁻¹T(dc)b."""
    n, p = len(w), len(tail) + 1
    c = np.zeros(n)
    c[0], c[1:p] = 1.0, tail
    with np.errstate(over="ignore", invalid="ignore"):
        a = toeplitz.inverse(c)
        felt = toeplitz.product(a, w)
        weights = step_weights(n, measure)
        error, square = float((weights * felt * felt).sum()), float(c @ c)
        back = toeplitz.transpose_product(a, 2 * weights * felt)
        slope = 2 * c[1:p] / square - toeplitz.transpose_product(felt, back)[1:p] / error
    if not np.isfinite(error) or not np.isfinite(slope).all():
        return 1e300, np.zeros(p - 1)
    return float(np.log(error * square)), slope
