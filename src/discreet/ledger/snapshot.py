"""Books as they stand at one moment, as values: what a report, a command or a page needs, in one transaction.

Decisions 87 and 129.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from discreet.adjacency import Adjacency
from discreet.ledger import chain, tree
from discreet.ledger.amounts import Amounts, exact
from discreet.ledger.chain import Entry
from discreet.ledger.errors import ChainBroken, LedgerError
from discreet.ledger.filters import Reading
from discreet.ledger.integrity import Verified
from discreet.ledger.stages import Stage
from discreet.ledger.terms import Terms
from discreet.ledger.tree import BookNode

_NEWEST = 50  # entries among which a book's last charge is looked for

__all__ = ["Overview", "Remaining", "Snapshot", "Spent", "Standing", "overview", "snapshot"]


@dataclass(frozen=True, slots=True)
class Spent:
    """What is guaranteed for all charges of a book together: they are (epsilon, delta)-DP, by the named theorem.

    ``fraction`` is the used part of the filter that has most left; it moves with every charge, while ``epsilon`` of the
    Gaussian filter stands at the limit until that filter is used up.
    """

    epsilon: float
    delta: float
    adjacency: Adjacency
    proof: str
    fraction: float
    entries: int


@dataclass(frozen=True, slots=True)
class Remaining:
    """What a book has left: epsilon up to its limit, and the unused part of the accounting rule with most room."""

    epsilon: float
    fraction: float


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one book stands: its terms, its running total under every accounting rule, and its number of charges.

    ``stage`` is what may be spent in all, raises included, and where the book stands since the last of them.
    ``seeded`` of the charges are of releases made with a seed, which are not private. ``path`` are the books that a
    charge to this one passes, itself first, and ``last`` is its own last charge, if that is among its newest entries.
    """

    name: str
    terms: Terms
    stage: Stage
    amounts: Amounts
    charges: int
    seeded: int = 0
    path: tuple[BookNode, ...] = ()
    last: Entry | None = None

    @staticmethod
    def of(node: BookNode, seeded: int = 0, path: tuple[BookNode, ...] = (), last: Entry | None = None) -> Standing:
        """The standing of a book in the tree."""
        return Standing(node.name, node.terms, node.stage, node.amounts, node.entries, seeded, path, last)

    @property
    def limit(self) -> tuple[float, float]:
        """Epsilon and delta that may be spent in all: those at opening, and what raises added."""
        return float(self.stage.epsilon), float(self.stage.delta)

    @property
    def spent(self) -> Spent:
        """What is guaranteed for all charges so far together, even if each was chosen after earlier answers."""
        now = self.stage.read()
        return Spent(now.epsilon, self.limit[1], self.terms.adjacency, now.proof, now.fraction, self.charges)

    @property
    def remaining(self) -> Remaining:
        """What is left."""
        now = self.stage.read()
        left = float(self.stage.epsilon - exact(now.epsilon)) if now.epsilon < self.stage.epsilon else 0.0
        return Remaining(left, max(0.0, 1 - now.fraction))

    def reading_at(self, delta: float) -> Reading:
        """What is guaranteed at another delta, which the accounting rules share in the same proportions."""
        return self.stage.read(exact(delta))


@dataclass(frozen=True, slots=True)
class Overview:
    """All books of a ledger, or one book and those inside it, outer books first; and the head at that moment.

    The chain was verified up to the head; ``broken`` says what is wrong with it, where it was read anyway.
    """

    head: str
    books: tuple[Standing, ...]
    broken: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A book, the books inside it and their history, as they stood together at one moment.

    ``entries`` are the newest entries of the book and of those inside it; ``raises`` all raises of the book itself;
    ``units`` counts the charges by what their unit rests on (``Charged.by``; ``""`` where a version kept none);
    ``readings`` is what the book had proved after some of its charges, evenly spread and the last one included. Of
    ``unknown_seeds`` charges a version that kept no word of seeds wrote. The chain was verified up to the head;
    ``broken`` says what is wrong with it, where it was read anyway.
    """

    ledger: str
    at: datetime
    head: str
    book: Standing
    inside: tuple[Standing, ...]
    entries: tuple[Entry, ...]
    raises: tuple[Entry, ...]
    first_charge: Entry | None
    units: dict[str, int]
    readings: tuple[tuple[Entry, Reading], ...]
    unknown_seeds: int = 0
    broken: str = ""


def overview(connection: sa.Connection, verified: Verified, name: str | None = None) -> Overview:
    """Where the books stand: all of them, or one with all inside it."""
    inside = [node for node in verified.nodes.values() if name is None or name in tree.lineage(node.name)]
    inside.sort(key=lambda node: node.name.split("/"))
    if name is not None and (not inside or inside[0].name != name):
        raise LedgerError(tree.absent(connection, name))
    books = [_standing(connection, verified, node) for node in inside]
    return Overview(verified.head, tuple(books), verified.broken)


def _standing(connection: sa.Connection, verified: Verified, node: BookNode) -> Standing:
    seeded = verified.seeded.get(node.name, 0)
    if verified.broken:
        return Standing.of(node, seeded)
    path = tuple(tree.known_path(connection, verified.nodes, node.name))
    newest = list(chain.read(connection, book=node.name, below=False, newest=_NEWEST))
    return Standing.of(node, seeded, path, next((entry for entry in reversed(newest) if entry.event), None))


def snapshot(
    connection: sa.Connection, verified: Verified, name: str, *, ledger: str, at: datetime, newest: int, points: int
) -> Snapshot:
    """Read a book in one pass over its history."""
    seen = overview(connection, verified, name)
    book, *below = seen.books
    history = _History(name, max(1, -(-book.charges // points)), newest)
    for entry in chain.read(connection, book=name, below=True):
        try:
            with chain.judging(entry.seq):
                history.add(entry, book.charges)
        except LedgerError:
            if not seen.broken:  # of a broken chain, what can be read is shown
                raise
    inside = [inner for inner in below if inner.name.count("/") == name.count("/") + 1]
    return Snapshot(
        ledger,
        at,
        seen.head,
        book,
        tuple(inside),
        tuple(history.entries),
        tuple(history.raises),
        history.first_charge,
        dict(history.units),
        tuple(history.readings),
        history.unknown_seeds,
        seen.broken,
    )


class _History:
    """What is kept of a book's entries, as they go by.

    An entry records the reading of the book it was charged to; for the books above, the totals are advanced again.
    """

    def __init__(self, name: str, step: int, newest: int) -> None:
        self._name, self._step = name, step
        self._nodes: dict[str, BookNode] = {}
        self.entries: deque[Entry] = deque(maxlen=newest)
        self.raises: list[Entry] = []
        self.first_charge: Entry | None = None
        self.units: Counter[str] = Counter()
        self.unknown_seeds = 0
        self.readings: list[tuple[Entry, Reading]] = []

    def add(self, entry: Entry, charges: int) -> None:
        """The next entry of a book that was charged so often in all."""
        self.entries.append(entry)
        if entry.kind == "open":
            self._nodes[entry.book] = BookNode(entry.book, Terms.from_json(entry.terms))
        elif entry.kind == "raise":
            self._nodes[entry.book] = self._nodes[entry.book].raise_limit(*entry.increment)
            self.raises += [entry] if entry.book == self._name else []
        elif entry.kind in ("charge", "plan", "reserve"):
            self._charge(entry, charges)
        else:
            raise ChainBroken(f"Entry {entry.seq} is of the kind {entry.kind!r}, which no ledger writes.")

    def _charge(self, entry: Entry, charges: int) -> None:
        path = [self._nodes[each] for each in tree.lineage(entry.book) if each in self._nodes]
        self._nodes |= {node.name: node for node in tree.advance(path, Amounts.from_json(entry.price))}
        self.first_charge = self.first_charge or entry
        self.units[entry.unit.by if entry.unit else ""] += 1
        self.unknown_seeds += entry.unit is None or entry.unit.reproducible is None
        count = self._nodes[self._name].entries
        if count % self._step == 0 or count == charges:
            self.readings.append((entry, self._nodes[self._name].stage.read()))
