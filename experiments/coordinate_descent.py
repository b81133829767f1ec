"""Private coordinate descent against private SGD on designs whose columns matter more or less equally.

Linear regression, epsilon 1, delta 1/n², on three designs: columns with log-normal scales, columns of equal scale, and
one column much larger than the rest. For each number of passes over the data every method gets the same clips and its
own grid of steps (SGD twice as many) and shows its best mean over seeds: the relative error (f - f*)/f* of the
objective. Theory says that coordinate descent gains where smoothness is unequal, and loses a little where it is equal.
A lasso, on raw (log-normal) and on standardised columns, likewise. The figure is
``docs/images/coordinate-descent.png``. ``--quick``: three designs, one number of passes, and the page stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import random
from discreet.linear.losses import Squared
from discreet.linear.problem import Problem
from discreet.linear.rows import Records
from discreet.linear.solvers.dp_cd import CoordinateDescent
from discreet.linear.solvers.sgd import StochasticGradientDescent
from experiments import _results

N, P = 4000, 40
PASSES = (1, 3, 10, 30)
CLIPS = (0.01, 0.03, 0.1, 0.3, 1.0)
# times 1/M_j and 1/L: SGD may go beyond its bound
STEPS = {"cd": (0.1, 0.3, 1.0), "sgd": (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)}
SEEDS = 2
Array = NDArray[np.float64]


def scales(design: str, rng: np.random.Generator) -> Array:
    """How large each column is."""
    if design == "balanced":
        return np.ones(P)
    return np.exp(rng.normal(0, 2, P)) if design == "log-normal" else np.array([100.0] + [1.0] * (P - 1))


def data(design: str, standardised: bool = False) -> Records:
    """Rows in the unit ball, targets in [-1, 1]: a linear model whose columns contribute alike to the target."""
    rng = np.random.default_rng(7)
    plain = rng.normal(size=(N, P))
    strength = np.where(np.arange(P) < 10, 1.0, 0.0) if design == "sparse" else np.ones(P)
    target = plain @ (strength * rng.normal(size=P)) + 3.0 * rng.normal(size=N)
    rows = plain * (np.ones(P) if standardised else scales("log-normal" if design == "sparse" else design, rng))
    rows = rows / np.linalg.norm(rows, axis=1).max()
    return Records(np.ascontiguousarray(rows), target / np.abs(target).max(), np.ones(N, bool))


def objective(records: Records, w: Array, l1: float) -> float:
    return float(((records.rows @ w - records.targets) ** 2).sum() / 2 + l1 * np.abs(w).sum())


def best(records: Records, l1: float) -> float:
    """The objective's minimum, by coordinate descent without noise, until no weight moves."""
    x, y = records.rows, records.targets
    squares, w = (x**2).sum(axis=0), np.zeros(P)
    left = y.copy()
    for _ in range(3000):
        before = w.copy()
        for j in range(P):
            target = w[j] + x[:, j] @ left / squares[j]
            new = np.sign(target) * max(abs(target) - l1 / squares[j], 0)
            left += x[:, j] * (w[j] - new)
            w[j] = new
        if np.abs(w - before).max() <= 1e-13 * np.abs(w).max():
            break
    return objective(records, w, l1)


def solvers(problem: Problem, squares: Array, passes: int) -> Iterator[tuple[str, list[Any]]]:
    """Each method with its grid of clips and steps."""
    grid = list(product(CLIPS, STEPS["cd"]))
    for clipping in ("uniform", "lipschitz"):
        yield (
            f"DP-CD, {clipping} clips",
            [
                CoordinateDescent(
                    problem=problem, passes=passes, clip=clip, step=step, clipping=clipping, smoothness=tuple(squares)
                )
                for clip, step in grid
            ],
        )
    yield (
        "DP-SGD",
        [
            StochasticGradientDescent(problem=problem, steps=passes * 20, rate=0.05, clip=clip, step=step, momentum=0.0)
            for clip, step in product(CLIPS, STEPS["sgd"])
        ],
    )


def curves(records: Records, l1: float, all_passes: Sequence[int] | None = None) -> dict[str, list[float]]:
    """Relative error against passes, per method."""
    found: dict[str, list[float]] = {}
    least, squares = best(records, l1), (records.rows**2).sum(axis=0)
    problem = Problem(
        loss=Squared(), epsilon=1.0, delta=1 / N**2, square=1.0, features=P, size=N, l1=l1, regularization=1e-6
    )
    for passes in all_passes or PASSES:
        for name, candidates in solvers(problem, squares, passes):
            errors = [
                np.mean(
                    [
                        objective(records, solver.solve(records, random.seeded(seed)).weights[:, 0], l1) / least - 1
                        for seed in range(SEEDS)
                    ]
                )
                for solver in candidates
            ]
            found.setdefault(name, []).append(float(np.min(errors)))
    return found


PANELS: dict[str, Callable[[], tuple[Records, float]]] = {
    "log-normal": lambda: (data("log-normal"), 0.0),
    "balanced": lambda: (data("balanced"), 0.0),
    "first column big": lambda: (data("first big"), 0.0),
    "lasso, raw columns": lambda: (data("sparse"), 0.05),
    "lasso, standardised": lambda: (data("sparse", standardised=True), 1.0),
}


def plot(panels: dict[str, dict[str, list[float]]], passes: tuple[int, ...] = PASSES) -> None:
    with _results.figure("coordinate-descent", len(panels), 9.0, rows=2) as axes:
        for axis, (name, found) in zip(axes, panels.items(), strict=True):
            for method, errors in found.items():
                axis.loglog(passes, errors, marker="o", label=method)
            axis.set(title=name, xlabel="passes over the data")
        axes[0].set_ylabel("(f - f*)/f*")
        axes[0].legend(fontsize=7)


def main(quick: bool = False) -> None:
    chosen, passes = (list(PANELS)[:3], (10,)) if quick else (list(PANELS), PASSES)
    panels = {name: curves(*PANELS[name](), passes) for name in chosen}
    header = ["relative error", *next(iter(panels.values()))]
    rows = [[name, *(f"{min(errors):.3f}" for errors in found.values())] for name, found in panels.items()]
    _results.show(f"The best number of passes, n = {N}, p = {P}, ε = 1, δ = 1/n²", header, rows)
    _results.save("coordinate_descent", panels)
    _results.write_table("coordinate_descent", header, rows)
    plot(panels, passes)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
