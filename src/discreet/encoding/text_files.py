"""Text files as columns of text: CSV, tab-separated, JSON lines. They are read as text and cast by the schema, never by
a guess from their first lines.

Decision 291.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from typing import Any

from discreet.encoding.duckdb import DuckDB
from discreet.encoding.engines import quietly
from discreet.encoding.opened import Opened, check_once
from discreet.encoding.parquet import literal_paths
from discreet.errors import extra, is_whole_text
from discreet.schema import Bounded, Categories, Column, Dates, Schema, TextForm, Times

__all__ = ["detect_separator", "header", "open_json_lines", "open_text_files", "unreadable_lines"]

_LONGEST_LINE = 2_000_000  # bytes: a longer one holds no row
_ALIKE = (" \u00a0\u202f", "'\u2019")  # between thousands: spaces, apostrophes
_SIGNS = ";\t|,"  # what separates entries in files as people have them


def open_text_files(
    connection: Any, files: Sequence[str], schema: Schema, columns: Sequence[str], form: TextForm, buffer: int
) -> Opened:
    """Text files whose first line names the columns."""
    separator = form.separator or _separator(files[0])
    names = _names(files, separator)
    if absent := [name for name in columns if name not in names]:  # a file without names has a record in their place
        raise ValueError(
            f"There is no column {absent[0]!r} in the first line of {files[0]!r}, which names the columns"
            f"{_other_separator(files[0], columns)}."
        )
    check_once(names, columns)
    _refuse_empty_categories(schema, columns)
    rows = _read_text(connection, files, len(names), separator, buffer_size=buffer)
    places = {name: f"column{names.index(name)}" for name in sorted(columns, key=names.index)}  # as they stand there
    form_of_date = None if form.date_format is None else _checked_format(connection, form.date_format)
    spaced = separator.endswith(" ")
    texts = {place: f"nullif(trim({place}, ' '), '')" if spaced else place for place in places.values()}
    read = [
        f"{_rewritten(texts[place], schema.get(name), form, form_of_date)} AS {place}" for name, place in places.items()
    ]
    return Opened(rows.project(", ".join(read)), places, frozenset(columns), mended=True)


def _refuse_empty_categories(schema: Schema, columns: Sequence[str]) -> None:
    """Refuse a category that no cell can hold, whose rows would be lost."""
    for name in columns:
        column = schema.get(name)
        if isinstance(column, Categories) and "" in column.values:
            raise ValueError(
                f"Column {name!r} has a category '', but an empty cell of a text file is missing, quoted or not: "
                "leave '' out, and declare other= (in a schema file, other = \"...\") to count such rows."
            )


def _rewritten(text: str, column: Column | None, form: TextForm, form_of_date: str | None) -> str:
    """A column of text in the grammar of ``values`` and ``moments``; what is none in its own form is missing."""
    if isinstance(column, (Dates, Times)) and form_of_date is not None:
        return f"strftime(try_strptime({text}, {form_of_date}), '%Y-%m-%d %H:%M:%S.%f')"
    numbers = isinstance(column, Bounded) or (isinstance(column, Categories) and not column.textual)
    return _plain_number(text, form) if numbers else text


def _plain_number(place: str, form: TextForm) -> str:
    """A text as numbers are written here: nothing between thousands, and a decimal point. One that has the decimal sign
    of others is missing, and so is one whose thousands are no groups of three digits.
    """
    text, literal = place, DuckDB().literal
    if (sign := form.between_thousands) is not None:
        between = f"[{next((alike for alike in _ALIKE if sign in alike), sign)}]"
        grouped = literal(rf"\s*[-+]?[0-9]{{1,3}}({between}[0-9]{{3}})+([{form.decimal}][0-9]*)?\s*")
        bare = f"regexp_replace({place}, {literal(between)}, '', 'g')"
        text = f"CASE WHEN regexp_full_match({place}, {grouped}) THEN {bare} ELSE {place} END"
    return f"CASE WHEN NOT contains({text}, '.') THEN replace({text}, ',', '.') END" if form.decimal == "," else text


def _checked_format(connection: Any, date_format: str) -> str:
    """A format as a constant, if DuckDB knows its signs."""
    constant = DuckDB().literal(date_format)
    try:
        connection.execute(f"SELECT try_strptime('', {constant})").fetchall()
    except Exception:
        raise ValueError(f"date_format is {date_format!r}, but must have known signs only, as in '%d/%m/%Y'.") from None
    return constant


def unreadable_lines(path: str, text: TextForm, columns: Sequence[str]) -> list[int]:
    """The numbers of the lines of a text file that hold no row of some columns: too few fields, or bytes that are no
    text. They are private.
    """
    with extra("tables"):
        import duckdb
    connection = duckdb.connect(":memory:")
    separator = text.separator or _separator(path)
    names = header(path, separator)
    rows = quietly(lambda: _read_text(connection, [path], len(names), separator, store_rejects=True))
    # bytes are looked at in the columns that are read alone, here as wherever rows are read
    read = ", ".join(f"count(column{names.index(name)})" for name in columns if name in names)
    quietly(lambda: rows.aggregate(read or "count(*)").fetchall())
    found = connection.execute("SELECT DISTINCT line FROM reject_errors ORDER BY line").fetchall()
    return [int(line) for (line,) in found]


def _read_text(connection: Any, files: Sequence[str], width: int, separator: str, **more: Any) -> Any:
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
        sep=separator.removesuffix(" "),
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


def detect_separator(path: str) -> str | None:
    """What separates the names in the first line of a text file; none where that is the sign of the file's ending.

    The sign that gives the most names, with a space if one stands before each further name; where two give as many,
    somebody has to say which one it is.
    """
    many = {sign: len(header(path, sign)) for sign in _SIGNS}
    most = max(many.values())
    signs = [sign for sign, names in many.items() if names == most]
    if most == 1:
        return None
    if len(signs) > 1:
        raise ValueError(
            f"The names in the first line of {path!r} may be separated by {' or '.join(map(repr, signs))}: say which, "
            "by --separator."
        )
    spaced = all(name.startswith(" ") for name in header(path, signs[0])[1:])
    return None if signs[0] == _separator(path) and not spaced else signs[0] + " " * spaced


def _other_separator(path: str, columns: Sequence[str]) -> str:
    """What to write, where another sign separates the names."""
    for sign in (*_SIGNS, *(f"{sign} " for sign in _SIGNS)):
        if set(columns) <= set(header(path, sign)):
            return f": they are separated by {sign!r}, so write separator = {json.dumps(sign)} in the schema"
    return ""


def _names(files: Sequence[str], separator: str) -> list[str]:
    """The names in the first line of text files, the same in all: public, as the names of columns are."""
    first = header(files[0], separator)
    if other := [path for path in files[1:] if header(path, separator) != first]:
        raise ValueError(
            f"{other[0]!r} has other columns than {files[0]!r}, or another order: files read together must agree."
        )
    return first


def header(path: str, separator: str | None = None) -> list[str]:
    """The names in the first line of a text file."""
    with extra("tables"):
        import pyarrow as pa
    try:
        # what follows the names may be anything
        with pa.input_stream(path) as file, io.TextIOWrapper(file, "utf-8-sig", "surrogateescape") as lines:
            sign, space, _ = (separator or _separator(path)).partition(" ")
            names = next(csv.reader(lines, delimiter=sign, skipinitialspace=bool(space)), [])
            names = [name.strip(" ") for name in names] if space else names
    except FileNotFoundError:
        raise ValueError(f"There is no file {path!r}.") from None
    except (OSError, EOFError, csv.Error) as error:
        reason = type(error).__name__
        raise ValueError(f"{path!r} cannot be read as a text file with names in its first line ({reason}).") from None
    if not all(map(is_whole_text, names)) or any("\0" in name for name in names):
        raise ValueError(f"The first line of {path!r} is no UTF-8: save the file as UTF-8 (in Excel: CSV UTF-8).")
    if re.fullmatch("(?i)sep=.?", (separator or _separator(path)).join(names)):
        raise ValueError(
            f"The first line of {path!r} is {names[0]!r}, a word for Excel, but must name the columns: take it out."
        )
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
