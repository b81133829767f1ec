"""Tables of databases as sources: of a DuckDB file, where they are; of PostgreSQL, as they were when a worker started.

Both become relations of a DuckDB connection that is the worker's own. A worker has no network once it is confined, so a
PostgreSQL table is read before that, whole and in one transaction, as text; each entry is then cast to its column's
type, and one that cannot be (a date before Christ) is missing: no record decides whether a desk starts.

Decision 573.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.encoding.duckdb import DuckDB
from discreet.errors import DiscreetError, extra

__all__ = ["DatabaseTable", "open_duckdb_table", "open_postgres_table"]

_BATCH = 20_000  # rows on their way from PostgreSQL
# PostgreSQL's types, and what they become; what is not among them is refused by name
_TYPES = {
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "real": "DOUBLE",
    "double precision": "DOUBLE",
    "numeric": "DOUBLE",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "character varying": "VARCHAR",
    "character": "VARCHAR",
    "name": "VARCHAR",
    "uuid": "VARCHAR",
    "date": "DATE",
    "timestamp without time zone": "TIMESTAMP",
    "timestamp with time zone": "TIMESTAMPTZ",
}


@dataclass(frozen=True, slots=True)
class DatabaseTable:
    """A table in a worker's own connection: its rows, not yet read; and what it is called, wherever it is asked for."""

    connection: Any = field(repr=False)
    relation: Any = field(repr=False)
    place: str

    def empty(self, columns: Sequence[str]) -> Any:
        """The columns without their rows, as an Arrow table: types alone."""
        return self._project(columns).limit(0).to_arrow_table()

    def rows(self, columns: Sequence[str]) -> Any:
        """The columns with their rows, in the table's own order, as an Arrow table: private."""
        return self._project(columns).to_arrow_table()

    def _project(self, columns: Sequence[str]) -> Any:
        return self.relation.project(", ".join(map(DuckDB().quote, columns)))


def open_duckdb_table(path: str, name: str, settings: dict[str, Any]) -> DatabaseTable:
    """A table of a DuckDB file, which is opened for reading alone."""
    with extra("tables"):
        import duckdb
    connection = duckdb.connect(":memory:", config=settings)
    connection.execute(f"ATTACH {DuckDB().literal(path)} AS source (TYPE duckdb, READ_ONLY)")
    quoted = ".".join(map(DuckDB().quote, _parts(name, "main")))
    relation = connection.sql(f"SELECT * FROM source.{quoted}")
    return DatabaseTable(connection, relation, f"{path}#{'.'.join(_parts(name, 'main'))}".casefold())


def open_postgres_table(address: str, name: str, columns: Sequence[str], settings: dict[str, Any]) -> DatabaseTable:
    """The declared columns of a PostgreSQL table, read now."""
    with extra("tables"):
        import duckdb
    with _connected(address) as source:
        place, relation, types = _describe(source, name)
        if missing := [column for column in columns if column not in types]:
            raise DiscreetError(f"Column {missing[0]!r} is declared, but the table does not have it.")
        if odd := [column for column in columns if types[column] not in _TYPES]:
            raise DiscreetError(
                f"Column {odd[0]!r} has type {types[odd[0]]}, which a desk does not read: cast it in a view."
            )
        connection = duckdb.connect(":memory:", config=settings)
        named = [(column, DuckDB().quote(column), _TYPES[types[column]]) for column in columns]
        connection.execute(f"CREATE TABLE source ({', '.join(f'{own} {kind}' for _, own, kind in named)})")
        cast = ", ".join(f"TRY_CAST({own} AS {kind})" for _, own, kind in named)
        for batch in _batches(source, relation, columns):
            connection.register("batch", batch)
            connection.execute(f"INSERT INTO source SELECT {cast} FROM batch")
            connection.unregister("batch")
    return DatabaseTable(connection, connection.table("source"), place)


@contextlib.contextmanager
def _connected(address: str) -> Iterator[Any]:
    """One transaction that sees one moment and writes nothing; what fails says nothing of the address."""
    from discreet.ledger.address import Address

    with extra("postgres"):
        import psycopg
        import sqlalchemy as sa
    parsed = Address.parse(address)
    try:
        engine = sa.create_engine(parsed.url, connect_args=parsed.arguments, poolclass=sa.pool.NullPool)
        with engine.connect() as held:
            connection: Any = held.connection.driver_connection
            connection.rollback()
            for line in (
                "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
                "SET LOCAL TimeZone = 'UTC'",
                "SET LOCAL DateStyle = 'ISO, YMD'",
                "SET LOCAL extra_float_digits = 3",
                "SET LOCAL client_encoding = 'UTF8'",
            ):
                connection.execute(line)
            yield connection
            connection.rollback()
    except (psycopg.Error, sa.exc.SQLAlchemyError) as error:
        kind = type(getattr(error, "orig", None) or error).__name__
        raise DiscreetError(f"PostgreSQL did not give the table ({kind}): see its own log.") from None


def _describe(source: Any, name: str) -> tuple[str, str, dict[str, str]]:
    """What the table is called wherever it is asked for, its quoted name, and the types of its columns."""
    found = source.execute(
        "SELECT c.oid, quote_ident(n.nspname) || '.' || quote_ident(c.relname), current_database(),"
        " (SELECT system_identifier FROM pg_control_system()), pg_encoding_to_char(d.encoding)"
        " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace, pg_database d"
        " WHERE c.oid = to_regclass(%s) AND d.datname = current_database()",
        (name,),
    ).fetchone()
    if found is None:
        raise DiscreetError(f"There is no table {name!r} in this database.")
    number, quoted, database, system, encoding = found
    if encoding == "SQL_ASCII":  # whose texts may be no texts
        raise DiscreetError("The database has no encoding (SQL_ASCII): a desk reads texts of a stated one.")
    rows = source.execute(
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
        " WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped",
        (number,),
    ).fetchall()
    return f"postgresql:{system}/{database}/{quoted}", quoted, dict(rows)


def _batches(source: Any, relation: str, columns: Sequence[str]) -> Iterator[Any]:
    """The rows as text, some at a time."""
    import pyarrow as pa
    from psycopg import sql

    names = [sql.SQL("{}::text").format(sql.Identifier(column)) for column in columns]
    query = sql.SQL("SELECT {} FROM ").format(sql.SQL(", ").join(names)) + sql.SQL(relation)
    with source.cursor(name="discreet_desk") as cursor:
        cursor.execute(query)
        while rows := cursor.fetchmany(_BATCH):
            entries = zip(*rows, strict=True)
            yield pa.table({name: pa.array(column, pa.string()) for name, column in zip(columns, entries, strict=True)})


def _parts(name: str, default: str) -> list[str]:
    """Schema and table of a name."""
    parts = name.split(".")
    return [default, *parts] if len(parts) == 1 else parts
