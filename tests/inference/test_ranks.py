"""Tests by ranks in bins, beside scipy's on values that are the bins'."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet.inference import KolmogorovSmirnov, MannWhitney, Samples, kolmogorov_smirnov, mann_whitney

RNG = np.random.default_rng(5)
A, B = RNG.integers(0, 20, 130), np.minimum(19, RNG.integers(0, 22, 110))
BINS = range(21)


def test_mann_whitney_without_noise_is_scipy_s():
    theirs = stats.mannwhitneyu(A, B, use_continuity=False)
    mine = mann_whitney(A, B, BINS, epsilon=1e6, rng=1)
    assert mine.effect == pytest.approx(theirs.statistic / (len(A) * len(B)), abs=1e-3)
    assert mine.p_value == pytest.approx(theirs.pvalue, abs=0.02)


def test_kolmogorov_smirnov_without_noise_is_scipy_s():
    theirs = stats.ks_2samp(A, B)
    mine = kolmogorov_smirnov(A, B, BINS, epsilon=1e6, rng=1)
    assert mine.statistic == pytest.approx(theirs.statistic, abs=1e-3)
    assert mine.p_value <= theirs.pvalue + 0.02  # scipy's law is of values without ties, and cautious with them


def test_what_lies_beyond_the_bins_counts_at_their_ends():
    test = MannWhitney(bins=(0, 1, 2), epsilon=1e6)
    assert test.release(Samples(([9.0] * 50, [-9.0] * 50)), rng=1).effect == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("kind", [MannWhitney, KolmogorovSmirnov])
def test_small_samples_give_a_p_value_of_one(kind):
    answer = kind(bins=BINS, epsilon=0.1).release(Samples(([1, 2, 3], [4, 5, 6])), rng=1)
    assert (answer.p_value, bool(answer.note)) == (1.0, True)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: MannWhitney(bins=BINS, groups=(1,), epsilon=1.0), "two groups"),
        (lambda: KolmogorovSmirnov(bins=BINS, epsilon=1.0, alternative="less"), "alternative"),
        (lambda: MannWhitney(bins=BINS, epsilon=1.0).check(Samples((A,))), "must have two"),
    ],
)
def test_public_mistakes_are_named(make, said):
    with pytest.raises(ValueError, match=said):
        make()
