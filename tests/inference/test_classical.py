"""Where the noise moves nothing, p-values are those of scipy, statsmodels and lifelines to 1e-3."""

from __future__ import annotations

import numpy as np
import pytest
from lifelines.datasets import load_rossi
from lifelines.statistics import logrank_test
from scipy import stats
from statsmodels.stats.oneway import anova_oneway
from statsmodels.stats.proportion import proportions_ztest

from discreet import inference
from discreet.inference import GoodnessOfFit, Welch, power
from discreet.inference.classical import largest_noise
from discreet.mechanisms import DiscreteLaplace, Laplace

SURE = {"epsilon": 1e6, "rng": 1}
CLOSE = 1e-3
RNG = np.random.default_rng(3)
A, B, C = RNG.normal(5.0, 1.0, 150), RNG.normal(5.3, 1.5, 120), RNG.normal(5.2, 1.0, 90)
BINNED = tuple(np.clip(np.floor(part), 0, 9) for part in (A, B))
ROWS = RNG.integers(0, 3, 400)
COLUMNS = np.where(RNG.random(400) < 0.1, ROWS, RNG.integers(0, 3, 400))
ROSSI = load_rossi()
WORDS = {"two-sided": "two-sided", "greater": "larger", "less": "smaller"}


def close(answer, theirs, interval=None):
    """And so are statistics and intervals."""
    assert answer.p_value == pytest.approx(theirs.pvalue, abs=CLOSE)
    assert answer.statistic == pytest.approx(theirs.statistic, abs=CLOSE)
    if interval is not None:
        assert answer.interval == pytest.approx(tuple(interval), abs=CLOSE)


@pytest.mark.parametrize("alternative", WORDS)
def test_tests_of_means_and_of_correlation_are_scipy_s(alternative):
    asked = {"alternative": alternative}
    close(
        inference.one_sample(A, (0, 10), null=5.1, **asked, **SURE),
        stats.ttest_1samp(A, 5.1, **asked),
        stats.ttest_1samp(A, 5.1).confidence_interval(),
    )
    close(
        inference.welch(A, B, (0, 10), **asked, **SURE),
        stats.ttest_ind(A, B, equal_var=False, **asked),
        stats.ttest_ind(A, B, equal_var=False).confidence_interval(),
    )
    close(
        inference.paired(A[:120], B, (0, 10), **asked, **SURE),
        stats.ttest_rel(A[:120], B, **asked),
        stats.ttest_rel(A[:120], B).confidence_interval(),
    )
    mine, theirs = (
        inference.correlation(A[:120], B, ((0, 10), (0, 10)), **asked, **SURE),
        stats.pearsonr(A[:120], B, **asked),
    )
    assert mine.p_value == pytest.approx(theirs.pvalue, abs=CLOSE)
    assert mine.interval == pytest.approx(tuple(stats.pearsonr(A[:120], B).confidence_interval()), abs=CLOSE)


@pytest.mark.parametrize("alternative", WORDS)
def test_tests_of_two_tables_are_scipy_s_and_statsmodels(alternative):
    theirs = stats.mannwhitneyu(*BINNED, alternative=alternative, method="asymptotic")
    mine = inference.mann_whitney(*BINNED, range(11), alternative=alternative, **SURE)
    assert mine.p_value == pytest.approx(theirs.pvalue, abs=CLOSE)
    above = [(part > 5).astype(int) for part in (A, B)]
    z, p_value = proportions_ztest([part.sum() for part in above], [150, 120], alternative=WORDS[alternative])
    mine = inference.two_proportions(*above, alternative=alternative, **SURE)
    assert (mine.statistic, mine.p_value) == pytest.approx((z, p_value), abs=CLOSE)


def test_tests_of_several_groups_and_categories_are_scipy_s_and_statsmodels():
    close(inference.anova(A, B, C, bounds=(0, 10), **SURE), anova_oneway([A, B, C], use_var="unequal"))
    table = np.array([[((i == ROWS) & (j == COLUMNS)).sum() for j in range(3)] for i in range(3)])
    mine = inference.independence(ROWS, COLUMNS, (0, 1, 2), (0, 1, 2), **SURE)
    close(mine, stats.chi2_contingency(table, correction=False))
    law = np.array([0.3, 0.35, 0.35])
    close(
        inference.goodness_of_fit(ROWS, law, categories=(0, 1, 2), **SURE),
        stats.chisquare(np.bincount(ROWS), 400 * law),
    )


@pytest.mark.filterwarnings("ignore")  # pandas, of what lifelines asks of it
def test_the_log_rank_test_is_lifelines():
    halves = [ROSSI[ROSSI.fin == k] for k in (0, 1)]
    theirs = logrank_test(*(half.week for half in halves), *(half.arrest for half in halves))
    mine = inference.log_rank(ROSSI.fin, ROSSI.week, ROSSI.arrest, 52, **SURE)
    assert mine.p_value == pytest.approx(theirs.p_value, abs=CLOSE)


def test_the_exact_test_of_a_proportion_lies_between_the_p_values_of_neighbouring_counts():
    """It splits the mass at its own count at random: its level is exact where that of scipy's is conservative."""
    ones = [1] * 230 + [0] * 170
    mine = inference.proportion(ones, n=400, null=0.5, alternative="greater", **SURE).p_value
    low, high = (stats.binomtest(k, 400, 0.5, alternative="greater").pvalue for k in (231, 230))
    assert low - 1e-9 <= mine <= high + 1e-9


def test_kolmogorov_and_smirnov_s_is_scipy_s_where_no_values_are_tied():
    """With an edge between any two values; p-values were simulated, and off by 0.01."""
    for first, second in ((A, B), (A[:40], C), (B[:9], C)):
        ordered = np.sort(np.concatenate([first, second]))
        edges = [0.0, *((ordered[1:] + ordered[:-1]) / 2), 10.0]
        mine = inference.kolmogorov_smirnov(first, second, edges, simulations=19, **SURE)
        close(mine, stats.ks_2samp(first, second, method="exact"))


def test_a_test_of_bins_agrees_with_a_permutation_test():
    """Values in bins are tied, which scipy's law of Kolmogorov and Smirnov does not know; 2,000 permutations, five
    standard errors.
    """
    both, rng = np.concatenate(BINNED), np.random.default_rng(0)

    def distance(values):
        counts = np.stack([np.bincount(part.astype(int), minlength=10) for part in (values[:150], values[150:])])
        shares = np.cumsum(counts, axis=-1) / counts.sum(-1, keepdims=True)
        return np.abs(shares[0] - shares[1]).max()

    seen = distance(both)
    theirs = np.mean([distance(rng.permutation(both)) >= seen - 1e-12 for _ in range(2_000)])
    mine = inference.kolmogorov_smirnov(*BINNED, range(11), simulations=19, **SURE)
    assert mine.statistic == pytest.approx(seen, abs=1e-9)
    assert mine.p_value == pytest.approx(theirs, abs=5 * (theirs * (1 - theirs) / 2_000) ** 0.5)


def test_where_noise_may_move_anything_laws_are_simulated():
    """The textbook's p-value can be anything; a simulated one is a multiple of 1/100 here."""
    for epsilon, simulated in ((1.0, True), (10.0, True), (1e6, False)):
        answer = Welch(bounds=(0, 10), epsilon=epsilon, simulations=99).release(
            ([0] * 150 + [1] * 120, np.concatenate([A, B])), rng=1
        )
        assert (abs(100 * answer.p_value - round(100 * answer.p_value)) < 1e-9) == simulated
    constant = Welch(bounds=(0, 10), epsilon=1e6, simulations=99).release(([0, 1] * 100, [5.0] * 200), rng=1)
    assert constant.p_value > 0.05  # its variance is noise alone


def test_a_bound_on_the_noise_holds_for_all_entries():
    assert largest_noise(DiscreteLaplace(sensitivity=1, epsilon=1e3), 100) == 0
    assert largest_noise(DiscreteLaplace(sensitivity=1, epsilon=10.0), 100) > 0
    assert largest_noise(Laplace(sensitivity=1, epsilon=1.0), 8) > np.log(8 * 2.0**40)


def test_a_category_of_no_probability_is_no_reason_to_reject():
    """Without noise it was divided by zero, and the p-value was the least that simulations have."""
    test = GoodnessOfFit(categories=(0, 1, 2), probabilities=(0.5, 0.5, 0.0), epsilon=1e3)
    assert test.release([0, 1] * 100, rng=1).p_value > 0.05
    assert test.release([0, 1, 2, 0, 1] * 40, rng=1).p_value < 0.001


def test_power_without_noise_is_that_of_the_textbook():
    """Two groups of 100, half a deviation apart: 0.94 (statsmodels), which 2,000 runs know to 0.02."""
    test = Welch(bounds=(0, 10), epsilon=1e6)
    assert power(test, n=200, effect=0.5, sd=1.0) == pytest.approx(0.94, abs=0.025)


def test_ranks_that_are_nearly_all_tied_have_no_normal_law():
    """Of 20 records beside 5,000 a hundredth is in another bin: 16 % of true hypotheses were rejected at 5 %."""
    test = inference.MannWhitney(bins=(0, 1, 2), epsilon=1e5, alternative="greater", simulations=19)
    rng, runs = np.random.default_rng(3), 2_000
    exact = np.stack([rng.multinomial(n, [0.01, 0.99], runs) for n in (5_000, 20)], axis=1).astype(float)
    rejected = np.concatenate([test.infer(part).p_value <= 0.05 for part in np.array_split(exact, 10)]).mean()
    assert rejected <= stats.binom.isf(1e-3, runs, 0.05) / runs
