"""An answer's frame as columns of JSON, and back: every type that answers have, and no other."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from discreet.errors import choice, extra

if TYPE_CHECKING:
    import polars as pl

__all__ = ["read_frame", "write_frame"]


def write_frame(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """The columns of a frame, each with its type and values."""
    return [_write_column(frame[name]) for name in frame.columns]


def _write_column(column: pl.Series) -> dict[str, Any]:
    kind = _kind(column.dtype)
    write = _WRITERS[kind]
    values = [None if value is None else write(value) for value in column.to_list()]
    return {"name": column.name, "type": kind, "values": values}


def _kind(dtype: Any) -> str:
    import polars as pl

    if dtype.is_integer():
        return "whole"
    if dtype.base_type() in (pl.List, pl.Array) and dtype.inner.is_integer():
        return "whole list"
    if dtype.is_numeric():  # floats, and decimals, of which JSON has none
        return "number"
    known = {pl.String: "text", pl.Boolean: "truth", pl.Date: "date", pl.Datetime: "time", pl.Null: "nothing",
             pl.List: "list", pl.Array: "list"}  # fmt: skip
    if dtype.base_type() not in known:
        raise ValueError(f"An answer has a column of type {dtype}, which no desk sends.")
    return known[dtype.base_type()]


def _number(value: Any) -> float | str:
    """A double; what JSON has no number for is text."""
    return float(value) if math.isfinite(value) else str(float(value))


_WRITERS: Mapping[str, Callable[[Any], Any]] = {
    "whole": int,
    "number": _number,
    "text": str,
    "truth": bool,
    "date": lambda value: value.isoformat(),
    "time": lambda value: value.isoformat(),
    "nothing": lambda value: None,
    "list": lambda values: [None if value is None else _number(value) for value in values],
    "whole list": list,
}


def read_frame(columns: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """The frame of polars that ``write_frame`` wrote."""
    with extra("tables"):
        import polars as pl
    types: dict[str, Any] = {
        "whole": pl.Int64,
        "number": pl.Float64,
        "text": pl.String,
        "truth": pl.Boolean,
        "date": pl.Date,
        "time": pl.Datetime("us"),
        "nothing": pl.Null,
        "list": pl.List(pl.Float64),
        "whole list": pl.List(pl.Int64),
    }
    readers: dict[str, Callable[[Any], Any]] = {
        "number": float,
        "date": dt.date.fromisoformat,
        "time": dt.datetime.fromisoformat,
        "list": lambda values: [None if value is None else float(value) for value in values],
    }
    series = []
    for column in columns:
        read = readers.get(column["type"], lambda value: value)
        values = [None if value is None else read(value) for value in column["values"]]
        series.append(pl.Series(column["name"], values, dtype=choice("type", column["type"], types)))
    return pl.DataFrame(series)
