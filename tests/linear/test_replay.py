"""Every solver touches the data only where it says, and as gently: record-and-replay on hostile neighbours."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from discreet.auditing import ReplayError
from discreet.auditing import replay as replayed
from discreet.auditing.strategies import awkward_floats, neighbours
from discreet.linear import (
    CustomLoss,
    Lasso,
    LinearClassifier,
    LinearRegression,
    LinearSVC,
    LogisticRegression,
    kernels,
)
from discreet.mechanisms import Gaussian
from discreet.release import Release

pytestmark = pytest.mark.filterwarnings("ignore:Neither feature_norm nor bounds")
brief = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
entries = st.one_of(awkward_floats(), st.sampled_from([None, "text", 10**400]))
classified = st.tuples(entries, awkward_floats(), st.sampled_from([0, 1, 2, 7, math.nan, "text"]))
measured = st.tuples(entries, awkward_floats(), st.one_of(awkward_floats(), st.sampled_from(["text", None, 10**400])))
ODD = CustomLoss(lambda m, y: np.abs(m - y), lambda m, y: np.where(m > y, np.inf, m - y))

FEW = {"steps": 4}
CLASSIFIERS = {
    "gd": LogisticRegression(solver="gd", solver_options=FEW, classes=(0, 1)),
    "gd, three classes": LogisticRegression(solver="gd", solver_options=FEW, classes=(0, 1, 2)),
    "gd, pure": LogisticRegression(solver="gd", solver_options=FEW, delta=0.0, classes=(0, 1)),
    "gd, text labels": LogisticRegression(solver="gd", solver_options=FEW, classes=("text", "other")),
    "gd, bounds": LogisticRegression(solver="gd", solver_options=FEW, bounds=(-3.0, [4.0, 5.0]), classes=(0, 1)),
    "gd, hinge": LinearSVC(solver="gd", solver_options=FEW, classes=(0, 1)),
    "gd, hinges": LinearSVC(solver="gd", solver_options=FEW, classes=(0, 1, 2)),
    "gd, own loss": LinearClassifier(ODD, solver="gd", solver_options=FEW, classes=(0, 1)),
    "sgd": LogisticRegression(solver="sgd", solver_options={"steps": 4, "rate": 0.5}, classes=(0, 1)),
    "svrg": LogisticRegression(solver="svrg", solver_options={"rounds": 2, "inner": 2, "rate": 0.5}, classes=(0, 1)),
    "svrg, own loss": LinearClassifier(
        ODD, solver="svrg", solver_options={"rounds": 2, "inner": 2, "rate": 0.5}, classes=(0, 1)
    ),
    "cd": LogisticRegression(solver="cd", solver_options={"passes": 2}, classes=(0, 1)),
    "cd, hinge": LinearSVC(solver="cd", solver_options={"passes": 1}, classes=(0, 1)),
    "cd, uniform": LogisticRegression(solver="cd", solver_options={"passes": 1, "clipping": "uniform"}, classes=(0, 1)),
    "cd, adaptive": LogisticRegression(
        solver="cd", solver_options={"passes": 2, "clipping": "adaptive"}, classes=(0, 1)
    ),
    "cd, greedy": LogisticRegression(solver="cd", solver_options={"updates": 3, "sampling": "greedy"}, classes=(0, 1)),
    "cd, by smoothness": LogisticRegression(
        solver="cd", solver_options={"passes": 1, "sampling": "smoothness"}, classes=(0, 1)
    ),
    "cd, own loss": LinearClassifier(ODD, solver="cd", solver_options={"passes": 1}, classes=(0, 1)),
    "output": LogisticRegression(solver="output", classes=(0, 1)),
    "output, pure": LogisticRegression(solver="output", delta=0.0, classes=(0, 1)),
    "output, three classes": LogisticRegression(solver="output", classes=(0, 1, 2)),
    "output, hinge": LinearSVC(solver="output", classes=(0, 1)),
    "objective": LogisticRegression(solver="objective", classes=(0, 1)),
    "objective, pure": LogisticRegression(solver="objective", delta=0.0, classes=(0, 1)),
    "objective, three classes": LogisticRegression(solver="objective", classes=(0, 1, 2)),
    "objective, hinge": LinearSVC(solver="objective", epsilon=0.1, classes=(0, 1)),
}
REGRESSORS = {
    "statistics": LinearRegression(target_bounds=(-1, 1), solver="statistics"),
    "statistics, pure": LinearRegression(target_bounds=(-1, 1), delta=0.0),
    "statistics, lasso": Lasso(target_bounds=(-1, 1), alpha=0.5),
    "gd": LinearRegression(target_bounds=(-1, 1), solver="gd", solver_options=FEW),
    "cd": LinearRegression(target_bounds=(-1, 1), solver="cd", solver_options={"passes": 2}),
    "cd, lasso": Lasso(target_bounds=(-1, 1), solver="cd", solver_options={"passes": 2}),
}


def replay(operation, data, neighbour):
    """Replay; the seed gives the order of coordinates, which is public and has to be the same on both sides."""
    replayed(operation, data, neighbour, seeded=True)


def fitted(estimator, records):
    """Everything a fit publishes, with what it costs."""
    X = np.empty((len(records), 2), object)  # objects: an entry may be anything
    X[:] = [r[:2] for r in records] if records else X
    y = np.empty(len(records), object)
    y[:] = [r[2] for r in records]
    model = estimator.set_params(random_state=1).fit(X, y)
    return Release((model.coef_, model.intercept_, model.regularization_, model.n_features_in_), model.event_)


@pytest.mark.parametrize("name", CLASSIFIERS)
@brief
@given(pair=neighbours(classified))
def test_classifiers_pass_under_add_remove(name, pair):
    replay(lambda records: fitted(CLASSIFIERS[name], records), *pair)


@pytest.mark.parametrize(
    "name",
    [
        "gd",
        "gd, pure",
        "gd, three classes",
        "cd",
        "cd, adaptive",
        "cd, greedy",
        "output",
        "output, pure",
        "objective",
        "objective, pure",
    ],
)
@brief
@given(pair=neighbours(classified, replace=True))
def test_classifiers_pass_under_replace(name, pair):
    replay(lambda records: fitted(clone(CLASSIFIERS[name]).set_params(adjacency="replace"), records), *pair)


@pytest.mark.parametrize("name", REGRESSORS)
@brief
@given(pair=neighbours(measured))
def test_regressors_pass_under_add_remove(name, pair):
    replay(lambda records: fitted(REGRESSORS[name], records), *pair)


@pytest.mark.parametrize("name", REGRESSORS)
@brief
@given(pair=neighbours(measured, replace=True))
def test_regressors_pass_under_replace(name, pair):
    replay(lambda records: fitted(clone(REGRESSORS[name]).set_params(adjacency="replace"), records), *pair)


@pytest.mark.parametrize("epsilon", [1.0, 1e-12])
@pytest.mark.parametrize("clipping", ["lipschitz", "adaptive"])
@pytest.mark.parametrize("ridge", [None, 1.0, 1e9])
def test_greedy_scores_are_as_steep_as_they_may_be(epsilon, clipping, ridge):
    """Weights in a box far from zero: beside Λw of 1e18 clips, a record's own clip was rounded to twice its size."""
    rng = np.random.default_rng(1)
    records = [(*row, y) for row, y in zip(rng.normal(size=(20, 2)) * 3, rng.uniform(-1, 1, 20), strict=True)]
    for clip in (0.5, 1e-9, 1e-14):
        options = {
            "sampling": "greedy",
            "updates": 6,
            "box": (1e3, 2e3),
            "clip": clip,
            "clipping": clipping,
            "smoothness": (20.0, 20.0, 20.0),
        }
        model = LinearRegression(
            solver="cd",
            solver_options=options,
            epsilon=epsilon,
            regularization=ridge,
            feature_norm=1.0,
            target_bounds=(-1, 1),
        )
        replay(lambda data, model=model: fitted(model, data), records, records[1:])


@pytest.mark.parametrize("solver", ["gd", "sgd", "svrg", "cd", "output", "objective"])
def test_a_larger_data_set_passes(solver):
    """Full-norm rows at the clip's limit, a thousand of them: float sums would differ in every entry."""
    rng = np.random.default_rng(0)
    records = [
        (*row, label) for row, label in zip(rng.normal(size=(1000, 2)) * 50, rng.integers(0, 2, 1000), strict=True)
    ]
    replay(
        lambda data: fitted(LogisticRegression(solver=solver, epsilon=5.0, delta=1e-5, classes=(0, 1)), data),
        records,
        records[1:],
    )


def test_gradients_that_are_not_clipped_are_caught():
    """The control: the same sum, one record a thousandth too long."""
    x, r, noise = np.full((9, 1), 1.0), np.ones((9, 1)), Gaussian(sensitivity=1.0, sigma=1.0)
    replay(lambda n: noise.release(kernels.clipped_sum(1.001 * x[n:], r[n:], 1.0)), 0, 1)
    with pytest.raises(ReplayError, match="differs by"):
        replay(lambda n: noise.release(1.001 * x[n:].T @ r[n:]), 0, 1)
