"""Why private least squares are cautious where features are nearly collinear: what less caution would cover.

Intervals are divided by 1 - u², u = κσ/λ_min(A), and infinite from u = 1 on; κ is ``inference_squares.SAFE``. Here the
formulas of ``inference_squares`` run with NumPy's Gaussian noise in place of the exact one, which is quicker, for
several κ. ``weak`` is λ_min of the matrix without noise, in deviations of the noise: where it is small an interval is
given when the noise was kind, just then the estimate is off, and with too small a κ it covers too seldom. Shown is the
coefficient that is covered least, among intervals that are given, and their number. DISCREET_RUNS sets the number of
runs, of which there are five times as many where few are given.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.special import ndtri

from discreet.linear import LinearRegression
from discreet.linear.inference import _intervals, _jacobian
from discreet.linear.inference_parts import shaken, widening
from discreet.linear.inference_squares import COLUMN, SPARE, _forms
from experiments import _results
from experiments.coverage import Array, Design, correlated, small, uniform

RUNS = int(os.environ.get("DISCREET_RUNS", "4000"))
KAPPAS = (2.0, 2.5, 3.0, 3.5)
EPSILON = 4.0
WEAK = Design((8.0, 0.0), lambda rng, n: 0.1 * uniform(rng, n, 1), small)
OPPOSED = Design((0.9, -0.9, 0.0), correlated(0.1), small)
CASES = tuple(("x₀ within ±0.1", WEAK, n) for n in (500, 700, 1_000, 2_000, 5_000)) + tuple(
    ("x₁ = x₀ + z/10, opposed", OPPOSED, n) for n in (1_500, 3_000, 5_000, 10_000)
)


def symmetric(rng: np.random.Generator, p: int) -> Array:
    """Noise on a packed matrix: deviation 1 on the diagonal, √½ beside it."""
    upper = np.triu(rng.normal(size=(p, p)), 1) / math.sqrt(2)
    return np.asarray(upper + upper.T + np.diag(rng.normal(size=p)))


def run(design: Design, n: int, seed: int) -> tuple[Array, Array, Array, float, float]:
    """Errors of the estimates; their variances in two parts, known and from w; λ_min of A and S in deviations."""
    d = len(design.truth) - 1
    made: Any = _intervals(LinearRegression(target_bounds=(-1, 1), epsilon=EPSILON, delta=1e-5, bounds=(-1, 1)), d)
    rng, sigma, norm, p = np.random.default_rng(seed), float(made.statistics.sigma), math.sqrt(made.square), d + 1
    x, y = design.draw(rng, n)
    rows = np.column_stack([x / made.mapping.norm, np.full(n, COLUMN)])
    exact = rows.T @ rows
    matrix, vector = exact + sigma * symmetric(rng, p), rows.T @ y + sigma / norm * rng.normal(size=p)
    weights = np.linalg.solve(matrix, vector)
    limit = 1 + min(1.0, float(np.linalg.norm(weights[:-1])) + COLUMN * abs(weights[-1]))
    shares = np.clip((y - np.clip(rows @ weights, -1, 1)) / limit, -1, 1)
    spread = limit**2 * float(made.sandwich.sigma)
    meat = limit**2 * (rows.T @ (rows * (shares**2)[:, None])) + spread * symmetric(rng, p)
    jacobian = _jacobian(made.mapping, d) * np.append(np.ones(d), COLUMN)
    a = np.linalg.solve(matrix, jacobian.T)
    fixed = (sigma / norm) ** 2 * (a * a).sum(axis=0)
    fixed += np.maximum(_forms(a, meat) + SPARE * spread * (a * a).sum(axis=0), 0.0)
    errors = np.abs(jacobian @ weights - design.truth)
    lows = [float(np.linalg.eigvalsh(each)[0]) / sigma for each in (matrix, exact)]
    return errors, fixed, _forms(a, shaken(sigma, weights)), lows[0], lows[1]


def held(runs: list[tuple[Array, Array, Array, float, float]], kappa: float) -> Array:
    """Which coefficients the intervals that are given cover, a row a run."""
    holds = []
    for errors, fixed, shaking, low, _ in runs:
        wider = widening(kappa / low) if low > 0 else math.inf
        if wider < math.inf:
            holds.append(errors <= ndtri(0.975) * wider * np.sqrt(fixed + wider**2 * shaking))
    return np.array(holds)


def summary(holds: Array) -> str:
    """How many intervals are given, and how many of them cover, for the coefficient covered least."""
    return f"{len(holds):,}: {holds.mean(axis=0).min():.1%}" if len(holds) else "0"


def main(quick: bool = False) -> None:
    table = Table(title="Intervals given, and of these covered (nominal 95 %), for the coefficient covered least")
    for header in ("design", "n", "weak", "runs", *(f"κ = {kappa:g}" for kappa in KAPPAS)):
        table.add_column(header, justify="right", no_wrap=True)
    for name, design, n in CASES:
        runs = [run(design, n, seed) for seed in range((RUNS // 20 if quick else RUNS) * (5 if n <= 1_500 else 1))]
        weak = f"{np.mean([low for *_, low in runs]):.1f}"
        table.add_row(name, f"{n:,}", weak, f"{len(runs):,}", *(summary(held(runs, kappa)) for kappa in KAPPAS))
    Console(width=140).print(table)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
