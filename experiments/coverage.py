"""How often 95 % intervals of private coefficients hold the truth, in plain designs and in hard ones; thousands of
intervals.

Each design draws data from its model, so that the truth is known; there is an interval for each coefficient and the
intercept. ``given`` is the share of intervals that are finite, ``covers`` how often they hold the truth (an infinite
one always does), ``half-widths`` the medians of those given, ``wider`` that over the ordinary, not private interval's:
the price of privacy. DISCREET_RUNS sets the number of runs; DISCREET_DESIGNS=plain leaves the hard designs out,
``squares`` and ``logistic`` the other model. Each line is told on standard error when it is known.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.special import expit

from discreet.linear import LinearRegression, LogisticRegression, inference
from experiments import _results

RUNS = int(os.environ.get("DISCREET_RUNS", "200"))
GRID = ((2_000, 4.0), (5_000, 1.0), (5_000, 4.0), (20_000, 0.5), (20_000, 1.0))
Array = NDArray[np.float64]
Features = Callable[[np.random.Generator, int], Array]
Errors = Callable[[np.random.Generator, Array, Array], Array]


class Design(NamedTuple):
    """A model, its coefficients with the intercept last, and how features and errors are drawn. No errors: logistic."""

    truth: tuple[float, ...]
    features: Features
    errors: Errors | None = None

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Array, Array]:
        x = self.features(rng, n)
        line = x @ self.truth[:-1] + self.truth[-1]
        return x, (rng.random(n) < expit(line)).astype(float) if self.errors is None else line + self.errors(
            rng, x, line
        )


def uniform(rng: np.random.Generator, n: int, columns: int = 2) -> Array:
    return rng.uniform(-1, 1, size=(n, columns))


def correlated(spread: float, columns: int = 2) -> Features:
    def features(rng: np.random.Generator, n: int) -> Array:
        x = uniform(rng, n, columns)
        x[:, 1] = np.clip(x[:, 0] + spread * rng.normal(size=n), -1, 1)
        return x

    return features


def signs(share: float) -> Features:
    return lambda rng, n: np.where(rng.random((n, 2)) < share, 1.0, -1.0)


def small(rng: np.random.Generator, x: Array, line: Array) -> Array:
    return rng.uniform(-0.1, 0.1, len(x))


def cubic(rng: np.random.Generator, x: Array, line: Array) -> Array:
    return rng.uniform(-0.3, 0.3, len(x)) * np.abs(x[:, 0]) ** 3


def heavy(rng: np.random.Generator, x: Array, line: Array) -> Array:
    return np.clip(0.03 * rng.standard_t(2.5, len(x)), -0.4, 0.4)


def coin(rng: np.random.Generator, x: Array, line: Array) -> Array:
    return np.where(rng.random(len(x)) < (1 + line) / 2, 1.0, -1.0) - line


def outliers(rng: np.random.Generator, x: Array, line: Array) -> Array:
    return np.where(rng.random(len(x)) < 0.005, rng.choice([-0.5, 0.5], len(x)), small(rng, x, line))


DESIGNS = {
    "least squares": Design((0.4, -0.2, 0.3), uniform, small),
    "noise as |x|³": Design((0.4, -0.2, 0.0), uniform, cubic),
    "heavy tails": Design((0.3, -0.1, 0.1), uniform, heavy),
    "outliers": Design((0.2, -0.1, 0.1), uniform, outliers),
    "targets ±1": Design((0.7, -0.2, 0.0), uniform, coin),
    "skewed features": Design((0.2, -0.2, 0.1), signs(0.03), small),
    "x₁ = x₀ + z/5": Design((0.4, -0.2, 0.3), correlated(0.2), small),
    "x₁ = x₀ + z/10": Design((0.4, -0.2, 0.3), correlated(0.1), small),
    "the same, opposed": Design((0.9, -0.9, 0.0), correlated(0.1), small),
    "intercept only": Design((0.0, 0.0, 0.3), uniform, small),
    "logistic": Design((1.5, -1.0, 0.5), uniform),
    "effects ±4": Design((4.0, -4.0, 0.5), uniform),
    "effects ±8": Design((8.0, -8.0, 0.5), uniform),
    "strong, features ±1": Design((3.0, 2.0, -1.0), signs(0.5)),
    "rare class": Design((0.5, -0.5, -4.0), uniform),
    "logistic, skewed": Design((1.0, 1.0, 1.0), signs(0.05)),
    "logistic, collinear": Design((1.5, -1.0, 0.5), correlated(0.3)),
    "logistic, intercept": Design((0.0, 0.0, 0.5), uniform),
}
PLAIN = tuple((name, n, epsilon) for name in ("least squares", "logistic") for n, epsilon in GRID)
HARD = (
    ("noise as |x|³", 100_000, 4.0),
    ("heavy tails", 20_000, 4.0),
    ("outliers", 5_000, 4.0),
    ("outliers", 20_000, 8.0),
    ("targets ±1", 5_000, 1.0),
    ("skewed features", 5_000, 4.0),
    ("least squares", 500, 1.0),
    ("x₁ = x₀ + z/5", 20_000, 1.0),
    ("x₁ = x₀ + z/10", 20_000, 1.0),
    ("x₁ = x₀ + z/10", 5_000, 4.0),
    ("the same, opposed", 5_000, 4.0),
    ("intercept only", 5_000, 1.0),
    ("effects ±4", 2_000, 1.0),
    ("effects ±4", 5_000, 1.0),
    ("effects ±4", 5_000, 4.0),
    ("effects ±8", 2_000, 1.0),
    ("effects ±8", 5_000, 1.0),
    ("effects ±8", 5_000, 4.0),
    ("strong, features ±1", 3_000, 1.0),
    ("strong, features ±1", 8_000, 1.0),
    ("strong, features ±1", 8_000, 4.0),
    ("rare class", 8_000, 1.0),
    ("rare class", 8_000, 4.0),
    ("logistic, skewed", 3_000, 1.0),
    ("logistic, collinear", 10_000, 4.0),
    ("logistic", 500, 4.0),
    ("logistic", 1_000, 1.0),
    ("logistic, intercept", 2_000, 1.0),
)


def covered(name: str, n: int, epsilon: float, runs: int = RUNS) -> tuple[Array, Array]:
    """How far estimates are from the truth, runs × coefficients; and the half-widths of their intervals."""
    design, errors, widths = DESIGNS[name], [], []
    logistic, squares = partial(LogisticRegression, classes=(0, 1)), partial(LinearRegression, target_bounds=(-1, 1))
    kind: Any = logistic if design.errors is None else squares
    for run in range(runs):
        model = kind(epsilon=epsilon, delta=1e-5, bounds=(-1, 1), random_state=run)
        found = inference.coefficients(model, *design.draw(np.random.default_rng(run), n), confidence=0.95)
        errors.append(np.abs(found.estimate - design.truth))
        widths.append(found.upper - found.estimate)
    return np.array(errors), np.array(widths)


def ordinary(name: str, n: int) -> Array:
    """Half-widths of the not private 95 % intervals, at the truth: the sandwich's."""
    design = DESIGNS[name]
    x, y = design.draw(np.random.default_rng(0), n)
    rows, line = np.column_stack([x, np.ones(n)]), x @ design.truth[:-1] + design.truth[-1]
    p = expit(line)
    bread = np.linalg.inv(rows.T @ (rows if design.errors is not None else rows * (p * (1 - p))[:, None]))
    residuals = y - (p if design.errors is None else line)
    return np.asarray(1.96 * np.sqrt(np.diag(bread @ (rows.T @ (rows * residuals[:, None] ** 2)) @ bread)))


def summary(errors: Array, widths: Array, usual: Array) -> tuple[Any, ...]:
    """Coverage of all intervals and of those given, its error of counting, the share given, and their half-widths."""
    given, holds = np.isfinite(widths), errors <= widths
    if not given.any():
        return "100.0%", "", "", "0%", "", ""
    share = holds[given].mean()
    middle = np.array([np.median(column[np.isfinite(column)]) for column in widths.T if np.isfinite(column).any()])
    return (
        f"{holds.mean():.1%}",
        f"{share:.1%}",
        f"{np.sqrt(max(share * (1 - share), 0.01) / given.sum()):.1%}",
        f"{given.mean():.0%}",
        " ".join(f"{width:.2g}" for width in middle),
        f"{np.median(middle / usual):.1f}×",
    )


def main(quick: bool = False) -> None:
    chosen = os.environ.get("DISCREET_DESIGNS")
    cases, runs = PLAIN if chosen == "plain" else PLAIN + HARD, RUNS
    if quick:
        cases, runs = (PLAIN[0], PLAIN[-1]), 20
    if chosen in ("squares", "logistic"):
        cases = tuple(case for case in cases if (DESIGNS[case[0]].errors is None) == (chosen == "logistic"))
    table = Table(title=f"Coverage of 95 % intervals, {runs} runs of three coefficients each")
    for header in (
        "design",
        "n",
        "epsilon",
        "covers, all",
        "covers, given",
        "± of counting",
        "given",
        "half-widths",
        "wider",
    ):
        table.add_column(header, justify="right", no_wrap=True)
    for name, n, epsilon in cases:
        row = (name, f"{n:,}", f"{epsilon:g}", *summary(*covered(name, n, epsilon, runs), ordinary(name, n)))
        print(*row, sep=" | ", file=sys.stderr, flush=True)
        table.add_row(*row)
    Console(width=140).print(table)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
