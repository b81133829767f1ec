"""The exact samplers have the law they state: goodness of fit with power, and agreement of fast and slow paths."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from discreet.random import (
    discrete_gaussian,
    discrete_laplace,
    gaussian_cells,
    laplace_cells,
    seeded,
)
from discreet.random import exact as exact_module
from discreet.random._kernel import GAUSSIAN, LAPLACE, _exp_minus, exp_table
from discreet.random.bounds import exp_bounds, uniform_below
from discreet.random.cauchy import cauchy_cell

FALSE_ALARM = 1e-6
DRAWS = 400_000
SCALES = np.geomspace(0.3, 1e6, 10)


def laplace_cell_cdf(n, m):
    x = (n + 1) / m
    return np.where(x < 0, 0.5 * np.exp(np.minimum(x, 0)), 1 - 0.5 * np.exp(-np.maximum(x, 0)))


def gaussian_cell_cdf(n, m):
    return special.ndtr((n + 1) / m)


def discrete_laplace_cdf(n, t):
    upper = np.exp(-(np.maximum(n, 0) + 1) / t) / (1 + math.exp(-1 / t))
    lower = np.exp(np.minimum(n, 0) / t) / (1 + math.exp(-1 / t))
    return np.where(n >= 0, 1 - upper, lower)


def discrete_gaussian_cdf(n, sigma):
    if sigma > 1000:  # Euler-Maclaurin: the next correction is of relative size 1/24σ²
        return special.ndtr((n + 0.5) / sigma)
    support = np.arange(-math.ceil(12 * sigma) - 2, math.ceil(12 * sigma) + 3)
    mass = np.exp(-(support**2) / (2 * sigma**2))
    return np.interp(n, support, np.cumsum(mass) / mass.sum())


def cauchy_cell_cdf(n, m):
    return 0.5 + np.arctan((n + 1) / m) / np.pi


def fits(sample, cdf, scale):
    """χ² over about thirty cells of nearly equal mass, with a false-alarm rate of FALSE_ALARM."""
    search = np.unique(np.concatenate([np.arange(-6, 6), np.rint(np.linspace(-5, 5, 4001) * scale)]))
    reached = cdf(search, scale)
    edges = search[np.unique(np.searchsorted(reached, np.linspace(0.02, 0.98, 32)).clip(0, len(search) - 1))]
    if scale < 1:
        edges = np.array([-2.0, -1, 0, 1])  # cells of expected count above 5 at the smallest scales
    probability = np.diff(np.concatenate([[0.0], cdf(edges, scale), [1.0]]))
    counts = np.histogram(sample, np.concatenate([[-np.inf], edges + 0.5, [np.inf]]))[0]
    expected = probability * len(sample)
    keep = expected > 5
    pooled = np.append(counts[keep], counts[~keep].sum()), np.append(expected[keep], expected[~keep].sum())
    counts, expected = (x[:-1] if pooled[1][-1] <= 5 else x for x in pooled)
    statistic = ((counts - expected) ** 2 / expected).sum()
    return stats.chi2.sf(statistic, len(counts) - 1) > FALSE_ALARM


SAMPLERS = {
    "discrete laplace": (discrete_laplace, discrete_laplace_cdf, SCALES),
    "discrete gaussian": (discrete_gaussian, discrete_gaussian_cdf, SCALES),
    "laplace cells": (laplace_cells, laplace_cell_cdf, [int(s) for s in np.geomspace(1, 1e6, 9)] + [2**44 + 12345]),
    "gaussian cells": (gaussian_cells, gaussian_cell_cdf, [int(s) for s in np.geomspace(1, 1e6, 9)] + [2**44 + 12345]),
}


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("position", range(10))
def test_law_fits_and_a_scale_wrong_by_four_percent_is_rejected(name, position):
    sampler, cdf, scales = SAMPLERS[name]
    scale = scales[position]
    sample = sampler(scale, size=DRAWS, rng=seeded(1000 + position))
    assert fits(sample, cdf, scale)
    assert not fits(sample, cdf, scale * 1.04)
    assert not fits(sample, cdf, scale / 1.04)


@pytest.mark.parametrize("kind", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("cells", [True, False])
def test_python_integers_give_the_same_law(kind, cells):
    cdf = {
        (LAPLACE, True): laplace_cell_cdf,
        (LAPLACE, False): discrete_laplace_cdf,
        (GAUSSIAN, True): gaussian_cell_cdf,
        (GAUSSIAN, False): discrete_gaussian_cdf,
    }[kind, cells]
    law, rng = exact_module._Law(kind, cells, Fraction(5)), seeded(3)
    sample = np.array([law.one(rng) for _ in range(4000)])
    assert fits(sample, cdf, 5)
    assert not fits(sample, cdf, 6)


def test_scales_too_wide_for_the_compiled_loop_are_served_by_python_integers():
    sample = discrete_gaussian(Fraction(2**55 + 1, 1), size=2000, rng=1)
    assert stats.kstest(sample / 2.0**55, "norm").pvalue > FALSE_ALARM
    assert stats.kstest(sample / 2.0**55 / 1.3, "norm").pvalue < FALSE_ALARM
    assert not (sample % 2 == 0).all()


def test_a_sample_beyond_62_bits_is_an_error_not_a_wrap():
    with pytest.raises(OverflowError):
        discrete_laplace(Fraction(2**70), size=10, rng=1)


def test_cauchy_cells_fit_and_a_wrong_scale_is_rejected():
    rng = seeded(5)
    sample = np.array([cauchy_cell(1000, rng) for _ in range(30_000)], dtype=float)
    assert fits(sample, cauchy_cell_cdf, 1000)
    assert not fits(sample, cauchy_cell_cdf, 1100)


def test_the_float_exponential_is_within_the_margin_the_kernel_claims():
    rng = np.random.default_rng(0)
    for r in np.concatenate([rng.uniform(0, 64, 2000), np.arange(64), np.nextafter(np.arange(1, 64) / 64, 0)]):
        exact = mpmath.exp(-mpmath.mpf(float(r)))
        assert abs(mpmath.mpf(float(_exp_minus(float(r), exp_table()))) - exact) < 2.0**-47 * exact


def test_bounds_on_exp_enclose_it():
    with mpmath.workdps(80):
        for x in (Fraction(-1, 3), Fraction(0), Fraction(-700), Fraction(7, 5), Fraction(-(2**60))):
            low, high = exp_bounds(x, 50)
            exact = mpmath.exp(mpmath.mpf(x.numerator) / x.denominator)
            assert mpmath.mpf(low.numerator) / low.denominator <= exact <= mpmath.mpf(high.numerator) / high.denominator


def test_close_calls_are_decided_by_later_bits():
    """A uniform whose first word equals the probability's is below it exactly as often as the next bits say."""
    third = (Fraction(1, 3), Fraction(1, 3))
    word = 2**64 // 3  # 0x5555…: one third continues 0101…, so the next word decides against 0x5555…
    rng = seeded(9)
    below = sum(uniform_below(lambda digits, _: third, rng, word=word) for _ in range(6000))
    low, high = stats.binom.ppf([FALSE_ALARM, 1 - FALSE_ALARM], 6000, 1 / 3)
    assert low <= below <= high
    assert uniform_below(lambda digits, _: third, rng, word=word - 1)
    assert not uniform_below(lambda digits, _: third, rng, word=word + 1)


def test_a_settled_candidate_agrees_with_the_probability_it_was_settled_by():
    law, rng = exact_module._Law(GAUSSIAN, True, Fraction(1000)), seeded(2)
    for k, j in [(0, 0), (0, 700), (1, 3), (2, 11), (3, 400), (45, 7)]:
        p = 2.0**k * math.exp(-0.5 * ((k * law.strip + j) / 1000) ** 2)
        assert (law.settle(rng, k, j, 0, 0) is None) == (p < 2.0**-64)
        assert p > 1 - 1e-3 or law.settle(rng, k, j, 0, 2**64 - 1) is None


def test_sizes_and_seeds():
    assert discrete_laplace(2, size=(2, 3), rng=1).shape == (2, 3)
    assert discrete_laplace(2, size=(), rng=1).shape == ()
    assert discrete_gaussian(2, size=0, rng=1).size == 0
    np.testing.assert_array_equal(gaussian_cells(9, 50_000, rng=4), gaussian_cells(9, 50_000, rng=4))
    assert (gaussian_cells(2**40, 50, rng=4) != gaussian_cells(2**40, 50)).any()


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, "2", None])
def test_scales_must_be_positive_and_finite(scale):
    for sampler in (discrete_laplace, discrete_gaussian, laplace_cells, gaussian_cells):
        with pytest.raises(ValueError, match="must be"):
            sampler(scale)
