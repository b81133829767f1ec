"""Odd entries, rows and labels for linear models, and the containers of X and y that hold them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from searches import _odd
from searches._odd import Failing

__all__ = ["FLOATS", "FREE", "OBJECTS", "ROWS", "TYPED", "WHOLE", "Container"]


FLOATS = [math.nan, -0.0, math.inf, -math.inf, 5e-324, -2.2e-308, 1e-162, 1e308, -1e308, 1e16, 0.1, 1 + 2.0**-52]
WHOLE = [0, 1, -1, 7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
OBJECTS: list[Any] = [
    *_odd.OBJECTS,
    np.complex128(1j),
    set(),
    np.array(1.0),
    np.timedelta64(1, "D"),
    Failing,
    "text",
    "",
    "1",
    "no",
    "٥",
    "é",
    "1_0",
    "nan",
    "\x00",
]
ROWS: list[Any] = [
    None,
    1.0,
    "ab",
    b"\xff\xfe",
    [],
    [1.0],
    [1.0, 2.0, 3.0],
    {1: 2, 3: 4},
    {1.0, 2.0},
    np.array([1, 2]),
    np.zeros((2, 2)),
    np.array(["a", "b"]),
    pd.Series([1.0, 2.0]),
    Failing(),
    (1.0, None),
    [[1.0], [2.0]],
]


def _objects(values: list[Any]) -> Any:
    out = np.empty(len(values), object)
    for i, value in enumerate(values):
        out[i] = value
    return out


def _object_rows(rows: list[Any]) -> Any:
    out = np.empty((len(rows), 2), object)
    for i, row in enumerate(rows):
        out[i, 0], out[i, 1] = row
    return out


def _floats(values: list[Any]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def _framed(
    column: Callable[[list[Any], str], Any], frame: Callable[[dict[str, Any]], Any]
) -> Callable[[list[Any], str], Any]:
    return lambda rows, kind: frame({name: column([row[i] for row in rows], kind) for i, name in enumerate("ab")})


def _nullable(values: list[Any], kind: str) -> Any:
    return pd.array(values, "Int64" if kind == "whole" else "Float64")


def _arrow(values: list[Any], kind: str) -> Any:
    return pa.array(values, pa.int64() if kind == "whole" else pa.float64(), from_pandas=False)


def _arrow_pandas(values: list[Any], kind: str) -> Any:
    return pd.Series(_arrow(values, kind).to_pandas(types_mapper=pd.ArrowDtype))


def _inferred(values: list[Any], kind: str) -> Any:
    """A column whose type pandas infers: one missing entry makes doubles, or objects, of whole numbers.

    Up to 2^53, beyond which pandas then rounds them all.
    """
    known = [max(-(2**53), min(v, 2**53)) if type(v) is int else v for v in values]
    return pd.Series(known, dtype=None if known else object)


def _polars(values: list[Any], kind: str) -> Any:
    return pl.Series(values, dtype=pl.Int64 if kind == "whole" else pl.Float64)


def _list(values: list[Any], kind: str) -> Any:
    return list(values)


Container = Callable[[list[Any], str], Any]
TYPED: dict[str, tuple[Container, Container]] = {  # of X, of y
    "array": (
        lambda rows, kind: np.array([_floats(r) for r in rows], np.float64).reshape(-1, 2),
        lambda y, kind: np.array(_floats(y), np.float64),
    ),
    "pandas": (
        _framed(lambda v, kind: pd.Series(_floats(v), dtype="float64"), pd.DataFrame),
        lambda y, kind: pd.Series(_floats(y), dtype="float64"),
    ),
    "pandas, inferred": (_framed(_inferred, pd.DataFrame), _inferred),
    "nullable": (_framed(_nullable, pd.DataFrame), lambda y, kind: pd.Series(_nullable(y, kind))),
    "Arrow of pandas": (_framed(_arrow_pandas, pd.DataFrame), _arrow_pandas),
    "polars": (_framed(_polars, pl.DataFrame), _polars),
    "pyarrow": (_framed(_arrow, pa.table), _arrow),
}
FREE: dict[str, tuple[Container, Container]] = {
    "list": (_list, _list),
    "tuple": (lambda rows, kind: tuple(rows), lambda y, kind: tuple(y)),
    "objects": (lambda rows, kind: _object_rows(rows), lambda y, kind: _objects(y)),
    "object columns": (
        _framed(lambda v, kind: pd.Series(_objects(v), dtype=object), pd.DataFrame),
        lambda y, kind: pd.Series(_objects(y), dtype=object),
    ),
}
