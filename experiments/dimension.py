"""Private gradient descent on a linear model of fixed rank: the excess risk does not grow with the ambient dimension.

Logistic data of rank 5 in 10² to 10⁴ dimensions, epsilon 0.2: full noisy gradients with the same clip, steps and ridge.
Gaussian noise has √dimension times the norm in more dimensions, but a model sees it only through scores, that is
through the span of the rows, where it has the same law in every dimension (Song, Steinke, Thakkar and Thakurta 2021).
The contrast is pure privacy: Laplace noise pays for the L1 norm of a gradient, whose bound grows as √dimension. The
figure is ``docs/images/dimension.png``. ``--quick``: two dimensions, two seeds, and the page stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression as Ordinary

from discreet.linear import LogisticRegression
from experiments import _results

N, RANK, EPSILON = 1000, 5, 0.2
DIMENSIONS = (100, 1_000, 10_000)
DELTAS = {1e-6: "Gaussian noise, δ = 1e-6", 0.0: "Laplace noise, δ = 0"}
SEEDS = {1e-6: 16, 0.0: 4}
Array = NDArray[np.float64]


def data(dimension: int, seed: int) -> tuple[Array, NDArray[np.int64], Array]:
    """Rows of norm one in a random subspace; the same coordinates in it whatever the dimension."""
    inside = np.random.default_rng(seed)
    z = inside.normal(size=(N, RANK))
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    y = (inside.random(N) < 1 / (1 + np.exp(-6 * z[:, 0]))).astype(int)
    basis, _ = np.linalg.qr(np.random.default_rng(seed + 1).normal(size=(dimension, RANK)))
    return z @ basis.T, y, z


def risk(scores: Array, y: NDArray[np.int64]) -> float:
    return float(np.logaddexp(0, -np.where(y == 1, 1, -1) * scores).mean())


def excess(dimension: int, seed: int, delta: float = 1e-6) -> float:
    """Mean log-loss above the least that a linear model can have on these records."""
    x, y, z = data(dimension, seed)
    private = LogisticRegression(
        epsilon=EPSILON,
        delta=delta,
        random_state=seed,
        fit_intercept=False,
        feature_norm=1.0,
        regularization=4.0,
        dataset_size=N,
        solver="gd",
        solver_options={"clip": 1.0, "steps": 32},
        classes=(0, 1),
    )
    least = Ordinary(C=1e6, fit_intercept=False, max_iter=1000).fit(z, y)
    return risk(private.fit(x, y).decision_function(x), y) - risk(least.decision_function(z), y)


def results(dimensions: Sequence[int], seeds: int | None = None) -> dict[float, Array]:
    """For each delta: dimensions × seeds."""
    return {
        delta: np.array([[excess(d, seed, delta) for seed in range(seeds or SEEDS[delta])] for d in dimensions])
        for delta in DELTAS
    }


def errors(runs: Array) -> Array:
    """Of the means over seeds."""
    return np.asarray(runs.std(axis=1, ddof=1) / np.sqrt(runs.shape[1]))


def plot(found: dict[float, Array], dimensions: tuple[int, ...] = DIMENSIONS) -> None:
    with _results.figure("dimension", 1, 5.0) as (axis,):
        for delta, runs in found.items():
            axis.errorbar(dimensions, runs.mean(axis=1), errors(runs), marker="o", capsize=3, label=DELTAS[delta])
        axis.set(
            xscale="log",
            yscale="log",
            xlabel="dimension",
            ylabel="excess log-loss",
            title=f"rank {RANK}, n = {N}, ε = {EPSILON}",
        )
        axis.legend(fontsize=7)


def main(quick: bool = False) -> None:
    dimensions = DIMENSIONS[:2] if quick else DIMENSIONS
    found = results(dimensions, 2 if quick else None)
    header = ["dimension", *DELTAS.values()]
    rows = [
        [f"{d:,}", *(f"{runs[at].mean():.4f} ± {errors(runs)[at]:.4f}" for runs in found.values())]
        for at, d in enumerate(dimensions)
    ]
    _results.show(f"Excess log-loss of private descent, rank {RANK}, n = {N}, ε = {EPSILON}", header, rows)
    _results.save("dimension", {DELTAS[delta]: runs.tolist() for delta, runs in found.items()})
    _results.write_table("dimension", header, rows)
    plot(found, dimensions)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
