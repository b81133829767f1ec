"""A refusal says what is left, as one subtracts, and the largest releases that fit: each of them does, and little more
would not.
"""

from __future__ import annotations

import re

import pytest

import discreet as dp
from discreet import events
from discreet.accounting.gaussian import gaussian_noise_multiplier
from discreet.errors import BudgetExceeded
from discreet.ledger import Ledger, LedgerError


def fresh(ledger):
    return ledger.open("b", epsilon=3.0, delta=1e-6)


def used(ledger):
    book = fresh(ledger)
    book.charge(events.PureDP(epsilon=1.0))
    book.charge(events.Gaussian(noise_multiplier=4.9))
    return book


def pure(ledger):
    book = ledger.open("b", epsilon=1.0)
    book.charge(events.PureDP(epsilon=0.3))
    return book


def raised(ledger):
    book = used(ledger)
    book.raise_limit(epsilon=1.0, delta=1e-6, why="more")
    return book


def planned(ledger):
    book = fresh(ledger)
    book.plan(events.Gaussian(noise_multiplier=4.0) * 2)
    return book


def inside(ledger):
    return used(ledger).sub("alice", epsilon=2.0, delta=1e-7)


def part(ledger):
    return fresh(ledger).split("wards", ["a", "b"])["a"]


def replacing(ledger):
    return ledger.open("b", epsilon=2.0, delta=1e-5, adjacency="replace")


def narrow(ledger):
    return ledger.open("b", epsilon=1000.0, delta=1e-6).sub("alice", epsilon=0.05, delta=1e-7)


def lenient(ledger):
    """Where delta hides more than the limit of epsilon."""
    return ledger.open("b", epsilon=0.001, delta=0.1)


BOOKS = [fresh, used, pure, raised, planned, inside, part, replacing, narrow, lenient]


def said(book, event):
    before = book.spent()
    with pytest.raises(BudgetExceeded) as refused:
        book.charge(event, "too much")
    assert book.spent() == before
    return str(refused.value)


@pytest.mark.parametrize("made", BOOKS, ids=lambda made: made.__name__)
def test_what_is_said_to_fit_fits_and_a_fifth_more_does_not(made):
    with Ledger("sqlite://") as ledger:
        text = said(made(ledger), events.PureDP(epsilon=50.0))
    fits = float(re.search(r"fits: epsilon=([\d.]+) without delta", text)[1])
    share = 2 if made is replacing else 1  # there a pure event costs twice its epsilon
    for factor, admitted in ((1.0, True), (1.2, False)):
        with Ledger("sqlite://") as ledger:
            book, event = made(ledger), events.PureDP(epsilon=fits * factor / share)
            book.charge(event) if admitted else said(book, event)
    noisy = re.search(r"epsilon=([\d.]+) at delta=([\de.-]+) with Gaussian noise", text)
    assert (noisy is None) == (made is pure)
    if noisy:
        epsilon, delta = map(float, noisy.groups())
        for factor, admitted in ((1.0, True), (1.2, False)):
            with Ledger("sqlite://") as ledger:
                book = made(ledger)
                noise = share * gaussian_noise_multiplier(epsilon=epsilon * factor, delta=delta)
                event = events.Gaussian(noise_multiplier=noise)
                book.charge(event) if admitted else said(book, event)


def test_what_is_left_is_the_limit_less_what_is_spent():
    with Ledger("sqlite://") as ledger:
        book = used(ledger)
        text, spent = said(book, events.PureDP(epsilon=2.0)), book.spent().epsilon
    left = float(re.search(r"What is left: epsilon=([\d.]+) at delta=1e-06\.", text)[1])
    assert 0 <= (3 - spent) - left < 1e-3
    assert text.startswith("'too much' would raise epsilon to 4.")
    assert text.endswith("ask the data owner to raise the limit.")


def test_a_total_is_shown_with_digits_that_tell_it_from_the_limit():
    with Ledger("sqlite://") as ledger:
        assert "would raise epsilon to 1.0001 at" in said(ledger.open("b", epsilon=1.0), events.PureDP(epsilon=1.0001))


def test_a_book_that_is_used_up_has_room_for_nothing():
    with Ledger("sqlite://") as ledger:
        book = ledger.open("b", epsilon=1.0)
        book.charge(events.PureDP(epsilon=1.0))
        with pytest.raises(
            BudgetExceeded, match=r"^This charge would .* What is left: epsilon=0\. Nothing more fits\."
        ):
            book.charge(events.PureDP(epsilon=0.5))


def test_what_fits_is_all_that_is_left_where_that_is_a_short_number():
    with Ledger("sqlite://") as ledger:
        book = ledger.open("b", epsilon=2.0).sub("alice", epsilon=0.3)
        assert "What is left: epsilon=0.3. The largest release that fits: epsilon=0.3 without" in said(
            book, events.PureDP(epsilon=5.0)
        )


def test_rows_of_a_unit_are_counted_in_what_fits():
    """One record may cost a quarter where somebody has four of them."""
    with Ledger("sqlite://") as ledger:
        book = ledger.open("b", epsilon=1.0, unit="patient", rows_per_unit=4)
        fits = float(re.search(r"fits: epsilon=([\d.]+)", said(book, events.PureDP(epsilon=0.5)))[1])
        assert 0.24 < fits <= 0.25
        book.charge(events.PureDP(epsilon=fits))


def test_a_misspelt_book_is_answered_by_those_there_are_the_nearest_first():
    with Ledger("sqlite://") as ledger:
        with pytest.raises(LedgerError, match=r"no book 'x' in this ledger: open it first\.$"):
            ledger.book("x")
        for name in ("alpha", "beta", "census", "gamma", "visits", "zeta"):
            ledger.open(name, epsilon=1.0)
        ledger.book("census").sub("alice", epsilon=1.0)
        for asked, near in [
            ("Cenus", "census"),
            ("census/alcie", "census/alice"),
            ("cenus/alice", "census/alice"),
            ("vsits", "visits"),
        ]:
            for look in (ledger.book, ledger.overview):
                missing = asked if asked.startswith("census") else asked.split("/")[0]
                with pytest.raises(LedgerError, match=rf"no book '{missing}' in this ledger, but '{near}', .* 2 more"):
                    look(asked)


@pytest.mark.parametrize("limit", [1e-9, 1e-3, 1e4, 1e300])
def test_a_refusal_is_one_whatever_the_limit(limit):
    """What is said of the room that is left never fails itself."""
    with Ledger("sqlite://") as ledger:
        for delta in (0.0, 1e-300, 1e-9):
            book = ledger.open(f"b{delta:g}", epsilon=limit, delta=delta)
            book.charge(events.PureDP(epsilon=limit / 2))
            assert "The largest release that fits: " in said(book, events.PureDP(epsilon=5 * max(1.0, limit)))


def test_the_head_is_asked_how_many_entries_there_are_and_shares_never_fall(tmp_path):
    with Ledger(tmp_path / "l.db") as ledger:
        book = ledger.open("b", epsilon=9.0)
        for _ in range(249):
            book.charge(events.PureDP(epsilon=0.01))
        told = []
        assert ledger.verify(progress=told.append) == ledger.verify()
    assert told == [0.0, 0.4, 0.8]


def test_python_says_it_in_an_operation_too():
    with dp.Ledger("sqlite://") as ledger:
        book = ledger.open("b", epsilon=1.0)
        with pytest.raises(
            BudgetExceeded, match=r"What is left: epsilon=1\. The largest release that fits: epsilon=1 without delta"
        ):
            dp.statistics.count([1, 2, 3], epsilon=2.0, book=book)


def test_where_the_largest_that_is_tried_fits_it_is_said_that_more_may():
    with Ledger("sqlite://") as ledger:
        pure_book = ledger.open("pure", epsilon=5000.0)
        assert "fits: at least epsilon=1000 without delta. Use" in said(pure_book, events.PureDP(epsilon=6000.0))
        mixed = said(ledger.open("mixed", epsilon=900.0, delta=1e-6), events.PureDP(epsilon=6000.0))
        assert "at least" not in mixed
