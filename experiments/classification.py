"""Accuracy of private logistic regression: the default beside each solver it could have been.

The five data sets of ``_tasks`` with classes, one-hot and scaled by public facts. Defaults were chosen on PUMS, on
parts of Adult's training file and on made-up data; breast cancer, digits and affairs are held out. Every score is in
``docs/experiments/classification.json``: a run that was stopped goes on where it was. ``--quick`` is one seed at
epsilon 1 on breast cancer, and keeps nothing; ``--seeds N``, and the names of data sets, do less than all.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from discreet.linear import LogisticRegression
from experiments import _results
from experiments._tasks import TASKS, Task

NAME, EPSILONS, DELTA, SEEDS = "classification", (0.1, 1.0, 10.0), 1e-5, 5
DATA = ("breast cancer", "affairs", "digits", "PUMS", "Adult")
SOLVERS: dict[str, dict[str, Any]] = {
    "default": {},
    "objective": {"solver": "objective"},
    "output": {"solver": "output"},
    "gd, clip √2": {"solver": "gd", "solver_options": {"clip": 2**0.5}},
    "gd, clip 0.4": {"solver": "gd", "solver_options": {"clip": 0.4, "curvature": 0.0, "steps": 128}},
    "cd": {"solver": "cd"},
    "sgd": {"solver": "sgd"},
}


def score(task: Task, options: dict[str, Any], epsilon: float, seed: int) -> float:
    """On the test part; solvers that clip by coordinate take two classes only."""
    (x, norm), (train, test) = task.wide, task.split(seed)
    model = LogisticRegression(
        epsilon=epsilon, delta=DELTA, feature_norm=norm, classes=task.classes, random_state=seed, **options
    )
    return float(model.fit(x[train], task.y[train]).score(x[test], task.y[test]))


def offered(task: Task) -> dict[str, dict[str, Any]]:
    return {name: o for name, o in SOLVERS.items() if len(task.classes) == 2 or name != "cd"}


def run(task: Task, found: dict[str, list[float]], seeds: int, epsilons: tuple[float, ...], keep: bool) -> None:
    """Fill in what is missing, and keep it."""
    for epsilon in epsilons:
        for name, options in offered(task).items():
            scores = found.setdefault(f"{task.name}|{epsilon:g}|{name}", [])
            while len(scores) < seeds:
                scores.append(round(score(task, options, epsilon, len(scores)), 5))
                if keep:
                    _results.save(NAME, found)


def rows(found: dict[str, list[float]]) -> list[list[str]]:
    """Accuracies, the number of seeds that all solvers have, and by how much the best of them is ahead, in points."""
    lines = []
    for task, epsilon in dict.fromkeys(tuple(key.split("|")[:2]) for key in found):
        cells = {name: found[key] for name in SOLVERS if (key := f"{task}|{epsilon}|{name}") in found}
        seeds = min(map(len, cells.values()))
        means = {name: float(np.mean(scores[:seeds])) for name, scores in cells.items() if seeds}
        if means:
            told = [f"{100 * means[name]:.1f}" if name in means else "" for name in SOLVERS]
            ahead = 100 * (max(means.values()) - means["default"])
            lines.append([task, epsilon, str(seeds), *told, f"{ahead:.1f}"])
    return lines


HEADER = ["data", "ε", "seeds", *SOLVERS, "behind"]


def main(quick: bool = False) -> None:
    warnings.simplefilter("ignore")
    words, seeds = _results.asked(NAME, SEEDS, quick)
    found: dict[str, list[float]] = {} if quick else _results.kept(NAME)
    for name in [word for word in words if word in DATA] or (DATA[:1] if quick else DATA):
        run(TASKS[name](), found, seeds, (1.0,) if quick else EPSILONS, keep=not quick)
    if not quick:
        _results.write_table(NAME, HEADER, rows(found))
    _results.show(NAME, HEADER, rows(found))


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
