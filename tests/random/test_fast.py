"""Float noise for training: the right law, in place, the same on any number of threads."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet.random import _lanes, gaussian_noise, seeded

FALSE_ALARM = 1e-6


def fits(noise, sigma):
    """Kolmogorov-Smirnov on the whole and on the tail beyond three sigma, which has its own branch."""
    tail = np.abs(noise[np.abs(noise) > 3 * sigma]) / sigma
    beyond = stats.kstest(tail, lambda x: 1 - stats.norm.sf(x) / stats.norm.sf(3)).pvalue
    return min(stats.kstest(noise / sigma, "norm").pvalue, beyond) > FALSE_ALARM / 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("secure", [True, False])
def test_law_fits_and_a_scale_wrong_by_three_percent_is_rejected(dtype, secure):
    noise = gaussian_noise(np.empty(300_000, dtype), sigma=2.5, rng=1, secure=secure)
    assert fits(noise, 2.5)
    assert not fits(noise, 2.5 * 1.03)
    assert not fits(noise, 2.5 / 1.03)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_higher_moments_and_halves_are_independent(dtype):
    noise = gaussian_noise(np.empty(1_000_000, dtype), rng=2).astype(float)
    assert abs((noise**4).mean() - 3) < 6 * math.sqrt(96 / noise.size)
    assert abs((noise[::2] * noise[1::2]).mean()) < 6 / math.sqrt(noise.size / 2)


def test_a_seeded_fill_does_not_depend_on_the_number_of_threads(monkeypatch):
    two = gaussian_noise(100_000, rng=3)
    monkeypatch.setattr(_lanes, "_threads", lambda: 1)
    np.testing.assert_array_equal(gaussian_noise(100_000, rng=3), two)


def test_buffers_are_filled_in_place_and_streams_move_on():
    buffer, rng = np.zeros((3, 4), np.float32), seeded(1)
    assert gaussian_noise(buffer, rng=rng) is buffer
    assert (buffer != 0).all()
    assert not np.array_equal(gaussian_noise(12, rng=rng), gaussian_noise(12, rng=rng))
    assert (gaussian_noise(5, sigma=0.0, rng=1) == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_noise_is_added_and_the_sum_scaled(dtype):
    held, noise = np.arange(1000, dtype=dtype), gaussian_noise(np.empty(1000, dtype), sigma=2.0, rng=1)
    rounding = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(
        gaussian_noise(held.copy(), 2.0, 1, add=True), held + noise, rtol=rounding, atol=1000 * rounding
    )
    np.testing.assert_allclose(
        gaussian_noise(held.copy(), 2.0, 1, add=True, scale=0.125),
        (held + noise) / 8,
        rtol=rounding,
        atol=1000 * rounding,
    )
    np.testing.assert_allclose(gaussian_noise(held.copy(), 2.0, 1, scale=0.125), noise / 8, rtol=rounding)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_noise_that_was_added_is_taken_away_by_the_same_stream(dtype):
    held = np.arange(1000, dtype=dtype)
    noisy = gaussian_noise(held.copy(), 2.0, 1, add=True)
    assert np.abs(noisy - held).max() > 1
    rounding = 4000 * np.finfo(dtype).eps
    np.testing.assert_allclose(gaussian_noise(noisy, 2.0, 1, subtract=True), held, atol=rounding)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_scale_must_be_positive(scale):
    with pytest.raises(ValueError, match="scale"):
        gaussian_noise(3, scale=scale)


@pytest.mark.parametrize("buffer", [np.zeros(4, int), np.zeros((4, 4)).T[::2], np.zeros(4, np.float16)])
def test_other_buffers_are_refused(buffer):
    with pytest.raises(ValueError, match="float32 or float64"):
        gaussian_noise(buffer)


@pytest.mark.parametrize("sigma", [-1.0, math.nan, math.inf])
def test_sigma_must_be_a_number(sigma):
    with pytest.raises(ValueError, match="sigma"):
        gaussian_noise(3, sigma=sigma)
