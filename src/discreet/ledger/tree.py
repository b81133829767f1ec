"""What a charge does to the books above: the one place where totals are advanced.

The same function runs when charging and when verifying, so the two cannot disagree.

Decision 24.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from discreet.ledger import schema
from discreet.ledger.amounts import NOTHING, Amounts
from discreet.ledger.errors import ChainBroken, LedgerError
from discreet.ledger.filters import admits
from discreet.ledger.stages import Stage
from discreet.ledger.terms import LARGEST, Terms

if TYPE_CHECKING:
    from discreet.ledger.chain import Entry

__all__ = [
    "BookNode",
    "LedgerState",
    "advance",
    "charge_path",
    "known_path",
    "lineage",
    "outcome",
    "parent",
    "parse",
    "path",
    "rows",
    "save",
]


_LISTED, _COMPARED = 5, 2000  # names in a message, and names that are looked at for it
# Built once: composing a statement costs more than running it.
_BY_NAME = sa.select(schema.books).where(schema.books.c.name.in_(sa.bindparam("names", expanding=True)))
_ADVANCE = (
    sa.update(schema.books)
    .where(schema.books.c.name == sa.bindparam("n"))
    .values(amounts=sa.bindparam("a"), entries=sa.bindparam("e"))
)


@dataclass(frozen=True, slots=True)
class BookNode:
    """A book as the tree sees it: ``amounts`` is all it was ever charged, ``since`` what a raise began,
    if there was one.
    """

    name: str
    terms: Terms
    amounts: Amounts = NOTHING
    entries: int = 0
    since: Stage | None = None

    @property
    def enforces(self) -> bool:
        """Whether this node has a limit of its own."""
        return self.terms.kind != "partition"

    @property
    def stage(self) -> Stage:
        """Limits and totals since the last raise: those of the whole book, if there was none."""
        return self.since or Stage.first(self.terms, self.amounts)

    @property
    def within(self) -> bool:
        """Whether the book stands within its limit; a partition has none."""
        stage = self.stage
        return not self.enforces or admits(stage.limit, stage.amounts)

    def raise_limit(self, epsilon: float, delta: float) -> BookNode:
        """The book after its limit was raised by so much; beyond a declared ceiling it is refused."""
        stage = self.stage.next(epsilon, delta)
        if stage.delta >= 1:
            raise ValueError(f"delta is {delta:g}, but must leave the book below 1: at 1 nothing is promised.")
        if stage.epsilon > LARGEST:
            raise ValueError(f"epsilon is {epsilon:g}, but must leave the book at {LARGEST:g} or below.")
        self.terms.check_ceiling(self.name, stage.epsilon, stage.delta)
        return replace(self, since=stage)


def lineage(name: str) -> list[str]:
    """The book and all above it, nearest first.

    >>> lineage("census/region/north")
    ['census/region/north', 'census/region', 'census']
    """
    parts = name.split("/")
    return ["/".join(parts[:length]) for length in range(len(parts), 0, -1)]


def parent(name: str) -> str | None:
    """The book directly above, if there is one."""
    return name.rpartition("/")[0] or None


def known_path(connection: sa.Connection, nodes: Mapping[str, BookNode], name: str) -> list[BookNode]:
    """The book and all above it, nearest first; of one that is not there it is said which are."""
    if any(each not in nodes for each in lineage(name)):
        raise LedgerError(absent(connection, name))
    return path(nodes, name)


def path(found: Mapping[str, BookNode], name: str) -> list[BookNode]:
    """The book and all above it, nearest first, from those that were found."""
    names = lineage(name)
    if missing := [name for name in names if name not in found]:
        raise LedgerError(f"There is no book {missing[-1]!r} in this ledger: open it first.")
    return [found[name] for name in names]


def absent(connection: sa.Connection, name: str) -> str:
    """What is said of a book that was never opened: which there are, those of the most similar names first."""
    there = list(connection.execute(sa.select(schema.books.c.name).limit(_COMPARED)).scalars())
    known = {row.name for row in rows(connection, lineage(name))}
    missing = [each for each in lineage(name) if each not in known][-1]
    near = sorted(there, key=lambda each: (-SequenceMatcher(None, name.casefold(), each.casefold()).ratio(), each))
    more = f" and {len(near) - _LISTED:,} more" if len(near) > _LISTED else ""
    listed = f"but {', '.join(map(repr, near[:_LISTED]))}{more}: name one of them, or open it first"
    return f"There is no book {missing!r} in this ledger{f', {listed}' if near else ': open it first'}."


def rows(connection: sa.Connection, names: Iterable[str] | None = None) -> list[sa.Row[Any]]:
    """The rows of the books of these names, or of all books, as they are stored."""
    if names is None:
        return list(connection.execute(sa.select(schema.books)))
    return list(connection.execute(_BY_NAME, {"names": list(names)}))


def parse(row: sa.Row[Any]) -> BookNode:
    """A book as its row in the table says."""
    try:
        terms, (amounts, since) = Terms.from_json(row.terms), _totals(row.amounts)
        stage = Stage.from_json(since, terms.filter) if since else None
    except Exception as error:  # whatever an edited row makes of a parser
        raise ChainBroken(f"The row of book {row.name!r} cannot be read: it was edited.") from error
    if not isinstance(row.entries, int):
        raise ChainBroken(f"The row of book {row.name!r} cannot be read: it was edited.")
    return BookNode(row.name, terms, amounts, row.entries, stage)


def _totals(text: str) -> tuple[Amounts, str]:
    """The running totals of a book: its amounts and, on a second line, the stage that a raise began."""
    amounts, _, since = text.partition("\n")
    return Amounts.from_json(amounts), since


def advance(nodes: Iterable[BookNode], price: Amounts) -> list[BookNode]:
    """The nodes after the nearest one is charged ``price``.

    A book above is charged what its sub-book is. A partition stands at the largest of its parts in each currency, so it
    advances only by what the part has beyond that. A book that was raised pays the whole price, also above a partition.
    """
    moved: list[BookNode] = []
    whole = price
    for node in nodes:
        if moved and node.terms.kind == "partition":
            amounts = node.amounts.join(moved[-1].amounts)
            price = amounts.above(node.amounts)
        else:
            amounts = node.amounts + price
        since = node.since and replace(node.since, amounts=node.since.amounts + whole)
        moved.append(replace(node, amounts=amounts, entries=node.entries + 1, since=since))
    return moved


def charge_path(path: list[BookNode], price: Amounts) -> list[BookNode] | None:
    """The books on the way up after they were charged; nothing if one of them cannot stand the price, or has answers
    that were seen before a plan."""
    moved = advance(path, price)
    for before, after in zip(path, moved, strict=True):
        if price.planned and before.stage.amounts.adaptive:
            return None
        if not after.within:
            return None
    return moved


def outcome(node: BookNode) -> dict[str, str]:
    """What a book has proved where it stands, as an entry records it."""
    after = node.stage.read()
    return {"epsilon": repr(after.epsilon), "delta": repr(float(node.stage.delta)), "fraction": repr(after.fraction),
            "proof": after.proof}  # fmt: skip


def save(connection: sa.Connection, nodes: Iterable[BookNode]) -> None:
    """Write the running totals."""
    for node in nodes:
        totals = node.amounts.to_json() + (f"\n{node.since.to_json()}" if node.since else "")
        connection.execute(_ADVANCE, {"n": node.name, "a": totals, "e": node.entries})


class LedgerState:
    """What is known of a ledger: its last entry, every book, and how many charges of each were made with a seed.

    Entries that others wrote are replayed (``verification.LedgerReplay``, a state that grows by reading); what this
    process has just committed is known, and is taken over.
    """

    def __init__(self, start: tuple[int, str, str]) -> None:
        self.nodes: dict[str, BookNode] = {}
        self.seq, self.at, self.hash = start
        self._declaring = ""  # the partition whose parts come next
        self._seeded: Counter[str] = Counter()  # charges of a book, and of those inside it, made with a seed
        self.keys: dict[tuple[str, str], int] = {}  # the entry that charged a book under a key

    def take_over(self, last: Entry, moved: Iterable[BookNode]) -> None:
        """One charge further: the entry that this process has just committed, and where the books on its path stand."""
        self.seq, self.at, self.hash = last.seq, last.at, last.hash
        self._declaring = ""
        charged = {node.name: node for node in moved}
        self.nodes.update(charged)
        self._seeded.update(list(charged) if last.seeded else [])  # by name: a mapping would be added up
        self.note_key(last)

    def note_key(self, entry: Entry) -> None:
        """Remember the key of a charge, if it has one; a second charge of the same book under it is refused."""
        key = entry.unit.key if entry.unit else None
        if key is not None and self.keys.setdefault((entry.book, key), entry.seq) != entry.seq:
            raise ChainBroken(f"charges book {entry.book!r} a second time under one key.")

    def books_named(self, names: Iterable[str] | None = None) -> dict[str, BookNode]:
        """The books of these names that there are, or all."""
        if names is None:
            return dict(self.nodes)
        return {name: self.nodes[name] for name in names if name in self.nodes}

    def seeds(self, names: Iterable[str] | None = None) -> dict[str, int]:
        """How many charges of these books, or of all, were made with a seed."""
        return {name: self._seeded[name] for name in self.books_named(names)}

    def compare(
        self, tip: tuple[int, str, str], rows: Iterable[sa.Row[Any]], names: Iterable[str] | None = None
    ) -> None:
        """Raise unless the head, and the rows of the books of these names (or of all), follow from the entries."""
        if tip != (self.seq, self.at, self.hash):
            raise ChainBroken(f"The last entry is {self.seq}, but the head says otherwise: the tail was cut or edited.")
        stored = {row.name: row for row in rows}
        for name in (stored.keys() | self.nodes.keys()) if names is None else names:
            if (name in stored) != (name in self.nodes):
                raise ChainBroken(f"Book {name!r} is in the table of books or in the entries, but not in both.")
            if name in stored:
                self._compare_book(stored[name])

    def _compare_book(self, row: sa.Row[Any]) -> None:
        above = lineage(row.name)[1:]
        if row.parent != (above[0] if above else None) or not _same(parse(row), self.nodes[row.name]):
            raise ChainBroken(f"The limits or running totals of book {row.name!r} do not follow from its entries.")


def _same(stored: BookNode, replayed: BookNode) -> bool:
    """Equal, but for the reading at which a raise ended a stage: a float."""
    if stored.since is None or replayed.since is None:
        return stored == replayed
    if not math.isclose(stored.since.before_epsilon, replayed.since.before_epsilon, rel_tol=1e-9):
        return False
    since = replace(stored.since, before_epsilon=replayed.since.before_epsilon)
    return replace(stored, since=since) == replayed
