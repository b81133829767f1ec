"""Notices tampering before the next charge is admitted, at a cost that does not grow with the ledger.

A process replays the whole chain once, before its first charge. After that each charge reads what is new, compares the
head and the totals it stands on with what follows from the entries, and looks again at the next few old entries, in
turn. Where the database can tell that somebody else wrote and yet nothing was appended, everything is read again.

So whatever was changed is refused at the next charge by every process that starts later. A running one refuses it at its
next charge too if the ledger has at most ``WINDOW`` entries, or if nobody charged a file (SQLite) in between; otherwise if
it touches the tail, a book on the way, or the entries whose turn it is, and the others within length / ``WINDOW`` charges.
A running process also remembers the head it saw: to it, a tail that is cut off and put right everywhere is still missing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import sqlalchemy as sa

from discreet.ledger import chain, forks, tree
from discreet.ledger.errors import ChainBroken
from discreet.ledger.store import Store
from discreet.ledger.tree import Node
from discreet.ledger.verification import Replay, judging

__all__ = ["Watch"]

WINDOW = 32  # old entries looked at again with every charge
_LOWEST = -(2**63)  # no entry has such a number, unless somebody wrote one


class Watch:
    """What this process knows of a ledger to be true."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known = (0, chain.GENESIS)  # the last head that was found right: never forgotten
        self._renew()

    def _renew(self) -> None:
        self._home = forks.here()
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._replay = Replay()
        self._next = 1  # the old entry that is looked at next
        self._changes: object = None
        self._all = True  # whether every book has still to be compared

    def look_ahead(self) -> None:
        """Read a history that was not read yet before anybody has to wait for it."""
        if self._home != forks.here():  # a copy, perhaps of something half-written
            self._renew()
        if self._replay.seq == 0:
            known = self._known  # before the view is fixed: what another thread writes meanwhile is not in it
            with self._store.read() as connection, self._lock, self._whole():
                if self._replay.seq == 0:
                    self._read(connection, known)
                    self._changes = self._store.changes(connection)

    def check(self, connection: sa.Connection, names: set[str]) -> dict[str, Node]:
        """Inside the write transaction: the books of these names that there are, or ``ChainBroken`` if the ledger is not
        what was written. The names of all books above must be among them."""
        with self._lock, self._whole():
            tip, changes = chain.tip(connection), self._store.changes(connection)
            if changes != self._changes and tip[0] == self._replay.seq:
                self._forget()
            self._changes = changes
            self._read(connection, self._known)
            looked_at = names | self._look_again(connection)
            compared = None if self._all else looked_at
            self._replay.compare(tip, tree.rows(connection, compared), compared)
            self._all = False
            return {name: self._replay.nodes[name] for name in names if name in self._replay.nodes}

    def remember(self, head: tuple[int, str]) -> None:
        """After the commit of an entry: from now on it must be there."""
        self._known = max(self._known, head)

    def _read(self, connection: sa.Connection, known: tuple[int, str]) -> None:
        seen = self._replay.seq
        with closing(chain.between(connection, seen) if seen else chain.read(connection)) as entries:
            self._replay.read(entries, known)
        self.remember((self._replay.seq, self._replay.hash))

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """What failed in the middle, or was found wrong, is not built on: the next charge starts from the first entry."""
        try:
            yield
        except BaseException:
            self._forget()
            raise

    def _look_again(self, connection: sa.Connection) -> set[str]:
        """Check the links of the next few entries once more; the books they name."""
        first, last = self._next, min(self._next + WINDOW, self._replay.seq)
        seq, digest, names = first - 1, chain.GENESIS, set()
        for entry in chain.between(connection, first if first > 1 else _LOWEST, last):
            with judging(seq + 1):
                chain.check_links(entry, seq, entry.previous if entry.seq == first > 1 else digest)
            seq, digest = entry.seq, entry.hash
            names.add(entry.book)
        if seq != last:
            raise ChainBroken(f"Entry {seq + 1} is missing.")
        self._next = 1 if last == self._replay.seq else last  # the last one again, with what follows it
        return names
