"""Rows of files: Parquet, Feather, CSV, JSON lines, each as an engine's lazy relation of columns that were declared."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from discreet.encoding.arrow_types import plain_field
from discreet.encoding.engines import quietly
from discreet.encoding.opened import Opened, check_once
from discreet.encoding.parquet import open_parquet
from discreet.encoding.text_files import header, open_json_lines, open_text_files
from discreet.encoding.text_files import unreadable_lines as unreadable_text_lines
from discreet.errors import extra
from discreet.schema import Schema, TextForm

__all__ = ["declared_types", "is_text_file", "open_files", "unreadable_lines"]

_PACKED = ("", ".gz", ".zst")
_TEXT_FILES = tuple(f"{kind}{packed}" for kind in (".csv", ".tsv") for packed in _PACKED)
_JSON = tuple(f"{kind}{packed}" for kind in (".jsonl", ".ndjson") for packed in _PACKED)
_PARQUET = (".parquet", ".pq")
_FEATHER = (".feather", ".arrow", ".ipc")
_EXCEL = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")


def open_files(connection: Any, path: str, schema: Schema, columns: list[str], text: TextForm, buffer: int) -> Opened:
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
        return open_parquet(connection, files, columns)
    if path.endswith(_FEATHER):
        return _open_feather(connection, files, columns)
    if path.endswith(_TEXT_FILES):
        return open_text_files(connection, files, schema, columns, text, buffer)
    if path.endswith(_JSON):
        return quietly(lambda: open_json_lines(connection, files, columns, buffer))
    raise ValueError(f"{path!r} has no known ending: {', '.join(_PARQUET + _FEATHER + _TEXT_FILES + _JSON)}.")


def unreadable_lines(path: str, text: TextForm, columns: Sequence[str]) -> list[int]:
    """The numbers of a text file's lines that hold no row of some columns, none of another file. They are private."""
    return unreadable_text_lines(path, text, columns) if is_text_file(path) else []


def is_text_file(path: str) -> bool:
    """Whether a file has lines of text, whose separator, numbers and dates may be written in several ways."""
    return path.endswith(_TEXT_FILES)


def declared_types(path: str, separator: str | None = None) -> dict[str, str]:
    """The names of a file's columns, with the type that the file itself declares ("" in a text file, which declares
    none). They are public; no row is read.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"There is no file {path!r}.")
    if path.endswith(_TEXT_FILES):
        return dict.fromkeys(header(path, separator), "")
    if not path.endswith(_PARQUET + _FEATHER):
        workbook = "save it as CSV UTF-8" if path.lower().endswith((".xlsx", ".xls", ".ods")) else "give another"
        ends = ", ".join(_TEXT_FILES + _PARQUET)
        raise ValueError(f"{path!r} declares no columns: {workbook}. A file may end in {ends}.")
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
        raise ValueError(f"{path!r} is not a file of the kind that its ending says.") from None
    return {field.name: str(field.type) for field in found}


def _open_feather(connection: Any, files: Sequence[str], columns: Sequence[str]) -> Opened:
    """Feather files as one Arrow dataset; types are declared in each, and must agree."""
    import pyarrow as pa
    import pyarrow.dataset

    found = quietly(lambda: [pyarrow.dataset.dataset(file, format="ipc").schema for file in files])
    check_once(found[0].names, columns)
    types = [{name: str(schema.field(name).type) for name in columns if name in schema.names} for schema in found]
    if other := [file for file, kinds in zip(files, types, strict=True) if kinds != types[0]]:
        raise ValueError(f"{other[0]!r} has other columns or types than {files[0]!r}: files read together must agree.")
    plain = pa.schema([plain_field(found[0].field(name)) for name in types[0]])
    rows = quietly(lambda: connection.from_arrow(pyarrow.dataset.dataset(list(files), format="ipc", schema=plain)))
    return Opened(rows, {name: name for name in types[0]})
