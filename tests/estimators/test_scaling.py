"""Private scalers: what they learn, what they cost, and what they say where the noise hides everything."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import discreet as dp
from discreet.estimators import PCA, GaussianNB, KMeans, MinMaxScaler, StandardScaler


def test_means_and_spreads_are_those_of_the_data_and_a_book_is_charged(tmp_path: Any) -> None:
    X = np.random.default_rng(0).normal([1.0, -5.0], [0.5, 2.0], size=(20_000, 2))
    book = dp.Ledger(tmp_path / "budget.db").open("scaling", epsilon=1.0, delta=1e-6)
    scaler = StandardScaler(bounds=([-2, -20], [4, 10]), epsilon=0.9, delta=1e-6, random_state=1).fit(X, book=book)
    assert scaler.mean_ == pytest.approx([1.0, -5.0], abs=0.1)
    assert scaler.scale_ == pytest.approx([0.5, 2.0], rel=0.15)
    assert np.allclose(scaler.inverse_transform(scaler.transform(X[:3])), X[:3])
    assert 0.5 < book.spent().epsilon <= 1.0
    with pytest.raises(dp.BudgetExceeded):
        scaler.fit(X, book=book)


def test_a_missing_number_counts_in_no_feature_but_its_own_and_stays_missing() -> None:
    X = np.full((4000, 2), 3.0)
    X[:2000, 0] = np.nan
    scaler = StandardScaler(bounds=(0, 4), epsilon=5.0, random_state=0).fit(X)
    assert scaler.mean_ == pytest.approx([3.0, 3.0], abs=0.1)
    assert np.isnan(scaler.transform(X[:1])).tolist() == [[True, False]]


def test_extremes_are_found_within_the_bounds_and_outliers_left_beyond() -> None:
    X = np.random.default_rng(0).uniform([10, -1], [30, 1], size=(10_000, 2))
    X[:10] = [128.0, 16.0]  # one in a thousand
    scaler = MinMaxScaler(bounds=([0, -16], [128, 16]), feature_range=(-1, 1), epsilon=1.0, random_state=0).fit(X)
    assert scaler.data_min_ == pytest.approx([10, -1], abs=1.0)
    assert scaler.data_max_ == pytest.approx([30, 1], abs=1.0)
    found = scaler.transform(X)
    assert -1.0 <= found.min() < -0.99
    assert found.max() == 1.0
    assert np.allclose(scaler.inverse_transform(found[20:]), X[20:], atol=1.0)


def test_what_the_noise_hides_is_left_to_the_bounds() -> None:
    few = np.full((20, 1), 0.5)
    scaler = MinMaxScaler(bounds=(0, 1), epsilon=0.05, random_state=3).fit(few)
    assert (scaler.data_min_[0], scaler.data_max_[0]) == (0.0, 1.0)
    with pytest.raises(ValueError, match="lower first"):
        MinMaxScaler(bounds=(0, 1), feature_range=(1, 0)).fit(few)


@pytest.mark.parametrize(
    "estimator", [partial(GaussianNB, classes=(0, 1)), PCA, StandardScaler, MinMaxScaler, partial(KMeans, 2)]
)
def test_bounds_whose_squares_overflow_are_refused_before_the_charge_and_the_widest_are_not(estimator: Any) -> None:
    """Variances of such units were infinite, and the model full of NaN."""
    book = dp.Ledger("sqlite://").open("b", epsilon=1000.0, delta=1e-3)
    y = np.array([0, 1] * 20)
    for bounds in ((-1e160, 1e160), (0.0, 1e-150)):
        with pytest.raises(ValueError, match="change the units"):
            estimator(bounds=bounds, epsilon=1.0).fit(np.zeros((40, 2)), y, book=book)
    assert book.spent().epsilon == 0
    for far in (1e100, 1e-100):
        model = estimator(bounds=(-far, far), epsilon=1.0, random_state=0).fit(np.full((40, 2), far / 2), y, book=book)
        ask = model.predict_proba if hasattr(model, "predict_proba") else model.transform
        assert np.isfinite(ask(np.full((3, 2), far / 3))).all()
