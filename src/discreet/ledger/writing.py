"""A write transaction: what was found before it, and the entries it adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from discreet.ledger import chain, rules, schema, tree
from discreet.ledger.amounts import NOTHING
from discreet.ledger.chain import Entry, Tip
from discreet.ledger.terms import Terms
from discreet.ledger.tree import BookNode

if TYPE_CHECKING:
    from discreet.ledger.ledger import Ledger

__all__ = ["Writing"]

_BLANK = dict.fromkeys(("label", "event", "price", "terms", "epsilon", "delta", "fraction", "proof"), "")


class Writing:
    """The only writer of a ledger that was found to be what was written: ``nodes`` are the books it may change."""

    def __init__(self, ledger: Ledger, connection: sa.Connection, last: Tip, nodes: dict[str, BookNode]) -> None:
        self.nodes = nodes
        self.entries: list[Entry] = []
        self._ledger = ledger
        self._connection = connection
        self._last = last

    def open(self, name: str, terms: Terms) -> None:
        """Make a book that is not there yet."""
        above = tree.lineage(name)[1:]
        row = {"name": name, "parent": above[0] if above else None, "terms": terms.to_json(), "entries": 0}
        self._connection.execute(sa.insert(schema.books), row | {"amounts": NOTHING.to_json()})
        self.append(book=name, kind="open", terms=terms.to_json())

    def advance(self, moved: list[BookNode], **columns: str) -> Entry:
        """Write where these books stand now, and the entry that says why, in the nearest of them."""
        tree.save(self._connection, moved)
        return self.append(book=moved[0].name, **tree.outcome(moved[0]), **columns)

    def append(self, **columns: str) -> Entry:
        """Write one entry after the last."""
        stamps = {"who": self._ledger.who, "version": chain.library_version(), "rules": rules.CURRENT}
        entry = chain.append(self._connection, self._last, self._ledger._clock(), **(_BLANK | stamps | columns))
        self._last = entry.seq, entry.at, entry.hash
        self.entries.append(entry)
        return entry
