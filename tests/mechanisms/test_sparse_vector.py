"""AboveThreshold and sparse vector: fresh noise, one charge a positive, nothing after the last."""

import copy
import os
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet as dp
from discreet.mechanisms import AboveThreshold, SparseVector
from discreet.mechanisms.sparse_vector import _noise
from discreet.random import seeded


class Book:
    def __init__(self, limit=100):
        self.charges, self.limit = [], limit

    def charge(self, event, label="", *, unit="one record", reproducible=False):
        if len(self.charges) == self.limit:
            raise dp.BudgetExceeded("refused")
        self.charges.append(event)


@given(sensitivity=st.floats(1e-3, 1e3), epsilon=st.floats(1e-3, 20), monotone=st.booleans())
def test_the_two_noises_together_never_exceed_epsilon(sensitivity, epsilon, monotone):
    noise = _noise(sensitivity, epsilon, monotone)
    assert noise.epsilon <= epsilon
    assert noise.epsilon >= epsilon * (1 - 1e-4)
    assert noise.query >= noise.factor * noise.reach / epsilon


def test_far_values_are_answered_rightly():
    mechanism = SparseVector(threshold=50.0, epsilon=2.0, max_positives=3)
    values = [0.0, 1000.0, -5.0, 2000.0, 0.0, 3000.0, 4000.0]
    assert mechanism.release(values, rng=1).value == [1, 3, 5]
    assert AboveThreshold(threshold=1e6).release(values, rng=1).value is None
    assert AboveThreshold(threshold=1e6).release([], rng=1).value is None
    assert dp.epsilon(mechanism.event, delta=0) <= 6.0


def test_the_error_bound_holds():
    mechanism, rng = AboveThreshold(threshold=0.0, epsilon=1.0), seeded(1)
    margin = mechanism.error(confidence=0.9, size=20)
    wrong = 0
    for _ in range(200):
        found = mechanism.release([-margin] * 19 + [margin], rng).value
        wrong += found != 19
    assert wrong <= 45  # binomial(200, 0.1) exceeds this with probability below 1e-6


def test_a_round_ends_at_its_positive_answer():
    asked = AboveThreshold(threshold=0.0).start(rng=1)
    assert asked.ask(1e6)
    with pytest.raises(ValueError, match="round is over"):
        asked.ask(1e6)
    session = SparseVector(threshold=0.0, max_positives=1).start(rng=1)
    assert session.ask(1e6)
    with pytest.raises(ValueError, match="session is over"):
        session.ask(0.0)


def test_the_book_is_charged_before_each_round_and_only_then():
    book = Book()
    mechanism = SparseVector(threshold=50.0, epsilon=2.0, max_positives=3)
    session = mechanism.start(rng=1, book=book)
    assert book.charges == []
    for value in (-1e6, -1e6, 1e6, -1e6):
        session.ask(value)
    assert book.charges == [mechanism.round.event] * 2
    session.ask(-1e6)
    assert len(book.charges) == 2


def test_a_refused_charge_stops_the_session_before_it_reads_the_value():
    session = SparseVector(threshold=0.0, max_positives=3).start(rng=1, book=Book(limit=1))
    assert session.ask(1e6)
    for _ in range(2):
        with pytest.raises(dp.BudgetExceeded):
            session.ask(object())  # never looked at


def test_threshold_noise_is_renewed_and_query_noise_is_fresh():
    """A bar drawn once per round; with the noise reused across rounds or queries the answers would all agree."""
    mechanism, rng = SparseVector(threshold=0.0, epsilon=0.1, max_positives=50), seeded(3)
    session = mechanism.start(rng)
    bars = set()
    while not session.over:
        session.ask(0.0)
        bars.add(session._round._bar)
    assert len(bars) == 50
    answers = [AboveThreshold(threshold=0.0, epsilon=0.1).start(rng).ask(0.0) for _ in range(200)]
    assert 60 < sum(answers) < 140


@pytest.mark.parametrize("bad", [np.nan, -np.inf, "12345", None, [1.0], 1j])
def test_what_is_no_number_is_below_every_threshold(bad):
    assert AboveThreshold(threshold=-1e300).release([bad, bad, np.inf, 0.0], rng=1).value == 2
    assert SparseVector(threshold=0.0, max_positives=2).release([bad, 1e9, bad, 1e9], rng=1).value == [1, 3]


def test_bad_parameters_are_named():
    for name, bad in (("threshold", np.nan), ("sensitivity", 0.0), ("epsilon", -1.0), ("max_positives", 0)):
        with pytest.raises(ValueError, match=name):
            SparseVector(**{"threshold": 0.0, "max_positives": 1, name: bad})


def test_what_was_paid_for_once_answers_in_one_place():
    """A copy, or a forked child, would have the same threshold noise and say yes for nothing."""
    session = SparseVector(threshold=100.0, sensitivity=1.0, epsilon=1.0, max_positives=2).start()
    session.ask(0.0)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="paid for"):
            copied(session)
    child = os.fork()
    if not child:
        try:
            session.ask(1e6)
        except ValueError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert session.ask(1e6)
