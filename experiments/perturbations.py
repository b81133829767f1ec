"""Noise in the output, in the objective, in the gradients: the steep directions of real data.

Logistic regression on Adult, Λ chosen by each method itself, delta 1e-6. All three aim at a minimiser of the same sum.
*Output*: noise on the minimiser, equal in all directions. *Objective*: a random linear term, which moves the minimiser
by H⁻¹ times the noise, little where the loss is steep. *Gradients*: descent with noisy gradients, unclipped (each is
bounded by 1 anyhow), which steep directions pull back as well.

The first table has the mean log-loss above the least that any weights have on the training file, and test accuracy. For
the second all three get the same Λ at ε = 1, and how far each ends from the minimiser is taken apart along the axes of
the Hessian there: the loss that noise causes is about half the sum of curvature × distance², axis by axis. ``--quick``
is one seed and two ε, and leaves the page as it is. The figure is ``docs/images/perturbations.png``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression as Ordinary

from discreet.datasets import adult_features
from discreet.linear import LogisticRegression
from experiments import _results

EPSILONS, DELTA, SEEDS = (0.1, 0.3, 1.0, 3.0), 1e-6, 5
RIDGE, STEEP = 10.0, 5  # Λ of the second table; how many axes are called steep
SOLVERS: dict[str, dict[str, Any]] = {"output": {}, "objective": {}, "gd": {"clip": 1.0, "curvature": 0.0}}
Array = NDArray[np.float64]


def fitted(solver: str, epsilon: float, seed: int, ridge: float | None = None) -> LogisticRegression:
    x, y, *_ = adult_features()
    model = LogisticRegression(
        epsilon=epsilon,
        delta=DELTA,
        feature_norm=1.0,
        fit_intercept=False,
        dataset_size=len(y),
        regularization=ridge,
        solver=solver,
        solver_options=SOLVERS[solver],
        random_state=seed,
        classes=(0, 1),
    )
    return model.fit(x, y)


def minimiser(ridge: float) -> Array:
    """Without privacy: scikit-learn's C is 1/Λ."""
    x, y, *_ = adult_features()
    plain = Ordinary(C=1 / ridge, fit_intercept=False, solver="newton-cholesky", tol=1e-8, max_iter=200)
    return np.asarray(plain.fit(x, y).coef_[0])


def log_loss(weights: Array) -> float:
    x, y, *_ = adult_features()
    return float(np.logaddexp(0, np.where(y == 1, -1, 1) * (x @ weights)).mean())


def by_epsilon(epsilons: tuple[float, ...], seeds: int) -> list[dict[str, Any]]:
    """Excess loss and test accuracy, means over seeds."""
    *_, test, labels = adult_features()
    least, found = log_loss(minimiser(1e-3)), []
    for solver in SOLVERS:
        for epsilon in epsilons:
            models = [fitted(solver, epsilon, seed) for seed in range(seeds)]
            excess = [log_loss(model.coef_.ravel()) - least for model in models]
            scores = [model.score(test, labels) for model in models]
            found.append(
                {
                    "solver": solver,
                    "epsilon": epsilon,
                    "excess": float(np.mean(excess)),
                    "right": float(np.mean(scores)),
                }
            )
    return found


def by_axis(seeds: int) -> dict[str, Any]:
    """Curvatures of the sum at its minimiser, steepest first, and mean squared distances along their axes."""
    x, *_ = adult_features()
    best = minimiser(RIDGE)
    p = expit(x @ best)
    curvature, axes = np.linalg.eigh(x.T @ (x * (p * (1 - p))[:, None]) + RIDGE * np.eye(x.shape[1]))
    away = {
        solver: np.mean(
            [(axes.T @ (fitted(solver, 1.0, seed, RIDGE).coef_.ravel() - best)) ** 2 for seed in range(seeds)], axis=0
        )[::-1].tolist()
        for solver in SOLVERS
    }
    return {"curvature": curvature[::-1].tolist(), "squares": away}


def shares(axes: dict[str, Any]) -> list[list[str]]:
    """For each solver: distance² and loss, along the steep axes and along the others."""
    curvature, n = np.asarray(axes["curvature"]), len(adult_features()[1])
    rows = []
    for solver, squares in axes["squares"].items():
        away, loss = np.asarray(squares), curvature * np.asarray(squares) / (2 * n)
        parts = (away[:STEEP].sum(), away[STEEP:].sum(), loss[:STEEP].sum(), loss[STEEP:].sum())
        rows.append([solver, *(f"{part:.2g}" for part in parts[:2]), *(f"{part:.5f}" for part in parts[2:])])
    return rows


def plot(found: list[dict[str, Any]], axes: dict[str, Any]) -> None:
    with _results.figure("perturbations", 2, 9.0) as (left, right):
        for solver in SOLVERS:
            cells = [cell for cell in found if cell["solver"] == solver]
            left.loglog([c["epsilon"] for c in cells], [c["excess"] for c in cells], "o-", label=solver)
            right.loglog(axes["curvature"], axes["squares"][solver], ".", label=solver)
        left.set(xlabel="ε", ylabel="log-loss above the least")
        right.set(
            xlabel="curvature of the axis (steep: right)", ylabel="squared distance along it", title="ε = 1, one Λ"
        )
        left.legend(fontsize=7, frameon=False)


def main(quick: bool = False) -> None:
    epsilons, seeds = (EPSILONS[1:3], 1) if quick else (EPSILONS, SEEDS)
    found, axes = by_epsilon(epsilons, seeds), by_axis(seeds)
    header = ["", *(f"ε = {epsilon:g}" for epsilon in epsilons)]
    rows = [
        [solver, *(f"{c['excess']:.4f} / {c['right']:.1%}" for c in found if c["solver"] == solver)]
        for solver in SOLVERS
    ]
    _results.show("Adult: log-loss above the least / test accuracy", header, rows)
    columns = ["", f"distance², {STEEP} steep axes", "the others", f"loss, {STEEP} steep axes", "the others"]
    _results.show(f"ε = 1, Λ = {RIDGE:g}: where the noise went", columns, shares(axes))
    _results.save("perturbations", {"by epsilon": found, "by axis": axes})
    _results.write_table("perturbations", header, rows)
    _results.write_table("perturbations", columns, shares(axes), mark="axes")
    plot(found, axes)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
