"""The tables of a ledger, and the migrations that make them.

``entries`` is the ledger: append-only, each row carrying the hash of the one before. ``books`` and ``head`` are what
follows from it (limits, running totals, the last hash), kept so that a charge need not read the history; verification
recomputes them, and every charge checks those it stands on. Triggers refuse an UPDATE, DELETE or REPLACE of an entry:
they stop accidents, the chain reveals the rest.

Decision 130.
"""

from __future__ import annotations

from pathlib import Path

from discreet.errors import extra

with extra("ledger"):
    import sqlalchemy as sa
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

from discreet.ledger.errors import LedgerError

__all__ = ["books", "entries", "head", "migrate", "other_version", "state_of", "version"]

VERSION_TABLE = "discreet_schema"
CURRENT = "0004"  # what this version of the library writes: the newest of the migrations

SAME_TABLES = "0003"  # an older version whose tables can be read as they are

metadata = sa.MetaData()

version = sa.table(VERSION_TABLE, sa.column("version_num", sa.Text))  # alembic's own

head = sa.Table(
    "discreet_head",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("seq", sa.BigInteger, nullable=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
)

books = sa.Table(
    "discreet_books",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("parent", sa.Text, nullable=True, index=True),
    sa.Column("terms", sa.Text, nullable=False),
    sa.Column("amounts", sa.Text, nullable=False),
    sa.Column("entries", sa.BigInteger, nullable=False),
)

entries = sa.Table(
    "discreet_entries",
    metadata,
    sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("at", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("book", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("price", sa.Text, nullable=False),
    sa.Column("terms", sa.Text, nullable=False),
    sa.Column("epsilon", sa.Text, nullable=False),
    sa.Column("delta", sa.Text, nullable=False),
    sa.Column("fraction", sa.Text, nullable=False),
    sa.Column("proof", sa.Text, nullable=False),
    sa.Column("version", sa.Text, nullable=False),
    sa.Column("rules", sa.Text, nullable=False, server_default=""),
    sa.Column("previous", sa.String(64), nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.Index("discreet_entries_by_book", "book", "seq"),
)


def _config(connection: sa.Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def state_of(connection: sa.Connection) -> str:
    """``current``, ``absent``, ``readable`` (older, of the same tables) or ``old``; a version this library does not
    know is an error."""
    names = sa.inspect(connection).get_table_names()
    if VERSION_TABLE not in names:
        if taken := sorted({"discreet_head", "discreet_books", "discreet_entries"} & set(names)):
            raise LedgerError(
                f"The database has a table {taken[0]!r} but no schema version: it was not written by this "
                "library, or was restored in part. Nothing was changed."
            )
        return "absent"
    found = connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalars().all()
    scripts = ScriptDirectory.from_config(_config(connection))
    known = {script.revision for script in scripts.walk_revisions()}
    if foreign := sorted(set(found) - known):
        raise LedgerError(
            f"The ledger has schema version {foreign[0]!r}, which this version of discreet does not know "
            f"(it knows {', '.join(sorted(known))}). Upgrade discreet. Nothing was changed."
        )
    if set(found) == set(scripts.get_heads()):
        return "current"
    return "readable" if set(found) == {SAME_TABLES} else "old"


def other_version(found: set[str]) -> LedgerError:
    """Why nothing is written where the tables are no longer those that this process found, or made, at opening."""
    return LedgerError(
        f"The ledger has schema version {', '.join(sorted(found)) or 'none'}, but this process writes {CURRENT}: "
        "another version of discreet has changed it since. Nothing was charged. Start again with that version."
    )


def migrate(connection: sa.Connection) -> None:
    """Bring the tables to the current version, inside the connection's transaction."""
    command.upgrade(_config(connection), "head")
