"""Record and replay finds what a declared cost does not cover, and lets correct pipelines pass."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.auditing import ReplayError, replay
from discreet.auditing.strategies import awkward_floats, awkward_integers, neighbours
from discreet.mechanisms import (
    AboveThreshold,
    ClusteredMean,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    NoisyMax,
    PermuteAndFlip,
    ProposeTestRelease,
    RandomizedResponse,
    SmoothMedian,
    SparseVector,
    StabilityHistogram,
    StableMode,
    TopK,
)
from discreet.random import exact_sum, seeded
from discreet.random.tap import coins

brief = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def clipped(x):
    return np.clip(np.nan_to_num(np.array(x, dtype=float), nan=0.0), 0.0, 1.0)


def counts(x):
    return np.bincount(np.asarray(clipped(x) * 4, int), minlength=5)


# --- what must pass ------------------------------------------------------------------------------------------------

ADD_REMOVE = {
    "laplace sum": lambda x: Laplace(sensitivity=1.0, epsilon=1.0).release(exact_sum(clipped(x))),
    "gaussian sum": lambda x: Gaussian(sensitivity=1.0, sigma=1.0).release(exact_sum(clipped(x))),
    "laplace histogram": lambda x: Laplace(sensitivity=1.0, epsilon=1.0).release(counts(x).astype(float)),
    "gaussian histogram": lambda x: Gaussian(sensitivity=1.0, sigma=1.0).release(counts(x).astype(float)),
    "discrete laplace": lambda x: DiscreteLaplace(epsilon=1.0).release(counts(x)),
    "discrete gaussian": lambda x: DiscreteGaussian(sigma=1.0, max_size=5).release(counts(x)),
    "exponential": lambda x: Exponential(monotone=True).release(counts(x)),
    "noisy max": lambda x: NoisyMax(monotone=True).release(counts(x)),
    "permute and flip": lambda x: PermuteAndFlip(monotone=True).release(counts(x)),
    "top k": lambda x: TopK(k=2).release(counts(x)),
    "above threshold": lambda x: AboveThreshold(threshold=2.0).release(counts(x)),
    "sparse vector": lambda x: SparseVector(threshold=1.0, max_positives=2).release(counts(x)),
    "stable mode": lambda x: StableMode(epsilon=1.0, delta=0.1).release(clipped(x)),
    "stability histogram": lambda x: StabilityHistogram(epsilon=1.0, delta=0.1, width=0.25).release(x),
}


@pytest.mark.parametrize("name", ADD_REMOVE)
@brief
@given(pair=neighbours(awkward_floats()))
def test_mechanisms_pass_under_add_remove(name, pair):
    replay(ADD_REMOVE[name], *pair)


@brief
@given(pair=neighbours(awkward_floats(), replace=True))
def test_smooth_median_passes_under_replace(pair):
    for delta in (0.0, 1e-3):
        replay(SmoothMedian(bounds=(0.0, 1.0), epsilon=1.0, delta=delta).release, *pair)


@brief
@given(pair=neighbours(st.integers(0, 2), replace=True))
def test_randomized_response_passes_under_replace(pair):
    replay(lambda x: RandomizedResponse(epsilon=1.0, categories=3).release(np.array(x, int)), *pair)


@brief
@given(pair=neighbours(awkward_integers()))
def test_exact_sums_of_clipped_integers_pass(pair):
    replay(lambda x: DiscreteLaplace(sensitivity=10, epsilon=1.0).release(sum(max(-10, min(10, v)) for v in x)), *pair)


@brief
@given(st.lists(awkward_floats(), min_size=16, max_size=16), st.integers(0, 15), awkward_floats())
def test_the_clustered_means_test_passes_under_replace(x, position, new):
    mechanism = ClusteredMean(radius=1.0, dimension=1, size=16, epsilon=1.0, delta=1e-6)
    y = list(x)
    y[position] = new
    replay(lambda z: mechanism.release(np.array(z)[:, None]), x, y)


def test_a_multi_step_algorithm_passes_because_outputs_are_forced_not_noise():
    """Noisy gradient descent: with equal noise the iterates would drift apart and later gradients with them."""

    def descend(x):
        noise, w = Gaussian(sensitivity=2.0, sigma=1.0), 0.0
        for _ in range(20):
            w -= 0.3 * noise.release(exact_sum(np.clip(w - clipped(x), -1, 1))).value
        return w

    transcript = replay(descend, [0.2, 0.9, 0.4], [0.2, 0.9])
    assert len(transcript.steps) == 20
    assert "0.9" not in repr(transcript)


def test_sampling_coins_are_keyed_by_record():
    def sampled(x):
        keep = coins(x, seeded(1)) < np.uint64(2**63)
        return Laplace(sensitivity=1.0, epsilon=1.0).release(int(keep.sum()))

    for gone in range(8):
        replay(sampled, [*"abcdefgh"], [c for i, c in enumerate("abcdefgh") if i != gone])
    replay(sampled, ["a", "a", "a"], ["a", "a"])


def test_the_fixture_tries_both_orders(replay):
    replay(ADD_REMOVE["laplace sum"], [0.5, 0.7], [0.5])
    with pytest.raises(ReplayError):
        replay(lambda x: Laplace(sensitivity=0.1, epsilon=1.0).release(len(x)), [1, 2], [1])


def test_propose_test_release_with_a_constant_base_passes():
    test = ProposeTestRelease(epsilon=1.0, delta=0.1, distance=len, base=lambda _: "safe")
    replay(test.release, [1] * 9, [1] * 8)


# --- what must be found --------------------------------------------------------------------------------------------

VIOLATIONS = {
    "a sum without clipping": (lambda x: Laplace(sensitivity=1.0, epsilon=1.0).release(np.sum(x)), "differs by"),
    "a mean by the private size": (
        lambda x: Laplace(sensitivity=1.0, epsilon=1.0).release(np.array([np.sum(x), len(x) * 2.0])),
        "differs by",
    ),
    "a shape read off the data": (lambda x: Laplace(sensitivity=9.0, epsilon=1.0).release(np.zeros(len(x))), "shape"),
    "a size in the clear": (lambda x: (Laplace(sensitivity=1.0, epsilon=1.0).release(0.0), len(x)), "results differ"),
    "noise scaled to the data": (lambda x: Laplace(sensitivity=1.0, scale=float(len(x))).release(0.0), "another step"),
    "steps that depend on the data": (
        lambda x: [Laplace(sensitivity=1.0, epsilon=1.0).release(0.0) for _ in x],
        "number of noisy steps",
    ),
    "an error that depends on the data": (lambda x: 1 // (len(x) - 2), "ended differently"),
    "keys read off the data": (lambda x: dict.fromkeys(x, 0), "results differ"),
    "scores that move too far": (lambda x: Exponential(sensitivity=0.5).release([len(x), 0.0]), "differs by"),
}


@pytest.mark.parametrize("name", VIOLATIONS)
def test_violations_are_found(name):
    operation, text = VIOLATIONS[name]
    with pytest.raises(ReplayError, match=text):
        replay(operation, [0.5, 3.0, 7.0], [0.5, 3.0])


def test_a_naive_float_sum_is_found():
    """Rounding at every addition: the large record shields or unshields the small ones (Casacuberta et al. 2022)."""
    data = [-(2.0**60)] + [50.0] * 10_000
    noise = Laplace(sensitivity=2.0**60, epsilon=1.0, max_size=1)

    def naive(x):
        total = 0.0
        for value in x:
            total += value
        return noise.release(total)

    with pytest.raises(ReplayError, match="differs by"):
        replay(naive, data, data[1:])
    replay(lambda x: noise.release(exact_sum(x)), data, data[1:])


def test_nan_and_errors_on_both_sides_are_compared():
    laplace = Laplace(sensitivity=1.0, epsilon=1.0)

    def strict(x):
        if math.isnan(x[0]):
            raise ValueError("no number")
        return laplace.release(x[0])

    replay(lambda x: strict([math.nan]), [1], [2], allow=(ValueError,))
    with pytest.raises(ReplayError, match=r"ended differently \(no error and ValueError\)"):
        replay(strict, [0.5], [math.nan])
