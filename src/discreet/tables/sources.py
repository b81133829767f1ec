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
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from discreet.errors import extra
from discreet.schema import Categories, Column, Schema, Unlisted
from discreet.tables.engines import DuckDB, Engine, Spark

with extra("tables"):
    import narwhals as nw

__all__ = ["Source", "open_source"]

_TEXT_FILES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
_PARQUET = (".parquet", ".pq")


@dataclass(frozen=True)
class Source:
    """Declared columns of a table, in an engine's own lazy frame, with the types the schema gives them."""

    engine: Engine
    frame: Any = field(repr=False)
    name: str
    answers: Literal["pandas", "polars"] = "polars"
    kinds: Mapping[str, str] = field(default_factory=dict, repr=False)  # of each column: number, integer, text


def open_source(source: Any, schema: Schema, unit: str | None, *, memory_limit: str | None = None, threads: int | None = None,
                temp_directory: str | None = None) -> Source:
    """A table's rows, not yet read."""
    columns = [*schema, *([unit] if unit and unit not in schema else [])]
    if unit is not None and unit in schema and not isinstance(schema[unit], Unlisted):
        raise ValueError(f"unit is {unit!r}, which the schema declares as {type(schema[unit]).__name__}, but an identifier is "
                         "Unlisted(), or not in the schema.")  # read as anything else, two units might become one
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
    connection = duckdb.connect(":memory:", config=given_settings)
    engine = DuckDB(connection)
    if isinstance(source, (str, os.PathLike)):
        return _typed(engine, _file(connection, os.fspath(source)), os.fspath(source), "polars", schema, columns)
    arrow, answers = _arrow(source, schema, columns)
    return _typed(engine, connection.from_arrow(arrow), type(source).__name__, answers, schema, columns)


def _is_relation(source: Any) -> bool:
    return type(source).__name__ == "DuckDBPyRelation"


def _is_spark(source: Any) -> bool:
    return any(base.__module__.startswith("pyspark.sql") for base in type(source).__mro__)


def _file(connection: Any, path: str) -> Any:
    """A Parquet or text file, or a glob of them."""
    files = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else [path] if Path(path).exists() else []
    if not files:
        raise FileNotFoundError(f"There is no file {path!r}. Give the path of a Parquet or CSV file, or a glob of them.")
    if path.endswith(_PARQUET):
        return connection.read_parquet(path)
    if path.endswith(_TEXT_FILES):
        separator = "\t" if ".tsv" in path else ","
        columns = dict.fromkeys(_header(files[0], separator), "VARCHAR")
        # Every choice that DuckDB would make by looking at rows is made here; a line that is too short is left out.
        return connection.read_csv(path, auto_detect=False, columns=columns, header=True, sep=separator, quotechar='"',
                                   escapechar='"', ignore_errors=True, strict_mode=False)
    raise ValueError(f"{path!r} has no known ending: {', '.join(_PARQUET + _TEXT_FILES)}.")


def _header(path: str, separator: str) -> list[str]:
    """The names in the first line of a text file: public, as the names of columns are."""
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig") as lines:
        names = next(csv.reader(lines, delimiter=separator), [])
    if not names or len(set(names)) < len(names):
        raise ValueError(f"{path!r} has no first line of distinct column names, but a text file needs one.")
    return names


# --- frames in memory ------------------------------------------------------------------------------------------------


def _arrow(source: Any, schema: Schema, columns: list[str]) -> tuple[Any, Literal["pandas", "polars"]]:
    """The declared columns of a frame as an Arrow table."""
    try:
        frame = nw.from_native(source)
    except TypeError:
        raise ValueError(f"source is a {type(source).__name__}, but must be a path, a pandas, polars or pyarrow frame, a "
                         "DuckDB relation or a Spark frame.") from None
    _present(columns, frame.collect_schema().names())
    frame = frame.select(columns)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect("polars")
    if not frame.implementation.is_pandas_like():
        return frame.to_arrow(), "polars"
    native = frame.to_native()
    native = native.assign(**{name: _plain(native[name], schema.get(name)) for name in columns if native[name].dtype == object})
    return nw.from_native(native, eager_only=True).to_arrow(), "pandas"


def _plain(series: Any, column: Column | None) -> Any:
    """A pandas column of arbitrary objects, entry by entry: as numbers where numbers are declared, otherwise as text."""
    if column is None or isinstance(column, Unlisted) or (isinstance(column, Categories) and column.textual):
        return series.map(_name, na_action="ignore").astype("str")
    return series.map(_number).astype("float64")


def _name(value: Any) -> str:
    # 7 and "7" are two identifiers, and must stay two
    return value if isinstance(value, str) else f"{type(value).__name__}:{value!r}"


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


# --- types -----------------------------------------------------------------------------------------------------------


def _typed(engine: Engine, native: Any, name: str, answers: Literal["pandas", "polars"], schema: Schema,
           columns: list[str]) -> Source:
    found = nw.from_native(native).collect_schema()
    _present(columns, found.names())
    kinds = {column: _kind(column, found[column], schema.get(column)) for column in columns}
    casts = [_cast(engine, column, kind, found[column]) for column, kind in kinds.items()]
    return Source(engine, engine.project(native, casts), name, answers, kinds)


def _present(wanted: Collection[str], found: Collection[str]) -> None:
    if absent := [name for name in wanted if name not in found]:
        raise ValueError(f"There is no column {absent[0]!r}. The table has: {', '.join(found)}.")


def _kind(name: str, dtype: Any, column: Column | None) -> str:
    """How a column is read: by what was declared, and for keys and units by the type the table states."""
    textual = isinstance(dtype, (nw.String, nw.Categorical, nw.Enum))
    if not textual and not dtype.is_numeric() and not isinstance(dtype, (nw.Boolean, nw.Unknown)):
        raise ValueError(f"Column {name!r} has type {dtype}, but must hold numbers, truth values or text: cast it first.")
    if isinstance(column, Categories) and column.textual:
        return "text"
    if column is None or isinstance(column, Unlisted):  # identities: no cast may make two of them equal
        return "text" if textual or dtype.is_decimal() else "integer" if dtype.is_integer() else "number"
    return "integer" if dtype.is_integer() else "number"


def _cast(engine: Engine, name: str, kind: str, dtype: Any) -> str:
    if kind == "integer" or (kind == "text" and isinstance(dtype, nw.String)):
        return engine.quoted(name)
    return engine.text(name) if kind == "text" else engine.number(name)
