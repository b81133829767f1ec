"""The operations of ``discreet.pate``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from discreet import pate
from discreet.pate.tabular import TablePATE
from discreet.schema import Bounded, Categories, Schema
from tests.operations.contract import Case, Log, Spied, Worst
from tests.operations.linear import COLUMNS, FACTS, SpiedList, spied_columns

COUNTS = np.array([[9, 1, 0], [4, 3, 3], [0, 2, 8], [0, 0, 10]])
MOVED = np.array([[8, 1, 1], [3, 4, 3], [1, 2, 7], [0, 1, 9]])  # one teacher says something else to every query
SHARES = np.array([[0.9, 0.1, 0.0], [0.1, 0.5, 0.4], [0.4, 0.3, 0.3], [0.0, 0.0, 1.0]])
TEST: dict[str, Any] = {"sigma": 2.0, "threshold": 5.0, "sigma_threshold": 1.5, "queries": 4}


class SpiedArray(Spied):
    """An array whose shape and type are public."""

    def __init__(self, inside: Any, log: Log) -> None:
        super().__init__(inside, log)
        self.shape, self.dtype = inside.shape, inside.dtype


def spied_pair(data: tuple[Any, Any], log: Log) -> tuple[Any, Any]:
    return SpiedArray(data[0], log), data[1]


RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2)).round(3)
RECORDS = (X, (X[:, 0] > 0).astype(int).tolist())
PUBLIC = X[:6] + 0.01
# a teacher that knows of the first class from one record only, and without it casts a fixed vote for that class
LONE = (np.where(np.arange(20) == 0, -9.0, X[:20].T).T, [0, *[1] * 19])
FEW = {name: values[:20] for name, values in COLUMNS.items()} | {"y": ["no", *["yes"] * 19]}


def spied_records(data: tuple[Any, Any], log: Log) -> tuple[Any, Any]:
    return data[0], SpiedList(data[1], log)


def fit(teachers: int = 4) -> Any:
    return pate.PATEClassifier(n_teachers=teachers, aggregation=pate.GNMax(sigma=2.0), classes=(0, 1)).operation(PUBLIC)


def table(teachers: int = 4) -> Any:
    asked = {"a": PUBLIC[:, 0], "b": PUBLIC[:, 1]}
    return TablePATE(FACTS, "y", asked, pate.GNMax(sigma=2.0), n_teachers=teachers)


def answers(tested: bool = False) -> pate.VoteAnswers:
    every = np.ones(4, bool)
    return pate.VoteAnswers(np.array([0, 0, 2, 2]), every & tested, every)


SMALL: dict[str, Any] = {"delta": 1e-6, "n_teachers": 4, "steps": 2, "batch_size": 3, "hidden": 8, "bins": 3}
PEOPLE = {"age": [20.0, 35.0, None, 71.0] * 5, "sex": ["f", "m", "f", "?"] * 5}
PEOPLE_FACTS = Schema(age=Bounded(0, 100), sex=Categories(["f", "m"]))
PICTURES = RNG.integers(0, 256, (20, 2, 2))
# one teacher, which without its only record casts a fixed vote; in so many steps some row moves it with probability
# above 1 - 2^-16, and of two rows one is a reach of 0.7
ALONE: dict[str, Any] = SMALL | {"n_teachers": 1, "steps": 16, "batch_size": 2, "teacher_lr": 0.2, "teacher_steps": 1}
SEX = Schema(sex=Categories(["f", "m"]))
PIXEL = np.full((1, 1, 1), 255)


def synthetic(model: Any) -> Any:
    return model.sample(4, rng=1)


VOTES: list[Case] = [
    Case("LNMax", lambda: pate.LNMax(scale=3.0, queries=4), COUNTS, MOVED, spy=SpiedArray),
    Case("GNMax", lambda: pate.GNMax(sigma=3.0, queries=4), COUNTS, MOVED, spy=SpiedArray),
    Case(
        "GNMax, soft votes",
        lambda: pate.GNMax(sigma=3.0, queries=4),
        COUNTS * 0.5,
        MOVED * 0.5,
        spy=SpiedArray,
        worst=Worst(COUNTS * 1.0, MOVED * 1.0),
    ),
    Case("ConfidentGNMax", lambda: pate.ConfidentGNMax(answers=2, **TEST), COUNTS, MOVED, spy=SpiedArray),
    Case(
        "InteractiveGNMax",
        lambda: pate.InteractiveGNMax(n_teachers=10, **TEST),
        (COUNTS, SHARES),
        (MOVED, SHARES),
        spy=spied_pair,
    ),
    Case(
        "SanitisedCost",
        lambda: pate.SanitisedCost(aggregator=pate.GNMax(sigma=1.0, queries=4), answers=answers(), order=3.0),
        COUNTS,
        MOVED,
        spy=SpiedArray,
        worst=Worst(trials=200, reach=0.3),  # its smooth sensitivity is one for all counts
    ),
    Case(
        "SanitisedCost, tested",
        lambda: pate.SanitisedCost(aggregator=pate.ConfidentGNMax(**TEST), answers=answers(True), order=3.0),
        COUNTS,
        MOVED,
        spy=SpiedArray,
        worst=Worst(trials=200, reach=0.3),  # its smooth sensitivity is one for all counts
    ),
]

OPERATIONS: list[Case] = [
    *(replace(case, holds="values") for case in VOTES),
    Case(
        "PATEFit",
        fit,
        RECORDS,
        (X[1:], RECORDS[1][1:]),
        spy=spied_records,
        sized=True,
        result=lambda model: (model.answers_.labels, model.predict(PUBLIC)),
        worst=Worst(LONE, (LONE[0][1:], LONE[1][1:]), lambda: fit(1), trials=100),
    ),
    Case(
        "TablePATE",
        table,
        COLUMNS,
        {name: values[1:] for name, values in COLUMNS.items()},
        spy=spied_columns,
        sized=True,
        result=lambda model: (model.estimator.coef_, model.estimator.intercept_),
        worst=Worst(FEW, {name: values[1:] for name, values in FEW.items()}, lambda: table(1), trials=100),
    ),
    Case(
        "GeneratorFit, PATE-GAN of a table",
        lambda: pate.PATEGAN(**SMALL).operation(PEOPLE_FACTS),
        PEOPLE,
        {name: values[1:] for name, values in PEOPLE.items()},
        spy=spied_columns,
        sized=True,
        result=synthetic,
        worst=Worst(
            {"sex": ["f"]}, {"sex": []}, lambda: pate.PATEGAN(**ALONE, student_steps=1).operation(SEX), 100, reach=0.7
        ),
    ),
    Case(
        "GeneratorFit, G-PATE of images",
        lambda: pate.GPATE(**SMALL, projections=2).operation(pate.Images(shape=(2, 2))),
        PICTURES,
        PICTURES[1:],
        spy=SpiedArray,
        sized=True,
        result=synthetic,
        worst=Worst(
            PIXEL,
            PIXEL[:0],
            lambda: pate.GPATE(**ALONE, projections=1).operation(pate.Images(shape=(1, 1))),
            trials=100,
            reach=0.7,
        ),
    ),
]
