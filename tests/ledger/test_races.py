"""Many processes, one book: the limit holds, nothing is lost or doubled, nobody waits for ever."""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
import warnings
from pathlib import Path

import pytest

from discreet import events
from discreet.errors import BudgetExceeded
from discreet.ledger import Ledger

PROCESSES = 8
STEP = events.PureDP(epsilon=0.001)


def worker(url: str, number: int, turns: int, granted: multiprocessing.SimpleQueue[list[int]]) -> None:
    seen: list[int] = []
    try:
        with Ledger(url, who=f"process {number}", create=False) as ledger:
            book = ledger.book("race")
            for turn in range(turns):
                with contextlib.suppress(BudgetExceeded):
                    seen.append(book.charge(STEP, label=f"{number}/{turn}").seq)
    finally:
        granted.put(seen)  # also when it fails, so that the parent does not wait for ever


@pytest.mark.parametrize("charges", [160, pytest.param(5_000, marks=pytest.mark.slow)])
def test_eight_processes_race_for_one_book(url: str, charges: int) -> None:
    """Exactly as many are granted as fit, each granted one is in the chain once, and the chain verifies."""
    admitted = charges * 4 // 5
    with Ledger(url) as ledger:
        ledger.open("race", epsilon=float(admitted) / 1000)
    context = multiprocessing.get_context("fork")
    granted: multiprocessing.SimpleQueue[list[int]] = context.SimpleQueue()
    crowd = [context.Process(target=worker, args=(url, n, charges // PROCESSES, granted)) for n in range(PROCESSES)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # fork in a threaded parent; no lock of it is used here
        for process in crowd:
            process.start()
    sequences = [seq for _ in crowd for seq in granted.get()]
    for process in crowd:
        process.join()
    assert [process.exitcode for process in crowd] == [0] * PROCESSES
    assert len(sequences) == len(set(sequences)) == admitted
    with Ledger(url, create=False) as ledger:
        assert ledger.verify().entries == admitted + 1
        history = ledger.book("race").entries()
        assert sorted(sequences) == [entry.seq for entry in history if entry.kind == "charge"]
        assert len({entry.label for entry in history}) == admitted + 1
        assert ledger.book("race").spent().epsilon == admitted / 1000


def test_threads_share_one_ledger(tmp_path: Path) -> None:
    """A ledger in memory or in a file may be charged from several threads."""
    for url in ("sqlite://", f"sqlite:///{tmp_path / 'threads.db'}"):
        with Ledger(url) as ledger:
            book = ledger.open("shared", epsilon=1.0)
            granted: list[int] = []

            def charge(book=book, granted=granted) -> None:  # type: ignore[no-untyped-def]
                for _ in range(10):
                    try:
                        granted.append(book.charge(events.PureDP(epsilon=0.05)).seq)
                    except BudgetExceeded:
                        continue

            threads = [threading.Thread(target=charge) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(set(granted)) == 20
            assert ledger.verify().entries == 21


def test_two_who_open_the_same_book_at_once_get_the_same_book(url: str) -> None:
    with Ledger(url) as one, Ledger(url) as other:
        assert one.open("a", epsilon=1.0).name == other.open("a", epsilon=1.0).name
        assert one.verify().books == 1


def test_a_book_filled_by_another_connection_refuses(url: str) -> None:
    with Ledger(url) as one, Ledger(url) as other:
        book = one.open("a", epsilon=1.0)
        book.charge(events.PureDP(epsilon=1.0))
        with pytest.raises(BudgetExceeded):
            other.book("a").charge(events.PureDP(epsilon=0.5), label="late")
        assert one.verify().entries == 2
