"""How records are read: each by itself, so that one record can change nothing but its own contribution.

A NumPy array of numbers is read as it is, integers exactly. Anything else (a list, an array of objects) is read entry
by entry as doubles, because NumPy would choose one type for all entries and so round one record because of another.
Whatever is not a real number (NaN, ``None``, text in a list, a complex number, a list) is *missing*, that is NaN. An
infinity is a number beyond every bound. Only shape and type of an array are looked at before that, and only they can
raise an error (``check_column`` and ``check_rows`` do so before a charge); none can raise a warning. A container whose
*type* is publicly wrong (a frame for a column, text for numbers) is refused, because an answer from nothing but
missing records would look like one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "check_column",
    "check_container",
    "check_numbers",
    "check_rows",
    "check_size",
    "column",
    "double",
    "element_type",
    "entries",
    "holds_numbers",
    "numbers",
    "rows",
]

_WHOLE = (int, np.bool_, np.integer)
_REAL = (*_WHOLE, float, np.floating, Decimal, Fraction)
_FRACTIONAL = ("float", "double", "half", "decimal")


def numbers(value: Any) -> NDArray[Any]:
    """What is to be noised or scored, as an array; one that is not of a single type keeps its entries, as objects.

    NumPy would make one type of them, and 2^60 + 1 beside 0.5 a double: one entry would round another.

    >>> numbers([1, 2]).dtype, numbers([0.5, 1.5]).dtype, numbers([2**60 + 1, 0.5]).tolist()
    (dtype('int64'), dtype('float64'), [1152921504606846977, 0.5])
    """
    if isinstance(getattr(value, "dtype", None), np.dtype):
        return np.asarray(value)
    array = np.asarray(value, dtype=object)
    kinds = {type(x) for x in array.flat}
    if kinds <= {float, np.float64}:
        return array.astype(np.float64)
    if kinds == {int} and all(abs(x) < 1 << 63 for x in array.flat):
        return array.astype(np.int64)
    return array


def check_container(values: Any) -> None:
    """Refuse what is publicly no sequence of records: one text, a mapping, a frame of named columns."""
    kind = type(values).__name__
    if isinstance(values, (str, bytes, Mapping, Set)) or not isinstance(values, Iterable):
        raise ValueError(f"values is a {kind}, but must be a sequence with one entry for each record.")
    if hasattr(values, "columns") or hasattr(values, "column_names"):
        raise ValueError(f"values is a {kind}, which has named columns: give one of them, or an array (to_numpy()).")


def check_column(values: Any) -> None:
    """Refuse, by type and shape alone, what is no column of numbers."""
    check_container(values)
    if not holds_numbers(values):
        raise ValueError(
            f"values has dtype {element_type(values)}, but must hold numbers: integers or floats of at most 64 bits."
        )
    if (dimensions := getattr(values, "ndim", 1)) != 1:
        raise ValueError(f"values has {dimensions} dimensions, but must have one: a number for each record.")


def check_rows(values: Any, dimension: int) -> None:
    """Refuse, by type and shape alone, what are no rows of ``dimension`` numbers."""
    check_container(values)
    if not holds_numbers(values):
        raise ValueError(
            f"values has dtype {element_type(values)}, but must hold numbers: integers or floats of at most 64 bits."
        )
    shape = getattr(values, "shape", None)
    if (
        shape is not None
        and shape[1:] != (dimension,)
        and not (len(shape) == 1 and str(element_type(values)) == "object")
    ):
        raise ValueError(f"values must have shape (records, {dimension}), as declared by the public dimension.")


def check_numbers(value: Any, name: str = "value", *, whole: bool = False) -> tuple[int, ...]:
    """The shape of what is to be noised or scored: one real number, or an array or (nested) list of them.

    Refuses, by types and shapes alone, what is none: text, a mapping, a frame, an iterator, a ragged list, an array of
    another type; with ``whole``, floats too. What an entry of a list is, is not looked at, but for lists in lists.

    >>> check_numbers(3.0), check_numbers([[1, 2], [3, 4]])
    ((), (2, 2))
    """
    problem = "whole numbers, of an integer dtype" if whole else "finite real numbers of at most 64 bits"
    if isinstance(value, (Real, *_REAL)) and not isinstance(value, np.timedelta64):
        if whole and not isinstance(value, _WHOLE):
            raise ValueError(f"{name} is a {type(value).__name__}, but must be {problem}: round it before.")
        return ()
    if getattr(value, "shape", None) != ():
        _check_listing(value, name, problem)
    if not holds_numbers(value) or (whole and _stated(value).lower().startswith(_FRACTIONAL)):
        raise ValueError(f"{name} has dtype {element_type(value)}, but must be {problem}.")
    return _shape(value, name)


def _check_listing(value: Any, name: str, problem: str) -> None:
    """Refuse what NumPy would not read entry by entry."""
    if isinstance(value, (str, bytes)) or not (isinstance(value, Sequence) or hasattr(value, "__array__")):
        raise ValueError(f"{name} is a {type(value).__name__}, but must be {problem}: one, or a list or array of them.")
    check_container(value)


def _shape(value: Any, name: str) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)):
        return tuple(value.shape) if hasattr(value, "shape") else (len(value),)
    inner = {_shape(x, name) if isinstance(x, (list, tuple)) else tuple(getattr(x, "shape", ())) for x in value}
    if len(inner) > 1:
        raise ValueError(f"{name} is a list whose entries have different shapes, but must be rectangular.")
    return (len(value), *next(iter(inner), ()))


def check_size(values: Any, n: int | None) -> None:
    """Refuse a number of records that is not the public one."""
    if n is not None and hasattr(values, "__len__") and len(values) != n:
        raise ValueError(f"values has {len(values)} records, but n={n} was declared.")


def element_type(values: Any) -> Any:
    """The type that a container states for all of its records; none for a list."""
    return getattr(values, "dtype", getattr(values, "type", None))


def _stated(values: Any) -> str:
    return str(element_type(values)).removeprefix("torch.")


def holds_numbers(values: Any) -> bool:
    """Whether a container's stated type is one of numbers, or states nothing (a list, objects)."""
    kind = element_type(values)
    if kind is None or isinstance(kind, np.dtype):
        return kind is None or (kind.kind in "fiu" and kind.itemsize <= 8) or kind.kind in "bO"
    if hasattr(kind, "is_numeric"):  # polars
        return bool(kind.is_numeric()) or str(kind) in ("Boolean", "Object", "Null")
    if hasattr(kind, "_is_numeric"):  # pandas' own types and Arrow's in pandas
        return bool(kind._is_numeric or kind._is_boolean)
    return _stated(values).startswith(("int", "uint", *_FRACTIONAL, "bool", "null"))  # Arrow, torch


def column(values: Any) -> NDArray[Any]:
    """One-dimensional numbers: booleans, integers or floats of at most 64 bits."""
    check_column(values)
    array = _plain(values)
    return array if array is not None else np.array([double(x) for x in entries(values)], np.float64)


def rows(values: Any, dimension: int) -> NDArray[np.float64]:
    """Doubles of shape (records, dimension)."""
    check_rows(values, dimension)
    array = _plain(values)
    if array is not None:
        return array.astype(np.float64)
    return np.array([_row(x, dimension) for x in entries(values)], np.float64).reshape(-1, dimension)


def _plain(values: Any) -> NDArray[Any] | None:
    """An array of numbers as it is; none for what is read entry by entry."""
    if not isinstance(getattr(values, "dtype", None), np.dtype) or values.dtype == object:
        return None
    array = np.asarray(values)
    if not isinstance(values, np.ndarray):  # of pandas, where one missing entry makes doubles of all
        return array.astype(np.float64)
    return array.astype(np.uint8) if array.dtype.kind == "b" else array


def entries(values: Any) -> Iterable[Any]:
    """The records of a container, as Python's objects where it has some of its own; bytes of Arrow's text that are no
    UTF-8 are question marks, as in tables.
    """
    if not hasattr(values, "to_pylist"):
        return values  # type: ignore[no-any-return]
    if str(values.type) in ("string", "large_string"):
        return [_decoded(entry) for entry in values.cast("large_binary").to_pylist()]
    return values.to_pylist()  # type: ignore[no-any-return]


def _decoded(entry: bytes | None) -> str | None:
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
        return float(x)
    try:
        if issubclass(kind, _REAL) and not issubclass(kind, np.timedelta64):
            return float(x)
        # An array or tensor of no dimensions holds one number. Whatever else has a __float__ may warn from there.
        return double(x.item()) if getattr(x, "shape", None) == () and not issubclass(kind, np.generic) else math.nan
    except OverflowError:
        return math.inf if x > 0 else -math.inf
    except Exception:  # a signalling NaN, or an object that fails at whatever is done with it
        return math.nan


def _row(x: Any, dimension: int) -> list[float]:
    try:
        entries = [double(entry) for entry in x] if not isinstance(x, (str, bytes, Mapping)) else []
    except Exception:  # not a row of anything
        entries = []
    return entries if len(entries) == dimension else [math.nan] * dimension
