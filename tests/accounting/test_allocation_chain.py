"""Chains of bins beside simulation and beside independent bins, from above and from below."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

import discreet as dp
from discreet import events as ev
from discreet.accounting.allocation import Allocated, Allocation
from discreet.accounting.allocation_chain import Chain
from discreet.accounting.allocation_chain_below import _contract_row, _lowest, calls_below
from discreet.accounting.allocation_ratio import COARSE
from discreet.accounting.kept_shapes import chain, chain_below, majorants
from discreet.accounting.leaves.kept_bins import KeptPair
from discreet.accounting.pld.pairs import GaussianShift
from discreet.mechanisms.factorization import LambdaCGD, kept_bins_event

RUNS = 200_000


def at_unit_sensitivity(back: float, count: int, passes: int = 10) -> ev.KeptBins:
    strategy = LambdaCGD(back, count * passes)
    return kept_bins_event(strategy, count, math.sqrt(kept_bins_event(strategy, count, 1.0).products[0]))


def mean_ratios(shape: Chain, rng: np.random.Generator) -> np.ndarray:
    state, total = rng.normal(size=RUNS), np.zeros(RUNS)
    for _ in range(shape.bins):
        total += np.exp(math.sqrt(shape.variance) * state - shape.variance / 2)
        state = shape.correlation * state + math.sqrt(1 - shape.correlation**2) * rng.normal(size=RUNS)
    return total / shape.bins


@pytest.mark.parametrize("seed", range(8))
def test_both_sides_of_a_chain_enclose_its_simulation(seed):
    """At six standard errors, a false alarm once in 10⁹; what half the correlation would cost lies below them."""
    rng = np.random.default_rng(seed)
    shape = Chain(int(rng.integers(2, 30)), 10 ** rng.uniform(-2, 0.5), rng.uniform(0.05, 0.95))
    ratio, power = mean_ratios(shape, rng), []
    removed, added, below = shape.law(forward=True), shape.law(forward=False), calls_below(shape, math.exp(2.5))
    half = Chain(shape.bins, shape.variance, shape.correlation / 3).law(forward=True)
    for epsilon in (-0.2, 0.0, 0.3, 1.0):
        at = np.array([epsilon])
        calls, puts = np.maximum(ratio - math.exp(epsilon), 0), np.maximum(1 - math.exp(epsilon) * ratio, 0)
        error, put_error = (6 * float(x.std()) / math.sqrt(RUNS) + 50 / RUNS for x in (calls, puts))
        low, high = float(below.profile(at)[0]), float(removed.profile(at)[0])
        assert low - error <= float(calls.mean()) <= high + error
        assert float(puts.mean()) <= float(added.profile(at)[0]) + put_error
        assert high <= float(calls.mean()) * 1.05 + 0.01 * math.sqrt(shape.variance) + error
        power.append(float(half.profile(at)[0]) < float(calls.mean()) - error)
    assert any(power) or shape.correlation < 0.4


def test_a_chain_that_forgets_at_once_is_a_pass_over_independent_bins():
    exact, at = Allocation(Allocated(50, GaussianShift(1.0))), np.array([0.2, 0.5])
    shape = Chain(50, 1.0, 0.0)
    for truth, law in ((exact, shape.law(forward=True)), (exact.mirror, shape.law(forward=False))):
        assert (truth.profile(at) <= law.profile(at)).all()
        assert (law.profile(at) <= 1.2 * truth.profile(at)).all()
    low = calls_below(shape, 3.0).profile(at)
    assert (low <= exact.profile(at)).all()
    assert (low >= 0.85 * exact.profile(at)).all()


def test_all_of_a_chain_s_mass_is_accounted_for():
    shape = Chain(40, 0.8, 0.7)
    removed, added = shape.law(forward=True), shape.law(forward=False)
    assert removed.q_masses.sum() == pytest.approx(1, rel=1e-6)
    assert added.masses.sum() == pytest.approx(1, rel=1e-6)
    assert 1 <= removed.masses.sum() + removed.infinite <= 1.005  # calls may only grow: so does the mean
    assert removed.infinite < 1e-13
    below = calls_below(shape, 5.0)
    assert 0.95 < below.masses.sum() < 1 >= below.q_masses.sum() > 0.99


@pytest.mark.parametrize("mean", [-5.15, -5.1, -5.02, -4.9, 0.0])
def test_the_next_state_of_a_chain_from_below_is_never_above_its_law(mean):
    """Also where nearly all of it is between the first edge and the first state: there it was raised to that state."""
    shape, points = Chain(10, 0.0128, 0.98), np.log(0.0068 * np.arange(1, 200))
    edges, deviation = np.append(points[0] - 0.2, (points[1:] + points[:-1]) / 2), 0.0225
    states = np.append(_lowest(shape, float(edges[0])), points)
    masses = _contract_row(points, edges, mean, deviation)
    for k in np.linspace(-5.4, 0.4, 1001):
        d = (k - mean) / deviation
        assert masses @ np.maximum(states - k, 0) <= deviation * (norm.pdf(d) - d * norm.sf(d)) * (1 + 1e-9) + 1e-13
    assert 1 - 1e-12 <= masses.sum() <= 1


@pytest.mark.parametrize(("back", "low", "high"), [(0.3, 0.689, 0.7335), (0.6, 0.933, 1.0585), (0.9, 1.8, 2.44)])
def test_bins_next_to_each_other_count(back, low, high):
    """With a common factor alone λCGD 0.6 cost 1.741, and 0.585 was all that was known from below."""
    bounds = dp.epsilon_bounds(at_unit_sensitivity(back, 100), 1e-5)
    assert low <= bounds[0] <= bounds[1] <= high


def test_a_chain_around_the_end_of_a_pass_meets_the_first_bin_and_the_last():
    """They share nearly all here, and are neighbours in some shifts of a chain around the circle. The upper bound was
    0.053 where 0.058 is true: by a simulation of 2·10⁵, at six standard errors."""
    event = ev.KeptBins(bins=4, products=(1.0, 0.04, 0.02, 0.99), noise_multiplier=2.0)
    gram = np.eye(4) / 4
    gram[0, 3] = gram[3, 0] = 0.99 / 4
    numbers = np.random.default_rng(0).normal(size=(RUNS, 4)) @ np.linalg.cholesky(gram).T
    calls = np.maximum(np.exp(numbers - 1 / 8).mean(axis=1) - math.exp(0.2), 0)
    least = float(calls.mean()) - 6 * float(calls.std()) / math.sqrt(RUNS)
    assert least <= KeptPair(event).profile(np.array([0.2]))[0]
    ignored = ev.KeptBins(bins=4, products=(1.0, 0.04, 0.02), noise_multiplier=2.0)
    assert KeptPair(ignored).profile(np.array([0.2]))[0] < least


def test_a_chain_is_used_beside_other_events_and_in_both_directions():
    event, other = at_unit_sensitivity(0.6, 40, 3), ev.Gaussian(noise_multiplier=4.0)
    alone, together = (dp.epsilon_bounds(e, 1e-6) for e in (event, event + other))
    assert alone[0] < together[0] <= together[1] < alone[1] + dp.epsilon(other, 1e-6)
    old = max(shape.profile(np.array([alone[1]]), COARSE, forward=True)[0] for shape in majorants(event)[:1])
    assert old > 2e-6


def test_inside_a_sampler_a_chain_says_nothing():
    """Its law bounds calls, not puts: P and Q may not be exchanged."""
    event = at_unit_sensitivity(0.6, 20, 3)
    assert chain(event) is not None
    one = KeptPair(event).two_sided
    at = np.array([0.5])
    assert one.profile(at)[0] > KeptPair(event).profile(at)[0]
    assert all(pair is not chain_below(event) for pair in one.attainable)
    sampled = ev.PoissonSampled(rate=0.999, event=event)
    assert dp.epsilon(sampled, 1e-5) > 1.05 * dp.epsilon(event, 1e-5)


def test_chains_beyond_what_is_computed_are_left_to_other_shapes():
    loud = ev.KeptBins(bins=50, products=(1.0, 0.6, 0.36), noise_multiplier=0.05, smallest_products=(0.9, 0.5, 0.3))
    assert math.isfinite(dp.epsilon(loud, 1e-5))
    assert chain_below(loud) is None  # products that end are no chain's
    with pytest.raises(dp.NotCertified, match="span more"):
        calls_below(Chain(100, 4.0, 0.6), 1e3)
