"""Where a ledger is kept: SQLite by default, PostgreSQL for teams.

Durability. A charge is acknowledged only after COMMIT returned. SQLite runs with ``synchronous=FULL`` and a rollback
journal whose header is cleared and synced, so that the one file is complete after every commit: a copy of the file
never misses the last charges, as it would with a write-ahead log left behind.

Races. Writers take the lock before they read: BEGIN IMMEDIATE in SQLite, SELECT … FOR UPDATE on the head's row in
PostgreSQL. One row guards everything, so there is no order of locks to get wrong, and no deadlock.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from discreet.errors import extra

with extra("ledger"):
    import sqlalchemy as sa
    from sqlalchemy import event as hooks
    from sqlalchemy import exc

from discreet.ledger import schema
from discreet.ledger.errors import LedgerError

__all__ = ["Store"]

_PATIENCE = 120  # seconds to wait for another writer before giving up


class Store:
    """Transactions on the database of one ledger; every failure is a ``LedgerError`` that says what was written."""

    def __init__(self, url: str, *, create: bool) -> None:
        self.url = _url(url)
        self._sqlite = self.url.get_backend_name() == "sqlite"
        self._memory = self._sqlite and self.url.database in (None, "", ":memory:")
        self._lock = threading.RLock()
        self._pid = os.getpid()
        if self._sqlite and not self._memory and not create and not Path(str(self.url.database)).exists():
            raise LedgerError(f"There is no ledger at {self.name}. Open a book to make one, or check the address.")
        with extra("postgres"):
            self._engine = self._connect()
        self._prepare(create)

    @property
    def name(self) -> str:
        """The address, without its password."""
        return self.url.render_as_string(hide_password=True)

    def _connect(self) -> sa.Engine:
        if not self._sqlite:
            return sa.create_engine(self.url, pool_pre_ping=True)
        arguments: dict[str, Any] = {"timeout": _PATIENCE, "isolation_level": None, "check_same_thread": False}
        pool = {"poolclass": sa.StaticPool} if self._memory else {}
        engine = sa.create_engine(self.url, connect_args=arguments, **pool)
        hooks.listen(engine, "connect", _durable)
        hooks.listen(engine, "begin", _begin)
        return engine

    def _prepare(self, create: bool) -> None:
        with self.read() as connection:
            state = schema.state_of(connection)
        if state == "absent" and not create:
            raise LedgerError(f"There is no ledger at {self.name}. Open a book to make one, or check the address.")
        if state != "current":
            with self._transaction(write=True) as connection:
                if not self._sqlite:  # there is no head to lock yet
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
            if not self._sqlite:
                connection.execute(sa.select(schema.head.c.id).with_for_update())
            yield connection

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[sa.Connection]:
        self._after_fork()
        try:
            with self._lock if self._sqlite else nullcontext(), self._engine.connect() as connection:
                level = {} if self._sqlite or write else {"isolation_level": "REPEATABLE READ"}
                connection = connection.execution_options(discreet_write=write, **level)
                with connection.begin():
                    yield connection
        except exc.DBAPIError as error:
            raise LedgerError(self._explain(error, write)) from error

    def _after_fork(self) -> None:
        if self._pid != os.getpid():  # a connection must not be shared with the parent, nor closed under it
            self._engine.dispose(close=False)
            self._lock = threading.RLock()
            self._pid = os.getpid()

    def _explain(self, error: exc.DBAPIError, write: bool) -> str:
        text = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
        undone = " Nothing was charged." if write else ""
        if write and error.connection_invalidated:
            undone = " The connection was lost: look at the history to see whether the entry was written."
        for sign, meaning in _MEANINGS.items():
            if sign in text:
                return f"The ledger at {self.name} {meaning} ({text}).{undone}"
        return f"The ledger at {self.name} failed ({text}).{undone}"

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()


_MEANINGS = {
    "disk is full": "cannot grow: the disk is full",
    "readonly": "cannot be written: it is read-only",
    "unable to open": "cannot be opened: check the path and its permissions",
    "not a database": "is not a database: the file is damaged or of another kind",
    "malformed": "is damaged: restore it from a copy and verify that copy against an anchored head",
    "locked": f"was locked by another process for more than {_PATIENCE} seconds",
    "append-only": "is append-only",
}


def _url(text: str) -> sa.URL:
    try:
        url = sa.make_url(text)
    except exc.ArgumentError:
        raise ValueError(
            "url is not an address, but must be like 'sqlite:///budget.db' or 'postgresql://host/database'."
        ) from None
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise ValueError(f"url names {url.get_backend_name()!r}, but must name 'sqlite' or 'postgresql'.")
    return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url


def _durable(connection: Any, _record: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.execute("PRAGMA journal_mode=PERSIST")
    cursor.close()


def _begin(connection: sa.Connection) -> None:
    write = connection.get_execution_options().get("discreet_write", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")
