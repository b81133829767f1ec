"""One base and one fit for all estimators: parameters are declared once and seen everywhere, noise is made once."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from discreet import estimators, linear, mechanisms
from discreet.fitting import Fit, PrivateEstimator

ESTIMATORS: list[Any] = [
    kind
    for room in (linear, estimators)
    for kind in vars(room).values()
    if isinstance(kind, type) and issubclass(kind, PrivateEstimator)
]
SHARED = {"epsilon", "delta", "bounds", "adjacency", "unit", "random_state"}
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(300, 3))
Y = (X[:, 0] > 0).astype(int)


def test_every_estimator_is_found() -> None:
    assert len(ESTIMATORS) == 17


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_a_constructor_says_each_parameter_its_type_and_its_default(kind: Any) -> None:
    signature = inspect.signature(kind)
    assert signature.parameters.keys() >= SHARED
    for name, parameter in signature.parameters.items():
        assert parameter.annotation is not inspect.Parameter.empty
        assert parameter.kind is parameter.KEYWORD_ONLY or name in ("alpha", "loss", "n_clusters")
        assert parameter.default is not inspect.Parameter.empty or name == "loss"


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_scikit_learn_sets_copies_and_shows_what_a_constructor_was_given(kind: Any) -> None:
    needed = {"loss": object()} if "loss" in inspect.signature(kind).parameters else {}
    bounds = (np.zeros(2), np.ones(2))
    model = kind(epsilon=0.25, bounds=bounds, **needed)
    assert model.get_params().keys() == inspect.signature(kind).parameters.keys()
    assert model.bounds is bounds  # stored, and nothing else
    assert clone(model, safe=False).set_params(epsilon=0.5).epsilon == 0.5
    assert "epsilon=0.25" in repr(model)
    assert model != kind(epsilon=0.25, bounds=bounds, **needed)  # an estimator is itself
    with pytest.raises(TypeError, match="epsilom"):
        kind(epsilom=1.0, **needed)
    with pytest.raises(TypeError, match="write epsilon="):
        kind(target_epsilon=1.0, **needed)


def test_a_model_with_a_penalty_of_its_own_takes_no_other() -> None:
    for kind in (linear.Ridge, linear.Lasso, linear.ElasticNet):
        assert kind(3.0).alpha == 3.0
        with pytest.raises(TypeError, match="regularization"):
            kind(regularization=1.0)


@pytest.mark.parametrize(("solver", "most"), [("gd", 5), ("sgd", 2), ("svrg", 3), ("output", 1)])
def test_noise_is_calibrated_once(solver: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A count and the noise of each sum; with settings that follow the count, once more: not at every look."""
    made = []
    ordinary = mechanisms.Gaussian.__post_init__
    monkeypatch.setattr(
        mechanisms.Gaussian, "__post_init__", lambda self, *given: (made.append(self), ordinary(self, *given))[1]
    )
    linear.LogisticRegression(epsilon=1.0, delta=1e-6, feature_norm=1.0, solver=solver, random_state=0).fit(X, Y)
    assert 1 <= len(made) <= most


def test_both_rooms_fit_on_the_same_path() -> None:
    for model in (linear.LogisticRegression(feature_norm=1.0), estimators.GaussianNB(bounds=(-1, 1))):
        fit = model.operation(n_features=3)
        assert type(fit) is Fit
        assert fit.plan is fit.plan
        assert fit.release((X, Y), rng=1).event == fit.event
