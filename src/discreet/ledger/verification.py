"""Is the ledger what was written? Everything that follows from the entries is recomputed and compared."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from discreet.errors import BudgetExceeded
from discreet.ledger import chain, schema, tree
from discreet.ledger.amounts import Amounts
from discreet.ledger.chain import Entry
from discreet.ledger.errors import ChainBroken
from discreet.ledger.terms import Terms
from discreet.ledger.tree import Node
from discreet.ledger.units import suits

__all__ = ["Verification", "verify"]


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found whole: so many entries in so many books, ending at this head."""

    entries: int
    books: int
    head: str
    anchored: bool


def verify(connection: sa.Connection, head: str | None = None) -> Verification:
    """Walk the chain once; raise ``ChainBroken`` at the first thing that does not follow from what was written."""
    anchor = chain.parse_head(head) if head is not None else None
    nodes: dict[str, Node] = {}
    last: Entry | None = None
    for entry in chain.read(connection):
        chain.check_links(entry, last)
        _apply(nodes, entry)
        if anchor and entry.seq == anchor[0] and entry.hash != anchor[1]:
            raise ChainBroken(f"Entry {entry.seq} is not the one that was anchored: the history was rewritten.")
        last = entry
    count = last.seq if last else 0
    if anchor and anchor[0] > count:
        raise ChainBroken(f"The ledger ends at entry {count}, but entry {anchor[0]} was anchored: its tail is cut off.")
    _compare_head(connection, last)
    _compare_books(connection, nodes)
    return Verification(count, len(nodes), f"{count}:{last.hash if last else chain.GENESIS}", anchor is not None)


def _apply(nodes: dict[str, Node], entry: Entry) -> None:
    if entry.kind == "open":
        if entry.book in nodes:
            raise ChainBroken(f"Entry {entry.seq} opens book {entry.book!r} a second time.")
        nodes[entry.book] = Node(entry.book, Terms.from_json(entry.terms))
        return
    if entry.book not in nodes:
        raise ChainBroken(f"Entry {entry.seq} charges book {entry.book!r}, which was never opened.")
    path = [nodes[name] for name in tree.lineage(entry.book)]
    if not path[0].enforces:
        raise ChainBroken(f"Entry {entry.seq} charges {entry.book!r}, a partition, which only its parts may advance.")
    if entry.kind == "raise":
        try:
            nodes[entry.book] = path[0].raised(*entry.increment)
        except BudgetExceeded:
            raise ChainBroken(f"Entry {entry.seq} raises book {entry.book!r} beyond its ceiling.") from None
        return
    if not suits(path[0].terms, entry.unit):
        raise ChainBroken(f"Entry {entry.seq} charges book {entry.book!r} for another unit than the book keeps.")
    for node in tree.advance(path, Amounts.from_json(entry.price)):
        if not node.within:
            raise ChainBroken(f"Entry {entry.seq} exceeds the limit of book {node.name!r}.")
        nodes[node.name] = node


def _compare_head(connection: sa.Connection, last: Entry | None) -> None:
    expected = (last.seq, last.at, last.hash) if last else (0, "", chain.GENESIS)
    if chain.tip(connection) != expected:
        raise ChainBroken(f"The last entry is {expected[0]}, but the head says otherwise: the tail was cut or edited.")


def _compare_books(connection: sa.Connection, nodes: dict[str, Node]) -> None:
    rows = {row.name: row for row in connection.execute(sa.select(schema.books))}
    if rows.keys() != nodes.keys():
        odd = sorted(rows.keys() ^ nodes.keys())[0]
        raise ChainBroken(f"Book {odd!r} is in the table of books or in the entries, but not in both.")
    for name, node in nodes.items():
        row, above = rows[name], tree.lineage(name)[1:]
        if (row.parent, tree.parse(row)) != (above[0] if above else None, node):
            raise ChainBroken(f"The limits or running totals of book {name!r} do not follow from its entries.")
