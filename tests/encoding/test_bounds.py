"""Bounds of features are given unmistakably: by name, by pairs, by sides; what could be two things is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import discreet as dp
from discreet.encoding.bounds import declared_features, per_feature
from discreet.estimators import GaussianNB
from discreet.linear import LinearRegression, LogisticRegression

NAMES = ["hours", "age"]


@pytest.mark.parametrize(
    ("bounds", "features", "low", "high"),
    [
        ((0, 1), 3, [0, 0, 0], [1, 1, 1]),
        ((0, [1, 2]), 2, [0, 0], [1, 2]),
        ([(0, 10), (50, 99), (1, 2)], 3, [0, 50, 1], [10, 99, 2]),
        ([(0, 10)], 1, [0], [10]),
        (([18, -0.5, 0], [90, 2.5, 1]), 3, [18, -0.5, 0], [90, 2.5, 1]),
        (([18, -0.5], [90, 2.5]), 2, [18, -0.5], [90, 2.5]),  # (18, -0.5) is no pair
        ([(0, 5), (-1, 3)], 2, [0, -1], [5, 3]),  # nor is (0, -1)
        ((np.array([0.0, 10.0]), np.array([50.0, 99.0])), 2, [0, 10], [50, 99]),
        ({"age": (18, 90), "hours": (0, 99)}, 2, [0, 18], [99, 90]),
        ({0: (0, 10), 1: (50, 99)}, 2, [0, 50], [10, 99]),
    ],
    ids=str,
)
def test_every_form_is_read_as_it_was_meant(bounds: Any, features: int, low: list[float], high: list[float]) -> None:
    sides = per_feature(bounds, features, NAMES if features == 2 else None)
    assert [side.tolist() for side in sides] == [low, high]
    assert declared_features(bounds) in (features, None)


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        ([(0, 10), (50, 99)], "one pair per feature, or all lower and then all upper bounds"),
        (np.array([[0, 10], [50, 99]]), "one pair per feature, or all lower and then all upper bounds"),
        ({"age": (18, 90)}, "no entry for the column 'hours'"),
        ({"age": (18, 90), "hours": (0, 99), "sex": (0, 1)}, "an entry for 'sex', which is no column"),
        ({"age": (18, 90), "hours": 5}, "must be finite"),
        ({"age": (90, 18), "hours": (0, 1)}, "each lower one below its upper one"),
        ([(0, 1), (0, 1), (0, 1)], "3 entries, but the data has 2"),
        (5, "must be finite"),
        ("ab", "must be finite"),
        ([[(0, 1)], [(0, 1)]], "must be finite"),
        ((0, float("inf")), "must be finite"),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "model",
    [LogisticRegression(epsilon=1.0, classes=(0, 1)), GaussianNB(epsilon=1.0, classes=(0, 1))],
    ids=lambda model: type(model).__name__,
)
def test_what_is_no_bounds_or_could_be_two_is_refused_before_the_charge(model: Any, bounds: Any, reason: str) -> None:
    import pandas as pd

    book = dp.Ledger("sqlite://").open("b", epsilon=5.0, delta=1e-3)
    X = pd.DataFrame({"hours": [1.0, 2.0], "age": [20.0, 30.0]})
    with pytest.raises(ValueError, match=reason):
        clone(model).set_params(bounds=bounds).fit(X, [0, 1], book=book)
    assert book.spent().epsilon == 0


def test_names_reach_their_columns_whatever_their_order() -> None:
    import pandas as pd

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"hours": rng.uniform(0, 99, 4000), "age": rng.uniform(18, 90, 4000)})
    y = X["hours"] / 2 + X["age"]
    model = LinearRegression(
        epsilon=20.0, bounds={"age": (18, 90), "hours": (0, 99)}, target_bounds=(0, 150), random_state=0
    ).fit(X, y)
    assert model.coef_ == pytest.approx([0.5, 1.0], abs=0.05)
    assert model.predict(X[["hours", "age"]]) == pytest.approx(y.to_numpy(), abs=3)


def test_a_regression_without_target_bounds_says_so_before_the_charge() -> None:
    """It used to take (-1, 1), and predicted 0.9997 hours a week."""
    book = dp.Ledger("sqlite://").open("b", epsilon=5.0, delta=1e-3)
    with pytest.raises(ValueError, match="target_bounds is None, but must be declared"):
        LinearRegression(epsilon=1.0, bounds=(0, 1)).fit(np.zeros((5, 2)), np.full(5, 40.0), book=book)
    assert book.spent().epsilon == 0
    assert LinearRegression(epsilon=1.0, bounds=(0, 1)).privacy_event(2) is not None  # the cost needs none
