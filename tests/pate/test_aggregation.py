"""What aggregators cost, what they say, and what they refuse."""

import copy
import math
import pickle

import numpy as np
import pytest

import discreet as dp
from discreet import events, pate
from discreet.auditing import epsilon_lower_bound, mu_lower_bound
from discreet.errors import BudgetExceeded
from discreet.random import seeded

COUNTS = np.array([[200, 30, 20], [90, 80, 80], [10, 235, 5], [0, 1, 249]])
PAPER = pate.ConfidentGNMax(sigma=40.0, threshold=200.0, sigma_threshold=150.0, queries=640, answers=286)
ALARM = 1e-9


def multipliers(event):
    return {round(leaf.noise_multiplier, 6): count for leaf, count in events.leaves(event).items()}


def test_an_answer_costs_the_gaussian_of_sigma_over_root_two_and_a_test_that_of_its_own_sigma():
    assert multipliers(PAPER.event) == {150.0: 640, round(40 / math.sqrt(2), 6): 286}
    assert multipliers(pate.GNMax(sigma=40.0, queries=3).event) == {round(40 / math.sqrt(2), 6): 3}
    assert multipliers(pate.LNMax(scale=20.0, queries=3).event) == {10.0: 3}


def test_no_event_understates_its_noise():
    assert pate.GNMax(sigma=40.0).event.event.noise_multiplier < 40 / math.sqrt(2)
    assert PAPER.test.event.noise_multiplier <= 150.0


def test_the_published_settings_cost_what_the_tight_account_says():
    assert dp.epsilon(PAPER.event, delta=1e-5) == pytest.approx(2.5427, abs=1e-3)


def test_under_replace_every_multiplier_halves():
    halved = events.Gaussian(noise_multiplier=75.0) * 640 + events.Gaussian(noise_multiplier=20 / math.sqrt(2)) * 286
    assert dp.epsilon(PAPER.event, delta=1e-5, adjacency="replace") == pytest.approx(
        dp.epsilon(halved, delta=1e-5), rel=1e-6
    )


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_the_worst_move_of_a_teacher_is_within_the_stated_sensitivities(kind):
    """All pairs of votes of one teacher, whole ones or shares of 2^-20, among the votes of others."""
    rng = np.random.default_rng(0)
    shares = np.eye(4) if kind == "hard" else np.floor(rng.dirichlet([0.3] * 4, 60) * 2**20) / 2**20
    for others in rng.multinomial(30, [0.25] * 4, size=20):
        for one in shares:
            moved = others + shares
            change = moved - (others + one)
            assert np.linalg.norm(change, axis=1).max() <= math.sqrt(2) * (1 + 1e-15)
            assert np.abs(change).sum(axis=1).max() <= 2
            assert np.abs(moved.max(axis=1) - (others + one).max()).max() <= 1


def test_two_teachers_of_a_replaced_record_move_the_counts_by_twice_that():
    change = np.array([10, 0, 0]) - np.array([8, 2, 0])
    assert np.linalg.norm(change) == pytest.approx(2 * math.sqrt(2))


def test_large_counts_win():
    for aggregator in (pate.GNMax(sigma=2.0, queries=4), pate.LNMax(scale=1.0, queries=4)):
        answers = aggregator.release(COUNTS, rng=3).value
        assert answers.labels.tolist() == [0, 0, 1, 2]
        assert answers.answered.all()
        assert not answers.tested.any()


def test_confident_answers_only_what_reaches_the_threshold():
    votes = pate.ConfidentGNMax(sigma=2.0, threshold=150.0, sigma_threshold=3.0, queries=4)
    answers = votes.release(COUNTS, rng=1).value
    assert answers.labels.tolist() == [0, -1, 1, 2]
    assert answers.tested.tolist() == [True] * 4
    assert answers.answered.tolist() == [True, False, True, True]


def test_nothing_is_asked_once_every_answer_is_given():
    votes = pate.ConfidentGNMax(sigma=2.0, threshold=150.0, sigma_threshold=3.0, queries=4, answers=1)
    answers = votes.release(COUNTS, rng=1).value
    assert answers.labels.tolist() == [0, -1, -1, -1]
    assert answers.tested.tolist() == [True, False, False, False]


def test_interactive_answers_where_the_student_is_wrong_and_confirms_where_it_is_sure():
    votes = pate.InteractiveGNMax(
        sigma=2.0, threshold=120.0, sigma_threshold=3.0, queries=4, n_teachers=250, confidence=0.9
    )
    shares = np.array([[0.9, 0.1, 0.0], [0.4, 0.3, 0.3], [0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])
    answers = votes.release((COUNTS, shares), rng=1).value
    assert answers.labels.tolist() == [0, -1, 1, 2]
    assert answers.answered.tolist() == [False, False, True, False]


def test_a_session_charges_each_test_and_each_answer_before_it_is_made():
    book = dp.Ledger("sqlite://").open("mail", epsilon=1.0, delta=1e-5)
    session = pate.ConfidentGNMax(sigma=20.0, threshold=100.0, sigma_threshold=25.0, queries=10**6).start(book=book)
    said = []

    def ask():
        while True:
            said.append(session.ask(np.array([250, 0, 0])))

    with pytest.raises(BudgetExceeded):
        ask()
    told = session.answers()
    assert 3 < len(said) < 400
    paid = len(book.entries()) - 1 - told.tested.sum() - told.answered.sum()
    assert paid in (0, 1)  # the refused query may have paid for its test
    assert book.spent().epsilon <= 1.0


@pytest.mark.parametrize(
    "votes", [np.ones(1), np.ones((2, 3)), ["a", "b"], 5.0], ids=["one class", "table", "text", "number"]
)
def test_a_session_charges_nothing_for_what_is_publicly_no_query(votes):
    class Refusing:
        def charge(self, *args, **kwargs):
            raise AssertionError("charged")

    with pytest.raises(ValueError, match=r"votes|counts"):
        pate.GNMax(sigma=1.0).start(book=Refusing()).ask(votes)
    with pytest.raises(ValueError, match="pair"):
        pate.InteractiveGNMax(sigma=1.0, threshold=1.0, sigma_threshold=1.0, n_teachers=3).start(book=Refusing()).ask(
            votes
        )


def test_a_session_stops_at_its_queries_and_cannot_be_copied():
    session = pate.GNMax(sigma=2.0, queries=1).start(rng=1)
    assert session.ask(COUNTS[0]) == 0
    with pytest.raises(ValueError, match="session is over"):
        session.ask(COUNTS[0])
    for double in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="cannot be copied"):
            double(session)


@pytest.mark.parametrize(
    "counts",
    [[[3, 4]], np.zeros(3), np.zeros((5, 3)), np.zeros((1, 1)), np.zeros((1, 3), complex), "votes"],
    ids=["list", "row", "too many queries", "one class", "complex", "text"],
)
def test_what_is_publicly_no_table_of_votes_is_refused_before_the_charge(counts):
    book = dp.Ledger("sqlite://").open("mail", epsilon=9.0, delta=1e-5)
    with pytest.raises(ValueError, match="counts"):
        book.release(pate.GNMax(sigma=9.0, queries=4), counts)
    assert len(book.entries()) == 1


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        (pate.GNMax, {"sigma": 0.0}),
        (pate.GNMax, {"sigma": 1.0, "queries": 0}),
        (pate.LNMax, {"scale": math.nan}),
        (pate.ConfidentGNMax, {"sigma": 1.0, "threshold": math.inf, "sigma_threshold": 1.0}),
        (pate.ConfidentGNMax, {"sigma": 1.0, "threshold": 1.0, "sigma_threshold": 1.0, "answers": 0}),
        (pate.InteractiveGNMax, {"sigma": 1.0, "threshold": 1.0, "sigma_threshold": 1.0, "n_teachers": 0}),
    ],
    ids=["sigma", "queries", "scale", "threshold", "answers", "teachers"],
)
def test_facts_that_are_no_facts_are_refused(kind, facts):
    with pytest.raises(ValueError, match="but must be"):
        kind(**facts)


# --- audits: below the claim, and near it --------------------------------------------------------------------------


def test_an_audit_of_answers_finds_less_than_the_claim_and_something():
    """2,000 answers on each of two neighbours, false alarm 1e-9: the mu of Gaussian(σ/√2) is not exceeded."""
    trials, here, there = 2000, np.array([5, 5]), np.array([6, 4])
    rng, votes = seeded(5), pate.GNMax(sigma=1.0, queries=trials)
    hits = tuple(int((votes.draw(np.tile(c, (trials, 1)), rng).labels == 0).sum()) for c in (here, there))
    found = mu_lower_bound(hits, trials, alarm=ALARM)
    assert 0.8 < found < math.sqrt(2)
    pure = pate.LNMax(scale=1.0, queries=trials)
    hits = tuple(int((pure.draw(np.tile(c, (trials, 1)), rng).labels == 0).sum()) for c in (here, there))
    assert 0.5 < epsilon_lower_bound(hits, trials, alarm=ALARM) < 2.0


def test_an_audit_of_tests_finds_less_than_the_claim_and_something():
    trials, rng = 2000, seeded(6)
    votes = pate.ConfidentGNMax(sigma=1.0, threshold=6.0, sigma_threshold=1.0, queries=trials)
    hits = tuple(int(votes.draw(np.tile(c, (trials, 1)), rng).answered.sum()) for c in ([6, 4], [7, 3]))
    assert 0.5 < mu_lower_bound(hits, trials, alarm=ALARM) < 1.0
