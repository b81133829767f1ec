"""Where rows come from: a file, a frame in memory, a DuckDB relation, a Spark frame. All become one of two engines.

Files and frames in memory are read by an embedded DuckDB (frames without a copy, through Arrow). What is read never
depends on a guess from the data: text files are read as text and cast by the schema, and a cast that fails is a missing
value, because the guess of a type, and the error when it was wrong, would both tell something about single rows.
"""

from __future__ import annotations

import csv
import glob
import gzip
import os
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from discreet.encoding.caches import empty_at_exit
from discreet.encoding.engines import DuckDB, Engine, Spark, quietly
from discreet.encoding.frames import arrow_table, check_present
from discreet.errors import extra
from discreet.moments import DAY
from discreet.schema import Categories, Column, Dates, Schema, Times, Unlisted

with extra("tables"):
    import narwhals as nw

__all__ = ["Kind", "Source", "open_source", "ordered", "unreadable_lines"]

Kind: TypeAlias = Literal["number", "integer", "text"]

_TEXT_FILES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_PARQUET = (".parquet", ".pq")
_LONGEST_LINE = 2_000_000  # bytes: a longer one holds no row
_BUFFER, _SMALL_BUFFER = 1 << 28, 1 << 25  # bytes: DuckDB loses its place in a line that is longer than two of them
_TEXTUAL = (nw.String, nw.Categorical, nw.Enum)


@dataclass(frozen=True)
class Source:
    """Declared columns of a table, in an engine's own lazy frame, with types and names of our own."""

    engine: Engine
    frame: Any = field(repr=False)
    name: str
    answers: Literal["pandas", "polars"] = "polars"
    kinds: Mapping[str, Kind] = field(default_factory=dict, repr=False)  # how each column is read
    names: Mapping[str, str] = field(default_factory=dict, repr=False)  # what each is called in the frame
    whole: frozenset[str] = frozenset()  # columns whose type holds whole numbers alone
    decoded: Callable[[], Source] | None = field(
        default=None, repr=False
    )  # where an engine stops at ``UnreadableText``
    elsewhere: Callable[[Any], Source] | None = field(default=None, repr=False)  # the same rows in another connection
    connection: Any = field(default=None, repr=False)  # our own, of DuckDB


def open_source(
    source: Any,
    schema: Schema,
    unit: str | None,
    *,
    memory_limit: str | None = None,
    threads: int | None = None,
    temp_directory: str | None = None,
) -> Source:
    """A table's rows, not yet read."""
    empty_at_exit()
    columns = [*schema, *([unit] if unit and unit not in schema else [])]
    if unit is not None and unit in schema and not isinstance(schema[unit], Unlisted):
        raise ValueError(
            f"unit is {unit!r}, which the schema declares as {type(schema[unit]).__name__}, but an identifier is "
            "Unlisted(), or not in the schema."
        )  # read as anything else, two units might become one
    if not columns:
        raise ValueError("The schema is empty and there is no unit, but a table needs at least one declared column.")
    settings = {"memory_limit": memory_limit, "threads": threads, "temp_directory": temp_directory}
    if _is_relation(source) or _is_spark(source):
        if given := [name for name, value in settings.items() if value is not None]:
            raise ValueError(f"{given[0]} is given, but this frame has an engine of its own: set it there.")
        engine: Engine = DuckDB() if _is_relation(source) else Spark()
        return _typed(engine, source, type(source).__name__, "polars", schema, columns)
    with extra("tables"):
        import duckdb
    given_settings: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    try:
        connection = duckdb.connect(":memory:", config=given_settings)
    except duckdb.Error as error:  # nothing is open yet, so its message is about the settings alone
        raise ValueError(f"DuckDB does not accept {given_settings!r}: {error}") from None
    if isinstance(source, (str, os.PathLike)):
        path, buffer = os.fspath(source), _BUFFER if memory_limit is None else _SMALL_BUFFER
        opened = lambda where: _opened(DuckDB(where), where, path, schema, columns, buffer)  # noqa: E731
    else:
        arrow, answers = arrow_table(source, schema, columns)
        kind = type(source).__name__
        opened = lambda where: _typed(DuckDB(where), where.from_arrow(arrow), kind, answers, schema, columns)  # noqa: E731
    return replace(opened(connection), elsewhere=opened, connection=connection)


def ordered(source: Any) -> bool:
    """Whether rows come in an order that is their own: not in an engine's frames,
    which may change it from run to run.
    """
    return not (_is_relation(source) or _is_spark(source))


def _is_relation(source: Any) -> bool:
    return type(source).__name__ == "DuckDBPyRelation"


def _is_spark(source: Any) -> bool:
    return any(base.__module__.startswith("pyspark.sql") for base in type(source).__mro__)


def _opened(engine: Engine, connection: Any, path: str, schema: Schema, columns: list[str], buffer: int) -> Source:
    """A Parquet or text file, or a glob of them."""
    # a file's own name is no pattern
    files = [path] if Path(path).is_file() else sorted(glob.glob(path, recursive=True))
    if not files:
        raise FileNotFoundError(
            f"There is no file {path!r}. Give the path of a Parquet or CSV file, or a glob of them."
        )
    if path.endswith(_PARQUET):
        _agree(connection, files, columns)
        rows = quietly(lambda: connection.read_parquet(_literal(files), hive_partitioning=False))
        found = _typed(engine, rows, path, "polars", schema, columns, decoded=False)
        again = lambda: _typed(engine, _by_arrow(connection, files, columns), path, "polars", schema, columns)  # noqa: E731
        return replace(found, decoded=again)
    if path.endswith(_TEXT_FILES):
        rows = _text_files(connection, files, columns, buffer_size=buffer)
        return _typed(engine, rows, path, "polars", schema, columns, decoded=False)
    raise ValueError(f"{path!r} has no known ending: {', '.join(_PARQUET + _TEXT_FILES)}.")


def _by_arrow(connection: Any, files: Sequence[str], columns: Collection[str]) -> Any:
    """Columns of Parquet files, read by Arrow, which lets text be bytes: slower than DuckDB, which stops at them."""
    import pyarrow as pa
    import pyarrow.dataset

    def plain(field: Any) -> Any:
        kind = getattr(field.type, "value_type", field.type)  # of a dictionary
        return field.with_type(pa.binary() if str(kind) in ("string", "large_string") else field.type)

    found = pyarrow.dataset.dataset(list(files), format="parquet")
    fields = pa.schema([plain(found.schema.field(name)) for name in columns])
    bytes_ = connection.from_arrow(pyarrow.dataset.dataset(list(files), schema=fields, format="parquet"))
    quoted = [(DuckDB().quoted(field.name), field.type) for field in fields]
    return bytes_.project(
        ", ".join(f"TRY(decode({name})) AS {name}" if kind == pa.binary() else name for name, kind in quoted)
    )


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


def _agree(connection: Any, files: Sequence[str], columns: Collection[str]) -> None:
    """Refuse files that differ in the types of declared columns: a cast from one to the other could fail,
    on some value.
    """

    def types(path: str) -> dict[str, str]:
        found = connection.read_parquet(_literal([path]), hive_partitioning=False)
        return {name: str(kind) for name, kind in zip(found.columns, found.types, strict=True) if name in columns}

    first, *rest = quietly(lambda: [types(path) for path in files])
    if other := [path for path, found in zip(files[1:], rest, strict=True) if found != first]:
        raise ValueError(f"{other[0]!r} has other columns or types than {files[0]!r}: files read together must agree.")


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


# --- types -----------------------------------------------------------------------------------------------------------


def _typed(
    engine: Engine,
    native: Any,
    name: str,
    answers: Literal["pandas", "polars"],
    schema: Schema,
    columns: list[str],
    *,
    decoded: bool = True,
) -> Source:
    """``decoded``: whether text may be bytes that are none, because nobody has looked at it yet."""
    found = quietly(lambda: nw.from_native(native).collect_schema())
    check_present(columns, found.names())
    kinds = {column: _kind(column, found[column], schema.get(column), answers == "pandas") for column in columns}
    names = {column: f"c{number}" for number, column in enumerate(columns)}
    told = {names[column] for column in columns if kinds[column] == "text" and found[column].is_float()}
    casts = [
        f"{_cast(engine, column, 'number' if own in told else kinds[column], found[column], schema, decoded)} AS {own}"
        for column, own in names.items()
    ]
    frame = engine.project(native, casts)
    read = [
        f"{engine.number(own)} AS {own}" if kinds[column] == "number" or own in told else own
        for column, own in names.items()
    ]
    frame = engine.project(engine.project(frame, read), read)  # twice: see ``Engine.number``
    if told:
        frame = engine.project(
            frame, [f"{engine.told(own)} AS {own}" if own in told else own for own in names.values()]
        )
    # In pandas one missing entry makes doubles of whole numbers: there a type is not a public fact.
    whole = frozenset(
        column
        for column in columns
        if answers != "pandas" and (found[column].is_integer() or isinstance(found[column], nw.Boolean))
    )
    return Source(engine, frame, name, answers, kinds, names, whole)


def _kind(name: str, dtype: Any, column: Column | None, pandas: bool) -> Kind:
    """How a column is read: by what was declared, and for keys and units by the type the table states."""
    textual = isinstance(dtype, _TEXTUAL)
    if isinstance(column, (Dates, Times)):  # those of pandas were read as doubles already (``frames``)
        if not textual and not isinstance(dtype, (nw.Date, nw.Datetime)) and not pandas:
            raise ValueError(f"Column {name!r} has type {dtype}, but must hold dates, times or text: cast it first.")
        return "number"
    if not textual and not dtype.is_numeric() and not isinstance(dtype, (nw.Boolean, nw.Unknown)):
        raise ValueError(
            f"Column {name!r} has type {dtype}, but must hold numbers, truth values or text: cast it first."
        )
    if isinstance(column, Categories) and column.textual:
        return "text"
    # identities: no cast may make two of them equal (a UUID is Unknown)
    if column is None or isinstance(column, Unlisted):
        return (
            "text"
            if textual or dtype.is_decimal() or isinstance(dtype, nw.Unknown)
            else ("integer" if dtype.is_integer() else "number")
        )
    return "integer" if dtype.is_integer() and isinstance(column, Categories) else "number"


def _cast(engine: Engine, name: str, kind: Kind, dtype: Any, schema: Schema, decoded: bool) -> str:
    if isinstance(schema.get(name), (Dates, Times)):
        return _moment(engine, name, dtype, whole_days=isinstance(schema[name], Dates))
    if kind == "integer":
        return engine.quoted(name)
    spelled = isinstance(dtype, _TEXTUAL)
    return engine.text(name, decoded=decoded and spelled) if kind == "text" else engine.double(name, spelled=spelled)


def _moment(engine: Engine, name: str, dtype: Any, *, whole_days: bool) -> str:
    """A date or a time, in seconds since 1970."""
    if isinstance(dtype, nw.Float64):
        found = engine.quoted(name)
    else:
        zone = "zoned" if getattr(dtype, "time_zone", None) else "time"
        kind = "date" if isinstance(dtype, nw.Date) else "text" if isinstance(dtype, _TEXTUAL) else zone
        found = engine.seconds(name, kind)  # type: ignore[arg-type]
    return f"CAST(floor({found} / {DAY}) AS DOUBLE) * {DAY}" if whole_days else found
