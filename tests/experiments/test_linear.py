"""The linear experiments, made small: they show what they claim."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("sklearn")

from discreet.datasets import adult_features
from discreet.linear import LogisticRegression
from experiments import coordinate_descent, dimension, linear_accuracy


def test_coordinate_descent_gains_where_columns_are_unequal(monkeypatch, tmp_path):
    """Lipschitz clips far ahead of SGD on one big column, behind on balanced ones; the figure is drawn."""
    for name, value in {"PASSES": (10,), "CLIPS": (0.1, 0.3), "STEPS": (1.0,), "SEEDS": 1}.items():
        monkeypatch.setattr(coordinate_descent, name, value)
    found = {design: coordinate_descent.curves(coordinate_descent.data(design), 0.0) for design in ("first big", "balanced")}
    assert found["first big"]["DP-CD, lipschitz clips"][0] < found["first big"]["DP-SGD"][0] / 3
    assert found["balanced"]["DP-CD, lipschitz clips"][0] > found["balanced"]["DP-SGD"][0] / 3
    coordinate_descent.plot(found, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_excess_risk_does_not_grow_with_the_dimension():
    """The mean of two seeds, from 20 to 1,000 dimensions."""
    low, high = (np.mean([dimension.excess(d, seed) for seed in range(2)]) for d in (20, 1000))
    assert high < low + 0.01


def test_default_accuracy_on_small_data(monkeypatch):
    """Breast cancer at epsilon 1, three seeds."""
    monkeypatch.setattr(linear_accuracy, "SEEDS", 3)
    facts = {"feature_norm": 2.0, "bounds": (linear_accuracy.LOWER, linear_accuracy.UPPER)}
    data = linear_accuracy.load_breast_cancer(return_X_y=True)
    row = linear_accuracy.measured("breast cancer", 1.0, 0.94, 1e-5, facts, lambda seed: linear_accuracy.split(data, seed))
    assert row.accuracy > 0.92


def test_default_accuracy_on_adult():
    """One seed at epsilon 0.5; non-private logistic regression is right on 85.2 %."""
    x, y, test, labels = adult_features()
    assert LogisticRegression(epsilon=0.5, delta=1e-6, feature_norm=1.0, random_state=0).fit(x, y).score(test, labels) > 0.844
