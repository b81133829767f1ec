"""Frames as they were given: the kind of a container is public, and synthetic records come back in the same kind."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np

from discreet.errors import choice, extra

__all__ = ["Kind", "as_frame", "kind_of_frame"]

Kind: TypeAlias = Literal["pandas", "polars", "pyarrow", "columns"]
_KINDS: dict[str, Kind] = {"pandas": "pandas", "pyarrow": "pyarrow"}


def kind_of_frame(data: Any) -> Kind:
    """What ``as_frame`` gives back for such data: polars for a file, and for anything that is neither of the others.

    >>> kind_of_frame({"a": [1]}), kind_of_frame("people.csv")
    ('columns', 'polars')
    """
    if isinstance(data, Mapping):
        return "columns"
    if isinstance(data, (str, os.PathLike)):
        return "polars"
    return _KINDS.get(type(data).__module__.split(".")[0], "polars")


def as_frame(kind: Kind, columns: Mapping[str, Any], whole: Collection[str] = (), dates: Collection[str] = ()) -> Any:
    """Columns as a frame, those of whole numbers and of days with types of their own; a NaN, which stands for a missing
    number, is a null where the library has one.

    >>> as_frame("columns", {"age": np.array([30.0, 41.0])}, whole=["age"])
    {'age': array([30, 41])}
    """
    if kind == "columns":
        return {name: _plain_whole(values) if name in whole else values for name, values in columns.items()}
    if kind == "pandas":
        with extra("synthesis"):
            import pandas as pd
        types = {name: "Int64" if np.isnan(columns[name]).any() else "int64" for name in whole}
        return pd.DataFrame(dict(columns)).astype(types | dict.fromkeys(dates, "datetime64[s]"))
    finishes: dict[str, Callable[[Any], Any]] = {
        "polars": lambda frame: frame,
        "pyarrow": lambda frame: frame.to_arrow(),
    }
    finish = choice("kind", kind, finishes)
    with extra("synthesis"):
        import polars as pl
    plain = {n: v.tolist() if v.dtype == object else np.ascontiguousarray(v) for n, v in columns.items()}
    text = {name: pl.String for name, values in columns.items() if values.dtype == object}
    frame = pl.DataFrame(plain, schema_overrides=text).fill_nan(None)
    frame = frame.with_columns(pl.col(list(whole)).cast(pl.Int64), pl.col(list(dates)).str.to_date())
    return finish(frame)


def _plain_whole(values: Any) -> Any:
    """Whole numbers as such; where one is missing, as doubles, which have a NaN."""
    return values if np.isnan(values).any() else values.astype(np.int64)
