"""Edges at which one changed operator or constant would go unnoticed elsewhere (``make mutants``)."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from fractions import Fraction

import pytest

from discreet import Adjacency, events
from discreet.forks import Turn
from discreet.ledger import groups, pricing
from discreet.ledger.amounts import ORDERS, Amounts, units
from discreet.ledger.errors import ChainBroken
from discreet.ledger.filters import _ratio
from discreet.ledger.rules import CURRENT, check_price
from discreet.ledger.store import _careful
from discreet.ledger.terms import check_name
from discreet.release import Enforced, unit_name
from tests.frozen import unfrozen


def test_nothing_that_was_stated_can_be_changed_afterwards():
    assert unfrozen("ledger") == set()


def test_totals_of_wide_fractions_are_rounded_up_and_by_little():
    """3^-k has denominators without end; each sum may gain 1e-18."""
    parts = [Fraction(2, 3**k) for k in range(60, 190)]
    total = Amounts()
    for part in parts:
        total = total + Amounts(pure=part, delta=part)
    assert total.pure.denominator <= 1 << 192
    for found in (total.pure, total.delta):
        assert sum(parts) < found <= sum(parts) + len(parts) * Fraction(1, 10**18)


def test_a_price_of_so_many_is_so_many_prices():
    one, three = (pricing.approximate(0.25, 2.0**-20, count) for count in (1, 3))
    assert (three.delta, three.pure) == (3 * one.delta, 3 * one.pure) == (Fraction(3, 2**20), Fraction(3, 4))


def test_amounts_are_never_below_zero_and_never_floats_but_infinity():
    for wrong in (-1, Fraction(-1, 3), 0.5, float("nan"), -float("inf")):
        for field in ("pure", "delta", "mu2"):
            with pytest.raises(ValueError, match=field):
                Amounts(**{field: wrong})
        with pytest.raises(ValueError, match="renyi"):
            Amounts(renyi=(wrong,) * len(ORDERS))
    assert Amounts(pure=float("inf"), renyi=(float("inf"),) * len(ORDERS)).adaptive
    assert Amounts().renyi == (0,) * len(ORDERS)


def test_the_orders_of_entries_that_were_written_stay():
    """A price is kept as one number an order: another order at a place would misread every ledger."""
    written = "1.25 1.35 1.5 1.7 2 2.4 3 4 5 7 9 12 17 24 33 46 65 92 129 182 257 363 513 725 1025 1449 2049 2897 4097"
    assert list(ORDERS) == [float(order) for order in written.split()]
    price = pricing.price(events.Gaussian(noise_multiplier=1.0), Adjacency.ADD_REMOVE)
    units = [paid / order for paid, order in zip(price.renyi, ORDERS, strict=True)]  # α/2: the same for each order
    assert max(units) == pytest.approx(min(units), rel=1e-6)


def test_a_transaction_waits_so_many_seconds_for_a_lock_and_is_on_disk_when_it_ends():
    assert _careful(2.5) == "SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = 2500"


def test_a_fork_waits_for_a_turn_of_another_thread_and_not_for_its_own():
    turn, held, go = Turn("", RuntimeError), threading.Event(), threading.Event()
    assert turn.pause(0.0)
    turn.resume()

    def hold():
        with turn.hold(1.0):
            held.set()
            go.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    assert not turn.pause(0.0)
    go.set()
    thread.join()
    with turn.hold(1.0):
        assert not turn.pause(0.0)  # its own: the child would go on in the middle
    assert turn.pause(0.0)
    turn.resume()


def test_a_units_name_is_plain_text_whoever_says_it():
    assert type(unit_name(Enforced("patient"))) is str


def test_amounts_beyond_a_million_are_infinite():
    assert units(1e6) == 10**21
    assert units(1_000_000.5) == math.inf


def test_an_unused_filter_is_not_used_up_whatever_its_limit():
    assert [_ratio(0, most) for most in (-1, 0, 5)] == [0.0, 0.0, 0.0]
    assert _ratio(1, 0) == math.inf


def test_more_repetitions_than_anybody_lists_are_rounded_once():
    """Each of two million divergences of some 1e-18 would be rounded up to 1e-15."""
    cost = pricing.price(events.PureDP(epsilon=1e-9) * 2_000_000, Adjacency.ADD_REMOVE)
    assert 0 < cost.renyi[4] < 2_000_000 / 100


def test_a_plan_is_judged_by_its_delta_to_the_last_digit():
    """No room for rounding: a book's delta may be smaller than any fixed room."""
    event = events.ApproxDP(epsilon=0.5, delta=1e-6)
    plan = groups.summed_price(event, Adjacency.ADD_REMOVE, 1)
    assert check_price(event.to_json(), plan.to_json(), Adjacency.ADD_REMOVE, CURRENT) == plan
    smaller = replace(plan, planned_delta=plan.planned_delta / 2)
    with pytest.raises(ChainBroken, match="does not follow"):
        check_price(event.to_json(), smaller.to_json(), Adjacency.ADD_REMOVE, CURRENT)


@pytest.mark.parametrize("name", ["a/b", "a\tb", "", " a", "a ", "a\n", "x" * 201])
def test_a_name_is_printable_and_no_path(name):
    assert check_name("x" * 200)
    with pytest.raises(ValueError, match="must be 1 to 200 printable characters"):
        check_name(name)
