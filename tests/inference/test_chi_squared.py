"""Chi-squared tests, beside scipy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet.inference import GoodnessOfFit, Independence, goodness_of_fit, independence

LAW = (0.5, 0.3, 0.2)


def test_goodness_of_fit_without_noise_is_pearson_s():
    values = [0] * 215 + [1] * 115 + [2] * 70
    theirs = stats.chisquare([215, 115, 70], 400 * np.array(LAW))
    mine = goodness_of_fit(values, LAW, categories=(0, 1, 2), epsilon=1e6, rng=1)
    assert mine.statistic == pytest.approx(theirs.statistic, rel=1e-3)
    assert mine.p_value == pytest.approx(theirs.pvalue, abs=0.03)  # of counts, which scipy takes for a density
    assert mine.effect == pytest.approx(0.0375, abs=1e-3)


def test_independence_without_noise_is_pearson_s():
    table = np.array([[40, 60, 50], [60, 55, 35]])
    rows, columns = (np.repeat(part.ravel(), table.ravel()) for part in np.indices(table.shape))
    theirs = stats.chi2_contingency(table, correction=False)
    mine = independence(rows, columns, (0, 1), (0, 1, 2), epsilon=1e6, rng=1)
    assert mine.statistic == pytest.approx(theirs.statistic, rel=1e-3)
    assert mine.p_value == pytest.approx(theirs.pvalue, abs=0.02)
    assert mine.effect == pytest.approx(stats.contingency.association(table), abs=1e-3)


def test_bins_serve_as_categories():
    test = GoodnessOfFit(bins=(0, 1, 2), probabilities=(0.5, 0.5), epsilon=1e6)
    assert test.release([0.5, 1.5, 2.0, 9.0, float("nan")] * 50, rng=1).effect == pytest.approx(1 / 6, abs=1e-3)


def test_no_records_reject_nothing():
    assert goodness_of_fit([], LAW, categories=(0, 1, 2), epsilon=1.0, rng=1).p_value > 0.001
    assert independence([], [], (0, 1), (0, 1), epsilon=1.0, rng=1).p_value > 0.001


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: GoodnessOfFit(categories="ab", probabilities=(0.5, 0.4), epsilon=1.0), "add up to 1"),
        (lambda: GoodnessOfFit(categories="ab", probabilities=(0.5, 0.3, 0.2), epsilon=1.0), "2 numbers"),
        (lambda: GoodnessOfFit(categories="ab", probabilities=(0.5, 0.5), epsilon=1.0, alternative="less"), "alternat"),
        (lambda: Independence(rows=(0,), columns=(0, 1), epsilon=1.0), "at least two categories"),
    ],
)
def test_public_mistakes_are_named(make, said):
    with pytest.raises(ValueError, match=said):
        make()
