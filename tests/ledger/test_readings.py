"""Whatever is read of a ledger stands on a verified chain: totals, histories, reports, in Python and by commands."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

import discreet as dp
from discreet import Ledger
from discreet.cli import app
from discreet.ledger import Book, ChainBroken, LedgerError, chain, schema
from tests.ledger.tampering import BOOK, ENTRIES, FOLLOWS, TENTH, Tampering, sql, tamper, unguarded


def swap_totals(connection: sa.Connection) -> None:
    """Each of two books with the totals of the other."""
    totals = {row.name: row.amounts for row in connection.execute(sa.select(schema.books))}
    for name, other in ((BOOK, "other"), ("other", BOOK)):
        connection.execute(sa.update(schema.books).where(schema.books.c.name == name).values(amounts=totals[other]))


def cut(connection: sa.Connection) -> None:
    """The last entries, and a head that agrees with what is left: only the totals tell."""
    connection.execute(sa.delete(schema.entries).where(schema.entries.c.seq > 4))
    last = connection.execute(sa.select(schema.entries).order_by(schema.entries.c.seq.desc()).limit(1)).one()
    connection.execute(sa.update(schema.head).values(seq=last.seq, at=last.at, hash=last.hash))


TAMPERED: dict[str, Tampering] = {
    "an amount edited": sql("UPDATE discreet_entries SET price = replace(price, '1/10', '0') WHERE seq = 4"),
    "totals edited": sql("UPDATE discreet_books SET amounts = replace(amounts, '3/10', '0') WHERE name = 'census'"),
    "totals swapped": swap_totals,
    "entries cut": cut,
    "a tail cut": sql("DELETE FROM discreet_entries WHERE seq > 4"),
    "the head replaced": FOLLOWS["the head moved back"],
    "another head": FOLLOWS["the head's hash"],
    "a limit raised": FOLLOWS["a limit raised"],
}

READINGS: dict[str, Callable[[Ledger], Any]] = {
    "spent": lambda ledger: ledger.book(BOOK).spent(),
    "remaining": lambda ledger: ledger.book(BOOK).remaining(),
    "limit": lambda ledger: ledger.book(BOOK).limit,
    "affords": lambda ledger: ledger.book(BOOK).affords(TENTH),
    "snapshot": lambda ledger: ledger.book(BOOK).snapshot(),
    "entries": lambda ledger: ledger.book(BOOK).entries(),
    "books": lambda ledger: ledger.books(),
    "books inside": lambda ledger: Book(ledger, BOOK, ledger.book("other").terms).books(),
    "overview": lambda ledger: ledger.overview(),
    "head": lambda ledger: ledger.head(),
    "history": lambda ledger: ledger.entries(),
    "open": lambda ledger: ledger.open(BOOK, epsilon=1.0),
    "report": lambda ledger: dp.report(ledger.book(BOOK)),
}
COMMANDS = {
    "show": ["ledger", "show"],
    "history": ["ledger", "history", BOOK],
    "export": ["ledger", "export"],
    "plot": ["ledger", "plot", BOOK, "--out", "{folder}/burn.svg"],
    "report": ["report", BOOK, "--out", "{folder}/report.html"],
}


def fill(ledger: Ledger) -> Book:
    book = ledger.open(BOOK, epsilon=1.0)
    other = ledger.open("other", epsilon=2.0)
    other.charge(TENTH)
    for label in "abc":
        book.charge(TENTH, label=label)
    return book


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "budget.db"
    with Ledger(path) as ledger:
        fill(ledger)
    return path


@pytest.fixture
def path(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(template, tmp_path / "budget.db"))


@pytest.mark.parametrize("name", TAMPERED)
def test_no_reading_of_a_tampered_ledger_is_answered(path: Path, name: str) -> None:
    """Neither by a process that had read everything before, nor by one that starts afterwards."""
    with Ledger(path) as running:
        book = running.book(BOOK)
        honest = {key: reading(running) for key, reading in READINGS.items()}
        assert honest["spent"].epsilon == pytest.approx(0.3)
        tamper(str(path), TAMPERED[name])
        with Ledger(path) as fresh:
            for ledger in (running, fresh):
                for reading in READINGS.values():
                    with pytest.raises(LedgerError):
                        reading(ledger)
        for attempt in (book.spent, book.remaining, lambda: book.affords(TENTH), book.snapshot, book.entries):
            with pytest.raises(ChainBroken):
                attempt()


@pytest.mark.parametrize("name", ["an amount edited", "totals edited", "totals swapped", "entries cut", "another head"])
def test_no_reading_of_a_tampered_server_is_answered(postgres: str, name: str) -> None:
    with Ledger(postgres) as ledger, Ledger(postgres) as other:
        fill(ledger)
        assert other.book(BOOK).spent().epsilon == pytest.approx(0.3)
        outside = sa.create_engine(ledger._store._engine.url, poolclass=sa.NullPool)
        with outside.begin() as connection:
            unguarded(connection)
            TAMPERED[name](connection)
        outside.dispose()
        with Ledger(postgres) as fresh:
            for reader in (ledger, other, fresh):
                for reading in READINGS.values():
                    with pytest.raises(LedgerError):
                        reading(reader)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_say_that_the_chain_holds_or_refuse(path: Path, command: str, tmp_path: Path) -> None:
    """At the top; and with --anyway in red, on the page as well."""
    words = [word.format(folder=tmp_path) for word in COMMANDS[command]]
    ask = lambda *more: CliRunner().invoke(app(), [*words, *more, "--ledger", str(path)])  # noqa: E731
    with Ledger(path) as ledger:
        head = ledger.head()
    whole = ask()
    assert whole.exit_code == 0
    assert head in whole.output
    if command == "export":
        assert json.loads(whole.stdout)["chain"] == {"verified": True, "entries": 6, "head": head, "problem": None}
    else:
        assert whole.output.startswith(f"Chain verified up to entry 6; fingerprint of the last entry (head): {head}")
    tamper(str(path), TAMPERED["totals edited"])
    for made in tmp_path.glob("[br]*.[sh]*"):
        made.unlink()
    refused = ask()
    assert refused.exit_code != 0
    assert isinstance(refused.exception, ChainBroken | SystemExit)
    assert not [made.name for made in tmp_path.glob("*.[sh]*")]
    shown = ask("--anyway")
    assert shown.exit_code == 0
    assert "THE CHAIN IS BROKEN" in shown.stderr
    assert "Chain verified" not in shown.output


def test_what_is_written_of_a_broken_ledger_says_so_itself(path: Path, tmp_path: Path) -> None:
    """A file outlives the terminal."""
    tamper(str(path), TAMPERED["an amount edited"])

    def ask(*words: str) -> str:
        result = CliRunner().invoke(app(), [*words, "--anyway", "--ledger", str(path)])
        assert result.exit_code == 0, result.output
        return result.stdout

    ask("report", BOOK, "--out", str(tmp_path / "page.html"))
    page = (tmp_path / "page.html").read_text()
    assert '<p class="banner">THE CHAIN IS BROKEN' in page
    assert '<p class="banner">Nothing on this page is vouched for' in page
    ask("report", BOOK, "--out", str(tmp_path / "page.json"))
    facts = json.loads((tmp_path / "page.json").read_text())
    assert facts["ledger"]["verified"] is False
    assert "Entry 4 was edited" in facts["ledger"]["problem"]
    ask("ledger", "plot", BOOK, "--out", str(tmp_path / "burn.svg"))
    assert "THE CHAIN IS BROKEN" in (tmp_path / "burn.svg").read_text()
    assert json.loads(ask("ledger", "show", "--json"))["chain"]["verified"] is False
    assert json.loads(ask("ledger", "history", BOOK, "--json"))["chain"]["verified"] is False
    assert {line.rsplit(",", 1)[1] for line in ask("ledger", "export", "-f", "csv").splitlines()[1:]} == {"BROKEN"}


@pytest.mark.parametrize("name", [*TAMPERED, "the first entry deleted", "two heads"])
def test_a_ledger_that_is_read_anyway_says_why_and_takes_no_charge(path: Path, name: str) -> None:
    more = {"the first entry deleted": ENTRIES["entry 1 deleted"], "two heads": FOLLOWS["two heads"]}
    tamper(str(path), (TAMPERED | more)[name])
    with Ledger(path, anyway=True) as ledger:
        assert ledger.overview().broken
        seen = ledger.book(BOOK).snapshot()
        assert seen.broken
        assert dp.report(ledger.book(BOOK)).facts["verdict"].startswith("Nothing on this page is vouched for")
        with pytest.raises(LedgerError):
            ledger.book(BOOK).charge(TENTH)
    with Ledger(path.with_name("whole.db"), anyway=True) as ledger:  # of a whole one there is nothing to say
        assert fill(ledger).snapshot().broken == ledger.overview().broken == ""


def test_readings_between_charges_read_no_old_entries(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the last verified head on: a dashboard does not hash the history each second."""
    ranges: list[tuple[int, int]] = []
    follow = chain.follow

    def noting(connection: sa.Connection, after: int, last: int, digest: str | None) -> str:
        ranges.append((after, last))
        return follow(connection, after, last, digest)

    with Ledger(url) as ledger:
        book = fill(ledger)
        book.spent()
        monkeypatch.setattr(chain, "follow", noting)
        monkeypatch.setattr("discreet.ledger.integrity.EVERY", 10**6)
        for _ in range(5):
            book.spent()
            book.charge(dp.events.PureDP(epsilon=0.01))
            book.remaining()
        if ledger._store.address.sqlite:  # on a server somebody else may write to another database at any time
            assert ranges == []
        assert book.spent().entries == 8


def test_readers_and_writers_at_once_never_mistake_each_other_for_tampering(url: str) -> None:
    """A view that was fixed before another thread's charge is not a tail cut off."""
    with Ledger(url) as ledger:
        book, wrong, done = ledger.open(BOOK, epsilon=100.0), [], threading.Event()

        def read() -> None:
            seen = 0
            while not done.is_set():
                try:
                    now = book.spent().entries
                    assert now >= seen
                    seen = now
                    book.entries(newest=1)
                except Exception as error:
                    wrong.append(error)
                    return

        def write() -> None:
            try:
                for _ in range(25):
                    book.charge(TENTH)
            except Exception as error:
                wrong.append(error)

        readers, writers = ([threading.Thread(target=work) for _ in range(2)] for work in (read, write))
        for thread in (*readers, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        done.set()
        for thread in readers:
            thread.join()
        assert wrong == []
        assert book.spent().entries == 50
