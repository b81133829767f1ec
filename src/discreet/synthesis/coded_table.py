"""Two tables, real and synthetic, as the same schema reads them: codes of cells, with missing values as a cell.

Numbers fall into bins of equal width between their public bounds. Everything about real rows is private.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import Encoded, Encoder
from discreet.errors import whole
from discreet.random import seeded
from discreet.schema import Bounded, Categories, Declaration, Schema, as_declaration

__all__ = ["BINS", "CodedTable", "Columns", "as_declared", "choices", "paired_counts"]

Columns = tuple[str, ...]
BINS = 16
MOST_CHOICES = 500
_DENSE = 1 << 22  # cells up to which counts are kept for all of them


def as_declared(schema: Schema | Declaration | str | PathLike[str]) -> Declaration:
    """A schema with its unit, also of a schema file; a schema alone has a row as unit."""
    facts = as_declaration(schema)
    if not Encoder(facts, one_row_a_unit=False).schema:
        raise ValueError("The schema declares no column with bounds or categories, so that nothing can be compared.")
    return facts


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Rows as a schema reads them; each column has cells 0, 1, ... and a last one for what is missing."""

    rows: Encoded
    bins: int = BINS

    def __post_init__(self) -> None:
        whole("bins", self.bins, low=1)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def schema(self) -> Schema:
        """The columns that are compared."""
        return self.rows.schema

    @property
    def numeric(self) -> list[str]:
        """The columns of numbers."""
        return [name for name, column in self.schema.items() if isinstance(column, Bounded)]

    def size(self, name: str) -> int:
        """How many cells a column has."""
        column = self.schema[name]
        return (len(column.labels) if isinstance(column, Categories) else self.bins) + 1

    @cached_property
    def codes(self) -> dict[str, NDArray[np.int64]]:
        """The cell of each row, by column."""
        return {name: self._codes(name) for name in self.schema}

    def _codes(self, name: str) -> NDArray[np.int64]:
        if isinstance(self.schema[name], Categories):
            found = self.rows.codes(name)
            return np.where(found < 0, self.size(name) - 1, found)
        place = self.rows.unit_scaled(name) * self.bins
        missing = np.isnan(place)
        inside = np.clip(np.where(missing, 0.0, place), 0, self.bins - 1).astype(np.int64)
        return np.where(missing, self.bins, inside)

    def cells(self, names: Columns) -> NDArray[np.int64]:
        """The combination of cells of each row, as one number."""
        flat = np.zeros(len(self), np.int64)
        for name in names:
            flat = flat * self.size(name) + self.codes[name]
        return flat


def paired_counts(one: CodedTable, two: CodedTable, names: Columns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many rows of each table every combination of cells holds; combinations that neither has may be left out."""
    first, second = one.cells(names), two.cells(names)
    size = int(np.prod([one.size(name) for name in names]))
    if size > _DENSE:
        seen, at = np.unique(np.concatenate([first, second]), return_inverse=True)
        first, second, size = at[: len(first)], at[len(first) :], len(seen)
    return np.bincount(first, minlength=size), np.bincount(second, minlength=size)


def choices(columns: Any, ways: int, most: int = MOST_CHOICES) -> list[Columns]:
    """Every choice of so many columns; a fixed public sample of ``most`` where there are more.

    >>> choices("abc", 2), len(choices(range(60), 3))
    ([('a', 'b'), ('a', 'c'), ('b', 'c')], 500)
    """
    listed = list(columns)
    if comb(len(listed), ways) <= most:
        return list(combinations(listed, ways))
    draw = seeded(0).generator
    found: dict[tuple[int, ...], None] = {}
    while len(found) < most:
        found[tuple(sorted(draw.choice(len(listed), ways, replace=False).tolist()))] = None
    return [tuple(listed[i] for i in chosen) for chosen in sorted(found)]
