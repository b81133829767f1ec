"""Test accuracy of private logistic regression with default hyper-parameters, against the figures it owes.

Adult by the public recipe of ``datasets.adult_features``; digits (10 classes) shrunk to norm 40; breast cancer by declared
bounds, two standard deviations either side of published means, to two digits, rows shrunk to norm 2 of those units.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression as Ordinary
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discreet.datasets import adult_features
from discreet.linear import LogisticRegression

LOWER = (7.1, 11, 43, -49, 0.068, -0.0013, -0.071, -0.029, 0.13, 0.049, -0.15, 0.11, -1.2, -51, 0.001, -0.01, -0.029,
         -0.00054, 0.004, -0.0015, 6.6, 13, 40, -260, 0.087, -0.06, -0.15, -0.017, 0.17, 0.048)
UPPER = (21, 28, 140, 1400, 0.12, 0.21, 0.25, 0.13, 0.24, 0.077, 0.96, 2.3, 6.9, 130, 0.013, 0.061, 0.092, 0.024, 0.037,
         0.0091, 26, 38, 170, 2000, 0.18, 0.57, 0.69, 0.25, 0.41, 0.12)
SEEDS = int(os.environ.get("DISCREET_SEEDS", "10"))


@dataclass(frozen=True)
class Row:
    name: str
    epsilon: float
    owed: float
    accuracy: float
    spread: float
    ordinary: float


def split(data: Any, seed: int) -> Any:
    x, y = data
    a, b, c, d = train_test_split(x, y, test_size=0.3, random_state=seed, stratify=y)
    return (a, c), (b, d)


def measured(name: str, epsilon: float, owed: float, delta: float, facts: dict[str, Any], data: Any) -> Row:
    """Mean accuracy over seeds; ``data(seed)`` gives training and test parts."""
    found, plain = [], []
    for seed in range(SEEDS):
        (x, y), test = data(seed)
        found.append(LogisticRegression(epsilon=epsilon, delta=delta, random_state=seed, **facts).fit(x, y).score(*test))
        if seed == 0:
            plain.append(make_pipeline(StandardScaler(), Ordinary(max_iter=1000)).fit(x, y).score(*test))
    return Row(name, epsilon, owed, float(np.mean(found)), float(np.std(found)), float(np.mean(plain)))


def results() -> Iterator[Row]:
    adult = adult_features()
    for epsilon, owed in ((0.05, 0.835), (0.1, 0.843), (0.5, 0.847), (1.0, 0.847)):
        yield measured("adult", epsilon, owed, 1e-6, {"feature_norm": 1.0}, lambda seed: (adult[:2], adult[2:]))
    digits = load_digits(return_X_y=True)
    for epsilon, owed in ((1.0, 0.85), (10.0, 0.93)):
        yield measured("digits", epsilon, owed, 1e-5, {"feature_norm": 40.0, "classes": tuple(range(10))},
                       lambda seed: split(digits, seed))
    cancer = load_breast_cancer(return_X_y=True)
    for epsilon, owed in ((0.1, 0.80), (1.0, 0.94)):
        yield measured("breast cancer", epsilon, owed, 1e-5, {"bounds": (LOWER, UPPER), "feature_norm": 2.0},
                       lambda seed: split(cancer, seed))


def main() -> None:
    grid = Table(title=f"Test accuracy, solver='auto', default hyper-parameters, {SEEDS} seeds")
    for header in ("data", "epsilon", "owed", "accuracy", "± over seeds", "not private"):
        grid.add_column(header, justify="right")
    for row in results():
        grid.add_row(row.name, f"{row.epsilon:g}", f"{row.owed:.1%}", f"{row.accuracy:.2%}", f"{row.spread:.2%}",
                     f"{row.ordinary:.2%}")
    Console().print(grid)


if __name__ == "__main__":
    main()
