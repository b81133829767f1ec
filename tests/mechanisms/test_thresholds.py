"""Thresholds that noise alone exceeds with a small probability: certified, least, found at once for every delta."""

from __future__ import annotations

import itertools
from fractions import Fraction

import mpmath
import pytest

from discreet.mechanisms import ProposeTestRelease, StabilityHistogram, StableMode
from discreet.mechanisms.thresholds import least_threshold, noise_tail
from discreet.release import charged
from discreet.tables.keys import KeySelection
from tests.operations.contract import Log, SpyBook

SCALES = [2.0**-10, 0.3, 1.0, 7.5, 1e6, 2.0**41]
TAILS = [0.4, 1e-3, 1e-16, 1e-39, 1e-40, 1e-41, 1e-52, 1e-53, 1e-60, 1e-123, 1e-300, 5e-324]


def exact_tail(scale, above):
    """Pr[N > above] to 400 digits beyond its zeros."""
    with mpmath.workdps(1500):
        t = mpmath.mpf(scale)
        return mpmath.exp(-(above + 1) / t) / (1 + mpmath.exp(-1 / t))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("allowed", TAILS)
def test_a_threshold_is_exceeded_with_the_allowed_probability_and_is_the_least_such(scale, allowed):
    """Least up to one step: where both are closer than certified arithmetic tells."""
    tau = least_threshold(scale, Fraction(allowed))
    with mpmath.workdps(1500):
        assert exact_tail(scale, tau) <= mpmath.mpf(allowed)
        assert tau == 0 or exact_tail(scale, tau - 1) > mpmath.mpf(allowed) * (1 - mpmath.mpf(10) ** -30)


@pytest.mark.parametrize("scale", [0.3, 7.5, 2.0**41])
@pytest.mark.parametrize("zeros", [1, 39, 60, 300, 900, 1100])
def test_the_bound_of_a_tail_is_above_it_by_little(scale, zeros):
    above = int(scale * zeros * 2.302585093)
    with mpmath.workdps(1500):
        bound, exact = noise_tail(scale, above), exact_tail(scale, above)
        assert mpmath.mpf(bound.numerator) / bound.denominator >= exact
        if zeros <= 900:
            assert mpmath.mpf(bound.numerator) / bound.denominator <= exact * (1 + mpmath.mpf(10) ** -30)


@pytest.mark.parametrize("delta", [1e-52, 1e-53, 1e-60, 1e-300, 5e-324])
@pytest.mark.parametrize("kind", [StableMode, StabilityHistogram, KeySelection])
def test_every_delta_has_an_answer(kind, delta):
    """Below 5e-53 the bound of the noise's tail never fell under it: charged, then no end."""
    if kind is KeySelection and delta < 1e-299:
        delta = 1e-299
    log, data = Log(), {"a": 3000} if kind is KeySelection else ["a"] * 3000
    value = charged(kind(epsilon=1.0, delta=delta), data, book=SpyBook(log), rng=1).value
    assert "a" in value
    assert log == ["charge"]


def test_a_threshold_grows_by_the_same_for_every_factor_of_delta():
    found = [ProposeTestRelease(epsilon=1.0, delta=10.0**-k).threshold for k in range(10, 310, 50)]
    assert {b - a for a, b in itertools.pairwise(found)} <= {115, 116}  # 50 ln 10
