"""Where rows come from: a file, a frame in memory, a DuckDB relation, a Spark frame. All become one of two engines.

Files and frames in memory are read by an embedded DuckDB (frames without a copy, through Arrow). What is read never
depends on a guess from the data: text files are read as text and cast by the schema, and a cast that fails is a missing
value, because the guess of a type, and the error when it was wrong, would both tell something about single rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from discreet.dates import DAY
from discreet.encoding.caches import empty_at_exit
from discreet.encoding.duckdb import DuckDB
from discreet.encoding.engines import Engine, quietly
from discreet.encoding.files import open_files, unreadable_lines
from discreet.encoding.frames import arrow_table, check_present
from discreet.encoding.opened import Opened
from discreet.encoding.spark import Spark
from discreet.encoding.values import are_truths
from discreet.errors import choice, extra
from discreet.schema import Categories, Column, Dates, Schema, TextForm, Times, Unlisted

with extra("tables"):
    import narwhals as nw

__all__ = ["Kind", "Source", "has_row_order", "open_source", "unreadable_lines"]

Kind: TypeAlias = Literal["number", "integer", "text"]

_BUFFER, _SMALL_BUFFER = 1 << 28, 1 << 25  # bytes: DuckDB loses its place in a line that is longer than two of them
_TEXTUAL = (nw.String, nw.Categorical, nw.Enum)
_IDENTIFIERS = ("UUID", "BIT", "BIGNUM", '"NULL"', "void")  # types that narwhals does not know, and that text tells
_HOLDS = "Column {!r} has type {}, but must hold numbers, truth values or text: cast it first."


@dataclass(frozen=True)
class Source:
    """Declared columns of a table, in an engine's own lazy frame, with types and names of our own."""

    engine: Engine
    frame: Any = field(repr=False)
    name: str
    answers: Literal["pandas", "polars"] = "polars"
    kinds: Mapping[str, Kind] = field(default_factory=dict, repr=False)  # how each column is read
    names: Mapping[str, str] = field(default_factory=dict, repr=False)  # what each is called in the frame
    whole: frozenset[str] = frozenset()  # columns whose type, which a file declares, holds whole numbers alone
    elsewhere: Callable[[Any], Source] | None = field(default=None, repr=False)  # the same rows in another connection
    connection: Any = field(default=None, repr=False)  # our own, of DuckDB
    spelled: frozenset[str] = frozenset()  # columns of numbers whose type, which a file declares, is text
    order: tuple[str, ...] = ()  # the columns of a file, as they stand there

    @property
    def pandas(self) -> bool:
        """Whether answers are frames of pandas; they are of polars otherwise."""
        return choice("answers", self.answers, {"pandas": True, "polars": False})


def open_source(
    source: Any,
    schema: Schema,
    unit: str | None,
    *,
    text: TextForm = TextForm(),  # noqa: B008 - it never changes
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
    source = nw.to_native(source, pass_through=True)  # what narwhals wraps is what it is
    if _is_relation(source) or _is_spark(source):
        if given := [name for name, value in settings.items() if value is not None]:
            raise ValueError(f"{given[0]} is given, but this frame has an engine of its own: set it there.")
        engine: Engine = DuckDB() if _is_relation(source) else Spark()
        return _cast_columns(engine, source, type(source).__name__, "polars", schema, columns)
    with extra("tables"):
        import duckdb
    given_settings: dict[str, Any] = {name: value for name, value in settings.items() if value is not None}
    try:
        connection = duckdb.connect(":memory:", config=given_settings)
    except duckdb.Error as error:  # nothing is open yet, so its message is about the settings alone
        raise ValueError(f"DuckDB does not accept {given_settings!r}: {error}") from None
    if isinstance(source, (str, os.PathLike)):
        path, buffer = os.fspath(source), _BUFFER if memory_limit is None else _SMALL_BUFFER

        def opened(where: Any) -> Source:
            return _open_file(where, path, schema, columns, text, buffer)

    else:
        arrow, answers = arrow_table(source, schema, columns)
        called = {column: f"column{number}" for number, column in enumerate(columns)}
        named = arrow.rename_columns(list(called.values()))

        def opened(where: Any) -> Source:
            rows = where.from_arrow(named)
            return _cast_columns(DuckDB(where), rows, type(source).__name__, answers, schema, columns, called)

    return replace(opened(connection), elsewhere=opened, connection=connection)


def has_row_order(source: Any) -> bool:
    """Whether rows come in an order that is their own: not in an engine's frames, which may change it from run to run,
    nor after a join.
    """
    if isinstance(source, Source):
        return source.elsewhere is not None
    return not (_is_relation(source) or _is_spark(source))


def _is_relation(source: Any) -> bool:
    return type(source).__name__ == "DuckDBPyRelation"


def _is_spark(source: Any) -> bool:
    return any(base.__module__.startswith("pyspark.sql") for base in type(source).__mro__)


def _open_file(connection: Any, path: str, schema: Schema, columns: list[str], text: TextForm, buffer: int) -> Source:
    """A file, or a glob of them."""
    file = open_files(connection, path, schema, columns, text, buffer)
    check_present(columns, file.called)
    source = _cast_columns(
        DuckDB(connection), file.rows, path, "polars", schema, columns, file.called, mended=file.mended
    )
    return _with_types(source, file, schema)


# --- types -----------------------------------------------------------------------------------------------------------


def _cast_columns(
    engine: Engine,
    native: Any,
    name: str,
    answers: Literal["pandas", "polars"],
    schema: Schema,
    columns: list[str],
    called: Mapping[str, str] | None = None,
    *,
    mended: bool = False,
) -> Source:
    """The columns cast by what is declared of them; ``called`` is what each is called in ``native``, and ``mended``
    whether all text there is text, for sure.
    """
    found = quietly(lambda: nw.from_native(native).collect_schema())
    if called is None:
        check_present(columns, found.names())
        called = {column: column for column in columns}
    types = {column: found[called[column]] for column in columns}
    own_types = dict(zip(native.columns, native.types, strict=True)) if _is_relation(native) else dict(native.dtypes)
    for column, kind in types.items():
        if isinstance(kind, nw.Unknown) and str(own_types[called[column]]) not in _IDENTIFIERS:
            raise ValueError(_HOLDS.format(column, own_types[called[column]]))
    kinds = {column: _kind(column, types[column], schema.get(column), answers == "pandas") for column in columns}
    names = {column: f"c{number}" for number, column in enumerate(columns)}
    told = {names[column] for column in columns if kinds[column] == "text" and types[column].is_float()}
    first = {column: "number" if own in told else kinds[column] for column, own in names.items()}
    casts = [
        f"{_cast(engine, called[column], first[column], types[column], schema.get(column), mended)} AS {own}"
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
            frame, [f"{engine.double_as_text(own)} AS {own}" if own in told else own for own in names.values()]
        )
    return Source(engine, frame, name, answers, kinds, names)


def _with_types(source: Source, file: Opened, schema: Schema) -> Source:
    """With what the types of a file say. Those of frames, in memory or of an engine, say nothing: who read them may
    have taken their types from the records.
    """
    types = nw.from_native(file.rows).collect_schema()
    typed = {name: types[file.called[name]] for name in source.names if name not in file.untyped}
    return replace(
        source,
        order=tuple(file.called),
        whole=frozenset(name for name, kind in typed.items() if kind.is_integer() or isinstance(kind, nw.Boolean)),
        spelled=frozenset(
            name
            for name, kind in typed.items()
            if source.kinds[name] == "number" and isinstance(kind, _TEXTUAL)
            if not isinstance(schema.get(name), (Dates, Times))
        ),
    )


def _kind(name: str, dtype: Any, column: Column | None, pandas: bool) -> Kind:
    """How a column is read: by what was declared, and for keys and units by the type the table states."""
    textual = isinstance(dtype, _TEXTUAL)
    if isinstance(column, (Dates, Times)):  # those of pandas were read as doubles already (``frames``)
        if not textual and not isinstance(dtype, (nw.Date, nw.Datetime)) and not pandas:
            raise ValueError(f"Column {name!r} has type {dtype}, but must hold dates, times or text: cast it first.")
        return "number"
    if not textual and not dtype.is_numeric() and not isinstance(dtype, (nw.Boolean, nw.Unknown)):
        raise ValueError(_HOLDS.format(name, dtype))
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


def _cast(engine: Engine, name: str, kind: Kind, dtype: Any, column: Column | None, mended: bool) -> str:
    if isinstance(column, (Dates, Times)):
        return _moment(engine, name, dtype, whole_days=isinstance(column, Dates))
    if kind == "integer":
        return engine.quote(name)
    spelled = isinstance(dtype, _TEXTUAL)
    if kind == "text":
        return engine.text(name, spelled=spelled, mended=mended)
    if kind == "number":
        return engine.double(name, spelled=spelled, truth=are_truths(column))
    raise ValueError(f"Column {name!r} is read as {kind!r}, but there are 'integer', 'text' and 'number'.")


def _moment(engine: Engine, name: str, dtype: Any, *, whole_days: bool) -> str:
    """A date or a time, in seconds since 1970."""
    if isinstance(dtype, nw.Float64):
        found = engine.quote(name)
    else:
        zone = "zoned" if getattr(dtype, "time_zone", None) else "time"
        kind = "date" if isinstance(dtype, nw.Date) else "text" if isinstance(dtype, _TEXTUAL) else zone
        found = engine.seconds(name, kind)  # type: ignore[arg-type]
    return f"CAST(floor({found} / {DAY}) AS DOUBLE) * {DAY}" if whole_days else found
