"""Whatever is changed behind a ledger's back is found by verification, and refuses the next charge."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory

from discreet import events
from discreet.adjacency import Adjacency
from discreet.ledger import ChainBroken, Ledger, LedgerError, chain, integrity, rules, schema
from discreet.ledger.pricing import price
from tests.ledger.tampering import (
    ALL,
    BOOK,
    ENTRIES,
    FOLLOWS,
    FORGED,
    TENTH,
    by_hand,
    forged,
    sql,
    tamper,
    unguarded,
    write,
)  # fmt: skip


def fill(ledger: Ledger) -> None:
    """Ten entries: two books, a partition with its parts, and six charges."""
    book = ledger.open(BOOK, epsilon=1.0)
    parts = book.split("region", ["north", "south"])
    ledger.open("other", epsilon=2.0)
    parts["north"].charge(TENTH, label="a")
    for label in ("b", "c"):
        book.charge(TENTH, label=label)
    parts["south"].charge(TENTH, label="d")
    book.charge(TENTH, label="e")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "budget.db"
    with Ledger(f"sqlite:///{path}") as ledger:
        fill(ledger)
        assert ledger.verify().entries == 10
    return path


@pytest.fixture
def path(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(template, tmp_path / "budget.db"))


def state(path: Path) -> tuple[bytes, ...]:
    """Everything the file holds, for "nothing was changed"."""
    return (path.read_bytes()[100:],)


@pytest.mark.parametrize("name", ALL)
def test_tampering_is_found_and_refuses_the_next_charge(path: Path, name: str) -> None:
    """By a process that had checked everything before, by verification, and by a process that starts afterwards."""
    url = f"sqlite:///{path}"
    with Ledger(url) as ledger:
        book = ledger.open(BOOK, epsilon=1.0)
        ledger._integrity.read_history()
        tamper(str(path), ALL[name])
        before = state(path)
        for _ in range(2):
            with pytest.raises(LedgerError):
                book.charge(TENTH)
            with pytest.raises(LedgerError):
                book.spent()
        with pytest.raises(LedgerError):
            ledger.verify()
    with Ledger(url) as fresh:
        with pytest.raises(LedgerError):
            fresh.book("other").charge(TENTH)
        with pytest.raises(LedgerError):
            fresh.open("another", epsilon=1.0)
        with pytest.raises(LedgerError):
            fresh.verify()
    assert state(path) == before


@pytest.mark.parametrize(
    "name", ["a price made free", "totals emptied", "an event without its price", "no head", "a refund"]
)
def test_tampering_with_postgresql_refuses_the_next_charge(postgres: str, name: str) -> None:
    with Ledger(postgres) as ledger:
        fill(ledger)
        with ledger._store.write() as connection:
            unguarded(connection)
            (ENTRIES | FOLLOWS | FORGED)[name](connection)
        for tried in (ledger, Ledger(postgres)):
            with pytest.raises(LedgerError):
                tried.book(BOOK).charge(TENTH)
            with pytest.raises(LedgerError):
                tried.verify()
            tried.close()


def test_an_untouched_ledger_is_charged_and_verified(path: Path) -> None:
    """So that the refusals above are not of everything; nor of what a forger appends at its right price."""
    tamper(str(path), forged())
    with Ledger(f"sqlite:///{path}") as ledger:
        ledger.book(BOOK).charge(TENTH)
        assert ledger.verify().entries == 12


def test_a_cut_tail_put_right_everywhere_is_missed_by_nobody_who_saw_it(path: Path) -> None:
    """A process that starts later cannot know; for that there is the anchored head."""
    url = f"sqlite:///{path}"
    shutil.copy(path, path.with_suffix(".old"))
    with Ledger(url) as ledger:
        ledger.book(BOOK).charge(TENTH)
        head = ledger.head()
        shutil.copy(path.with_suffix(".old"), path)
        for _ in range(2):
            with pytest.raises(ChainBroken, match="tail is cut off"):
                ledger.book(BOOK).charge(TENTH)
    with Ledger(url) as fresh:
        fresh.book(BOOK).charge(events.PureDP(epsilon=0.01))
        with pytest.raises(ChainBroken, match="rewritten"):
            fresh.verify(head=head)


@pytest.mark.parametrize("busy", [False, True], ids=["alone", "while another charges"])
@pytest.mark.parametrize("way", ["edited", "replaced", "deleted"])
def test_an_old_entry_changed_while_a_process_runs_is_refused_at_its_next_charge(
    url: str, way: str, busy: bool
) -> None:
    """On both stores, however long ago it was read, and though somebody else has charged honestly since."""
    number = 5
    with Ledger(url) as ledger, Ledger(url) as other:
        book = ledger.open(BOOK, epsilon=1000.0)
        for _ in range(12):
            book.charge(TENTH)
        honest = other.book(BOOK)
        honest.charge(TENTH)
        book.charge(TENTH)  # both have read everything
        edited = replace(ledger.entries()[number - 1], label="x")
        columns = {"edited": "label = 'x'", "replaced": f"label = 'x', hash = '{edited.digest()}'"}
        outside = sa.create_engine(ledger._store._engine.url, poolclass=sa.NullPool)
        with outside.begin() as connection:
            unguarded(connection)
            connection.exec_driver_sql(
                f"DELETE FROM discreet_entries WHERE seq = {number}"
                if way == "deleted"
                else f"UPDATE discreet_entries SET {columns[way]} WHERE seq = {number}"
            )
        outside.dispose()
        if busy:  # by a process that looks at nothing: what it appends is honest
            with other._store.write() as connection:
                forged()(connection)
        found = f"Entry {number + (way == 'replaced')}"
        for _ in range(2):
            with pytest.raises(ChainBroken, match=found):
                book.charge(TENTH)
        with pytest.raises(ChainBroken, match=found):
            honest.charge(TENTH)


def test_who_is_alone_reads_no_old_entries_and_who_is_not_reads_them_once(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On PostgreSQL a scan stands for hashes that were computed before."""
    ranges: list[tuple[int, int]] = []
    follow = chain.follow

    def noting(connection: sa.Connection, after: int, last: int, digest: str | None) -> str:
        ranges.append((after, last))
        return follow(connection, after, last, digest)

    monkeypatch.setattr(chain, "follow", noting)
    with Ledger(url) as ledger, Ledger(url) as other:
        book, honest = ledger.open(BOOK, epsilon=1000.0), other.open(BOOK, epsilon=1000.0)
        for _ in range(3):
            book.charge(TENTH)
        if ledger._store.address.sqlite:  # on a server somebody else may write to another database at any time
            assert ranges == []
        honest.charge(TENTH)
        ranges.clear()
        book.charge(TENTH)  # entry 6
        assert ranges == [(0, 4)]
        honest.charge(TENTH)
        ranges.clear()
        book.charge(TENTH)
        assert ranges == ([(0, 6)] if ledger._store.address.sqlite else [(5, 6)])


def test_bytes_changed_behind_the_back_of_the_database_come_up_in_turn(ledger: Ledger) -> None:
    """Where nothing tells that anybody wrote, old entries are read again, some at a time."""
    book = ledger.open(BOOK, epsilon=1000.0)
    for _ in range(12):
        book.charge(TENTH)
    with ledger._store.write() as connection:
        unguarded(connection)
        connection.execute(sa.text("UPDATE discreet_entries SET label = 'x' WHERE seq = 5"))
    ledger._store._written -= 1  # as if it had not been seen
    with pytest.raises(ChainBroken, match="Entry 5 was edited"):  # noqa: PT012
        for _ in range(integrity.EVERY):
            book.charge(TENTH)


def test_old_entries_are_read_again_to_the_end_and_from_the_start(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integrity, "PER_CHARGE", 1)
    book, seen = ledger.open(BOOK, epsilon=1000.0), []
    for _ in range(4 * integrity.EVERY):
        book.charge(TENTH)
        seen.append(ledger._integrity._next)
    assert sorted(set(seen)) == [0, 7, 14, 21]
    assert seen[0] == 0


def test_a_book_of_other_terms_in_the_same_place_is_refused(tmp_path: Path) -> None:
    """The price was worked out for the terms the book was opened with: here for another adjacency."""
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    with Ledger(url) as ledger:
        book = ledger.open(BOOK, epsilon=1.0, delta=1e-6)
    (tmp_path / "budget.db").unlink()
    with Ledger(url) as ledger, Ledger(url) as again:
        ledger.open(BOOK, epsilon=1.0, delta=1e-6, adjacency="replace")
        book.ledger = again
        with pytest.raises(LedgerError, match=r"another ledger has taken its place\. Nothing was charged"):
            book.charge(events.Gaussian(noise_multiplier=10.0))
        assert again.verify().entries == 1


def test_a_process_refuses_to_write_once_another_version_has_changed_the_tables(url: str) -> None:
    with Ledger(url) as ledger:
        book = ledger.open(BOOK, epsilon=1.0)
        book.charge(TENTH)
        head = ledger.head()
        with ledger._store.write() as connection:
            connection.execute(sa.text("UPDATE discreet_schema SET version_num = '9999'"))
        for attempt in (lambda: book.charge(TENTH), lambda: ledger.open("other", epsilon=1.0)):
            with pytest.raises(LedgerError, match=r"schema version 9999.*Nothing was charged"):
                attempt()
        assert ledger.head() == head


def test_the_version_that_is_written_is_that_of_the_newest_migration(ledger: Ledger) -> None:
    with ledger._store.read() as connection:
        scripts = ScriptDirectory.from_config(schema._config(connection))
    assert scripts.get_heads() == [schema.CURRENT]


def test_a_process_of_a_version_that_knows_no_rules_cannot_write(url: str) -> None:
    """One that was started before the ledger was brought forward, and looks at no version."""
    with Ledger(url) as ledger:
        ledger.open(BOOK, epsilon=1.0).charge(TENTH)
        with pytest.raises(LedgerError, match="newer version of discreet"), ledger._store.write() as connection:
            by_hand(ledger, connection).append(book=BOOK, kind="charge", event=TENTH.to_json(), rules="")
        assert ledger.verify().entries == 2


def test_a_snapshot_of_a_ledger_with_an_edited_price_says_that_it_was_edited(path: Path) -> None:
    """Not with the parser's own error."""
    edits = {
        "Entry 8 was edited": sql("UPDATE discreet_entries SET price = 'free' WHERE seq = 8"),
        "Entry 1 was edited": ENTRIES["terms that are no JSON"],
    }
    with Ledger(f"sqlite:///{path}") as ledger:
        for found, edit in edits.items():
            tamper(str(path), edit)
            with pytest.raises(ChainBroken, match=found):
                ledger.book(BOOK).snapshot()


def test_the_history_is_read_before_anybody_has_to_wait_for_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first charge of a process takes the lock when it has read everything, however long that took."""
    with Ledger(f"sqlite:///{path}") as ledger:
        read: list[int] = []
        write = ledger._store.write

        def noting() -> AbstractContextManager[sa.Connection]:
            read.append(ledger._integrity._replay.seq)
            return write()

        monkeypatch.setattr(ledger._store, "write", noting)
        ledger.book(BOOK).charge(TENTH)
    assert read == [10]


def test_a_process_that_found_something_wrong_starts_from_the_first_entry_again(path: Path) -> None:
    """Found by the state machine: after a refusal, and a charge by somebody else,
    an entry in the middle went unseen.
    """
    url = f"sqlite:///{path}"
    with Ledger(url) as ledger, Ledger(url) as other:
        before = path.read_bytes()
        other._integrity.read_history()
        tamper(str(path), FOLLOWS["totals emptied"])
        with pytest.raises(ChainBroken):
            other.book(BOOK).charge(TENTH)
        path.write_bytes(before)
        ledger.book(BOOK).charge(TENTH)
        tamper(str(path), ENTRIES["entry 2 deleted"])
        with pytest.raises(ChainBroken, match="Entry 2"):
            other.book(BOOK).charge(TENTH)


@pytest.mark.parametrize("head", ["0:" + "ab" * 32, "3:" + "ab" * 32, "10:" + "0" * 64, "11:" + "ab" * 32])
def test_only_a_head_that_was_found_in_the_chain_is_an_anchor(path: Path, head: str) -> None:
    with Ledger(f"sqlite:///{path}") as ledger, pytest.raises(ChainBroken):
        ledger.verify(head=head)


def test_every_head_of_the_chain_is_an_anchor(path: Path) -> None:
    with Ledger(f"sqlite:///{path}") as ledger:
        for entry in ledger.entries():
            assert ledger.verify(head=f"{entry.seq}:{entry.hash}").anchored
        assert ledger.verify(head=f"0:{chain.GENESIS}").anchored
        assert not ledger.verify().anchored


def test_each_way_to_price_an_event_is_recomputed(ledger: Ledger) -> None:
    """Leaf by leaf, as a plan by the tight account, as a plan by basic composition, as a whole at a named delta."""
    gaussian, approximate = events.Gaussian(noise_multiplier=20.0), events.ApproxDP(epsilon=0.5, delta=1e-6)
    book = ledger.open("a", epsilon=3.0, delta=1e-6)
    book.plan(gaussian * 10)
    book.charge(TENTH)
    book.charge(gaussian * 5, delta=1e-8)
    ledger.open("b", epsilon=1.0, delta=1e-6).charge(approximate)
    ledger.open("c", epsilon=3.0, delta=1e-6, adjacency="replace").reserve(gaussian)
    judged: list[str] = [entry.price for entry in ledger.entries() if entry.price]
    rules.check_price.cache_clear()
    assert ledger.verify().entries == 8
    assert rules.check_price.cache_info().misses == len(judged) == 5


@pytest.mark.parametrize("factor", [0.5, 0.999_999, 1.000_001, 2.0])
def test_a_price_agrees_within_rounding_only(factor: float) -> None:
    exact = price(TENTH, Adjacency.ADD_REMOVE)
    assert rules.check_price(TENTH.to_json(), exact.to_json(), Adjacency.ADD_REMOVE, rules.CURRENT) == exact
    other = replace(exact, mu2=round(exact.mu2 * factor))
    with pytest.raises(ChainBroken, match="does not follow"):
        rules.check_price(TENTH.to_json(), other.to_json(), Adjacency.ADD_REMOVE, rules.CURRENT)


@pytest.mark.parametrize("event", [events.ApproxDP(epsilon=0.1, delta=1e-15), events.PureDP(epsilon=1e-15)], ids=str)
def test_a_cost_that_is_small_is_not_taken_for_none(event: events.Event) -> None:
    """A book may keep less than any fixed tolerance: a delta of 1e-16, say."""
    honest = price(event, Adjacency.ADD_REMOVE)
    for name in ("delta", "pure"):
        if getattr(honest, name):
            low = replace(honest, **{name: 0 * getattr(honest, name)})
            with pytest.raises(ChainBroken, match="does not follow"):
                rules.check_price(event.to_json(), low.to_json(), Adjacency.ADD_REMOVE, rules.CURRENT)


def test_older_entries_must_reach_todays_price(ledger: Ledger) -> None:
    """Their own rules are gone, and some were low: more than today's price is accepted, less is refused."""
    book = ledger.open(BOOK, epsilon=1.0)
    book.charge(TENTH)
    template = ledger.entries()[-1]
    for paid, refused in ((0.2, False), (0.05, True)):
        more = price(events.PureDP(epsilon=paid), Adjacency.ADD_REMOVE)
        draft = replace(template, rules="", price=more.to_json())
        assert draft.digest() == replace(draft, rules="").digest()
        if refused:
            with pytest.raises(ChainBroken, match="does not follow"):
                rules.check_price(draft.event, draft.price, Adjacency.ADD_REMOVE, "")
        else:
            assert rules.check_price(draft.event, draft.price, Adjacency.ADD_REMOVE, "") == more


def test_a_ledger_of_the_first_schema_is_brought_forward_and_still_verifies(tmp_path: Path) -> None:
    """Entries without rules keep their hashes, are judged, and are followed by entries that name theirs."""
    path = tmp_path / "budget.db"
    with Ledger(f"sqlite:///{path}") as ledger:
        ledger.open(BOOK, epsilon=1.0).charge(TENTH)
        entries = ledger.entries()
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        unguarded(connection)
        connection.execute(sa.text("DELETE FROM discreet_entries"))
        previous = chain.GENESIS
        for entry in entries:
            write(connection, replace(entry, rules="", previous=previous))
            previous = replace(entry, rules="", previous=previous, hash="").digest()
        connection.execute(sa.text("ALTER TABLE discreet_entries DROP COLUMN rules"))
        connection.execute(sa.text("UPDATE discreet_schema SET version_num = '0001'"))
    engine.dispose()
    with Ledger(f"sqlite:///{path}") as ledger:
        assert [entry.rules for entry in ledger.entries()] == ["", ""]
        assert ledger.verify().entries == 2
        assert ledger.book(BOOK).charge(TENTH).rules == rules.CURRENT
        assert ledger.verify().entries == 3


def test_a_ledger_whose_making_was_cut_short_is_made(tmp_path: Path) -> None:
    """A version table without a version, and nothing else, is what comes before the first migration."""
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'budget.db'}")
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE discreet_schema (version_num VARCHAR(32) NOT NULL)"))
    engine.dispose()
    with Ledger(f"sqlite:///{tmp_path / 'budget.db'}") as ledger:
        ledger.open(BOOK, epsilon=1.0).charge(TENTH)
        assert ledger.verify().entries == 2
