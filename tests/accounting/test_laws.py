"""Laws that every account obeys, for every leaf it can price."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet import events as ev
from discreet.accounting import ACCOUNTANTS
from tests import strategies

WIDTH = 2e-3  # relative: wider than any certified interval met here

LEAVES = {
    "laplace": lambda x: ev.Laplace(noise_multiplier=3 * x),
    "gaussian": lambda x: ev.Gaussian(noise_multiplier=4 * x),
    "discrete laplace": lambda x: ev.DiscreteLaplace(scale=3 * x),
    "exponential": lambda x: ev.Exponential(epsilon=0.5 / x),
    "pure": lambda x: ev.PureDP(epsilon=0.4 / x),
    "approximate": lambda x: ev.ApproxDP(epsilon=0.4 / x, delta=1e-9),
    "zcdp": lambda x: ev.ZCDP(rho=0.05 / x),
    "rdp": lambda x: ev.RDP(orders=(2.0, 8.0, 32.0), epsilons=(0.1 / x, 0.3 / x, 1.0 / x)),
    "gdp": lambda x: ev.GDP(mu=0.3 / x),
    "sampled gaussian": lambda x: ev.PoissonSampled(rate=0.1, event=ev.Gaussian(noise_multiplier=1.2 * x)),
    "sampled laplace": lambda x: ev.PoissonSampled(rate=0.1, event=ev.Laplace(noise_multiplier=1.0 * x)),
    "parallel": lambda x: ev.Laplace(noise_multiplier=4 * x) | ev.Gaussian(noise_multiplier=5 * x),
}
PRICED = [(name, view) for name in LEAVES for view in (None, *ACCOUNTANTS)]


def price(event, delta, view):
    try:
        return dp.epsilon(event, delta, accountant=view)
    except dp.UnsupportedEvent:
        return None


def no_more(smaller, larger):
    return smaller <= larger * (1 + WIDTH) + 1e-9


@pytest.mark.parametrize(("name", "view"), PRICED)
def test_more_of_anything_that_loses_privacy_never_costs_less(name, view):
    leaf = LEAVES[name]
    cost = price(leaf(1.0) * 6, 1e-5, view)
    if cost is None:
        with pytest.raises(dp.UnsupportedEvent, match=rf"The {view} accountant cannot price"):
            dp.epsilon(leaf(1.0) * 6, 1e-5, accountant=view)
        return
    assert cost >= 0
    assert no_more(cost, price(leaf(1.0) * 9, 1e-5, view)), "more repetitions"
    assert no_more(cost, price(leaf(1.0) * 6, 1e-7, view)), "smaller delta"
    assert no_more(cost, price(leaf(0.7) * 6, 1e-5, view)), "less noise"
    assert no_more(cost, price(leaf(1.0) * 6 + ev.PureDP(epsilon=0.1), 1e-5, view) or math.inf), "one thing more"


@pytest.mark.parametrize(("name", "view"), PRICED)
def test_repeating_equals_listing_and_order_never_matters(name, view):
    leaf, other = LEAVES[name](1.0), ev.PureDP(epsilon=0.2)
    repeated = price(leaf * 4 + other, 1e-5, view)
    assert repeated == price(other + leaf + leaf * 2 + ev.Composed(events=()) + leaf, 1e-5, view)
    assert price(ev.Parallel(events=(leaf, leaf)), 1e-5, view) == price(leaf, 1e-5, view)


@pytest.mark.parametrize("view", [None, "pld", "rdp", "basic"])
def test_a_higher_rate_never_costs_less(view):
    costs = [
        price(ev.PoissonSampled(rate=q, event=ev.Gaussian(noise_multiplier=1.0)) * 20, 1e-5, view)
        for q in (0.0, 1e-4, 0.01, 0.1, 0.5, 0.9, 0.999, 1.0)
    ]
    assert all(no_more(a, b) for a, b in pairwise(costs))
    assert costs[0] == 0
    assert costs[-1] == pytest.approx(price(ev.Gaussian(noise_multiplier=1.0) * 20, 1e-5, view))


@pytest.mark.parametrize("name", LEAVES)
def test_epsilon_and_delta_are_inverse(name):
    event = LEAVES[name](1.0) * 5
    epsilon = dp.epsilon(event, 1e-4)
    assert dp.delta(event, epsilon) <= 1e-4 * (1 + 1e-6)
    assert dp.delta(event, epsilon * 0.98) >= 1e-4 * (1 - 1e-6)


@pytest.mark.parametrize("name", LEAVES)
def test_the_tightest_account_is_no_worse_than_any_other(name):
    event = LEAVES[name](1.0) * 7
    best = dp.epsilon(event, 1e-6)
    for view in ACCOUNTANTS:
        other = price(event, 1e-6, view)
        assert other is None or no_more(best, other)


@settings(max_examples=60, deadline=None)
@given(strategies.events(), st.sampled_from([1e-9, 1e-5, 0.1]), st.sampled_from(["add-remove", "replace", "zero-out"]))
def test_any_event_has_a_price_or_a_reason(event, delta, adjacency):
    """However absurd the parameters: a number, or a refusal; never a NaN, never a warning."""
    try:
        cost = dp.epsilon(event, delta, adjacency=adjacency)
    except dp.UnsupportedEvent:
        return
    assert cost >= 0


def test_nothing_costs_nothing_and_no_privacy_costs_everything():
    nothing = ev.Composed(events=())
    assert dp.epsilon(nothing, 1e-5) == 0
    assert dp.delta(nothing, 0.0) == 0
    bare = ev.NonPrivate()
    for view in (None, *ACCOUNTANTS):
        assert dp.epsilon(bare, 1e-5, accountant=view) == math.inf
    assert dp.delta(bare, 100.0) == 1
