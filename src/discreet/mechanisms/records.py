"""How records are read: each by itself, so that one record can change nothing but its own contribution.

A NumPy array of numbers is read as it is, integers exactly. Anything else (a list, an array of objects) is read entry
by entry as doubles, because NumPy would choose one type for all entries and so round one record because of another.
Whatever is not a real number (NaN, ``None``, text in a list, a complex number, a list) is *missing*, that is NaN. An
infinity is a number beyond every bound. Only shape and type of an array are looked at before that, and only they can
raise an error (``check_column`` and ``check_rows`` do so before a charge); none can raise a warning. A container whose
*type* is publicly wrong (a frame for a column, text for numbers) is refused, because an answer from nothing but
missing records would look like one.

Decisions 95 and 251.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Set
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import extra

__all__ = [
    "REAL",
    "beyond",
    "check_column",
    "check_container",
    "check_line",
    "check_readable",
    "check_rows",
    "check_size",
    "check_unnamed",
    "column",
    "double",
    "doubles",
    "element_type",
    "entries",
    "has_named_columns",
    "holds_numbers",
    "is_fractional",
    "quiet_doubles",
    "readable",
    "row",
    "row_length",
    "rows",
]

REAL = (int, np.bool_, np.integer, float, np.floating, Decimal, Fraction)
_FRACTIONAL = ("float", "double", "half", "decimal", "bfloat")


def check_container(values: Any, name: str = "values") -> None:
    """Refuse what is publicly no sequence of records: text, a mapping, a frame of named columns, a sparse matrix."""
    kind = type(values).__name__
    if isinstance(values, (str, bytes, bytearray, Mapping, Set)) or not isinstance(values, Iterable):
        raise ValueError(f"{name} is a {kind}, but must be a sequence with one entry for each record.")
    check_unnamed(values, name)
    check_readable(values, name)


def check_unnamed(values: Any, name: str) -> None:
    """Refuse a frame, a table or a relation: a loop would read the names of its columns."""
    if has_named_columns(values):
        kind = type(values).__name__
        raise ValueError(f"{name} is a {kind}, which has named columns: give one of them, or an array (to_numpy()).")


def has_named_columns(values: Any) -> bool:
    """Whether it is a frame, a table or a relation. Its class is asked: a lazy frame would begin to plan."""
    return any(hasattr(type(values), name) for name in ("columns", "column_names"))


def check_readable(values: Any, name: str) -> None:
    """Refuse what holds its numbers in a way that no loop reads: a sparse matrix, a tensor without values."""
    layout = str(getattr(values, "layout", "torch.strided"))
    if hasattr(values, "tocsr") or (layout.startswith("torch.") and layout != "torch.strided"):
        raise ValueError(f"{name} is sparse, but must be an array: give toarray() of a matrix, to_dense() of a tensor.")
    if getattr(values, "is_meta", False) is True:
        raise ValueError(f"{name} is a tensor on the device 'meta', but must hold values: move it to another.")


def check_line(values: Any, name: str = "values") -> None:
    """Refuse, by type and shape alone, what is no sequence with one entry per record."""
    check_container(values, name)
    if (dimensions := getattr(values, "ndim", 1)) != 1:
        raise ValueError(f"{name} has {dimensions} dimensions, but must have one: an entry for each record.")


def check_column(values: Any, name: str = "values") -> None:
    """Refuse, by type and shape alone, what is no column of numbers."""
    check_line(values, name)
    _check_type(values, name)


def _check_type(values: Any, name: str) -> None:
    if not holds_numbers(values):
        raise ValueError(
            f"{name} has dtype {element_type(values)}, but must hold numbers: integers or floats of at most 64 bits."
        )


def check_rows(values: Any, dimension: int) -> None:
    """Refuse, by type and shape alone, what are no rows of ``dimension`` numbers."""
    check_container(values)
    _check_type(values, "values")
    shape = getattr(values, "shape", None)
    if (
        shape is not None
        and tuple(shape[1:]) != (dimension,)
        and not (len(shape) == 1 and str(element_type(values)) == "object")
    ):
        raise ValueError(f"values must have shape (records, {dimension}), as declared by the public dimension.")


def check_size(values: Any, n: int | None) -> None:
    """Refuse a number of records that is not the public one, and what cannot tell it before it is read."""
    if n is None:
        return
    if not hasattr(values, "__len__"):
        raise ValueError(
            f"values is a {type(values).__name__}, which has no length, but n={n} was declared: give a list."
        )
    if len(values) != n:
        raise ValueError(f"values has {len(values)} records, but n={n} was declared.")


def element_type(values: Any) -> Any:
    """The type that a container states for all of its records; none for a list."""
    return getattr(values, "dtype", getattr(values, "type", None))


def _type_name(values: Any) -> str:
    return str(element_type(values)).removeprefix("torch.")


def is_fractional(values: Any) -> bool:
    """Whether a container states a type of fractions; pandas states none: a missing entry makes doubles of all."""
    kind = element_type(values)
    if isinstance(kind, np.dtype) and not isinstance(values, np.ndarray):
        return False
    return _type_name(values).lower().startswith(_FRACTIONAL)


def holds_numbers(values: Any) -> bool:
    """Whether a container's stated type is one of numbers, or states nothing (a list, objects)."""
    kind = element_type(values)
    if kind is None or isinstance(kind, np.dtype):
        return kind is None or (kind.kind in "fiu" and kind.itemsize <= 8) or kind.kind in "bO"
    if hasattr(kind, "is_numeric"):  # polars
        return bool(kind.is_numeric()) or str(kind) in ("Boolean", "Object", "Null")
    if hasattr(kind, "_is_numeric"):  # pandas' own types and Arrow's in pandas
        return bool(kind._is_numeric or kind._is_boolean)
    return _type_name(values).startswith(("int", "uint", *_FRACTIONAL, "bool", "null"))  # Arrow, torch


def column(values: Any) -> NDArray[Any]:
    """One-dimensional numbers: booleans, integers or floats of at most 64 bits."""
    check_column(values)
    array = _plain(values)
    return doubles(values) if array is None else array


def rows(values: Any, dimension: int) -> NDArray[np.float64]:
    """Doubles of shape (records, dimension)."""
    check_rows(values, dimension)
    array = _plain(values)
    if array is not None:
        return quiet_doubles(array)
    return np.array([row(x, dimension) for x in entries(values)], np.float64).reshape(-1, dimension)


def _plain(values: Any) -> NDArray[Any] | None:
    """An array of numbers as it is; none for what is read entry by entry."""
    values = readable(values)
    if not isinstance(getattr(values, "dtype", None), np.dtype) or values.dtype == object:
        return None
    array = np.asarray(values)
    if array.dtype.kind == "f" or not isinstance(values, np.ndarray):  # in pandas a missing entry makes doubles of all
        return quiet_doubles(array)
    return array.astype(np.uint8) if array.dtype.kind == "b" else array


def doubles(values: Any, read: Callable[[Any], float] | None = None) -> NDArray[np.float64]:
    """Entries as doubles: those of a container of numbers as it has them, others one by one, by ``double`` or ``read``.

    >>> doubles(np.array([1, 2])).tolist(), doubles(["3", None, 4], read=lambda x: float(x or 0)).tolist()
    ([1.0, 2.0], [3.0, 0.0, 4.0])
    """
    plain, kind = readable(values), element_type(values)
    wide = "128" in str(kind)  # of polars, for which NumPy has no type
    if isinstance(kind, np.dtype) or (kind is not None and holds_numbers(plain) and not wide):
        array = np.asarray(plain)
        if array.dtype.kind in "biuf":
            return quiet_doubles(array)
    return np.array(list(map(read or double, entries(values))), np.float64)


def quiet_doubles(array: NDArray[Any]) -> NDArray[np.float64]:
    """Numbers as doubles, with one NaN for all: NumPy would warn of a signalling one, wherever it is used."""
    with np.errstate(all="ignore"):
        doubles = array.astype(np.float64)
    doubles[np.isnan(doubles)] = np.nan
    return doubles


def entries(values: Any) -> Iterable[Any]:
    """The records of a container, as Python's objects where it has some of its own; bytes of Arrow's text that are no
    UTF-8 are question marks, as in tables, and what Python cannot hold (a date in the year 20000) is missing.
    """
    values = _of_arrow(readable(values))
    if not hasattr(values, "to_pylist"):
        return values.to_list() if hasattr(values, "to_list") else values  # type: ignore[no-any-return]
    if (kind := str(values.type)).startswith("dictionary"):
        values, kind = values.cast(values.type.value_type), str(values.type.value_type)
    if kind in ("string", "large_string", "string_view"):
        return [_decode(entry) for entry in values.cast("large_string").cast("large_binary").to_pylist()]
    try:
        return values.to_pylist()  # type: ignore[no-any-return]
    except Exception:  # of one of them, whose own matter it is
        return list(map(_as_python, values))


def _of_arrow(values: Any) -> Any:
    """A column as Arrow holds it, where one entry could make the list of all fail: polars panics on a date that Python
    cannot hold, and pandas raises what Arrow does.
    """
    kind = element_type(values)
    if hasattr(kind, "is_temporal") and (kind.is_temporal() or kind.is_nested()):
        with extra("tables"):
            return values.to_arrow()
    if hasattr(kind, "pyarrow_dtype") or getattr(kind, "storage", "") == "pyarrow":
        return values.array.__arrow_array__()
    return values


def _as_python(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except Exception:  # see ``entries``
        return None


def readable(values: Any) -> Any:
    """A container of one's own as one that a loop reads: tensors and memory views as arrays, what is masked as none."""
    if isinstance(values, np.ma.MaskedArray):
        return values.tolist()
    if isinstance(values, memoryview):
        return np.asarray(values)
    if not hasattr(values, "detach"):
        return values
    tensor = values.detach().cpu()
    return (tensor.double() if tensor.is_floating_point() else tensor).numpy()


def _decode(entry: bytes | None) -> str | None:
    if entry is None:
        return None
    try:
        return entry.decode()
    except UnicodeDecodeError:  # its own record's matter
        return entry.decode(errors="replace").replace("\ufffd", "?")


def double(x: Any) -> float:
    """One record as a double; NaN if it is not a real number.

    >>> double(Decimal("0.5")), double(10**400), double("0.5"), double(1 + 0j), double(np.array(2))
    (0.5, inf, nan, nan, 2.0)
    """
    kind = type(x)
    if kind is float:
        return float(x) if x == x else math.nan  # a signalling one would warn
    try:
        if issubclass(kind, REAL) and not issubclass(kind, np.timedelta64):
            near = float(x)
            return near if near == near else math.nan
        # An array or tensor of no dimensions holds one number. Whatever else has a __float__ may warn from there.
        return double(x.item()) if getattr(x, "shape", None) == () and not issubclass(kind, np.generic) else math.nan
    except OverflowError:
        return beyond(x)
    except Exception:  # a signalling NaN, or an object that fails at whatever is done with it
        return math.nan


def beyond(x: Any) -> float:
    """The infinity on the side of a number that no double holds; NaN if it does not even say which."""
    try:
        return math.inf if x > 0 else -math.inf
    except Exception:  # as above
        return math.nan


def row_length(x: Any) -> int | None:
    """How many entries a record has that is a row; none for what has no first, second and last."""
    try:
        rowlike = not isinstance(x, (str, bytes, bytearray, Mapping, Set)) and hasattr(x, "__iter__")
        return len(x) if rowlike else None
    except Exception:  # an array without dimensions; an object may do anything when it is looked at
        return None


def row(x: Any, dimension: int) -> list[float]:
    """One record that is a row of so many numbers; all of them missing if it is none.

    >>> row((1, "a"), 2), row([1], 2), row({1, 2}, 2)
    ([1.0, nan], [nan, nan], [nan, nan])
    """
    try:
        numbers = [double(entry) for entry in x] if row_length(x) == dimension else []
    except Exception:  # it may do anything when it is read, and that is its own record's matter
        numbers = []
    return numbers if len(numbers) == dimension else [math.nan] * dimension
