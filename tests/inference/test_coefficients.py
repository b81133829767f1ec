"""Contrasts and joint tests of released coefficients."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import binom

from discreet.inference import contrast, joint
from discreet.linear import LinearRegression, LogisticRegression
from discreet.linear.inference import coefficients

RNG = np.random.default_rng(1)
X = RNG.uniform(-1, 1, (4_000, 3))
Y = 0.4 * X[:, 0] - 0.2 * X[:, 1] + 0.1 + RNG.uniform(-0.2, 0.2, 4_000)
FACTS = {"bounds": (-1, 1), "target_bounds": (-1, 1), "delta": 1e-6}
FIT = coefficients(LinearRegression(**FACTS, epsilon=1e8, random_state=0), X, Y)
PEER = sm.OLS(Y, np.column_stack([X, np.ones(len(X))])).fit(cov_type="HC0")
FALSE_ALARM = 1e-6


def test_without_noise_they_are_statsmodels():
    """With White's covariance (HC0). At ε = 10⁶ Gaussian noise is still a thousandth of the sampling error."""
    for weights in ([1, 1, 0, 0], [0, 0, 1, 0], [1, 2, 0, 0.0]):
        mine, theirs = contrast(FIT, weights), PEER.t_test(np.array(weights))
        assert mine.effect == pytest.approx(float(np.squeeze(theirs.effect)), abs=1e-3)
        assert mine.statistic == pytest.approx(float(np.squeeze(theirs.tvalue)), rel=2e-3, abs=2e-3)
        assert mine.p_value == pytest.approx(float(np.squeeze(theirs.pvalue)), abs=2e-3)
        assert mine.interval == pytest.approx(tuple(np.squeeze(theirs.conf_int())), abs=1e-3)
    theirs = PEER.wald_test(np.eye(4)[[0, 1]], use_f=False, scalar=True)
    assert joint(FIT, [0, 1]).statistic == pytest.approx(float(theirs.statistic), rel=1e-3)
    theirs = PEER.wald_test(np.eye(4)[[2]], use_f=False, scalar=True)
    assert joint(FIT, [2]).p_value == pytest.approx(float(theirs.pvalue), abs=2e-3)
    assert FIT.r_squared == pytest.approx(PEER.rsquared, abs=1e-3)


def test_a_contrast_of_one_coefficient_is_its_own_interval():
    """Where the noisy sandwich has no negative direction; elsewhere it is wider, never narrower."""
    fit = coefficients(LinearRegression(**FACTS, epsilon=4.0, random_state=0), X, Y)
    low, high = contrast(fit, [1, 0, 0, 0]).interval
    assert low <= fit.lower[0] + 1e-12
    assert high >= fit.upper[0] - 1e-12
    assert high - low <= 1.5 * (fit.upper[0] - fit.lower[0])


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_a_joint_test_holds_its_level_and_sees_what_is_there(epsilon):
    """Three coefficients of nothing, in 4,000 records: a level of 5 % stays below what 200 runs allow; one of 30 % is
    above it with probability 0.999.
    """
    rejected, seen, runs = 0, 0, 200
    for run in range(runs):
        rng = np.random.default_rng(run)
        x, noise = rng.uniform(-1, 1, (4_000, 3)), rng.uniform(-0.5, 0.5, 4_000)
        model = LinearRegression(**FACTS, epsilon=epsilon, random_state=run)
        rejected += joint(coefficients(model, x, noise), [0, 1, 2]).p_value <= 0.05
        if run < 10 and epsilon > 1:
            seen += joint(coefficients(model, x, noise + 0.2 * x[:, 0]), [0, 1, 2]).p_value <= 0.05
    assert rejected <= binom.isf(FALSE_ALARM, runs, 0.05)
    assert binom.cdf(binom.isf(FALSE_ALARM, runs, 0.05), runs, 0.3) < 1e-3
    assert seen == (10 if epsilon > 1 else 0)


def test_logistic_coefficients_are_tested_too():
    labels = (RNG.random(4_000) < 1 / (1 + np.exp(-1.5 * X[:, 0]))).astype(int)
    model = LogisticRegression(classes=(0, 1), bounds=(-1, 1), epsilon=4.0, delta=1e-6, random_state=0)
    fit = coefficients(model, X, labels)
    assert joint(fit, [0, 1, 2]).p_value < 1e-6
    assert contrast(fit, [1, 0, 0, 0]).interval == pytest.approx((fit.lower[0], fit.upper[0]))
    assert math.isnan(fit.r_squared)


def test_where_no_interval_is_given_nothing_is_concluded():
    fit = coefficients(LinearRegression(**FACTS, epsilon=0.1, random_state=0), X[:50], Y[:50])
    assert np.isinf(fit.standard_error).all()
    for answer in (contrast(fit, [1, 0, 0, 0]), joint(fit, [0, 1])):
        assert answer.p_value == 1
        assert "nothing can be concluded" in answer.note


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda fit: joint(fit, []), "of is empty"),
        (lambda fit: joint(fit, [4]), "of"),
        (lambda fit: joint(fit, [[1, 0]]), "weights must be 4 numbers"),
        (lambda fit: joint(fit, [0, 0]), "follow from each other"),
        (lambda fit: contrast(fit, [0, 0, 0, 0]), "not all zero"),
        (lambda fit: contrast(fit, [1, 0, 0, 0], alternative="both"), "alternative"),
    ],
)
def test_public_mistakes_are_named(ask, said):
    fit = SimpleNamespace(estimate=np.zeros(4), covariance=np.eye(4), confidence=0.95)
    with pytest.raises(ValueError, match=said):
        ask(fit)
