"""Choosing settings on private data: what it seems to cost, what it costs, and what is chosen.

Logistic regression by private gradient descent, on Adult and on MNIST (digits averaged over squares of 4 × 4 pixels, a
row of norm 1). Twelve candidates: four numbers of steps, three clip norms. Five ways, each judged on the test file,
which nothing else reads:

no search
    the library's default settings, at epsilon 1.
naive search
    all twelve at epsilon 1 each, the best by its exact score on the private data, reported as "epsilon 1". The models
    alone are twelve releases; what the exact scores tell has no bound at all.
search that pays
    all twelve with noisy scores, each so much noisier that everything together costs epsilon 1.
private selection, same total
    ``PrivateSearch``: a random number of runs, 10 on average, such that the one selected costs epsilon 1.
private selection, same runs
    each run at epsilon 1 like those of the naive search; what is selected costs somewhat more.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

import discreet as dp
from discreet.datasets import adult_features
from discreet.linear import LogisticRegression
from discreet.tuning import Correct, PrivateSearch
from experiments import _results
from experiments._data import mnist

TOTAL, MEAN, SEEDS = 1.0, 10.0, 5
SPACE = [{"solver_options": {"steps": steps, "clip": clip}} for steps in (8, 32, 128, 256) for clip in (0.1, 0.3, 1.0)]
Array = NDArray[Any]


@dataclass(frozen=True)
class Question:
    """A data set and what is public about it."""

    name: str
    delta: float
    classes: tuple[int, ...]
    X: Array
    y: Array
    X_test: Array
    y_test: Array

    def model(self, epsilon: float, seed: int = 0) -> LogisticRegression:
        """Gradient descent; candidates say how many steps, and how they are clipped."""
        return LogisticRegression(
            epsilon=epsilon,
            delta=self.delta,
            feature_norm=1.0,
            classes=self.classes,
            solver="gd",
            random_state=seed,
        )

    def accuracy(self, model: Any) -> float:
        return float(model.score(self.X_test, self.y_test))


def squares(images: Array) -> Array:
    """Means over 4 × 4 pixels, each image divided by its length."""
    rows = images.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(-1, 49) / 255
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True) * (1 + 1e-12), 1e-6))


def questions(rows: int | None = None) -> list[Question]:
    people, digits = adult_features(), mnist()
    labels = digits.y_train.astype(int), digits.y_test.astype(int)
    return [
        Question("Adult", 1e-6, (0, 1), people.X_train[:rows], people.y_train[:rows], people.X_test, people.y_test),
        Question(
            "MNIST",
            1e-5,
            tuple(range(10)),
            squares(digits.X_train[:rows]),
            labels[0][:rows],
            squares(digits.X_test),
            labels[1],
        ),
    ]


# --- what each way costs ----------------------------------------------------------------------------------------------


def searched(question: Question, epsilon: float, seed: int = 0) -> PrivateSearch:
    """A private selection whose runs cost epsilon each, and a tenth of that for the score."""
    return PrivateSearch(question.model(epsilon), SPACE, mean=MEAN, random_state=seed)


def selected_event(question: Question, epsilon: float) -> dp.Event:
    return searched(question, epsilon).operation(question.X.shape[1]).event


def grid_event(question: Question, epsilon: float, *, scored: bool) -> dp.Event:
    """Of all candidates, with a noisy score each or without."""
    runs = [question.model(epsilon).set_params(**params).operation(question.X.shape[1]).event for params in SPACE]
    scores = [Correct(epsilon=epsilon / 10).event] * len(runs) if scored else []
    return functools.reduce(lambda one, other: one + other, [*runs, *scores])


def affordable(question: Question, event: Callable[[Question, float], dp.Event]) -> float:
    """The epsilon of one run for which everything costs TOTAL."""

    def excess(log: float) -> float:
        return dp.epsilon(event(question, math.exp(log)), question.delta) - TOTAL

    return math.exp(brentq(excess, math.log(0.02), math.log(TOTAL), xtol=1e-3)) * (1 - 2e-3)


# --- what each way finds ----------------------------------------------------------------------------------------------


def grid(question: Question, epsilon: float, seed: int, *, noisy: bool) -> float:
    """The test accuracy of the candidate with the best score on the private data."""
    best, accuracy = -math.inf, 0.0
    for number, params in enumerate(SPACE):
        model = question.model(epsilon, 100 * seed + number).set_params(**params).fit(question.X, question.y)
        if noisy:
            private = (model, (question.X, question.y))
            score: float = Correct(epsilon=epsilon / 10).release(private, rng=100 * seed + number + 50).value
        else:
            score = float(model.score(question.X, question.y))
        if score > best:
            best, accuracy = score, question.accuracy(model)
    return accuracy


def study(question: Question, seeds: int) -> list[dict[str, Any]]:
    """A row for each way: claimed and true epsilon, of one run and of all, and accuracies over seeds."""
    name = f"selection-{question.name}-{len(question.X)}"
    grid_runs = functools.partial(grid_event, scored=True)
    paying = _results.resumed(f"{name}-paying", lambda: affordable(question, grid_runs))
    selecting = _results.resumed(f"{name}-selecting", lambda: affordable(question, selected_event))

    def cost(event: dp.Event) -> float:
        return round(dp.epsilon(event, question.delta), 3)

    def default(seed: int) -> float:
        model = question.model(TOTAL, seed).set_params(solver="auto")
        return question.accuracy(model.fit(question.X, question.y))

    def select(epsilon: float, seed: int) -> float:
        return question.accuracy(searched(question, epsilon, seed).fit(question.X, question.y))

    ways: dict[str, tuple[float, float | None, Callable[[int], float]]] = {
        "no search, default settings": (TOTAL, TOTAL, default),
        "naive search": (TOTAL, None, lambda seed: grid(question, TOTAL, seed, noisy=False)),
        "search that pays": (
            paying,
            cost(grid_event(question, paying, scored=True)),
            lambda seed: grid(question, paying, seed, noisy=True),
        ),
        "private selection, same total": (
            selecting,
            cost(selected_event(question, selecting)),
            lambda seed: select(selecting, seed),
        ),
        "private selection, same runs": (
            TOTAL,
            cost(selected_event(question, TOTAL)),
            lambda seed: select(TOTAL, seed),
        ),
    }
    rows = []
    for way, (run, true, accuracy) in ways.items():
        label = f"{name}-{way.replace(', ', '-').replace(' ', '-')}"
        found = [_results.resumed(f"{label}-{seed}", functools.partial(accuracy, seed)) for seed in range(seeds)]
        rows.append(
            {
                "data": question.name,
                "way": way,
                "run": round(run, 3),
                "true": true,
                "models": cost(grid_event(question, TOTAL, scored=False)) if way == "naive search" else None,
                "accuracy": round(float(np.mean(found)), 4),
                "spread": round(float(np.std(found)), 4),
                "seeds": seeds,
            }
        )
    return rows


HEADER = ("way", "data", "epsilon of a run", "true epsilon", "test accuracy", "seeds")


def lines(rows: list[dict[str, Any]]) -> list[list[str]]:
    return [
        [
            row["way"],
            row["data"],
            f"{row['run']:.2f}",
            f"{row['true']:.2f}" if row["true"] else f"none ({row['models']:.2f} without the scores)",
            f"{row['accuracy']:.2%} ± {row['spread']:.2%}",
            str(row["seeds"]),
        ]
        for row in rows
    ]


def plot(rows: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(row["data"] for row in rows))
    with _results.figure("selection", len(names)) as axes:
        for axis, name in zip(axes, names, strict=True):
            for row, mark in zip((row for row in rows if row["data"] == name), "oXvs^", strict=True):
                at = row["true"] or row["models"]
                axis.errorbar(at, row["accuracy"], row["spread"], marker=mark, capsize=3, ls="", label=row["way"])
            axis.set(title=name, xlabel="true epsilon (naive: of its models alone)", ylabel="test accuracy")
        axes[-1].legend(fontsize=6)


def main(quick: bool = False) -> None:
    seeds = 1 if quick else SEEDS
    rows = [row for question in questions(5000 if quick else None) for row in study(question, seeds)]
    _results.show(f"Choosing among {len(SPACE)} settings, mean of {seeds} seeds, add-remove", HEADER, lines(rows), 120)
    _results.save("selection", rows)
    _results.write_table("selection", HEADER, lines(rows))
    plot(rows)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
