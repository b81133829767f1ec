"""The operations of ``discreet.estimators``: one fit, of every kind of plan."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.estimators import (
    PCA,
    AdditiveClassifier,
    AdditiveRegressor,
    DecisionTreeClassifier,
    GaussianNB,
    KMeans,
    MinMaxScaler,
    RandomForestClassifier,
    StandardScaler,
)
from tests.operations.contract import Case, Worst
from tests.operations.linear import BOUNDS, CORNER, DATA, FEWER, LESS, SpiedList, spied


def _learned(model: Any) -> tuple[Any, ...]:
    grid = np.stack(np.meshgrid([-0.8, 0.1, 0.7], [-0.8, 0.1, 0.7]), axis=-1).reshape(-1, 2)
    return tuple(getattr(model, name)(grid) for name in ("predict", "transform") if hasattr(model, name))


def _case(name: str, estimator: Any, reach: float = 0.99) -> Case:
    """With a record in the corner of the bounds for an audit: it moves the sums by as much as any does."""
    supervised = estimator.supervised
    corner, less = (CORNER, LESS) if supervised else (CORNER[0], LESS[0])
    return Case(
        name,
        estimator.operation,
        DATA if supervised else DATA[0],
        FEWER if supervised else FEWER[0],
        spy=spied if supervised else SpiedList,
        sized=True,
        result=_learned,
        worst=Worst(corner, less, trials=200, reach=reach),
    )


TARGETS = {"target_bounds": (0.0, 1.0)}
OPERATIONS: list[Case] = [
    _case("Fit, naive Bayes", GaussianNB(bounds=BOUNDS, classes=(0, 1))),
    _case("Fit, naive Bayes, pure", GaussianNB(bounds=BOUNDS, delta=0.0, classes=(0, 1))),
    _case("Fit, components", PCA(bounds=BOUNDS), reach=0.95),
    _case("Fit, k-means", KMeans(2, n_iter=2, bounds=BOUNDS)),
    _case("Fit, additive", AdditiveClassifier(bounds=BOUNDS, bins=4, rounds=2, classes=(0, 1))),
    _case("Fit, additive, three classes", AdditiveClassifier(bounds=BOUNDS, bins=4, rounds=1, classes=(0, 1, 2))),
    _case("Fit, additive regression", AdditiveRegressor(bounds=BOUNDS, bins=4, rounds=2, **TARGETS)),
    _case("Fit, tree", DecisionTreeClassifier(bounds=BOUNDS, bins=4, max_depth=2, classes=(0, 1))),
    _case("Fit, standard scaler", StandardScaler(bounds=BOUNDS)),
    _case("Fit, range scaler", MinMaxScaler(bounds=BOUNDS)),
    _case("Fit, forest", RandomForestClassifier(bounds=BOUNDS, bins=4, max_depth=2, n_estimators=2, classes=(0, 1))),
    _case(
        "Fit, forest of its own depth", RandomForestClassifier(bounds=BOUNDS, bins=4, n_estimators=2, classes=(0, 1))
    ),
]
