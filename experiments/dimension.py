"""Private gradient descent on a linear model of fixed rank: the excess risk does not grow with the ambient dimension.

Logistic data of rank 5 in 10², 10³ and 10⁴ dimensions, epsilon 1, delta 1e-6: full noisy gradients with the same clip, steps
and regularisation. The noise has √dimension times the norm, but a model sees it only through scores, that is through the
span of the rows, where it has the same law in every dimension. (Song, Steinke, Thakkar and Thakurta 2021.)
"""

from __future__ import annotations

import numpy as np
from rich.console import Console
from rich.table import Table

from discreet.linear import LogisticRegression

N, RANK, SEEDS = 2000, 5, 4
DIMENSIONS = (100, 1_000, 10_000)


def data(dimension: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of norm one in a random subspace; the same coordinates in it whatever the dimension."""
    inside = np.random.default_rng(seed)
    z = inside.normal(size=(N, RANK))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    y = (inside.random(N) < 1 / (1 + np.exp(-6 * z[:, 0]))).astype(int)
    basis, _ = np.linalg.qr(np.random.default_rng(seed + 1).normal(size=(dimension, RANK)))
    return z @ basis.T, y, z


def risk(scores: np.ndarray, y: np.ndarray) -> float:
    return float(np.logaddexp(0, -np.where(y == 1, 1, -1) * scores).mean())


def excess(dimension: int, seed: int) -> float:
    """Mean log-loss above that of the same run without noise."""
    x, y, z = data(dimension, seed)
    facts = {"fit_intercept": False, "feature_norm": 1.0, "regularization": 4.0, "dataset_size": N,
             "solver": "gd", "solver_options": {"clip": 1.0, "steps": 64}}
    private = LogisticRegression(epsilon=1.0, delta=1e-6, random_state=seed, **facts).fit(x, y)
    public = LogisticRegression(epsilon=1e6, delta=0.1, random_state=seed, **facts).fit(z, y)
    return risk(private.decision_function(x), y) - risk(public.decision_function(z), y)


def results() -> dict[int, list[float]]:
    return {dimension: [excess(dimension, seed) for seed in range(SEEDS)] for dimension in DIMENSIONS}


def main() -> None:
    table = Table(title=f"Excess log-loss of private descent, rank {RANK}, n = {N}, epsilon 1, {SEEDS} seeds")
    for header in ("dimension", "excess", "± over seeds"):
        table.add_column(header, justify="right")
    for dimension, found in results().items():
        table.add_row(f"{dimension:,}", f"{np.mean(found):.5f}", f"{np.std(found):.5f}")
    Console().print(table)


if __name__ == "__main__":
    main()
