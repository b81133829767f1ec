"""Columns that lie side by side, or samples one after another: what a test of several columns reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.records import check_column, column
from discreet.statistics.partition import Partition

__all__ = ["NUMBERS", "Reader", "Samples", "check_columns", "cross", "read_columns"]

NUMBERS = None
Reader = Partition | None
"""How a column is read: as the parts of a partition, or as numbers."""


@dataclass(frozen=True, slots=True)
class Samples:
    """One column for each group, in place of a column of groups beside one of values."""

    parts: tuple[Any, ...] = field(repr=False)


def check_columns(data: Any, readers: Sequence[Reader], names: Sequence[str]) -> None:
    """Refuse, by types and shapes alone, what are not so many columns side by side."""
    if not isinstance(data, tuple) or len(data) != len(readers):
        raise ValueError(f"data must be a tuple of {len(readers)} columns side by side: ({', '.join(names)}).")
    for values, reader, name in zip(data, readers, names, strict=True):
        check_column(values, name) if reader is None else reader.check(values)


def read_columns(data: Any, readers: Sequence[Reader]) -> list[NDArray[Any]]:
    """Numbers, and parts from 0 (-1 for none). Columns of different lengths have as many records as the shortest."""
    read = [column(part) if reader is None else reader.places(part) for part, reader in zip(data, readers, strict=True)]
    shortest = min(map(len, read))
    return [np.asarray(part[:shortest]) for part in read]


def cross(shape: tuple[int, int], rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many records have each pair of places; those without a place in either are left out."""
    inside = (rows >= 0) & (columns >= 0)
    counts = np.bincount(rows[inside] * shape[1] + columns[inside], minlength=shape[0] * shape[1])
    return counts.astype(np.int64).reshape(shape)
