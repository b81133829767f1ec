"""Edges at which one changed operator or constant would go unnoticed elsewhere (``make mutants``)."""

import math

import numpy as np
import pytest

from discreet.mechanisms import RandomizedResponse, StabilityHistogram
from discreet.mechanisms.canonical import canonical
from discreet.statistics import Mean


def test_whole_numbers_are_digits_below_2_to_the_128_and_doubles_from_there_on():
    for sign in (1, -1):
        assert type(canonical(sign * ((1 << 128) - 1))) is int
        assert type(canonical(sign * (1 << 128))) is float
        assert type(canonical(sign * 2.0**128)) is float
        assert type(canonical(sign * 2.0**127)) is int
    assert type(canonical((1 << 128) + 1)) is int  # no double holds it


def test_no_answer_is_an_answer_like_any_other():
    assert canonical(None) is None
    assert StabilityHistogram(epsilon=50.0, delta=1e-3).release([None] * 40, rng=1).value == {None: 40}


def test_a_histogram_takes_every_epsilon_up_to_1024():
    assert StabilityHistogram(epsilon=1024.0, delta=1e-6).release(["a"] * 9, rng=1).value == {"a": 9}
    with pytest.raises(ValueError, match="epsilon"):
        StabilityHistogram(epsilon=1025.0, delta=1e-6)


def test_the_error_of_one_report_is_hoeffdings():
    mechanism = RandomizedResponse(epsilon=math.log(3), categories=2)  # the truth three times in four
    assert mechanism.error(0.9, size=1) == pytest.approx(math.sqrt(math.log(20) / 2) / 0.5)


def test_only_bins_of_finite_edges_are_counted():
    histogram = StabilityHistogram(epsilon=50.0, delta=1e-3, width=1e-300)
    assert histogram.release(np.array([1e300] * 40 + [0.0] * 40), rng=1).value == {0.0: 40}


def test_the_number_of_records_is_compared_where_it_is_public_and_nowhere_else():
    values = [0.1, 0.2, 0.3]
    Mean(bounds=(0.0, 1.0), epsilon=1.0).release(values, rng=1)
    Mean(bounds=(0.0, 1.0), epsilon=1.0, adjacency="replace", n=3).release(values, rng=1)
    with pytest.raises(ValueError, match="n=2"):
        Mean(bounds=(0.0, 1.0), epsilon=1.0, adjacency="replace", n=2).release(values, rng=1)
