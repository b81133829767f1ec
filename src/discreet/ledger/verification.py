"""Is the ledger what was written? Everything that follows from the entries is recomputed and compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

import sqlalchemy as sa

from discreet.adjacency import Adjacency
from discreet.errors import BudgetExceeded
from discreet.ledger import chain, rules, tree
from discreet.ledger.chain import Entry
from discreet.ledger.errors import ChainBroken
from discreet.ledger.terms import Terms, check_name
from discreet.ledger.tree import BookNode, LedgerState
from discreet.ledger.units import suits

__all__ = ["LedgerReplay", "Verification", "verify"]


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a verification that found no fault: the number of entries and books, and the last entry (head)."""

    entries: int
    books: int
    head: str
    anchored: bool


def verify(
    connection: sa.Connection, head: str | None = None, progress: Callable[[float], object] | None = None
) -> Verification:
    """Walk the chain once; raise ``ChainBroken`` at the first thing that does not follow from what was written."""
    anchor = chain.parse_head(head) if head is not None else None
    replay = LedgerReplay()
    with closing(chain.read(connection)) as entries:
        replay.read(
            entries if progress is None else _with_progress(entries, chain.tip(connection)[0], progress), anchor
        )
    replay.compare(chain.tip(connection), tree.rows(connection))
    return Verification(replay.seq, len(replay.nodes), f"{replay.seq}:{replay.hash}", anchor is not None)


class LedgerReplay(LedgerState):
    """What follows from the entries read so far: the last of them, and the terms and totals of every book.

    Guarantee: after ``read`` or ``settle``, each entry follows the one before it, charges a book that was opened, at
    the price that its event has, and no book stands beyond its limit. Prices are never negative, so a book within its
    limit at the end was within it all along, and limits are compared once for many entries.
    """

    def __init__(self) -> None:
        super().__init__(chain.START)
        self._ruled: set[str] = set()  # the books that were opened by a version that names its rules
        self._moved: set[str] = set()
        self._said: dict[str, Entry] = {}  # the last entry of a book that has not moved since

    def read(self, entries: Iterable[Entry], anchor: tuple[int, str] | None = None) -> None:
        """Add entries, the first of which may be the last that was added; the anchored one must be among them."""
        found = anchor is None or anchor == (0, chain.GENESIS)
        for entry in entries:
            if entry.seq != self.seq:
                self.add(entry)
            elif entry.hash != self.hash or entry.digest() != self.hash:
                raise ChainBroken(f"Entry {entry.seq} is not the one that was there: the history was rewritten.")
            if anchor and entry.seq == anchor[0]:
                found = True
                if entry.hash != anchor[1]:
                    raise ChainBroken(
                        f"Entry {entry.seq} is not the one whose fingerprint was kept: the history was rewritten."
                    )
        if anchor and anchor[0] > self.seq:
            raise ChainBroken(
                f"The ledger ends at entry {self.seq}, but the fingerprint that was kept is of entry {anchor[0]}: its "
                "tail is cut off."
            )
        if not found:
            raise ChainBroken(
                "The fingerprint (head) that was kept is not in the chain: before its first entry a ledger has 0:000…."
            )
        self.settle()

    def add(self, entry: Entry) -> None:
        """One more entry; ``settle`` compares the totals with the limits."""
        with chain.judging(self.seq + 1):
            chain.check_links(entry, self.seq, self.hash)
            self._apply(entry)
        self.seq, self.at, self.hash = entry.seq, entry.at, entry.hash

    def _apply(self, entry: Entry) -> None:
        if not entry.rules and self._ruled.intersection(tree.lineage(entry.book)):
            raise ChainBroken(f"names no rules, as only older versions do, which did not know book {entry.book!r}.")
        if entry.kind == "open":
            self._open(entry)
        elif entry.kind in ("charge", "plan", "reserve"):
            self._charge(entry)
        elif entry.kind == "raise":
            self._raise(entry)
        else:
            raise ChainBroken(f"is of the kind {entry.kind!r}, which no ledger writes.")

    def _open(self, entry: Entry) -> None:
        if entry.book in self.nodes:
            raise ChainBroken(f"opens book {entry.book!r} a second time.")
        if entry.event or entry.price or entry.epsilon or entry.label:
            raise ChainBroken(f"opens book {entry.book!r} and charges it at once.")
        terms = Terms.from_json(entry.terms)
        above = tree.lineage(entry.book)[1:]
        self._check_place(terms, entry.book, self.nodes[above[0]] if above else None)
        self._declaring = entry.book if terms.kind == "partition" else self._declaring if terms.kind == "part" else ""
        self.nodes[entry.book] = BookNode(entry.book, terms)
        if entry.rules:
            self._ruled.add(entry.book)

    def _check_place(self, terms: Terms, name: str, above: BookNode | None) -> None:
        """Where a book may be: what ``Book.sub`` and ``Book.split`` make, and nothing else."""
        check_name(name.rsplit("/", 1)[-1])
        inside = above is not None and above.terms.kind == "partition"
        if (terms.kind == "part") != inside or (above is None and terms.kind != "book"):
            raise ChainBroken(f"opens {name!r} as a {terms.kind}, which it cannot be there.")
        if above is None:
            return
        if inside and self._declaring != above.name:
            raise ChainBroken(f"adds {name!r} to a partition whose parts were fixed before.")
        if terms.kind == "partition" and terms.adjacency is Adjacency.REPLACE:
            raise ChainBroken(f"splits a book under replace adjacency, where a record may change its part: {name!r}.")
        if _inherited_terms(terms) != _inherited_terms(above.terms):
            raise ChainBroken(f"opens {name!r} with other terms than the book above it has.")

    def _charge(self, entry: Entry) -> None:
        path = self._way(entry)
        price = rules.check_price(
            entry.event, entry.price, path[0].terms.adjacency, entry.rules, _rows(entry, path[0].terms)
        )
        if price.planned and any(node.stage.amounts.adaptive for node in path):
            raise ChainBroken(f"is priced as a plan, but answers of book {entry.book!r} had been seen.")
        for node in tree.advance(path, price):
            self.nodes[node.name] = node
            self._moved.add(node.name)
            self._said.pop(node.name, None)
        self._said[entry.book] = entry
        if entry.seeded:
            self._seeded.update(node.name for node in path)
        self.note_key(entry)

    def _raise(self, entry: Entry) -> None:
        self.settle()  # what was charged before stands within the limit of before
        if entry.event or entry.price or not entry.label.strip():
            raise ChainBroken(f"raises book {entry.book!r} without a reason, or charges it at once.")
        epsilon, delta = entry.increment
        if min(epsilon, delta) < 0 or not 0 < epsilon + delta < math.inf:
            raise ChainBroken(f"lowers the limit of book {entry.book!r}, leaves it, or takes it away.")
        try:
            self.nodes[entry.book] = self._way(entry)[0].raise_limit(epsilon, delta)
        except BudgetExceeded:
            raise ChainBroken(f"raises book {entry.book!r} beyond its ceiling.") from None
        self._moved.add(entry.book)
        self._said[entry.book] = entry

    def _way(self, entry: Entry) -> list[BookNode]:
        """The book of an entry and all above it."""
        self._declaring = ""
        if entry.book not in self.nodes:
            raise ChainBroken(f"charges book {entry.book!r}, which was never opened.")
        path = [self.nodes[name] for name in tree.lineage(entry.book)]
        if not path[0].enforces:
            raise ChainBroken(f"charges {entry.book!r}, a partition, which only its parts may advance.")
        return path

    def settle(self) -> None:
        """Compare what moved with its limits, and with what the entries say was proved."""
        for name in self._moved:
            node = self.nodes[name]
            if not node.within:
                raise ChainBroken(f"The entries up to {self.seq} exceed the limit of book {name!r}.")
            if (said := self._said.get(name)) and not _agree(said, tree.outcome(node)):
                raise ChainBroken(f"Entry {said.seq} gives a smaller total for book {name!r} than follows from it.")
        self._moved.clear()
        self._said.clear()


def _with_progress(entries: Iterable[Entry], last: int, progress: Callable[[float], object]) -> Iterator[Entry]:
    """The entries as they come; a hundred of them at a time are told as a share of those the head names."""
    for number, entry in enumerate(entries):
        if number % 100 == 0:
            progress(min(1.0, number / max(1, last)))
        yield entry


def _inherited_terms(terms: Terms) -> tuple[Adjacency, str, int | None, str]:
    return terms.adjacency, terms.unit, terms.rows_per_unit, terms.filter


def _rows(entry: Entry, terms: Terms) -> int:
    """For how many rows at once a charge was priced, if it protects whom the book does; older entries say nothing."""
    said = entry.unit
    if not suits(terms, said) or (said is None and entry.rules != rules.BEFORE):
        raise ChainBroken(f"charges book {entry.book!r} for another unit than the book keeps.")
    return said.rows if said else 1


def _agree(entry: Entry, after: dict[str, str]) -> bool:
    """Within a part in 10⁹: readings are floats. The proof is a name, and where two theorems tie, either."""
    return all(
        math.isclose(float(getattr(entry, name)), float(after[name]), rel_tol=1e-9, abs_tol=1e-12)
        for name in ("epsilon", "delta", "fraction")
    )
