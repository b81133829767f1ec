"""Candidates for tables: rows of cells, of which some are drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from discreet.schema import Bounded, Declaration, Schema, as_declaration
from discreet.synthesis.domain import Domain
from discreet.synthesis.layouts import TableLayout
from discreet.synthesis.nearest import Features
from discreet.synthesis.variations import Candidates, LayoutVariations

__all__ = ["CellVariations"]

_SPAN = 64  # the greatest difference of two numbers, beside 64√2 of two categories


class CellVariations(LayoutVariations):
    """Rows of a schema's cells; a variation draws each column again with the chance ``degree``, at least one of them.

    A number moves by about ``degree`` of its bounds; a category becomes another. Two rows are as far apart as their
    columns: 128 for each category that differs, and up to 64 for a number, by how many cells lie between. ``target``
    is a column whose cells have candidates of their own.

    >>> from discreet.schema import Categories
    >>> cells = CellVariations(Schema(age=Bounded(0, 100, missing=0), sex=Categories(["f", "m"])), bins=4)
    >>> rng = np.random.default_rng(1)
    >>> one = cells.draw(1, rng)
    >>> one.shape, int((cells.vary(one, 0.1, rng) != one).sum()) >= 1
    ((1, 2), True)
    """

    def __init__(
        self,
        schema: Schema | Declaration | str | PathLike[str],
        *,
        bins: Any = 16,
        whole: Sequence[str] = (),
        target: str | None = None,
    ) -> None:
        domain = Domain(as_declaration(schema), bins, whole=tuple(whole))
        layout = TableLayout(domain, target)
        super().__init__(layout)
        self._sizes = layout.groups[:-1] if layout.classes else layout.groups
        columns = [domain.declaration.schema[domain.names[place]] for place in layout.order[: len(self._sizes)]]
        # numbers that are never missing: the cell of missing ones lies nowhere between the others
        self._ordered = tuple(isinstance(column, Bounded) and column.missing is not None for column in columns)

    def draw(self, n: int, rng: np.random.Generator) -> Candidates:
        """Cells drawn evenly."""
        return np.stack([rng.integers(0, size, n) for size in self._sizes], axis=1)

    def vary(self, candidates: Candidates, degree: float, rng: np.random.Generator) -> Candidates:
        """Some columns drawn again."""
        n, width = candidates.shape
        redrawn = rng.random((n, width)) < degree
        redrawn[np.arange(n), rng.integers(0, width, n)] = True
        varied = candidates.copy()
        for column, (size, is_ordered) in enumerate(zip(self._sizes, self._ordered, strict=True)):
            steps = rng.integers(1, size, n) if size > 1 else np.zeros(n, np.int64)
            if is_ordered:
                steps = 1 + np.floor(rng.random(n) * degree * (size - 1)).astype(np.int64)
                moved = np.clip(candidates[:, column] + np.where(rng.random(n) < 0.5, steps, -steps), 0, size - 1)
            else:
                moved = (candidates[:, column] + steps) % size
            varied[:, column] = np.where(redrawn[:, column], moved, candidates[:, column])
        return varied

    def rows(self, candidates: Candidates) -> Any:
        """A group for each column, with a one at its cell."""
        groups = [np.eye(size, dtype=np.float32)[cells] for size, cells in zip(self._sizes, candidates.T, strict=True)]
        return np.concatenate(groups, axis=1)

    def features(self, rows: Any) -> Features:
        """Of a category its group, of a number in how many cells it lies at or above: as far apart as their cells."""
        parts = []
        groups = np.split(rows, np.cumsum(self._sizes)[:-1], axis=1)
        for group, is_ordered in zip(groups, self._ordered, strict=True):
            scale = np.rint(_SPAN / np.sqrt(group.shape[1])) if is_ordered else _SPAN
            parts.append(scale * (np.cumsum(group, axis=1) if is_ordered else group))
        return np.asarray(np.concatenate(parts, axis=1), np.float64)
