"""Discrete mechanisms: integers in, integers out, never a wrap."""

import math
from decimal import Decimal

import numpy as np
import pytest

import discreet as dp
from discreet import events
from discreet.mechanisms import DiscreteGaussian, DiscreteLaplace, Geometric
from discreet.random import seeded


def test_events():
    assert dp.epsilon(DiscreteLaplace(sensitivity=3, epsilon=0.7).event, delta=0) <= 0.7
    assert DiscreteLaplace(sensitivity=3, scale=6.0).event == events.DiscreteLaplace(scale=6.0, sensitivity=3)
    assert DiscreteGaussian(sensitivity=2, sigma=6.0).event == events.DiscreteGaussian(sigma=6.0, sensitivity=2)
    assert DiscreteGaussian(sensitivity=2.0, sigma=4.0, max_size=5).event == events.ZCDP(rho=0.125)
    assert Geometric is DiscreteLaplace


@pytest.mark.parametrize("max_size", [1, 50])
def test_discrete_gaussian_calibration_meets_its_target(max_size):
    mechanism = DiscreteGaussian(sensitivity=1, epsilon=1.0, delta=1e-5, max_size=max_size)
    assert 0.999 <= dp.epsilon(mechanism.event, delta=1e-5) <= 1.0
    by_rho = DiscreteGaussian(sensitivity=1, rho=0.5, max_size=max_size)
    assert by_rho.sigma == pytest.approx(1.0, rel=1e-9)


def test_shapes_and_types():
    mechanism = DiscreteLaplace(sensitivity=1, epsilon=1.0)
    assert type(mechanism.release(5).value) is int
    assert type(mechanism.release(np.int8(5)).value) is int
    noisy = mechanism.release(np.arange(6, dtype=np.int8).reshape(2, 3)).value
    assert noisy.shape == (2, 3)
    assert noisy.dtype == np.int64
    assert mechanism.release(np.array([2**63], np.uint64) - 5, rng=1).value.dtype == np.int64
    assert mechanism.release(10**30, rng=1).value > 10**29


def test_a_noisy_value_beyond_64_bits_is_the_nearest_that_fits():
    mechanism, most = DiscreteLaplace(sensitivity=1, scale=1e6), 2**63 - 1
    for extreme in (np.full(100, most), np.full(100, -(2**63)), np.full(100, 2**64 - 1, np.uint64), [2**90] * 100):
        noisy = mechanism.release(extreme, rng=1).value
        assert noisy.dtype == np.int64
        assert (np.sign(noisy) == (1 if int(extreme[0]) > 0 else -1)).all()
        assert (np.abs(noisy) == most).sum() >= 30


def test_an_entry_that_is_not_whole_is_rounded_down_and_one_that_is_no_number_is_nothing():
    mechanism, bad = DiscreteLaplace(epsilon=50.0), [2.5, -2.5, None, math.nan, "7", Decimal("sNaN"), True, 3]
    assert mechanism.release(bad, rng=1).value.tolist() == [2, -3, 0, 0, 0, 0, 1, 3]
    assert abs(mechanism.release([math.inf, -math.inf], rng=1).value).tolist() == [2**63 - 1] * 2


@pytest.mark.parametrize("mechanism", [DiscreteLaplace(epsilon=1.0), DiscreteGaussian(sigma=1.0, max_size=4)])
@pytest.mark.parametrize("bad", [1.5, math.nan, np.array([1.0]), "7", None, np.array(["7"])])
def test_what_is_not_whole_is_refused(mechanism, bad):
    with pytest.raises(ValueError, match="whole numbers"):
        mechanism.release(bad)


def test_sizes_and_parameters_are_checked():
    with pytest.raises(ValueError, match="at most max_size=1"):
        DiscreteGaussian(sigma=1.0).release([1, 2])
    with pytest.raises(ValueError, match="whole for one integer"):
        DiscreteGaussian(sensitivity=1.5, sigma=1.0)
    for bad in (0, -1, 1.5, "1"):
        with pytest.raises(ValueError, match="sensitivity"):
            DiscreteLaplace(sensitivity=bad, epsilon=1.0)
    with pytest.raises(ValueError, match="scale"):
        DiscreteLaplace(scale=2.0**60)
    with pytest.raises(ValueError, match="sigma"):
        DiscreteGaussian(sigma=-1.0)


@pytest.mark.parametrize(
    "mechanism",
    [
        DiscreteLaplace(scale=0.4),
        DiscreteLaplace(scale=20.0),
        DiscreteGaussian(sigma=0.4, max_size=10**6),
        DiscreteGaussian(sigma=20.0, max_size=10**6),
    ],
)
def test_error_holds_with_its_confidence(mechanism):
    noise = np.abs(mechanism.release(np.zeros(100_000, int), rng=seeded(1)).value)
    for confidence in (0.5, 0.9, 0.99):
        assert (noise <= mechanism.error(confidence)).mean() >= confidence - 0.01
        assert (noise <= mechanism.error(confidence) - max(2, 0.1 * mechanism.error(confidence))).mean() < confidence


@pytest.mark.parametrize("delta", [0.29, 0.31, 0.5, 0.9])
def test_a_large_delta_is_met_too(delta):
    """Where epsilon is zero at every ordinary sigma the search must still see which way it falls."""
    mechanism = DiscreteGaussian(epsilon=1.0, delta=delta)
    assert 0.9 * delta < dp.delta(mechanism.event, epsilon=1.0) <= delta
