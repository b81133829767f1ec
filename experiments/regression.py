"""R² of private least squares: the default beside each solver it could have been, on data chosen on and held out.

Chosen on: PUMS (income, and its logarithm), visits to a doctor, made-up data like houses in California and with a steep
spectrum. Held out: warfarin, affairs (the rating of a marriage), diabetes, wine. ``--quick`` is one seed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_wine
from sklearn.linear_model import LinearRegression as Ordinary

from discreet.linear import LinearRegression
from experiments import _results, _tasks
from experiments._data import pums

EPSILONS, SEEDS = (0.1, 1.0, 10.0), 5
SOLVERS: dict[str, dict[str, Any]] = {
    "default": {},
    "statistics": {"solver": "statistics"},
    "gd, as it was": {"solver": "gd", "solver_options": {"curvature": 0.0, "clip": 0.4, "steps": 128}},
    "boosted": {"solver": "gd", "solver_options": {"curvature": 0.3, "clip": 0.4}},
}
MARKS = ("sex", "latino", "black", "asian", "married", "divorced", "uscitizen", "children", "disability", "employed")
Array = NDArray[Any]


class Question(NamedTuple):
    """Rows, targets, and what is public."""

    name: str
    x: Array
    y: Array
    facts: dict[str, Any]


def census(name: str, y: Array, target: tuple[float, float]) -> Question:
    people = pums()
    x = np.column_stack([people["age"], people["educ"], *(people[mark] for mark in MARKS)]) * 1.0
    low, high = np.array([0, 0.5] + [0] * len(MARKS)), np.array([100, 16.5] + [1] * len(MARKS))
    return Question(name, x, y, {"bounds": (low, high), "target_bounds": target})


def houses(n: int = 16_000) -> Question:
    """Eight columns, most of the mass near one end of wide bounds, two of them nearly collinear."""
    r = np.random.default_rng(0)
    income, age, rooms = (
        np.clip(r.gamma(4, 1.0, n), 0.5, 15),
        r.uniform(1, 52, n),
        np.clip(r.lognormal(1.65, 0.3, n), 1, 40),
    )
    bedrooms, people = np.clip(rooms / 5 + 0.1 * r.normal(size=n), 0.5, 8), np.clip(r.lognormal(7, 0.7, n), 3, 10_000)
    each = np.clip(r.lognormal(1.05, 0.25, n), 1, 12)
    north = np.where(r.random(n) < 0.5, 34, 37.7) + 0.8 * r.normal(size=n)
    west = -119.5 - 0.85 * (north - 35.6) + 0.5 * r.normal(size=n)
    value = 0.42 * income + 0.01 * age - 0.1 * rooms + 0.6 * bedrooms - 0.3 * (each - 3) - 0.42 * (north - 35.6)
    value = np.clip(value - 0.43 * (west + 119.5) + 0.4 + 0.65 * r.normal(size=n), 0.15, 5)
    low, high = np.array([0, 0, 0, 0, 0, 0, 32, -125]), np.array([15, 52, 40, 8, 10_000, 12, 42, -114])
    x = np.column_stack([income, age, rooms, bedrooms, people, each, north, west])
    return Question("made-up houses", x, value, {"bounds": (low, high), "target_bounds": (0, 5)})


def steep(n: int = 20_000, d: int = 20) -> Question:
    """Variances from 1 to 10⁻⁴, the smallest of which matter."""
    r = np.random.default_rng(1)
    turn = np.linalg.qr(r.normal(size=(d, d)))[0]
    x = (r.normal(size=(n, d)) * np.geomspace(1, 0.01, d) * 0.5) @ turn.T
    y = x @ (turn @ (np.sign(r.normal(size=d)) * np.geomspace(0.3, 8, d))) + 0.15 * r.normal(size=n)
    return Question("made-up, steep", x, y, {"bounds": (-1, 1), "target_bounds": (-2, 2)})


def of(task: _tasks.Task) -> Question:
    x, norm = task.wide
    return Question(task.name, x, task.y, {"feature_norm": norm, "target_bounds": task.target})


def ratings() -> Question:
    task = _tasks.marriages()
    bounds = tuple(side[1:] for side in task.bounds)
    return Question("affairs", task.x[:, 1:], task.x[:, 0], {"bounds": bounds, "target_bounds": (1, 5)})


def wine() -> Question:
    x = load_wine().data
    low, high = np.zeros(12), np.array([6, 4, 35, 180, 5, 6, 1, 4, 15, 2, 5, 2000])
    return Question("wine", x[:, 1:], x[:, 0], {"bounds": (low, high), "target_bounds": (11, 15)})


def questions() -> Iterator[Question]:
    income = pums()["income"] * 1.0
    yield census("PUMS income", income, (0, 200_000))
    yield census("PUMS log income", np.log10(np.maximum(income, 1000)), (3, 6))
    yield of(_tasks.visits())
    yield houses()
    yield steep()
    for held in (of(_tasks.doses()), ratings(), of(_tasks.diabetes()), wine()):
        yield held._replace(name=f"{held.name}, held out")


def score(asked: Question, options: dict[str, Any], epsilon: float, seed: int) -> float:
    order = np.random.default_rng([3, seed]).permutation(len(asked.x))
    train, test = order[: round(0.7 * len(order))], order[round(0.7 * len(order)) :]
    model = LinearRegression(epsilon=epsilon, random_state=seed, **asked.facts, **options)
    return float(model.fit(asked.x[train], asked.y[train]).score(asked.x[test], asked.y[test]))


def main(quick: bool = False) -> None:
    """Print the table; a line that misses says by how much the best solver is ahead."""
    warnings.simplefilter("ignore")
    print("| data | n | ε | " + " | ".join(SOLVERS) + " | not private | behind |\n|" + "---|" * (len(SOLVERS) + 5))
    for asked in questions():
        plain = Ordinary().fit(asked.x, asked.y).score(asked.x, asked.y)
        for epsilon in EPSILONS:
            seeds = range(1 if quick else SEEDS)
            found = {n: np.mean([score(asked, o, epsilon, seed) for seed in seeds]) for n, o in SOLVERS.items()}
            behind = max(found.values()) - found["default"]
            told = " | ".join(f"{value:.3f}" for value in found.values())
            print(
                f"| {asked.name} | {round(0.7 * len(asked.x))} | {epsilon:g} | {told} | {plain:.3f} | {behind:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
