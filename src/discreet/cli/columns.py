"""Columns of the files that ``fit`` and ``predict`` read. Names and types are public; what an entry holds raises no error.

In a text file an entry with bytes that are no text is missing, and so are those that a short line lacks.
In Parquet only columns of numbers, truth values and text are read: no entry of these can fail.
"""

from __future__ import annotations

import csv
import sys
from importlib import import_module
from pathlib import Path
from typing import IO, Annotated, Any

from discreet.errors import extra, is_whole_text

with extra("cli"):
    import typer

__all__ = ["Data", "column_names", "read_columns"]

Data = Annotated[str, typer.Argument(metavar="DATA", help="A CSV or Parquet file, with a header.", show_default=False)]


def column_names(path: str) -> list[str]:
    """The names of a file's columns, read without its rows."""
    if not Path(path).is_file():
        raise ValueError(f"The file {path!r} is not there.")
    if path.endswith(".parquet"):
        return [field.name for field in _fields(path)]
    with _text(path) as lines:
        return next(_rows(lines), [])


def read_columns(path: str) -> dict[str, list[Any]]:
    """The columns of a CSV or Parquet file, by name."""
    names = column_names(path)
    if path.endswith(".parquet"):
        try:
            columns: dict[str, list[Any]] = _parquet().read_table(path, columns=names, partitioning=None).to_pydict()
        except Exception as error:
            reason = type(error).__name__
        else:
            return columns
        raise ValueError(f"The file {path!r} could not be read ({reason}); the reader's message may quote it, and is withheld.")
    with _text(path) as lines:
        rows = [row for row in _rows(lines) if row][1:]
    return {name: [row[i] if i < len(row) and is_whole_text(row[i]) else None for row in rows] for i, name in enumerate(names)}


def _text(path: str) -> IO[str]:
    return open(path, newline="", encoding="utf-8-sig", errors="surrogateescape")


def _rows(lines: IO[str]) -> Any:
    csv.field_size_limit(sys.maxsize)
    return csv.reader(lines)


def _parquet() -> Any:
    with extra("tables"):
        return import_module("pyarrow.parquet")


def _fields(path: str) -> list[Any]:
    """The columns of a Parquet file whose type holds numbers, truth values or text."""
    try:
        schema = _parquet().read_schema(path)
    except (ValueError, OSError):
        raise ValueError(f"The file {path!r} is not Parquet.") from None
    kinds = import_module("pyarrow.types")
    tests = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal, kinds.is_string, kinds.is_large_string,
             kinds.is_string_view, kinds.is_null)
    return [field for field in schema
            if any(test(field.type.value_type if kinds.is_dictionary(field.type) else field.type) for test in tests)]
