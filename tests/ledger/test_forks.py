"""A fork, a copy or a pickle of what was charged once is never drawn on twice,
and nobody waits for a lock it copied.
"""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from discreet import events, forks
from discreet.errors import BudgetExceeded
from discreet.forks import here
from discreet.ledger import Ledger, LedgerError, Reservation
from tests.ledger import children

STEP = events.PureDP(epsilon=0.1)


def in_child(work: Callable[[], str]) -> str:
    """What ``work`` returns in a forked child, or the error it raises there."""

    def attempt(say: Callable[[str], None]) -> None:
        try:
            say(work())
        except Exception as error:
            say(f"{type(error).__name__}: {error}")

    return "\n".join(children.in_child(attempt))


def drawn(job: Reservation) -> str:
    job.charge(STEP, label="draw")
    return "drawn"


@pytest.mark.parametrize("kind", ["reserve", "plan"])
def test_a_forked_child_draws_nothing(ledger: Ledger, kind: str) -> None:
    job = getattr(ledger.open("census", epsilon=1.0), kind)(STEP * 2, label="job")
    for _ in range(4):
        said = in_child(lambda: drawn(job))
        assert said.startswith("BudgetExceeded: A forked process drew on the reservation")
        assert "reserve its own part" in said
    assert [drawn(job), drawn(job)] == ["drawn", "drawn"]
    with pytest.raises(BudgetExceeded, match="has 0 of that kind left"):
        drawn(job)


def test_a_child_forked_while_another_thread_draws_does_not_wait_for_its_lock(ledger: Ledger) -> None:
    job = ledger.open("census", epsilon=1.0).reserve(STEP * 2)
    with job._lock:
        assert in_child(lambda: drawn(job)).startswith("BudgetExceeded")


def test_workers_of_multiprocessing_draw_nothing(ledger: Ledger) -> None:
    job = ledger.open("census", epsilon=1.0).reserve(STEP * 2)
    context = multiprocessing.get_context("fork")
    said: multiprocessing.SimpleQueue[str] = context.SimpleQueue()

    def work() -> None:
        try:
            said.put(drawn(job))
        except BudgetExceeded as error:
            said.put(str(error))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        worker = context.Process(target=work)
        worker.start()
    assert "forked process" in said.get()
    worker.join()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_there_is_never_a_second_reservation(ledger: Ledger, copied: Callable[[object], object]) -> None:
    job = ledger.open("census", epsilon=1.0).reserve(STEP * 2)
    with pytest.raises(TypeError, match="every copy could draw the whole"):
        copied(job)


def test_a_child_has_another_name_than_its_parent_even_under_the_same_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 7)
    home = here()
    assert in_child(lambda: str(here() == home)) == "False"
    assert here() == home


def test_a_ledger_in_memory_is_not_a_second_budget_in_a_child(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0)

    def work() -> str:
        return str(book.charge(STEP))

    assert "second budget" in in_child(work)
    assert book.charge(STEP).seq == 2


def test_children_charge_the_same_file(url: str) -> None:
    """One budget for all of them, and the parent goes on."""
    with Ledger(url) as ledger:
        book = ledger.open("census", epsilon=0.5)
        said = [in_child(lambda: f"charged {book.charge(STEP).seq}") for _ in range(3)]
        assert said == ["charged 2", "charged 3", "charged 4"]
        assert book.charge(STEP).seq == 5
        assert book.charge(STEP).seq == 6
        assert in_child(lambda: str(book.charge(STEP))).startswith("BudgetExceeded")
        assert ledger.verify().entries == 6


def test_a_fork_waits_for_the_charge_of_another_thread(tmp_path: Path) -> None:
    """Otherwise the child inherits a lock that nobody will ever release, and waits for two minutes."""
    with Ledger(f"sqlite:///{tmp_path / 'budget.db'}") as ledger:
        book = ledger.open("census", epsilon=1.0)
        inside, fork_started = threading.Event(), threading.Event()

        def slow() -> None:
            with ledger._store.write():
                inside.set()
                fork_started.wait()

        thread = threading.Thread(target=slow)
        thread.start()
        inside.wait()
        [turn] = [turn for turn in forks._turns if turn is ledger._store._turn]
        pause = turn.pause
        turn.pause = lambda patience: (fork_started.set(), pause(patience))[1]  # type: ignore[method-assign]
        start = time.monotonic()
        assert in_child(lambda: f"charged {book.charge(STEP).seq}") == "charged 2"
        assert time.monotonic() - start < 60
        thread.join()
        assert book.charge(STEP).seq == 3
        assert ledger.verify().entries == 3


def test_a_child_cut_off_from_a_charge_that_does_not_end_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, by the copied ledger and by one it opens on the same file; the parent is not hurt."""
    monkeypatch.setattr(forks, "PATIENCE", 0.01)
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    with Ledger(url) as ledger, Ledger(f"sqlite:///{tmp_path / 'other.db'}") as other:
        book, free = ledger.open("census", epsilon=1.0), other.open("census", epsilon=1.0)
        inside, end = threading.Event(), threading.Event()

        def stuck() -> None:
            with ledger._store.write():
                inside.set()
                end.wait()

        thread = threading.Thread(target=stuck)
        thread.start()
        inside.wait()
        for work in (lambda: book.charge(STEP), lambda: Ledger(url)):
            assert "when this process was forked" in in_child(lambda work=work: str(work()))  # type: ignore[misc]
        assert in_child(lambda: f"charged {free.charge(STEP).seq}") == "charged 2"
        end.set()
        thread.join()
        assert book.charge(STEP).seq == 2


def test_a_fork_in_the_middle_of_its_own_transaction_leaves_the_child_out(tmp_path: Path) -> None:
    with Ledger(f"sqlite:///{tmp_path / 'budget.db'}") as ledger:
        book = ledger.open("census", epsilon=1.0)
        with ledger._store.write():
            assert "when this process was forked" in in_child(lambda: str(book.charge(STEP)))
        assert book.charge(STEP).seq == 2


def test_a_thread_that_waits_too_long_is_told_so(tmp_path: Path) -> None:
    turn = forks.Turn("", LedgerError)
    with turn.hold(1.0):
        caught: list[Exception] = []

        def wait() -> None:
            try:
                with turn.hold(0.01):
                    pass
            except LedgerError as error:
                caught.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
    assert "Another thread held the ledger" in str(caught[0])
