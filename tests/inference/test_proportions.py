"""The exact test of a proportion: uniform p-values, scipy's bounds without noise, and its own theory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from discreet.inference import Proportion, proportion

TEST = Proportion(n=200, null=0.3, adjacency="replace", epsilon=1.0)


@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_without_noise_it_is_the_randomised_binomial_test(alternative):
    """Between the tail with and the tail without what was seen."""
    mine = proportion([1] * 70 + [0] * 130, n=200, null=0.3, alternative=alternative, epsilon=1e6, rng=1).p_value
    most = stats.binomtest(70, 200, 0.3, alternative).pvalue
    least = most - stats.binom.pmf(70, 200, 0.3)
    assert least - 1e-9 <= mine <= most + 1e-9


def test_the_interval_inverts_the_test():
    answer = TEST.release([1] * 70 + [0] * 130, rng=1)
    for end, alternative in zip(answer.interval, ("greater", "less"), strict=True):
        there = Proportion(n=200, null=end, alternative=alternative, adjacency="replace", epsilon=1.0)
        assert there.p_values(np.array([answer.statistic]))[0] == pytest.approx(0.025, abs=1e-6)


def test_the_p_value_is_the_probability_that_it_says():
    """By summing over successes and integrating over the noise on a grid, not by the formula."""
    x = np.arange(201)
    grid = np.linspace(-30, 30, 240_001)
    noise = np.diff(TEST.mechanism.cdf(grid))
    middle = (grid[1:] + grid[:-1]) / 2
    z = 71.3
    direct = sum(p * noise[middle >= z - k].sum() for k, p in zip(x, stats.binom.pmf(x, 200, 0.3), strict=True))
    one_sided = Proportion(n=200, null=0.3, alternative="greater", adjacency="replace", epsilon=1.0)
    assert one_sided.p_values(np.array([z]))[0] == pytest.approx(direct, abs=1e-4)


def test_no_other_noise_has_more_power():
    """Beside discrete Laplace noise with the best critical value, of the same epsilon and at most the same level."""
    n, epsilon, truth = 40, 0.5, 0.7
    test = Proportion(n=n, null=0.5, alternative="greater", adjacency="replace", epsilon=epsilon)
    x, b = np.arange(n + 1), np.exp(-epsilon)
    jumps = np.arange(-80, 81)
    law = (1 - b) / (1 + b) * b ** np.abs(jumps)

    def above(c, p):
        return stats.binom.pmf(x, n, p) @ [law[jumps >= c - k].sum() for k in x]

    critical = next(c for c in range(n + 80) if above(c, 0.5) <= 0.05)
    assert test.power(effect=truth - 0.5) > above(critical, truth)
    assert test.power(effect=0.0) == pytest.approx(0.05, abs=1e-9)


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_its_power_at_the_null_is_the_level(alternative):
    test = Proportion(n=50, null=0.2, alternative=alternative, adjacency="replace", epsilon=0.7, delta=0.01)
    assert test.power(effect=0.0, alpha=0.1) == pytest.approx(0.1, abs=1e-8)


def test_only_ones_are_successes():
    odd = [1, True, 1.0, 0, 2, None, "1", float("nan")]
    answer = proportion(odd, n=8, null=0.5, epsilon=1e6, rng=1)
    assert answer.statistic == pytest.approx(3, abs=0.5)


def test_all_or_none_have_an_interval_that_ends_at_the_edge():
    assert proportion([0] * 100, n=100, epsilon=5.0, rng=1).interval[0] == 0.0
    assert proportion([1] * 100, n=100, epsilon=5.0, rng=1).interval[1] == 1.0


def test_an_epsilon_that_shows_nothing_is_told_of_before_the_charge():
    with pytest.warns(UserWarning, match="too small for this test"):
        Proportion(n=5, adjacency="replace", epsilon=0.01).prepare([1, 0, 1, 0, 1])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Proportion(epsilon=1.0, n=3), "adjacency"),
        (lambda: Proportion(epsilon=1.0, adjacency="replace"), "n is missing"),
        (lambda: Proportion(rho=1.0, n=3, adjacency="replace"), "rho"),
        (lambda: Proportion(epsilon=1.0, n=3, null=2, adjacency="replace"), "null"),
        (lambda: proportion([1, 0], n=3, epsilon=1.0), "2 records"),
    ],
)
def test_public_mistakes_are_named(make, said):
    with pytest.raises(ValueError, match=said):
        make()
