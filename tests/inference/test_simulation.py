"""What null laws are made of: noise like the mechanism's, p-values, projections."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import ks_2samp

from discreet import random
from discreet.inference.simulation import noise_like, public_generator, simplex, tail_probability, toward
from discreet.mechanisms import DiscreteGaussian, DiscreteLaplace, Exponential, Gaussian, Laplace

FALSE_ALARM = 1e-9
MECHANISMS = [
    (Laplace(sensitivity=1.0, epsilon=0.5), 0.0),
    (Gaussian(sensitivity=1.0, sigma=3.0), 0.0),
    (DiscreteLaplace(epsilon=0.7), 0),
    (DiscreteGaussian(sigma=0.6), 0),
]


@pytest.mark.parametrize(("mechanism", "nothing"), MECHANISMS, ids=lambda each: type(each).__name__)
def test_simulated_noise_has_the_law_of_the_mechanism_s(mechanism, nothing):
    drawn = np.array([mechanism.draw(nothing, random.seeded(k)) for k in range(1500)])
    simulated = noise_like(mechanism, (60_000,), public_generator())
    assert ks_2samp(drawn, simulated).pvalue > FALSE_ALARM
    assert ks_2samp(1.5 * drawn, simulated).pvalue < 1e-4


def test_a_mechanism_that_is_not_known_raises():
    with pytest.raises(ValueError, match="mechanism is 'Exponential'"):
        noise_like(Exponential(sensitivity=1.0, epsilon=1.0), (2,), public_generator())


def test_a_p_value_counts_ties_and_is_never_zero():
    assert tail_probability(np.array(2.0), np.array([2.0, 2.0 + 1e-12, 1.0])) == 0.75
    assert tail_probability(np.array(9.0), np.zeros(99)) == 0.01


def test_the_simplex_is_the_nearest_law():
    counts = np.array([4.0, -2.0, 1.0, 0.5])
    nearest = minimize(
        lambda x: ((x - counts) ** 2).sum(),
        np.full(4, counts.sum() / 4),
        bounds=[(0, None)] * 4,
        constraints={"type": "eq", "fun": lambda x: x.sum() - counts.sum()},
    ).x
    np.testing.assert_allclose(simplex(counts), nearest, atol=1e-5)


@pytest.mark.parametrize("counts", [[-5.0, -9.0], [0.0, 0.0], [-3e17, -4e17], [4e17, -4e17]])
def test_there_is_always_a_law(counts):
    law = simplex(np.array(counts))
    assert (law >= 0).all()
    assert law.sum() > 0


def test_an_alternative_that_is_none_raises():
    with pytest.raises(ValueError, match="alternative is 'both'"):
        toward(np.zeros(1), "both")
