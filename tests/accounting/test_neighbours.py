"""Adjacency and groups: what converts, what is refused, and that the reason is said."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

import discreet as dp
from discreet import events as ev
from discreet.accounting.binomial import binomial_tail
from discreet.accounting.neighbours import for_group, resolve
from discreet.accounting.outward import FLOOR
from discreet.adjacency import Adjacency

REPLACE = "replace"


@pytest.mark.parametrize(
    ("leaf", "doubled"),
    [
        (ev.Gaussian(noise_multiplier=2), ev.Gaussian(noise_multiplier=1)),
        (ev.Laplace(noise_multiplier=2), ev.Laplace(noise_multiplier=1)),
        (ev.DiscreteLaplace(scale=5, sensitivity=1), ev.DiscreteLaplace(scale=5, sensitivity=2)),
        (ev.DiscreteGaussian(sigma=5, sensitivity=1), ev.DiscreteGaussian(sigma=5, sensitivity=2)),
        (ev.Exponential(epsilon=0.5), ev.Exponential(epsilon=1.0)),
        (ev.PureDP(epsilon=0.5), ev.PureDP(epsilon=1.0)),
        (ev.ZCDP(rho=0.1), ev.ZCDP(rho=0.4)),
        (ev.GDP(mu=0.5), ev.GDP(mu=1.0)),
    ],
)
def test_replacing_is_two_changes_of_a_plain_leaf(leaf, doubled):
    assert dp.epsilon(leaf * 3, 1e-5, adjacency=REPLACE) == dp.epsilon(doubled * 3, 1e-5)


def test_approximate_dp_pays_for_the_second_change():
    two = for_group(ev.ApproxDP(epsilon=0.5, delta=1e-6), 2)
    assert two.epsilon == 1.0
    assert two.delta == pytest.approx((1 + math.exp(0.5)) * 1e-6)


def test_what_was_proved_under_replace_never_becomes_add_remove():
    for event in (
        ev.Gaussian(noise_multiplier=1, adjacency=REPLACE),
        ev.RandomizedResponse(epsilon=1.0),
        ev.FixedSizeSampled(rate=0.1, event=ev.Gaussian(noise_multiplier=1)),
        ev.Shuffled(event=ev.Gaussian(noise_multiplier=1)),
    ):
        with pytest.raises(dp.UnsupportedAdjacency, match=r"has no guarantee under 'add-remove': .+\."):
            dp.epsilon(event, 1e-5)
        assert dp.epsilon(event, 1e-5, adjacency=REPLACE) > 0


def test_inside_a_poisson_sample_the_true_replace_pair_is_used():
    step = ev.PoissonSampled(rate=0.01, event=ev.Gaussian(noise_multiplier=4)) * 10_000
    low, high = dp.epsilon_bounds(step, 1e-5, adjacency=REPLACE)
    assert dp.epsilon(step, 1e-5) < low <= high
    doubled = ev.PoissonSampled(rate=0.01, event=ev.Gaussian(noise_multiplier=2)) * 10_000
    assert high < dp.epsilon(doubled, 1e-5), "doubling is unproved and loose"
    with pytest.raises(dp.UnsupportedAdjacency, match="Gaussian noise only"):
        dp.epsilon(ev.PoissonSampled(rate=0.1, event=ev.Laplace(noise_multiplier=1)), 1e-5, adjacency=REPLACE)


def test_a_poisson_sample_refuses_what_was_proved_under_replace():
    with pytest.raises(ValueError, match="event contains Gaussian under 'replace'"):
        ev.PoissonSampled(rate=0.1, event=ev.Gaussian(noise_multiplier=1, adjacency=REPLACE))


def test_fixed_size_and_poisson_are_not_swapped():
    inner = ev.Gaussian(noise_multiplier=2)
    fixed = dp.epsilon(ev.FixedSizeSampled(rate=0.01, event=inner) * 1000, 1e-5, adjacency=REPLACE)
    poisson = dp.epsilon(ev.PoissonSampled(rate=0.01, event=inner) * 1000, 1e-5)
    assert fixed > 1.5 * poisson


def test_releasing_the_sample_itself_is_zero_rate():
    sample = ev.FixedSizeSampled(rate=0.01, event=ev.ApproxDP(epsilon=0.0, delta=1.0, adjacency=REPLACE))
    assert dp.delta(sample, 0.0, adjacency=REPLACE) == pytest.approx(0.01)


def test_parallel_parts_cost_the_worst_part():
    parts = ev.Laplace(noise_multiplier=2) | ev.Laplace(noise_multiplier=4)
    assert dp.epsilon(parts, 0) == 0.5
    gaussians = ev.Gaussian(noise_multiplier=2) | ev.Gaussian(noise_multiplier=4)
    assert dp.epsilon(gaussians * 3, 1e-6) == pytest.approx(dp.epsilon(ev.Gaussian(noise_multiplier=2) * 3, 1e-6))


def test_under_replace_a_record_may_leave_one_part_and_enter_another():
    parts = ev.PureDP(epsilon=0.5) | ev.PureDP(epsilon=0.3)
    assert dp.epsilon(parts, 0, adjacency=REPLACE) == pytest.approx(1.0), "replaced inside the dearer part"
    mixed = ev.PureDP(epsilon=0.5, adjacency=REPLACE) | ev.PureDP(epsilon=0.3)
    with pytest.raises(dp.UnsupportedAdjacency, match="leave one part and enter another"):
        dp.epsilon(mixed, 0, adjacency=REPLACE)


def test_equal_parts_are_still_parts():
    part = ev.Gaussian(noise_multiplier=1)
    assert dp.epsilon(part | part, 1e-5) == dp.epsilon(part, 1e-5)
    assert dp.epsilon(part | part, 1e-5, adjacency=REPLACE) == pytest.approx(dp.epsilon(part, 1e-5, adjacency=REPLACE))
    local = ev.Gaussian(noise_multiplier=1, adjacency=REPLACE)
    with pytest.raises(dp.UnsupportedAdjacency, match="leave one part and enter another"):
        dp.epsilon(local | local, 1e-5, adjacency=REPLACE)


def test_a_shuffled_pass_costs_one_event_and_balls_in_bins_too_where_a_record_is_replaced():
    inner = ev.Gaussian(noise_multiplier=2)
    shuffled = dp.epsilon(ev.Shuffled(event=inner) * 5, 1e-5, adjacency=REPLACE)
    assert shuffled == dp.epsilon(inner * 5, 1e-5, adjacency=REPLACE)
    bins = ev.BallsInBins(bins=10, event=inner) * 5
    assert dp.epsilon(bins, 1e-5, adjacency=REPLACE) == shuffled
    assert dp.epsilon(bins, 1e-5) < 0.6 * dp.epsilon(inner * 5, 1e-5)


def test_truncation_charges_the_probability_of_an_overflow():
    inner = ev.Gaussian(noise_multiplier=1)
    ideal = dp.epsilon(ev.PoissonSampled(rate=0.01, event=inner) * 100, 1e-6)

    def cut(size):
        step = ev.TruncatedPoissonSampled(rate=0.01, max_batch_size=size, dataset_size=10_000, event=inner)
        return dp.epsilon(step * 100, 1e-6)

    assert ideal < cut(190) < cut(160)
    assert cut(400) == pytest.approx(ideal, rel=1e-6)
    assert cut(100) == math.inf


@pytest.mark.parametrize(
    ("records", "rate", "size", "overflow"),
    [
        (39447179382766, 0.26654049621636317, 10514312572184, 1.62470337333198e-51),
        (338338147345693, 0.3777262310810437, 127799243343104, 9.56292505791041e-9),
        (81574376867759, 0.07984937589817798, 6513675325092, 2.85408881112613e-7),
        (8512645128591, 0.6902892563544997, 5876222092309, 1.62046861221057e-145),
    ],
)
def test_the_probability_of_an_overflow_is_not_below_the_truth_for_many_records(records, rate, size, overflow):
    """By an incomplete beta function with 50 digits; scipy's tail is wrong in the ninth digit here."""
    step = ev.TruncatedPoissonSampled(
        rate=rate, max_batch_size=size, dataset_size=records, event=ev.Gaussian(noise_multiplier=1)
    )
    assert overflow <= resolve(step, Adjacency.ADD_REMOVE).slack <= overflow * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_the_chance_of_a_large_count_is_that_of_the_sum_of_its_terms(seed):
    """Against sums of exact fractions: above them, within a millionth; one where the count is no more than usual."""
    rng = random.Random(seed)
    trials = rng.choice((1, 2, 5, 30, 200))
    rate = rng.choice((rng.random(), 10.0 ** rng.uniform(-12, 0), 1 - 2.0**-40))
    least = min(trials, int(trials * rate) + 1 + int(rng.expovariate(0.3)))
    p = Fraction(rate)
    truth = sum(math.comb(trials, j) * p**j * (1 - p) ** (trials - j) for j in range(least, trials + 1))
    floor = Fraction(FLOOR)
    assert truth <= Fraction(binomial_tail(least, trials, rate)) <= truth * Fraction(1 + 1e-6) + 2 * floor
    assert binomial_tail(int(p * trials), trials, rate) == 1.0
    assert binomial_tail(trials + 1, trials, rate) == 0.0


def test_groups_of_records():
    leaf = ev.Laplace(noise_multiplier=2)
    assert dp.epsilon(leaf, 0, group_size=3) == pytest.approx(1.5)
    assert dp.epsilon(ev.Gaussian(noise_multiplier=3), 1e-5, group_size=3) == pytest.approx(4.3772, abs=1e-4)
    step = ev.PoissonSampled(rate=0.01, event=ev.Gaussian(noise_multiplier=2)) * 100
    one, three = dp.epsilon(step, 1e-5), dp.epsilon(step, 1e-5, group_size=3)
    assert 3 * one < three < 6 * one


def test_rdp_curves_double_by_the_weak_triangle_inequality():
    curve = ev.RDP(orders=(2.0, 4.0, 8.0), epsilons=(0.2, 0.4, 0.8))
    two = for_group(curve, 2)
    assert two.orders == (2.0, 4.0)
    assert two.epsilons == (pytest.approx(1.5 * 0.4 + 0.4), pytest.approx(3.5 / 3 * 0.8 + 0.8))
