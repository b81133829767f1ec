"""The chain shows any edit, deletion, addition or reorder; the anchored head shows the rest."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa

import discreet
from discreet import events
from discreet.adjacency import Adjacency
from discreet.ledger import ChainBroken, Ledger, chain, schema
from discreet.ledger.chain import Entry
from discreet.ledger.integrity import IntegrityCheck
from discreet.ledger.pricing import price

TEXTS = [column.name for column in schema.entries.columns if column.name != "seq"]


@pytest.fixture
def written(ledger: Ledger) -> Ledger:
    """Five entries in two books."""
    book = ledger.open("census", epsilon=1.0)
    ledger.open("other", epsilon=2.0)
    for label in ("a", "b", "c"):
        book.charge(events.PureDP(epsilon=0.1), label=label)
    assert ledger.verify().entries == 5
    return ledger


def tamper(ledger: Ledger, *statements: str) -> None:
    """Edit the tables, after taking down the guards against accidents."""
    with ledger._store.write() as connection:
        for verb in ("update", "delete"):
            connection.execute(sa.text(f"DROP TRIGGER IF EXISTS discreet_entries_no_{verb}"))
        for statement in statements:
            connection.exec_driver_sql(statement)


@pytest.mark.parametrize("column", TEXTS)
@pytest.mark.parametrize("seq", [1, 4, 5])
def test_an_edit_of_any_column_is_found(written: Ledger, column: str, seq: int) -> None:
    tamper(written, f"UPDATE discreet_entries SET {column} = {column} || '0' WHERE seq = {seq}")
    with pytest.raises(ChainBroken):
        written.verify()


@pytest.mark.parametrize("seq", [1, 2, 3, 4, 5])
def test_a_deletion_is_found(written: Ledger, seq: int) -> None:
    tamper(written, f"DELETE FROM discreet_entries WHERE seq = {seq}")
    with pytest.raises(ChainBroken):
        written.verify()


def test_a_reorder_is_found(written: Ledger) -> None:
    swap = "UPDATE discreet_entries SET seq = {} WHERE seq = {}"
    tamper(written, swap.format(99, 3), swap.format(3, 4), swap.format(4, 99))
    with pytest.raises(ChainBroken, match="Entry 3 does not follow"):
        written.verify()


def test_a_renumbered_deletion_is_found(written: Ledger) -> None:
    tamper(written, "DELETE FROM discreet_entries WHERE seq = 4", "UPDATE discreet_entries SET seq = 4 WHERE seq = 5")
    with pytest.raises(ChainBroken, match="Entry 4 does not follow"):
        written.verify()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE discreet_books SET terms = replace(terms, '1.0', '9.0') WHERE name = 'census'",
        "UPDATE discreet_books SET amounts = (SELECT amounts FROM discreet_books WHERE name = 'other')",
        "UPDATE discreet_books SET parent = 'other' WHERE name = 'census'",
        "UPDATE discreet_head SET seq = 4",
        "DELETE FROM discreet_head",
        "DELETE FROM discreet_books WHERE name = 'other'",
        "INSERT INTO discreet_books SELECT 'new', NULL, terms, amounts, 0 FROM discreet_books WHERE name = 'other'",
    ],
)
def test_an_edit_of_what_follows_from_the_entries_is_found(written: Ledger, statement: str) -> None:
    tamper(written, statement)
    with pytest.raises(ChainBroken):
        written.verify()


def cut_tail(ledger: Ledger) -> None:
    """Remove the last entry and put everything that follows from it right: a forger's best work."""
    last = ledger.entries()[-2]
    amounts = price(events.PureDP(epsilon=0.1), Adjacency.ADD_REMOVE) * 2
    tamper(
        ledger,
        "DELETE FROM discreet_entries WHERE seq = 5",
        f"UPDATE discreet_head SET seq = 4, at = '{last.at}', hash = '{last.hash}'",
        f"UPDATE discreet_books SET entries = 2, amounts = '{amounts.to_json()}' WHERE name = 'census'",
    )


def test_a_cut_tail_is_found_by_the_anchored_head_only(written: Ledger) -> None:
    anchored = written.head()
    cut_tail(written)
    assert not written.verify().anchored
    with pytest.raises(ChainBroken, match="tail is cut off"):
        written.verify(head=anchored)


def test_a_rewritten_history_is_found_by_the_anchored_head(written: Ledger) -> None:
    anchored = written.head()
    cut_tail(written)
    written._integrity = IntegrityCheck(written._store, written.who, written._clock)  # as in a process that starts now
    written.book("census").charge(events.PureDP(epsilon=0.05), label="harmless")
    assert written.verify().entries == 5
    with pytest.raises(ChainBroken, match="rewritten"):
        written.verify(head=anchored)


def test_an_older_head_still_verifies_as_the_ledger_grows(written: Ledger) -> None:
    anchored = written.head()
    written.book("census").charge(events.PureDP(epsilon=0.1))
    assert written.verify(head=anchored).anchored
    assert written.head() != anchored
    with pytest.raises(ValueError, match="head"):
        written.verify(head="nonsense")


def test_an_empty_ledger_verifies(ledger: Ledger) -> None:
    assert ledger.head() == f"0:{chain.GENESIS}"
    assert ledger.verify(head=ledger.head()).entries == 0


def test_entries_cannot_be_changed_by_accident(url: str) -> None:
    with Ledger(url) as ledger:
        ledger.open("census", epsilon=1.0)
        for verb in ("UPDATE discreet_entries SET who = 'x'", "DELETE FROM discreet_entries"):
            with pytest.raises(discreet.ledger.LedgerError, match="append-only"), ledger._store.write() as connection:
                connection.execute(sa.text(verb))
        assert ledger.verify().entries == 1


def test_an_entry_says_who_what_when_and_what_is_proved(url: str) -> None:
    noon = datetime(2026, 5, 1, 12, tzinfo=UTC)
    with Ledger(url, who="alice", clock=lambda: noon) as ledger:
        book = ledger.open("census", epsilon=3.0, delta=1e-6)
        event = events.Gaussian(noise_multiplier=4.0)
        returned = book.charge(event, label="mean income")
        [opened, entry] = book.entries()
        assert entry == returned
        assert book.entries(newest=1) == [entry]
        assert opened.kind == "open"
        assert (entry.seq, entry.who, entry.label) == (2, "alice", "mean income")
        assert (entry.kind, entry.book) == ("charge", "census")
        assert entry.time == noon
        assert entry.cost == event
        assert entry.version == discreet.__version__
        assert float(entry.epsilon) == book.spent().epsilon
        assert entry.amounts == book.snapshot().book.amounts
        assert entry.to_dict()["event"] == event.to_dict()
        assert json.loads(json.dumps(entry.to_dict()))["delta"] == 1e-6


def test_the_hash_covers_every_column() -> None:
    values = dict.fromkeys(TEXTS, "x") | {"seq": 1}
    original = Entry(**values)  # type: ignore[arg-type]
    for column in ["seq", *TEXTS]:
        if column != "hash":
            changed = Entry(**(values | {column: 2 if column == "seq" else "y"}))  # type: ignore[arg-type]
            assert changed.digest() != original.digest()


def test_migrations_make_the_tables_the_code_describes(ledger: Ledger) -> None:
    with ledger._store.read() as connection:
        found = sa.MetaData()
        found.reflect(connection)
    for name, table in schema.metadata.tables.items():
        made = found.tables[name]
        assert {(c.name, c.nullable) for c in made.columns} == {(c.name, c.nullable) for c in table.columns}
        assert {i.name for i in made.indexes} == {i.name for i in table.indexes}
