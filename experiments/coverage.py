"""How often 95 % intervals of private coefficients hold the truth: both models, four sizes and budgets, thousands of intervals.

Data are drawn from the model itself: least squares with uniform errors, and a logistic model; two features and an intercept, so
three intervals a run. A share that is at least 95 % up to the error of counting is what was promised. ``wider`` compares the
width with that of the ordinary, not private interval of the same data: the price of privacy.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from discreet.linear import LinearRegression, LogisticRegression, inference

RUNS = int(os.environ.get("DISCREET_RUNS", "200"))
GRID = ((2_000, 4.0), (5_000, 1.0), (5_000, 4.0), (20_000, 0.5), (20_000, 1.0))
Array = NDArray[np.float64]


def linear(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    x = rng.uniform(-1, 1, size=(n, 2))
    return x, 0.3 + 0.4 * x[:, 0] - 0.2 * x[:, 1] + rng.uniform(-0.1, 0.1, n)


def logistic(rng: np.random.Generator, n: int) -> tuple[Array, Any]:
    x = rng.uniform(-1, 1, size=(n, 2))
    return x, (rng.random(n) < 1 / (1 + np.exp(-(0.5 + 1.5 * x[:, 0] - x[:, 1])))).astype(int)


CASES: dict[str, tuple[Any, Callable[..., tuple[Array, Any]], tuple[float, ...]]] = {
    "least squares": (LinearRegression, linear, (0.4, -0.2, 0.3)),
    "logistic": (LogisticRegression, logistic, (1.5, -1.0, 0.5)),
}


def covered(name: str, n: int, epsilon: float, runs: int = RUNS) -> tuple[Array, Array]:
    """How far estimates are from the truth, runs × coefficients; and the half-widths of their intervals."""
    kind, draw, truth = CASES[name]
    errors, widths = [], []
    for run in range(runs):
        model = kind(epsilon=epsilon, delta=1e-5, bounds=(-1, 1), random_state=run)
        found = inference.coefficients(model, *draw(np.random.default_rng(run), n), confidence=0.95)
        errors.append(np.abs(found.estimate - truth))
        widths.append(found.upper - found.estimate)
    return np.array(errors), np.array(widths)


def ordinary(name: str, n: int) -> Array:
    """Half-widths of the not private 95 % intervals, at the truth."""
    _, draw, truth = CASES[name]
    x, _ = draw(np.random.default_rng(0), n)
    rows = np.column_stack([x, np.ones(n)])
    p = 1 / (1 + np.exp(-rows @ truth))
    weights = np.full(n, 300.0) if name == "least squares" else p * (1 - p)  # 1/variance of a uniform error of width 0.2
    return np.asarray(1.96 * np.sqrt(np.diag(np.linalg.inv(rows.T @ (rows * weights[:, None])))))


def main() -> None:
    table = Table(title=f"Coverage of 95 % intervals, {RUNS} runs of three coefficients each")
    for header in ("model", "n", "epsilon", "coverage", "± of counting", "wider"):
        table.add_column(header, justify="right")
    for name in CASES:
        for n, epsilon in GRID:
            errors, widths = covered(name, n, epsilon)
            holds = errors <= widths
            table.add_row(name, f"{n:,}", f"{epsilon:g}", f"{holds.mean():.1%}", f"{np.sqrt(0.95 * 0.05 / holds.size):.1%}",
                          f"{np.median(widths / ordinary(name, n)):.1f}×")
    Console().print(table)


if __name__ == "__main__":
    main()
