"""The operations of ``discreet.linear``."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.linear import LinearRegression, LogisticRegression
from discreet.linear.inference import Inference
from discreet.linear.tabular import TableModel
from discreet.schema import Bounded, Categories, Declaration, Schema
from tests.operations.contract import Case, Log, Worst

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(60, 2)).round(3)
DATA = (X.tolist(), (X[:, 0] > 0).astype(int).tolist())
FEWER = (DATA[0][1:], DATA[1][1:])
COLUMNS = {
    "a": X[:, 0].tolist(),
    "b": X[:, 1].tolist(),
    "who": list(range(60)),
    "y": ["no" if x < 0 else "yes" for x in X[:, 0]],
}
FACTS = Declaration(Schema(a=Bounded(-1, 1), b=Bounded(-1, 1), y=Categories(["no", "yes"])), unit="who")
BOUNDS = (-1.0, [1.0, 1.0])  # which say that there are two columns
CORNER = ([[1.0, 1.0]] * 6, [1] * 6)  # a record that is as large as bounds allow, and one less of it
LESS = (CORNER[0][1:], CORNER[1][1:])
MANY = (DATA[0] * 20, DATA[1] * 20)
ONE_MORE = ([*MANY[0], [1.0, 1.0]], [*MANY[1], 1])


class SpiedList(list[Any]):
    """A list that notes when its records are read."""

    def __init__(self, inside: Any, log: Log) -> None:
        super().__init__(inside)
        self._log = log

    def __iter__(self) -> Any:
        self._log.append("read")
        return super().__iter__()


def spied(data: tuple[Any, Any], log: Log) -> tuple[Any, Any]:
    return SpiedList(data[0], log), SpiedList(data[1], log)


def spied_columns(data: dict[str, Any], log: Log) -> dict[str, Any]:
    return {name: SpiedList(values, log) for name, values in data.items()}


def learned(model: Any) -> tuple[Any, ...]:
    return model.coef_, model.intercept_


OPERATIONS: list[Case] = [
    Case(
        "Fit, logistic",
        lambda: LogisticRegression(bounds=BOUNDS, solver_options={"steps": 4}, classes=(0, 1)).operation(),
        DATA,
        FEWER,
        spy=spied,
        sized=True,
        result=learned,
        worst=Worst(trials=400),
    ),
    Case(
        "Fit, squares, pure",
        lambda: LinearRegression(target_bounds=(-1, 1), bounds=BOUNDS, delta=0.0).operation(2),
        DATA,
        FEWER,
        spy=spied,
        sized=True,
        result=learned,
        worst=Worst(CORNER, LESS, trials=400, reach=0.95),
    ),
    Case(
        "Inference",
        lambda: Inference(LinearRegression(target_bounds=(-1, 1), bounds=BOUNDS), 2),
        DATA,
        FEWER,
        spy=spied,
        sized=True,
        result=lambda found: (found.estimate, found.lower),
        worst=Worst(ONE_MORE, MANY, trials=100, read=lambda found: np.nan_to_num(found.estimate)),
    ),
    Case(
        "TableFit",
        lambda: TableModel(FACTS, "y", epsilon=1.0).operation(),
        COLUMNS,
        {name: values[1:] for name, values in COLUMNS.items()},
        spy=spied_columns,
        sized=True,
        result=lambda model: learned(model.estimator),
        worst=Worst(trials=100),
    ),
    Case(
        "TableFit, scored",
        lambda: TableModel(FACTS, "y", epsilon=1.0, score_share=0.5).operation(),
        COLUMNS,
        {name: values[1:] for name, values in COLUMNS.items()},
        spy=spied_columns,
        sized=True,
        result=lambda model: (*learned(model.estimator), model.score.loss, model.score.rows),
        worst=Worst(trials=100),
    ),
]
