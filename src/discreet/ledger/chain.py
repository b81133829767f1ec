"""Entries, and the hash that ties each one to all before it.

The hash of an entry covers every column of it, the hash of the entry before included. Editing, deleting, adding or
moving an entry inside the chain breaks a link. Cutting the tail off, or rewriting everything, breaks none: for that,
keep the head (``17:5f0c…``) somewhere else, and verify against it.

The time is what the clock said: written down, never compared. The order of entries is that of the chain.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from json.encoder import encode_basestring_ascii
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from discreet.events import Event
from discreet.ledger import schema
from discreet.ledger.amounts import Amounts
from discreet.ledger.errors import ChainBroken, LedgerError
from discreet.ledger.units import Charged

__all__ = ["GENESIS", "START", "Entry", "Tip", "append", "check_links", "checked_tip", "follow", "judging",
           "library_version", "now", "parse_head", "read", "since", "tip"]  # fmt: skip

GENESIS = "0" * 64
_LOWEST = -(2**63)  # no entry has such a number, unless somebody wrote one


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry of the ledger, as written. ``epsilon`` and ``delta`` are what its book had spent after it.

    ``terms`` holds what was agreed: by an entry that opens a book, its limits; by a charge, the unit it protects and
    whether the release has a seed; by a raise, what it adds. ``rules`` names the pricing that made the price, and is
    empty in entries from before prices were tied to events.
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
    rules: str = ""
    previous: str
    hash: str = ""

    def columns(self) -> dict[str, Any]:
        """Every column by name."""
        return {name: getattr(self, name) for name in _COLUMNS}

    def digest(self) -> str:
        """SHA-256 over every column but the hash itself, and but ``rules`` where it is empty:
        older entries have none.
        """
        return _digest(tuple(getattr(self, name) for name in _COLUMNS))

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
        """Whom a charge protects, and on whose word;
        none for other entries and for charges of versions that kept none.
        """
        return Charged.from_json(self.terms) if self.event else None

    @property
    def seeded(self) -> bool:
        """Whether a charge is of a release made with a seed, which is not private."""
        unit = self.unit
        return unit is not None and unit.reproducible is True

    @property
    def asked(self) -> tuple[float, float] | None:
        """The (epsilon, delta) that a release was asked for with; none where nobody said, and for other entries."""
        unit = self.unit
        return unit.asked if unit is not None else None

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
_SEQ, _RULES, _PREVIOUS, _HASH = (_COLUMNS.index(name) for name in ("seq", "rules", "previous", "hash"))


def _canonical(names: list[str]) -> tuple[Callable[[Sequence[Any]], tuple[str, ...]], int, str]:
    """How a digest is made: the columns of text it takes, where the number stands among them, the JSON around them.

    The JSON is that of ``json.dumps(columns, sort_keys=True, separators=(",", ":"))``, made in a third of the time.
    """
    texts = itemgetter(*(_COLUMNS.index(name) for name in names if name != "seq"))
    return texts, names.index("seq"), "{" + ",".join(f'"{name}":%s' for name in names) + "}"


_HASHED = sorted(set(_COLUMNS) - {"hash"})
_WITH_RULES, _WITHOUT_RULES = _canonical(_HASHED), _canonical([name for name in _HASHED if name != "rules"])


def _digest(row: Sequence[Any]) -> str:
    texts, place, form = _WITH_RULES if row[_RULES] else _WITHOUT_RULES
    cells = list(map(encode_basestring_ascii, texts(row)))
    cells.insert(place, int.__repr__(row[_SEQ]))
    return hashlib.sha256((form % tuple(cells)).encode()).hexdigest()


# Built once: composing a statement costs more than running it.
_ALL = sa.select(*(schema.entries.c[name] for name in _COLUMNS)).order_by(schema.entries.c.seq)
_SINCE = _ALL.where(schema.entries.c.seq >= sa.bindparam("first"))
_BETWEEN = _SINCE.where(schema.entries.c.seq <= sa.bindparam("last"))
_TIP = sa.select(schema.head.c.seq, schema.head.c.at, schema.head.c.hash)
_TIPS = sa.select(*_TIP.selected_columns, schema.version.c.version_num).select_from(
    schema.version.outerjoin(schema.head, sa.true()))  # fmt: skip
_INSERT = sa.insert(schema.entries)
_MOVE = sa.update(schema.head).values(seq=sa.bindparam("s"), at=sa.bindparam("a"), hash=sa.bindparam("h"))


_SEARCHED = ("label", "book", "who")
Tip = tuple[int, str, str]
START: Tip = (0, "", GENESIS)


def tip(connection: sa.Connection) -> Tip:
    """Number, time and hash of the last entry; zero, empty and the genesis hash before the first."""
    return _only_tip(connection.execute(_TIP).all())


def checked_tip(connection: sa.Connection) -> Tip:
    """The same, before writing: refused where another version of the library has changed the tables meanwhile."""
    rows = connection.execute(_TIPS).all()
    if (versions := {row.version_num for row in rows}) != {schema.CURRENT}:
        raise schema.other_version(versions)
    return _only_tip([row for row in rows if row.seq is not None])


def _only_tip(rows: Sequence[Any]) -> Tip:
    if len(rows) > 1:
        raise ChainBroken(f"The ledger has {len(rows)} heads, but a chain has one.")
    if rows and not isinstance(rows[0].seq, int):
        raise ChainBroken("The fingerprint of the last entry (head) has no number: it was edited.")
    return (rows[0].seq, rows[0].at, rows[0].hash) if rows else START


def append(connection: sa.Connection, last: Tip, now: datetime, **columns: str) -> Entry:
    """Write one entry after the last, inside a write transaction."""
    draft = Entry(seq=last[0] + 1, at=_stamp(now), previous=last[2], **columns)
    entry = replace(draft, hash=draft.digest())
    connection.execute(_INSERT, entry.columns())
    if last == START:
        connection.execute(sa.insert(schema.head), {"id": 1, "seq": entry.seq, "at": entry.at, "hash": entry.hash})
    else:
        connection.execute(_MOVE, {"s": entry.seq, "a": entry.at, "h": entry.hash})
    return entry


def now() -> datetime:
    """What the system's clock says."""
    return datetime.now(UTC)


def _stamp(now: datetime) -> str:
    if now.tzinfo is None:
        raise LedgerError("The clock gave a time without a zone, but entries are stamped in UTC. Nothing was charged.")
    return now.astimezone(UTC).isoformat(timespec="microseconds")


def read(connection: sa.Connection, *, book: str | None = None, below: bool = False, newest: int | None = None,
         before: int | None = None, words: Sequence[str] = (), kind: str = ""
         ) -> Generator[Entry, None, None]:  # fmt: skip
    """Entries in order: all, or those of a book (and of the books below it), of a kind, before a number, in whose
    label, book or author each of some words stands; or only the newest few of them.
    """
    table = schema.entries
    query = _ALL
    if book is not None:  # LIKE would ignore case in SQLite, and read % and _ in a name
        prefix = f"{book}/"
        own = table.c.book == book
        query = query.where(own | (sa.func.substr(table.c.book, 1, len(prefix)) == prefix) if below else own)
    if before is not None:
        query = query.where(table.c.seq < before)
    if kind:
        query = query.where(table.c.kind == kind)
    for word in words:
        query = query.where(sa.or_(*(table.c[name].icontains(word, autoescape=True) for name in _SEARCHED)))
    if newest is not None:
        latest = query.order_by(None).order_by(table.c.seq.desc()).limit(newest).subquery()
        query = sa.select(latest).order_by(latest.c.seq)
    with connection.execute(query, execution_options={"yield_per": 1000}) as rows:
        yield from map(_entry, rows)


def since(connection: sa.Connection, first: int) -> list[Entry]:
    """The entries of this number and later."""
    return list(map(_entry, connection.execute(_SINCE, {"first": first}).all()))


def follow(connection: sa.Connection, after: int, last: int, digest: str | None) -> str:
    """Raise unless the entries after one of that hash, up to the last of these numbers, are whole and follow each
    other; the last one's hash. Without a hash, the first of them is taken at its word for what comes before it."""
    seq = after
    first = after + 1 if after else _LOWEST
    with connection.execute(_BETWEEN, {"first": first, "last": last}, execution_options={"yield_per": 1000}) as rows:
        for row in rows:
            try:
                _check_row(row, seq, digest)
            except Exception:
                with judging(seq + 1):
                    raise
            seq, digest = row[_SEQ], row[_HASH]
    if seq != last or digest is None:
        raise ChainBroken(f"The ledger ends at entry {seq}, but entry {last} was there: its tail is cut off.")
    return digest


def _entry(row: sa.Row[Any]) -> Entry:
    return Entry(**dict(zip(_COLUMNS, row, strict=True)))


def library_version() -> str:
    """The version that writes entries. No import statement: it would point from this floor to the whole house."""
    return str(sys.modules["discreet"].__version__)


def parse_head(head: str) -> tuple[int, str]:
    """The number and hash in a head's text.

    >>> parse_head("2:" + "ab" * 32)[0]
    2
    """
    match = re.fullmatch(r"([0-9]{1,18}):([0-9a-f]{64})", head.strip())
    if match is None:
        raise ValueError(f"head is {head!r}, but must be a number, a colon and 64 hexadecimal digits.")
    return int(match[1]), match[2]


def check_links(entry: Entry, seq: int, digest: str) -> None:
    """Raise unless ``entry`` is whole, and follows the one of that number and hash."""
    _check_row(tuple(entry.columns().values()), seq, digest)


def _check_row(row: Sequence[Any], seq: int, digest: str | None) -> None:
    if row[_SEQ] != seq + 1:
        raise ChainBroken(f"is missing: the next one found is {row[_SEQ]}.")
    if digest is not None and row[_PREVIOUS] != digest:
        raise ChainBroken("does not follow the one before it: an entry was replaced or moved.")
    if row[_HASH] != _digest(row):
        raise ChainBroken("was edited: its contents do not match its hash.")


@contextmanager
def judging(number: int) -> Iterator[None]:
    """Name the entry in what is found wrong with it; what cannot be read was not written by this library."""
    try:
        yield
    except LedgerError as error:
        raise type(error)(f"Entry {number} {error}") from error.__cause__
    except Exception as error:  # whatever an edited entry makes of a parser
        raise ChainBroken(f"Entry {number} cannot be read: it was not written by this library.") from error
