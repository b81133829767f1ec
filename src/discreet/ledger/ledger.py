"""The ledger: every book of an organisation in one append-only, tamper-evident history."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from os import PathLike, fspath
from os.path import splitdrive

from discreet.adjacency import Adjacency
from discreet.ledger import chain, tree
from discreet.ledger.book import Book
from discreet.ledger.chain import Entry
from discreet.ledger.errors import LedgerError
from discreet.ledger.filters import USUAL
from discreet.ledger.integrity import IntegrityCheck
from discreet.ledger.snapshot import Overview, overview
from discreet.ledger.store import Store
from discreet.ledger.terms import Terms, check_name
from discreet.ledger.tree import BookNode
from discreet.ledger.verification import Verification, verify
from discreet.release import ONE_RECORD

__all__ = ["Ledger", "user_name"]

_OTHER_PARTS = "The partition {!r} exists with other parts. Parts are fixed when they are declared."


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
    'census'. Nothing was released. What is left: epsilon=0. Nothing more fits. Use more noise, or ask the data
    owner to raise the limit.
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
        self.who = (user_name() if who is None else who).encode("utf-8", "backslashreplace").decode()
        self._clock = clock or chain.now
        self._store = Store(_address(url), create=create)
        self._integrity = IntegrityCheck(self._store, self.who, self._clock, anyway=anyway)

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
        with self._integrity.reading(tree.lineage(name)) as (connection, seen):
            return Book(self, name, tree.known_path(connection, seen.nodes, name)[0].terms)

    def books(self, inside: Book | None = None) -> list[Book]:
        """The outermost books, or those directly inside one, by name."""
        above = inside.name if inside else None
        with self._integrity.reading() as (_, seen):
            nodes = sorted(seen.nodes.values(), key=lambda node: node.name)
        return [Book(self, node.name, node.terms) for node in nodes if tree.parent(node.name) == above]

    def overview(self, name: str | None = None) -> Overview:
        """How much all books have spent (or one book and those inside it), and the head, read in one transaction."""
        with self._integrity.reading() as (connection, seen):
            return overview(connection, seen, name)

    def head(self) -> str:
        """Number and hash of the last entry. Keep it elsewhere: a cut or rewritten ledger cannot reproduce it."""
        with self._integrity.reading(()) as (_, seen):
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
        with self._integrity.reading() as (connection, _):
            return list(chain.read(connection))

    def search(
        self, words: str = "", *, book: str | None = None, kind: str = "", before: int | None = None, newest: int = 100
    ) -> list[Entry]:
        """The newest entries, in order, in whose label, book or author each of the words stands: of a book and those
        inside it, of a kind (``charge``, ``raise``, ``open`` …), before an entry's number.
        """
        with self._integrity.reading(()) as (connection, _):
            wanted = words.split()[:10]
            return list(
                chain.read(connection, book=book, below=True, newest=newest, before=before, words=wanted, kind=kind)
            )

    def close(self) -> None:
        """Give the database connections back."""
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def _open(self, wanted: dict[str, Terms], partition: str | None = None, *, any_filter: bool = False) -> list[Book]:
        """Make the books that are missing, all in one transaction; those that exist must have these terms, whatever
        their filter is where ``any_filter`` says so.
        """
        with self._integrity.reading(wanted) as (_, seen):  # the usual case: no lock, and a read-only file will do
            found = dict(seen.nodes)
        if set(found) != set(wanted):
            with self._integrity.writing(wanted) as writing:
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
        with self._integrity.reading() as (_, seen):
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
    take = f"take it with Ledger.book({there.name!r}), or with --book {there.name} on the command line"
    if replace(asked, epsilon=terms.epsilon, delta=terms.delta) != terms:
        return f"{fixed}, and so are its other terms: open it with those, or {take}."
    if asked.epsilon <= epsilon and asked.delta <= delta:
        return f"{fixed}; it now has epsilon={epsilon:g}, delta={delta:g}: {take}."
    more = max(0.0, asked.epsilon - epsilon), max(0.0, asked.delta - delta)
    return (
        f"{fixed}; the owner of the data may raise them, with a reason that the report repeats: "
        f"book.raise_limit(epsilon={more[0]:g}, delta={more[1]:g}, why=...), or discreet ledger raise {there.name} "
        f"--epsilon {more[0]:g} --delta {more[1]:g} --why ..."
    )


def user_name() -> str:
    """The name of the operating system's user, as entries bear it."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without an entry for its user
        return "unknown"
