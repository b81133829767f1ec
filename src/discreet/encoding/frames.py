"""Frames in memory as Arrow tables.

The types of polars and Arrow are declared: no record changes them. Those of pandas are not, for one missing entry makes
doubles, or objects, of whole numbers, and one text makes objects of anything. So a pandas column is read by what was
*declared* of it, entry by entry, and the Arrow column that it becomes has a type that no record decides:

==================================  ===================================================================================
declared                            read as
==================================  ===================================================================================
``Bounded``, numbers as categories  doubles
``Dates``, ``Times``                doubles: seconds since 1970 (``moments``)
text as categories                  text (``values.label``)
``Unlisted``, the unit              text (``values.identity``), shown in answers by ``values.shown``
==================================  ===================================================================================

What is many (numbers, and text that Arrow holds) is read by Arrow in the same words; what is not, by Python.

Decisions 290 and 293.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import reduce
from typing import Any, Literal

import numpy as np

from discreet.encoding.arrow_types import plain_field, plain_schema
from discreet.encoding.columns import check_type, moments, spelled_doubles
from discreet.encoding.containers import kind_of
from discreet.encoding.engines import quietly
from discreet.encoding.opened import check_once
from discreet.encoding.values import KINDS, NUMBERS, are_truths, identity, label
from discreet.errors import extra
from discreet.schema import Categories, Column, Dates, Schema, Times, Unlisted

with extra("tables"):
    import narwhals as nw
    import pyarrow as pa
    import pyarrow.compute as pc

__all__ = ["arrow_table", "check_present"]

_EXACT = 1 << 53  # whole numbers up to here are doubles, and are written in digits


def arrow_table(source: Any, schema: Schema, columns: list[str]) -> tuple[Any, Literal["pandas", "polars"]]:
    """The declared columns of a frame as an Arrow table, and the kind of frame that answers are."""
    if nw.dependencies.is_pandas_like_dataframe(source):
        return _table_of_pandas(source, schema, columns), "pandas"
    if nw.dependencies.is_polars_lazyframe(source):
        check_present(columns, quietly(lambda: source.collect_schema().names()))
        # whatever fails on the way would quote the entry on which it failed
        source = quietly(lambda: source.select(columns).collect())
    if nw.dependencies.is_polars_dataframe(source):
        check_present(columns, source.columns)
        source = quietly(lambda: source.select(columns).to_arrow())
    if not nw.dependencies.is_pyarrow_table(source):
        raise ValueError(
            f"source is a {type(source).__name__}, but must be a path, a pandas, polars or pyarrow frame, a "
            "DuckDB relation or a Spark frame."
        )
    return _table_of_arrow(source, schema, columns), "polars"


def _table_of_pandas(source: Any, schema: Schema, columns: list[str]) -> Any:
    series = _declared_columns(source, list(source.columns), columns, lambda place: source.iloc[:, place])
    for name, one in series.items():
        if not _is_time(schema, name):
            check_type(name, one)
    return pa.table(quietly(lambda: {name: _column(one, schema.get(name)) for name, one in series.items()}))


def _table_of_arrow(source: Any, schema: Schema, columns: list[str]) -> Any:
    arrays = _declared_columns(source, source.column_names, columns, source.column)
    fields = plain_schema(pa.schema([(name, one.type) for name, one in arrays.items()]))
    for name, kind in zip(fields.names, fields.types, strict=True):
        # a number counts from some day, and from which is not known: the answer would be wrong without a word
        if _is_time(schema, name) and kind_of(kind) == "numbers":
            raise ValueError(f"Column {name!r} has type {kind}, but must hold dates, times or text: cast it first.")
    return quietly(lambda: pa.table(list(arrays.values()), names=list(arrays)).cast(fields))


def _declared_columns(
    source: Any, names: list[Any], columns: Sequence[str], column: Callable[[int], Any]
) -> dict[str, Any]:
    """The declared columns, by their place: others may share a name, or have none."""
    check_present(columns, names)
    check_once(names, columns)
    return {name: column(names.index(name)) for name in columns}


def check_present(wanted: Collection[str], found: Collection[str]) -> None:
    """Refuse a declared column that is not there."""
    if absent := [name for name in wanted if name not in found]:
        raise ValueError(f"There is no column {absent[0]!r}. The table has: {', '.join(map(str, found))}.")


def _is_time(schema: Schema, name: str) -> bool:
    return isinstance(schema.get(name), (Dates, Times))


def _moments(series: Any) -> Any:
    """A pandas column in seconds, each entry of which is a date or a time, or spells one, or is missing."""
    if _of_arrow(series.dtype) is not None:
        return pa.array(moments(pa.array(series)), pa.float64())
    if "datetime64" in str(series.dtype):
        plain = series if series.dt.tz is None else series.dt.tz_convert("UTC").dt.tz_localize(None)
        return pa.array(moments(plain.to_numpy()), pa.float64())
    return pa.array(moments(series.astype(object)), pa.float64())


def _column(series: Any, column: Column | None) -> Any:
    """A pandas column, read by its declaration."""
    if isinstance(column, (Dates, Times)):
        return _moments(series)
    held = _held_by_arrow(series)
    if column is None or isinstance(column, Unlisted):  # none: the unit
        return _identities(series, held)
    if isinstance(column, Categories) and column.textual:
        return _labels(series, held)
    if held is not None and _textual(held):
        return held  # read by the engine, by the same grammar
    numbers = series if held is None else held.cast(pa.float64(), safe=False)
    return pa.array(spelled_doubles(numbers, truth=are_truths(column)), pa.float64())


def _identities(series: Any, held: Any) -> Any:
    """Entries as ``identity`` writes them."""
    if held is None:
        return pa.array(map(identity, series.astype(object)), pa.large_string())
    return _mark_text(held) if _textual(held) else _write_numbers(held, identity, NUMBERS)


def _labels(series: Any, held: Any) -> Any:
    """Entries as ``label`` writes them."""
    if held is None:
        return pa.array(map(label, series.astype(object)), pa.large_string())
    return held if _textual(held) else _write_numbers(held, label, "")


def _held_by_arrow(series: Any) -> Any:
    """The column as one Arrow array on which Arrow computes; none where Python must read it."""
    if not _can_hold(series.dtype):
        return None
    array = pa.array(series, from_pandas=True)
    return _plain_array(array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array)


def _plain_array(array: Any) -> Any:
    """An Arrow column in a type on which Arrow computes; of a dictionary, whose words records decide, its entries."""
    if isinstance(array, pa.DictionaryArray):
        words = _plain_array(array.dictionary)
        return pa.DictionaryArray.from_arrays(array.indices, words).dictionary_decode()
    kind = pa.large_string() if pa.types.is_string_view(array.type) else plain_field(pa.field("", array.type)).type
    return array if kind == array.type else array.cast(kind)


def _of_arrow(dtype: Any) -> Any:
    """Arrow's own type, where pandas holds a column in it."""
    return getattr(dtype, "pyarrow_dtype", None)


def _can_hold(dtype: Any) -> bool:
    """Whether Arrow can hold a column as it is: objects may be anything, and Python's text no Unicode (lone
    surrogates); decimals are compared by their values, not by their digits; it knows no long doubles.
    """
    if (arrow := _of_arrow(dtype)) is not None:
        return kind_of(dtype) in ("numbers", "text") and "decimal" not in str(arrow)
    name = dtype.name
    if name == "category" or getattr(dtype, "storage", None) == "python" or "float128" in name:
        return False
    return kind_of(dtype) in ("numbers", "text")


def _textual(array: Any) -> bool:
    return any(kind(array.type) for kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _write_numbers(array: Any, write: Callable[[Any], str | None], mark: str) -> Any:
    """Numbers as ``write`` writes them: whole ones, after ``mark``, in digits."""
    if pa.types.is_boolean(array.type):
        if not mark:
            return array.cast(pa.large_string())
        array = array.cast(pa.uint8())
    if pa.types.is_floating(array.type):
        array = array.cast(pa.float64())
    values, missing = array.fill_null(0).to_numpy(zero_copy_only=False), array.is_null().to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        whole = ~missing & (values >= -_EXACT) & (values <= _EXACT) & (np.floor(values) == values)
    digits = pa.array(np.where(whole, values, 0).astype(np.int64), mask=~whole).cast(pa.large_string())
    written = _after(mark, digits)
    others = ~missing & ~whole
    if not others.any():
        return written
    # fractions, infinities and what is beyond the whole numbers of doubles, one by one
    return pc.replace_with_mask(
        written, pa.array(others), pa.array([write(value) for value in values[others].tolist()], pa.large_string())
    )


def _after(mark: str, texts: Any) -> Any:
    """Each text with ``mark`` before it."""
    return pc.binary_join_element_wise(pa.scalar(mark, pa.large_string()), texts, pa.scalar("", pa.large_string()))


def _mark_text(array: Any) -> Any:
    """Text as ``identity`` writes it: marked where it could be taken for what another kind is written as."""
    array = array.cast(pa.large_string())
    is_like_a_mark = reduce(pc.or_, [pc.starts_with(array, pattern=kind) for kind in KINDS])
    return pc.if_else(is_like_a_mark, _after("text:", array), array)
