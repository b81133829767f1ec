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


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 1e6])
def test_no_records_reject_nothing(epsilon):
    """A record was supposed where there was none: p was 0.01 for categories of 0.99 and 0.01."""
    fit = goodness_of_fit([], (0.99, 0.01), categories=(0, 1), epsilon=epsilon, rng=1)
    table = independence([], [], (0, 1), (0, 1), epsilon=epsilon, rng=1)
    assert (fit.p_value, table.p_value) == (1.0, 1.0)
    assert "too few" in fit.note
    assert "too few" in table.note


@pytest.mark.parametrize("rows", [2, 3])
def test_a_category_that_nobody_has_is_no_evidence(rows):
    """A table whose records are all in one cell was refuted at p = 0.03: half a record was expected in empty rows."""
    test = Independence(rows=tuple(range(rows)), columns=(0, 1), epsilon=1e3)
    assert test.release(([0] * 40, [0] * 40), rng=1).p_value == 1
    some = Independence(rows=(0, 1), columns=(0, 1), epsilon=1e3).release(([0, 1] * 20, [0, 0, 1, 1] * 10), rng=1)
    more = Independence(rows=(0, 1, 2), columns=(0, 1), epsilon=1e3).release(([0, 1] * 20, [0, 0, 1, 1] * 10), rng=1)
    assert some.statistic == pytest.approx(more.statistic)


def test_empty_columns_do_not_cost_the_level():
    """Records of two groups in one of twelve columns: 6 % were rejected where only columns that seem to have records
    had their noise subtracted. A level of 5 % is above the limit with probability 0.001; the seed is fixed.
    """
    test = Independence(rows=(0, 1), columns=tuple(range(12)), epsilon=0.4, simulations=19)
    rng, runs = np.random.default_rng(7), 16_000
    first = rng.binomial(300, 0.5, runs)
    exact = np.zeros((runs, 2, 12))
    exact[:, 0, 0], exact[:, 1, 0] = first, 300 - first
    rejected = [test.infer(test.expose(part, rng)).p_value <= 0.05 for part in np.array_split(exact, 32)]
    assert np.mean(rejected) <= stats.binom.isf(1e-3, runs, 0.05) / runs


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
