"""Smooth sensitivity: the bound is smooth and above the local one; noise is small where data are dense."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet import events
from discreet.mechanisms import SmoothMedian, SmoothSensitivity
from discreet.mechanisms.smooth_sensitivity import _laplace_beta

UNIT = SmoothMedian(bounds=(0.0, 1.0), epsilon=1.0)
points = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5])), min_size=1, max_size=9)


def brute_force(x, beta):
    """The definition, term by term, with 1-based indices and the bounds beyond the ends."""
    x = sorted(x)
    n, m = len(x), (len(x) + 1) // 2

    def at(i):
        return 0.0 if i < 1 else 1.0 if i > n else x[i - 1]

    return max(math.exp(-k * beta) * max(at(m + t) - at(m + t - k - 1) for t in range(k + 2)) for k in range(n + 1))


@given(points)
def test_bound_equals_the_definition(x):
    assert UNIT.smooth_bound(x) == pytest.approx(brute_force(x, UNIT._noise.beta), rel=1e-9)


@settings(max_examples=200)
@given(points, st.integers(0, 8), st.floats(0, 1))
def test_bound_is_smooth_and_covers_every_neighbour(x, position, new):
    y = list(x)
    y[position % len(x)] = new
    here, there = UNIT.smooth_bound(x), UNIT.smooth_bound(y)
    medians = [sorted(z)[(len(z) + 1) // 2 - 1] for z in (x, y)]
    assert abs(medians[0] - medians[1]) <= min(here, there)
    assert max(here, there) <= math.exp(UNIT._noise.beta) * min(here, there) * (1 + 1e-9)


@given(st.floats(0.01, 10), st.sampled_from([1e-2, 1e-6]))
def test_laplace_stretch_costs_half_epsilon_except_with_probability_delta(epsilon, delta):
    """The set where stretching by e^beta costs more than epsilon/2 has probability delta at most; checked directly."""
    beta = _laplace_beta(epsilon, delta)
    worst = (epsilon / 2 + beta) / math.expm1(beta)
    assert math.exp(-worst) <= delta * (1 + 1e-9)
    assert beta <= epsilon / 2


@pytest.mark.parametrize("low", [3 * 2.0**-55, 5 * 2.0**-56, 0.1, 1 / 3])
def test_bound_is_not_below_the_exact_distance_that_a_double_rounds_down(low):
    """1 - 3/2^55 rounds down to 1 - 2^-53: the records beside a median may lie that much further apart than doubles
    say.
    """
    assert Fraction(UNIT.smooth_bound([low, 1.0])) >= 1 - Fraction(low)


def test_noise_follows_the_data():
    dense, spread = np.full(501, 0.5), np.repeat([0.0, 1.0], [250, 251])
    assert UNIT.smooth_bound(dense) < 1e-9
    assert UNIT.smooth_bound(spread) > 0.9
    for delta in (0.0, 1e-6):
        mechanism = SmoothMedian(bounds=(0.0, 1.0), epsilon=1.0, delta=delta)
        values = [mechanism.release(dense, rng=seed).value for seed in range(30)]
        assert np.median(np.abs(np.array(values) - 0.5)) < (1e-5 if delta == 0 else 1e-3)  # e^{-250·beta}, over alpha
        assert 0.0 <= mechanism.release(spread, rng=1).value <= 1.0


def test_events_and_awkward_data():
    assert UNIT.event == events.PureDP(epsilon=1.0, adjacency="replace")
    approximate = SmoothMedian(bounds=(0.0, 1.0), epsilon=1.0, delta=1e-6)
    assert dp.epsilon(approximate.event, delta=1e-6, adjacency="replace") <= 1.0
    for data in ([], [math.nan], [math.inf, -math.inf, math.nan], [1e308], [5e-324] * 3):
        assert 0.0 <= UNIT.release(data, rng=1).value <= 1.0


def test_error_shrinks_with_the_bound():
    mechanism = SmoothSensitivity(epsilon=1.0, resolution=1e-12)
    assert mechanism.error(0.5, smooth_bound=0.1) == pytest.approx(0.2, rel=1e-6)
    assert mechanism.release((3.0, 1e-3), rng=1).reproducible


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match="bounds"):
        SmoothMedian(bounds=(1.0, 0.0), epsilon=1.0)
    with pytest.raises(ValueError, match="epsilon"):
        SmoothMedian(bounds=(0.0, 1.0), epsilon=-1.0)
    with pytest.raises(ValueError, match="delta is 1e-300, but is too small"):
        SmoothSensitivity(epsilon=1e-4, delta=1e-300, resolution=1.0)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("bad", [math.nan, math.inf, None, "0.1"])
def test_a_bound_that_is_no_number_bounds_nothing(bad, delta):
    """Then the noise is as wide as doubles are, and the value cannot be told."""
    mechanism = SmoothSensitivity(epsilon=1.0, delta=delta, resolution=1.0)
    assert min(abs(mechanism.release((1.0, bad), rng=i).value) for i in range(20)) > 1e300
    assert mechanism.release((bad if bad != math.inf else None, 1e-6), rng=1) == mechanism.release((0.0, 1e-6), rng=1)
