"""Are two results the same to whoever sees them? Types, order, dtypes, labels and the signs of zeros included."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
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


def _same(a: Any, b: Any, seen: set[tuple[int, int]]) -> bool:
    if type(a) is not type(b):
        return False
    if a is b or (id(a), id(b)) in seen:  # the second: an object that holds itself
        return True
    if isinstance(a, float):
        return math.copysign(1, a) == math.copysign(1, b) if a == b else a != a and b != b
    if isinstance(a, complex):
        return _same((a.real, a.imag), (b.real, b.imag), seen)
    if isinstance(a, (str, bytes, int, type(None), np.generic)):
        return bool(a == b or (a != a and b != b)) and repr(a) == repr(b)
    if isinstance(a, np.ndarray) and a.dtype == b.dtype != object and a.shape == b.shape and a.tobytes() == b.tobytes():
        return True
    seen = seen | {(id(a), id(b))}
    mine, yours = _parts(a), _parts(b)
    if mine is None or yours is None:
        return _equal(a, b)
    return len(mine) == len(yours) and all(_same(x, y, seen) for x, y in zip(mine, yours, strict=True))


def _parts(x: Any) -> list[Any] | None:
    """What can be seen of a value, in an order of its own; none if it is not a whole of parts."""
    if isinstance(x, np.ndarray):
        return [x.shape, str(x.dtype), *x.reshape(-1).tolist()]
    if isinstance(x, Mapping):
        return [part for item in x.items() for part in item]
    if isinstance(x, (list, tuple, set, frozenset)):
        return list(x)
    if dataclasses.is_dataclass(x):
        return [getattr(x, f.name) for f in dataclasses.fields(x)]
    if (framed := _frame(x)) is not None:
        return framed
    kind: Any = type(x)
    if kind.__eq__ is object.__eq__ and hasattr(x, "__dict__"):
        return [part for item in vars(x).items() for part in item]
    return None


def _frame(x: Any) -> list[Any] | None:
    """Columns, types, index and values of a frame or series, by the library that its class is from."""
    library, kind = type(x).__module__.split(".")[0], type(x).__name__
    if library == "pandas":
        if kind == "DataFrame":
            return [x.index, x.columns, *(x.iloc[:, i] for i in range(x.shape[1]))]
        if kind == "Series":
            return [*_dtype(x), x.name, x.index, x.array.tolist()]
        if hasattr(x, "names") and hasattr(x, "dtype"):
            return [*_dtype(x), list(x.names), x.tolist()]
        return [*_dtype(x), x.tolist()] if hasattr(x, "dtype") and hasattr(x, "tolist") else None
    if library == "polars":
        if kind == "DataFrame":
            return list(x.get_columns())
        return [x.name, str(x.dtype), x.to_list()] if kind == "Series" else None
    if library == "pyarrow" and hasattr(x, "schema") and hasattr(x, "to_pydict"):
        return [str(x.schema), x.schema.metadata, [column.to_pylist() for column in x.columns]]
    if library == "pyarrow" and hasattr(x, "to_pylist"):
        return [str(x.type), x.to_pylist()]
    if library == "narwhals" and hasattr(x, "to_native"):
        return [x.to_native()]
    if library == "torch" and hasattr(x, "detach"):
        return [str(x.dtype), tuple(x.shape), str(x.device), x.detach().cpu().reshape(-1).tolist()]
    return None


def _dtype(x: Any) -> list[Any]:
    """The type's name, and the categories that it may list."""
    categories = getattr(x.dtype, "categories", None)
    return [str(x.dtype), categories if categories is None else list(categories)]


def _equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b) or bool(a != a and b != b)
    except Exception as error:  # an equality that gives an array, a query plan, an error: no answer
        raise Incomparable(type(a).__name__) from error
