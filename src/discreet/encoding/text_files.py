"""Text files as columns of text: CSV, tab-separated, JSON lines. They are read as text and cast by the schema, never by
a guess from their first lines.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Sequence
from typing import Any

from discreet.encoding.duckdb import DuckDB
from discreet.encoding.engines import quietly
from discreet.encoding.opened import Opened, check_once
from discreet.encoding.parquet import literal_paths
from discreet.errors import extra

__all__ = ["header", "open_json_lines", "open_text_files", "unreadable_lines"]

_LONGEST_LINE = 2_000_000  # bytes: a longer one holds no row


def open_text_files(connection: Any, files: Sequence[str], columns: Sequence[str], buffer: int) -> Opened:
    """Text files whose first line names the columns."""
    names = _names(files)
    if absent := [name for name in columns if name not in names]:  # a file without names has a record in their place
        raise ValueError(
            f"There is no column {absent[0]!r} in the first line of {files[0]!r}, which names the columns."
        )
    check_once(names, columns)
    rows = _read_text(connection, files, len(names), buffer_size=buffer)
    return Opened(rows, {name: f"column{names.index(name)}" for name in columns}, frozenset(columns), mended=True)


def unreadable_lines(path: str) -> list[int]:
    """The numbers of the lines of a text file that hold no row: too few fields, or bytes that are no text.
    They are private.
    """
    with extra("tables"):
        import duckdb
    connection = duckdb.connect(":memory:")
    width = len(header(path))
    quietly(lambda: _read_text(connection, [path], width, store_rejects=True).aggregate("count(*)").fetchall())
    found = connection.execute("SELECT DISTINCT line FROM reject_errors ORDER BY line").fetchall()
    return [int(line) for (line,) in found]


def _read_text(connection: Any, files: Sequence[str], width: int, **more: Any) -> Any:
    # Every choice that DuckDB would make by looking at rows is made here; a line that is too short, or too long, is
    # left out. What a folder is called says nothing about rows: a column is what the file holds. Columns have names of
    # our own: some files have a column without a name, or two that differ in large and small letters alone, which to
    # DuckDB are one. One thread a file: another, which starts in the middle, has to guess where a row begins, and takes
    # a line inside of a quoted entry for one.
    return connection.read_csv(
        literal_paths(files),
        auto_detect=False,
        hive_partitioning=False,
        header=True,
        columns={f"column{place}": "VARCHAR" for place in range(width)},
        sep=_separator(files[0]),
        quotechar='"',
        escapechar='"',
        ignore_errors=True,
        strict_mode=False,
        parallel=False,
        max_line_size=_LONGEST_LINE,
        **more,
    )


def _separator(path: str) -> str:
    return "\t" if ".tsv" in path else ","


def _names(files: Sequence[str]) -> list[str]:
    """The names in the first line of text files, the same in all: public, as the names of columns are."""
    first = header(files[0])
    if other := [path for path in files[1:] if header(path) != first]:
        raise ValueError(
            f"{other[0]!r} has other columns than {files[0]!r}, or another order: files read together must agree."
        )
    return first


def header(path: str) -> list[str]:
    """The names in the first line of a text file."""
    opener = gzip.open if path.endswith(".gz") else open
    try:
        # what follows the names may be anything
        with opener(path, "rt", encoding="utf-8-sig", errors="replace") as lines:
            names = next(csv.reader(lines, delimiter=_separator(path)), [])
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        reason = type(error).__name__
        raise ValueError(f"{path!r} cannot be read as a text file with names in its first line ({reason}).") from None
    if not any(names):
        raise ValueError(f"{path!r} has no first line of column names, but a text file needs one.")
    return names


def open_json_lines(connection: Any, files: Sequence[str], columns: Sequence[str], buffer: int) -> Opened:
    """JSON lines: every line by itself, read as text, and of its object the declared members as text.

    A line that is no object is left out; a member that is not there, or null, is missing.
    """
    lines = connection.read_csv(
        literal_paths(files),
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
    places = [DuckDB().literal('$."' + re.sub(r'(["\\])', r"\\\1", name) + '"') for name in columns]
    members = [f"TRY(json_extract_string(line, {place})) AS member{i}" for i, place in enumerate(places)]
    called = {name: f"member{i}" for i, name in enumerate(columns)}
    return Opened(valid.project(", ".join(members)), called, frozenset(columns), mended=True)
