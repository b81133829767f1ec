"""Where the defaults of ``gd`` come from: a grid of clips, steps and ridges on data that no reported figure is tested
on.

Adult's *training* file (two thirds to learn from, one third to judge by), census records of Fulton County (who earns
more than 30,000 dollars; 15,000 of them, and 600), and MNIST's *training* file (images of 14 × 14; 4,000, and 1,200).
Neither Adult's test file nor digits nor breast cancer is opened. Settings are ranked by their mean accuracy over the
tasks; the error is that of the difference to the best, over seeds. Needs the files of ``DISCREET_DATA``; takes about
ten minutes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from discreet.datasets import adult_features
from discreet.linear import LogisticRegression
from discreet.linear.problem import noise_multiplier
from experiments import _results
from experiments._data import mnist, pums

CLIPS = (0.2, 0.4, 0.8)
STEPS = (64, 128, 256)
REACHES = (2.0, 4.0, 8.0)  # Λ is the noise over this
Part = tuple[NDArray[np.float64], NDArray[np.int64]]


class Task(NamedTuple):
    """Data, and how often to fit it."""

    name: str
    epsilon: float
    seeds: int
    facts: dict[str, Any]
    train: Part
    judge: Part


def census() -> Part:
    """Bounded columns to [-1, 1], the others 0 or 1."""
    people = pums()
    age, educ = np.clip(people["age"], 16, 96) / 40 - 1.4, np.clip(people["educ"], 1, 16) / 7.5 - 17 / 15
    flags = [
        people[name]
        for name in (
            "sex",
            "latino",
            "black",
            "asian",
            "married",
            "divorced",
            "uscitizen",
            "children",
            "disability",
            "militaryservice",
            "employed",
            "englishability",
        )
    ]
    x = np.stack([age, age**2, educ, *(flag * 1.0 for flag in flags)], axis=1)
    return x, (people["income"] > 30_000).astype(np.int64)


def images() -> Part:
    """Means of 2 × 2 pixels."""
    digits = mnist()
    small = digits.X_train.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 196) / 255
    return small, digits.y_train.astype(np.int64)


def tasks() -> Iterator[Task]:
    people, people_of_fulton, digits = adult_features(), census(), images()
    ten = {"feature_norm": 5.0, "classes": tuple(range(10))}
    for name, data, size, seeds, facts, epsilons in (
        (
            "adult, training file",
            (people.X_train, people.y_train),
            21_700,
            4,
            {"feature_norm": 1.0},
            (0.05, 0.1, 0.5, 1.0),
        ),
        ("census", people_of_fulton, 15_000, 4, {"feature_norm": 2.0}, (0.1, 1.0)),
        ("census, 600", people_of_fulton, 600, 20, {"feature_norm": 2.0}, (0.1, 1.0)),
        ("mnist, training file, 4,000", digits, 4000, 2, ten, (1.0, 10.0)),
        ("mnist, training file, 1,200", digits, 1200, 4, ten, (1.0, 10.0)),
    ):
        order = np.random.default_rng(1).permutation(len(data[1]))
        train, judge = ((data[0][part], data[1][part]) for part in (order[:size], order[size : size + 10_000]))
        for epsilon in epsilons:
            yield Task(name, epsilon, seeds, facts, train, judge)


def accuracies(task: Task, clip: float, steps: int, reach: float) -> NDArray[np.float64]:
    """One a seed."""
    public = {
        "epsilon": task.epsilon,
        "delta": 1e-6,
        "solver": "gd",
        "solver_options": {"clip": clip, "steps": steps},
        "regularization": noise_multiplier(task.epsilon, 1e-6) * clip / reach,
    }
    models = (
        LogisticRegression(**public, **task.facts, random_state=seed).fit(*task.train) for seed in range(task.seeds)
    )
    return np.array([model.score(*task.judge) for model in models])


def main(quick: bool = False) -> None:
    settings = list(product(CLIPS, STEPS, REACHES))[:: 13 if quick else 1]
    found = [(task, np.array([accuracies(task, *setting) for setting in settings])) for task in tasks()]
    means = np.array([runs.mean(axis=1) for _, runs in found])  # tasks × settings
    overall = means.mean(axis=0)
    best = int(overall.argmax())
    errors = np.sqrt(sum((runs - runs[best]).var(axis=1, ddof=1) / runs.shape[1] for _, runs in found)) / len(found)
    console = Console(width=max(110, Console().width))
    grid = Table(title=f"Mean accuracy over {len(found)} tasks")
    for header in ("clip", "steps", "reach", "accuracy", "below the best", "± of that"):
        grid.add_column(header, justify="right")
    for at in np.argsort(-overall):
        grid.add_row(
            *(f"{value:g}" for value in settings[at]),
            f"{overall[at]:.2%}",
            f"{overall[best] - overall[at]:.2%}",
            f"{errors[at]:.2%}",
        )
    console.print(grid)
    for (task, _), row in zip(found, means, strict=True):
        at = int(row.argmax())
        console.print(
            f"{task.name}, epsilon {task.epsilon:g}: {row[best]:.2%} with the best overall; its own best is "
            f"{settings[at]}, {row[at]:.2%}"
        )


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
