"""``PATEClassifier``: scikit-learn's contract, the one path, students, and what a record can change."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import LinearSVC

import discreet as dp
from discreet import pate
from discreet.auditing import mu_lower_bound, replay
from discreet.release import charged
from tests import sklearn_contract as contract

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 2)).round(4)
Y = np.where(X[:, 0] > 0, "yes", "no")
PUBLIC = RNG.normal(size=(60, 2))


class WithPublicRows(pate.PATEClassifier):
    """Supplies public rows itself: the private ones, moved a little. For scikit-learn's checks only."""

    def fit(self, X, y, **named):
        rows = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        public = np.nan_to_num(rows.astype(float)) + 0.01 if rows.ndim == 2 and rows.dtype.kind in "biuf" else None
        return super().fit(X, y, public=public, **named)


REFUSED = {
    "check_dtype_object": contract.Refused("the public rows of an array of objects are not supplied here"),
    "check_estimators_nan_inf": contract.Refused("an error on an entry that is not finite would tell of it"),
    "check_supervised_y_no_nan": contract.NAN_TARGETS,
    "check_classifiers_regression_target": contract.OTHER_LABELS,
    "check_classifiers_classes": contract.TEXT_LABELS,
    "check_classifiers_train": contract.TWO_OF_THREE,
    "check_estimator_sparse_array": contract.FOUR_CLASSES,
    "check_estimator_sparse_matrix": contract.FOUR_CLASSES,
    "check_classifiers_one_label": contract.Refused(
        "the fixed votes of teachers of one class name all classes in turn"
    ),
}
PATE = WithPublicRows(GaussianNB(), 2, GaussianNB(), pate.GNMax(sigma=1e-3), classes=(0, 1, 2), random_state=0)


@contract.contract([PATE], lambda estimator: dict(REFUSED))
def test_the_contract_of_scikit_learn(estimator, check, reason):
    contract.holds(estimator, check, reason)


def made(**facts):
    facts = {"aggregation": pate.GNMax(sigma=3.0), "classes": ("no", "yes"), "random_state": 0} | facts
    return pate.PATEClassifier(GaussianNB(), 40, GaussianNB(), **{"classes": (0, 1)} | facts)


def accuracy(model):
    return float(np.mean(model.predict(X) == Y))


def test_a_student_learns_what_the_teachers_know():
    model = made().fit(X, Y, public=PUBLIC)
    assert accuracy(model) > 0.9
    assert model.event_ == pate.GNMax(sigma=3.0, queries=60).event
    assert model.reproducible_
    assert model.predict_proba(PUBLIC).shape == (60, 2)


@pytest.mark.parametrize(
    "student",
    [SelfTrainingClassifier(LogisticRegression()), LabelSpreading(kernel="knn", n_neighbors=5)],
    ids=["pseudo-labels", "label propagation"],
)
def test_students_learn_from_rows_without_an_answer(student):
    model = made(queries=12, semi_supervised=True).set_params(student=student).fit(X, Y, public=PUBLIC)
    assert accuracy(model) > 0.8
    assert len(model.answers_.labels) == 12


def test_a_student_without_probabilities_serves_an_interactive_run():
    votes = pate.InteractiveGNMax(sigma=3.0, threshold=20.0, sigma_threshold=4.0, n_teachers=40, answers=30)
    model = made(aggregation=votes, rounds=3).set_params(student=LinearSVC()).fit(X, Y, public=PUBLIC)
    assert accuracy(model) > 0.8
    assert model.answers_.tested.sum() >= model.answers_.answered.sum() > 0
    assert not model.answers_.answered.all()  # where the student was right, the teachers were not asked


def test_confident_runs_and_soft_votes_work_alike():
    votes = pate.ConfidentGNMax(sigma=3.0, threshold=30.0, sigma_threshold=4.0, answers=40)
    assert accuracy(made(aggregation=votes, soft=True).fit(X, Y, public=PUBLIC)) > 0.85


@pytest.mark.parametrize("labels", [Y[:0], np.full(900, "no")], ids=["no records", "one class"])
def test_data_that_teach_nothing_raise_nothing(labels):
    model = made().fit(X[: len(labels)], labels, public=PUBLIC)
    assert set(model.predict(X)) <= {"no", "yes"}


def test_answers_of_one_class_make_a_student_of_that_class():
    certain = made(aggregation=pate.GNMax(sigma=1e-3), queries=1).fit(X, Y, public=PUBLIC)
    assert len(set(certain.predict(X))) == 1


# --- the one path -------------------------------------------------------------------------------------------------


def test_a_book_is_charged_once_and_predictions_cost_nothing():
    book = dp.Ledger("sqlite://").open("mail", epsilon=60.0, delta=1e-5)
    model = made().fit(X, Y, public=PUBLIC, book=book)
    spent = book.spent()
    model.predict(X)
    assert book.spent() == spent
    assert [entry.label for entry in book.entries()][1:] == ["PATEClassifier"]


@pytest.mark.parametrize(
    ("facts", "public"),
    [
        ({}, None),
        ({}, PUBLIC[:, :1]),
        ({}, PUBLIC * np.nan),
        ({"classes": (0, 1)}, PUBLIC),
        ({"teacher": LogisticRegression(C=-1.0)}, PUBLIC),
        ({"aggregation": "votes"}, PUBLIC),
    ],
    ids=["no public rows", "columns", "not finite", "classes", "teacher", "aggregation"],
)
def test_public_mistakes_are_found_before_the_charge(facts, public):
    book = dp.Ledger("sqlite://").open("mail", epsilon=20.0, delta=1e-5)
    with pytest.raises(ValueError, match=r"public|classes|teacher|aggregation"):
        made().set_params(**facts).fit(X, Y, public=public, book=book)
    assert len(book.entries()) == 1


def test_no_copy_of_a_fitted_model_has_what_is_private():
    model = made().fit(X, Y, public=PUBLIC)
    assert model.private_votes_.shape == (60, 2)
    assert "private" in repr(model.data_dependent_cost_)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert not any(hasattr(other, name) for name in ("private_votes_", "data_dependent_cost_"))
        assert (other.predict(X) == model.predict(X)).all()


# --- one record ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 31])
def test_replay_finds_nothing_when_a_record_is_taken_out(at):
    small, labels = X[:60], Y[:60]
    votes = pate.ConfidentGNMax(sigma=2.0, threshold=3.0, sigma_threshold=2.0, queries=8)
    operation = pate.PATEClassifier(GaussianNB(), 4, GaussianNB(), votes, classes=("no", "yes")).operation(PUBLIC[:8])

    def run(data):
        answer = charged(operation, data)
        return dp.Release((answer.value.answers_.labels, answer.value.predict(PUBLIC)), answer.event)

    replay(run, (small, labels), (np.delete(small, at, 0), np.delete(labels, at)))


def test_an_audit_of_students_finds_less_than_the_claim():
    """A record decides its teacher: 150 students on each of two neighbours, false alarm 1e-3; drawn by fixed seeds."""
    rows = np.array([[-1.0], [1.0], [1.1]])
    labels = np.array([0, 1, 1])
    hits = []
    for keep in (slice(None), slice(0, 1)):
        model = pate.PATEClassifier(GaussianNB(), 1, GaussianNB(), pate.GNMax(sigma=1.0), classes=(0, 1))
        operation = model.operation(np.array([[2.0], [-2.0]]))
        hits.append(
            sum(int(operation.release((rows[keep], labels[keep]), i).value.predict([[2.0]])[0]) for i in range(150))
        )
    found = mu_lower_bound((hits[0], hits[1]), 150, alarm=1e-3)
    assert 0.1 < found < (2 * 2) ** 0.5
