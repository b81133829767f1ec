"""How a book filled up: its own guarantee after each charge to it or to a book inside it, replayed from the chain."""

from __future__ import annotations

import sqlalchemy as sa

from discreet.ledger import chain, tree
from discreet.ledger.amounts import Amounts
from discreet.ledger.chain import Entry
from discreet.ledger.filters import Reading
from discreet.ledger.terms import Terms
from discreet.ledger.tree import Node

__all__ = ["trail"]


def trail(connection: sa.Connection, name: str, charges: int, points: int) -> list[tuple[Entry, Reading]]:
    """Up to ``points`` of the book's charges, evenly spread and the last one included, with what was proved then.

    An entry records the reading of the book it was charged to; for the books above, the totals are advanced again.
    """
    step = max(1, -(-charges // points))
    nodes: dict[str, Node] = {}
    found: list[tuple[Entry, Reading]] = []
    for entry in chain.read(connection, book=name, below=True):
        if entry.kind == "open":
            nodes[entry.book] = Node(entry.book, Terms.from_json(entry.terms))
            continue
        if entry.kind == "raise":
            nodes[entry.book] = nodes[entry.book].raised(*entry.increment)
            continue
        path = [nodes[each] for each in tree.lineage(entry.book) if each in nodes]
        nodes |= {node.name: node for node in tree.advance(path, Amounts.from_json(entry.price))}
        count = nodes[name].entries
        if count % step == 0 or count == charges:
            found.append((entry, nodes[name].stage.read()))
    return found
