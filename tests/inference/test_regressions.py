"""Poisson regression and proportional hazards: the textbook's without noise, intervals that cover with it, and a
bounded part for each record.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import discreet as dp
from discreet.inference import PoissonRegression, ProportionalHazards, hazard_steps
from discreet.linear import inference_steps

FALSE_ALARM = 1e-6
BOUNDS = [(-1.0, 1.0), (0.0, 2.0), (0.0, 1.0)]


def covariates(rng, n):
    """Even, skewed, and rarely 1."""
    return np.column_stack([rng.uniform(-1, 1, n), rng.exponential(0.3, n).clip(0, 2), rng.random(n) < 0.1])


RATES = np.array([0.5, 0.4, -0.6, 0.3])
RATIOS = np.array([0.5, -0.4, 0.7])


def counts(rng, n):
    """More dispersed than Poisson's, with exposures."""
    x, exposure = covariates(rng, n), rng.uniform(0.2, 1.0, n)
    mean = np.exp(x @ RATES[:-1] + RATES[-1]) * rng.gamma(4, 0.25, n)
    return x, np.minimum(rng.poisson(mean * exposure), 10), exposure


def lives(rng, n):
    """Times of a Weibull law, and whether their ends were seen."""
    x, leaves = covariates(rng, n), rng.uniform(0, 4, n)
    ends = 2 * (rng.exponential(1, n) / np.exp(x @ RATIOS)) ** (1 / 1.4)
    return x, np.minimum(ends, leaves), ends <= leaves


def rates_of(**asked):
    return PoissonRegression(bounds=BOUNDS, highest=10, delta=1e-6, **asked)


def ratios_of(**asked):
    return ProportionalHazards(bounds=BOUNDS, horizon=3.0, delta=1e-6, **asked)


def test_without_noise_poisson_regression_is_statsmodels():
    """Coefficients to 1e-3, and the sandwich's errors to 1 %."""
    sm = pytest.importorskip("statsmodels.api")
    x, y, exposure = counts(np.random.default_rng(0), 5_000)
    fit = rates_of(epsilon=1e6).release((x, y, exposure), rng=1).value
    table = sm.add_constant(x, prepend=False)
    peer = sm.GLM(y, table, family=sm.families.Poisson(), offset=np.log(exposure)).fit(cov_type="HC0")
    assert np.abs(fit.estimate - peer.params).max() < 1e-3
    assert np.abs(fit.standard_error / peer.bse - 1).max() < 0.01


def test_the_intercept_is_per_unit_of_exposure():
    x, y, exposure = counts(np.random.default_rng(0), 5_000)
    fit = rates_of(epsilon=1e6, longest=10.0).release((x, y, 10 * exposure), rng=1).value
    usual = rates_of(epsilon=1e6).release((x, y, exposure), rng=1).value
    assert np.allclose(fit.estimate + np.array([0, 0, 0, np.log(10)]), usual.estimate, atol=2e-3)


@pytest.mark.filterwarnings("ignore:Starting with pandas")  # lifelines' own
def test_without_noise_hazard_ratios_are_those_of_the_split_records_and_near_to_cox():
    """statsmodels on one row for each piece a record was in: to 1e-3; lifelines' Cox model: to a third of an error."""
    sm, lifelines = pytest.importorskip("statsmodels.api"), pytest.importorskip("lifelines")
    x, times, seen = lives(np.random.default_rng(0), 5_000)
    fit = ratios_of(epsilon=1e6).release((x, times, seen), rng=1).value
    rows, events, spent = [], [], []
    for k, (start, end) in enumerate(zip(np.append(0, fit.ends[:-1]), fit.ends, strict=True)):
        here = times > start
        rows.append(np.column_stack([np.tile(np.eye(len(fit.ends))[k], (here.sum(), 1)), x[here]]))
        events.append((seen & (times <= end))[here])
        spent.append(np.clip(times - start, 0, end - start)[here])
    offset, response = np.log(np.concatenate(spent)), np.concatenate(events).astype(float)
    split = sm.GLM(response, np.concatenate(rows), family=sm.families.Poisson(), offset=offset).fit()
    assert np.abs(fit.estimate - split.params[-3:]).max() < 1e-3
    assert np.abs(fit.standard_error / split.bse[-3:] - 1).max() < 0.01
    frame = pd.DataFrame(x, columns=list("abc")).assign(t=np.minimum(times, 3), seen=seen & (times <= 3))
    cox = lifelines.CoxPHFitter().fit(frame, "t", "seen")
    assert (np.abs(fit.estimate - cox.params_) < cox.standard_errors_ / 3).all()


def misses(make, draw, truth, n, epsilon, runs=20):
    """Intervals that do not hold the truth, and how many there are."""
    missed, given = 0, 0
    for run in range(runs):
        fit = make(epsilon=epsilon).release(draw(np.random.default_rng(run), n), rng=run).value
        known = np.isfinite(fit.standard_error)
        missed += int(((truth < fit.lower) | (truth > fit.upper))[known].sum())
        given += int(known.sum())
    return missed, given


@pytest.mark.parametrize(
    ("make", "draw", "truth", "n", "epsilon"),
    [(rates_of, counts, RATES, 8_000, 1.0), (ratios_of, lives, RATIOS, 5_000, 1.0)],
)
def test_intervals_cover_and_a_step_that_forgets_its_noise_is_seen(make, draw, truth, n, epsilon, monkeypatch):
    """95 %; with the variance of the noise left out, and no widening for it, they miss more often than by chance."""
    missed, given = misses(make, draw, truth, n, epsilon)
    assert given >= 0.8 * 20 * len(truth)
    assert missed <= stats.binom.isf(FALSE_ALARM, given, 0.05)
    conclude = inference_steps.conclude

    def forgetful(last, *rest, **told):
        return conclude(last._replace(gradient_noise=0.0, hessian_noise=0.0), *rest, **told)

    monkeypatch.setattr(inference_steps, "widening", lambda unknown: 1.0)
    monkeypatch.setattr(inference_steps, "conclude", forgetful)
    monkeypatch.setattr(import_module("discreet.inference.proportional_hazards"), "conclude", forgetful)
    missed, given = misses(make, draw, truth, n, epsilon)
    assert missed > stats.binom.isf(1e-3, given, 0.05)


@pytest.mark.parametrize("weights", [0.0, 2.0, -3.0])
def test_a_life_counts_for_at_most_one(weights):
    """Whatever the time, the event and the features: the score, and the trace of the Hessian, of a single record."""
    rng, released = np.random.default_rng(1), []

    class Watching:
        sigma, sensitivity = 1.0, 1.0

        def release(self, value, rng):
            released.append(np.asarray(value, float))
            return type("R", (), {"value": np.asarray(value, float)})

    baseline = hazard_steps.Baseline(
        np.array([0.2, 0.5, 1.0]), np.array([0.2, 0.3, 0.5]), np.array([9.0, 30.0, 3.0]), np.log([0.3, 2.0, 8.0])
    )
    for _ in range(200):
        row = rng.normal(0, rng.choice([0.1, 1, 30]), (1, 2))
        spent = np.clip((rng.random() - np.array([0, 0.2, 0.5])) / baseline.lengths, 0, 1)[None]
        record = hazard_steps.Lives(row, spent, np.array([rng.integers(-1, 3)]), baseline, 1e3, 0.0)
        record.release(np.full(5, weights) * rng.normal(size=5), Watching(), Watching(), None, None)
    sizes = [np.linalg.norm(value) for value in released]
    assert max(sizes) <= 1
    assert max(sizes) > 0.9  # and the bound is near


def test_nothing_fails_on_odd_or_no_records():
    odd = np.array([[np.nan, 9e9, 1], [0.1, 0.2, np.inf], [0.1, 0.2, 0.3]])
    for make, beside in (
        (rates_of, ([-1.0, np.nan, 1e300], [0.0, 1.0, 1e300])),
        (ratios_of, ([-1.0, np.nan, 1e300], [1, 7, 1])),
    ):
        for size in (0, 3):
            fit = make(epsilon=0.1).release((odd[:size], *(part[:size] for part in beside)), rng=1).value
            assert np.isinf(fit.standard_error).all()
            assert np.isfinite(fit.estimate).all()


@pytest.mark.parametrize("make", [rates_of, ratios_of])
def test_the_budget_is_kept_and_known_first(make):
    operation = make(epsilon=0.7)
    assert 0.68 < dp.epsilon(operation.event, 1e-6) <= 0.7
    assert 0.68 < dp.epsilon(replace(operation, adjacency="replace").event, 1e-6, adjacency="replace") <= 0.7


def test_what_is_publicly_wrong_is_refused():
    x, y, exposure = counts(np.random.default_rng(0), 30)
    with pytest.raises(ValueError, match="tuple"):
        rates_of(epsilon=1.0).release((x, y))
    with pytest.raises(ValueError, match="bounds are declared for 3"):
        rates_of(epsilon=1.0).release((x[:, :2], y, exposure))
    with pytest.raises(ValueError, match="delta above 0"):
        PoissonRegression(bounds=BOUNDS, highest=3, epsilon=1.0)
    with pytest.raises(ValueError, match="pair"):
        PoissonRegression(bounds=(0, 1), highest=3, epsilon=1.0, delta=1e-6)


def test_coefficients_take_frames_and_joint_tests():
    x, times, seen = lives(np.random.default_rng(0), 8_000)
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    bounds = dict(zip("abc", BOUNDS, strict=True))
    fit = dp.inference.proportional_hazards(frame, times, seen, bounds, horizon=3, epsilon=2.0, delta=1e-6, rng=1)
    assert dp.inference.joint(fit.value, [0, 2]).p_value < 0.001
    assert dp.inference.contrast(fit.value, [1, 0, 0]).interval == (fit.value.lower[0], fit.value.upper[0])
    rates = dp.inference.poisson_regression(frame, seen, bounds, highest=1, epsilon=2.0, delta=1e-6, rng=1)
    assert rates.event == PoissonRegression(bounds=bounds, highest=1, epsilon=2.0, delta=1e-6).event
