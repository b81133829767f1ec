"""Estimators: the cost is known first and never exceeded, nothing is read off the data, odd data have a meaning."""

import math
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

import discreet as dp
from discreet.auditing import mu_lower_bound
from discreet.encoding import Encoder
from discreet.errors import BudgetExceeded
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
    solvers,
)
from discreet.linear.losses import Logistic, Softmax, Squared
from discreet.linear.problem import Problem
from discreet.linear.solvers.gd import GradientDescent
from discreet.random import seeded

pytestmark = pytest.mark.filterwarnings("ignore:Neither feature_norm nor bounds")  # test_reading tests that it is said
GUIDE = Path(__file__).resolve().parents[2] / "docs" / "linear.md"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2000, 3))
Y = (X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=2000) > 0).astype(int)
OPTIONS = {
    "gd": {"steps": 20},
    "sgd": {"steps": 20, "rate": 0.2},
    "svrg": {"rounds": 3, "inner": 3, "rate": 0.2},
    "cd": {"passes": 3},
    "output": {},
    "objective": {},
    "statistics": {},
}
CASES = [(name, adjacency) for name in OPTIONS if name != "statistics" for adjacency in ("add-remove", "replace")]


class Pocket:
    """A book that remembers, and may refuse."""

    def __init__(self, limit=math.inf):
        self.limit, self.charged = limit, []

    def charge(self, event, label="", *, unit="one record", reproducible=False):
        if dp.epsilon(event, 1e-5) > self.limit:
            raise BudgetExceeded("too much")
        self.charged.append((event, label))


# --- cost --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("solver", "adjacency"), CASES)
def test_the_event_is_known_before_fit_and_never_exceeds_epsilon(solver, adjacency):
    model = LogisticRegression(
        epsilon=0.7,
        delta=1e-5,
        feature_norm=2.0,
        solver=solver,
        solver_options=OPTIONS[solver],
        adjacency=adjacency,
        random_state=0,
        classes=(0, 1),
    )
    before = model.privacy_event(n_features=3)
    model.fit(X, Y)
    assert model.event_ == before == model.privacy_event()
    assert model.adjacency_ == adjacency
    assert 0.69 < dp.epsilon(before, 1e-5, adjacency=adjacency) <= 0.7
    assert model.score(X, Y) > 0.6


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(target_bounds=(-1, 1)),
        Ridge(target_bounds=(-1, 1)),
        Lasso(target_bounds=(-1, 1)),
        ElasticNet(target_bounds=(-1, 1)),
    ],
    ids=lambda m: type(m).__name__,
)
@pytest.mark.parametrize("delta", [0.0, 1e-5])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_regressors_cost_what_was_asked(model, delta, adjacency):
    model = clone(model).set_params(epsilon=2.0, delta=delta, adjacency=adjacency, feature_norm=3.0, random_state=0)
    before = model.privacy_event(n_features=3)
    model.fit(X, X[:, 0] / 4)
    assert model.event_ == before
    assert dp.epsilon(before, delta, adjacency=adjacency) <= 2.0


def test_the_number_of_features_is_asked_for_where_the_cost_depends_on_it():
    assert LogisticRegression(classes=(0, 1)).privacy_event() == LogisticRegression(classes=(0, 1)).privacy_event(
        n_features=50
    )
    assert LogisticRegression(solver="cd", bounds=([0, 0], [1, 1]), classes=(0, 1)).privacy_event()
    with pytest.raises(ValueError, match="n_features is None"):
        LogisticRegression(solver="cd", classes=(0, 1)).privacy_event()


def test_the_book_is_charged_first_and_may_refuse():
    book, model = Pocket(), LogisticRegression(epsilon=0.5, delta=1e-5, random_state=0, classes=(0, 1))
    model.fit(X, Y, book=book)
    assert book.charged == [(model.event_, "LogisticRegression")]
    fresh = LogisticRegression(epsilon=0.5, delta=1e-5, classes=(0, 1))
    with pytest.raises(BudgetExceeded):
        fresh.fit(X, Y, book=Pocket(limit=0.4))
    assert not hasattr(fresh, "coef_")


def test_a_declared_size_saves_the_count():
    private, public = LogisticRegression(classes=(0, 1)), LogisticRegression(dataset_size=2000, classes=(0, 1))
    assert len(dp.events.leaves(private.privacy_event())) == 2
    assert len(dp.events.leaves(public.privacy_event())) == 1
    assert public.set_params(random_state=0).fit(X, Y).score(X, Y) > 0.8
    assert len(dp.events.leaves(LogisticRegression(adjacency="replace", classes=(0, 1)).privacy_event())) == 1


def test_noise_has_the_scale_the_event_promises():
    """No data: the first step of descent is noise alone, and an audit of it stays below the claim, with power."""
    problem = Problem(loss=Logistic(), epsilon=1.0, delta=1e-5, square=1.0, features=1, size=1)
    mechanism = GradientDescent(problem=problem, steps=1, clip=0.5).mechanism
    trials = 20_000
    noise = [mechanism.release(np.full(trials, value), rng=seeded(i)).value for i, value in enumerate((0.0, 0.5))]
    hits = tuple(int((side > 0.25).sum()) for side in noise)
    mu = 1 / mechanism.event.noise_multiplier
    assert 0.5 * mu < mu_lower_bound(hits, trials) <= mu


def test_the_contract_runs_as_written():
    clf = LogisticRegression(
        epsilon=1.0, delta=1e-6, feature_norm=1.0, classes=(0, 1), solver="auto", random_state=None
    )
    clf.fit(X, Y)
    assert dp.epsilon(clf.event_, delta=1e-6) <= 1.0
    assert dp.linear.LogisticRegression is LogisticRegression


# --- refusals ------------------------------------------------------------------------------------------------------


def test_pairs_that_are_not_proved_are_refused_by_name():
    for model, reason in [
        (LogisticRegression(solver="statistics", classes=(0, 1)), "squared loss only"),
        (LogisticRegression(solver="cd", classes=(0, 1, 2)), "one score"),
        (LinearSVC(solver="objective", classes=(0, 1, 2)), "the loss itself bounds"),
        (LinearRegression(target_bounds=(-1, 1), solver="output"), "the loss itself bounds"),
        (LinearRegression(target_bounds=(-1, 1), solver="objective"), "the loss itself bounds"),
        (Lasso(target_bounds=(-1, 1), solver="objective"), "the loss itself bounds"),
        (LinearClassifier(CustomLoss(np.add, np.add), solver="output", classes=(0, 1)), "the loss itself bounds"),
        (LogisticRegression(solver="sgd", delta=0.0, classes=(0, 1)), "delta above 0"),
    ]:
        with pytest.raises(ValueError, match=reason):
            model.fit(X, Y)
    with pytest.raises(ValueError, match="solver is 'newton', but must be 'auto' or one of"):
        LogisticRegression(solver="newton", classes=(0, 1)).fit(X, Y)
    with pytest.raises(ValueError, match="'speed', but solver 'gd' takes clip, curvature, radius, steps"):
        LogisticRegression(solver_options={"speed": 9}, classes=(0, 1)).fit(X, Y)


def test_the_table_knows_every_loss_and_solver():
    """And the guide prints the same one."""
    assert set().union(*solvers.PROVED.values()) == set(solvers.NAMES)
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in GUIDE.read_text().splitlines()
        if line.startswith("| ")
    ]
    header = next(at for at, line in enumerate(lines) if line[0] == "loss")
    for loss, proved in solvers.PROVED.items():
        row = next(line for line in lines[header + 1 :] if line[0] == loss)
        assert {solver for solver, answer in zip(lines[header][1:], row[1:], strict=True) if answer == "yes"} == proved


def test_an_l1_penalty_has_no_perturbation():
    smooth = Problem(loss=Logistic(), epsilon=1.0, delta=0.0, square=1.0, features=1, l1=1.0)
    with pytest.raises(ValueError, match="L1 penalty is not smooth"):
        solvers.make("output", smooth, {})


def test_auto_says_why():
    for model, solver in [
        (LogisticRegression(classes=(0, 1)), "gd"),
        (LogisticRegression(delta=0.0, classes=(0, 1)), "objective"),
        (LinearSVC(classes=(0, 1, 2)), "gd"),
        (LinearSVC(classes=(0, 1, 2), delta=0.0), "gd"),
    ]:
        model.set_params(random_state=0).fit(X, Y)
        assert model.solver_ == solver
        assert len(model.solver_reason_) > 20
    assert solvers.choose(Problem(loss=Squared(), epsilon=1.0, delta=1e-6, square=1.0, features=10_000))[0] == "gd"
    assert solvers.choose(Problem(loss=Softmax(3), epsilon=1.0, delta=0.0, square=1.0, features=5))[0] == "objective"


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"epsilon": 0}, "epsilon is 0"),
        ({"delta": 1.0}, "delta is 1.0"),
        ({"feature_norm": -1}, "feature_norm is -1"),
        ({"classes": (1, 1)}, "at least two different labels"),
        ({"classes": None}, "classes is not given"),
        ({"regularization": 0.0}, "regularization is 0.0"),
        ({"bounds": (1, 0)}, "each lower one below"),
        ({"bounds": 3}, "bounds must be finite"),
        ({"bounds": ([0, 0], [1, 1])}, "2 entries"),
        ({"adjacency": "zero-out"}, "zero-out"),
        ({"adjacency": "near"}, "adjacency is 'near'"),
        ({"dataset_size": 0}, "dataset_size is 0"),
        ({"random_state": "x"}, "random_state is a str"),
        ({"solver_options": {"steps": 0}}, "steps is 0"),
        ({"solver_options": {"clip": -1}}, "clip is -1"),
    ],
)
def test_parameters_out_of_range_are_named(facts, message):
    with pytest.raises(ValueError, match=message):
        LogisticRegression(**{"classes": (0, 1)} | facts).fit(X, Y)


def test_target_bounds_are_declared():
    for bounds in (None, (1, 1), (0, math.inf), 5):
        with pytest.raises(ValueError, match="target_bounds is"):
            LinearRegression(target_bounds=bounds).fit(X, X[:, 0])


# --- odd data ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["gd", "sgd", "svrg", "cd", "output", "objective"])
@pytest.mark.parametrize(
    "case", ["empty", "one record", "one class", "more columns than records", "constant columns", "all unusable"]
)
def test_odd_data_are_fitted_like_any_other(solver, case):
    n, d = {"empty": (0, 3), "one record": (1, 3), "more columns than records": (5, 40)}.get(case, (50, 3))
    x = np.ones((n, d)) if case == "constant columns" else np.random.default_rng(1).normal(size=(n, d))
    y = np.zeros(n, int) if case == "one class" else np.arange(n) % 2
    if case == "all unusable":
        x[:] = np.nan
    model = LogisticRegression(
        solver=solver, solver_options=OPTIONS[solver], delta=1e-5, random_state=0, classes=(0, 1)
    ).fit(x, y)
    assert np.isfinite(model.coef_).all()
    assert model.coef_.shape == (1, d)
    assert set(model.predict(np.zeros((2, d)))) <= {0, 1}


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(target_bounds=(-1, 1)),
        Ridge(target_bounds=(-1, 1)),
        Lasso(target_bounds=(-1, 1)),
        ElasticNet(target_bounds=(-1, 1)),
        LinearRegression(target_bounds=(-1, 1), solver="gd"),
        Lasso(target_bounds=(-1, 1), solver="cd", solver_options={"passes": 2}),
    ],
)
@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (5, 40)])
def test_odd_shapes_are_regressed_like_any_other(model, shape):
    model.set_params(random_state=0).fit(np.ones(shape), np.ones(shape[0]))
    assert np.isfinite(model.coef_).all()
    assert model.coef_.shape == (shape[1],)


def test_records_that_cannot_be_used_change_nothing():
    """NaN, infinities and labels outside the declared ones: as if the record were not there."""
    model = LogisticRegression(random_state=0, epsilon=5.0, classes=(0, 1))
    plain = model.fit(X, Y).coef_
    odd = np.array([[np.nan, 0, 0], [0, np.inf, 0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    labels = np.array([*Y, 0, 1, 7, np.nan])
    assert (model.fit(np.concatenate([X, odd]), labels).coef_ == plain).all()
    ridge = Ridge(target_bounds=(-1, 1), random_state=0)
    before = ridge.fit(X, X[:, 0]).coef_
    assert (ridge.fit(np.concatenate([X, odd[:2]]), [*X[:, 0], 1.0, 2.0]).coef_ == before).all()
    assert (ridge.fit(np.concatenate([X, odd[2:3]]), [*X[:, 0], np.nan]).coef_ == before).all()
    for strange in ("text", None, 10**400, {}):
        targets = np.empty(2001, object)
        targets[:] = [*X[:, 0], strange]
        assert (ridge.fit(np.concatenate([X, odd[2:3]]), targets).coef_ == before).all()
        labels = np.empty(2001, object)
        labels[:] = [*Y, strange]
        assert (model.fit(np.concatenate([X, odd[2:3]]), labels).coef_ == plain).all()


@pytest.mark.parametrize(
    "table",
    [
        np.array([["777", "1.0"]]),
        [777.0, 2.0],
        777.0,
        np.array([[777 + 1j]]),
        pd.DataFrame({"a": pd.to_datetime(["2777-07-07"])}),
        np.array([["2777-07-07"]], "M8[D]"),
        np.full((1, 1, 1), 777.0),
    ],
    ids=lambda table: type(table).__name__,
)
def test_no_value_is_shown_in_an_error(table):
    """Shapes and types are public and named; scikit-learn's own messages would quote the array."""
    with pytest.raises(ValueError, match=r"real numbers|Expected 2D|Complex|dim 3|how many columns") as caught:
        LogisticRegression(classes=(0, 1)).fit(table, [0])
    assert "777" not in str(caught.value)


def test_odd_entries_among_objects_blank_their_records():
    """One entry that is no number is private, as in y: no error, and the record counts for nothing."""
    model = LogisticRegression(random_state=0, classes=(0, 1))
    plain = model.fit(X, Y).coef_
    for odd in (None, "text", {}, 10**400, float("nan")):
        objects = np.array([*X.tolist(), [odd, 0.0, 0.0]], object)
        assert (model.fit(objects, [*Y, 1]).coef_ == plain).all()
    frame = pl.DataFrame({name: X[:, i] for i, name in enumerate("abc")})
    assert (model.fit(frame, Y).coef_ == plain).all()


def test_bounds_and_targets_of_any_size_do_not_overflow():
    """filterwarnings=error: a warning that one record causes would be seen."""
    model = LinearRegression(bounds=(-8e307, 8e307), target_bounds=(-8e307, 8e307), random_state=0)
    assert np.isfinite(model.fit(np.array([[1.7e308], [-1.7e308]]), [1.7e308, -1.7e308]).coef_).all()
    with pytest.raises(ValueError, match="bounds must be finite"):
        model.set_params(bounds=(-1.7e308, 1.7e308)).fit(np.array([[1.0]]), [1.0])
    with pytest.raises(ValueError, match="target_bounds is"):
        model.set_params(bounds=None, target_bounds=(-1.7e308, 1.7e308)).fit(np.array([[1.0]]), [1.0])


def test_targets_are_not_shown_in_an_error():
    with pytest.raises(ValueError, match="real numbers") as caught:
        LinearRegression(target_bounds=(-1, 1)).fit(np.array([[1.0]]), np.array(["secret"]))
    assert "secret" not in str(caught.value)
    assert "records" not in repr(LogisticRegression(classes=(0, 1)))


def test_seeds_repeat_and_system_entropy_does_not():
    one, two = (LogisticRegression(random_state=3, classes=(0, 1)).fit(X, Y) for _ in range(2))
    assert (one.coef_ == two.coef_).all()
    assert one.reproducible_
    three, four = (LogisticRegression(classes=(0, 1)).fit(X, Y) for _ in range(2))
    assert (three.coef_ != four.coef_).any()
    assert not three.reproducible_
    for generator in (np.random.RandomState(0), np.random.default_rng(0), seeded(1)):
        assert LogisticRegression(random_state=generator, classes=(0, 1)).fit(X, Y).reproducible_
    assert (pickle.loads(pickle.dumps(one)).predict(X) == one.predict(X)).all()


# --- answers -------------------------------------------------------------------------------------------------------


def test_coefficients_are_in_the_users_units():
    rng = np.random.default_rng(2)
    x = rng.uniform([100, -5], [200, 5], size=(5000, 2))
    y = 7 + 0.02 * x[:, 0] - 0.3 * x[:, 1]
    public = {"epsilon": 50.0, "delta": 1e-5, "bounds": ([100, -5], [200, 5]), "target_bounds": (5, 15)}
    model = LinearRegression(**public, random_state=0).fit(x, y)
    assert model.coef_ == pytest.approx([0.02, -0.3], rel=0.05)
    assert model.predict(x) == pytest.approx(y, abs=0.2)
    gd = LinearRegression(**public, solver="gd", random_state=0)
    assert gd.fit(x, y).predict(x) == pytest.approx(y, abs=0.4)


def test_probabilities_are_calibrated_though_gradients_are_clipped():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(40_000, 2))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    truth = 1 / (1 + np.exp(-3 * x[:, 0]))
    y = (rng.random(40_000) < truth).astype(int)
    options = {"clip": 0.4}
    model = LogisticRegression(
        epsilon=5.0, feature_norm=1.0, solver="gd", solver_options=options, random_state=0, classes=(0, 1)
    )
    model.fit(x, y)
    outer = np.abs(truth - 0.5) > 0.3  # in the middle a clipped loss only knows which side
    assert np.abs(model.predict_proba(x)[outer, 1] - truth[outer]).mean() < 0.05
    assert np.abs(1 / (1 + np.exp(-model.decision_function(x)[outer])) - truth[outer]).mean() > 0.05


@pytest.mark.parametrize("solver", ["gd", "sgd", "svrg"])
def test_weights_are_projected_to_a_ball(solver):
    options = OPTIONS[solver] | {"radius": 0.5}
    model = LogisticRegression(
        solver=solver, solver_options=options, feature_norm=1.0, random_state=0, classes=(0, 1)
    ).fit(X, Y)
    assert 0.1 < np.hypot(np.linalg.norm(model.coef_), model.intercept_[0]) <= 0.5 + 1e-12


def test_too_many_weights_for_the_grid_are_refused():
    with pytest.raises(ValueError, match="at most 67108864"):
        LogisticRegression(classes=tuple(range(1000))).privacy_event(100_000)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_release_of_more_than_a_million_entries_is_declared(delta):
    """1,500 columns have 1.1 million moments: found too many once, after the charge."""
    model = LinearRegression(target_bounds=(-1, 1), solver="statistics", delta=delta, feature_norm=1.0)
    assert model._choice(1500).solver.mechanism.max_size == 1501 * 1502 // 2 + 1501
    assert model._choice(10).solver.mechanism.max_size == 1 << 20
    many = LogisticRegression(solver="gd", classes=tuple(range(2000)), feature_norm=1.0, delta=delta)
    assert many._choice(1000).solver.mechanism.max_size == 1001 * 2000


@pytest.mark.parametrize("columns", [150, pytest.param(1500, marks=pytest.mark.slow)])
def test_many_columns_are_fitted(columns):
    model = LinearRegression(target_bounds=(-1, 1), solver="statistics", feature_norm=1.0, random_state=0).fit(
        np.ones((3, columns)), np.ones(3)
    )
    assert np.isfinite(model.coef_).all()


def test_units_without_an_identifier_are_one():
    """Missing values of every kind; empty text, and an object by what it says it is, are units like others,
    as in tables.
    """
    facts = dp.schema.Declaration(dp.Schema(x=dp.schema.Bounded(0, 100), who=dp.schema.Unlisted()), "who")
    names = ["", None, pd.NA, float("nan"), pd.NaT, [], np.datetime64("NaT"), "a", "a", 1, 1.0, b"\xff"]
    assert Encoder(facts).read({"who": names, "x": list(range(12))}).numbers("x").tolist() == [0, 1, 5, 7, 9, 11]


def test_lasso_gives_zeros():
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, size=(20_000, 10))
    y = x[:, 0] / 2
    for solver in ("statistics", "cd", "gd"):
        model = Lasso(
            target_bounds=(-1, 1), alpha=400.0, epsilon=2.0, bounds=(-1, 1), solver=solver, random_state=0
        ).fit(x, y)
        assert model.coef_[0] > 0.05
        if solver != "gd":
            assert (model.coef_[1:] == 0).sum() >= 5


def test_a_loss_of_ones_own():
    robust = CustomLoss(lambda m, y: np.log(np.cosh(m - y)), lambda m, y: np.tanh(m - y))
    x = np.random.default_rng(6).uniform(-1, 1, size=(20_000, 2))
    model = LinearRegressor(robust, target_bounds=(-1, 1), epsilon=2.0, bounds=(-1, 1), random_state=0).fit(
        x, x[:, 0] / 2
    )
    assert model.coef_ == pytest.approx([0.5, 0.0], abs=0.1)
    ramp = CustomLoss(lambda m, y: np.maximum(0, 1 - y * m), lambda m, y: np.where(y * m < 1, -y, 0.0))
    assert (
        LinearClassifier(ramp, epsilon=2.0, feature_norm=2.0, random_state=0, classes=(0, 1)).fit(X, Y).score(X, Y)
        > 0.85
    )
    loud = CustomLoss(ramp.loss, lambda m, y: np.exp(1e4 * (m - y)))  # overflows for some records: no warning tells
    assert np.isfinite(LinearClassifier(loud, epsilon=2.0, random_state=0, classes=(0, 1)).fit(X, Y).coef_).all()
    with pytest.raises(ValueError, match="derivative mixes records"):
        CustomLoss(ramp.loss, lambda m, y: m - m.mean())
    with pytest.raises(ValueError, match="one slope per score"):
        CustomLoss(ramp.loss, lambda m, y: (m - y).sum())
    with pytest.raises(ValueError, match="two labels"):
        LinearClassifier(ramp, classes=(0, 1, 2)).fit(X, Y)
