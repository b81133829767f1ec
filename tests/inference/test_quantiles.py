"""A quantile with its interval."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from discreet.inference import QuantileTest, power, quantile_interval

VALUES = np.random.default_rng(1).exponential(8.0, 3_000)
FALSE_ALARM = 1e-6


def test_without_noise_it_is_the_sign_test_and_the_median():
    """The normal law of the sign test, by 9,999 draws: to 0.02."""
    answer = quantile_interval(VALUES, range(0, 41), null=6.0, epsilon=1e6, rng=1)
    theirs = binomtest(int((VALUES <= 6).sum()), len(VALUES), 0.5)
    assert answer.p_value == pytest.approx(theirs.pvalue, abs=0.02)
    assert answer.effect == pytest.approx(np.median(VALUES), abs=0.1)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_an_interval_holds_the_quantile_as_often_as_it_says(q, epsilon):
    """A quantile that is an edge: the hardest case, in which one bin more is needed on either side."""
    test, rng, runs = (
        QuantileTest(bins=tuple(range(11)), q=q, epsilon=epsilon, simulations=199),
        np.random.default_rng(3),
        400,
    )
    law = np.concatenate([np.full(4, q / 4), np.full(6, (1 - q) / 6)])
    exact = rng.multinomial(1_000, law, runs)[:, None, :].astype(float)
    outcome = test.infer(test.expose(exact, rng))
    held = ((outcome.low <= 4) & (outcome.high >= 4)).sum()
    assert held >= binom.ppf(FALSE_ALARM, runs, 0.95)


def test_an_interval_gets_shorter_with_the_budget():
    wide, narrow = (
        QuantileTest(bins=tuple(range(0, 41)), epsilon=epsilon).release(VALUES, rng=1).interval
        for epsilon in (0.02, 2.0)
    )
    assert narrow[1] - narrow[0] <= 2 < wide[1] - wide[0]
    assert narrow[0] <= np.median(VALUES) <= narrow[1]


def test_a_tail_that_is_beyond_the_bins_ends_there():
    answer = quantile_interval([50.0] * 500, range(0, 11), epsilon=1.0, rng=1)
    assert answer.interval == (9.0, 10.0)
    assert quantile_interval([], range(0, 11), epsilon=1.0, rng=1).p_value == 1.0


def test_power_grows_with_the_effect():
    test = QuantileTest(bins=tuple(range(0, 41)), null=8.0, epsilon=1.0)
    assert power(test, n=400, effect=0.0, runs=100) < 0.15
    assert power(test, n=400, effect=3.0, runs=50) > 0.7


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"bins": (0, 1, 2), "q": 1.0}, "q"),
        ({"bins": (0, 2)}, "at least three edges"),
        ({"bins": (0, 1, 2), "null": 0.5}, "inner edges"),
        ({"bins": (0, 1, 2), "null": 0.0}, "inner edges"),
    ],
)
def test_public_mistakes_are_named(facts, said):
    with pytest.raises(ValueError, match=said):
        QuantileTest(epsilon=1.0, **facts)
