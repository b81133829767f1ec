"""What holds for every estimator of the room: its price, its sensitivity on hostile records, and that it learns."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import estimator_checks

import discreet as dp
from discreet.auditing import ReplayError, replay
from discreet.auditing.strategies import awkward_floats, neighbours
from discreet.estimators import (
    PCA,
    AdditiveClassifier,
    AdditiveRegressor,
    DecisionTreeClassifier,
    GaussianNB,
    KMeans,
    MinMaxScaler,
    RandomForestClassifier,
    StandardScaler,
    sums,
)
from discreet.estimators.kmeans import _nearest
from discreet.release import Release
from tests import sklearn_contract as contract

brief = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
BOUNDS = (-3.0, [4.0, 5.0])
CLASSIFIERS = {
    "naive Bayes": GaussianNB(bounds=BOUNDS, classes=(0, 1)),
    "additive": AdditiveClassifier(bounds=BOUNDS, bins=[4, 2], nominal=(1,), rounds=2, classes=(0, 1)),
    "additive, softmax": AdditiveClassifier(bounds=BOUNDS, bins=3, rounds=1, classes=(0, 1, 2)),
    "tree": DecisionTreeClassifier(bounds=BOUNDS, bins=3, max_depth=2, classes=(0, 1)),
    "forest": RandomForestClassifier(bounds=BOUNDS, bins=4, max_depth=2, n_estimators=2, classes=(0, 1)),
    "forest of its own depth": RandomForestClassifier(bounds=BOUNDS, bins=4, n_estimators=2, classes=(0, 1)),
}
REGRESSORS = {"regression": AdditiveRegressor(bounds=BOUNDS, bins=4, rounds=2, target_bounds=(-1, 2))}
UNSUPERVISED = {
    "components": PCA(bounds=BOUNDS),
    "k-means": KMeans(2, n_iter=2, bounds=BOUNDS),
    "standard scaler": StandardScaler(bounds=BOUNDS),
    "range scaler": MinMaxScaler(bounds=BOUNDS),
}
EVERY = CLASSIFIERS | REGRESSORS | UNSUPERVISED

entries = st.one_of(awkward_floats(), st.sampled_from([None, "text", 10**400]))
records = st.tuples(entries, awkward_floats(), st.sampled_from([0, 1, 2, 7, math.nan, "text", math.inf, -1e300]))


def fitted(estimator, rows):
    """What is published: the fitted model's answers at fixed points, with its event."""
    X, y = [row[:2] for row in rows], [row[2] for row in rows]
    model = clone(estimator).fit(X, y) if estimator.supervised else clone(estimator).fit(X)
    grid = np.stack(np.meshgrid([-2.0, 0.5, 3.0], [-2.0, 0.5, 4.0]), axis=-1).reshape(-1, 2)
    ask = model.predict if hasattr(model, "predict") else model.transform
    return Release(np.asarray(ask(grid), dtype=np.float64), model.event_)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("name", EVERY)
@brief
@given(data=st.data())
def test_hostile_neighbours_move_sums_by_no_more_than_is_stated(name, adjacency, data):
    """Text, NaN, infinities, labels that are none: nothing fails, and every noisy vector moves within its limit."""
    estimator = clone(EVERY[name]).set_params(adjacency=adjacency)
    one, other = data.draw(neighbours(records, replace=adjacency == "replace"))
    replay(lambda rows: fitted(estimator, rows), one, other)


MOVED = [(4.0, 5.0, 0)] * 3, [(4.0, 5.0, 0)] * 2 + [(-3.0, -3.0, 1)]  # from corner to corner, and to another class


@pytest.mark.parametrize("name", ["naive Bayes", "forest", "tree"])
def test_a_record_that_is_replaced_counts_as_two(name, monkeypatch):
    """It leaves one class and enters another: half of that sensitivity is found out."""
    estimator = clone(EVERY[name]).set_params(adjacency="replace")
    replay(lambda rows: fitted(estimator, rows), *MOVED)
    monkeypatch.setattr(type(estimator), "_movement", 1)
    with pytest.raises(ReplayError):
        replay(lambda rows: fitted(estimator, rows), *MOVED)


def test_replay_finds_a_residual_that_is_not_bounded(monkeypatch):
    """Without the cut to parts, one record may bring any number: the check above would see it."""
    monkeypatch.setattr(sums, "scale_to_unit", lambda rows, low, high: rows)
    monkeypatch.setattr("discreet.estimators.naive_bayes.scale_to_unit", lambda rows, low, high: rows)
    rows = [(0.0, 0.0, 0), (1.0, 1.0, 1), (900.0, 900.0, 1)]
    with pytest.raises(ReplayError):
        replay(lambda given: fitted(CLASSIFIERS["naive Bayes"], given), rows, rows[:2])


@pytest.mark.parametrize("name", EVERY)
def test_no_record_makes_numpy_warn_or_fail(name):
    """Where the user asked NumPy to raise, a record of hardly anything would otherwise be told by an error."""
    with np.errstate(all="raise"):
        fitted(EVERY[name], [(0.5 + 1e-200, 1 + 1e-200, 1), (math.inf, 1e308, 0), (1e-300, -1e-300, 0)] * 3)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_record_is_placed_the_same_among_however_many_others(order):
    """Points midway between two centres, where the last bit decides: one record fewer moves no other one."""
    rng, centres = np.random.default_rng(0), np.random.default_rng(1).normal(size=(2, 33)) / 12
    apart = centres[1] - centres[0]
    for _ in range(40):
        point = rng.uniform(-1, 1, 33) / 6
        point -= ((point - centres.mean(axis=0)) @ apart) / (apart @ apart) * apart
        many = np.array(np.tile(point, (24, 1)), order=order)
        assert len({*_nearest(many, centres), *(_nearest(many[:n], centres)[0] for n in range(1, 9))}) == 1
        far = np.array(np.tile(point * 9, (24, 1)), order=order)
        assert len(np.unique([*sums.in_ball(far, 1.0), sums.in_ball(far[:1], 1.0)[0]], axis=0)) == 1


@pytest.mark.parametrize("epsilon", [0.1, 3.0])
@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("name", EVERY)
def test_a_fit_costs_what_was_asked_and_hardly_less(name, delta, epsilon):
    event = clone(EVERY[name]).set_params(epsilon=epsilon, delta=delta).privacy_event(2)
    spent = dp.epsilon(event, delta=delta, accountant=None if delta else "basic")
    assert 0.98 * epsilon <= spent <= epsilon * (1 + 1e-9)


def test_what_is_not_declared_is_refused_before_the_charge():
    book = dp.Ledger("sqlite://").open("b", epsilon=9.0, delta=1e-4)
    X, y = np.zeros((4, 2)), np.array([0, 1, 0, 1])
    for wrong, words in [
        (GaussianNB(classes=(0, 1)), "bounds is None"),
        (GaussianNB(bounds=(1, 0), classes=(0, 1)), "bounds must be finite"),
        (GaussianNB(bounds=(0, 1), classes=(0,)), "classes is"),
        (AdditiveClassifier(bounds=(0, 1), bins=[2], classes=(0, 1)), "bins has 1 entries"),
        (AdditiveClassifier(bounds=(0, 1), nominal=(5,), classes=(0, 1)), "nominal has 5"),
        (AdditiveClassifier(bounds=(0, 1), nominal=(0.5,), classes=(0, 1)), "nominal is 0.5"),
        (AdditiveClassifier(bounds=(0, 1), bins=10**7, classes=(0, 1)), "bins is 10000000"),
        (AdditiveClassifier(bounds=(0, 1), ridge=1e-320, classes=(0, 1)), "ridge is"),
        (AdditiveClassifier(bounds=(0, 1), smoothing=1e308, classes=(0, 1)), "smoothing is"),
        (GaussianNB(bounds=(0, 1), adjacency="zero-out", classes=(0, 1)), "adjacency is 'zero-out'"),
        (DecisionTreeClassifier(bounds=(0, 1), max_depth=16, bins=4000, classes=(0, 1)), "noisy numbers at once"),
        (
            RandomForestClassifier(bounds=(0, 1), max_depth=16, n_estimators=2000, classes=(0, 1)),
            "noisy numbers at once",
        ),
        (AdditiveRegressor(bounds=(0, 1)), "target_bounds must be declared"),
        (DecisionTreeClassifier(bounds=(0, 1), max_depth=60, classes=(0, 1)), "max_depth is 60"),
    ]:
        with pytest.raises(ValueError, match=words):
            wrong.fit(X, y, book=book)
    with pytest.raises(ValueError, match="n_components is 3"):
        PCA(n_components=3, bounds=(0, 1)).fit(X, book=book)
    for wrong in (PCA(bounds=(0, 1)), KMeans(bounds=(0, 1))):
        with pytest.raises(ValueError, match=r"more than 2\^29 records"):
            wrong.fit(np.broadcast_to(np.zeros((1, 1)), (2**29 + 1, 1)), book=book)
    assert book.spent().entries == 0


# --- they learn ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made():
    """An additive boundary with a bump, which no line separates; one code, one noise feature, some missing."""
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.uniform(-1, 1, 12_000), rng.integers(0, 3, 12_000), rng.uniform(-1, 1, 12_000)])
    score = 6 * (np.abs(X[:, 0]) - 0.5) + np.array([-1.0, 2.0, -1.0])[X[:, 1].astype(int)]
    y = (rng.random(12_000) < 1 / (1 + np.exp(-2 * score))).astype(int)
    X[::50, 2] = np.nan
    return X, y


PUBLIC = {"bounds": ([-1, -0.5, -1], [1, 2.5, 1]), "random_state": 0}


@pytest.mark.parametrize(
    ("model", "least"),
    [
        (AdditiveClassifier(bins=[32, 3, 8], nominal=(1,), **PUBLIC, classes=(0, 1)), 0.84),
        (DecisionTreeClassifier(bins=[16, 3, 8], **PUBLIC, classes=(0, 1)), 0.78),
        (RandomForestClassifier(bins=[32, 3, 8], n_estimators=30, **PUBLIC, classes=(0, 1)), 0.75),
    ],
    ids=["additive", "tree", "forest"],
)
def test_what_no_line_separates_is_learnt_at_epsilon_1(model, least, made):
    X, y = made
    assert model.fit(X[:8000], y[:8000]).score(X[8000:], y[8000:]) > least


def test_the_effect_of_a_feature_can_be_looked_at(made):
    X, y = made
    model = AdditiveClassifier(bins=[16, 3, 8], nominal=(1,), **PUBLIC, classes=(0, 1)).fit(X, y)
    edges, effect = model.effect(0)
    assert edges.tolist() == np.linspace(-1, 1, 17).tolist()
    assert effect[0] > effect[8] + 2  # the ends are above the middle
    assert effect[15] > effect[8] + 2


def test_components_are_those_of_the_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 4)) * [3.0, 1.0, 0.5, 0.2]
    model = PCA(n_components=2, bounds=(-12, 12), random_state=0).fit(X)
    assert abs(model.components_[0, 0]) > 0.99
    assert model.explained_variance_[0] == pytest.approx(9.0, rel=0.2)
    assert np.abs(model.mean_).max() < 0.5
    assert model.inverse_transform(model.transform(X[:3])).shape == (3, 4)


def test_random_trees_look_at_no_record():
    """The splits are the same whatever the data."""
    rng = np.random.default_rng(0)
    kinds = [rng.uniform(size=(50, 2)), np.full((3, 2), np.nan)]
    forest = RandomForestClassifier(bounds=(0, 1), max_depth=9, classes=(0, 1))
    trees = [clone(forest).fit(X, np.zeros(len(X), int)).trees_ for X in kinds]
    for one, other in zip(*trees, strict=True):
        assert one.feature.tolist() == other.feature.tolist()
        assert one.threshold.tolist() == other.threshold.tolist()


@pytest.mark.parametrize(("n", "epsilon", "depth"), [(60, 0.1, 2), (20_000, 1.0, 9), (2_000, 1.0, 6), (2_000, 0.5, 5)])
def test_a_forest_is_as_deep_as_its_records_stand_above_the_noise(n, epsilon, depth):
    """n over the noise of a leaf is 0.4, 1,060, 106 and 54; the count's own noise is far below n, but for the first."""
    X, y = np.zeros((n, 1)), np.zeros(n, int)
    forest = RandomForestClassifier(
        bounds=(-1, 1), n_estimators=20, epsilon=epsilon, delta=1e-5, random_state=0, classes=(0, 1)
    )
    assert forest.fit(X, y).trees_[0].depth == depth
    given = clone(forest).set_params(max_depth=3)
    assert given.fit(X, y).trees_[0].depth == 3
    assert len(dp.events.leaves(given.event_)) == 1 < len(dp.events.leaves(forest.event_))


def test_little_data_and_a_small_budget_do_little_harm():
    """An additive regression of 300 records had an R² of -2, and centres of as many were worse than those given."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1300, 10))
    y = X @ rng.normal(size=10) / 8
    found = [
        AdditiveRegressor(bounds=(-1, 1), target_bounds=(-1, 1), epsilon=0.1, delta=1e-5, random_state=seed)
        .fit(X[:300], y[:300])
        .score(X[300:], y[300:])
        for seed in range(4)
    ]
    assert np.mean(found) > -0.3
    centres = [
        KMeans(5, bounds=(-1, 1), epsilon=0.05, delta=1e-5, random_state=seed).fit(X[:300] / 2) for seed in range(4)
    ]
    ends = [(model.transform(X[300:] / 2).min(axis=1) ** 2).mean() for model in centres]
    assert np.mean(ends) < 2.5 * (X[300:] ** 2 / 4).sum(axis=1).mean()  # those of saying nothing: the middle


# --- scikit-learn's contract ----------------------------------------------------------------------------------------

PUBLIC_LARGE = {"epsilon": 1e4, "delta": 1e-2, "bounds": (-6.0, 6.0)}
CONTRACT = [
    GaussianNB(classes=(0, 1, 2), **PUBLIC_LARGE),
    AdditiveClassifier(classes=(0, 1, 2), bins=6, rounds=3, **PUBLIC_LARGE),
    AdditiveRegressor(target_bounds=(-3.0, 3.0), bins=6, rounds=3, **PUBLIC_LARGE),
    RandomForestClassifier(classes=(0, 1, 2), n_estimators=5, max_depth=3, **PUBLIC_LARGE),
    PCA(n_components=1, **PUBLIC_LARGE),
    KMeans(2, n_iter=2, **PUBLIC_LARGE),
    StandardScaler(**PUBLIC_LARGE),
    MinMaxScaler(**PUBLIC_LARGE),
]


OF_ALL = {"check_dtype_object": contract.OBJECTS, "check_estimators_empty_data_messages": contract.EMPTY}
OF_TARGETS = {"check_supervised_y_no_nan": contract.NAN_TARGETS}
OF_CLASSES = {
    "check_classifiers_regression_target": contract.OTHER_LABELS,
    "check_classifiers_classes": contract.TEXT_LABELS,
    "check_classifiers_train": contract.TWO_OF_THREE,
    "check_estimator_sparse_array": contract.FOUR_CLASSES,
    "check_estimator_sparse_matrix": contract.FOUR_CLASSES,
}
OF_SCORES = {"check_decision_proba_consistency": contract.TWO_CLASSES}
OF_NUMBERS = {"check_regressors_train": contract.list_of(10)}
OF_ROWS = {"check_transformer_data_not_an_array": contract.list_of(3)}
CENTRED = dict.fromkeys(
    ("check_estimator_sparse_array", "check_estimator_sparse_matrix"),
    contract.Refused("it sets with_mean of whatever is called StandardScaler, and ours always centres"),
)


def refused(estimator):
    found = OF_ALL | (OF_TARGETS if estimator.supervised else {})
    found |= OF_CLASSES if is_classifier(estimator) else {}
    found |= OF_SCORES if hasattr(estimator, "decision_function") else {}
    found |= OF_NUMBERS if is_regressor(estimator) else {}
    found |= OF_ROWS if hasattr(estimator, "transform") else {}
    return found | (CENTRED if isinstance(estimator, StandardScaler) else {})


@contract.contract(CONTRACT, refused)
def test_the_contract_of_scikit_learn(estimator, check, reason):
    contract.holds(estimator, check, reason)


@pytest.mark.parametrize("check", CENTRED)
def test_the_scaler_keeps_the_checks_of_sparse_data_under_another_name(check):
    getattr(estimator_checks, check)("Scaling", clone(CONTRACT[-2]))
