"""Frames as they were given: the kind of a container is public, and synthetic records come back in the same kind."""

from __future__ import annotations

import os
from collections.abc import Mapping
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


def as_frame(kind: Kind, columns: Mapping[str, Any]) -> Any:
    """Columns as a frame; a NaN, which stands for a missing number, is a null where the library has one."""
    if kind == "columns":
        return dict(columns)
    if kind == "pandas":
        with extra("synthesis"):
            import pandas as pd
        return pd.DataFrame(dict(columns))
    with extra("synthesis"):
        import polars as pl
    plain = {n: v.tolist() if v.dtype == object else np.ascontiguousarray(v) for n, v in columns.items()}
    frame = pl.DataFrame(plain).fill_nan(None)
    return choice("kind", kind, {"polars": lambda: frame, "pyarrow": frame.to_arrow})()
