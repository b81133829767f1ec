"""Additive regression: what is measured has the sensitivity that is paid for, and small budgets still see lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from discreet.estimators import AdditiveRegressor
from discreet.estimators.sums import COARSE
from discreet.estimators.terms import Term
from discreet.linear import LinearRegression

BOUNDS = {"bounds": (-1, 1), "target_bounds": (-2, 2)}


def bent(records: int, rng: np.random.Generator) -> tuple[Any, Any]:
    X = rng.uniform(-1, 1, size=(records, 4))
    return X, X[:, 0] + 0.5 * np.sin(4 * X[:, 1]) + rng.normal(0, 0.2, records)


@pytest.mark.parametrize("bins", [1, 2, 5, 32, 100])
@pytest.mark.parametrize("l1", [True, False])
def test_no_column_of_any_strategy_is_longer_than_one_and_all_entries_are_whole_parts(bins: int, l1: bool) -> None:
    for strategy in Term(bins, nominal=False, l1=l1)._strategies():
        norms = np.abs(strategy).sum(axis=0) if l1 else np.sqrt((strategy**2).sum(axis=0))
        assert norms.max() <= 1.0
        np.testing.assert_array_equal(strategy * COARSE, np.rint(strategy * COARSE))


def test_much_noise_measures_a_line_and_little_noise_every_bin() -> None:
    term, counts = Term(32, nominal=False, l1=False), np.append(np.full(32, 300.0), 0.0)
    rows = [int(term.strategy(counts, noise, 0.0).any(axis=1).sum()) for noise in (3000.0, 20.0, 1.0)]
    assert rows[0] <= 4 < rows[1] < rows[2] == 33


def test_a_part_is_learnt_from_a_strategys_sums_and_nothing_from_noise() -> None:
    rng, counts = np.random.default_rng(0), np.append(np.full(32, 300.0), 0.0)
    term, line = Term(32, nominal=False, l1=False), np.append(np.linspace(-0.3, 0.3, 32), 0.0)
    strategy = term.strategy(counts, 100.0, 0.0)
    learnt = term.learn(strategy, counts, strategy @ (counts * line) + 100 * rng.normal(size=33), 100.0, 0.0)
    assert np.abs(learnt - line).max() < 0.1
    nothing = term.learn(strategy, counts, 100 * rng.normal(size=33), 100.0, 0.0)
    assert np.abs(nothing).max() < 0.05


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_it_is_no_worse_than_a_linear_model_on_a_line(epsilon: float) -> None:
    """Before: 0.6 below at epsilon 0.1. Seeds are fixed, so that nothing is left to luck."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(12_000, 6))
    y = X @ np.linspace(0.5, -0.5, 6) + rng.normal(0, 0.2, 12_000)
    gaps = []
    for seed in range(3):
        asked: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-5, "target_bounds": (-2, 2), "random_state": seed}
        ours = AdditiveRegressor(bounds=(-1, 1), **asked).fit(X[:8000], y[:8000]).score(X[8000:], y[8000:])
        linear = LinearRegression(feature_norm=6**0.5, **asked).fit(X[:8000], y[:8000]).score(X[8000:], y[8000:])
        gaps.append(ours - linear)
    assert np.mean(gaps) > -0.03


@pytest.mark.parametrize("delta", [None, 1e-5])
def test_it_finds_what_bends(delta: float | None) -> None:
    X, y = bent(9000, np.random.default_rng(2))
    model = AdditiveRegressor(epsilon=1.0, delta=delta, random_state=0, **BOUNDS).fit(X[:6000], y[:6000])
    assert model.score(X[6000:], y[6000:]) > 0.85  # a line alone: 0.55


@pytest.mark.parametrize("name", ["ridge", "smoothing"])
def test_no_parameter_is_accepted_and_ignored(name: str) -> None:
    """At epsilon 0.1 neither changed anything."""
    X, y = bent(2000, np.random.default_rng(3))
    scores = [
        AdditiveRegressor(epsilon=0.1, delta=1e-5, random_state=0, **BOUNDS, **{name: value}).fit(X, y).predict(X)
        for value in (0.1, 100.0)
    ]
    assert np.abs(scores[0] - scores[1]).max() > 0.01


def test_a_missing_target_counts_nowhere_and_a_missing_feature_has_a_bin() -> None:
    X, y = bent(3000, np.random.default_rng(4))
    X[::7, 0], y[::5] = np.nan, np.nan
    model = AdditiveRegressor(epsilon=1e4, random_state=0, **BOUNDS).fit(X, y)
    known = np.isfinite(X).all(axis=1) & np.isfinite(y)
    assert model.score(X[known], y[known]) > 0.85
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("noise", [1e-6, 1e-3, 1.0])
def test_no_budget_and_no_penalty_makes_a_fit_fail(noise: float) -> None:
    """A million records and hardly any noise or prior: the matrix to be solved with was singular after the charge."""
    rng, counts = np.random.default_rng(5), np.append(np.full(8, 125_000.0), 1e-9)
    term = Term(8, nominal=False, l1=True, bent=2.0**20, variance=2.0**20)
    for _ in range(20):
        strategy = term.strategy(counts, noise, 0.0)
        learnt = term.learn(strategy, counts, strategy @ (counts * rng.normal(size=9)), noise, 0.0)
        assert np.isfinite(learnt).all()
