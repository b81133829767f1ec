"""Randomized response: exact odds, unbiased estimates, replace adjacency."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet import events
from discreet.mechanisms import RandomizedResponse

FALSE_ALARM = 1e-6


@pytest.mark.parametrize("categories", [2, 5])
def test_reports_have_the_odds_they_promise(categories):
    mechanism = RandomizedResponse(epsilon=1.2, categories=categories)
    counts = np.bincount(mechanism.release(np.ones(200_000, int), rng=1).value, minlength=categories)

    def fits(epsilon):
        law = np.ones(categories)
        law[1] = math.exp(epsilon)
        return stats.chisquare(counts, law / law.sum() * counts.sum()).pvalue > FALSE_ALARM

    assert fits(1.2)
    assert not fits(1.25)
    assert not fits(1.15)


def test_event_is_for_replace_and_estimates_are_unbiased():
    mechanism = RandomizedResponse(epsilon=1.0, categories=3)
    assert mechanism.event == events.RandomizedResponse(epsilon=1.0, categories=3)
    assert mechanism.event.adjacency == "replace"
    truth = np.repeat([0, 1, 2], [60_000, 30_000, 10_000])
    estimate = mechanism.estimate(mechanism.release(truth, rng=2).value)
    assert np.abs(estimate - [0.6, 0.3, 0.1]).max() < mechanism.error(confidence=1 - FALSE_ALARM, size=100_000)


def test_shapes_and_refusals():
    mechanism = RandomizedResponse(epsilon=1.0)
    assert mechanism.release(np.array([[0, 1], [1, 1]]), rng=1).value.shape == (2, 2)
    assert mechanism.release(np.zeros(0, int)).value.shape == (0,)
    assert mechanism.release([True, False], rng=1).value.shape == (2,)
    for bad in (np.array([0.5]), np.array(["a"]), np.array([1j]), "01", b"01", {0: 1}):  # types, not records
        with pytest.raises(ValueError, match="records"):
            mechanism.release(bad)
    for bad in (0, -1, math.inf, math.nan):
        with pytest.raises(ValueError, match="epsilon"):
            RandomizedResponse(epsilon=bad)
    with pytest.raises(ValueError, match="categories"):
        RandomizedResponse(epsilon=1.0, categories=1)


@pytest.mark.parametrize("records", [np.full(60_000, 7), np.full(60_000, 2**64 - 1, np.uint64), np.full(60_000, None)])
def test_a_record_of_no_category_reports_any_of_them(records):
    """Uniform: a likelihood between a lie's and the truth's, so the odds against any record stay within e^epsilon."""
    mechanism = RandomizedResponse(epsilon=1.2, categories=5)
    counts = np.bincount(mechanism.release(records, rng=1).value, minlength=5)
    assert stats.chisquare(counts).pvalue > FALSE_ALARM
    lie, truth = (1 - mechanism.truth) / 4, mechanism.truth
    assert lie <= 0.2 <= truth
    assert max(0.2 / lie, truth / 0.2) <= math.exp(1.2)
