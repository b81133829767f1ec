"""A new kind of event is one class and one registration: every account, the ledger, JSON and printing then know it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pytest

import discreet as dp
from discreet import events as ev
from discreet.accounting import ACCOUNTANTS, facts
from discreet.accounting.facts import Facts, register
from discreet.accounting.parts import Leaf, Resolved
from discreet.accounting.pld.atoms import Atoms
from discreet.adjacency import Adjacency
from discreet.errors import NotCertified
from discreet.events import tree
from discreet.ledger import groups, pricing, rules
from discreet.release import Release

ADD_REMOVE, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Facts | None], type]]:
    """Makes the kind ``Toy(level=, adjacency=)``, with facts or without; gone after the test."""
    monkeypatch.setattr(tree, "_BY_TAG", dict(tree._BY_TAG))
    monkeypatch.setattr(facts, "_STATED", dict(facts._STATED))

    def make(stated: Facts | None) -> type:
        @dataclass(frozen=True, slots=True, kw_only=True)
        class Toy(ev.Event):
            level: float
            adjacency: Adjacency = ADD_REMOVE

        if stated is not None:
            register(Toy, stated)
        return Toy

    return make


def answers(event: ev.Event, adjacency: Adjacency = ADD_REMOVE) -> dict[str, float]:
    """What each accountant that can price the event says."""
    found = {}
    for name in ACCOUNTANTS:
        with suppress(dp.UnsupportedEvent):
            found[name] = dp.epsilon(event, delta=1e-5, accountant=name, adjacency=adjacency)
    return found


def grown(event: ev.Event, k: int) -> ev.Event:
    return replace(event, level=event.level * k)  # type: ignore[call-arg, attr-defined]


@pytest.mark.parametrize(("stated", "known"), [
    (Facts(pure=lambda event, adjacency: event.level, enlarged=grown), ev.PureDP(epsilon=0.25)),
    (Facts(mu=lambda event, adjacency: event.level, enlarged=grown), ev.GDP(mu=0.25)),
    (Facts(approximate=lambda event, adjacency: (event.level, 1e-7)), ev.ApproxDP(epsilon=0.25, delta=1e-7)),
])  # fmt: skip
def test_a_toy_leaf_of_one_fact_costs_what_the_bare_guarantee_costs(kind, stated, known):
    toy = kind(stated)(level=0.25)
    assert answers(toy * 8) == answers(known * 8)
    assert len(answers(toy * 8)) >= 4
    assert dp.epsilon(toy, 1e-5) == dp.epsilon(known, 1e-5)
    assert dp.epsilon_bounds(toy * 8, 1e-5) == dp.epsilon_bounds(known * 8, 1e-5)
    assert dp.guarantee(toy).tradeoff(0.1) == dp.guarantee(known).tradeoff(0.1)


def test_a_toy_leaf_is_sampled_partitioned_and_restated(kind):
    toy, known = kind(Facts(mu=lambda event, adjacency: event.level, enlarged=grown))(level=0.5), ev.GDP(mu=0.5)
    for around, adjacency in (
        (lambda e: ev.PoissonSampled(rate=0.01, event=e) * 100, ADD_REMOVE),
        (lambda e: ev.PoissonSampled(rate=0.01, event=e) * 100, REPLACE),
        (lambda e: e | ev.GDP(mu=0.1), ADD_REMOVE),
    ):
        mine, theirs = (dp.epsilon(around(event), 1e-5, adjacency=adjacency) for event in (toy, known))
        assert mine == theirs
    assert dp.epsilon(toy, 1e-5, adjacency="replace") == dp.epsilon(ev.GDP(mu=1.0), 1e-5)
    assert dp.epsilon(toy, 1e-5, group_size=3) == dp.epsilon(ev.GDP(mu=1.5), 1e-5)


def test_a_toy_leaf_is_stored_printed_and_charged(kind):
    toy = kind(Facts(pure=lambda event, adjacency: event.level))(level=0.25)
    assert dp.Event.from_json((toy * 3).to_json()) == toy * 3
    assert str(toy * 3 + ev.PureDP(epsilon=0.5)) == "PureDP(epsilon=0.5) + 3 x Toy(level=0.25)"
    book = dp.Ledger("sqlite://").open("toys", epsilon=1.0, delta=1e-6)
    for _ in range(3):
        book.charge(toy, label="toy")
    assert 0.75 <= book.spent().epsilon <= 0.75 * (1 + 1e-9)
    with pytest.raises(dp.BudgetExceeded):
        book.charge(toy * 4, label="more")


def test_a_quotient_is_charged_to_the_last_digit(kind):
    stated = Facts(pure=lambda event, adjacency: 1 / event.level, quotient=lambda event, adjacency: (1, event.level))
    toy = kind(stated)(level=3.0)
    assert pricing.price(toy * 3, ADD_REMOVE).pure == 1


def test_a_pair_of_ones_own_is_composed_and_bounded_from_both_sides(kind):
    """Two atoms of which only one direction is stated: the other is the mirror, and the worse of the two counts."""
    masses = np.array([0.75, 0.25])
    losses = np.array([math.log(0.75 / (1 - 0.25 / math.e)), 1.0])
    toy = kind(Facts(pair=lambda event, adjacency: Atoms(losses, masses)))(level=1.0)
    low, high = dp.epsilon_bounds(toy * 5, 1e-3)
    assert 0 < low <= high <= 5 * max(1.0, -losses[0])
    assert high - low < 1e-2 * high
    assert dp.epsilon(toy * 5, 1e-3, accountant="rdp") >= low


def test_a_wrapper_is_restated_by_its_own_rule(kind):
    def under_replace(event, count, wanted, group):
        assert (count, group) == (4, 1)
        return Resolved(() if wanted is REPLACE else (Leaf(ev.NonPrivate(), wanted, count),))

    toy = kind(Facts(restated=under_replace))(level=1.0)
    assert dp.epsilon(toy * 4, 1e-5, adjacency="replace") == 0
    assert dp.epsilon(toy * 4, 1e-5) == math.inf


def test_what_is_not_stated_of_a_kind_is_refused_by_name(kind):
    toy = kind(None)(level=1.0)
    for accountant in (None, *ACCOUNTANTS):
        with pytest.raises(dp.UnsupportedEvent, match="Toy"):
            dp.epsilon(toy, 1e-5, accountant=accountant)
    with pytest.raises(dp.UnsupportedEvent, match="Toy"):
        dp.epsilon(ev.PoissonSampled(rate=0.1, event=toy), 1e-5)
    book = dp.Ledger("sqlite://").open("toys", epsilon=1.0, delta=1e-6)
    with pytest.raises(dp.UnsupportedEvent, match="Toy"):
        book.charge(toy)
    assert book.spent().epsilon == 0


def test_a_kind_derived_from_a_known_one_inherits_no_facts(monkeypatch):
    """It may do less than its parent: whoever derives it says what holds."""
    monkeypatch.setattr(tree, "_BY_TAG", dict(tree._BY_TAG))

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Weaker(ev.PureDP):
        pass

    with pytest.raises(dp.UnsupportedEvent, match="Weaker"):
        dp.epsilon(Weaker(epsilon=0.1), 0.0)


def test_facts_are_stated_once(kind):
    toy = kind(Facts(pure=lambda event, adjacency: event.level))
    with pytest.raises(ValueError, match="Toy"):
        register(toy, Facts(pure=lambda event, adjacency: 0.0))


def test_every_kind_of_leaf_has_facts():
    inner = {"Composed", "Repeated"}  # the walk takes them apart
    assert {kind.tag for kind in facts._STATED} == set(tree._BY_TAG) - inner


def test_a_parameter_that_was_rounded_says_nothing_from_below(kind):
    """Too small: rounded up to what doubles can hold. Too large: an infinite loss. Neither is attained; a part that is
    exact alone still is.
    """
    tiny = kind(Facts(mu=lambda event, adjacency: event.level**2))(level=1e-40)
    low, high = dp.epsilon_bounds(ev.PoissonSampled(rate=0.5, event=tiny), 1e-62)
    assert low == 0 < high
    wide = ev.Gaussian(noise_multiplier=1 / 500) + ev.Laplace(noise_multiplier=1.0)
    low, high = dp.epsilon_bounds(wide, 1e-5)
    alone, _ = dp.epsilon_bounds(ev.Gaussian(noise_multiplier=1 / 500), 1e-5)
    assert 125_000 < low == alone < high


@pytest.mark.parametrize("wanted", ["add-remove", "zero-out"])
def test_what_is_free_where_records_are_replaced_may_still_tell_their_number(wanted):
    """Publishing how many records there are costs nothing under replace, and everything under add-remove."""
    size = ev.PureDP(epsilon=0.0, adjacency="replace")
    assert dp.epsilon(size, 0.0, adjacency="replace") == 0
    with pytest.raises(dp.UnsupportedEvent, match="replace"):
        dp.epsilon(size, 0.0, adjacency=wanted)


def test_a_release_is_as_good_as_its_event():
    event = ev.Gaussian(noise_multiplier=2.0) * 3
    release = Release(value=1.0, event=event)
    assert dp.epsilon(release, 1e-5) == dp.epsilon(event, 1e-5)
    assert dp.epsilon(release, 1e-5, adjacency="replace", accountant="zcdp") == dp.epsilon(
        event, 1e-5, adjacency="replace", accountant="zcdp"
    )
    assert dp.epsilon_bounds(release, 1e-5) == dp.epsilon_bounds(event, 1e-5)
    assert dp.delta(release, 1.0) == dp.delta(event, 1.0)
    assert dp.guarantee(release) == dp.guarantee(event)
    assert dp.guarantee(release).event is event
    with pytest.raises(ValueError, match="Release"):
        dp.epsilon(1.0, 1e-5)


def test_a_kind_that_keeps_its_adjacency_as_text_is_priced_like_any(kind, tmp_path):
    """As JSON gives it back: a ledger judges what it reads, with caches that another process does not have."""
    Plain = kind(
        Facts(mu=lambda event, adjacency: event.level, enlarged=lambda event, k: replace(event, level=event.level * k))
    )
    assert ev.Event.from_json(Plain(level=0.1).to_json()).adjacency is Adjacency.ADD_REMOVE
    with pytest.raises(dp.UnsupportedAdjacency, match="null record"):
        dp.epsilon(Plain(level=0.1, adjacency="replace"), 1e-6, adjacency="zero-out")
    with dp.Ledger(f"sqlite:///{tmp_path / 'budget.db'}") as ledger:
        ledger.open("census", epsilon=3.0, delta=1e-6).charge(Plain(level=0.1))
    for cached in (groups.price, pricing.price, rules.check_price):
        cached.cache_clear()
    with dp.Ledger(f"sqlite:///{tmp_path / 'budget.db'}") as ledger:
        ledger.book("census").charge(Plain(level=0.1))
        ledger.book("census").plan(Plain(level=0.1) * 2)
        assert ledger.verify().entries >= 3


@pytest.mark.parametrize(
    "stated",
    [
        {"pure": lambda event, adjacency: -5.0},
        {"rho": lambda event, adjacency: -1.0},
        {"mu": lambda event, adjacency: math.nan},
        {"approximate": lambda event, adjacency: (-1.0, 1e-7)},
        {"curve": lambda event, adjacency, orders: -orders},
    ],
    ids=lambda stated: next(iter(stated)),
)
def test_a_fact_that_cannot_be_a_price_reaches_no_total(stated, kind):
    Odd = kind(Facts(**stated))
    for accountant in (None, "basic", "advanced", "optimal", "zcdp", "rdp", "gdp", "pld"):
        try:
            found = dp.epsilon(Odd(level=1.0) + ev.Gaussian(noise_multiplier=1.0), 1e-6, accountant=accountant)
        except (NotCertified, dp.UnsupportedEvent):
            continue
        assert found >= dp.epsilon(ev.Gaussian(noise_multiplier=1.0), 1e-6) - 1e-9


def test_a_kind_does_not_take_over_the_name_of_another():
    with pytest.raises(TypeError, match="already"):
        type("ApproxDP", (ev.Event,), {})
