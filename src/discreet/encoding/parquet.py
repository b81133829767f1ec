"""Parquet files as one lazy relation. Which reader reads a file is decided by its schema, never by what it holds.

DuckDB reads them, with every byte of a text that is no UTF-8 as a question mark. Two types are the exception, because
one value of them stops DuckDB's reader: times in milliseconds, beyond the calendar of microseconds, and JSON, whose
bytes it does not look at. A file where such a column is declared is read by Arrow, whatever its rows are. Types that
DuckDB does not take from Arrow are refused beside it, before anything is charged.

What a folder is called says something about rows in one case alone: a declared column that no file holds, but every
folder names (Hive's ``year=2024/``).

Decision 292.
"""

from __future__ import annotations

import glob
from collections.abc import Collection, Sequence
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from discreet.encoding.arrow_types import plain_field
from discreet.encoding.duckdb import DuckDB
from discreet.encoding.engines import quietly
from discreet.encoding.opened import Opened, check_once

__all__ = ["literal_paths", "open_parquet"]

_MILLISECONDS, _JSON = "TIMESTAMP in milliseconds", "JSON"  # the types at which DuckDB's reader may stop


def open_parquet(connection: Any, files: Sequence[str], columns: Sequence[str]) -> Opened:
    """Parquet files, each with the declared columns in the same types."""
    stored = quietly(lambda: _stored_types(connection, files))
    types = _agreed_types(files, stored, columns)
    named = [name for name in columns if name not in types and all(_names_folder(file, name) for file in files)]
    if any(kind in (_MILLISECONDS, _JSON) for kind in types.values()):
        rows = _by_arrow(connection, files, [name for name in columns if name in types], named)
        return Opened(rows, {name: name for name in (*types, *named)}, frozenset(named))
    rows = quietly(lambda: _by_duckdb(connection, files, named))
    # by their place: DuckDB, to which names in large and small letters are one, renames the second of them
    inside = [name for name, _ in stored[0]]
    called = dict(zip(inside, rows.columns, strict=False)) | {name: name for name in named}
    return Opened(rows, called, frozenset(named), mended=True)


def literal_paths(files: Sequence[str]) -> list[str]:
    """Paths in which DuckDB sees no pattern."""
    return [glob.escape(path) for path in files]


def _agreed_types(
    files: Sequence[str], stored: Sequence[Sequence[tuple[str, str]]], columns: Collection[str]
) -> dict[str, str]:
    """The types of declared columns. Files that differ in them are refused: a cast from one to the other could fail, on
    some value.
    """
    first, *rest = [sorted(column for column in types if column[0] in columns) for types in stored]
    if other := [path for path, types in zip(files[1:], rest, strict=True) if types != first]:
        raise ValueError(f"{other[0]!r} has other columns or types than {files[0]!r}: files read together must agree.")
    check_once([name for name, _ in first], columns)
    return dict(first)


def _stored_types(connection: Any, files: Sequence[str]) -> list[list[tuple[str, str]]]:
    """The columns of each file with their types, in their order; no row is read."""
    asked = "SELECT file_name, name, duckdb_type, converted_type, logical_type, num_children FROM parquet_schema([{}])"
    listed = ", ".join(map(DuckDB().literal, literal_paths(files)))
    every = []
    for _, fields in groupby(connection.sql(asked.format(listed)).fetchall(), key=itemgetter(0)):
        columns = []
        inner = 0  # how many of the next fields are inside of a list or a struct
        for _, name, kind, old, new, children in islice(fields, 1, None):  # the first is the table itself
            if inner == 0:
                new_form = str(new).startswith("TimestampType") and "MILLIS=Milli" in str(new)
                columns.append((name, _MILLISECONDS if old == "TIMESTAMP_MILLIS" or new_form else kind))
            inner = max(inner - 1, 0) + (children or 0)
        every.append(columns)
    return every


def _names_folder(path: str, name: str) -> bool:
    """Whether a folder of a path says a value of a column."""
    parts = [part.partition("=") for part in Path(path).parts[:-1]]
    return any(sign and value and key == name for key, sign, value in parts)


def _by_duckdb(connection: Any, files: Sequence[str], named: Sequence[str]) -> Any:
    folders = "hive_partitioning = true, hive_types_autocast = false" if named else "hive_partitioning = false"
    listed = ", ".join(map(DuckDB().literal, literal_paths(files)))
    rows = connection.sql(f"SELECT * FROM read_parquet([{listed}], {folders}, utf8_validation = 'replace')")
    fine = [name for name, kind in zip(rows.columns, rows.types, strict=True) if str(kind) == "TIMESTAMPTZ_NS"]
    casts = [f"CAST({name} AS TIMESTAMPTZ) AS {name}" for name in map(DuckDB().quote, fine)]  # which nothing else reads
    return rows.project(f"* REPLACE ({', '.join(casts)})") if casts else rows


def _by_arrow(connection: Any, files: Sequence[str], columns: Sequence[str], named: Sequence[str]) -> Any:
    import pyarrow as pa
    import pyarrow.dataset

    # INT96, which no schema tells from other times, reaches year 292,000 in microseconds, and 2262 in nanoseconds
    form = pyarrow.dataset.ParquetFileFormat(coerce_int96_timestamp_unit="us")
    schema = quietly(lambda: pyarrow.dataset.dataset(files[0], format=form).schema)
    fields = [plain_field(schema.field(name)) for name in columns]
    folders = [pa.field(name, pa.string()) for name in named]
    return quietly(
        lambda: connection.from_arrow(
            pyarrow.dataset.dataset(
                list(files),
                schema=pa.schema([*fields, *folders]),
                format=form,
                partitioning=pyarrow.dataset.partitioning(pa.schema(folders), flavor="hive"),
            )
        )
    )
