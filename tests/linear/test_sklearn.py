"""scikit-learn's own contract, with declared classes and a large epsilon; what privacy forbids is listed,
with the reason.
"""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.utils import estimator_checks

from discreet.linear import (
    CustomLoss,
    ElasticNet,
    Lasso,
    LinearClassifier,
    LinearRegression,
    LinearRegressor,
    LinearSVC,
    LogisticRegression,
    Ridge,
)
from tests import sklearn_contract as contract

PUBLIC = {"epsilon": 1e4, "delta": 1e-2, "bounds": (-6.0, 6.0)}


def log_cosh(m, y):
    return np.log(np.cosh(m - y))


def log_cosh_slope(m, y):
    return np.tanh(m - y)


SMOOTH = CustomLoss(log_cosh, log_cosh_slope, curvature=1.0)
TARGETS = {"target_bounds": (-3.0, 3.0)}
ESTIMATORS = [
    LogisticRegression(classes=(0, 1, 2), **PUBLIC),
    LinearSVC(classes=(0, 1, 2), **PUBLIC),
    LinearRegression(**TARGETS, **PUBLIC),
    Ridge(**TARGETS, **PUBLIC),
    Lasso(**TARGETS, alpha=0.01, **PUBLIC),
    ElasticNet(**TARGETS, alpha=0.01, **PUBLIC),
    LinearRegressor(SMOOTH, **TARGETS, **PUBLIC),
]

EVERYONE = {
    "check_dtype_object": contract.OBJECTS,
    "check_estimators_empty_data_messages": contract.EMPTY,
    "check_supervised_y_no_nan": contract.NAN_TARGETS,
}
CLASSIFIERS = {
    "check_classifiers_regression_target": contract.OTHER_LABELS,
    "check_classifiers_classes": contract.TEXT_LABELS,
    "check_classifiers_train": contract.TWO_OF_THREE,
}
REGRESSORS = {"check_regressors_train": contract.list_of(10)}
PROBABILITIES = {
    "check_decision_proba_consistency": contract.TWO_CLASSES,
    "check_estimator_sparse_array": contract.FOUR_CLASSES,
    "check_estimator_sparse_matrix": contract.FOUR_CLASSES,
}


def refused(estimator):
    return (
        EVERYONE
        | (CLASSIFIERS if is_classifier(estimator) else REGRESSORS)
        | (PROBABILITIES if hasattr(estimator, "predict_proba") else {})
    )


@contract.contract(ESTIMATORS, refused)
def test_the_contract_of_scikit_learn(estimator, check, reason):
    contract.holds(estimator, check, reason)


BINARY = [
    LogisticRegression(**PUBLIC, classes=(0, 1)),
    LinearSVC(**PUBLIC, classes=(0, 1)),
    LinearClassifier(SMOOTH, **PUBLIC, classes=(0, 1)),
]


@pytest.mark.parametrize("estimator", BINARY, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize(
    "check",
    [
        "check_decision_proba_consistency",
        "check_estimators_pickle",
        "check_fit_idempotent",
        "check_methods_subset_invariance",
        "check_estimators_dtypes",
    ],
)
def test_checks_that_take_two_classes(estimator, check):
    getattr(estimator_checks, check)(type(estimator).__name__, clone(estimator))


@pytest.mark.parametrize("classes", [(0, 1), (0, 1, 2), ("no", "yes"), ("a", "b", "c")])
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_training_with_declared_classes(kind, classes):
    """What check_classifiers_train asks, for declared labels: accuracy, shapes of scores,
    consistency of predictions.
    """
    rng = np.random.default_rng(0)
    at = rng.integers(0, len(classes), 600)
    X = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 3.0]])[at] + 0.3 * rng.normal(size=(600, 2))
    y = np.asarray(classes)[at]
    model = kind(classes=classes, epsilon=100.0, delta=1e-5, bounds=(-4, 4), random_state=0).fit(X, y)
    assert list(model.classes_) == list(classes)
    assert model.score(X, y) > 0.9
    scores = model.decision_function(X)
    assert scores.shape == ((600,) if len(classes) == 2 else (600, len(classes)))
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(X)
        assert p.shape == (600, len(classes))
        assert np.allclose(p.sum(axis=1), 1)
        assert (p.argmax(axis=1) == [list(classes).index(label) for label in model.predict(X)]).mean() > 0.999
        assert np.allclose(model.predict_log_proba(X), np.log(p))
