"""What a charge costs, and whether it grows with the length of the book.

    python -m benchmarks.ledger

Books of 10², 10⁴ and 10⁵ entries are bulk-loaded as a chain that verifies; then charges are timed, each one durable
(``synchronous=FULL``) when it is acknowledged. The target is 5 ms on SQLite at 10⁵ entries, and no growth. The same
with a PostgreSQL server, if DISCREET_TEST_POSTGRES names one. ``floor`` is a bare durable SQLite transaction of one
insert: what the disk alone takes.
"""

from __future__ import annotations

import os
import sqlite3
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import sqlalchemy as sa

from discreet import events
from discreet.adjacency import Adjacency
from discreet.ledger import Book, Ledger, schema, tree
from discreet.ledger.chain import Entry
from discreet.ledger.pricing import price
from discreet.ledger.tree import outcome

STEP = events.Gaussian(noise_multiplier=1e4)
SIZES = (100, 10_000, 100_000)


def fill(book: Book, count: int) -> None:
    """Write ``count`` charges at once: the same rows as charging one by one, without a commit for each."""
    cost = price(STEP, Adjacency.ADD_REMOVE)
    template = book.charge(STEP, label="bulk")
    [node] = book._path()
    node = replace(node, amounts=node.amounts + cost * (count - 1), entries=count)
    last, rows = template, []
    for turn in range(2, count + 1):
        draft: Entry = replace(template, seq=last.seq + 1, previous=last.hash, hash="")
        if turn == count:  # readings in between are not recomputed by verification
            draft = replace(draft, **outcome(node))
        last = replace(draft, hash=draft.digest())
        rows.append(last.columns())
    with book.ledger._store.write() as connection:
        for start in range(0, len(rows), 5_000):
            connection.execute(sa.insert(schema.entries), rows[start : start + 5_000])
        connection.execute(sa.update(schema.head).values(seq=last.seq, at=last.at, hash=last.hash))
        tree.save(connection, [node])


def time_charges(book: Book, count: int = 200) -> tuple[list[float], list[float]]:
    """Seconds on the clock, and of the processor, taken by each of so many charges, in order of size."""
    clock, processor = [], []
    for _ in range(count):
        start, cpu = time.perf_counter(), time.process_time()
        book.charge(STEP, label="timed")
        clock.append(time.perf_counter() - start)
        processor.append(time.process_time() - cpu)
    return sorted(clock), sorted(processor)


def floor(path: Path, count: int = 200) -> float:
    """The median time of a bare durable transaction on the same disk."""
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("PRAGMA synchronous=FULL")
    raw.execute("PRAGMA journal_mode=PERSIST")
    raw.execute("CREATE TABLE bare (value TEXT)")
    taken = []
    for _ in range(count):
        start = time.perf_counter()
        raw.execute("BEGIN IMMEDIATE")
        raw.execute("INSERT INTO bare VALUES (?)", ("x" * 800,))
        raw.execute("COMMIT")
        taken.append(time.perf_counter() - start)
    raw.close()
    return statistics.median(taken)


def measure(url: str, size: int) -> None:
    """Fill a book, time charges, verify the whole."""
    with Ledger(url) as ledger:
        book = ledger.open(f"book of {size}", epsilon=100.0, delta=1e-6)
        fill(book, size)
        clock, processor = time_charges(book)
        start = time.perf_counter()
        ledger.verify()
        whole = time.perf_counter() - start
        middle, late, cpu = (1e3 * t for t in (statistics.median(clock), clock[-10], statistics.median(processor)))
        where = ledger.name.split(":")[0]
        print(
            f"{where:20} {size:>8,} entries   charge: median {middle:5.2f} ms, 95 % {late:5.2f} ms, "
            f"processor {cpu:4.2f} ms   verify all: {whole:4.1f} s"
        )


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as directory:
        bare = 1e3 * floor(Path(directory) / "bare.db")
        print(f"{'floor (bare SQLite)':20} {'':>8}           charge: median {bare:5.2f} ms")
        for size in SIZES:
            measure(f"sqlite:///{directory}/{size}.db", size)
    server = os.environ.get("DISCREET_TEST_POSTGRES")
    if server:
        address = sa.make_url(server).set(drivername="postgresql+psycopg")
        engine = sa.create_engine(address, isolation_level="AUTOCOMMIT")
        for size in SIZES:
            with engine.connect() as connection:
                connection.execute(sa.text("DROP DATABASE IF EXISTS discreet_bench WITH (FORCE)"))
                connection.execute(sa.text("CREATE DATABASE discreet_bench"))
            measure(sa.make_url(server).set(database="discreet_bench").render_as_string(hide_password=False), size)
        with engine.connect() as connection:
            connection.execute(sa.text("DROP DATABASE IF EXISTS discreet_bench WITH (FORCE)"))
        engine.dispose()


if __name__ == "__main__":
    main()
