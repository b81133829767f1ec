"""Float noise for training: the right law, in place, the same on any number of threads."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet.random import _blocks, _box_muller, gaussian_noise, seeded, source

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
    monkeypatch.setattr(source, "_threads", lambda: 1)
    np.testing.assert_array_equal(gaussian_noise(100_000, rng=3), two)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_seeded_fill_is_the_same_without_instructions_for_aes(dtype, monkeypatch):
    sizes = [9000, 30_001, 100_000]  # the last in lanes
    rng = seeded(4)
    noise = [gaussian_noise(np.empty(n, dtype), rng=rng) for n in sizes]
    monkeypatch.setattr(_blocks, "has_instructions", lambda: False)
    rng = seeded(4)
    for n, expected in zip(sizes, noise, strict=True):
        np.testing.assert_array_equal(gaussian_noise(np.empty(n, dtype), rng=rng), expected)


@pytest.mark.parametrize("before", range(10))
@pytest.mark.parametrize("count", [1, 8, 4097])
def test_reserved_words_are_the_generators_own_and_drawn_once(before, count):
    rng, twin = seeded(5), seeded(5)
    rng.words(before), twin.words(before)
    keys, counter, given = _blocks.reserve(rng.bits, count)
    words = np.empty(-(-count // 64) * 64, np.uint64)
    if len(keys):
        _blocks.encrypt(words, keys, counter)
    else:
        words[: len(given)] = given
    left, whole = -before % 8, -(-count // 8) * 8
    np.testing.assert_array_equal(words[:count], twin.words(left + whole)[left:][:count])
    assert rng.word() == twin.word()


def drawn(halves, rng):
    """What the compiled transform makes of these bits."""
    pairs = len(halves) // 2
    radii, out = np.empty(pairs, np.float32), np.empty(2 * pairs, np.float32)
    _box_muller.draw_pairs(halves.astype(np.uint32), radii, out, *rng.address)
    return radii, out[:pairs], out[pairs:]


def test_the_transform_is_box_and_mullers_to_some_units_in_the_last_place():
    spread = (2 ** np.linspace(20.001, 31.999, 4000)).astype(np.int64)
    words = np.concatenate([spread, 2**32 - 1 - np.arange(2000), 2**31 - 1000 + np.arange(2000)])
    radii, x, y = drawn(np.concatenate([words, words[::-1]]), seeded(1))
    half = words.astype(np.longdouble) + 0.5
    exact = np.sqrt(-2 * np.where(words < 2**31, np.log(half / 2**32), np.log1p(-(2**32 - half) / 2**32)))
    np.testing.assert_allclose(radii, exact.astype(float), rtol=3e-7)
    np.testing.assert_allclose(np.hypot(x.astype(float), y), radii, rtol=3e-7)


@pytest.mark.parametrize("turn", range(4))
def test_each_fourth_of_the_words_is_a_quarter_of_the_circle(turn):
    within = np.arange(-(2**29), 2**29, 2**20) % 2**30
    _, x, y = drawn(np.concatenate([np.full(1024, 2**31), turn * 2**30 + within]), seeded(1))
    angles = np.unwrap(np.arctan2(y.astype(float), x))
    np.testing.assert_allclose(np.abs(np.diff(angles)), math.pi / 2 / 1024, rtol=1e-3)
    middle = round(float(x[512] / np.hypot(x[512], y[512]))), round(float(y[512] / np.hypot(x[512], y[512])))
    assert middle == [(1, 0), (0, 1), (-1, 0), (0, -1)][turn]


def test_a_coarse_radius_is_refined_by_another_word():
    words = np.concatenate([np.zeros(64), np.full(64, 2**31)])
    (radii, *_), again = drawn(words, seeded(1)), drawn(words, seeded(2))
    assert (radii > 6.66).all()  # sqrt(-2 ln 2⁻³²)
    assert len(set(radii)) == 64
    assert not np.array_equal(radii, again[0])
    more = seeded(1).words(64) / 2**64
    np.testing.assert_allclose(radii, np.sqrt(-2 * np.log(more / 2**32)), rtol=1e-6)
    fine = drawn(np.full(128, 2**20), seeded(1))[0]
    assert len(set(fine)) == 1  # not below: its bits are fine enough


def test_the_two_numbers_of_a_pair_are_independent():
    noise = gaussian_noise(np.empty(2 * _box_muller.PAIRS * 400, np.float32), rng=6).astype(float)
    one, two = noise.reshape(-1, 2, _box_muller.PAIRS).transpose(1, 0, 2)
    alarm = stats.norm.isf(FALSE_ALARM / 2) / math.sqrt(one.size)
    assert abs((one * two).mean()) < alarm
    assert abs(((one**2 - 1) * (two**2 - 1)).mean()) < 2 * alarm
    assert abs((two * (one + 0.02 * two)).mean()) > alarm  # power: a fiftieth in common is seen


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
