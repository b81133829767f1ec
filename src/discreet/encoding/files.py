"""Rows of files: Parquet, Feather, CSV, JSON lines, each as an engine's lazy relation of columns that were declared.

Text files are read as text and cast by the schema, never by a guess from their first lines. What a folder is called
says something about rows in one case alone: a declared column that no Parquet file holds, but every folder names
(Hive's ``year=2024/``).
"""

from __future__ import annotations

import csv
import functools
import glob
import gzip
import re
import zlib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from discreet.encoding.duckdb import DuckDB
from discreet.encoding.engines import quietly
from discreet.encoding.frames import without_zones
from discreet.errors import extra

__all__ = ["Opened", "declared_types", "open_files", "unreadable_lines"]

_TEXT_FILES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_JSON = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")
_PARQUET = (".parquet", ".pq")
_FEATHER = (".feather", ".arrow", ".ipc")
_EXCEL = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
_NOTHING = "__HIVE_DEFAULT_PARTITION__"  # the folder of rows without a value
_LONGEST_LINE = 2_000_000  # bytes: a longer one holds no row


class Opened(NamedTuple):
    """Rows not yet read; whether their text may be bytes that are none; how else to read them, where it may fail; the
    columns of whose type the files say nothing."""

    rows: Any
    decoded: bool = False
    again: Callable[[], Any] | None = None
    untyped: frozenset[str] = frozenset()


def open_files(connection: Any, path: str, columns: list[str], buffer: int) -> Opened:
    """A file, a glob of them, or a folder of Parquet files."""
    if path.endswith(_EXCEL):
        raise ValueError(f"{path!r} is a workbook: read it with polars.read_excel or pandas, and give the frame.")
    if Path(path).is_dir():
        path = str(Path(glob.escape(path), "**", f"*{_PARQUET[0]}"))
    # a file's own name is no pattern
    files = [path] if Path(path).is_file() else sorted(glob.glob(path, recursive=True))
    if not files:
        raise FileNotFoundError(
            f"There is no file {path!r}. Give the path of a Parquet, Feather, CSV or JSON lines file, or a glob."
        )
    if path.endswith(_PARQUET):
        inside = _agree(connection, files, columns)
        named = [name for name in columns if name not in inside and all(_folder(file, name) for file in files)]
        rows = quietly(lambda: _parquet(connection, files, named))
        typed = [name for name in columns if name not in named]
        return Opened(rows, False, lambda: _by_arrow(connection, files, typed, named), frozenset(named))
    if path.endswith(_FEATHER):
        return Opened(connection.from_arrow(_feather(files, columns)), decoded=True)
    if path.endswith(_TEXT_FILES):
        return Opened(_text_files(connection, files, columns, buffer_size=buffer), untyped=frozenset(columns))
    if path.endswith(_JSON):
        lines = quietly(lambda: _json_lines(connection, files, columns, buffer))
        return Opened(lines, untyped=frozenset(columns))
    raise ValueError(f"{path!r} has no known ending: {', '.join(_PARQUET + _FEATHER + _TEXT_FILES + _JSON)}.")


def declared_types(path: str) -> dict[str, str]:
    """The names of a file's columns, with the type that the file itself declares ("" in a text file, which declares
    none). They are public; no row is read.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no file {path!r}.")
    if path.endswith(_TEXT_FILES):
        return dict.fromkeys(_header(path, "\t" if ".tsv" in path else ","), "")
    if not path.endswith(_PARQUET + _FEATHER):
        raise ValueError(f"{path!r} declares no columns: give a file that ends in {', '.join(_TEXT_FILES + _PARQUET)}.")
    with extra("tables"):
        import pyarrow as pa
        import pyarrow.feather
        import pyarrow.parquet
    try:
        if path.endswith(_PARQUET):
            found = pyarrow.parquet.read_schema(path)
        else:
            with pa.memory_map(path) as file:
                found = pa.ipc.open_file(file).schema
    except (OSError, pa.ArrowInvalid):
        raise ValueError(f"{path!r} cannot be read as its ending says.") from None
    return {field.name: str(field.type) for field in found}


def _folder(path: str, name: str) -> str | None:
    """What a folder of a path says of a column."""
    parts = [part.partition("=") for part in Path(path).parts[:-1]]
    return next((value for key, sign, value in parts if sign and key == name), None)


def _parquet(connection: Any, files: Sequence[str], named: Sequence[str]) -> Any:
    if named:
        form = "SELECT * FROM read_parquet({!r}, hive_partitioning = true, hive_types_autocast = false)"
        rows = connection.from_query(form.format(_literal(files)))
    else:
        rows = connection.read_parquet(_literal(files), hive_partitioning=False)
    fine = [name for name, kind in zip(rows.columns, rows.types, strict=True) if str(kind) == "TIMESTAMPTZ_NS"]
    casts = [
        f"CAST({name} AS TIMESTAMPTZ) AS {name}" for name in map(DuckDB().quoted, fine)
    ]  # which nothing else reads
    return rows.project(f"* REPLACE ({', '.join(casts)})") if casts else rows


def _feather(files: Sequence[str], columns: Sequence[str]) -> Any:
    """Feather files as one Arrow dataset; types are declared in each, and must agree."""
    import pyarrow.dataset

    found = quietly(lambda: [pyarrow.dataset.dataset(file, format="ipc").schema for file in files])
    types = [{name: str(schema.field(name).type) for name in columns if name in schema.names} for schema in found]
    if other := [file for file, kinds in zip(files, types, strict=True) if kinds != types[0]]:
        raise ValueError(f"{other[0]!r} has other columns or types than {files[0]!r}: files read together must agree.")
    return quietly(lambda: pyarrow.dataset.dataset(list(files), format="ipc", schema=without_zones(found[0])))


def _json_lines(connection: Any, files: Sequence[str], columns: Sequence[str], buffer: int) -> Any:
    """JSON lines: every line by itself, read as text, and of its object the declared members as text.

    A line that is no object is left out; a member that is not there, or null, is missing.
    """
    lines = connection.read_csv(
        _literal(files),
        auto_detect=False,
        hive_partitioning=False,
        header=False,
        columns={"line": "VARCHAR"},
        sep="\x01",  # which no line of JSON holds
        quotechar="",
        escapechar="",
        ignore_errors=True,
        strict_mode=False,
        parallel=False,
        max_line_size=_LONGEST_LINE,
        buffer_size=buffer,
    )
    valid = lines.filter("TRY(json_type(line)) = 'OBJECT'")  # an engine may look at conditions in any order
    names = [
        (DuckDB().literal('$."' + re.sub(r'(["\\])', r"\\\1", name) + '"'), DuckDB().quoted(name)) for name in columns
    ]
    return valid.project(", ".join(f"TRY(json_extract_string(line, {place})) AS {name}" for place, name in names))


def _by_arrow(connection: Any, files: Sequence[str], columns: Collection[str], named: Sequence[str]) -> Any:
    """Columns of Parquet files, read by Arrow, which lets text be bytes: slower than DuckDB, which stops at them."""
    if named:  # each folder's files, beside what the folder is called
        parts = [_by_arrow(connection, [file], columns, ()) for file in files]
        folders = [", ".join(_said(file, name) for name in named) for file in files]
        told = [part.project(f"*, {folder}") for part, folder in zip(parts, folders, strict=True)]
        return functools.reduce(lambda first, second: first.union(second), told)
    import pyarrow as pa
    import pyarrow.dataset

    def plain(field: Any) -> Any:
        kind = getattr(field.type, "value_type", field.type)  # of a dictionary
        return field.with_type(pa.binary() if str(kind) in ("string", "large_string") else field.type)

    found = pyarrow.dataset.dataset(list(files), format="parquet")
    fields = without_zones(pa.schema([plain(found.schema.field(name)) for name in columns]))
    bytes_ = connection.from_arrow(pyarrow.dataset.dataset(list(files), schema=fields, format="parquet"))
    quoted = [(DuckDB().quoted(field.name), field.type) for field in fields]
    return bytes_.project(
        ", ".join(f"TRY(decode({name})) AS {name}" if kind == pa.binary() else name for name, kind in quoted)
    )


def _said(file: str, name: str) -> str:
    value = _folder(file, name) or ""
    # as DuckDB reads it: one record's bad byte must not change what a folder says of all its rows
    return f"{'NULL::VARCHAR' if value == _NOTHING else DuckDB().literal(unquote(value))} AS {DuckDB().quoted(name)}"


def unreadable_lines(path: str) -> list[int]:
    """The numbers of the lines of a text file that hold no row: too few fields, or bytes that are no text.
    They are private.
    """
    if not path.endswith(_TEXT_FILES):
        return []
    with extra("tables"):
        import duckdb
    connection = duckdb.connect(":memory:")
    quietly(lambda: _text_files(connection, [path], (), store_rejects=True).aggregate("count(*)").fetchall())
    found = connection.execute("SELECT DISTINCT line FROM reject_errors ORDER BY line").fetchall()
    return [int(line) for (line,) in found]


def _text_files(connection: Any, files: Sequence[str], columns: Collection[str], **more: Any) -> Any:
    """Text files as columns of text; names come from the first line."""
    separator = "\t" if ".tsv" in files[0] else ","
    names = _names(files, separator)
    if absent := [name for name in columns if name not in names]:  # a file without names has a record in their place
        raise ValueError(
            f"There is no column {absent[0]!r} in the first line of {files[0]!r}, which names the columns."
        )
    # Every choice that DuckDB would make by looking at rows is made here; a line that is too short, or too long, is
    # left out. What a folder is called says nothing about rows: a column is what the file holds. One thread a file:
    # another, which starts in the middle, has to guess where a row begins, and takes a line inside of a quoted entry
    # for one.
    return connection.read_csv(
        _literal(files),
        auto_detect=False,
        hive_partitioning=False,
        header=True,
        columns=dict.fromkeys(names, "VARCHAR"),
        sep=separator,
        quotechar='"',
        escapechar='"',
        ignore_errors=True,
        strict_mode=False,
        parallel=False,
        max_line_size=_LONGEST_LINE,
        **more,
    )


def _literal(files: Sequence[str]) -> list[str]:
    """Paths in which DuckDB sees no pattern."""
    return [glob.escape(path) for path in files]


def _agree(connection: Any, files: Sequence[str], columns: Collection[str]) -> dict[str, str]:
    """The types of declared columns. Files that differ in them are refused: a cast from one to the other could fail, on
    some value.
    """

    def types(path: str) -> dict[str, str]:
        found = connection.read_parquet(_literal([path]), hive_partitioning=False)
        return {name: str(kind) for name, kind in zip(found.columns, found.types, strict=True) if name in columns}

    first, *rest = quietly(lambda: [types(path) for path in files])
    if other := [path for path, found in zip(files[1:], rest, strict=True) if found != first]:
        raise ValueError(f"{other[0]!r} has other columns or types than {files[0]!r}: files read together must agree.")
    return first


def _names(files: Sequence[str], separator: str) -> list[str]:
    """The names in the first line of text files, the same in all: public, as the names of columns are."""
    first = _header(files[0], separator)
    if other := [path for path in files[1:] if _header(path, separator) != first]:
        raise ValueError(
            f"{other[0]!r} has other columns than {files[0]!r}, or another order: files read together must agree."
        )
    return first


def _header(path: str, separator: str) -> list[str]:
    opener = gzip.open if path.endswith(".gz") else open
    try:
        # what follows the names may be anything
        with opener(path, "rt", encoding="utf-8-sig", errors="replace") as lines:
            names = next(csv.reader(lines, delimiter=separator), [])
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        reason = type(error).__name__
        raise ValueError(f"{path!r} cannot be read as a text file with names in its first line ({reason}).") from None
    if not names or len(set(names)) < len(names):
        raise ValueError(f"{path!r} has no first line of distinct column names, but a text file needs one.")
    return names
