"""What users hand over as X and y: types and shapes, which are public, are looked at first; values after the charge.

Every record is read by itself. An array, or a frame, has types that all its records share: they are public, and one that
is not numeric is refused by name. A list, or an array of objects, has none: each entry is read alone, and one that is no
number (text, ``None``, a complex number, a whole number beyond all doubles) becomes NaN, so that its record contributes
nothing. So does a row of another length. None of that is an error or a warning, which would tell that the record is there,
and none of it changes how other records are read. The shape of a list is that of most of its rows.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import extra
from discreet.linear.rows import MOST

with extra("sklearn"):
    from sklearn.exceptions import DataConversionWarning
    from sklearn.utils.validation import validate_data

__all__ = ["Column", "Table", "column", "entry", "held", "kind_of", "number", "table"]

_LETTERS = {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "U": "text", "S": "bytes", "M": "dates",
            "m": "times"}  # NumPy's, which pandas shares
_POLARS = {"Boolean": "numbers", "String": "text", "Categorical": "text", "Enum": "text", "Object": "objects"}
_NUMBER = re.compile(r"(u?int|float|halffloat|double|bool|decimal)\d*\b")  # Arrow's names
_REFUSED = "X has {what}, but must hold real numbers. Encode categories by a public list of levels first."


# --- one entry -------------------------------------------------------------------------------------------------------


def entry(value: Any) -> float:
    """The number that a value is, and NaN for anything else, text that spells one included.

    >>> entry(True), entry("2.5"), entry(10**400), entry(1j)
    (1.0, nan, nan, nan)
    """
    try:
        real = isinstance(value, (Real, np.bool_, np.number, Decimal))
        with np.errstate(all="ignore"):  # a long double beyond all doubles
            return float(value) if real and not isinstance(value, (np.complexfloating, np.timedelta64)) else math.nan
    except Exception:  # an object may do anything when it is looked at; it is its own record's matter
        return math.nan


def number(value: Any) -> float:
    """The number that a value is or spells, and NaN for anything else.

    >>> number("2.5"), number(None), number(10**400)
    (2.5, nan, nan)
    """
    if not isinstance(value, (str, bytes)):
        return entry(value)
    try:
        return float(value)
    except ValueError:
        return math.nan


def _length(row: Any) -> int | None:
    """Of a row, if it is one."""
    try:
        listed = not isinstance(row, (str, bytes, bytearray, Mapping, Set)) and hasattr(row, "__iter__")
        return len(row) if listed else None
    except Exception:  # an array without dimensions; an object may do anything when it is looked at
        return None


def _row(row: Any, columns: int) -> list[float]:
    try:
        found = [entry(value) for value in row] if _length(row) == columns else []
    except Exception:  # it may do anything when it is read, and that is its own record's matter
        found = []
    return found if len(found) == columns else [math.nan] * columns


def _only(value: Any) -> Any:
    """The entry of a row that has one; anything else as it is."""
    try:
        return next(iter(value)) if _length(value) == 1 else value
    except Exception:  # as above
        return None


def _usual_length(rows: Sequence[Any], declared: int | None) -> int | None:
    """That of most rows; of two as frequent the declared one, or the larger."""
    found = Counter(map(_length, rows))
    most = max(found.values())
    usual = [length for length, times in found.items() if times == most and length is not None]
    return declared if declared in usual else max(usual, default=None)


def _listed(source: Any) -> Any:
    """A container that states no type for its records (a deque, say) as a list: NumPy would find one for all of them."""
    typed = any(hasattr(source, name) for name in ("__array__", "__array_interface__", "tocsr"))
    if typed or isinstance(source, (list, tuple, str, bytes, bytearray, memoryview, Mapping, Set)):
        return source
    return list(source) if hasattr(source, "__len__") and hasattr(source, "__iter__") else source


# --- X ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Table:
    """X as it was handed over: the number of its columns is known, its values are unread."""

    source: Any
    columns: int

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return f"Table({self.columns} columns)"

    def read(self) -> NDArray[np.float64]:
        """The values as floats."""
        source = self.source
        if _framed(source):
            return np.stack([_floats(series) for series in _series(source)], axis=1)
        if isinstance(source, np.ndarray) and source.dtype != object:
            with np.errstate(all="ignore"):
                return np.asarray(source, np.float64)
        return np.array([_row(row, self.columns) for row in source], np.float64).reshape(-1, self.columns)


def held(estimator: Any, X: Any, *, reset: bool = True, declared: int | None = None) -> Table:
    """X, if its types are numeric and its shape is a table's, by scikit-learn's rules; no value is looked at.

    ``declared`` is the number of columns that something else declares, for a list that is empty.
    """
    source = X if _framed(X) else _listed(X)
    if not (_framed(source) or hasattr(source, "tocsr") or isinstance(source, (list, tuple))):
        source = np.asarray(source)
    try:
        blank = validate_data(estimator, _blank(source, declared), reset=reset, dtype=np.float64, ensure_all_finite=False,
                              ensure_min_samples=0)
    except (TypeError, ValueError) as error:  # their first line tells the kind; arrays are quoted below it
        first = str(error).split("\n", 1)[0].rstrip(":")
        advice = ". Reshape your data to one row a record." if first.startswith("Expected 2D") else ""
        raise type(error)(f"{first}{advice}") from None
    return Table(source, blank.shape[1])


def table(estimator: Any, X: Any, *, reset: bool) -> NDArray[np.float64]:
    """X as floats, in one go."""
    found = held(estimator, X, reset=reset)
    if not reset and not len(found):
        raise ValueError("Found array with 0 sample(s), but there must be at least one to predict for.")
    return found.read()


def _blank(source: Any, declared: int | None) -> Any:
    """A table of the same columns without rows, for checks that look at no value."""
    if _framed(source):
        for name, kind in zip(_names(source), _kinds(source), strict=True):
            if kind_of(kind) != "numbers":
                raise ValueError(_REFUSED.format(what=f"the column {name!r} of type {kind}"))
        return source.iloc[:0] if hasattr(source, "iloc") else source.slice(0, 0)
    if isinstance(source, (list, tuple)):
        columns = _usual_length(source, declared) if source else declared
        if columns is None and not source:
            raise ValueError("X is a list without rows, so that nothing says how many columns it has. Hand over an array of "
                             "shape (0, columns).")
        return np.empty(0 if columns is None else (0, columns))
    if not isinstance(source, np.ndarray):
        return source  # sparse: refused by scikit-learn, by name
    if source.dtype.kind not in "biufcO":
        raise ValueError(_REFUSED.format(what=f"type {source.dtype.type.__name__}"))
    kind = np.complex128 if source.dtype.kind == "c" else np.float64
    return np.empty((0, *source.shape[1:]), kind) if source.ndim else np.float64(0)


# --- frames ----------------------------------------------------------------------------------------------------------


def _framed(X: Any) -> bool:
    """Whether it is a frame: of pandas or polars, or a table of Arrow."""
    return (hasattr(X, "dtypes") and hasattr(X, "columns")) or (hasattr(X, "schema") and hasattr(X, "column_names"))


def _names(frame: Any) -> list[Any]:
    return list(frame.columns if hasattr(frame, "dtypes") else frame.column_names)


def _kinds(frame: Any) -> list[Any]:
    return list(frame.dtypes if hasattr(frame, "dtypes") else frame.schema.types)


def _series(frame: Any) -> list[Any]:
    if hasattr(frame, "iloc"):
        return [frame.iloc[:, i] for i in range(frame.shape[1])]
    return list(frame.iter_columns() if hasattr(frame, "iter_columns") else frame.itercolumns())


def _floats(series: Any) -> NDArray[np.float64]:
    """A column of numbers; what is missing is NaN."""
    values = np.asarray(series)
    if values.dtype == object:  # it has missing entries
        return np.array([entry(value) for value in values], np.float64)
    with np.errstate(all="ignore"):
        return values.astype(np.float64)


def kind_of(kind: Any) -> str:
    """What a type holds: "numbers", "text", "objects", or another type's name. For NumPy, pandas, polars and Arrow.

    >>> kind_of(np.dtype(bool)), kind_of(np.dtype("U3")), kind_of(np.dtype("M8[D]"))
    ('numbers', 'text', 'dates')
    """
    name, letter = str(kind), getattr(kind, "kind", "")
    if hasattr(kind, "is_numeric"):  # polars
        return "numbers" if kind.is_numeric() else _POLARS.get(name.split("(")[0], name)
    if name == "category":
        return kind_of(kind.categories.dtype)
    if letter in _LETTERS or _NUMBER.match(name):
        return _LETTERS.get(letter, "numbers")
    return "text" if "str" in name else "objects" if name == "object" else name


# --- y ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Column:
    """y as it was handed over: what it holds is known (``kind_of``), its values are unread."""

    source: Any
    kind: str

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return f"Column({self.kind})"

    def read(self) -> NDArray[Any]:
        """The values, as they are: an array of a NumPy type, or of objects, where a missing one changes no other's type."""
        source = self.source
        if isinstance(getattr(source, "dtype", None), np.dtype):
            return np.asarray(source)
        listing = getattr(source, "to_pylist", getattr(source, "to_list", None))  # of Arrow; of pandas and polars
        listed = source if listing is None else listing()
        values = np.empty(len(listed), object)
        for i, value in enumerate(listed):  # one at a time: a list of lists is no table here
            values[i] = _only(value)
        return values

    def floats(self) -> NDArray[np.float64]:
        """The values as numbers, NaN for what is none."""
        return _floats(self.read() if isinstance(self.source, (list, tuple)) else self.source)


def column(y: Any, rows: int) -> Column:
    """y, if it has one entry a record; no value is looked at."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    found = y if isinstance(y, Column) else _column(y)
    if len(found) != rows:
        raise ValueError("X and y have inconsistent numbers of samples.")
    if rows > MOST:
        raise ValueError("X has more records than sums of them are proved for, 2^29.")
    return found


def _column(y: Any) -> Column:
    y = _listed(y)
    if isinstance(y, (list, tuple)):
        return Column(y, "objects")
    kind = getattr(y, "dtype", getattr(y, "type", None))
    if kind is None or isinstance(y, np.ndarray) or not hasattr(y, "__len__"):
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] == 1:
            warnings.warn("A column-vector y was passed when a 1d array was expected.", DataConversionWarning, stacklevel=4)
            y = y[:, 0]
        if y.ndim != 1:
            raise ValueError(f"y has {y.ndim} dimensions, but must have one entry a record.")
        kind = y.dtype
    return Column(y, kind_of(kind))
