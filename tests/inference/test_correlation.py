"""Correlation, beside scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet.inference import Correlation, correlation

RNG = np.random.default_rng(6)
X = RNG.normal(5, 1, 300)
Y = 0.1 * X + RNG.normal(5, 1, 300)


def test_without_noise_it_is_pearson_s():
    theirs = stats.pearsonr(X, Y)
    mine = correlation(X, Y, ((0, 10), (0, 10)), epsilon=1e6, rng=1)
    assert mine.effect == pytest.approx(theirs.statistic, abs=1e-3)
    assert mine.p_value == pytest.approx(theirs.pvalue, abs=0.02)
    assert mine.interval == pytest.approx(theirs.confidence_interval(), abs=0.02)


def test_an_interval_holds_a_strong_correlation_under_noise():
    z = RNG.normal(0, 1, (2, 5000))
    x, y = 5 + z[0], 5 + 0.8 * z[0] + 0.6 * z[1]
    answer = correlation(x, y, ((0, 10), (0, 10)), confidence=0.99, epsilon=1.0, rng=1)
    assert answer.interval[0] < 0.8 < answer.interval[1]
    assert answer.interval[1] - answer.interval[0] < 0.3
    assert answer.p_value < 0.001


def test_variances_that_noise_hides_leave_everything_possible():
    """Records that hardly vary between wide bounds."""
    answer = correlation([5.0] * 3000, [5.0] * 3000, ((0, 10), (0, 10)), epsilon=1.0, rng=1)
    assert answer.interval == (-1.0, 1.0)


def test_two_records_are_no_number_short():
    """Their size is a rounding below two, whose root was no number."""
    test = Correlation(bounds=((0, 1), (0, 1)), epsilon=1e15)
    answer = test.answer(test.totals(([0.0, 1.0], [1.0, 0.0])).astype(float) * (1 - 1e-15))
    assert np.isfinite(answer.statistic)
    assert answer.p_value == 1


def test_a_record_that_misses_an_entry_is_left_out():
    test = Correlation(bounds=((0, 10), (0, 10)), epsilon=1e6)
    odd = test.release(([1.0, 9.0, float("nan")] * 100, [1.0, 9.0, 1.0] * 100), rng=1)
    assert odd.effect == pytest.approx(1.0, abs=1e-3)


def test_public_mistakes_are_named():
    with pytest.raises(ValueError, match="two pairs"):
        Correlation(bounds=((0, 1),), epsilon=1.0)
