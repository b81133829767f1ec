"""The test of tests: any public test, whatever it does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from discreet.inference import TestOfTests

ROWS = np.random.default_rng(0).normal(0.6, 1.0, (1200, 1))


def t_test(rows):
    return ttest_1samp(rows[:, 0], 0.0).pvalue


def make(test=t_test, **options):
    return TestOfTests(**{"test": test, "dimension": 1, "parts": 30, "epsilon": 1.0, **options})


def test_an_effect_is_seen_and_its_absence_is_not():
    assert make().release(ROWS, rng=1).p_value < 0.001
    assert make().release(ROWS - 0.6, rng=1).p_value > 0.01


@pytest.mark.parametrize(
    "test", [lambda rows: 1 / 0, lambda rows: "p", lambda rows: float("nan"), lambda rows: rows.no_such_attribute]
)
def test_a_test_that_fails_does_not_reject(test):
    answer = make(test=test, epsilon=1e6).release(ROWS, rng=1)
    assert abs(answer.statistic) <= 0.5


def test_every_record_is_in_one_part():
    seen = []
    make(test=lambda rows: seen.append(len(rows)) or 1.0).release(ROWS, rng=1)
    assert (sum(seen), len(seen)) == (len(ROWS), 30)
    assert min(seen) < 40 < max(seen)  # at random: 40 on average


def test_a_delta_makes_the_noise_bounded():
    answer = make(test=lambda rows: 1.0, delta=0.01).release(ROWS, rng=1)
    assert abs(answer.statistic) <= make(delta=0.01).mechanism.cut


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"adjacency": "replace"}, "add-remove"),
        ({"rejects_at": 1.0}, "rejects_at"),
        ({"parts": 0}, "parts"),
        ({"epsilon": None, "rho": 1.0}, "rho is given"),
    ],
)
def test_public_mistakes_are_named(options, said):
    with pytest.raises(ValueError, match=said):
        make(**options)
