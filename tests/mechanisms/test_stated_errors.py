"""What ``error`` promises, for every mechanism: the theorem's value,
or a probability computed from the noise's exact law.
"""

import math
from statistics import NormalDist

import pytest

from discreet.accounting.gaussian import gaussian_noise_multiplier
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
    SmoothSensitivity,
    SparseVector,
    StabilityHistogram,
    StableMode,
    TopK,
)

FIRST = 0.5 / (1 + 2 ** (2 / 3))  # the threshold's part of epsilon = 1/2, where it costs least in all
SECOND = 0.5 - FIRST
Z = NormalDist().inv_cdf(0.975)

# mechanism, further arguments, what its reference says at a confidence of 0.95
THEOREMS = {
    "laplace": (Laplace(sensitivity=2.0, epsilon=0.5), {}, 4 * math.log(20)),
    "gaussian": (Gaussian(sensitivity=2.0, sigma=3.0), {}, 3 * Z),
    "discrete laplace": (DiscreteLaplace(sensitivity=2, epsilon=0.002), {}, 1000 * math.log(20)),
    "discrete gaussian": (DiscreteGaussian(sigma=1e4), {}, 1e4 * Z),
    "exponential": (Exponential(sensitivity=2.0, epsilon=0.5), {"size": 1000}, 8 * math.log(20_000)),
    "permute and flip": (PermuteAndFlip(sensitivity=2.0, epsilon=0.5), {"size": 1000}, 8 * math.log(20_000)),
    "noisy max": (NoisyMax(sensitivity=2.0, epsilon=0.5), {"size": 1000}, 2 * 8 * math.log(20_000)),
    "noisy max, monotone": (
        NoisyMax(sensitivity=2.0, epsilon=0.5, monotone=True),
        {"size": 1000},
        8 * math.log(20_000),
    ),
    "top three": (TopK(k=3, sensitivity=2.0, epsilon=0.5), {"size": 1000}, 24 * math.log(60_000)),
    "above threshold": (
        AboveThreshold(threshold=0.0, sensitivity=2.0, epsilon=0.5),
        {"size": 1000},
        2 / FIRST * math.log(40) + 4 / SECOND * math.log(40_000),
    ),
    "sparse vector": (
        SparseVector(threshold=0.0, sensitivity=2.0, epsilon=0.5, max_positives=5),
        {"size": 1000},
        2 / FIRST * math.log(200) + 4 / SECOND * math.log(200_000),
    ),
    "cauchy": (
        SmoothSensitivity(epsilon=0.5, resolution=1e-12),
        {"smooth_bound": 0.1},
        0.4 * math.tan(math.pi * 0.475),
    ),
    "smooth, laplace": (
        SmoothSensitivity(epsilon=0.5, delta=1e-3, resolution=1e-12),
        {"smooth_bound": 0.1},
        0.4 * math.log(20),
    ),
    "median": (SmoothMedian(bounds=(0.0, 1.0), epsilon=0.5, delta=1e-3), {"smooth_bound": 0.1}, 0.4 * math.log(20)),
    "randomized response": (
        RandomizedResponse(epsilon=math.log(3), categories=4),
        {"size": 50},
        math.sqrt(math.log(40) / 100) * (3 + 4 - 1) / (3 - 1),
    ),
    "clustered mean": (
        ClusteredMean(radius=1.0, dimension=2, size=16, epsilon=2.0, delta=1e-6),
        {},
        8 / 13 * gaussian_noise_multiplier(epsilon=1.0, delta=5e-7) * Z,
    ),
}


@pytest.mark.parametrize("name", THEOREMS)
def test_the_stated_error_is_the_theorems(name):
    """Grids and whole numbers add less than a thousandth; no confidence needs no margin,
    and certainty cannot be had.
    """
    mechanism, given, expected = THEOREMS[name]
    assert mechanism.error(0.95, **given) == pytest.approx(expected, rel=1e-3)
    assert mechanism.error(**given) == mechanism.error(0.95, **given)
    assert 0 <= mechanism.error(0.0, **given) < mechanism.error(0.5, **given)
    for bad in (1.0, -1e-9):
        with pytest.raises(ValueError, match="confidence"):
            mechanism.error(bad, **given)
    if "size" in given:
        assert 0 < mechanism.error(0.0, size=1) < math.inf  # what scores are rounded to counts as well
        with pytest.raises(ValueError, match="size is 0"):
            mechanism.error(0.95, size=0)


def passes(test, size):
    """Pr[size + noise > threshold] for discrete Laplace noise, where the size is above the threshold."""
    t, room = test.scale, size - test.threshold
    assert room >= 1
    return 1 - math.exp(-room / t) / (1 + math.exp(-1 / t))


@pytest.mark.parametrize("epsilon", [0.05, 1.0])
@pytest.mark.parametrize("confidence", [0.6, 0.95, 0.999])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_what_is_large_enough_is_shown_with_the_confidence_stated_and_little_less_is_not(
    epsilon, confidence, adjacency
):
    budget = {"epsilon": epsilon, "delta": 1e-6, "adjacency": adjacency}
    for test in (ProposeTestRelease(**budget), StabilityHistogram(**budget)):
        size = math.ceil(test.error(confidence))
        assert passes(test, size) >= confidence
        assert size - 3 <= test.threshold or passes(test, size - 3) < confidence
        assert test.error(0.2) == test.threshold + 1
        with pytest.raises(ValueError, match="confidence"):
            test.error(1.0)
    test, lead = ProposeTestRelease(**budget), math.ceil(StableMode(**budget).error(confidence))
    distance = [lead - 1, lead - 4] if adjacency == "add-remove" else [-(-lead // 2) - 1, -(-(lead - 6) // 2) - 1]
    assert passes(test, distance[0]) >= confidence
    assert distance[1] <= test.threshold or passes(test, distance[1]) < confidence


def test_a_replaced_record_moves_two_counts():
    """One leaves a bin and another opens: twice the noise, and half the delta for a bin of one record."""
    alone, replaced = (StabilityHistogram(epsilon=0.5, delta=0.02, adjacency=how) for how in ("add-remove", "replace"))
    assert 2 <= alone.scale < 2 * (1 + 1e-9)
    assert 4 <= replaced.scale < 4 * (1 + 1e-9)
    for histogram, delta in ((alone, 0.02), (replaced, 0.01)):
        t, room = histogram.scale, histogram.threshold - 1  # what noise must exceed for a bin of one record to be shown
        tail = [math.exp(-(above + 1) / t) / (1 + math.exp(-1 / t)) for above in (room, room - 1)]
        assert tail[0] <= delta < tail[1]
