"""One base and one fit for all estimators: parameters are declared once and seen everywhere, noise is made once."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from discreet import Ledger, estimators, linear, mechanisms, pate
from discreet.fitting import Fit, PrivateEstimator
from discreet.linear import problem

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


CLASSIFIERS: list[Any] = [kind for kind in ESTIMATORS if "classes" in inspect.signature(kind).parameters]


@pytest.mark.parametrize("labels", [(0, 1), (1, 2), (-1, 1), ("no", "yes"), (False, True)], ids=str)
@pytest.mark.parametrize("kind", [*CLASSIFIERS, pate.PATEClassifier])
def test_a_classifier_without_classes_is_refused_before_the_charge_with_the_line_to_write(kind, labels) -> None:
    """The labels are private, and none is taken for granted: others would be dropped without a word."""
    book = Ledger("sqlite://").open("b", epsilon=9.0, delta=1e-3)
    model = kind(**{"loss": linear.losses.CustomLoss(np.add, np.add)} if kind is linear.LinearClassifier else {})
    more = {"public": X} if kind is pate.PATEClassifier else {}
    if not more:
        model.set_params(bounds=(-1, 1))
    y = np.array(labels)[Y]
    for targets in (y, y.tolist(), pd.Series(y), pd.Series(y).astype("category")):
        with pytest.raises(ValueError, match=r"classes=\('no', 'yes'\)"):
            model.fit(X, targets, book=book, **more)
    assert book.spent().entries == 0


@pytest.mark.parametrize("labels", [(1, 2), (-1, 1), ("no", "yes"), (False, True)], ids=str)
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_a_classifier_learns_the_labels_that_it_was_told(kind, labels) -> None:
    if kind is linear.LinearClassifier:
        pytest.skip("takes a loss of one's own")
    x = np.where(RNG.random((4000, 2)) < 0.5, -1.0, 1.0)
    y = np.array(labels)[(x[:, 0] > 0).astype(int)]
    model = kind(epsilon=50.0, bounds=(-1, 1), classes=labels, random_state=0).fit(x, y)
    assert (model.predict(x) == y).mean() > 0.95


def test_a_model_with_a_penalty_of_its_own_takes_no_other() -> None:
    for kind in (linear.Ridge, linear.Lasso, linear.ElasticNet):
        assert kind(3.0).alpha == 3.0
        with pytest.raises(TypeError, match="regularization"):
            kind(regularization=1.0)


@pytest.mark.parametrize(("solver", "most"), [("gd", 5), ("sgd", 2), ("svrg", 3), ("output", 1)])
def test_noise_is_calibrated_once(solver: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A count and the noise of each sum; with settings that follow the count, once more: not at every look."""
    problem._gaussian.cache_clear()  # of the tests before this one
    made = []
    ordinary = mechanisms.Gaussian.__post_init__
    monkeypatch.setattr(
        mechanisms.Gaussian, "__post_init__", lambda self, *given: (made.append(self), ordinary(self, *given))[1]
    )
    linear.LogisticRegression(
        epsilon=1.0, delta=1e-6, feature_norm=1.0, solver=solver, random_state=0, classes=(0, 1)
    ).fit(X, Y)
    assert 1 <= len(made) <= most


def test_both_rooms_fit_on_the_same_path() -> None:
    for model in (
        linear.LogisticRegression(feature_norm=1.0, classes=(0, 1)),
        estimators.GaussianNB(bounds=(-1, 1), classes=(0, 1)),
    ):
        fit = model.operation(n_features=3)
        assert type(fit) is Fit
        assert fit.plan is fit.plan
        assert fit.release((X, Y), rng=1).event == fit.event
