"""Random event trees against an oracle: a small part of ``python -m searches event_trees``,
and that the oracle has power.
"""

from __future__ import annotations

import random

import mpmath
import pytest

import discreet as dp
from discreet import events as ev
from discreet.accounting.leaves import samplers as leaf_samplers
from discreet.adjacency import Adjacency
from searches._truth import Draw, law, lower_delta, sides, swarm_delta
from searches.event_trees import Checker, Violation, check

FEW = 120


@pytest.mark.parametrize("block", range(6))
def test_no_account_calibration_or_filter_is_below_what_is_attained(block):
    """Each seed is a tree, an adjacency and some questions; what is not answered is refused by a library error."""
    asked = sum((check(seed) for seed in range(block * FEW // 6, (block + 1) * FEW // 6)), start=check(10_000 + block))
    assert asked["epsilon"] > FEW / 6


def truth(event, epsilon, wanted=Adjacency.ADD_REMOVE):
    with mpmath.workdps(60):
        return float(lower_delta(law(event, Draw(random.Random(1), wanted)), epsilon, sides(wanted)))


@pytest.mark.parametrize(
    ("event", "epsilon", "wanted"),
    [
        (ev.PureDP(epsilon=1.0), 0.3, "add-remove"),
        (ev.PureDP(epsilon=1.0) * 3, 1.5, "add-remove"),
        (ev.ApproxDP(epsilon=1.0, delta=0.1), 0.5, "add-remove"),
        (ev.PoissonSampled(rate=0.7, event=ev.PureDP(epsilon=1.0)), 0.3, "add-remove"),
        (ev.PoissonSampled(rate=0.7, event=ev.PureDP(epsilon=1.0)) * 2, 0.3, "add-remove"),
        (ev.RandomizedResponse(epsilon=1.0, categories=5), 0.2, "replace"),
        (ev.FixedSizeSampled(rate=0.4, event=ev.PureDP(epsilon=1.0, adjacency="replace")), 0.1, "replace"),
    ],
)
def test_the_oracle_attains_what_is_known_to_be_tight(event, epsilon, wanted):
    """Where a mechanism of two answers is the worst there is, the enumeration meets the account: it is not vacuous."""
    attained = truth(event, epsilon, Adjacency(wanted))
    assert attained <= dp.delta(event, epsilon, adjacency=wanted) * (1 + 1e-9)
    assert attained >= dp.delta(event, epsilon, adjacency=wanted) * (1 - 1e-3)


def test_the_oracle_attains_much_of_what_a_cut_gaussian_leaks():
    event = ev.Gaussian(noise_multiplier=1.0)
    assert truth(event, 1.0) > 0.8 * dp.delta(event, 1.0)
    with mpmath.workdps(100):
        swarm = law(ev.PureDP(epsilon=1e-17), Draw(random.Random(1), Adjacency.ADD_REMOVE))
        attained = swarm_delta(swarm, 10**34, 1.0, sides(Adjacency.ADD_REMOVE))
    assert attained > 0.99 * dp.delta(ev.GDP(mu=1.0), 1.0)


def test_the_oracle_tells_the_number_of_records_where_that_is_public():
    """A null record in the sample is not absence: more is attained than log(1 + q(e - 1)), which was the price."""
    event = ev.PoissonSampled(rate=0.01, event=ev.PureDP(epsilon=1.0, adjacency="zero-out"))
    with mpmath.workdps(60):
        laws = [law(event, Draw(random.Random(seed), Adjacency.ZERO_OUT)) for seed in range(4)]
        attained = max(lower_delta(one, 0.9, sides(Adjacency.ZERO_OUT)) for one in laws)
    assert attained > 1e-4
    with pytest.raises(dp.UnsupportedEvent, match="absence"):
        dp.delta(event, 0.9, adjacency="zero-out")


@pytest.mark.parametrize("seed", range(3))
def test_a_price_that_was_wrong_is_found(seed, monkeypatch):
    """Power: the amplification that once refunded is put back, and the same checks tell."""
    monkeypatch.setattr(leaf_samplers, "_amplified_epsilon", lambda epsilon, rate: max(0.0, epsilon * rate * 0.5))
    one = Checker(seed)
    one.wanted = one.grower.wanted = one.grower.own = Adjacency.ADD_REMOVE
    one.count, one.tree = 1, ev.PoissonSampled(rate=0.5, event=ev.PureDP(epsilon=1.0))
    one.event = one.tree
    one.truth = type(one.truth)(one.tree, Draw(one.rng, one.wanted), 1)
    with pytest.raises(Violation, match="is attained"):
        one.account("basic", delta=0.0)
