"""Two proportions, beside statsmodels'."""

from __future__ import annotations

import pytest
from statsmodels.stats.proportion import proportions_ztest

from discreet.inference import Samples, TwoProportions, two_proportions

A, B = [1] * 90 + [0] * 110, [1] * 110 + [0] * 150


def test_without_noise_it_is_the_pooled_z_test():
    statistic, p_value = proportions_ztest([90, 110], [200, 260])
    mine = two_proportions(A, B, epsilon=1e6, rng=1)
    assert mine.statistic == pytest.approx(statistic, abs=1e-3)
    assert mine.p_value == pytest.approx(p_value, abs=0.03)  # differences of counts are few
    assert mine.difference == pytest.approx(0.45 - 110 / 260, abs=1e-3)


def test_a_column_of_groups_is_as_two_samples():
    test = TwoProportions(groups=("a", "b"), epsilon=1.0)
    columns = (["a"] * len(A) + ["b"] * len(B), A + B)
    assert test.release(columns, rng=2).value == test.release(Samples((A, B)), rng=2).value


def test_what_is_neither_is_left_out():
    test = TwoProportions(epsilon=1e6)
    answer = test.release(([0, 1, 0, 1, 2, 0] * 60, [1, 0, 1, 1, 1, 7] * 60), rng=1)
    assert answer.effect == pytest.approx(0.5, abs=1e-3)
