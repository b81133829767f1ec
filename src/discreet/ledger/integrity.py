"""Notices tampering before the next charge is admitted, and before anything is read.

A process replays the whole chain once, before its first charge or reading. From then on it knows what the ledger says,
and each charge and each reading asks the database whether anybody else has written since (``Store.writes``). If not,
the head and the rows of the books in question are compared with what is known. If so, everything is:

- the old entries. PostgreSQL keeps with each row the number of the transaction that wrote it, so that one scan tells
  whether they are those that were read (``Store.versions``). SQLite keeps nothing of the kind: their hashes are
  computed again;
- what is new since, which is replayed;
- the head, and the row of every book.

So whatever is changed through the database, by whomever, is refused at the next charge or reading of every process.
What was changed in the bytes of a file behind the back of SQLite, its count of changes left as it was, is found by the
next process that starts, and by a running one within length / ``PER_CHARGE`` charges and readings, as far as SQLite
reads the file again.

A running process also remembers the head it saw: to it, a tail that is cut off and put right everywhere is missing.

Decisions 90, 128 and 270.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

import sqlalchemy as sa

from discreet.forks import here
from discreet.ledger import chain, rules, schema, tree
from discreet.ledger.amounts import NOTHING
from discreet.ledger.chain import Entry, Tip
from discreet.ledger.errors import ChainBroken, LedgerError
from discreet.ledger.store import Store, Versions
from discreet.ledger.terms import Terms
from discreet.ledger.tree import BookNode
from discreet.ledger.verification import LedgerReplay

__all__ = ["IntegrityCheck", "Verified", "Writing"]

PER_CHARGE = 32  # old entries that are read again, on average, though nobody is known to have written
EVERY = 8  # charges between two such readings: one statement for many entries
_BLANK = dict.fromkeys(("label", "event", "price", "terms", "epsilon", "delta", "fraction", "proof"), "")

Keys: TypeAlias = Mapping[tuple[str, str], int]  # the entry that charged a book under a key


@dataclass(frozen=True, slots=True)
class Verified:
    """What a transaction may rely on: the last entry, the books by name, and how many of the charges of each were made
    with a seed; the entry of each key. ``broken`` says why none of it can be relied on, where it was asked for anyway.
    """

    tip: Tip
    nodes: Mapping[str, BookNode]
    seeded: Mapping[str, int]
    broken: str = ""
    keys: Keys = field(default_factory=dict)

    @property
    def head(self) -> str:
        """Number and hash of the last entry."""
        return f"{self.tip[0]}:{self.tip[2]}"


def read_unverified(connection: sa.Connection, names: Collection[str] | None, reason: str) -> Verified:
    """What the tables say, of a ledger that is not what was written; what cannot be read at all still raises."""
    heads = connection.execute(sa.select(schema.head.c.seq, schema.head.c.at, schema.head.c.hash)).all()
    seeded: Counter[str] = Counter()
    for entry in chain.read(connection):
        with suppress(Exception):  # an edited entry may hold anything
            seeded.update(tree.lineage(entry.book) if entry.seeded else ())
    nodes = {row.name: tree.parse(row) for row in tree.rows(connection, names)}
    return Verified(tuple(heads[0]) if heads else chain.START, nodes, seeded, reason)


class Writing:
    """The only writer of a ledger that was found to be what was written: ``nodes`` are the books it may change."""

    def __init__(
        self,
        connection: sa.Connection,
        last: Tip,
        nodes: dict[str, BookNode],
        keys: Keys,
        who: str,
        clock: Callable[[], datetime],
    ) -> None:
        self.nodes, self.keys = nodes, keys
        self.entries: list[Entry] = []
        self.moved: list[BookNode] = []  # by the one charge that was made
        self._connection, self._last, self._who, self._clock = connection, last, who, clock

    def open(self, name: str, terms: Terms) -> None:
        """Make a book that is not there yet."""
        above = tree.lineage(name)[1:]
        row = {"name": name, "parent": above[0] if above else None, "terms": terms.to_json(), "entries": 0}
        self._connection.execute(sa.insert(schema.books), row | {"amounts": NOTHING.to_json()})
        self.append(book=name, kind="open", terms=terms.to_json())

    def advance(self, moved: list[BookNode], **columns: str) -> Entry:
        """Write where these books stand now, and the entry that says why, in the nearest of them."""
        tree.save(self._connection, moved)
        entry = self.append(book=moved[0].name, **tree.outcome(moved[0]), **columns)
        self.moved = moved if len(self.entries) == 1 else []
        return entry

    def append(self, **columns: str) -> Entry:
        """Write one entry after the last."""
        stamps = {"who": self._who, "version": chain.library_version(), "rules": rules.CURRENT}
        entry = chain.append(self._connection, self._last, self._clock(), **(_BLANK | stamps | columns))
        self._last = entry.seq, entry.at, entry.hash
        self.entries.append(entry)
        return entry


class IntegrityCheck:
    """What this process knows of a ledger to be true, which is asked before anything is read and before any charge.

    ``who`` and ``clock`` are written into entries. With ``anyway``, what is not what was written is read all the same.
    """

    def __init__(self, store: Store, who: str, clock: Callable[[], datetime], *, anyway: bool = False) -> None:
        self._store, self._who, self._clock, self._anyway = store, who, clock, anyway
        self._known = (0, chain.GENESIS)  # the last head that was found right: never forgotten
        self._renew()

    def _renew(self) -> None:
        self._home = here()
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._replay = LedgerReplay()
        self._alone: object = None  # what the database says about writing, if nobody else has written since
        self._scanned: tuple[int, str, Versions | None] = (0, chain.GENESIS, None)  # up to here transactions are known
        self._charges = 0
        self._next = 0  # the old entry after which the next are read again

    def read_history(self) -> None:
        """Read a history that was not read yet before anybody has to wait for it."""
        if self._home != here() or self._replay.seq == 0:
            with self.reading(()):
                pass

    @contextmanager
    def reading(self, names: Iterable[str] | None = None) -> Iterator[tuple[sa.Connection, Verified]]:
        """A read transaction on a ledger that is what was written, and the books of these names (or all) as they stand
        in it. ``ChainBroken`` if it is not; with ``anyway``, what the tables say, and why it cannot be relied on."""
        if self._home != here():  # a copy, perhaps of something half-written
            self._renew()
        wanted = None if names is None else list(names)
        while True:
            known = self._known  # before the view is fixed: what another thread writes meanwhile is not in it
            with self._store.read() as connection:
                try:
                    seen = self._look(connection, wanted, known)
                except LedgerError as reason:
                    if not self._anyway:
                        raise
                    seen = read_unverified(connection, wanted, str(reason))
                if seen is not None:
                    yield connection, seen
                    return

    def _look(self, connection: sa.Connection, names: list[str] | None, known: tuple[int, str]) -> Verified | None:
        """What is there, checked; nothing if another thread has charged since this view was fixed."""
        with self._lock, self._whole():
            tip = chain.tip(connection)
            if known[0] <= tip[0] < self._replay.seq:
                return None
            self._check(connection, tip, names, known, write=False)
            return Verified(tip, self._replay.books_named(names), self._replay.seeds(names), keys=self._replay.keys)

    @contextmanager
    def writing(self, books: Iterable[str]) -> Iterator[Writing]:
        """A write transaction that may change these books and those above them, on a ledger that is what was written;
        ``ChainBroken`` if it is not."""
        self.read_history()
        names = {above for name in books for above in tree.lineage(name)}
        with self._store.write() as connection:
            with self._lock, self._whole():
                tip = chain.checked_tip(connection)
                self._check(connection, tip, names, self._known, write=True)
                nodes = self._replay.books_named(names)
            writing = Writing(connection, tip, nodes, self._replay.keys, self._who, self._clock)
            yield writing
        self._note_commit(writing)

    def _check(self, connection: sa.Connection, tip: Tip, names: Collection[str] | None, known: tuple[int, str], *,
               write: bool) -> None:  # fmt: skip
        now, then = self._store.writes(connection, write=write)
        alone = now == self._alone
        if not alone:
            self._check_old(connection)
        if not alone or tip[0] != self._replay.seq:  # what another thread has just committed is not yet known
            self._read(connection, known)
        if alone:
            self._look_again(connection)
        else:
            self._scan(connection)
        self._alone = then
        compared = names if alone else None
        self._replay.compare(tip, tree.rows(connection, compared), compared)

    def _note_commit(self, writing: Writing) -> None:
        """After the commit: from now on the entries must be there. Where the books on the path of a single charge stand
        is known; other entries are replayed.
        """
        if not writing.entries:
            return
        last = writing.entries[-1]
        with self._lock, self._whole():
            self._known = max(self._known, (last.seq, last.hash))
            if writing.entries[0].seq != self._replay.seq + 1:
                return  # another thread has read them already
            if writing.moved:
                self._replay.take_over(last, writing.moved)
            else:
                self._replay.read(writing.entries)

    def _read(self, connection: sa.Connection, known: tuple[int, str]) -> None:
        """Replay what is new."""
        if self._replay.seq:
            passed = known[0] < self._replay.seq  # another thread has read on since: it was among what it read
            self._replay.read(chain.since(connection, self._replay.seq), None if passed else known)
        else:
            with closing(chain.read(connection)) as entries:
                self._replay.read(entries, known)
        self._known = max(self._known, (self._replay.seq, self._replay.hash))

    def _check_old(self, connection: sa.Connection) -> None:
        """Whether the entries that were read are still there: by a scan as far as there was one, by their hashes."""
        seq, digest, versions = self._scanned
        if versions is None or self._store.versions(connection, None, seq) != versions:
            self._scanned = seq, digest, versions = 0, chain.GENESIS, None
        if self._replay.seq and chain.follow(connection, seq, self._replay.seq, digest) != self._replay.hash:
            raise ChainBroken("The entries are not those that were there: the history was rewritten.")

    def _scan(self, connection: sa.Connection) -> None:
        """Note which transactions wrote what is known now."""
        seq, _, before = self._scanned
        more = self._store.versions(connection, seq if before else None, self._replay.seq)
        versions = before.join(more) if before and more else more
        self._scanned = self._replay.seq, self._replay.hash, versions

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """What failed in the middle, or was found wrong, is not built on: the next charge starts from the beginning."""
        try:
            yield
        except BaseException:
            self._forget()
            raise

    def _look_again(self, connection: sa.Connection) -> None:
        """Now and then, read some of the old entries once more, in turn."""
        self._charges += 1
        if self._charges % EVERY == 0 and self._replay.seq:
            last = min(self._next + EVERY * PER_CHARGE, self._replay.seq)
            chain.follow(connection, self._next, last, None if self._next else chain.GENESIS)
            self._next = 0 if last == self._replay.seq else last - 1  # the last one again, with what follows it
