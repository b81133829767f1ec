r"""The best matrix of all for the mean error at one participation, with a proof of how far it is from the best.

With G = AᵀA and X = CᵀC of unit diagonal, the squared error is tr(G X⁻¹)/n. For any v > 0 and D = diag(v),

.. math:: 2 \operatorname{tr}\big((D^{1/2} G D^{1/2})^{1/2}\big) - \textstyle\sum_i v_i

is at most n times it (the dual); X = D^{-1/2}(D^{1/2}GD^{1/2})^{1/2}D^{-1/2}, scaled to unit diagonal, attains it at
the fixed point v = diag((D^{1/2}GD^{1/2})^{1/2}), which is iterated.

Reference: Denisov et al. (2022), Section 3; the dual: Henzinger and Upadhyay (2025).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from discreet.mechanisms.factorization.banded_inverse import weighted_draws
from discreet.mechanisms.factorization.strategy import Strategy, squared_rows
from discreet.mechanisms.factorization.toeplitz import Floats
from discreet.mechanisms.factorization.workload import Workload

__all__ = ["Dense", "nuclear_bound"]

_MOST_STEPS = 2048


class Dense(Strategy):
    """The optimum to a relative gap of ``gap`` in the squared error; ``lower`` is what no matrix can go below.

    >>> best = Dense(Workload(64))
    >>> round(best.lower, 4), round(best.upper, 4)
    (2.0999, 2.0999)
    """

    def __init__(self, workload: Workload, gap: float = 1e-6) -> None:
        if workload.steps > _MOST_STEPS:
            raise ValueError(
                f"{workload.steps} steps, but the dense optimum is for at most {_MOST_STEPS}: use BLT or BandedInverse."
            )
        self.steps, self.bands, self.memory = workload.steps, workload.steps, workload.steps - 1
        x, dual, primal = _optimum(workload.matrix(), gap)
        self.lower, self.upper = math.sqrt(dual / self.steps), math.sqrt(primal / self.steps)
        self._c = _triangular(x)
        self._inverse = solve_triangular(self._c, np.eye(self.steps), lower=True)

    def matrix(self) -> Floats:
        """C, lower-triangular."""
        return self._c

    def errors(self, workload: Workload) -> Floats:
        """By the inverse at hand."""
        return squared_rows(workload.apply(self._inverse))

    def advance(self, step: int, draw: Callable[[], Any], memory: list[Any]) -> Any:
        """All earlier draws, weighted."""
        return weighted_draws(self._inverse[step, step::-1], draw(), memory, self.memory)


def _optimum(a: Floats, gap: float) -> tuple[Floats, float, float]:
    """X of unit diagonal, and the dual and primal values around n times the squared error."""
    gram = a.T @ a
    live = np.maximum(gram.diagonal(), gram.diagonal().max() * 1e-12)  # a step that nothing feels has any noise
    gram = gram + np.diag(live - gram.diagonal())
    v = np.sqrt(live)
    best: tuple[Floats, float, float] | None = None
    for _ in range(500):
        root = np.sqrt(v)
        values, vectors = np.linalg.eigh(root[:, None] * gram * root)
        roots = np.sqrt(np.maximum(values, 0.0))
        middle = (vectors * roots) @ vectors.T
        dual = 2 * float(roots.sum()) - float(v.sum())
        x = middle / np.outer(root, root)
        scale = 1 / np.sqrt(x.diagonal())
        x = scale[:, None] * x * scale
        primal = float(np.trace(np.linalg.solve(x, gram)))
        if best is None or primal < best[2]:
            best = x, max(dual, best[1] if best else 0.0), primal
        else:
            best = best[0], max(dual, best[1]), best[2]
        if best[2] <= best[1] * (1 + gap):
            break
        v = middle.diagonal().copy()
    assert best is not None
    return best


def _triangular(x: Floats) -> Floats:
    """Lower-triangular C with CᵀC = X: Cholesky from the end."""
    return np.asarray(cholesky(x[::-1, ::-1], lower=True).T[::-1, ::-1])


def nuclear_bound(steps: int) -> float:
    """A lower bound on the root mean squared error of prefix sums under any strategy.

    >>> round(nuclear_bound(512), 4)
    2.6901
    """
    j = np.arange(1, steps + 1)
    return float((1 / (2 * np.sin((2 * j - 1) * np.pi / (4 * steps + 2)))).sum() / steps)
