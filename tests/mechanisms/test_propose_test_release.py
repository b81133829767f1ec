"""Propose-test-release, the stable mode, the clustered mean, the stability histogram."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import discreet as dp
from discreet import events
from discreet.mechanisms import ClusteredMean, Gaussian, ProposeTestRelease, StabilityHistogram, StableMode
from discreet.mechanisms.clustered_mean import _score, _weighted_mean
from discreet.random import discrete_laplace

FALSE_ALARM = 1e-6


def tail(scale, above):
    return math.exp(-(above + 1) / scale) / (1 + math.exp(-1 / scale))


@given(st.floats(0.01, 10), st.floats(1e-12, 0.4))
def test_threshold_is_the_least_that_noise_exceeds_with_probability_delta(epsilon, delta):
    test = ProposeTestRelease(epsilon=epsilon, delta=delta)
    assert tail(test.scale, test.threshold) <= delta * (1 + 1e-9)
    assert test.threshold == 0 or tail(test.scale, test.threshold - 1) > delta * (1 - 1e-9)
    assert test.event.epsilon <= epsilon
    assert test.event.delta <= delta


def test_unsafe_data_pass_with_probability_delta_and_no_more():
    test = ProposeTestRelease(epsilon=1.0, delta=0.05)
    passed = int((discrete_laplace(test.scale, 200_000, rng=1) > test.threshold).sum())
    assert passed <= stats.binom.ppf(1 - FALSE_ALARM, 200_000, 0.05)
    assert passed >= stats.binom.ppf(FALSE_ALARM, 200_000, 0.05 / math.e)


def test_the_base_algorithm_is_paid_for():
    noise = Gaussian(sensitivity=1.0, sigma=3.0)
    test = ProposeTestRelease(
        epsilon=1.0,
        delta=1e-6,
        base_event=noise.event,
        distance=lambda x: 500,
        base=lambda x: noise.release(sum(x), rng=1).value,
    )
    assert events.leaves(test.event)[noise.event] == 1
    answer = test.release([1.0, 2.0], rng=1)
    assert answer.value == noise.release(3.0, rng=1).value
    assert answer.event == test.event


def test_distances_are_floored_and_what_is_no_number_is_none():
    test = ProposeTestRelease(epsilon=100.0, delta=1e-3, distance=lambda given: given, base=lambda _: "yes")
    assert test.threshold == 0
    assert test.release(0.999, rng=1).value is None
    assert test.release(50.5, rng=1).value == "yes"
    assert test.release(-7, rng=1).value is None
    for odd in (math.nan, "3", None):  # no number: as near as can be, whatever the others' distances are
        assert test.release(odd, rng=1).value is None


def test_a_test_of_nothing_is_refused_before_it_is_charged():
    with pytest.raises(ValueError, match="distance= or base= is missing"):
        ProposeTestRelease(epsilon=1.0, delta=1e-3, distance=len).prepare([1])


def test_error_is_the_distance_at_which_there_is_an_answer():
    test = ProposeTestRelease(epsilon=0.5, delta=1e-6)
    needed = math.ceil(test.error(0.9))
    noise = discrete_laplace(test.scale, 20_000, rng=2)
    assert (needed + noise > test.threshold).mean() > 0.9 - 0.01
    assert (needed - 3 + noise > test.threshold).mean() < 0.95


small = st.lists(st.integers(0, 3), max_size=7)


def distance_to_unsafe(x, replace):
    """By brute force: the fewest changes to a data set on which some further change alters the mode (or ties it)."""
    top = Counter(x).most_common(2) + [(None, 0)] * 2
    lead = top[0][1] - top[1][1]
    return max(0, -(-lead // 2) - 1 if replace else lead - 1)


@given(small, st.data(), st.booleans())
def test_one_record_changes_the_modes_distance_by_one_and_safe_modes_do_not_change(x, data, replace):
    y = list(x)
    if replace and x:
        y[data.draw(st.integers(0, len(x) - 1))] = data.draw(st.integers(0, 3))
    elif not replace:
        y.append(data.draw(st.integers(0, 3)))
    here, there = (distance_to_unsafe(z, replace) for z in (x, y))
    assert abs(here - there) <= 1
    if min(here, there) > 0:
        assert Counter(x).most_common(1)[0][0] == Counter(y).most_common(1)[0][0]


def test_mode_is_answered_with_a_clear_lead_and_only_then():
    for adjacency in ("add-remove", "replace"):
        mechanism = StableMode(epsilon=1.0, delta=1e-6, adjacency=adjacency)
        lead = math.ceil(mechanism.error(1 - 1e-6))
        assert mechanism.release([0.1] * (lead + 5) + [2.7] * 5, rng=1).value == 0.1
        for unclear in ([], [1], [1, 2], [math.nan], np.arange(50), ["a"] * 5 + ["b"] * 5):
            assert mechanism.release(unclear, rng=1).value is None
        assert dp.epsilon(mechanism.event, delta=1e-6, adjacency=adjacency) <= 1.0
    assert mechanism.release(np.array([math.nan] * 100 + [1.0]), rng=1).value == "nan"


@settings(max_examples=60)
@given(st.lists(st.floats(-1.5, 1.5), min_size=16, max_size=16), st.integers(0, 15), st.floats(-1e6, 1e6))
def test_clustered_mean_stays_within_its_sensitivity_on_safe_data(x, position, new):
    mechanism = ClusteredMean(radius=1.0, dimension=1, size=16, epsilon=1.0, delta=1e-6)
    x = np.array(x)[:, None] * 0.4
    y = x.copy()
    y[position] = new
    near = [mechanism._near(z) for z in (x, y)]
    scores = [_score(f) for f in near]
    assert abs(scores[0] - scores[1]) <= 1
    if min(scores) <= mechanism.slack:
        means = [float(_weighted_mean(z, f)[0]) for z, f in zip((x, y), near, strict=True)]
        assert abs(means[0] - means[1]) <= mechanism.sensitivity


def test_clustered_mean_survives_outliers_and_refuses_spread_data():
    mechanism = ClusteredMean(radius=1.0, dimension=3, size=400, epsilon=2.0, delta=1e-6)
    points = 1e8 + np.random.default_rng(0).uniform(-0.25, 0.25, (400, 3))
    points[:5] = [[math.nan] * 3, [math.inf] * 3, [1e300] * 3, [-1e308] * 3, [0.0] * 3]
    answer = mechanism.release(points, rng=1)
    assert np.abs(answer.value - 1e8).max() < 1
    assert mechanism.release(np.random.default_rng(0).normal(0, 1e9, (400, 3)), rng=1).value is None
    assert mechanism.release(np.full((400, 3), math.nan), rng=1).value is None
    assert dp.epsilon(answer.event, delta=1e-6, adjacency="replace") <= 2.0
    with pytest.raises(ValueError, match="shape"):
        mechanism.release(points[1:])


def test_stability_histogram_hides_rare_bins_and_shows_common_ones():
    for adjacency in ("add-remove", "replace"):
        histogram = StabilityHistogram(epsilon=1.0, delta=1e-6, width=0.5, adjacency=adjacency)
        data = np.concatenate([np.full(200, 3.3), np.arange(1000) * 7.0, [math.nan, math.inf, 1e308]])
        shown = histogram.release(data, rng=1).value
        assert list(shown) == [3.0]
        assert abs(shown[3.0] - 200) < 60
        assert histogram.mode(data, rng=1).value == 3.0
        assert histogram.mode([], rng=1).value is None
        assert dp.epsilon(histogram.event, delta=1e-6, adjacency=adjacency) <= 1.0


def test_a_single_record_shows_with_probability_delta_and_no_more():
    histogram = StabilityHistogram(epsilon=1.0, delta=0.05)
    shown = int((1 + discrete_laplace(histogram.scale, 200_000, rng=3) > histogram.threshold).sum())
    assert shown <= stats.binom.ppf(1 - FALSE_ALARM, 200_000, 0.05)
    assert shown >= stats.binom.ppf(FALSE_ALARM, 200_000, 0.05 / math.e)


def test_a_bin_of_one_record_is_released_as_often_as_the_law_says():
    """Twenty thousand such bins in one release: shown above the threshold, not at it,
    which would be e times as often.
    """
    histogram = StabilityHistogram(epsilon=1.0, delta=0.05)
    shown, chance = len(histogram.release(range(20_000), rng=4).value), tail(histogram.scale, histogram.threshold - 1)
    low, high = stats.binom.ppf([FALSE_ALARM, 1 - FALSE_ALARM], 20_000, chance)
    assert low <= shown <= high < 20_000 * 0.05
    assert stats.binom.ppf(FALSE_ALARM, 20_000, chance * math.e) > high


def test_a_mean_of_points_without_weight_is_zero():
    assert _weighted_mean(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([1, 1])).tolist() == [0, 0]


def test_bad_parameters_are_named():
    for kind in (ProposeTestRelease, StableMode, StabilityHistogram):
        for name, bad in (("epsilon", 0.0), ("epsilon", math.nan), ("delta", 0.0), ("delta", 1.0)):
            with pytest.raises(ValueError, match=name):
                kind(**{"epsilon": 1.0, "delta": 1e-6, name: bad})
    with pytest.raises(ValueError, match="width"):
        StabilityHistogram(epsilon=1.0, delta=1e-6, width=-1.0)
    with pytest.raises(ValueError, match="size"):
        ClusteredMean(radius=1.0, dimension=1, size=8, epsilon=1.0, delta=1e-6)
