"""Rows and columns as users hand them over: types and shapes, which are public, are looked at first; values later.

Every record is read by itself. An array has a type that all its records share, and it is public. So is whether a
frame's column holds dates, or lists; but not whether it holds numbers or text, for who read a file into it may have
asked the records: its text is read by the grammar of ``values``. A list, or an array of objects, has no type: each
entry is read alone, and one that is no number (text, ``None``, a complex number) becomes NaN. So does every entry of a
row of another length. None of that is an error or a warning, which would tell that the record is there, and none of it
changes how other records are read.

Decision 106.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding.values import number
from discreet.mechanisms.records import double, doubles, entries, quiet_doubles, row, row_length

__all__ = [
    "UnreadColumn",
    "UnreadRows",
    "as_list",
    "column_types",
    "frame_columns",
    "is_frame",
    "kind_of",
]

_LETTERS = {
    "b": "numbers",
    "i": "numbers",
    "u": "numbers",
    "f": "numbers",
    "U": "text",
    "S": "bytes",
    "M": "dates",
    "m": "times",
}  # NumPy's, which pandas shares
_POLARS = {
    "Boolean": "numbers",
    "String": "text",
    "Categorical": "text",
    "Enum": "text",
    "Object": "objects",
    "Null": "objects",  # of a column in which nobody has an entry
}
_NUMBER = re.compile(r"(u?int|float|halffloat|double|bool|decimal)\d*\b")  # pandas' own names


def kind_of(kind: Any) -> str:
    """What a type holds: "numbers", "text", "objects", or another type's name. For NumPy, pandas, polars and Arrow.

    >>> kind_of(np.dtype(bool)), kind_of(np.dtype("U3")), kind_of(np.dtype("M8[D]"))
    ('numbers', 'text', 'dates')
    """
    name, letter = str(kind), getattr(kind, "kind", "")
    if hasattr(kind, "is_numeric"):  # polars
        return "numbers" if kind.is_numeric() else _POLARS.get(name.split("(")[0], name)
    if (arrow := getattr(kind, "pyarrow_dtype", kind)).__class__.__module__ == "pyarrow.lib":
        return _kind_of_arrow(arrow)
    if name == "category":
        return "objects"  # the words that there are make its type, and records make the words
    if letter in _LETTERS or _NUMBER.match(name):
        return _LETTERS.get(letter, "numbers")
    return "text" if "str" in name else "objects" if name == "object" else name


def _kind_of_arrow(kind: Any) -> str:
    import pyarrow as pa

    while pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    if (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
    ):
        return "numbers"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    return "objects" if pa.types.is_null(kind) else str(kind)


def as_list(source: Any) -> Any:
    """A container that states no type for its records (a deque, say) as a list:
    NumPy would find one for all of them.
    """
    typed = any(hasattr(source, name) for name in ("__array__", "__array_interface__", "tocsr"))
    if typed or isinstance(source, (list, tuple, str, bytes, bytearray, memoryview, type, Mapping, Set)):
        return source
    if not hasattr(source, "__len__"):
        return source
    try:
        return list(source)
    except TypeError:  # it has a length, and no entries that could be listed: NumPy's dtypes
        return source


# --- rows ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnreadRows:
    """Rows as they were handed over: the number of their columns is known, their values are unread."""

    source: Any
    columns: int

    def __len__(self) -> int:
        return int(self.source.shape[0]) if hasattr(self.source, "tocsr") else len(self.source)

    def __repr__(self) -> str:
        return f"UnreadRows({self.columns} columns)"

    def read(self) -> NDArray[np.float64]:
        """The values as floats."""
        source = self.source
        if is_frame(source):
            return np.stack([doubles(series, number) for series in frame_columns(source)], axis=1)
        if hasattr(source, "tocsr"):
            return quiet_doubles(source.toarray())
        if isinstance(source, np.ndarray) and source.dtype != object:
            return quiet_doubles(source)
        return np.array([row(record, self.columns) for record in source], np.float64).reshape(-1, self.columns)


def is_frame(rows: Any) -> bool:
    """Whether it is a frame: of pandas or polars, or a table of Arrow."""
    return (hasattr(rows, "dtypes") and hasattr(rows, "columns")) or (
        hasattr(rows, "schema") and hasattr(rows, "column_names")
    )


def column_types(frame: Any) -> list[tuple[Any, Any]]:
    """The names of a frame's columns, with their types."""
    if hasattr(frame, "dtypes"):
        return list(zip(frame.columns, frame.dtypes, strict=True))
    return list(zip(frame.column_names, frame.schema.types, strict=True))


def frame_columns(frame: Any) -> list[Any]:
    """The columns of a frame, in order."""
    if hasattr(frame, "iloc"):
        return [frame.iloc[:, i] for i in range(frame.shape[1])]
    return list(frame.iter_columns() if hasattr(frame, "iter_columns") else frame.itercolumns())


# --- a column --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnreadColumn:
    """A column as it was handed over: what it holds is known (``kind_of``), its values are unread."""

    source: Any
    kind: str

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return f"UnreadColumn({self.kind})"

    def read(self) -> NDArray[Any]:
        """The values, as they are: an array of a NumPy type, or of objects,
        where a missing one changes no other's type.
        """
        if isinstance(getattr(self.source, "dtype", None), np.dtype):
            return np.asarray(self.source)
        values = np.empty(len(self.source), object)
        for i, value in enumerate(entries(self.source)):  # one at a time: a list of lists is no table here
            values[i] = _only(value)
        return values

    def floats(self) -> NDArray[np.float64]:
        """The values as numbers, NaN for what is none: text spells one in a frame alone."""
        if isinstance(self.source, (list, tuple)):
            return doubles(self.read())
        return doubles(self.source, double if isinstance(self.source, np.ndarray) else number)


def _only(value: Any) -> Any:
    """The entry of a row that has one; anything else as it is."""
    try:
        return next(iter(value)) if row_length(value) == 1 else value
    except Exception:  # as above
        return None
