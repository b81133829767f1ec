"""Notices tampering before the next charge is admitted.

A process replays the whole chain once, before its first charge. From then on it knows what the ledger says, and each
charge asks the database whether anybody else has written since (``Store.writes``). If not, the head and the rows of the
books on the way are compared with what is known. If so, everything is:

- the old entries. PostgreSQL keeps with each row the number of the transaction that wrote it, so that one scan tells
  whether they are those that were read (``Store.versions``). SQLite keeps nothing of the kind: their hashes are
  computed again;
- what is new since, which is replayed;
- the head, and the row of every book.

So whatever is changed through the database, by whomever, is refused at the next charge of every process. What was
changed in the bytes of a file behind the back of SQLite, its count of changes left as it was, is found by the next
process that starts, and by a running one within length / ``PER_CHARGE`` charges, as far as SQLite reads the file again.

A running process also remembers the head it saw: to it, a tail that is cut off and put right everywhere is missing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import sqlalchemy as sa

from discreet.ledger import chain, tree
from discreet.ledger.chain import Entry, Tip
from discreet.ledger.errors import ChainBroken
from discreet.ledger.store import Store, Versions
from discreet.ledger.tree import Node
from discreet.ledger.verification import Replay
from discreet.sessions import here

__all__ = ["IntegrityCheck"]

PER_CHARGE = 32  # old entries that are read again, on average, though nobody is known to have written
EVERY = 8  # charges between two such readings: one statement for many entries


class IntegrityCheck:
    """What this process knows of a ledger to be true."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known = (0, chain.GENESIS)  # the last head that was found right: never forgotten
        self._renew()

    def _renew(self) -> None:
        self._home = here()
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._replay = Replay()
        self._alone: object = None  # what the database says about writing, if nobody else has written since
        self._scanned: tuple[int, str, Versions | None] = (0, chain.GENESIS, None)  # up to here transactions are known
        self._charges = 0
        self._next = 0  # the old entry after which the next are read again

    def read_history(self) -> None:
        """Read a history that was not read yet before anybody has to wait for it."""
        if self._home != here():  # a copy, perhaps of something half-written
            self._renew()
        if self._replay.seq == 0:
            known = self._known  # before the view is fixed: what another thread writes meanwhile is not in it
            with self._store.read() as connection, self._lock, self._whole():
                if self._replay.seq == 0:
                    _, self._alone = self._store.writes(connection)
                    self._read(connection, known)
                    self._replay.compare(chain.tip(connection), tree.rows(connection))
                    self._scan(connection)

    def check(self, connection: sa.Connection, names: set[str]) -> tuple[Tip, dict[str, Node]]:
        """Inside the write transaction: the last entry, and the books of these names that there are; ``ChainBroken``
        if the ledger is not what was written. The names of all books above must be among them."""
        with self._lock, self._whole():
            tip = chain.checked_tip(connection)
            now, then = self._store.writes(connection)
            alone = now == self._alone
            if not alone:
                self._check_old(connection)
            if not alone or tip[0] != self._replay.seq:  # what another thread has just committed is not yet known
                self._read(connection, self._known)
            if alone:
                self._look_again(connection)
            else:
                self._scan(connection)
            self._alone = then
            compared = names if alone else None
            self._replay.compare(tip, tree.rows(connection, compared), compared)
            return tip, {name: self._replay.nodes[name] for name in names if name in self._replay.nodes}

    def committed(self, entries: Sequence[Entry]) -> None:
        """After the commit of these entries: from now on they must be there."""
        if not entries:
            return
        with self._lock, self._whole():
            self._known = max(self._known, (entries[-1].seq, entries[-1].hash))
            if entries[0].seq == self._replay.seq + 1:  # otherwise another thread has read them already
                self._replay.read(entries)

    def _read(self, connection: sa.Connection, known: tuple[int, str]) -> None:
        """Replay what is new."""
        if self._replay.seq:
            self._replay.read(chain.since(connection, self._replay.seq), known)
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
        versions = before.joined(more) if before and more else more
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
