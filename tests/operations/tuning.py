"""The operations of ``discreet.tuning``."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet import statistics as st
from discreet import tuning
from tests.operations.contract import Case, Log, Spied, Worst

VALUES = [0.2, 0.4, 0.9, 0.1]


class Near:
    """Scores a released mean by how many records lie within a tenth of it."""

    unit = "one record"

    def __init__(self) -> None:
        self._inside = st.Count(epsilon=0.5)

    @property
    def event(self) -> Any:
        return self._inside.event

    def release(self, data: Any = None, rng: Any = None) -> Any:
        mean, records = data
        return self._inside.release([x for x in np.asarray(records).tolist() if abs(x - mean) < 0.1], rng)


def search(**options: Any) -> tuning.Selection:
    space = [{"high": 1.0}, {"high": 2.0}]
    return tuning.Selection(
        train=lambda params: st.Mean(bounds=(0.0, params["high"]), epsilon=1.0), space=space, score=Near(), **options
    )


def told(chosen: tuning.Chosen) -> Any:
    return {**chosen.params, "model": chosen.model, "score": chosen.score}


class Above:
    """A model that predicts whether the first feature is positive."""

    def predict(self, X: Any) -> Any:
        return (np.asarray(X)[:, 0] > 0).astype(float)


ROWS, TARGETS = np.array([[1.0], [-1.0], [2.0]]), np.array([1.0, 0.0, 0.0])
SCORED, OTHER = (Above(), (ROWS, TARGETS)), (Above(), (ROWS[1:], TARGETS[1:]))
WRONG = Worst(SCORED, (Above(), (ROWS[:-1], TARGETS[:-1])))  # without the record that is predicted wrongly


def spied_targets(data: Any, log: Log) -> Any:
    model, (rows, targets) = data
    return model, (rows, Spied(targets, log))


OPERATIONS = [
    Case("Correct", lambda: tuning.Correct(epsilon=1.0), SCORED, OTHER, spy=spied_targets),
    Case(
        "squared errors",
        lambda: tuning.squared_errors((0.0, 1.0), epsilon=1.0),
        SCORED,
        OTHER,
        spy=spied_targets,
        worst=WRONG,
        calls=True,
    ),
    Case(
        "Total",
        lambda: tuning.Total(values=lambda model, data: -np.abs(data[1]), bounds=(-1.0, 0.0), epsilon=1.0),
        SCORED,
        OTHER,
        spy=spied_targets,
        calls=True,
    ),
    Case("Selection", lambda: search(mean=3.0), VALUES, VALUES[1:], result=told, worst=Worst(trials=200)),
    # of mean 30: that it makes no run, and so reads nothing, has probability 1e-13
    Case(
        "Selection, Poisson",
        lambda: search(mean=30.0, law="poisson", default=0.0),
        VALUES,
        VALUES[1:],
        result=told,
        worst=Worst(
            make=lambda: search(mean=1.0, law="poisson", default=0.0),
            trials=200,
            read=lambda chosen: chosen.model,
            reach=0.0,  # it may make no run at all
        ),
    ),
    Case(
        "Selection, capped",
        lambda: search(mean=2.0, cap=4),
        VALUES,
        VALUES[1:],
        result=told,
        worst=Worst(make=lambda: search(mean=1.5, cap=8), trials=100),
    ),
]
