"""The Gaussian's exact profile, against arithmetic with 400 digits."""

from __future__ import annotations

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.accounting.gaussian import gaussian_delta, gaussian_epsilon, gaussian_noise_multiplier

mpmath.mp.dps = 400


def exact_delta(noise_multiplier: float, epsilon: float) -> mpmath.mpf:
    mu, e = 1 / mpmath.mpf(noise_multiplier), mpmath.mpf(epsilon)
    return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)


log_epsilons = st.floats(-6, 2)


@settings(max_examples=60)
@given(log_epsilons, st.floats(-300, -2))
def test_calibrated_noise_meets_its_target_and_wastes_nothing(log_epsilon, log_delta):
    epsilon, delta = 10**log_epsilon, 10**log_delta
    reached = exact_delta(gaussian_noise_multiplier(epsilon=epsilon, delta=delta), epsilon)
    assert delta * (1 - mpmath.mpf("1e-9")) <= reached <= delta


@settings(max_examples=60)
@given(log_epsilons, st.floats(-1.5, 8))
def test_delta_is_an_upper_bound_to_ten_digits(log_epsilon, log_noise):
    epsilon, noise = 10**log_epsilon, 10**log_noise
    exact = exact_delta(noise, epsilon)
    if exact > mpmath.mpf("1e-300"):
        assert exact <= gaussian_delta(noise_multiplier=noise, epsilon=epsilon) <= exact * (1 + mpmath.mpf("1e-10"))


@settings(max_examples=40)
@given(st.floats(-1, 3), st.floats(-100, -1))
def test_epsilon_inverts_delta(log_noise, log_delta):
    noise, delta = 10**log_noise, 10**log_delta
    epsilon = gaussian_epsilon(noise_multiplier=noise, delta=delta)
    assert exact_delta(noise, epsilon) <= delta


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), "1", None, True])
def test_bad_noise_is_refused_by_name(bad):
    with pytest.raises(ValueError, match=r"noise_multiplier is .* must be a number in"):
        gaussian_delta(noise_multiplier=bad, epsilon=1.0)


def test_extremes_have_a_meaning():
    assert gaussian_epsilon(noise_multiplier=1e-320, delta=1e-5) == float("inf")
    assert gaussian_epsilon(noise_multiplier=1e300, delta=1e-5) == 0.0
    assert gaussian_delta(noise_multiplier=1e-320, epsilon=1.0) == 1.0
    assert gaussian_epsilon(noise_multiplier=1.0, delta=0.0) == float("inf")
