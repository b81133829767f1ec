"""How records are read: each by itself, so that one record can change nothing but its own contribution.

A NumPy array of numbers is read as it is, integers exactly. Anything else (a list, an array of objects) is read entry
by entry as doubles, because NumPy would choose one type for all entries and so round one record because of another.
Whatever is not a number (NaN, ``None``, text in a list) is *missing*. An infinity is a number beyond every bound.
Only shape and type are looked at before that, and only they can raise an error: ``check_column`` and ``check_rows`` do so
before a charge. A container whose *type* is publicly wrong (a frame for a column, text for numbers) is refused, because an
answer from nothing but missing records would look like one.
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

from discreet.errors import number
from discreet.random import exact_sum

__all__ = ["BITS", "Bounds", "check_bounds", "check_column", "check_container", "check_rows", "check_size", "column",
           "element_type", "entries", "exact_total", "holds_numbers", "positions", "present", "rows"]

Bounds = tuple[float, float]

BITS = 30  # of a record's place between its bounds: squares and products of two such numbers fit in 64 bits
_WIDEST = 2.0**900  # so that differences and scales stay inside the range of doubles


def check_bounds(bounds: object, name: str = "bounds") -> Bounds:
    """Public bounds as two doubles, the lower first.

    >>> check_bounds((0, 200_000))
    (0.0, 200000.0)
    """
    if not isinstance(bounds, Sequence) or isinstance(bounds, (str, bytes)) or len(bounds) != 2:
        raise ValueError(f"{name} is {bounds!r}, but must be a pair (low, high) of public numbers.")
    low, high = (number(name, end, low=-_WIDEST, high=_WIDEST) for end in bounds)
    if Fraction(low) != bounds[0] or Fraction(high) != bounds[1]:
        raise ValueError(f"{name} is {tuple(bounds)!r}, but both ends must be doubles exactly: {(low, high)!r} would do.")
    if not high - low >= 1 / _WIDEST:
        raise ValueError(f"{name} is {tuple(bounds)!r}, but the lower end must come first and differ from the upper.")
    return low + 0.0, high + 0.0


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
        raise ValueError(f"values has dtype {element_type(values)}, but must hold integers or floats of at most 64 bits.")
    if (dimensions := getattr(values, "ndim", 1)) != 1:
        raise ValueError(f"values has {dimensions} dimensions, but must have one: a number for each record.")


def check_rows(values: Any, dimension: int) -> None:
    """Refuse, by type and shape alone, what are no rows of ``dimension`` numbers."""
    check_container(values)
    if not holds_numbers(values):
        raise ValueError(f"values has dtype {element_type(values)}, but must hold integers or floats of at most 64 bits.")
    shape = getattr(values, "shape", None)
    if shape is not None and shape[1:] != (dimension,) and not (len(shape) == 1 and str(element_type(values)) == "object"):
        raise ValueError(f"values must have shape (records, {dimension}), as declared by the public dimension.")


def check_size(values: Any, n: int | None) -> None:
    """Refuse a number of records that is not the public one."""
    if n is not None and hasattr(values, "__len__") and len(values) != n:
        raise ValueError(f"values has {len(values)} records, but n={n} was declared.")


def element_type(values: Any) -> Any:
    """The type that a container states for all of its records; none for a list."""
    return getattr(values, "dtype", getattr(values, "type", None))


def holds_numbers(values: Any) -> bool:
    """Whether a container's stated type is one of numbers, or states nothing (a list, objects)."""
    kind = element_type(values)
    if kind is None or isinstance(kind, np.dtype):
        return kind is None or (kind.kind in "fiu" and kind.itemsize <= 8) or kind.kind in "bO"
    if hasattr(kind, "is_numeric"):  # polars
        return bool(kind.is_numeric()) or str(kind) in ("Boolean", "Object", "Null")
    if hasattr(kind, "_is_numeric"):  # pandas' own types and Arrow's in pandas
        return bool(kind._is_numeric or kind._is_boolean)
    return str(kind).startswith(("int", "uint", "half", "float", "double", "decimal", "bool", "null"))  # Arrow


def column(values: Any) -> NDArray[Any]:
    """One-dimensional numbers: booleans, integers or floats of at most 64 bits."""
    check_column(values)
    array = _plain(values)
    return array if array is not None else np.array([_double(x) for x in entries(values)], np.float64)


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
    return array.astype(np.uint8) if array.dtype.kind == "b" else array


def entries(values: Any) -> Iterable[Any]:
    """The records of a container, as Python's objects where it has some of its own."""
    return values.to_pylist() if hasattr(values, "to_pylist") else values  # type: ignore[no-any-return]


def _double(x: Any) -> float:
    if not isinstance(x, (Real, Decimal, np.bool_)):
        return math.nan  # float() would parse text, and warn of an array
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf  # type: ignore[operator]
    except Exception:  # an object may do anything in its __float__
        return math.nan


def _row(x: Any, dimension: int) -> list[float]:
    try:
        entries = [_double(entry) for entry in x] if not isinstance(x, (str, bytes)) else []
    except Exception:  # not a row of anything
        entries = []
    return entries if len(entries) == dimension else [math.nan] * dimension


def present(array: NDArray[Any]) -> NDArray[Any]:
    """The records that are not missing."""
    return array[~np.isnan(array)] if array.dtype.kind == "f" else array


def exact_total(array: NDArray[Any], bounds: Bounds) -> tuple[Fraction, int]:
    """The sum of the present records, each moved to the nearest bound if beyond it, without rounding; and their number."""
    here = present(array)
    if here.dtype.kind == "f":
        return exact_sum(np.clip(here.astype(np.float64), *bounds)), here.size
    least, most = math.ceil(bounds[0]), math.floor(bounds[1])  # an integer is below the bound iff it is below this
    low, high = here < least, here > most
    beyond = int(low.sum()) * Fraction(bounds[0]) + int(high.sum()) * Fraction(bounds[1])
    return exact_sum(here[~(low | high)]) + beyond, here.size


def positions(array: NDArray[Any], bounds: Bounds, steps: int = 1 << BITS) -> NDArray[np.int64]:
    """Where each record lies between its bounds, rounded to a whole number of ``steps``-ths; -1 if it is missing."""
    low, high = bounds
    missing = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, bool)
    x = np.clip(np.where(missing, low, array.astype(np.float64)), low, high)
    # Subtraction and division round monotonically, so the quotient stays in [0, 1].
    return np.where(missing, -1, np.rint((x - low) / (high - low) * steps)).astype(np.int64)
