"""A snapshot is what reports and commands need, read in one transaction; a release is charged first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import discreet as dp
from discreet import cli, events
from discreet.errors import BudgetExceeded, UnitMismatch
from discreet.ledger import Ledger, LedgerError
from discreet.release import ONE_RECORD, Release

TENTH = events.PureDP(epsilon=0.1)


def transactions(engine: Any, work: Callable[[], object]) -> int:
    """How many transactions ``work`` begins."""
    begun: list[object] = []

    def note(connection: sa.Connection) -> None:
        begun.append(connection)

    sa.event.listen(engine, "begin", note)
    try:
        work()
    finally:
        sa.event.remove(engine, "begin", note)
    return len(begun)


def filled(ledger: Ledger) -> dp.ledger.Book:
    book = ledger.open("census", epsilon=1.0, delta=1e-6)
    alice = book.sub("alice", epsilon=0.5)
    alice.sub("monday", epsilon=0.1).charge(TENTH, label="b")
    book.charge(TENTH, label="a")
    book.raise_limit(epsilon=1.0, why="asked for")
    ledger.open("Census", epsilon=2.0)
    return book


def test_a_report_is_one_transaction(ledger: Ledger) -> None:
    book = filled(ledger)
    assert transactions(ledger._store._engine, lambda: dp.report(book)) == 1
    assert transactions(ledger._store._engine, ledger.overview) == 1


def test_a_command_reads_the_books_in_one_transaction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside the one in which a ledger is found to be one when it is opened."""
    path = tmp_path / "budget.db"
    with Ledger(path) as ledger:
        filled(ledger)

    def show(*arguments: str) -> None:
        with pytest.raises(SystemExit) as stopped:
            cli.main(["ledger", "show", *arguments, "--ledger", str(path)])
        assert stopped.value.code == 0

    assert transactions(sa.Engine, show) == 2
    assert transactions(sa.Engine, lambda: show("census")) == 2
    capsys.readouterr()
    assert transactions(sa.Engine, lambda: show("--json")) == 2
    rows = json.loads(capsys.readouterr().out)["books"]
    assert [row["book"] for row in rows] == ["Census", "census", "census/alice", "census/alice/monday"]


def test_a_snapshot_has_the_book_its_history_and_the_books_inside_it(ledger: Ledger) -> None:
    book = filled(ledger)
    seen = book.snapshot(newest=2)
    assert (seen.ledger, seen.head) == (ledger.name, ledger.head())
    assert (seen.book.name, seen.book.charges, seen.book.limit) == ("census", 2, (2.0, 1e-6))
    assert (seen.book.spent, seen.book.remaining) == (book.spent(), book.remaining())
    assert [inner.name for inner in seen.inside] == ["census/alice"]
    assert seen.inside[0].spent == ledger.book("census/alice").spent()
    assert list(seen.entries) == book.entries(newest=2)
    assert [entry.label for entry in seen.raises] == ["asked for"]
    assert seen.first_charge == book.entries()[3]
    assert seen.units == {"record": 2}
    assert [(entry.label, reading.epsilon) for entry, reading in seen.readings] == [("b", 0.1), ("a", 0.2)]
    assert seen.book.reading_at(1e-6).epsilon == 0.2


def test_an_overview_lists_each_book_before_those_inside_it(ledger: Ledger) -> None:
    filled(ledger)
    seen = ledger.overview()
    assert [book.name for book in seen.books] == ["Census", "census", "census/alice", "census/alice/monday"]
    assert [book.name for book in ledger.overview("census/alice").books] == ["census/alice", "census/alice/monday"]
    assert seen.head == ledger.head()
    with pytest.raises(LedgerError, match="no book 'nothing'"):
        ledger.overview("nothing")


class Spy:
    """An operation that notes when it reads."""

    unit = ONE_RECORD

    def __init__(self, event: events.Event) -> None:
        self.event = event
        self.read: list[object] = []

    def release(self, data: Any = None, rng: Any = None) -> Release[float]:
        self.read.append(data)
        return Release(1.0, self.event)


def test_a_book_releases_any_operation_and_is_charged_for_it_first(ledger: Ledger) -> None:
    book = ledger.open("census", epsilon=1.0)
    answer = book.release(dp.statistics.Mean(bounds=(0, 1), epsilon=0.1), [0.0, 1.0, 1.0], label="share", rng=1)
    [_, entry] = book.entries()
    assert (entry.label, entry.cost, entry.unit and entry.unit.unit) == ("share", answer.event, ONE_RECORD)
    assert (answer.label, answer.reproducible) == ("share", True)
    assert book.spent().epsilon <= 0.1


def test_a_release_that_is_refused_reads_nothing_and_leaves_nothing(ledger: Ledger) -> None:
    book, other = ledger.open("census", epsilon=1.0), ledger.open("patients", epsilon=1.0, unit="patient")
    spy, head = Spy(TENTH * 11), ledger.head()
    with pytest.raises(BudgetExceeded, match="'too much' would raise epsilon"):
        book.release(spy, [1.0], label="too much")
    with pytest.raises(UnitMismatch):
        other.release(Spy(TENTH), [1.0])
    assert (spy.read, ledger.head()) == ([], head)
    spy = Spy(TENTH)
    book.release(spy, [1.0])
    assert spy.read == [[1.0]]
    assert ledger.head() != head
