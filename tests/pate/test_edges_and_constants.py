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

from discreet.pate import GNMax, InteractiveGNMax, SanitisedCost, pate_gan, smooth  # noqa: E402
from discreet.pate.classifier import PATEClassifier, _shares, _TeachingRun  # noqa: E402
from discreet.pate.confident import _gaussian_test  # noqa: E402
from discreet.pate.discriminators import TeacherDiscriminators  # noqa: E402
from discreet.pate.g_pate import GPATE  # noqa: E402
from discreet.pate.generating import GeneratorFit  # noqa: E402
from discreet.pate.gnmax_cost import _gaps, divergence  # noqa: E402
from discreet.pate.networks import NetworkClassifier  # noqa: E402
from discreet.pate.tabular import _scores  # noqa: E402
from discreet.pate.voting import Teachers, _with_seed  # noqa: E402
from discreet.random import Streams, seeded  # noqa: E402
from discreet.schema import Categories, Declaration, Schema  # noqa: E402
from discreet.synthesis.domain import Domain  # noqa: E402
from discreet.synthesis.layouts import Images, TableLayout  # noqa: E402
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
    assert len(list(teachers._with_progress(iter([np.zeros(1)] * 4)))) == 4
    shown = capsys.readouterr().err.strip().split("\r")
    assert [bar.count("█") for bar in shown] == [5, 10, 15, 20]


def test_every_seed_of_a_teacher_is_set_and_one_without_is_left():
    model = _with_seed(make_pipeline(SGDClassifier()), 7)
    assert model.get_params()["sgdclassifier__random_state"] == 7
    plain = SimpleNamespace(fit=len)
    assert _with_seed(plain, 7) is plain


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
    assert model._train_student(QUERIES, np.array(labels)).predict(QUERIES).tolist() == [answer] * 4


def test_a_student_learns_between_the_rounds_of_an_interactive_session_and_of_no_other(monkeypatch):
    plain = GNMax(sigma=2.0, queries=9)
    interactive = InteractiveGNMax(sigma=2.0, sigma_threshold=2.0, threshold=5.0, queries=9, n_teachers=10)
    taught = []
    guess = SimpleNamespace(predict=lambda rows: np.zeros(len(rows)))
    monkeypatch.setattr(_TeachingRun, "_student", lambda self, labels: taught.append(len(labels)) or guess)
    for aggregator, lengths in ((interactive, [3, 6]), (plain, [])):
        run = _TeachingRun(SimpleNamespace(rounds=3), None, aggregator, np.zeros((9, 1)), Streams(1))
        answers, _ = run._answers(np.tile([10, 0], (9, 1)))
        assert len(answers.labels) == 9
        assert taught == lengths
        taught.clear()


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


# --- generators ------------------------------------------------------------------------------------------------------


def test_a_table_has_the_classes_of_its_target_or_none():
    domain = Domain(Declaration(Schema(a=Categories([1, 2, 3]), b=Categories([1, 2]))))
    assert [TableLayout(domain, target).classes for target in (None, "a", "b")] == [0, 3, 2]


def test_rows_are_images_as_many_as_there_are():
    images = Images(shape=(2, 1), bounds=(-1.0, 1.0)).values(np.array([[0.0, 1.0], [0.5, 0.0], [1.0, 1.0]]), seeded(1))
    assert images[..., 0].tolist() == [[-1, 1], [0, -1], [1, 1]]


def test_a_generator_is_pulled_to_what_the_student_takes_for_records(monkeypatch):
    student = SimpleNamespace(learn=lambda made, labels: None, scores=lambda rows: rows.sum(dim=1))
    monkeypatch.setattr(pate_gan, "_Student", lambda settings, run: student)
    entry = torch.zeros(1, requires_grad=True)
    run = SimpleNamespace(
        teach=lambda: None,
        generate_rows=lambda size: entry.expand(size, 1),
        noisy=lambda votes: votes,
        teachers=SimpleNamespace(votes=lambda made: np.ones((len(made), 2))),
        optimizer=torch.optim.SGD([entry], lr=1.0),
    )
    pate_gan.PATEGAN(steps=1, generator_steps=1, batch_size=2, n_teachers=2).train(run)
    assert float(entry.detach()) == 0.5  # the slope of softplus at zero


def test_coordinates_are_means_of_votes_or_the_bin_of_most():
    noisy = np.array([[3.0, 1.0], [2.0, 2.0], [0.0, 4.0]])
    mean, most = (GPATE(n_teachers=4, vote_bins=2, reach=1.0, votes=v, threshold=0.7) for v in ("mean", "max"))
    assert mean._coordinates(noisy).tolist() == [-0.25, 0.0, 0.5]
    assert most._coordinates(noisy).tolist() == [-0.5, 0.0, 0.5]


def test_a_teacher_without_records_votes_by_its_number():
    parts = SimpleNamespace(present=torch.tensor([False, True, False, False, False]))
    teachers = TeacherDiscriminators(parts, 5, 3, 0, 4, 0.1, torch.Generator().manual_seed(1))
    votes = teachers.pulls(torch.rand(2, 3), 3, torch.eye(3)[:, :2], torch.tensor([-0.5, 0.5]))
    assert votes.shape == (5, 4)
    assert votes[[0, 2, 3, 4]].tolist() == [[0] * 4, [2] * 4, [0] * 4, [1] * 4]


def test_fits_are_compared_without_who_is_told_of_them():
    settings, layout = GPATE(projections=2), Images(shape=(2, 2))
    assert GeneratorFit(settings, layout, print) == GeneratorFit(settings, layout, len)


@pytest.mark.parametrize("sigma", [2.0, 1e5, 1e18, 1e30])
def test_an_answer_that_errs_at_least_as_often_as_one_in_e_costs_what_any_answer_does(sigma):
    """The theorem's condition on q: it fails there for every noise, also where mu + 1 is mu in doubles."""
    assert divergence([-0.99, -0.5, -1e-9, 0.0], sigma, np.array([8.0])).ravel() == pytest.approx(8.0 / sigma**2, abs=0)


def test_agreement_is_cheaper_as_soon_as_the_second_order_is_above_one():
    """mu2 = σ√(-log q): 0.98 is too low for the theorem, 1.5 is enough."""
    below, above = divergence([-3.8416, -9.0], 0.5, np.array([1.3])).ravel()
    assert below == 1.3 / 0.25
    assert above < 0.9 * below


# --- the smooth bound ------------------------------------------------------------------------------------------------


def test_the_cost_of_an_answer_is_finite_and_falls_however_teachers_disagree():
    part = smooth.answers(np.array([-30.0]), 4.0, 10, 8.0)
    cost = part.cost(np.array([-50.0, -1.0, 0.0, 5.0, 9.0]))
    assert np.isfinite(cost).all()
    assert (np.diff(cost) <= 0).all()
    assert cost[-1] < cost[0]


def test_the_smooth_bound_of_a_lone_query_is_its_largest_change_at_a_discount():
    part = smooth.tests(np.array([20.0]), 4.0, 8.0)
    most = float(smooth.changes(part).max())
    assert 0 < smooth.smooth_bound([part], 0.4) < smooth.smooth_bound([part], 0.2) < most


def test_a_limit_has_half_of_the_doubt_for_each_of_its_two_draws(monkeypatch):
    votes = GNMax(sigma=2.0, queries=1)
    counts = np.array([[9, 0]])
    operation = SanitisedCost(aggregator=votes, answers=votes.release(counts, rng=1).value, order=8.0, confidence=0.9)
    asked = []
    for kind in (type(operation._figure), type(operation._scale)):
        error = kind.error
        monkeypatch.setattr(
            kind, "error", lambda self, at, *a, e=error, **k: (asked.append(at), e(self, at, *a, **k))[1]
        )
    operation.release(counts, rng=1)
    assert asked == pytest.approx([0.95, 0.95])
