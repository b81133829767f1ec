"""Where a ledger is kept, as an address that can be shown: no part of it that may be a secret is ever in its text."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote

from discreet.errors import extra

with extra("ledger"):
    import sqlalchemy as sa
    from sqlalchemy import exc

__all__ = ["Address"]

_PUBLIC = ("host", "port")  # what SQLAlchemy itself reads from the query of a PostgreSQL address
_HARMLESS = ("application_name", "connect_timeout", "dbname", "hostaddr", "sslmode", "target_session_attrs", "user")


@dataclass(frozen=True, slots=True)
class Address:
    """``url`` without what its query says beyond host and port, which goes to the driver as ``arguments``.

    Guarantee: ``name`` and ``repr`` hold neither the password nor any value of the query, which has passwords of its
    own (``password``, ``sslpassword``); ``mentions_secret`` recognises them in a driver's words.
    """

    url: sa.URL
    arguments: dict[str, Any] = field(repr=False)

    @staticmethod
    def parse(text: str) -> Address:
        """The address, or a ``ValueError`` that repeats nothing of it: any part may be a piece of a password."""
        try:
            url = sa.make_url(text)
        except (exc.ArgumentError, ValueError):  # SQLAlchemy quotes what it cannot read, such as a port
            raise ValueError(
                "url is not an address, but must be like 'sqlite:///budget.db' or 'postgresql://host/database'."
            ) from None
        if url.get_backend_name() not in ("sqlite", "postgresql"):
            raise ValueError("url names another kind of database, but must begin with 'sqlite:' or 'postgresql:'.")
        return _sqlite(url) if url.get_backend_name() == "sqlite" else _postgres(url)

    @property
    def sqlite(self) -> bool:
        """Whether it names SQLite; otherwise PostgreSQL."""
        return self.url.get_backend_name() == "sqlite"

    @property
    def memory(self) -> bool:
        """Whether the ledger lives in this process only."""
        return self.sqlite and self.file is None

    @property
    def file(self) -> Path | None:
        """The file of SQLite; none in memory, and none for PostgreSQL."""
        text = self.url.database or ""
        if not self.sqlite or not text or ":memory:" in text or self.url.query.get("mode") == "memory":
            return None
        return Path(unquote(text.removeprefix("file:")) if text.startswith("file:") else text)

    @property
    def name(self) -> str:
        """What may be shown."""
        shown = self.url.set(query={}) if self.sqlite else self.url
        return shown.render_as_string(hide_password=True)

    def mentions_secret(self, text: str) -> bool:
        """Whether ``text`` holds a password, or another value of the query that may be one."""
        values = [value for key, value in self.arguments.items() if key not in _HARMLESS]
        secrets = [str(value) for value in (self.url.password, *values) if value]
        return any(form in text for secret in secrets for form in (secret, quote(secret, safe=""), quote_plus(secret)))


def _sqlite(url: sa.URL) -> Address:
    if url.username or url.password or url.host or url.port:
        raise ValueError("url names a host, but SQLite keeps a file: write three slashes, as in 'sqlite:///budget.db'.")
    return Address(url, {})


def _postgres(url: sa.URL) -> Address:
    if "@" in f"{url.host}{url.database}":
        raise ValueError("url has a second '@': write the '@' of a password as %40, a slash as %2F.")
    if not all(isinstance(value, str) for key, value in url.query.items() if key not in _PUBLIC):
        raise ValueError("url gives an option twice.")
    driver = "postgresql+psycopg" if url.drivername == "postgresql" else url.drivername
    arguments = {key: value for key, value in url.query.items() if key not in _PUBLIC}
    kept = {key: value for key, value in url.query.items() if key in _PUBLIC}
    return Address(url.set(drivername=driver, query=kept), arguments)
