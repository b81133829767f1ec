"""Edges at which one changed operator or constant would go unnoticed elsewhere (``make mutants``)."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
sklearn = pytest.importorskip("sklearn")

from sklearn.linear_model import LogisticRegression, SGDClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402

from discreet.pate import GNMax, SanitisedCost  # noqa: E402
from discreet.pate.classifier import PATEClassifier, _shares  # noqa: E402
from discreet.pate.confident import _gaussian_test  # noqa: E402
from discreet.pate.costs import _gaps  # noqa: E402
from discreet.pate.networks import NetworkClassifier  # noqa: E402
from discreet.pate.tabular import _scores  # noqa: E402
from discreet.pate.voting import Teachers, _seeded  # noqa: E402
from tests.frozen import unfrozen  # noqa: E402

QUERIES = np.arange(8.0).reshape(4, 2)


def test_nothing_that_was_stated_can_be_changed_afterwards():
    assert unfrozen("pate") == {"TeacherGenerator", "PATEGAN", "GPATE"}  # which learn; their operation is frozen


def test_a_gap_is_a_difference_of_votes():
    assert _gaps([[1, 5, 9], [7, 7, 2]]).tolist() == [[8.0, 4.0], [5.0, 0.0]]


def test_a_test_of_votes_is_one_number():
    assert _gaussian_test(2.0, "record").max_size == 1


def test_a_sanitised_cost_has_a_delta_by_default_and_never_none():
    votes = GNMax(sigma=2.0, queries=1)
    answers = votes.release(np.array([[9, 0]]), rng=1).value
    assert SanitisedCost(aggregator=votes, answers=answers, order=8.0).delta == 1e-6
    with pytest.raises(ValueError, match="delta"):
        SanitisedCost(aggregator=votes, answers=answers, order=8.0, delta=0.0)


def test_two_classes_are_enough_and_one_is_none():
    assert Teachers(teacher=LogisticRegression(), n_teachers=1, n_classes=2).n_classes == 2
    with pytest.raises(ValueError, match="n_classes"):
        Teachers(teacher=LogisticRegression(), n_teachers=1, n_classes=1)


def test_the_bar_is_as_full_as_teachers_are_done(capsys):
    teachers = Teachers(teacher=LogisticRegression(), n_teachers=4, n_classes=2, progress=True)
    assert len(list(teachers._shown(iter([np.zeros(1)] * 4)))) == 4
    shown = capsys.readouterr().err.strip().split("\r")
    assert [bar.count("█") for bar in shown] == [5, 10, 15, 20]


def test_every_seed_of_a_teacher_is_set_and_one_without_is_left():
    model = _seeded(make_pipeline(SGDClassifier()), 7)
    assert model.get_params()["sgdclassifier__random_state"] == 7
    plain = SimpleNamespace(fit=len)
    assert _seeded(plain, 7) is plain


def test_a_network_is_repeatable_by_default_and_averages_its_weights():
    assert inspect.signature(NetworkClassifier).parameters["random_state"].default == 0
    network = NetworkClassifier(lambda: torch.nn.Linear(1, 1), n_classes=2)
    network.network_, new = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    for module, value in ((network.network_, 0.0), (new, 4.0)):
        for parameter in module.parameters():
            torch.nn.init.constant_(parameter, value)
    network._average(new, 0.25)
    assert [float(p.detach()) for p in network.network_.parameters()] == [3.0, 3.0]


@pytest.mark.parametrize(("labels", "answer"), [([1, -1, 1, -1], 1), ([-1] * 4, 0)])
def test_a_student_of_one_class_or_none_says_that_one(labels, answer):
    model = PATEClassifier(LogisticRegression(), classes=[0, 1], n_teachers=2)
    assert model._taught(QUERIES, np.array(labels)).predict(QUERIES).tolist() == [answer] * 4


def test_shares_of_a_student_without_probabilities_are_zeros_and_ones():
    student = SimpleNamespace(predict=lambda rows: np.array([2, 0, 1, 2]))
    assert _shares(student, QUERIES, 3).tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_scores_of_two_classes_are_one_row_of_differences_and_of_three_a_row_each():
    two = SimpleNamespace(classes_=[0, 1], coef_=np.array([[3.0, 4.0]]), intercept_=np.array([5.0]))
    coefficients, intercept = _scores(SimpleNamespace(student_=two, classes_=["a", "b"]), 2)
    assert (coefficients.tolist(), intercept.tolist()) == ([[3.0, 4.0]], [5.0])
    coefficients, intercept = _scores(SimpleNamespace(student_=two, classes_=["a", "b", "c"]), 2)
    assert coefficients.tolist() == [[0.0, 0.0], [3.0, 4.0], [0.0, 0.0]]
    assert intercept[1] == 5.0
    assert intercept[2] < -1e6
