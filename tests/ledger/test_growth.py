"""A charge costs the same in a long book as in a short one."""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.ledger import fill, time_charges
from discreet.ledger import Ledger


def test_charging_does_not_grow_with_the_length_of_the_book(tmp_path: Path) -> None:
    """Processor time at 10⁵ entries against 10²; the clock is the disk's, and is measured by benchmarks/ledger.py."""
    medians = {}
    for size in (100, 100_000):
        with Ledger(f"sqlite:///{tmp_path / str(size)}.db") as ledger:
            book = ledger.open("book", epsilon=100.0, delta=1e-6)
            fill(book, size)
            time_charges(book, count=10)
            medians[size] = statistics.median(time_charges(book, count=100)[1])
            assert book.spent().entries == size + 110
    assert medians[100_000] < 1.5 * medians[100]


def test_a_bulk_loaded_book_is_one_that_charging_would_have_made(tmp_path: Path) -> None:
    with Ledger(f"sqlite:///{tmp_path / 'book.db'}") as ledger:
        book = ledger.open("book", epsilon=100.0, delta=1e-6)
        fill(book, 300)
        time_charges(book, count=5)
        assert ledger.verify().entries == 306
