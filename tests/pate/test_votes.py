"""Partition and votes: one record, one teacher; whatever happens in a teacher, it votes."""

import io
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from discreet.pate import Teachers, count_votes
from discreet.pate.partition import teacher_of_records, teacher_of_units
from discreet.random import Streams

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 2)).round(3)
Y = (X[:, 0] > 0).astype(int)
QUERIES = RNG.normal(size=(9, 2))


def votes(X=X, y=Y, teacher=None, n_teachers=8, units=None, **facts):
    made = Teachers(teacher=teacher or GaussianNB(), n_teachers=n_teachers, n_classes=2, **facts)
    return made.votes(X, y, QUERIES, Streams(1), units=units)


# --- partition -----------------------------------------------------------------------------------------------------


@given(st.permutations(range(20)), st.integers(0, 19))
@settings(max_examples=30, deadline=None)
def test_a_records_teacher_does_not_depend_on_the_others(order, without):
    found = teacher_of_records(5, b"key", X[:20], Y[:20])
    order = [at for at in order if at != without]
    assert (teacher_of_records(5, b"key", X[order], Y[order]) == found[order]).all()


def test_a_units_teacher_is_that_of_its_identifier_however_it_is_written():
    found = teacher_of_units(50, b"key", [1, 1.0, True, "1", None, float("nan"), "ann"])
    assert found[0] == found[1] == found[2]
    assert found[4] == found[5]
    assert (teacher_of_units(50, b"key", ["ann"]) == found[-1:]).all()


def test_equal_values_are_one_whatever_their_bits():
    one, other = [[0.0, np.nan]], [[-0.0, -np.nan]]
    assert (teacher_of_records(999, b"k", one) == teacher_of_records(999, b"k", other)).all()


def test_another_key_is_another_partition_and_teachers_have_about_equal_parts():
    """20,000 records, 10 teachers: a part leaves 2,000 ± 300 with probability below 1e-10."""
    rows = np.arange(20_000.0)[:, None]
    first, second = (teacher_of_records(10, key, rows) for key in (b"a", b"b"))
    assert 0.08 < (first == second).mean() < 0.12
    assert abs(np.bincount(first, minlength=10) - 2000).max() < 300


# --- one record, one teacher ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, 57, 199])
@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_a_record_more_or_less_changes_one_teachers_votes_only(at, soft):
    whole, fewer = votes(soft=soft), votes(np.delete(X, at, 0), np.delete(Y, at), soft=soft)
    changed = [i for i in range(8) if not np.array_equal(whole[i], fewer[i])]
    key = Streams(1).public(0).words(4).tobytes()
    assert set(changed) <= {int(teacher_of_records(8, key, X[at : at + 1], Y[at : at + 1])[0])}


def test_some_record_does_change_a_vote():
    assert any(not np.array_equal(votes(), votes(np.delete(X, at, 0), np.delete(Y, at))) for at in range(40))


def test_all_records_of_a_unit_have_one_teacher():
    units = np.arange(200) // 25
    gone = units == 3
    whole, fewer = votes(units=units), votes(X[~gone], Y[~gone], units=units[~gone])
    assert sum(not np.array_equal(whole[i], fewer[i]) for i in range(8)) <= 1


# --- whatever happens in a teacher ---------------------------------------------------------------------------------


class Failing(GaussianNB):
    def fit(self, X, y):
        raise RuntimeError("private")


class Warning_(GaussianNB):
    def fit(self, X, y):
        import warnings

        warnings.warn("private", stacklevel=1)
        return super().fit(X, y)


class Strange(GaussianNB):
    answer = np.array([7] * 9)

    def predict(self, X):
        return self.answer


class Nan(Strange):
    answer = np.array([np.nan] * 9)


class Short(Strange):
    answer = np.array([0])


FIXED = np.tile(np.arange(8)[:, None] % 2, (1, 9))


@pytest.mark.parametrize("teacher", [Failing(), Strange(), Nan(), Short()], ids=lambda t: type(t).__name__)
def test_a_teacher_that_fails_or_says_what_is_no_class_casts_its_fixed_vote(teacher):
    assert np.array_equal(votes(teacher=teacher), FIXED)


@pytest.mark.parametrize(
    ("X", "y"), [(X[:0], Y[:0]), (X, np.zeros(200)), (X * np.nan, Y), (X, Y + 5)], ids=["empty", "one", "nan", "other"]
)
def test_a_part_without_two_classes_gives_the_fixed_vote(X, y):
    assert np.array_equal(votes(X, y), FIXED)
    assert np.array_equal(votes(X, y, soft=True), np.eye(2)[FIXED])


def test_a_teachers_warning_is_not_heard():
    assert np.array_equal(votes(teacher=Warning_()), votes())


def test_an_unusable_record_is_nobodys():
    odd = np.vstack([X, [[np.inf, 0.0]], [[0.0, 0.0]]])
    assert np.array_equal(votes(odd, np.append(Y, [1, 9])), votes())


@pytest.mark.parametrize(
    "teacher",
    [LogisticRegression(), KNeighborsClassifier(3), DecisionTreeClassifier()],
    ids=lambda t: type(t).__name__,
)
def test_any_classifier_teaches(teacher):
    labels = count_votes(votes(teacher=teacher), 2).argmax(axis=1)
    assert (labels == (QUERIES[:, 0] > 0)).mean() > 0.7


def test_soft_votes_are_whole_multiples_that_sum_to_at_most_one():
    found = votes(soft=True)
    assert (found * 2**20 == np.floor(found * 2**20)).all()
    assert (found.sum(axis=2) <= 1).all()
    assert (found.sum(axis=2) > 1 - 2**-18).all()


def test_processes_and_progress_change_no_vote(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert np.array_equal(votes(n_teachers=3, n_jobs=2, progress=True), votes(n_teachers=3))
    assert "teacher 3/3" in sys.stderr.getvalue()


def test_a_teacher_that_is_publicly_wrong_is_refused_before_a_record_is_read():
    with pytest.raises(ValueError, match="predict_proba"):
        Teachers(teacher=LinearSVC(), n_teachers=2, n_classes=2, soft=True)
    with pytest.raises(ValueError, match="fails on public queries"):
        Teachers(teacher=LogisticRegression(C=-1.0), n_teachers=2, n_classes=2).rehearse(QUERIES)
    with pytest.raises(ValueError, match="one class per query"):
        Teachers(teacher=Short(), n_teachers=2, n_classes=2).rehearse(QUERIES)


def test_counts_are_the_votes_of_each_class():
    assert count_votes(np.array([[0, 1], [0, 2], [1, 2]]), 3).tolist() == [[2, 1, 0], [0, 1, 2]]


class Bootstrap:
    """Learns from a sample of its part drawn by NumPy's, Python's and torch's global generators."""

    def fit(self, X, y):
        import random

        import torch

        drawn = np.random.randint(0, len(X), len(X))  # noqa: NPY002 - as people do
        random.random(), torch.randperm(len(X))
        self.start = np.random.rand() + random.random() + float(torch.rand(()))  # noqa: NPY002
        self.means = [X[drawn][y[drawn] == c].mean(axis=0) if (y[drawn] == c).any() else X[0] for c in (0, 1)]
        return self

    def predict(self, X):
        apart = ((X - self.means[0]) ** 2).sum(axis=1) - ((X - self.means[1]) ** 2).sum(axis=1)
        return (apart + self.start - 1.5 > 0).astype(int)


def test_teachers_that_draw_from_the_process_move_no_other_teacher():
    """A record more draws more numbers: it moved the generators for every later teacher, and their votes."""
    import torch

    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 3))
    y, queries = (X[:, 0] + rng.normal(size=600) > 0).astype(int), rng.normal(size=(100, 3)) * 0.3
    teachers = Teachers(teacher=Bootstrap(), n_teachers=20, n_classes=2)

    def votes(kept):
        np.random.seed(0)  # noqa: NPY002 - a script's first line
        torch.manual_seed(0)
        before = np.random.get_state()[2], torch.get_rng_state()  # noqa: NPY002
        cast = teachers.votes(X[kept], y[kept], queries, Streams(7))
        assert (np.random.get_state()[2], torch.get_rng_state().tolist()) == (before[0], before[1].tolist())  # noqa: NPY002
        return cast

    whole, fewer = votes(np.arange(600)), votes(np.arange(600) != 17)
    assert (whole != fewer).any(axis=1).sum() <= 1
    assert (whole[0] != whole[1]).any()  # teachers have chance of their own
