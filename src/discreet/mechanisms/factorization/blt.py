r"""Buffered linear Toeplitz (BLT) matrices: coefficients that are sums of a few geometric series.

.. math:: c_0 = 1, \qquad c_t = \sum_i s_i d_i^{t-1}.

One buffer is remembered for each of them, whatever the number of steps. The inverse is such a matrix too: its decays
are the eigenvalues of diag(d) - s·1ᵀ.

Reference: Dvijotham et al. (2024), "Efficient and near-optimal noise generation for streaming differential privacy";
participations: McMahan et al. (2024), "A hassle-free algorithm for private learning"; inverse: arXiv:2504.21413.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from discreet.errors import whole
from discreet.mechanisms.factorization import toeplitz
from discreet.mechanisms.factorization.banded_inverse import shifted_sum_transpose
from discreet.mechanisms.factorization.participation import Pattern, shifted_sum
from discreet.mechanisms.factorization.strategy import Measure, ToeplitzStrategy, minus, step_weights, times
from discreet.mechanisms.factorization.toeplitz import Floats
from discreet.mechanisms.factorization.workload import Workload

__all__ = ["BLT"]


class BLT(ToeplitzStrategy):
    """Scales s > 0 and decays d in (0, 1), one of each a buffer.

    >>> from discreet.mechanisms.factorization.participation import Pattern
    >>> best = BLT.optimised(Workload(1024), Pattern.single(1024), buffers=3)
    >>> best.memory, best.loss(Workload(1024), Pattern.single(1024)) < 3.2
    (3, True)
    """

    def __init__(self, scales: ArrayLike, decays: ArrayLike, steps: int) -> None:
        self.scales, self.decays = toeplitz.single(scales), toeplitz.single(decays)
        c, a = _series(self.scales, np.log(self.decays), steps), _inverse(self.scales, self.decays, steps)
        super().__init__(c, a)
        self.memory = len(self.scales)

    @classmethod
    def optimised(cls, workload: Workload, pattern: Pattern, buffers: int = 3, measure: Measure = "mean") -> BLT:
        """The best scales and decays, by L-BFGS from some beginnings."""
        steps, best = workload.steps, None
        weights = step_weights(steps, measure)
        count = min(whole("buffers", buffers, low=1), 8)
        for fastest in (0.02, 0.1, 0.5):  # what the fastest buffer forgets in a step
            lacks = np.geomspace(min(3 / steps, 0.5), fastest, count)
            spread = np.log(fastest * steps) / count  # t^-1/2 as an integral of e^-tu over log u, at the lacks
            theta = np.concatenate([np.log(np.sqrt(lacks) * max(spread, 0.1) / np.pi), np.log(lacks)])
            found = minimize(
                _loss,
                theta,
                args=(workload.coefficients, pattern, weights),
                jac=True,
                method="L-BFGS-B",
                bounds=[(-60.0, 1.0)] * count + [(-25.0, np.log(0.999))] * count,
                options={"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 20},
            )
            if best is None or found.fun < best.fun:
                best = found
        assert best is not None
        order = np.argsort(best.x[count:])
        return cls(np.exp(best.x[:count])[order], -np.expm1(best.x[count:])[order], steps)

    def advance(self, step: int, draw: Callable[[], Any], memory: list[Any]) -> Any:
        """x_t = y_t - s·buffers; each buffer decays and takes x_t in."""
        noise = draw()
        for scale, buffer in zip(self.scales, memory, strict=False):
            noise = minus(noise, buffer, float(scale))
        if not memory:
            memory.extend(noise * 1.0 for _ in self.scales)
            return noise
        for i, decay in enumerate(self.decays):
            memory[i] = minus(times(memory[i], float(decay)), noise, -1.0)
        return noise


def _series(scales: Floats, logs: Floats, steps: int) -> Floats:
    """c, from the logarithms of the decays."""
    t = np.arange(steps - 1)
    return np.concatenate([[1.0], scales @ np.exp(logs[:, None] * t)]) if steps > 1 else np.ones(1)


def _inverse(scales: Floats, decays: Floats, steps: int) -> Floats:
    """a_0 = 1, a_t = -1ᵀ(diag(d) - s·1ᵀ)^{t-1} s, by the eigenvalues of that matrix."""
    root = np.sqrt(scales)  # similar to the symmetric diag(d) - √s·√sᵀ, whose eigenvalues are real
    values, vectors = np.linalg.eigh(np.diag(decays) - np.outer(root, root))
    weights = (vectors.T @ root) ** 2
    t = np.arange(max(steps - 1, 0))
    with np.errstate(under="ignore"):
        powers = values[:, None] ** t
    return np.concatenate([[1.0], -weights @ powers])[:steps]


def _loss(theta: Floats, w: Floats, pattern: Pattern, weights: Floats) -> tuple[float, Floats]:
    """The logarithm of the squared loss and its gradient in log s and log(1 - d)."""
    count, steps, t = len(theta) // 2, len(w), np.arange(len(w) - 1)
    scales, lacks = np.exp(theta[:count]), np.exp(theta[count:])
    logs = np.log1p(-lacks)
    with np.errstate(all="ignore"):  # a matrix whose inverse grows is out of the question, whatever it overflows
        c, a = _series(scales, logs, steps), _inverse(scales, 1 - lacks, steps)
        felt = toeplitz.product(a, w) if np.ptp(w) else w[0] * np.cumsum(a)
        error = float((weights * felt * felt).sum())
        moved = shifted_sum(c, pattern)
        square = float(moved @ moved)
        if not np.isfinite(error * square):
            return 1e300, np.zeros(2 * count)
        back = toeplitz.transpose_product(a, 2 * weights * felt)
        slope = 2 * shifted_sum_transpose(moved, pattern) / square - toeplitz.transpose_product(felt, back) / error
        powers = np.exp(logs[:, None] * t)
    by_scale = scales * (powers @ slope[1:])
    by_lack = -scales * lacks * ((t * powers) @ slope[1:]) / (1 - lacks)
    return float(np.log(error * square)), np.concatenate([by_scale, by_lack])
