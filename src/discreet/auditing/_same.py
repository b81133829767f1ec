"""Are two results the same to whoever sees them? Types, order, dtypes, labels and the signs of zeros included."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

__all__ = ["Incomparable", "same"]


class Incomparable(TypeError):
    """Of two results of this type nothing can be said."""


def same(a: Any, b: Any) -> bool:
    """Deep equality in which not-a-number equals itself, -0.0 is not 0.0, and types and orders must agree.

    Numbers, text, containers, arrays, dataclasses, tensors, frames of pandas, polars, pyarrow and what narwhals wraps;
    other objects by what they hold. What has an equality of its own that gives no yes or no is ``Incomparable``.

    >>> same({"a": [1.0, math.nan]}, {"a": [1.0, math.nan]}), same([0.0], [-0.0]), same([1], [True])
    (True, False, False)
    """
    return _same(a, b, set())


def _same(a: Any, b: Any, compared: set[tuple[int, int]]) -> bool:
    """``compared`` are the pairs of objects, by their addresses, inside which this comparison stands."""
    if type(a) is not type(b):
        return False
    if a is b or (id(a), id(b)) in compared:  # the second: an object that holds itself
        return True
    if isinstance(a, float):
        return math.copysign(1, a) == math.copysign(1, b) if a == b else a != a and b != b
    if isinstance(a, complex):
        return _same((a.real, a.imag), (b.real, b.imag), compared)
    if isinstance(a, (str, bytes, int, type(None), np.generic)):
        return bool(a == b or (a != a and b != b)) and repr(a) == repr(b)
    if isinstance(a, np.ndarray) and a.dtype == b.dtype != object and a.shape == b.shape and a.tobytes() == b.tobytes():
        return True  # a short cut for what is large
    compared = compared | {(id(a), id(b))}
    parts, others = _parts(a), _parts(b)
    if parts is None or others is None:
        return _equal(a, b)
    return len(parts) == len(others) and all(_same(x, y, compared) for x, y in zip(parts, others, strict=True))


def _parts(whole: Any) -> list[Any] | None:
    """What can be seen of a value, in an order of its own; none if it is not made of parts."""
    if isinstance(whole, np.ndarray):
        return [whole.shape, str(whole.dtype), *whole.reshape(-1).tolist()]
    if isinstance(whole, Mapping):
        return [part for item in whole.items() for part in item]
    if isinstance(whole, (list, tuple, set, frozenset)):
        return list(whole)
    if dataclasses.is_dataclass(whole):
        return [getattr(whole, field.name) for field in dataclasses.fields(whole)]
    library = type(whole).__module__.split(".")[0]
    if library in _LIBRARIES and (parts := _LIBRARIES[library](whole)) is not None:
        return parts
    kind: Any = type(whole)
    if kind.__eq__ is object.__eq__ and hasattr(whole, "__dict__"):
        return [part for item in vars(whole).items() for part in item]
    return None


# --- columns, types, index and values of a frame, a series or a tensor, by the library that its class is from ---------


def _parts_of_pandas(x: Any) -> list[Any] | None:
    if type(x).__name__ == "DataFrame":
        return [x.index, x.columns, *(x.iloc[:, place] for place in range(x.shape[1]))]
    if type(x).__name__ == "Series":
        return [*_dtype(x), x.name, x.index, x.array.tolist()]
    if not hasattr(x, "dtype"):
        return None
    if hasattr(x, "names"):  # an index
        return [*_dtype(x), list(x.names), x.tolist()]
    return [*_dtype(x), x.tolist()] if hasattr(x, "tolist") else None


def _parts_of_polars(x: Any) -> list[Any] | None:
    if type(x).__name__ == "DataFrame":
        return list(x.get_columns())
    return [x.name, str(x.dtype), x.to_list()] if type(x).__name__ == "Series" else None


def _parts_of_arrow(x: Any) -> list[Any] | None:
    if hasattr(x, "schema") and hasattr(x, "to_pydict"):
        return [str(x.schema), x.schema.metadata, [column.to_pylist() for column in x.columns]]
    return [str(x.type), x.to_pylist()] if hasattr(x, "to_pylist") else None


def _parts_of_torch(x: Any) -> list[Any] | None:
    if not hasattr(x, "detach"):
        return None
    return [str(x.dtype), tuple(x.shape), str(x.device), x.detach().cpu().reshape(-1).tolist()]


def _parts_of_narwhals(x: Any) -> list[Any] | None:
    return [x.to_native()] if hasattr(x, "to_native") else None


_LIBRARIES: dict[str, Callable[[Any], list[Any] | None]] = {
    "pandas": _parts_of_pandas,
    "polars": _parts_of_polars,
    "pyarrow": _parts_of_arrow,
    "torch": _parts_of_torch,
    "narwhals": _parts_of_narwhals,
}


def _dtype(x: Any) -> list[Any]:
    """The type's name, and the categories that it may list."""
    categories = getattr(x.dtype, "categories", None)
    return [str(x.dtype), categories if categories is None else list(categories)]


def _equal(a: Any, b: Any) -> bool:
    """What their own equality says, if it says yes or no."""
    try:
        return bool(a == b) or bool(a != a and b != b)
    except Exception as error:  # an equality that gives an array, a query plan, an error: no answer
        raise Incomparable(type(a).__name__) from error
