"""Entries, and the hash that ties each one to all before it.

The hash of an entry covers every column of it, the hash of the entry before included. Editing, deleting, adding or
moving an entry inside the chain breaks a link. Cutting the tail off, or rewriting everything, breaks none: for that,
keep the head (``17:5f0c…``) somewhere else, and verify against it.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from discreet.events import Event
from discreet.ledger import schema
from discreet.ledger.amounts import Amounts
from discreet.ledger.errors import ChainBroken, LedgerError
from discreet.ledger.units import Charged

__all__ = ["GENESIS", "Entry", "append", "library_version", "parse_head", "read", "tip"]

GENESIS = "0" * 64
_SKEW = timedelta(seconds=5)  # clocks of a team's machines differ a little; beyond this something is wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the ledger, as written. ``epsilon`` and ``delta`` are what the book had proved after it.

    ``terms`` holds what was agreed: by an entry that opens a book, its limits; by a charge, the unit it protects; by a raise,
    what it adds.
    """

    seq: int
    at: str
    who: str
    book: str
    kind: str
    label: str
    event: str
    price: str
    terms: str
    epsilon: str
    delta: str
    fraction: str
    proof: str
    version: str
    previous: str
    hash: str = ""

    def columns(self) -> dict[str, Any]:
        """Every column by name."""
        return {name: getattr(self, name) for name in _COLUMNS}

    def digest(self) -> str:
        """SHA-256 over every column but the hash itself."""
        columns = self.columns()
        del columns["hash"]
        return hashlib.sha256(json.dumps(columns, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    @property
    def time(self) -> datetime:
        """When it was written, in UTC."""
        return datetime.fromisoformat(self.at)

    @property
    def cost(self) -> Event | None:
        """The event charged; none for entries that open a book."""
        return Event.from_json(self.event) if self.event else None

    @property
    def amounts(self) -> Amounts | None:
        """The price in every currency; none for entries that open a book."""
        return Amounts.from_json(self.price) if self.price else None

    @property
    def unit(self) -> Charged | None:
        """Whom a charge protects, and on whose word; none for other entries and for charges of versions that kept none."""
        return Charged.from_json(self.terms) if self.event else None

    @property
    def increment(self) -> tuple[float, float]:
        """What a raise adds to the limit: epsilon and delta."""
        raised = json.loads(self.terms)
        return float(raised["epsilon"]), float(raised["delta"])

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready dictionary with the event and terms as objects."""
        nested = {name: json.loads(getattr(self, name)) for name in ("event", "price", "terms") if getattr(self, name)}
        numbers = {name: float(getattr(self, name)) for name in ("epsilon", "delta", "fraction") if getattr(self, name)}
        return self.columns() | nested | numbers


_COLUMNS = tuple(field.name for field in fields(Entry))

# Built once: composing a statement costs more than running it.
_TIP = sa.select(schema.head.c.seq, schema.head.c.at, schema.head.c.hash)
_INSERT = sa.insert(schema.entries)
_MOVE = sa.update(schema.head).values(seq=sa.bindparam("s"), at=sa.bindparam("a"), hash=sa.bindparam("h"))


def tip(connection: sa.Connection) -> tuple[int, str, str]:
    """Number, time and hash of the last entry; zero, empty and the genesis hash before the first."""
    row = connection.execute(_TIP).first()
    return (row.seq, row.at, row.hash) if row else (0, "", GENESIS)


def append(connection: sa.Connection, now: datetime, **columns: str) -> Entry:
    """Write one entry after the last, inside a write transaction."""
    seq, last, previous = tip(connection)
    draft = Entry(seq=seq + 1, at=_stamp(now, last), previous=previous, **columns)
    entry = replace(draft, hash=draft.digest())
    connection.execute(_INSERT, entry.columns())
    position = {"s": entry.seq, "a": entry.at, "h": entry.hash}
    if connection.execute(_MOVE, position).rowcount == 0:
        connection.execute(sa.insert(schema.head), {"id": 1, "seq": entry.seq, "at": entry.at, "hash": entry.hash})
    return entry


def _stamp(now: datetime, last: str) -> str:
    if now.tzinfo is None:
        raise LedgerError("The clock gave a time without a zone, but entries are stamped in UTC. Nothing was charged.")
    now = now.astimezone(UTC)
    if last and now < (previous := datetime.fromisoformat(last)):
        if previous - now > _SKEW:
            raise LedgerError(
                f"The clock went backwards: it says {now:%Y-%m-%d %H:%M:%S} UTC, but the last entry was written at "
                f"{previous:%Y-%m-%d %H:%M:%S} UTC. Set the clock right. Nothing was charged."
            )
        now = previous
    return now.isoformat(timespec="microseconds")


def read(connection: sa.Connection, *, book: str | None = None, below: bool = False, newest: int | None = None
         ) -> Iterator[Entry]:  # fmt: skip
    """Entries in order: all, or those of a book (and of the books below it), or only the newest few."""
    table = schema.entries
    query = sa.select(table).order_by(table.c.seq)
    if book is not None:
        own = table.c.book == book
        query = query.where(own | table.c.book.startswith(f"{book}/", autoescape=True) if below else own)
    if newest is not None:
        latest = query.order_by(None).order_by(table.c.seq.desc()).limit(newest).subquery()
        query = sa.select(latest).order_by(latest.c.seq)
    for row in connection.execution_options(yield_per=1000).execute(query).mappings():
        yield Entry(**row)


def library_version() -> str:
    """The version that writes entries. No import statement: it would point from this floor to the whole house."""
    return str(sys.modules["discreet"].__version__)


def parse_head(head: str) -> tuple[int, str]:
    """The number and hash in a head's text.

    >>> parse_head("2:" + "ab" * 32)[0]
    2
    """
    match = re.fullmatch(r"(\d+):([0-9a-f]{64})", head.strip())
    if match is None:
        raise ValueError(f"head is {head!r}, but must be a number, a colon and 64 hexadecimal digits.")
    return int(match[1]), match[2]


def check_links(entry: Entry, before: Entry | None) -> None:
    """Raise unless ``entry`` follows ``before``."""
    if entry.seq != (before.seq + 1 if before else 1):
        raise ChainBroken(f"Entry {before.seq + 1 if before else 1} is missing: the next one found is {entry.seq}.")
    if entry.previous != (before.hash if before else GENESIS):
        raise ChainBroken(f"Entry {entry.seq} does not follow the one before it: an entry was replaced or moved.")
    if entry.hash != entry.digest():
        raise ChainBroken(f"Entry {entry.seq} was edited: its contents do not match its hash.")
    if before and entry.at < before.at:
        raise ChainBroken(f"Entry {entry.seq} is dated before entry {before.seq}.")
