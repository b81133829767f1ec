"""Survival curves, beside statsmodels' and lifelines', and their bands."""

from __future__ import annotations

import math

import numpy as np
import pytest
from lifelines.datasets import load_rossi
from scipy.stats import binom
from statsmodels.duration.survfunc import SurvfuncRight

import discreet as dp
from discreet.inference import KaplanMeier, kaplan_meier
from discreet.inference.simulation import noise_like

ROSSI = load_rossi()
WEEKS, ARRESTS = ROSSI["week"].to_numpy(), ROSSI["arrest"].to_numpy()
FALSE_ALARM = 1e-6


def test_without_noise_it_is_statsmodels_curve():
    theirs = SurvfuncRight(WEEKS, ARRESTS)
    curve = kaplan_meier(WEEKS, ARRESTS, horizon=52, epsilon=1e6, rng=1).value
    places = theirs.surv_times.astype(int) - 1
    np.testing.assert_allclose(curve.survival[places], theirs.surv_prob, atol=1e-3)
    hazard = np.cumsum(theirs.n_events / theirs.n_risk)
    np.testing.assert_allclose(curve.hazard[places], hazard, atol=1e-3)


def test_at_an_epsilon_of_one_the_curve_of_432_prisoners_is_near():
    """A root mean square error of 0.014 on average; above 0.04 in none of 10^5 runs."""
    exact = kaplan_meier(WEEKS, ARRESTS, horizon=52, epsilon=1e6, rng=1).value.survival
    private = kaplan_meier(WEEKS, ARRESTS, horizon=52, epsilon=1.0, rng=1).value.survival
    assert np.sqrt(np.mean((private - exact) ** 2)) < 0.04


def test_the_band_holds_the_truth_as_often_as_it_says():
    """Times of which an eighth goes in each of four periods. Less than 95 % would be seen at 90 %."""
    operation = KaplanMeier(horizon=4, epsilon=0.5, simulations=199)
    truth, law = 1 - np.arange(1, 5) / 8, np.append(np.full(4, 1 / 8), 1 / 2)
    rng, held, runs = np.random.default_rng(0), 0, 300
    for _ in range(runs):
        counts = rng.multinomial(400, law)
        table = np.stack([counts[:4], [0, 0, 0, counts[4]]], axis=-1)
        band = operation.answer(table + noise_like(operation.mechanism, table.shape, rng))
        held += ((band.lower <= truth) & (truth <= band.upper)).all()
    assert held >= binom.ppf(FALSE_ALARM, runs, 0.95)
    assert binom.cdf(held, runs, 0.87) > 1 - 1e-3


@pytest.mark.parametrize(("size", "epsilon", "periods"), [(12, 1e3, 6), (30, 10.0, 10), (30, 1e3, 36)])
def test_the_band_holds_where_few_are_at_risk(size, epsilon, periods):
    """58, 78 and 73 % of bands held: no width before the first event, nor after the last."""
    operation = KaplanMeier(horizon=periods, epsilon=epsilon, simulations=199)
    alive = (1 - 2 / max(periods, 7)) ** np.arange(periods + 1)
    stayed = 1 - np.arange(periods + 1) / (2 * periods)
    law = np.zeros((periods, 2))
    law[:, 0] = -np.diff(alive) * stayed[:-1]
    law[:, 1] = -np.diff(stayed) * alive[1:]
    law[-1, 1] += alive[-1] * stayed[-1]
    rng, held, runs = np.random.default_rng(0), 0, 200
    for _ in range(runs):
        table = rng.multinomial(size, law.ravel()).reshape(law.shape)
        band = operation.answer(table + noise_like(operation.mechanism, table.shape, rng))
        held += ((band.lower <= alive[1:] + 1e-9) & (alive[1:] <= band.upper + 1e-9)).all()
        assert (np.diff(band.lower) <= 0).all()
        assert (np.diff(band.upper) <= 0).all()
        assert ((band.lower <= band.survival) & (band.survival <= band.upper)).all()
    assert held >= binom.ppf(1e-3, runs, 0.95)


def test_the_median_is_infinite_where_it_is_not_reached():
    curve = kaplan_meier([9.0] * 500, [0] * 500, horizon=10, epsilon=1.0, rng=1).value
    assert curve.median == math.inf
    assert curve.median_interval[1] == math.inf


def test_a_time_beyond_the_horizon_left_there_and_odd_records_are_left_out():
    operation = KaplanMeier(horizon=2, epsilon=1.0)
    times = [0.0, 1.0, 2.0, 99.0, -1.0, float("nan"), 1.5, float("inf")]
    events = [1, 1, 0, 1, 1, 1, "yes", 0]
    assert operation.totals((times, events)).tolist() == [[2, 0], [0, 3]]


def test_a_cumulative_hazard_is_in_its_band():
    """It never falls, and was above its band where the noise of one period was far below zero."""
    operation = KaplanMeier(horizon=4, epsilon=1e3, simulations=99)
    curve = operation.answer(np.array([[20, 0], [10, 0], [-20, 0], [1, 0]]))
    assert (curve.hazard_lower <= curve.hazard).all()
    assert (curve.hazard <= curve.hazard_upper).all()
    assert (np.diff(curve.hazard) >= 0).all()


def test_no_records_are_answered():
    curve = kaplan_meier([], [], horizon=3, epsilon=1.0, rng=1).value
    assert ((curve.lower >= 0) & (curve.upper <= 1)).all()


def test_it_is_charged_as_a_count():
    operation = KaplanMeier(horizon=52, epsilon=0.5)
    assert dp.epsilon(operation.event, delta=0) == pytest.approx(0.5)
