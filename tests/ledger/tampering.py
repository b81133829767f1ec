"""Every way we could think of to change a ledger behind its back, as SQL on its tables."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import sqlalchemy as sa

from discreet import events
from discreet.adjacency import Adjacency
from discreet.ledger import Ledger, schema, tree
from discreet.ledger.amounts import NOTHING, Amounts
from discreet.ledger.chain import Entry, read, tip
from discreet.ledger.integrity import Writing
from discreet.ledger.pricing import price
from discreet.ledger.terms import Terms
from discreet.ledger.tree import outcome

Tampering = Callable[[sa.Connection], None]

BOOK = "census"
TENTH = events.PureDP(epsilon=0.1)
COST = price(TENTH, Adjacency.ADD_REMOVE)
COLUMNS = [column.name for column in schema.entries.columns if column.name != "seq"]
GUARDS = ("no_update", "no_delete", "no_replace", "no_older")


def unguarded(connection: sa.Connection) -> None:
    """Take down the guards against accidents."""
    if connection.dialect.name == "postgresql":
        for guard in ("guard", "guard_all", "guard_older"):
            connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS discreet_entries_{guard} ON discreet_entries")
        return
    for guard in GUARDS:
        connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS discreet_entries_{guard}")


def sql(*statements: str) -> Tampering:
    """Tampering by statements; a percent sign would be the driver's."""

    def run(connection: sa.Connection) -> None:
        for statement in statements:
            connection.exec_driver_sql(statement)

    return run


def by_hand(ledger: Ledger, connection: sa.Connection) -> Writing:
    """What writes entries with their right hashes, whatever they say."""
    return Writing(connection, tip(connection), {}, {}, ledger.who, ledger._clock)


def last_entry(connection: sa.Connection) -> Entry:
    return list(read(connection))[-1]


def append(connection: sa.Connection, paid: Amounts | None = COST, **columns: Any) -> None:
    """A forger's best work: a new last entry with the right hash, and everything that follows from it put right."""
    last = last_entry(connection)
    book = columns.get("book", BOOK)
    charge = next(entry for entry in read(connection) if entry.kind == "charge")
    charge = replace(charge, seq=last.seq + 1, at=last.at, previous=last.hash, label="forged", book=book)
    nodes = {row.name: tree.parse(row) for row in tree.rows(connection)}
    if paid is not None:
        charge = replace(charge, price=paid.to_json())
        if all(name in nodes for name in tree.lineage(book)):
            moved = tree.advance([nodes[name] for name in tree.lineage(book)], paid)
            tree.save(connection, moved)
            charge = replace(charge, **outcome(moved[0]))
    write(connection, replace(charge, **columns))


def write(connection: sa.Connection, draft: Entry) -> None:
    """Add an entry with its right hash, and move the head."""
    draft = replace(draft, hash="")
    entry = replace(draft, hash=draft.digest())
    connection.execute(sa.insert(schema.entries), entry.columns())
    connection.execute(sa.update(schema.head).values(seq=entry.seq, at=entry.at, hash=entry.hash))


def forged(paid: Amounts | None = COST, **columns: Any) -> Tampering:
    return lambda connection: append(connection, paid, **columns)


def opened(name: str, terms: Terms) -> Tampering:
    """A book opened by hand."""

    def run(connection: sa.Connection) -> None:
        above = tree.lineage(name)[1:]
        row = {"name": name, "parent": above[0] if above else None, "terms": terms.to_json(), "entries": 0}
        connection.execute(sa.insert(schema.books), row | {"amounts": NOTHING.to_json()})
        blank = dict.fromkeys(("label", "event", "price", "epsilon", "delta", "fraction", "proof"), "")
        append(connection, None, book=name, kind="open", terms=terms.to_json(), **blank)

    return run


def reading_lowered(connection: sa.Connection) -> None:
    append(connection)
    last = last_entry(connection)
    connection.exec_driver_sql(f"DELETE FROM discreet_entries WHERE seq = {last.seq}")
    write(connection, replace(last, epsilon="0.001"))


def priced(text: str) -> Tampering:
    """A price that no Amounts would hold."""
    return lambda connection: append(connection, None, price=text)


def raised(epsilon: float, delta: float) -> Tampering:
    """A raise by hand, with all that follows from it."""

    def run(connection: sa.Connection) -> None:
        node = next(tree.parse(row) for row in tree.rows(connection) if row.name == BOOK)
        node = replace(node, since=node.stage.next(epsilon, delta))
        tree.save(connection, [node])
        last, terms = last_entry(connection), json.dumps({"delta": delta, "epsilon": epsilon})
        write(
            connection,
            replace(
                last,
                seq=last.seq + 1,
                previous=last.hash,
                book=BOOK,
                kind="raise",
                label="why",
                event="",
                price="",
                terms=terms,
                **outcome(node),
            ),
        )

    return run


def swapped(one: int, other: int) -> Tampering:
    move = "UPDATE discreet_entries SET seq = {} WHERE seq = {}"
    return sql(move.format(99, one), move.format(one, other), move.format(other, 99))


def copied(seq: int, to: int) -> Tampering:
    names = ", ".join(COLUMNS)
    return sql(
        f"INSERT INTO discreet_entries (seq, {names}) SELECT {to}, {names} FROM discreet_entries WHERE seq = {seq}"
    )


REFUND = json.loads(COST.to_json()) | {"pure": "-1"}
PLANNED = Amounts(planned_epsilon=Fraction(1, 10), planned_delta=Fraction(0))

ENTRIES: dict[str, Tampering] = {
    **{
        f"{column} of entry {seq} edited": sql(
            f"UPDATE discreet_entries SET {column} = {column} || '0' WHERE seq = {seq}"
        )
        for column in COLUMNS
        for seq in (1, 6)
    },
    **{f"entry {seq} deleted": sql(f"DELETE FROM discreet_entries WHERE seq = {seq}") for seq in (1, 2, 6, 9, 10)},
    "all entries deleted": sql("DELETE FROM discreet_entries"),
    "the tail truncated": sql("DELETE FROM discreet_entries WHERE seq > 7"),
    "two entries swapped": swapped(7, 8),
    "the last two entries swapped": swapped(9, 10),
    "an entry deleted and the rest renumbered": sql(
        "DELETE FROM discreet_entries WHERE seq = 8", "UPDATE discreet_entries SET seq = seq - 1 WHERE seq > 8"
    ),
    "an entry duplicated at the end": copied(8, 11),
    "an entry far beyond the end": copied(8, 900),
    "an entry before the first": copied(8, -5),
    "an entry at zero": copied(8, 0),
    "an event halved": sql("UPDATE discreet_entries SET event = replace(event, '0.1', '0.05') WHERE seq = 8"),
    "a price made free": sql(f"UPDATE discreet_entries SET price = '{NOTHING.to_json()}' WHERE seq = 8"),
    "a charge made a plan": sql("UPDATE discreet_entries SET kind = 'plan' WHERE seq = 8"),
    "a charge moved to another book": sql("UPDATE discreet_entries SET book = 'other' WHERE seq = 8"),
    "a time moved back": sql("UPDATE discreet_entries SET at = '2001-01-01T00:00:00+00:00' WHERE seq = 8"),
    "terms that are no JSON": sql("UPDATE discreet_entries SET terms = '{' WHERE seq = 1"),
}

FOLLOWS: dict[str, Tampering] = {
    "a limit raised": sql("UPDATE discreet_books SET terms = replace(terms, '1.0', '9.0') WHERE name = 'census'"),
    "totals emptied": sql(f"UPDATE discreet_books SET amounts = '{NOTHING.to_json()}' WHERE name = 'census'"),
    "totals of another book": sql(f"UPDATE discreet_books SET amounts = '{COST.to_json()}' WHERE name = 'other'"),
    "totals of a partition": sql(
        f"UPDATE discreet_books SET amounts = '{NOTHING.to_json()}' WHERE name = 'census/region'"
    ),
    "totals of a part": sql(
        f"UPDATE discreet_books SET amounts = '{NOTHING.to_json()}' WHERE name = 'census/region/north'"
    ),
    "totals that are no JSON": sql("UPDATE discreet_books SET amounts = 'nothing' WHERE name = 'census'"),
    "totals that lack a currency": sql("UPDATE discreet_books SET amounts = '{\"pure\":\"0\"}' WHERE name = 'census'"),
    "totals that are no amounts": sql("UPDATE discreet_books SET amounts = '[1]' WHERE name = 'census'"),
    "a limit that is no JSON": sql("UPDATE discreet_books SET terms = 'much' WHERE name = 'census'"),
    "a limit of nothing": sql("UPDATE discreet_books SET terms = '{}' WHERE name = 'census'"),
    "a count of entries": sql("UPDATE discreet_books SET entries = 0 WHERE name = 'census'"),
    "a book hung elsewhere": sql("UPDATE discreet_books SET parent = 'other' WHERE name = 'census'"),
    "a book deleted": sql("DELETE FROM discreet_books WHERE name = 'census'"),
    "another book deleted": sql("DELETE FROM discreet_books WHERE name = 'other'"),
    "a book added": sql(
        "INSERT INTO discreet_books SELECT 'new', NULL, terms, amounts, 0 FROM discreet_books WHERE name = 'other'"
    ),
    "the head moved back": sql("UPDATE discreet_head SET seq = seq - 1"),
    "the head moved on": sql("UPDATE discreet_head SET seq = seq + 1"),
    "the head's hash": sql("UPDATE discreet_head SET hash = 'ab'"),
    "the head's time": sql("UPDATE discreet_head SET at = ''"),
    "no head": sql("DELETE FROM discreet_head"),
    "two heads": sql("INSERT INTO discreet_head SELECT 2, seq, at, hash FROM discreet_head"),
    "a head back at the start": sql(f"UPDATE discreet_head SET seq = 0, at = '', hash = '{'0' * 64}'"),
}

FORGED: dict[str, Tampering] = {
    "an event without its price": forged(NOTHING, event=events.PureDP(epsilon=1000.0).to_json()),
    "an event at half its price": forged(COST, event=events.PureDP(epsilon=0.2).to_json()),
    "a refund": priced(json.dumps(REFUND)),
    "a kind called refund": forged(NOTHING, kind="refund"),
    "a price that is not a number": priced(json.dumps(REFUND | {"pure": "nan"})),
    "a price that is no JSON": priced("free"),
    "no price": priced(""),
    "no event": forged(COST, event=""),
    "an event of no kind": forged(COST, event='{"type":"Nothing"}'),
    "an event nested out of reach": forged(COST, event='{"a":' * 100_000),
    "a release without protection": forged(COST, event=events.NonPrivate().to_json()),
    "a plan after answers": forged(PLANNED),
    "rules nobody knows": forged(rules="99"),
    "a charge beyond the limit": forged(COST * 8, event=(TENTH * 8).to_json()),
    "a book that was never opened": forged(book="nowhere"),
    "a partition charged": forged(book="census/region"),
    "a charge that changes limits": forged(terms=Terms(epsilon=9.0, delta=0.0).to_json()),
    "a reading that is too low": reading_lowered,
    "a book opened twice": forged(None, kind="open", event="", price="", terms=Terms(epsilon=9.0, delta=0.0).to_json()),
    "a book opened and charged": forged(book="new", kind="open"),
    "a book below nothing": opened("nowhere/new", Terms(epsilon=1.0, delta=0.0)),
    "a part added later": opened("census/region/west", Terms(epsilon=1.0, delta=0.0, kind="part")),
    "a book inside a partition": opened("census/region/west", Terms(epsilon=1.0, delta=0.0)),
    "a part that is in none": opened("census/west", Terms(epsilon=1.0, delta=0.0, kind="part")),
    "a partition on its own": opened("west", Terms(epsilon=1.0, delta=0.0, kind="partition")),
    "a sub-book under another adjacency": opened(
        "census/west", Terms(epsilon=1.0, delta=0.0, adjacency=Adjacency.REPLACE)
    ),
    "a sub-book of another unit": opened("census/west", Terms(epsilon=1.0, delta=0.0, unit="day")),
    "a charge as from before rules and units": forged(rules="", terms=""),
    "a raise by nothing": raised(0.0, 0.0),
    "a raise to a delta of one": raised(0.0, 1.0),
    "a raise beyond floats": raised(1.7e308, 0.0),
    "a book without a name": opened(" ", Terms(epsilon=1.0, delta=0.0)),
}

# only SQLite keeps what is not of a column's type
TYPES: dict[str, Tampering] = {
    "bytes for a label": sql("UPDATE discreet_entries SET label = x'ff00' WHERE seq = 8"),
    "text that is not UTF-8": sql("UPDATE discreet_entries SET label = CAST(x'ff00' AS TEXT) WHERE seq = 8"),
    "words for a number": sql("UPDATE discreet_entries SET seq = 'eight' WHERE seq = 8"),
    "a number in between": sql("UPDATE discreet_entries SET seq = 8.5 WHERE seq = 8"),
    "words for a count": sql("UPDATE discreet_books SET entries = 'many' WHERE name = 'census'"),
    "words for the head": sql("UPDATE discreet_head SET seq = 'ten'"),
    "bytes for totals": sql("UPDATE discreet_books SET amounts = x'ff00' WHERE name = 'census'"),
}

ALL = ENTRIES | FOLLOWS | FORGED | TYPES


def tamper(path: str, tampering: Tampering) -> None:
    """Change a file through a connection of its own, committed."""
    engine = sa.create_engine(f"sqlite:///{path}", poolclass=sa.NullPool)
    with engine.begin() as connection:
        unguarded(connection)
        tampering(connection)
    engine.dispose()
    sqlite3.connect(path).close()


# --- at random, in whatever there is ------------------------------------------------------------------------------

TABLES = (schema.entries, schema.books, schema.head)


def dump(connection: sa.Connection) -> dict[str, list[Any]]:
    """Every row of every table."""
    return {
        table.name: sorted((dict(row) for row in connection.execute(sa.select(table)).mappings()), key=repr)
        for table in TABLES
    }


def restore(connection: sa.Connection, rows: dict[str, list[Any]]) -> None:
    """Put every row back."""
    for table in TABLES:
        connection.execute(sa.delete(table))
        if rows[table.name]:
            connection.execute(sa.insert(table), rows[table.name])


def change(connection: sa.Connection, way: str, book: str, number: int, other: int, column: str) -> None:
    """One kind of tampering, somewhere in what is there."""
    count = connection.exec_driver_sql("SELECT count(*) FROM discreet_entries").scalar() or 0
    seq, to = 1 + number % count, 1 + other % count
    entries, books = schema.entries, schema.books
    at = entries.c.seq == seq
    mine = books.c.name == book
    match way:
        case "edit" if column != "seq":
            edited = sa.literal("x").concat(sa.func.substr(entries.c[column], 2))  # no longer than the column allows
            connection.execute(sa.update(entries).where(at).values({column: edited}))
        case "edit" | "swap":
            for old, new in ((seq, -1), (to, seq), (-1, to)):
                connection.execute(sa.update(entries).where(entries.c.seq == old).values(seq=new))
        case "delete":
            connection.execute(sa.delete(entries).where(at))
        case "cut":
            connection.execute(sa.delete(entries).where(entries.c.seq >= seq))
        case "copy":
            row = dict(connection.execute(sa.select(entries).where(at)).mappings().one())
            connection.execute(sa.insert(entries), row | {"seq": count + 1 + other % 2})
        case "totals":
            connection.execute(sa.update(books).where(mine).values(amounts=NOTHING.to_json()))
        case "terms":
            raised = sa.func.replace(books.c.terms, '"epsilon":', '"epsilon":1')
            connection.execute(sa.update(books).where(mine).values(terms=raised))
        case "count":
            connection.execute(sa.update(books).where(mine).values(entries=books.c.entries - 1))
        case "row":
            connection.execute(sa.delete(books).where(mine))
        case "head":
            connection.execute(sa.update(schema.head).values(seq=schema.head.c.seq - 1))
        case "hash":
            connection.execute(sa.update(schema.head).values(hash="0" * 64))
        case "two heads":
            [row] = connection.execute(sa.select(schema.head)).mappings()
            connection.execute(sa.insert(schema.head), dict(row) | {"id": 2})
        case "free" | "refund" | "limit":
            forge(connection, way, book)


def forge(connection: sa.Connection, way: str, book: str) -> None:
    """A last entry with the right hash, and the totals that follow from it."""
    huge = events.PureDP(epsilon=1000.0).to_json()
    if any(row.book == book and row.kind == "charge" for row in connection.execute(sa.select(schema.entries))):
        match way:
            case "free":
                append(connection, NOTHING, book=book, event=huge)
            case "refund":
                append(connection, NOTHING, book=book, kind="refund")
            case "limit":
                append(connection, None, book=book, event=huge)
