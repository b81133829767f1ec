"""Choosing among models that are there already, and the estimator that searches."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet import mechanisms, tuning
from discreet import statistics as st
from discreet.linear import LinearRegression, LogisticRegression


def test_the_generalised_mechanism_compares_by_quotients_that_a_record_moves_by_one() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        reach = rng.uniform(0.1, 50, 5)
        mechanism = mechanisms.GeneralizedExponential(sensitivities=tuple(reach), epsilon=1.0)
        scores = rng.normal(0, 100, 5)
        moved = scores + rng.choice([-1, 1], 5) * reach
        exact = [mechanism._comparisons(x) for x in (scores, moved)]
        assert max(abs(a - b) for a, b in zip(*exact, strict=True)) <= 1 + Fraction(1, 10**9)
        assert max(exact[0]) == 0


def test_one_candidate_of_large_sensitivity_does_not_spoil_the_choice() -> None:
    """A plain mechanism at the largest sensitivity would choose evenly."""
    mechanism = mechanisms.GeneralizedExponential(sensitivities=(1.0, 1.0, 1e4), epsilon=1.0)
    chosen = [mechanism.release([0.0, 100.0, 100.0], rng=seed).value for seed in range(200)]
    assert chosen.count(1) > 190
    plain = mechanisms.Exponential(sensitivity=1e4, epsilon=1.0)
    assert [plain.release([0.0, 100.0, 100.0], rng=seed).value for seed in range(200)].count(1) < 120


def test_exponential_gives_a_model_and_charges_for_the_choice(tmp_path: Any) -> None:
    book = dp.Ledger(tmp_path / "budget.db").open("choice", epsilon=1.0, delta=0.0)
    chosen = tuning.exponential(["a", "b"], [0.0, 80.0], sensitivity=1.0, epsilon=0.5, book=book, rng=1)
    assert chosen.value == "b"
    assert book.spent().epsilon == pytest.approx(0.5, rel=1e-6)
    assert tuning.exponential(["a", "b"], [0.0, 80.0], sensitivity=[1.0, 2.0], epsilon=0.5, rng=1).value == "b"
    with pytest.raises(ValueError, match="one score each"):
        tuning.exponential(["a", "b"], [0.0], sensitivity=1.0, epsilon=0.4, book=book)
    with pytest.raises(ValueError, match="sensitivity has 3 entries"):
        tuning.exponential(["a", "b"], [0.0, 1.0], sensitivity=[1, 1, 1], epsilon=0.4, book=book)
    assert book.spent().epsilon == pytest.approx(0.5, rel=1e-6)


def test_public_data_chooses_without_a_charge() -> None:
    public = np.random.default_rng(0).uniform(0, 1, 2000)

    def score(mean: float, values: Any) -> float:
        return -abs(mean - 0.5)

    best = tuning.from_public(
        lambda p: st.Mean(bounds=(0, p["high"]), epsilon=1.0), {"high": [0.1, 1.0]}, public, score=score, rng=1
    )
    assert best == {"high": 1.0}
    with pytest.raises(ValueError, match="Every candidate failed"):
        tuning.from_public(lambda p: st.Mean(bounds=(0, 1), epsilon=1.0), [{}], public, score=lambda m, v: float("nan"))


def data(n: int = 1500) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).uniform(-1, 1, (n, 3))
    return X, (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)


def test_the_search_is_an_estimator_that_charges_once(tmp_path: Any) -> None:
    X, y = data()
    book = dp.Ledger(tmp_path / "budget.db").open("search", epsilon=4.0, delta=1e-6)
    model = LogisticRegression(epsilon=1.0, delta=0, bounds=(-1, 1), classes=(0, 1))
    search = tuning.PrivateSearch(model, {"regularization": [0.01, 0.1]}, mean=5, random_state=1)
    search.fit(X, y, book=book)
    assert search.score(X, y) > 0.8
    assert search.best_params_["regularization"] == search.best_estimator_.regularization
    assert book.spent().epsilon <= 2.2
    assert len(book.entries()) == 2
    assert search.event_ == search.operation(3).event


def test_the_search_serves_regressions_by_their_squared_errors() -> None:
    X, _ = data()
    y = 2 * X[:, 0] - X[:, 2]
    model = LinearRegression(epsilon=3.0, delta=1e-6, bounds=(-1, 1), target_bounds=(-3, 3))
    search = tuning.PrivateSearch(model, {"regularization": [1e-4, 100.0]}, mean=8, score_epsilon=1.0, random_state=4)
    assert search.fit(X, y).score(X, y) > 0.8


def test_a_parameter_that_does_not_exist_is_refused_before_the_charge(tmp_path: Any) -> None:
    book = dp.Ledger(tmp_path / "budget.db").open("search", epsilon=4.0, delta=1e-6)
    search = tuning.PrivateSearch(LogisticRegression(epsilon=1.0, bounds=(-1, 1), classes=(0, 1)), {"penalty": [1]})
    with pytest.raises(ValueError, match="Invalid parameter 'penalty'"):
        search.fit(*data(50), book=book)
    assert book.spent().epsilon == 0
