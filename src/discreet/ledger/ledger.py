"""The ledger: every book of an organisation in one append-only, tamper-evident history."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from os import PathLike, fspath
from os.path import splitdrive

import sqlalchemy as sa

from discreet.adjacency import Adjacency
from discreet.ledger import chain, rules, schema, tree
from discreet.ledger.amounts import NOTHING
from discreet.ledger.book import Book
from discreet.ledger.chain import Entry, Tip
from discreet.ledger.errors import LedgerError
from discreet.ledger.filters import USUAL
from discreet.ledger.integrity import IntegrityCheck, Verified
from discreet.ledger.snapshot import Overview, overview
from discreet.ledger.store import Store
from discreet.ledger.terms import Terms, check_name
from discreet.ledger.tree import BookNode
from discreet.ledger.verification import Verification, verify
from discreet.release import ONE_RECORD

__all__ = ["Ledger"]

_OTHER_PARTS = "The partition {!r} exists with other parts. Parts are fixed when they are declared."
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


class Ledger:
    """Books kept in a database, charged durably and one at a time.

    ``url`` is a file's path, or ``sqlite:///budget.db`` (a file), ``sqlite://`` (memory, for trying things) or
    ``postgresql://…``. ``who`` is written into every entry, by default the operating system's user; ``clock`` is for
    tests. With ``create=False`` a ledger that does not exist is an error, which protects against a mistyped address.

    Whatever is read stands on a verified chain, and is refused (``ChainBroken``) where it does not hold. With
    ``anyway=True`` it is read all the same, for whoever looks into the damage: ``Overview.broken`` and
    ``Snapshot.broken`` say what is wrong, and nothing can be charged.

    >>> from discreet import events
    >>> book = Ledger("sqlite://").open("census", epsilon=1.0)
    >>> for _ in range(10):
    ...     entry = book.charge(events.PureDP(epsilon=0.1), label="count")
    >>> book.spent().epsilon, book.remaining().epsilon
    (1.0, 0.0)
    >>> book.charge(events.PureDP(epsilon=0.1), label="one more")
    Traceback (most recent call last):
    ...
    discreet.errors.BudgetExceeded: 'one more' would raise epsilon to 1.100 at delta=0, above the limit 1 of book
    'census'. Nothing was released. Left is epsilon=0. Nothing more fits. Use more noise, or ask the data owner to raise
    the limit.
    """

    def __init__(
        self,
        url: str | PathLike[str] = "sqlite:///budget.db",
        *,
        who: str | None = None,
        clock: Callable[[], datetime] | None = None,
        create: bool = True,
        anyway: bool = False,
    ) -> None:
        # as systems name users
        self.who = (_user() if who is None else who).encode("utf-8", "backslashreplace").decode()
        self._clock = clock or (lambda: datetime.now(UTC))
        self._store = Store(_address(url), create=create)
        self._integrity = IntegrityCheck(self._store)
        self._anyway = anyway

    def __repr__(self) -> str:
        return f"<Ledger {self._store.name}>"

    @property
    def name(self) -> str:
        """The address, without its password."""
        return self._store.name

    def open(
        self,
        name: str,
        *,
        epsilon: float,
        delta: float = 0.0,
        adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
        unit: str = ONE_RECORD,
        rows_per_unit: int | None = None,
        filter: str | None = None,
        max_epsilon: float | None = None,
        max_delta: float | None = None,
    ) -> Book:
        """The book of that name, made if there is none; a book that exists with other limits or another unit is an
        error.

        ``unit`` names whom the book protects: charges that protect somebody else are refused. With ``rows_per_unit``,
        the most rows that one of them has, charges that protect one record are restated for that many rows. ``filter``
        says how delta is divided, once and for all: ``asked``, that of a new book, counts releases at what they were
        asked for with where that is less; ``mixed`` keeps nothing for that; ``gaussian``, ``renyi`` or ``basic`` (for
        approximate DP) give all of it to one theorem. ``max_epsilon`` and ``max_delta`` declare a ceiling for raises:
        it, and not the limit of the day, is then what was promised before the first answer.
        """
        terms = Terms(
            epsilon=epsilon,
            delta=delta,
            adjacency=Adjacency(adjacency),
            unit=unit,
            rows_per_unit=rows_per_unit,
            filter=USUAL if filter is None else filter,
            max_epsilon=max_epsilon,
            max_delta=max_delta,
        )
        return self._open({check_name(name): terms}, any_filter=filter is None)[0]

    def book(self, name: str) -> Book:
        """A book that exists, by its name or path (``census/alice``)."""
        with self._read(tree.lineage(name)) as (connection, seen):
            return Book(self, name, tree.known_path(connection, seen.nodes, name)[0].terms)

    def books(self, inside: Book | None = None) -> list[Book]:
        """The outermost books, or those directly inside one, by name."""
        above = inside.name if inside else None
        with self._read() as (_, seen):
            nodes = sorted(seen.nodes.values(), key=lambda node: node.name)
        return [Book(self, node.name, node.terms) for node in nodes if tree.parent(node.name) == above]

    def overview(self, name: str | None = None) -> Overview:
        """Where all books stand, or one and those inside it, and the head, in one read transaction."""
        with self._read() as (connection, seen):
            return overview(connection, seen, name)

    def head(self) -> str:
        """Number and hash of the last entry. Keep it elsewhere: a cut or rewritten ledger cannot reproduce it."""
        with self._read(()) as (_, seen):
            return seen.head

    def verify(self, head: str | None = None, *, progress: Callable[[float], object] | None = None) -> Verification:
        """Recompute everything from the entries; raise ``ChainBroken`` at the first that does not fit.

        With an anchored ``head``, also find a cut tail or a history rewritten as a whole. ``progress`` is told the
        share of the entries that is done.
        """
        with self._store.read() as connection:
            return verify(connection, head, progress)

    def now(self) -> datetime:
        """What the ledger's clock says, in UTC."""
        return self._clock().astimezone(UTC)

    def entries(self) -> list[Entry]:
        """The whole history in order."""
        with self._read() as (connection, _):
            return list(chain.read(connection))

    def close(self) -> None:
        """Give the database connections back."""
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _read(self, names: Iterable[str] | None = None) -> AbstractContextManager[tuple[sa.Connection, Verified]]:
        """A read transaction on a ledger found to be what was written, with the books of these names, or all."""
        return self._integrity.reading(names, anyway=self._anyway)

    @contextmanager
    def _write(self, books: Iterable[str]) -> Iterator[Writing]:
        """A write transaction that may change these books, on a ledger found to be what was written."""
        self._integrity.read_history()
        with self._store.write() as connection:
            names = {above for name in books for above in tree.lineage(name)}
            writing = Writing(self, connection, *self._integrity.check(connection, names))
            yield writing
        self._integrity.note_commit(writing.entries)

    def _open(self, wanted: dict[str, Terms], partition: str | None = None, *, any_filter: bool = False) -> list[Book]:
        """Make the books that are missing, all in one transaction; those that exist must have these terms, whatever
        their filter is where ``any_filter`` says so.
        """
        with self._read(wanted) as (_, seen):  # the common case needs no lock, and works on a read-only file
            found = dict(seen.nodes)
        if set(found) != set(wanted):
            with self._write(wanted) as writing:
                found = {name: writing.nodes[name] for name in wanted if name in writing.nodes}
                if partition in found:
                    raise LedgerError(_OTHER_PARTS.format(partition))
                for name, terms in wanted.items():
                    if name not in found:
                        writing.open(name, terms)
        if any_filter:
            kept = {name: found[name].terms.filter for name in wanted if name in found}
            wanted = {name: replace(terms, filter=kept.get(name, terms.filter)) for name, terms in wanted.items()}
        for name, terms in wanted.items():
            if name in found and found[name].terms != terms:
                raise LedgerError(
                    f"Book {name!r} exists with {found[name].terms.describe()}, but was opened with "
                    f"{terms.describe()}. {_remedy(found[name], terms)}"
                )
        if partition:
            self._check_parts(partition, len(wanted) - 1)
        return [Book(self, name, terms) for name, terms in wanted.items()]

    def _check_parts(self, partition: str, count: int) -> None:
        with self._read() as (_, seen):
            if sum(tree.parent(name) == partition for name in seen.nodes) != count:
                raise LedgerError(_OTHER_PARTS.format(partition))


def _address(url: str | PathLike[str]) -> str:
    """The URL; that of a file where a path is given. A path with a colon might be a mistyped URL, so it is none."""
    if isinstance(url, str) and ("://" in url or (":" in url and not splitdrive(url)[0])):
        return url
    path = fspath(url)
    if not isinstance(path, str) or not path or "?" in path:
        raise ValueError("url is no path of a file: it is empty, or has a '?', with which the options of a URL begin.")
    return f"sqlite:///{path}"


def _remedy(there: BookNode, asked: Terms) -> str:
    """What to do about a book that exists with other terms: never to open a second budget for the same data."""
    terms, (epsilon, delta) = there.terms, (float(there.stage.epsilon), float(there.stage.delta))
    fixed = "Limits are fixed when a book is first opened"
    if replace(asked, epsilon=terms.epsilon, delta=terms.delta) != terms:
        return f"{fixed}, and so are its other terms: open it with those, or take it with Ledger.book({there.name!r})."
    if asked.epsilon <= epsilon and asked.delta <= delta:
        return f"{fixed}; it now has epsilon={epsilon:g}, delta={delta:g}: take it with Ledger.book({there.name!r})."
    more = max(0.0, asked.epsilon - epsilon), max(0.0, asked.delta - delta)
    return (
        f"{fixed}; the owner of the data may raise them, with a reason that the report repeats: "
        f"book.raise_limit(epsilon={more[0]:g}, delta={more[1]:g}, why=...), or discreet ledger raise {there.name} "
        f"--epsilon {more[0]:g} --delta {more[1]:g} --why ..."
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without an entry for its user
        return "unknown"
