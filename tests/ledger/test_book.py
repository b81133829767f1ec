"""Books: charged first, refused whole, never refunded; plans, reservations, sub-books and partitions."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import discreet as dp
from discreet import events
from discreet.errors import BudgetExceeded, UnsupportedEvent
from discreet.ledger import AlreadyCharged, Book, ChainBroken, Ledger, LedgerError
from discreet.ledger.terms import Terms
from discreet.release import Book as ReleaseBook
from discreet.release import Chargeable

TENTH = events.PureDP(epsilon=0.1)
GAUSSIAN = events.Gaussian(noise_multiplier=20.0)


def test_the_lines_of_the_contract() -> None:
    ledger = dp.Ledger("sqlite://")
    book = ledger.open("census", epsilon=3.0, delta=1e-6)
    book.charge(events.Laplace(noise_multiplier=2.0), label="income mean")
    assert book.spent().epsilon == 0.5
    assert book.remaining().epsilon == 2.5
    assert isinstance(book, ReleaseBook)
    ledger.close()


def test_ten_tenths_fill_a_book_of_one(ledger: Ledger) -> None:
    for delta in (0.0, 1e-6):
        book = ledger.open(f"delta {delta}", epsilon=1.0, delta=delta)
        for _ in range(10):
            book.charge(TENTH)
        assert book.spent().epsilon == 1.0
        assert book.spent().proof == "pure sum"
        with pytest.raises(BudgetExceeded, match=r"would raise epsilon to 1\.100 .* above the limit 1 of book"):
            book.charge(TENTH, label="eleventh")
        assert book.spent().entries == 10


def test_a_refusal_changes_nothing(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0, delta=1e-6)
    book.charge(TENTH)
    before = (ledger.head(), book.snapshot().book.amounts, book.spent())
    with pytest.raises(BudgetExceeded):
        book.charge(events.Laplace(noise_multiplier=0.5), label="too much")
    assert (ledger.head(), book.snapshot().book.amounts, book.spent()) == before


def test_opening_again_gives_the_same_book_and_other_limits_are_an_error(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=3.0, delta=1e-6)
    book.charge(TENTH)
    assert ledger.open("census", epsilon=3.0, delta=1e-6).spent().entries == 1
    for other in ({"epsilon": 4.0}, {"delta": 1e-5}, {"adjacency": "replace"}, {"filter": "renyi"}, {"unit": "a day"}):
        with pytest.raises(LedgerError, match="Limits are fixed"):
            ledger.open("census", **({"epsilon": 3.0, "delta": 1e-6} | other))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "event",
    [events.NonPrivate(), TENTH + events.NonPrivate(), events.PoissonSampled(rate=0.01, event=events.NonPrivate())],
)
def test_what_has_no_protection_is_always_refused(ledger: Ledger, event: events.Event) -> None:
    book = ledger.open("census", epsilon=1e6, delta=0.9)
    for attempt in (book.charge, book.plan, book.reserve):
        with pytest.raises(BudgetExceeded, match="NonPrivate"):
            attempt(event)
    assert book.spent().entries == 0


@pytest.mark.parametrize(
    "bad", [{"epsilon": 0}, {"epsilon": math.inf}, {"delta": 1.0}, {"delta": -1e-9}, {"filter": "x"}]
)
def test_limits_are_checked(ledger: Ledger, bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        ledger.open("census", **({"epsilon": 1.0} | bad))  # type: ignore[arg-type]


def test_terms_are_given_by_name() -> None:
    """Epsilon and delta in a row are too easily exchanged."""
    with pytest.raises(TypeError, match="positional"):
        Terms(1.0, 1e-6)  # type: ignore[misc]


@pytest.mark.parametrize("name", ["", " x", "a/b", "a\nb", "x" * 201])
def test_names_are_checked(ledger: Ledger, name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        ledger.open(name, epsilon=1.0)


def test_a_charge_must_be_an_event(ledger: Ledger) -> None:
    with pytest.raises(ValueError, match="must be an Event"):
        ledger.open("census", epsilon=1.0).charge(0.5)  # type: ignore[arg-type]


def test_nothing_costs_nothing(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0, delta=1e-6)
    book.charge(events.Composed(events=()))
    book.charge(events.PureDP(epsilon=0.0))
    assert book.spent().epsilon == 0.0


def test_affords_is_what_charging_allows(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=2.0, delta=1e-6)
    book.charge(events.PureDP(epsilon=0.2))
    count = book.affords(GAUSSIAN)
    book.charge(GAUSSIAN * count)
    assert count > 0
    assert book.affords(GAUSSIAN) == 0
    with pytest.raises(BudgetExceeded):
        book.charge(GAUSSIAN)


def test_listing_and_repeating_cost_the_same(ledger: Ledger) -> None:
    listed, repeated = ledger.open("a", epsilon=3.0, delta=1e-6), ledger.open("b", epsilon=3.0, delta=1e-6)
    for _ in range(25):
        listed.charge(GAUSSIAN)
    repeated.charge(GAUSSIAN * 25)
    assert listed.snapshot().book.amounts == repeated.snapshot().book.amounts
    assert listed.spent().epsilon == repeated.spent().epsilon


# --- plans ---------------------------------------------------------------------------------------------------------


def test_a_first_charge_calibrated_to_the_whole_limit_fits(ledger: Ledger) -> None:
    """What was fixed before any answer may use the tight account, at the whole of delta."""
    event = events.Gaussian(noise_multiplier=1.6)
    exactly = dp.epsilon(event, delta=1e-6)
    book = ledger.open("training", epsilon=exactly, delta=1e-6)
    entry = book.charge(event, label="model")
    assert entry.proof == "plan"
    assert book.spent().epsilon == pytest.approx(exactly)
    with pytest.raises(BudgetExceeded, match=r"no finite epsilon at delta=0, which is what plans left"):
        book.charge(GAUSSIAN)
    ledger.verify()


def test_the_tight_account_is_not_used_once_an_answer_was_seen(ledger: Ledger) -> None:
    event = events.Gaussian(noise_multiplier=1.6)
    book = ledger.open("training", epsilon=dp.epsilon(event, delta=1e-6) + 0.1, delta=1e-6)
    book.charge(TENTH)
    with pytest.raises(BudgetExceeded):
        book.plan(event)


def test_a_plan_leaves_the_rest_to_the_filters(ledger: Ledger) -> None:
    book = ledger.open("training", epsilon=3.0, delta=1e-6)
    plan = book.plan(GAUSSIAN * 40, label="training")
    planned = book.spent()
    assert planned.proof == "plan"
    assert planned.epsilon == pytest.approx(dp.epsilon(GAUSSIAN * 40, delta=5e-7))
    book.charge(TENTH)
    assert book.spent().epsilon == pytest.approx(planned.epsilon + 0.1)
    assert book.spent().proof == "plan, then pure sum"
    count = 0
    while book.affords(GAUSSIAN):
        count += 1
        book.charge(GAUSSIAN)
    assert count > 0
    assert book.spent().epsilon <= 3.0
    assert plan.entry.kind == "plan"
    ledger.verify()


def test_a_plan_may_name_its_part_of_delta(ledger: Ledger) -> None:
    book = ledger.open("training", epsilon=3.0, delta=1e-6)
    book.plan(GAUSSIAN * 10, delta=1e-7)
    assert book.spent().epsilon == pytest.approx(dp.epsilon(GAUSSIAN * 10, delta=1e-7))
    book.plan(GAUSSIAN * 10, delta=1e-7)
    assert book.spent().epsilon == pytest.approx(2 * dp.epsilon(GAUSSIAN * 10, delta=1e-7))


def test_approximate_events(ledger: Ledger) -> None:
    book = ledger.open("basic", epsilon=1.0, delta=1e-6, filter="basic")
    for _ in range(10):
        book.charge(events.ApproxDP(epsilon=0.1, delta=1e-7))
    assert book.spent().epsilon == 1.0
    tight = ledger.open("delta", epsilon=10.0, delta=1e-6, filter="basic")
    for _ in range(10):
        tight.charge(events.ApproxDP(epsilon=0.1, delta=1e-7))
    with pytest.raises(BudgetExceeded, match="may fail outright"):
        tight.charge(events.ApproxDP(epsilon=0.1, delta=1e-9))


def test_a_charge_may_name_a_part_of_delta_for_the_tight_account(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=3.0, delta=1e-6)
    book.charge(TENTH)
    book.charge(GAUSSIAN * 5, delta=5e-8)
    assert float(book.snapshot().book.amounts.delta) == 5e-8
    assert book.spent().epsilon == pytest.approx(0.1 + dp.epsilon(GAUSSIAN * 5, delta=5e-8))


def test_an_event_no_filter_prices_says_what_to_do(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=3.0, delta=1e-6)
    book.charge(TENTH)
    odd = events.PoissonSampled(rate=0.1, event=events.ApproxDP(epsilon=0.1, delta=1e-9))
    with pytest.raises(UnsupportedEvent, match="delta="):
        book.charge(odd)


# --- reservations ----------------------------------------------------------------------------------------------------


def test_a_reservation_is_charged_at_once_and_never_refunded(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0)
    with pytest.raises(RuntimeError), book.reserve(TENTH * 5, label="long job"):
        raise RuntimeError
    assert book.spent().epsilon == 0.5


def test_a_reservation_is_drawn_on_and_not_beyond(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0)
    with book.reserve(TENTH * 3, label="long job") as job:
        assert isinstance(job, Chargeable)
        job.charge(TENTH)
        job.charge(TENTH * 2)
        with pytest.raises(BudgetExceeded, match="has 0 of that kind left"):
            job.charge(TENTH, label="fourth")
        with pytest.raises(BudgetExceeded):
            job.charge(events.PureDP(epsilon=0.05))
    with pytest.raises(BudgetExceeded, match="closed"):
        job.charge(events.Composed(events=()))
    assert book.spent().entries == 1


def test_a_reservation_is_refused_before_the_block_starts(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0)
    reached = False
    with pytest.raises(BudgetExceeded), book.reserve(TENTH * 11):
        reached = True
    assert not reached


# --- books inside books -----------------------------------------------------------------------------------------------


def test_a_sub_book_is_charged_to_the_book_above(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0)
    alice, bob = book.sub("alice", epsilon=0.8), book.sub("bob", epsilon=0.8)
    for _ in range(8):
        alice.charge(TENTH)
    with pytest.raises(BudgetExceeded, match="book 'census/alice'"):
        alice.charge(TENTH)
    bob.charge(TENTH * 2)
    with pytest.raises(BudgetExceeded, match="book 'census'"):
        bob.charge(TENTH)
    assert (alice.spent().epsilon, bob.spent().epsilon, book.spent().epsilon) == (0.8, 0.2, 1.0)
    assert [inner.name for inner in book.books()] == ["census/alice", "census/bob"]
    assert [entry.book for entry in book.entries() if entry.kind == "charge"] == ["census/alice"] * 8 + ["census/bob"]
    assert book.entries(below=False)[-1].kind == "open"
    assert ledger.book("census/bob").spent() == bob.spent()
    ledger.verify()


def test_a_partition_costs_its_costliest_part(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0, delta=1e-6)
    parts = book.split("region", ["north", "south"])
    for _ in range(5):
        parts["north"].charge(TENTH)
        parts["south"].charge(TENTH)
    assert book.spent().epsilon == 0.5
    parts["south"].charge(TENTH * 5)
    assert book.spent().epsilon == 1.0
    parts["north"].charge(TENTH * 5)  # a record of the north has paid half so far
    assert book.spent().epsilon == 1.0
    for part in parts.values():
        with pytest.raises(BudgetExceeded):
            part.charge(TENTH)
    ledger.verify()


def test_a_partition_inside_a_part_and_a_shared_charge(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0)
    north = book.split("region", ["north", "south"])["north"]
    ages = north.split("age", ["young", "old"])
    ages["young"].charge(TENTH * 3)
    ages["old"].charge(TENTH * 2)
    north.charge(TENTH)
    book.charge(TENTH)
    assert north.spent().epsilon == pytest.approx(0.4)
    assert book.spent().epsilon == pytest.approx(0.5)
    ledger.verify()


def test_each_part_may_have_a_plan_of_its_own(ledger: Ledger) -> None:
    """Training one calibrated model per part costs the book one of them."""
    event = events.Gaussian(noise_multiplier=1.6)
    book = ledger.open("training", epsilon=dp.epsilon(event, delta=1e-6), delta=1e-6)
    for part in book.split("hospital", ["a", "b", "c"]).values():
        part.charge(event)
    assert book.spent().epsilon == pytest.approx(dp.epsilon(event, delta=1e-6))
    ledger.verify()


def test_parts_are_fixed_when_declared(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0)
    book.split("region", ["north", "south"])
    assert set(book.split("region", ["north", "south"])) == {"north", "south"}
    for other in (["north"], ["north", "south", "west"], ["east"]):
        with pytest.raises(LedgerError, match="fixed"):
            book.split("region", other)
    with pytest.raises(ValueError, match="distinct"):
        book.split("age", ["a", "a"])
    ledger.verify()


def test_a_partition_itself_is_neither_charged_nor_extended(ledger: Ledger) -> None:
    """What is charged to it directly would be hidden behind the costliest part."""
    book = ledger.open("census", epsilon=1.0)
    book.split("region", ["north", "south"])
    partition = ledger.book("census/region")
    for attempt in (
        lambda: partition.charge(TENTH),
        lambda: partition.plan(TENTH),
        lambda: partition.sub("west", epsilon=1.0),
        lambda: partition.split("inner", ["a", "b"]),
    ):
        with pytest.raises(ValueError, match="is a partition"):
            attempt()
    assert book.spent().entries == 0


@pytest.mark.parametrize("adjacency", ["replace", "zero-out"])
def test_a_partition_is_refused_where_a_record_may_change_or_lose_its_part(ledger: Ledger, adjacency: str) -> None:
    book = ledger.open("census", epsilon=1.0, adjacency=adjacency)
    with pytest.raises(ValueError, match=f"adjacency is '{adjacency}', but a partition needs 'add-remove'"):
        book.split("region", ["north", "south"])
    assert book.books() == []


def test_another_limit_is_no_reason_for_a_second_budget(ledger: Ledger) -> None:
    """Who opens with more is told of a raise; after it, of the book; never of another name."""
    ledger.open("census", epsilon=1.0, delta=1e-6)
    with pytest.raises(
        LedgerError, match=r"raise_limit\(epsilon=2, delta=0, .*ledger raise census --epsilon 2"
    ) as told:
        ledger.open("census", epsilon=3.0, delta=1e-6)
    assert "another" not in str(told.value)
    ledger.book("census").raise_limit(epsilon=2.0, why="a second wave")
    with pytest.raises(LedgerError, match=r"it now has epsilon=3, .*Ledger.book\('census'\), or with --book census on"):
        ledger.open("census", epsilon=3.0, delta=1e-6)
    with pytest.raises(LedgerError, match=r"other terms: open it with those, or take it") as told:
        ledger.open("census", epsilon=3.0, delta=1e-6, unit="person")
    assert "raise" not in str(told.value)


def test_a_book_that_does_not_exist(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="no book 'none'"):
        ledger.book("none")
    with pytest.raises(LedgerError, match="no book 'none'"):
        ledger.book("none/inner")


def test_a_first_approximate_event_may_take_the_whole_of_delta(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0, delta=1e-6)
    book.charge(events.ApproxDP(epsilon=0.5, delta=1e-6))
    assert book.spent().epsilon == 0.5
    book.charge(TENTH * 5)
    assert book.spent().epsilon == 1.0
    with pytest.raises(BudgetExceeded):
        book.charge(events.PureDP(epsilon=0.01))


def test_the_used_fraction_only_grows(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=3.0, delta=1e-6)
    book.plan(GAUSSIAN * 30)
    seen = [book.spent().fraction]
    while book.affords(GAUSSIAN):
        book.charge(GAUSSIAN)
        seen.append(book.spent().fraction)
    assert seen == sorted(seen)
    assert 0.9 < seen[-1] <= 1.0


def test_truncated_sampling_is_not_priced_as_if_it_never_overflowed(ledger: Ledger) -> None:
    """Its overflow weighs e^epsilon, so it is charged as a plan, or as a whole at a named part of delta."""
    step = events.TruncatedPoissonSampled(
        rate=0.01, max_batch_size=200, dataset_size=10_000, event=events.Gaussian(noise_multiplier=4.0)
    )
    book = ledger.open("census", epsilon=3.0, delta=1e-6)
    assert book.charge(step * 10).proof == "plan"
    book.charge(TENTH)
    with pytest.raises(UnsupportedEvent, match="delta="):
        book.charge(step * 10)
    book.charge(step * 10, delta=4e-8)
    assert ledger.verify().entries == 4


def test_charges_under_replace_cost_a_remove_and_an_add(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0, delta=1e-6, adjacency="replace")
    book.charge(TENTH)
    assert book.spent().epsilon == 0.2
    book.charge(events.RandomizedResponse(epsilon=0.3))
    assert book.spent().epsilon == 0.5
    with pytest.raises(dp.UnsupportedAdjacency):
        ledger.open("other", epsilon=1.0).charge(events.RandomizedResponse(epsilon=0.3))


def test_parallel_events_cost_the_worst_part(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0)
    book.charge(TENTH | events.PureDP(epsilon=0.3))
    assert book.spent().epsilon == 0.3


def test_an_event_without_a_finite_epsilon_at_that_delta_is_refused(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=3.0, delta=1e-6)
    book.charge(TENTH)
    with pytest.raises(BudgetExceeded, match="no finite epsilon"):
        book.charge(events.ApproxDP(epsilon=0.1, delta=1e-7), delta=1e-8)


# --- charges with a key ----------------------------------------------------------------------------------------------


def test_a_key_is_charged_once_whoever_asks_again(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'budget.db'}"
    with Ledger(address) as first, Ledger(address) as second:
        book = first.open("census", epsilon=1.0)
        entry = book.charge(TENTH, label="count", key="q-1")
        assert entry.unit is not None
        assert entry.unit.key == "q-1"
        for ledger in (first, second):  # one that knows its own charge, and one that reads it
            with pytest.raises(AlreadyCharged, match="charged under this key before, by entry 2") as refused:
                ledger.book("census").charge(TENTH, key="q-1")
            assert refused.value.seq == ledger.book("census").charged_under("q-1") == 2
        assert second.book("census").charged_under("q-2") is None
        second.book("census").charge(TENTH, key="q-2")
        assert first.book("census").charged_under("q-2") == 3
        assert book.spent().entries == 2
    with Ledger(address) as reopened, pytest.raises(AlreadyCharged):
        reopened.book("census").charge(TENTH, key="q-2")


def test_two_books_may_use_one_key(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0)
    for name in ("ada", "bob"):
        book.sub(name, epsilon=0.5).charge(TENTH, key="q-1")
    assert book.spent().entries == 2


def test_a_second_charge_under_one_key_breaks_the_chain(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written by a program that does not look: whoever reads it next finds it."""
    book = ledger.open("census", epsilon=1.0)
    book.charge(TENTH, key="q-1")
    monkeypatch.setattr(Book, "_refuse_second", lambda *_: None)
    with pytest.raises(ChainBroken, match="a second time under one key"):
        book.charge(TENTH, key="q-1")
    with pytest.raises(ChainBroken, match="a second time under one key"):
        ledger.verify()


@pytest.mark.parametrize("key", ["", "a" * 201, "a\nb", "é", 7])
def test_a_key_is_short_plain_text(ledger: Ledger, key: object) -> None:
    with pytest.raises(ValueError, match="key must be"):
        ledger.open("census", epsilon=1.0).charge(TENTH, key=key)  # type: ignore[arg-type]
