"""Power, sample sizes and epsilons, beside statsmodels' where there is no noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from statsmodels.stats.power import TTestIndPower

from discreet import inference
from discreet.inference import epsilon_needed, power, sample_size

WELCH = inference.Welch(bounds=(0, 30), epsilon=1e6)


def test_power_without_noise_is_statsmodels():
    """To the error of 2,000 simulations, and the 2 % by which null laws are widened."""
    theirs = TTestIndPower().power(effect_size=0.2, nobs1=400, alpha=0.05)
    assert power(WELCH, n=800, effect=1.0, sd=5.0) == pytest.approx(theirs, abs=0.04)


EVERY = {
    "one sample": (inference.OneSample(bounds=(0, 30), null=15.0, epsilon=1.0), 3.0),
    "pairs": (inference.Paired(bounds=(0, 30), epsilon=1.0), 5.0),
    "several means": (inference.Anova(bounds=(0, 30), groups=(0, 1, 2), epsilon=1.0), 5.0),
    "correlation": (inference.Correlation(bounds=((0, 1), (0, 1)), epsilon=1.0), 0.5),
    "effect": (inference.AverageEffect(bounds=(0, 1), overlap=0.2, epsilon=1.0), 0.5),
    "two proportions": (inference.TwoProportions(epsilon=1.0), 0.3),
    "fit": (inference.GoodnessOfFit(categories="abc", probabilities=(0.5, 0.3, 0.2), epsilon=1.0), 0.2),
    "independence": (inference.Independence(rows=(0, 1), columns=(0, 1), epsilon=1.0), 0.4),
    "ranks": (inference.MannWhitney(bins=range(9), epsilon=1.0), 0.15),
    "laws": (inference.KolmogorovSmirnov(bins=range(9), epsilon=1.0), 0.25),
    "survival": (inference.LogRank(horizon=6, epsilon=1.0), 1.0),
}


@pytest.mark.parametrize("name", EVERY)
def test_power_grows_from_the_level_with_the_effect_and_the_number_of_records(name):
    test, effect = EVERY[name]
    none, few, many = (power(test, n=n, effect=e, runs=200) for n, e in ((400, 0.0), (60, effect), (800, effect)))
    assert none <= 0.12  # 200 runs of a test of 5 %: more by chance once in 10^4
    assert many > 0.9
    assert few < many


@pytest.mark.parametrize("alternative", ["greater", "less"])
@pytest.mark.parametrize("name", ["one sample", "effect", "two proportions", "ranks", "correlation", "survival"])
def test_the_largest_effect_is_on_the_side_of_the_alternative(name, alternative):
    test = replace(EVERY[name][0], alternative=alternative)
    assert power(test, n=2000, effect=test.largest_effect, runs=20) == 1.0


@pytest.mark.parametrize("name", EVERY)
def test_the_largest_effect_is_one_that_data_can_have(name):
    test, _ = EVERY[name]
    totals = test.suppose(100, test.largest_effect, None, 3, np.random.default_rng(1))
    assert np.isfinite(totals).all()
    assert power(test, n=2000, effect=test.largest_effect, runs=100) > 0.9


def test_a_sample_size_has_the_power_that_was_wished_for():
    """The error of 300 simulations is 0.023, of which the search may take the luckiest."""
    test = inference.Welch(bounds=(0, 30), epsilon=1.0)
    n = sample_size(test, effect=1.0, sd=5.0, runs=300)
    assert power(test, n=n, effect=1.0, sd=5.0, runs=600) == pytest.approx(0.8, abs=0.08)


def test_an_epsilon_has_the_power_that_was_wished_for():
    test = inference.OneSample(bounds=(0, 30), null=15.0, epsilon=1.0)
    epsilon = epsilon_needed(test, n=400, effect=1.0, sd=5.0, runs=300)
    reached = power(replace(test, epsilon=epsilon), n=400, effect=1.0, sd=5.0, runs=600)
    assert reached == pytest.approx(0.8, abs=0.08)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: power(WELCH, n=100, effect=1.0, sd=-1.0), "sd"),
        (lambda: power(WELCH, effect=1.0), "n is None"),
        (lambda: power(inference.KaplanMeier(horizon=3, epsilon=1.0), n=9, effect=1.0), "test is a KaplanMeier"),
        (lambda: epsilon_needed(WELCH, n=10, effect=0.01, sd=5.0), "even without noise"),
        (lambda: epsilon_needed(inference.Welch(bounds=(0, 1), rho=1.0), n=10, effect=0.1), "rho"),
    ],
)
def test_public_mistakes_are_named(make, said):
    with pytest.raises(ValueError, match=said):
        make()
