"""Candidates for tables: rows of cells, of which some are drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np

from discreet.schema import Declaration, Schema, as_declaration
from discreet.synthesis.domain import Domain
from discreet.synthesis.layouts import TableLayout, one_hot
from discreet.synthesis.nearest import Features
from discreet.synthesis.variations import Candidates, LayoutVariations

__all__ = ["CellVariations"]

_SPAN = 1 << 12  # the greatest distance of two numbers, so that a step between two of 65,536 cells is still whole


class CellVariations(LayoutVariations):
    """Rows of a schema's cells; a variation draws each column again with the chance ``degree``, at least one of them.

    A number moves by about ``degree`` of its bounds; a category, or a number that is missing, becomes another. The
    squared distance of two rows is a sum over columns (times 2**24): 2 for each category that differs, and for a number
    the share of its cells that lie between. ``target`` is a column whose cells have candidates of their own.

    >>> from discreet.schema import Bounded, Categories
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
        names = [domain.names[place] for place in layout.order[: len(self._sizes)]]
        if not names:
            raise ValueError(f"The schema has no column beside the target {target!r}, but needs one.")
        # how many cells have an order: none of a category, and all of a number but the last if that is for missing ones
        self._ordered = tuple(
            size - domain.may_miss(name) if domain.is_bounded(name) else 0
            for name, size in zip(names, self._sizes, strict=True)
        )

    def draw(self, n: int, rng: np.random.Generator) -> Candidates:
        """Cells drawn evenly."""
        return np.stack([rng.integers(0, size, n) for size in self._sizes], axis=1)

    def vary(self, candidates: Candidates, degree: float, rng: np.random.Generator) -> Candidates:
        """Some columns drawn again."""
        n, width = candidates.shape
        redrawn = rng.random((n, width)) < degree
        redrawn[np.arange(n), rng.integers(0, width, n)] = True
        varied = candidates.copy()
        for column, (size, ordered) in enumerate(zip(self._sizes, self._ordered, strict=True)):
            own = candidates[:, column]
            moved = (own + rng.integers(1, size, n)) % size if size > 1 else own
            steps = 1 + np.floor(rng.random(n) * degree * (ordered - 1)).astype(np.int64)
            near = np.clip(own + np.where(rng.random(n) < 0.5, steps, -steps), 0, ordered - 1)
            moved = np.where((own < ordered) & (moved < ordered), near, moved)
            varied[:, column] = np.where(redrawn[:, column], moved, own)
        return varied

    def rows(self, candidates: Candidates) -> Any:
        """A group for each column, with a one at its cell."""
        groups = [one_hot(cells, size) for size, cells in zip(self._sizes, candidates.T, strict=True)]
        return np.concatenate(groups, axis=1)

    def features(self, rows: Any) -> Features:
        """Of a category its group, of a number in how many cells it lies at or above: as far apart as their cells."""
        parts = []
        groups = np.split(rows, np.cumsum(self._sizes)[:-1], axis=1)
        for group, ordered in zip(groups, self._ordered, strict=True):
            scale = np.rint(_SPAN / np.sqrt(max(ordered, 1)))
            parts += [scale * np.cumsum(group[:, :ordered], axis=1), _SPAN * group[:, ordered:]]
        return np.asarray(np.concatenate(parts, axis=1), np.float64)
