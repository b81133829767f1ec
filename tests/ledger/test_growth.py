"""A charge costs the same in a long book as in a short one."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
import sqlalchemy as sa

from benchmarks.ledger import STEP, fill, time_charges
from discreet.ledger import Book, Ledger, integrity


def statements(ledger: Ledger, book: Book) -> int:
    """How many statements one charge runs."""
    run: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        run.append(statement)

    sa.event.listen(ledger._store._engine, "before_cursor_execute", note)
    book.charge(STEP)
    sa.event.remove(ledger._store._engine, "before_cursor_execute", note)
    return len(run)


def test_a_charge_runs_the_same_few_statements_whatever_the_length_of_the_book(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BEGIN, head and version, who else wrote, the book; its totals, the entry, the head. One more for a book above."""
    monkeypatch.setattr(integrity, "EVERY", 1000)  # the old entries that are read again now and then come on top
    with Ledger(f"sqlite:///{tmp_path / 'book.db'}") as ledger:
        book = ledger.open("book", epsilon=100.0, delta=1e-6)
        book.charge(STEP)
        assert statements(ledger, book) == 7
        inner = book.sub("inner", epsilon=100.0, delta=1e-6)
        inner.charge(STEP)
        assert statements(ledger, inner) == 8


@pytest.mark.slow(sibling="test_a_charge_runs_the_same_few_statements_whatever_the_length_of_the_book")
def test_charging_does_not_grow_with_the_length_of_the_book(tmp_path: Path) -> None:
    """Processor time at 10⁵ entries against 10²; the clock is the disk's, and is measured by benchmarks/ledger.py."""
    with Ledger(f"sqlite:///{tmp_path / 'short.db'}") as one, Ledger(f"sqlite:///{tmp_path / 'long.db'}") as other:
        books = [ledger.open("book", epsilon=100.0, delta=1e-6) for ledger in (one, other)]
        fill(books[0], 100)
        fill(books[1], 100_000)
        # in turn: alike in any noise
        rounds = [[time_charges(book, count=4)[1][1] for book in books] for _ in range(40)]
        assert books[1].spent().entries == 100_160
    short, long = (statistics.median(times) for times in zip(*rounds, strict=True))
    assert long < 1.5 * short


def test_a_bulk_loaded_book_is_one_that_charging_would_have_made(tmp_path: Path) -> None:
    with Ledger(f"sqlite:///{tmp_path / 'book.db'}") as ledger:
        book = ledger.open("book", epsilon=100.0, delta=1e-6)
        fill(book, 300)
        time_charges(book, count=5)
        assert ledger.verify().entries == 306
