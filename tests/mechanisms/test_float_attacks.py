"""Attacks on floating-point noise: they break the naive control kept here, and gain nothing against the library."""

import numpy as np
import pytest

from discreet.auditing import epsilon_lower_bound
from discreet.mechanisms import Gaussian, Laplace
from discreet.mechanisms.grid import Grid

TRIALS = 100_000
EPSILON = 1.0


def naive_laplace(value, rng):
    """What textbooks write: the value plus -b·sign·log(u), in doubles. Not private."""
    u = rng.random(TRIALS)
    return value + np.where(rng.random(TRIALS) < 0.5, -1.0, 1.0) * np.log1p(-u) / EPSILON


def reachable(output, value):
    """Whether some uniform makes the naive sampler produce ``output`` from ``value``: Mironov's test."""
    distance = (output - value) * EPSILON
    u = 1 - np.exp(-np.abs(distance))
    found = np.zeros(output.shape, bool)
    for step in range(-8, 9):
        candidate = np.clip(np.rint(u * 2.0**53) + step, 0, 2.0**53 - 1) * 2.0**-53
        noise = np.log1p(-candidate) / EPSILON
        found |= (value + noise == output) | (value - noise == output)
    return found


def mironov_bound(outputs_zero, outputs_one):
    """Lower bound on epsilon from outputs that only the first value can have produced."""
    hits = tuple(int((reachable(y, 0.0) & ~reachable(y, 1.0)).sum()) for y in (outputs_zero, outputs_one))
    return epsilon_lower_bound(hits, TRIALS)


def precision_bound(outputs_zero, outputs_one):
    """Lower bound from outputs finer than any that the sum with 1.0 can leave behind (Haney et al. 2022)."""
    hits = tuple(int((np.rint(y * 2.0**53) != y * 2.0**53).sum()) for y in (outputs_zero, outputs_one))
    return epsilon_lower_bound(hits, TRIALS)


def released(mechanism, value, seed):
    return mechanism.release(np.full(TRIALS, value), rng=seed).value


def test_mironovs_attack_breaks_naive_laplace_and_not_ours():
    rng = np.random.default_rng(0)
    assert mironov_bound(naive_laplace(0.0, rng), naive_laplace(1.0, rng)) > 4 * EPSILON
    mechanism = Laplace(sensitivity=1.0, epsilon=EPSILON)
    assert mironov_bound(released(mechanism, 0.0, 1), released(mechanism, 1.0, 2)) <= EPSILON


@pytest.mark.parametrize(
    ("naive", "mechanism", "claim"),
    [
        (lambda v, rng: v + rng.laplace(size=TRIALS), Laplace(sensitivity=1.0, epsilon=EPSILON), EPSILON),
        (lambda v, rng: v + rng.normal(size=TRIALS), Gaussian(sensitivity=1.0, sigma=1.0), 0.1),
    ],
)
def test_the_precision_attack_breaks_naive_noise_and_not_ours(naive, mechanism, claim):
    rng = np.random.default_rng(1)
    assert precision_bound(naive(0.0, rng), naive(1.0, rng)) > 5
    assert precision_bound(released(mechanism, 0.0, 1), released(mechanism, 1.0, 2)) <= claim


@pytest.mark.parametrize("mechanism", [Laplace(sensitivity=1.0, epsilon=EPSILON), Gaussian(sensitivity=1.0, sigma=1.0)])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1 / 3, np.pi, 5e-324])
def test_every_value_has_outputs_on_the_same_lattice(mechanism, value):
    """Odd multiples of half a step, for each value: the support, down to the last bit, is the same."""
    step = float(Grid.inside(getattr(mechanism, "scale", None) or mechanism.sigma).step)
    halves = released(mechanism, value, 3) / (step / 2)
    assert (np.rint(halves) == halves).all()
    assert (halves % 2 == 1).all()
