"""Where a ledger is kept: SQLite by default, PostgreSQL for teams.

Durability. A charge is acknowledged only after COMMIT returned. SQLite runs with ``synchronous=FULL`` and a rollback
journal whose header is cleared and synced, so that the one file is complete after every commit: a copy of the file
never misses the last charges, as it would with a write-ahead log left behind. PostgreSQL is told to wait for the disk
in every transaction, whatever the server's or the database's own setting says.

Races. Writers take the lock before they read: BEGIN IMMEDIATE in SQLite, LOCK TABLE on the head in PostgreSQL. One lock
guards everything, so there is no order of locks to get wrong, and no deadlock. Nobody waits longer than ``_PATIENCE``.

Forks. SQLite must not be forked in the middle of a transaction: the child inherits locks that nobody will ever release.
So a fork waits a moment for the transactions of other threads, and a child that was cut off from one is told so.

Decision 23.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from discreet.errors import extra

with extra("ledger"):
    import sqlalchemy as sa
    from sqlalchemy import event as hooks
    from sqlalchemy import exc

from discreet.forks import Turn, here
from discreet.ledger import schema
from discreet.ledger.address import Address
from discreet.ledger.errors import LedgerError

__all__ = ["Store", "Versions", "connect"]

_PATIENCE = 120.0  # seconds to wait for another writer before giving up

_NO_LEDGER = "There is no ledger at {}. Open a book to make one, or check the address."


_SNAPSHOT = (
    "SELECT {own} txid_snapshot_xmin(now), txid_snapshot_xmax(now) FROM (SELECT txid_current_snapshot() AS now) AS seen"
)
_NUMBERS, _SEEN = _SNAPSHOT.format(own="txid_current(),"), _SNAPSHOT.format(own="")
_VERSIONS = (
    "SELECT count(*), coalesce(sum(xmin::text::bigint), 0), coalesce(max(xmin::text::bigint), 0) FROM discreet_entries"
)


class Versions(NamedTuple):
    """Which transactions wrote a range of entries: how many entries, and the sum and the largest of the numbers."""

    number: int
    total: int
    largest: int

    def join(self, other: Versions) -> Versions:
        """Those of two ranges beside each other."""
        return Versions(self.number + other.number, self.total + other.total, max(self.largest, other.largest))


class Store:
    """Transactions on the database of one ledger; every failure is a ``LedgerError`` that says what was written."""

    def __init__(self, url: str, *, create: bool) -> None:
        self.address = Address.parse(url)
        self._sqlite = self.address.sqlite
        self._home = here()
        self._written = 0  # write transactions of this object
        self._turn: Turn | None = None
        if self._sqlite:  # one transaction at a time in this process
            file = self.address.file
            self._turn = Turn(str(file.resolve()) if file else "", LedgerError)
            if file:
                self._make_file(file, create)
        with extra("postgres"):
            self._engine = connect(self.address)
        self._prepare(create)

    @property
    def name(self) -> str:
        """The address, without anything secret."""
        return self.address.name

    def _make_file(self, file: Path, create: bool) -> None:
        """Readable by its owner only, and so is the journal, which SQLite gives the file's permissions."""
        if not create and not file.exists():
            raise LedgerError(_NO_LEDGER.format(self.name))
        if create and self.address.url.query.get("mode") not in ("ro", "rw"):
            try:
                os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            except FileExistsError:
                return  # with the permissions its owner gave it
            except OSError as error:
                raise LedgerError(f"The ledger at {self.name} cannot be opened: {error.strerror}.") from error

    def _prepare(self, create: bool) -> None:
        with self.read() as connection:
            state = schema.state_of(connection)
        if state == "absent" and not create:
            raise LedgerError(_NO_LEDGER.format(self.name))
        if state != "current":
            try:
                self._migrate()
            except LedgerError:  # a copy that cannot be written is read as it is, where its tables are today's
                if state != "readable":
                    raise

    def _migrate(self) -> None:
        with self._transaction(write=True) as connection:
            if not self._sqlite:  # there is no table to lock yet
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(4709267)"))
            if schema.state_of(connection) != "current":
                schema.migrate(connection)

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A consistent view, never blocked for long by writers."""
        with self._transaction(write=False) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """The only writer, until the block ends; committed durably when it ends well, otherwise undone."""
        with self._transaction(write=True) as connection:
            self._written += 1
            if not self._sqlite:  # the table, not its row: before the first entry there is none
                connection.exec_driver_sql("LOCK TABLE discreet_head IN EXCLUSIVE MODE")
            yield connection

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[sa.Connection]:
        self._after_fork()
        try:
            with self._turn.hold(_PATIENCE) if self._turn else nullcontext(), self._engine.connect() as connection:
                connection = connection.execution_options(discreet_write=write, **self._isolation(write))
                with connection.begin():
                    if not self._sqlite:
                        connection.exec_driver_sql(_careful(_PATIENCE))
                    yield connection
        except exc.SQLAlchemyError as error:
            raise self._failure(error, write) from (None if self._secret(error) else error)

    def _isolation(self, write: bool) -> dict[str, str]:
        """Said in every transaction: the server's default may be any."""
        if self._sqlite:
            return {}
        return {"isolation_level": "READ COMMITTED" if write else "REPEATABLE READ"}

    def writes(self, connection: sa.Connection, *, write: bool) -> tuple[object, object]:
        """What the database says about writing: before this transaction, and after it if nobody else writes meanwhile.
        Whoever finds the second of last time equal to the first of this time was alone.

        SQLite counts what other connections commit, and this object what it does itself. PostgreSQL numbers all
        transactions that write, and says which number comes next and whether any before it are still at work; one that
        only reads takes no number, so that it can be asked of a copy that cannot be written, too.
        """
        if self._sqlite:
            mark = connection.info.setdefault("discreet", object())  # versions of two connections cannot be compared
            seen = connection.exec_driver_sql("PRAGMA data_version").scalar()
            return (mark, seen, self._written - write), (mark, seen, self._written)
        if write:
            own, oldest, following = connection.exec_driver_sql(_NUMBERS).one()
            return own, own + 1 if oldest == following == own else object()
        oldest, following = connection.exec_driver_sql(_SEEN).one()
        quiet = following if oldest == following else object()
        return quiet, quiet

    def versions(self, connection: sa.Connection, after: int | None, last: int) -> Versions | None:
        """How many entries there are between these numbers, and the sum and the largest of the numbers of the
        transactions that wrote them: no UPDATE, DELETE or INSERT leaves that as it was. SQLite keeps none: None."""
        if self._sqlite:
            return None
        low = "" if after is None else f"seq > {after:d} AND "
        return Versions(*map(int, connection.exec_driver_sql(f"{_VERSIONS} WHERE {low}seq <= {last:d}").one()))

    def _after_fork(self) -> None:
        if self._home == here():
            return
        if self.address.memory:
            raise LedgerError("A ledger in memory belongs to the process that made it: a forked copy of it would be a "
                              "second budget. Keep it in a file.")  # fmt: skip
        _inherited.append(self._engine.pool)  # connections must not be shared with the parent, nor closed under it
        self._engine.dispose(close=False)
        self._home = here()

    def _secret(self, error: exc.SQLAlchemyError) -> bool:
        return self.address.mentions_secret(f"{error} {getattr(error, 'orig', '')}")

    def _failure(self, error: exc.SQLAlchemyError, write: bool) -> LedgerError:
        cause = getattr(error, "orig", None) or error
        words = str(cause).strip().splitlines()
        text = words[0] if words and not self._secret(error) else type(cause).__name__
        undone = " Nothing was charged." if write else ""
        if write and getattr(error, "connection_invalidated", False):
            undone = " The connection was lost: look at the history to see whether the entry was written."
        meaning = next((meaning for sign, meaning in _MEANINGS.items() if sign in text), "failed")
        return LedgerError(f"The ledger at {self.name} {meaning} ({text}).{undone}")

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()


_inherited: list[sa.Pool] = []  # what a forked child got and must neither use nor close

_MEANINGS = {
    "disk is full": "cannot grow: the disk is full",
    "readonly": "cannot be written: it is read-only",
    "read-only": "cannot be written: it is read-only",
    "unable to open": "cannot be opened: check the path and its permissions",
    "not a database": "is not a database: the file is damaged or of another kind",
    "malformed": "is damaged: restore it from a copy and verify that copy against a fingerprint (head) that you kept",
    "locked": f"was locked by another process for more than {_PATIENCE:g} seconds",
    "lock timeout": "was locked by another process for longer than it waits",
    "append-only": "is append-only",
}


def connect(address: Address | str) -> sa.Engine:
    """Connections to a database whose commits are on the disk: transactions that write say so, and wait for others."""
    address = Address.parse(address) if isinstance(address, str) else address
    try:
        if not address.sqlite:
            arguments = {"connect_timeout": int(_PATIENCE)} | address.arguments
            return sa.create_engine(address.url, pool_pre_ping=True, connect_args=arguments)
        arguments = {"timeout": _PATIENCE, "isolation_level": None, "check_same_thread": False}
        pool = {"poolclass": sa.StaticPool} if address.memory else {}
        engine = sa.create_engine(address.url, connect_args=arguments, **pool)
    except exc.ArgumentError:  # SQLAlchemy's own words would quote the address
        raise ValueError("url names a driver that cannot be loaded: begin with 'sqlite:' or 'postgresql:'.") from None
    hooks.listen(engine, "connect", _durable)
    hooks.listen(engine, "begin", _begin)
    return engine


def _careful(patience: float) -> str:
    """What a transaction of PostgreSQL is told first, for itself alone."""
    return f"SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = {math.ceil(1000 * patience)}"


def _durable(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA journal_mode=PERSIST")
    cursor.close()


def _begin(connection: sa.Connection) -> None:
    write = connection.get_execution_options().get("discreet_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
