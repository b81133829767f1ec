"""The front door: curves, what an attacker can do, calibration, and refusals that name the parameter."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import discreet as dp
from discreet import events as ev
from discreet.accounting import gdp, guarantees
from discreet.accounting.conversion import rdp_to_delta, rdp_to_epsilon
from discreet.accounting.rdp import rdp_curve
from discreet.accounting.sums import pure_epsilon
from discreet.accounting.views import solve_epsilon

STEP = ev.PoissonSampled(rate=0.01, event=ev.Gaussian(noise_multiplier=4.0))


def test_the_trade_off_curve_of_a_gaussian_is_below_and_near_the_exact_one():
    curve = dp.guarantee(ev.Gaussian(noise_multiplier=1.0))
    for fpr in (0.0, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.9, 1.0):
        exact = norm.cdf(norm.isf(fpr) - 1)
        assert curve.tradeoff(fpr) <= exact + 1e-9
        assert curve.tradeoff(fpr) >= exact - 2e-3
        assert curve.tpr_at(fpr) == 1 - curve.tradeoff(fpr)
    assert curve.advantage() == pytest.approx(2 * norm.cdf(0.5) - 1, abs=1e-9)


def test_the_trade_off_curve_of_pure_dp_is_the_two_lines():
    curve = dp.guarantee(ev.PureDP(epsilon=1.0))
    for fpr in (0.01, 0.2, 0.5, 0.9):
        exact = max(0, 1 - math.e * fpr, (1 - fpr) / math.e)
        assert curve.tradeoff(fpr) == pytest.approx(exact, abs=2e-3)
        assert curve.tradeoff(fpr) <= exact + 1e-9


@pytest.mark.parametrize("delta", [1e-9, 4e-6, 1e-5, 1e-3, 0.1])
def test_the_curve_of_approximate_dp_is_its_two_lines(delta):
    """Delta comes to rest at the epsilon that was stated, and there the lines are drawn."""
    curve = dp.guarantee(ev.ApproxDP(epsilon=1.0, delta=delta))
    for fpr in (1e-3, 1e-2, 0.1, 0.5):
        exact = max(0.0, 1 - delta - math.e * fpr, (1 - delta - fpr) / math.e)
        assert curve.tradeoff(fpr) == pytest.approx(exact, abs=1e-6)
        assert curve.tradeoff(fpr) <= exact + 1e-12


def test_a_profile_at_rest_from_the_smallest_epsilon_on_takes_few_questions(monkeypatch):
    """Halving towards zero would end at the smallest float, a thousand questions on."""
    asked, delta = [], guarantees.Tightest.delta
    monkeypatch.setattr(
        guarantees.Tightest, "delta", lambda self, epsilon: asked.append(epsilon) or delta(self, epsilon)
    )
    curve = dp.guarantee(ev.ApproxDP(epsilon=5e-324, delta=2e-6))
    assert curve.tpr_at(0.0) == pytest.approx(2e-6, rel=1e-6)
    assert len(asked) < 200


def test_no_privacy_and_perfect_privacy_are_the_ends():
    assert dp.guarantee(ev.NonPrivate()).tpr_at(0.0) == 1
    assert dp.guarantee(ev.Composed(events=())).tpr_at(0.3) == pytest.approx(0.3)


def test_a_guarantee_draws_itself(tmp_path):
    path = tmp_path / "curve.png"
    dp.guarantee(STEP * 100).plot(str(path))
    assert path.stat().st_size > 5_000


def test_the_picture_is_the_unit_square_with_what_privacy_takes_from_an_attacker_shaded():
    """The shade lies between the curve and guessing, and nowhere else."""
    curve = dp.guarantee(ev.PureDP(epsilon=1.0))
    (ax,) = curve.plot().axes
    for low, high in (ax.get_xlim(), ax.get_ylim()):
        assert -0.02 <= low <= 0 < 1 <= high <= 1.02
    (shade,) = ax.collections
    x, y = shade.get_paths()[0].vertices.T
    assert np.all(y <= 1 - x + 1e-9)
    assert np.all(y >= [curve.tradeoff(float(fpr)) - 1e-9 for fpr in x])
    assert y.max() == 1


@pytest.mark.parametrize(
    "family",
    [
        lambda z: ev.Gaussian(noise_multiplier=z) * 5,
        lambda z: ev.PoissonSampled(rate=0.02, event=ev.Gaussian(noise_multiplier=z)) * 500,
        lambda z: ev.Laplace(noise_multiplier=z) * 3,
    ],
)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_calibrated_noise_is_the_smallest_that_satisfies_the_target(family, epsilon):
    noise = dp.calibrate(family, epsilon=epsilon, delta=1e-6)
    assert dp.epsilon(family(noise), 1e-6) <= epsilon
    assert dp.epsilon(family(noise * (1 - 3e-6)), 1e-6) > epsilon


def test_calibration_finds_the_largest_rate_too():
    def family(rate):
        return ev.PoissonSampled(rate=rate, event=ev.Gaussian(noise_multiplier=1.0)) * 1000

    rate = dp.calibrate(family, epsilon=1.0, delta=1e-5, start=0.01)
    assert dp.epsilon(family(rate), 1e-5) <= 1.0 < dp.epsilon(family(rate * (1 + 3e-6)), 1e-5)


def test_calibration_stops_at_the_end_of_a_family():
    """Every rate meets the target, so the answer is the largest there is, to 1e-6; beyond 1 the family has no event."""
    pure = ev.PureDP(epsilon=1.0)
    rate = dp.calibrate(lambda rate: ev.PoissonSampled(rate=rate, event=pure), epsilon=2.0, delta=0, start=0.3)
    assert 1 - 1e-6 <= rate <= 1


def test_calibration_says_when_no_parameter_will_do():
    with pytest.raises(ValueError, match="No parameter of the family meets the target"):
        dp.calibrate(lambda z: ev.Gaussian(noise_multiplier=1.0), epsilon=0.1, delta=1e-6)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda bad: dp.epsilon(STEP, bad), "delta"),
        (lambda bad: dp.delta(STEP, bad), "epsilon"),
        (lambda bad: dp.guarantee(STEP).tradeoff(bad), "fpr"),
        (lambda bad: dp.calibrate(lambda z: ev.Gaussian(noise_multiplier=z), epsilon=bad, delta=1e-5), "epsilon"),
    ],
)
@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), "x", None, [1], True])
def test_bad_numbers_are_refused_by_name_value_and_range(call, name, bad):
    with pytest.raises(ValueError, match=rf"{name} is .*, but must be a number in"):
        call(bad)


def test_bad_choices_are_refused_with_the_choices():
    with pytest.raises(ValueError, match="accountant is 'magic', but must be one of 'pld'"):
        dp.epsilon(STEP, 1e-5, accountant="magic")
    with pytest.raises(ValueError, match="adjacency is 'swap', but must be one of 'add-remove'"):
        dp.epsilon(STEP, 1e-5, adjacency="swap")
    with pytest.raises(ValueError, match="event is a float, but must be an Event"):
        dp.epsilon(1.0, 1e-5)
    with pytest.raises(ValueError, match="group_size is 0, but must be a whole number of at least 1"):
        dp.epsilon(STEP, 1e-5, group_size=0)


def test_delta_zero_and_one_have_a_meaning():
    assert dp.epsilon(STEP, 0) == math.inf
    assert dp.epsilon(STEP, 1) == 0
    assert dp.epsilon(ev.PureDP(epsilon=0.1) * 10, 0) == pytest.approx(1.0)
    assert dp.epsilon_bounds(ev.PureDP(epsilon=0.5), 0) == (0.5, 0.5)


def test_the_central_limit_theorem_is_only_an_approximation():
    """Below the certified lower bound in this corner: the reason it is never an answer."""
    event = ev.PoissonSampled(rate=0.001, event=ev.Gaussian(noise_multiplier=0.6)) * 10_000
    assert gdp.clt_epsilon(event, 1e-6) < dp.epsilon_bounds(event, 1e-6)[0]
    with pytest.raises(dp.UnsupportedEvent, match="central limit theorem is not a guarantee"):
        dp.epsilon(event, 1e-6, accountant="gdp")


@settings(max_examples=30, deadline=None)
@given(st.floats(0.5, 5), st.floats(1e-4, 0.9), st.integers(2, 40))
def test_integer_orders_agree_with_the_binomial_formula(sigma, rate, order):
    """Mironov, Talwar and Zhang (2019): for integer orders the divergence is a finite sum."""
    k = np.arange(order + 1)
    logs = [
        math.lgamma(order + 1)
        - math.lgamma(i + 1)
        - math.lgamma(order - i + 1)
        + i * math.log(rate)
        + (order - i) * math.log1p(-rate)
        + i * (i - 1) / (2 * sigma**2)
        for i in k
    ]
    exact = np.logaddexp.reduce(logs) / (order - 1)
    curve = rdp_curve(ev.PoissonSampled(rate=rate, event=ev.Gaussian(noise_multiplier=sigma)), [order])[0]
    assert exact * (1 - 1e-9) - 1e-15 <= curve <= exact * (1 + 1e-6) + 1e-12


def test_laplace_divergences_agree_with_the_closed_form():
    for order in (1.5, 2.0, 7.0):
        z, a = 2.0, order
        exact = math.log(a / (2 * a - 1) * math.exp((a - 1) / z) + (a - 1) / (2 * a - 1) * math.exp(-a / z)) / (a - 1)
        assert rdp_curve(ev.Laplace(noise_multiplier=z), [order])[0] == pytest.approx(exact, rel=1e-8)


def test_conversion_is_its_own_inverse_and_tighter_than_the_old_one():
    orders = np.linspace(1.1, 60, 400)
    curve = 0.05 * orders
    epsilon = rdp_to_epsilon(orders, curve, 1e-6)
    assert rdp_to_delta(orders, curve, epsilon) == pytest.approx(1e-6, rel=1e-6)
    assert epsilon < np.min(curve + math.log(1e6) / (orders - 1))


def test_pure_epsilons_add_up():
    assert pure_epsilon(ev.Laplace(noise_multiplier=4) * 3 + ev.Exponential(epsilon=0.25)) == 1.0
    assert pure_epsilon(ev.Gaussian(noise_multiplier=4)) == math.inf
    sampled = ev.PoissonSampled(rate=0.1, event=ev.PureDP(epsilon=1.0))
    assert pure_epsilon(sampled) == pytest.approx(math.log1p(0.1 * math.expm1(1.0)))


def test_a_delta_that_just_covers_the_leaves_own_is_enough():
    assert dp.epsilon(ev.ApproxDP(epsilon=0.5, delta=1e-6), 1e-6) == 0.5
    assert dp.epsilon(ev.ApproxDP(epsilon=0.5, delta=0.25) * 2, 0.5) <= 1.0
    assert dp.epsilon(ev.ApproxDP(epsilon=0.5, delta=1e-6), 0.9e-6) == math.inf


@pytest.mark.parametrize("delta", [1e-6, 1.0000001e-6, 1.0001e-6, 2e-6, 1e-3])
def test_leaves_with_a_delta_of_their_own_never_cost_more_than_the_sums(delta):
    """Just above the leaves' own delta the numerical account is a grid's width too high; sums are not."""
    event = ev.ApproxDP(epsilon=0.5, delta=1e-6) + ev.Laplace(noise_multiplier=2.0)
    low, high = dp.epsilon_bounds(event, delta)
    assert low <= high == dp.epsilon(event, delta) <= dp.epsilon(event, delta, accountant="basic") == 1.0
    assert 1e-6 * (1 - 1e-12) <= dp.delta(event, 1.0) <= 1e-6 * (1 + 1e-7)
    parallel = (ev.ApproxDP(epsilon=0.5, delta=1e-6) | ev.Laplace(noise_multiplier=2.0)) * 5
    assert dp.epsilon(parallel, 1e-5) <= 2.5


def test_curves_refuse_what_has_a_chance_of_overflow():
    event = ev.TruncatedPoissonSampled(
        rate=0.1, max_batch_size=20, dataset_size=100, event=ev.Gaussian(noise_multiplier=1)
    )
    with pytest.raises(dp.UnsupportedEvent, match="overflow"):
        rdp_curve(event, [2.0])


@pytest.mark.parametrize(("own", "delta"), [(3.81e-10, 3.01e-7), (1e-13, 1e-11), (1e-16, 1e-14)])
def test_optimal_composition_is_not_low_where_the_deltas_are_tiny(own, delta):
    """The exact delta at the epsilon it gives, in 60 digits, is covered: 1 - (1 - own)^k must not be rounded away."""
    count, each = 18, 0.0953
    found = dp.epsilon(ev.ApproxDP(epsilon=each, delta=own) * count, delta, accountant="optimal")
    with mpmath.workdps(60):
        step, at = mpmath.mpf(each), mpmath.mpf(found)
        gaps = [mpmath.exp((count - i) * step) - mpmath.exp(at + i * step) for i in range(count + 1)]
        finite = (
            sum(mpmath.binomial(count, i) * max(gap, 0) for i, gap in enumerate(gaps)) / (1 + mpmath.exp(step)) ** count
        )
        exact = 1 - (1 - mpmath.mpf(own)) ** count * (1 - finite)
        assert exact <= mpmath.mpf(delta)


def test_optimal_composition_is_the_binomial_sum():
    """Two randomized responses by hand."""
    e = 0.7
    p = 1 / (1 + math.exp(-e))
    for epsilon in (0.1, 0.6, 1.1):
        delta = p * p * -math.expm1(epsilon - 2 * e)
        assert dp.delta(ev.PureDP(epsilon=e) * 2, epsilon, accountant="optimal") == pytest.approx(delta, rel=1e-6)


def test_advanced_composition_is_the_formula_of_its_theorem():
    """Kairouz, Oh and Viswanath (2015), Theorem 3.5, at delta = 1e-6 for a thousand answers of epsilon 0.1."""
    mean = 1000 * 0.1 * math.expm1(0.1) / (math.exp(0.1) + 1)
    expected = mean + math.sqrt(2 * math.log(1e6) * 1000 * 0.1**2)
    assert dp.epsilon(ev.PureDP(epsilon=0.1) * 1000, 1e-6, accountant="advanced") == pytest.approx(expected, rel=1e-9)


def test_approximate_dp_without_a_delta_is_pure_to_the_moments_accountant():
    same = [rdp_curve(event, [2.0, 30.0]) for event in (ev.ApproxDP(epsilon=0.7, delta=0.0), ev.PureDP(epsilon=0.7))]
    assert same[0] == pytest.approx(same[1])
    with pytest.raises(dp.errors.UnsupportedEvent, match="its delta allows any divergence"):
        rdp_curve(ev.ApproxDP(epsilon=0.7, delta=1e-9), [2.0])


def test_a_group_loses_no_more_than_its_members_one_after_the_other():
    """Three records of a sample of pure events: beyond three times the largest loss of one there is nothing left."""
    step = ev.PoissonSampled(rate=0.5, event=ev.PureDP(epsilon=1.0))
    most = 3 * math.log1p(0.5 * math.expm1(1.0))
    assert dp.delta(step, most * 1.01, group_size=3) == 0
    assert dp.epsilon(step, 1e-12, group_size=3) <= most * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1.0, 1e6])
def test_a_solved_epsilon_keeps_its_digits_on_any_scale(scale):
    """Where delta halves every ``scale``, it is 1/8 at twice that; no profile is asked for an epsilon below zero."""

    def profile(epsilon):
        assert epsilon >= 0
        return 0.5 * 2 ** -(epsilon / scale)

    assert solve_epsilon(profile, 0.125) == pytest.approx(2 * scale, rel=1e-10)


@pytest.mark.parametrize("start", [1e-9, 1.0, 1e9])
def test_a_calibration_that_starts_where_nothing_changes_looks_further(start: float) -> None:
    """At delta one half epsilon is zero all around a large noise, and capped all around a tiny one."""
    found = dp.calibrate(lambda z: ev.Gaussian(noise_multiplier=z), epsilon=1.0, delta=0.5, start=start)
    assert found == pytest.approx(0.507065, rel=1e-5)


def test_calibration_asks_for_no_parameter_twice():
    asked: list[float] = []

    def family(noise_multiplier: float) -> ev.Event:
        asked.append(noise_multiplier)
        return ev.Gaussian(noise_multiplier=noise_multiplier)

    dp.calibrate(family, epsilon=1.0, delta=1e-5)
    assert len(asked) == len(set(asked))
