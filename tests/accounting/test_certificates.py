"""The error terms of the contour engine are bounds, not estimates: each is checked against a direct computation."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from discreet.accounting.gaussian import profile_delta
from discreet.accounting.pld.contour import Contour
from discreet.accounting.pld.decay import far_envelope, near_envelope
from discreet.accounting.pld.mixtures import Mixtures
from discreet.errors import NotCertified

KINDS = st.sampled_from(["remove", "add", "replace"])
LOG_RATES = st.floats(-4, -0.05)
SIGMAS = st.floats(0.4, 6)
TILTS = st.floats(0.2, 12)


def mixture(kind, log_rate, sigma, count=1.0):
    return Mixtures(kind, np.array([10**log_rate]), np.array([sigma]), np.array([count]))


def exact_transform(kind, rate, sigma, z):
    """E_P[exp(zL)] by adaptive quadrature with 30 digits."""
    q, s = mpmath.mpf(rate), mpmath.mpf(sigma)

    def a(u):
        return mpmath.log(1 - q + q * mpmath.exp(u / s - 1 / (2 * s**2)))

    def integrand(u):
        power = {
            "remove": lambda: (z + 1) * a(u),
            "add": lambda: -z * a(u),
            "replace": lambda: (z + 1) * a(u) - z * a(-u),
        }
        return mpmath.npdf(u) * mpmath.exp(power[kind]())

    edge = 14 + 14 / sigma
    return mpmath.quad(integrand, mpmath.linspace(-edge, edge + float(mpmath.re(z)) / sigma, 24), maxdegree=8)


@pytest.mark.parametrize("kind", ["remove", "add", "replace"])
@pytest.mark.parametrize(
    ("rate", "sigma", "c", "t"), [(0.01, 1.0, 3.0, 0.0), (0.2, 0.6, 1.5, 4.0), (0.001, 2.0, 8.0, 40.0)]
)
def test_the_quadrature_of_the_transform_is_within_its_bound(kind, rate, sigma, c, t):
    with mpmath.workdps(30):
        exact = exact_transform(kind, rate, sigma, mpmath.mpc(c, t))
    rule = mixture(kind, np.log10(rate), sigma).rule(c, max(t, 1e-9), 36.0)
    psi = rule.characteristic(max(t, 1e-9), 2)[0, 1 if t else 0]
    ours = mpmath.mpc(complex(1 + psi)) * mpmath.exp(mpmath.mpc(float(rule.log_m[0]), float(rule.mean[0]) * t))
    slack = float(rule.error(np.array([t]))[0, 0] + rule.log_m_rounding[0])
    assert abs(ours - exact) <= 2 * slack * mpmath.exp(float(rule.log_m[0]))
    assert slack < 1e-12


@settings(max_examples=25, deadline=None)
@given(KINDS, LOG_RATES, SIGMAS, TILTS, st.integers(0, 2**31))
def test_envelopes_lie_above_the_characteristic_function(kind, log_rate, sigma, c, seed):
    one = mixture(kind, max(log_rate, -3), sigma, count=1e3)  # many repetitions: everything in double precision
    scale = 1 / np.sqrt(one.rule(c, 0.0, 20.0).variance[0])
    grid = scale * 0.05 * 1.15 ** np.arange(26)
    between = np.sort(np.random.default_rng(seed).uniform(grid[0], grid[-1], 100))
    sharp = one.rule(c, float(grid[-1]), 30.0)
    actual = sharp.modulus(between)[0][0]
    near = near_envelope(sharp, grid)[0]
    assert np.all(actual <= near[np.searchsorted(grid, between) - 1] + 1e-12)
    far = far_envelope(one.rule(c, 0.0, 30.0).refine(0.05), between)[0]
    assert np.all(actual <= far + 1e-12)
    assert np.all(np.diff(far) <= 0)


def brute_force_delta(rate, sigma, count, epsilon):
    """delta of at most three sampled Gaussians, by a lattice in x fine enough for six digits."""
    x = np.linspace(-9 * sigma, 9 * sigma + 1, 1201)
    normal = np.exp(-(x**2) / (2 * sigma**2))
    normal /= normal.sum()
    ratio = 1 - rate + rate * np.exp((2 * x - 1) / (2 * sigma**2))
    p, loss = normal * ratio, np.log(ratio)
    masses, losses = np.ones(1), np.zeros(1)
    for _ in range(count):
        masses, losses = np.multiply.outer(masses, p).ravel(), np.add.outer(losses, loss).ravel()
    above = losses > epsilon
    return float(masses[above] @ -np.expm1(epsilon - losses[above]))


@pytest.mark.parametrize(("rate", "sigma", "epsilon"), [(0.1, 0.8, 0.3), (0.5, 1.5, 0.2), (0.02, 0.5, 0.1)])
def test_two_steps_agree_with_a_double_sum(rate, sigma, epsilon):
    from discreet.accounting.pld.grid import LossGrid
    from discreet.accounting.pld.pairs import GaussianShift
    from discreet.accounting.pld.sampling import Sampled

    low, high = LossGrid(((Sampled(rate, GaussianShift(1 / sigma)), 2),)).delta_bounds(epsilon)
    expected = brute_force_delta(rate, sigma, 2, epsilon)
    assert low * (1 - 1e-4) <= expected <= high * (1 + 1e-4)
    assert high <= low * 1.01


@settings(max_examples=20, deadline=None)
@given(LOG_RATES, SIGMAS, st.integers(300, 5000), st.floats(-9, -2))
def test_the_line_does_not_matter(log_rate, sigma, count, log_delta):
    """Any contour gives a valid interval, so the intervals of two contours must meet."""
    whole = Contour(mixture("remove", log_rate, sigma, float(count)), 0.0, (), 0.0)
    delta = 10**log_delta
    try:
        line = whole._line(log_delta=float(np.log(delta)))
        epsilon = line.solve(delta)
        other = type(line)(whole, line.c * 0.8, epsilon, line.log_delta)
        first, second = line.delta(epsilon), other.delta(epsilon)
    except NotCertified:  # too few repetitions to decay: the grid's business
        reject()
    assert max(first[0], second[0]) <= min(first[1], second[1])


def gaussian_line(mu=1.0, epsilon=1.0):
    """A line of a plain Gaussian, whose delta is known in closed form, with nothing computed yet."""
    return Contour(None, mu, (), 0.0)._line(epsilon=epsilon)


@pytest.mark.parametrize("period", [2.0, 4.0, 8.0, 16.0])
def test_however_short_the_period_its_aliases_are_paid_for(period):
    """A period of 2 doubles the sum; the bounds know by how much at most. A long one costs next to nothing."""
    line, exact = gaussian_line(), profile_delta(1.0, 1.0)
    line.__dict__["period"] = period
    low, high = line.delta(1.0)
    assert low <= exact <= high
    assert period > 2 or high > 1.5 * exact  # there was something to pay for


@pytest.mark.parametrize("height", [1.0, 2.0, 4.0])
def test_however_early_the_sum_stops_what_is_left_out_is_paid_for(height):
    """Of a Gaussian the modulus beyond a height is known: exp(-t²/2) over each interval, whatever the first of them."""
    line, exact = gaussian_line(), profile_delta(1.0, 1.0)
    grid = np.geomspace(height, 40.0, 60)
    line._stop.__dict__["_cut"] = grid, -(grid**2) / 2
    value, wrong = line._sum(1.0)
    low, high = line.delta(1.0)
    assert low <= exact <= high
    nodes = line.step * np.arange(len(line._nodes[0]), 4000)
    size = math.exp(float(line._nodes[1].real[0]) - line.c)
    z = line.c + 1j * nodes
    assert wrong >= size * float((np.exp(-(nodes**2) / 2) / abs(z * (z + 1))).sum()) * line.step / math.pi > 0
    assert height < 4 or high <= 1.1 * value


def test_the_sum_of_a_gaussian_stops_where_a_gaussian_is_small():
    """exp(-(μt)²/2) is below 1e-14 at μt = 8: whoever looks beyond 12 has the wrong decay."""
    for mu in (0.1, 1.0, 5.0):
        height, bound = gaussian_line(mu, 0.5 * mu)._stop._far
        assert 5 < mu * height < 12
        assert bound == pytest.approx(-((mu * height) ** 2) / 2)
