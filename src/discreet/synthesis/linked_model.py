"""A fitted model of two linked tables. It may be published, and draws both tables from itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import whole
from discreet.random import Rng, RngLike, as_rng
from discreet.schema import Bounded
from discreet.synthesis.completing import complete_codes
from discreet.synthesis.counting import Codes
from discreet.synthesis.dates import as_iso_text
from discreet.synthesis.domain import Domain
from discreet.synthesis.drawing import draw_codes, most_rows
from discreet.synthesis.frames import Kind
from discreet.synthesis.linked_learning import CellModel
from discreet.synthesis.linked_plan import GAP
from discreet.synthesis.model import Model, frame_of

__all__ = ["LinkedModel"]

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class LinkedModel:
    """The model of parents, whose last column is the number of children, and those of a first and a later child."""

    parents: Model
    children: Domain = field(repr=False)
    first: CellModel = field(repr=False)
    later: CellModel | None = field(repr=False)
    gap: Domain | None = field(repr=False)  # what lies between a child's order and that of the one before
    key: str
    child_kind: Kind = "polars"
    child_columns: tuple[str, ...] = ()  # of the data, as they stood there
    statement: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def sample(
        self, n: int | None = None, rng: RngLike = None, where: Mapping[str, Any] | None = None
    ) -> tuple[Any, Any]:
        """``n`` synthetic parents (as many as there were, about, if not said) and their children.

        Keys are 0, 1, ...; children stand by parent, in their order. ``where`` is about parents: see ``Model.sample``.
        """
        source, model, within = as_rng(rng), self.parents, dict[str, tuple[float, float]]()
        tables = model.tables
        if where:
            tables, within = model.condition_on(where)
        rows = whole("n", round(float(tables[0].sum())) if n is None else n, high=most_rows(len(model.tree.sizes)))
        roots = draw_codes(model.tree, tables, rows, source)
        owners, codes, moments = self._draw_children(roots, source)
        parents = model.domain.values(roots, source, within)
        del parents[model.domain.names[-1]]
        parents[self.key] = np.arange(rows)
        children = self.children.values(codes, source)
        if self.gap is not None:
            name = self.children.names[-1]
            children[name] = as_iso_text(moments) if name in self.children.dates else moments
        children[self.key] = owners
        return (
            frame_of(model.domain, parents, model.kind, model.order, [self.key]),
            frame_of(self.children, children, self.child_kind, self.child_columns, [self.key]),
        )

    def _draw_children(self, roots: Codes, source: Rng) -> tuple[Places, Codes, Floats]:
        """Whose each child is, its cells, and where it stands in the order, if there is one; by root."""
        counts, width = roots[-1], len(self.children.names)
        owners, codes, moments = list[Places](), list[Codes](), list[Floats]()
        relatives = np.zeros((width, roots.shape[1]), np.int32)
        latest = np.zeros(roots.shape[1])
        for position in range(int(counts.max(initial=0))):
            places = np.flatnonzero(counts > position)
            if position == 0:
                drawn, when = self._draw_first(roots[:, places], source)
            else:
                drawn, when = self._draw_later(roots[:, places], relatives[:, places], latest[places], source)
            if position == 0 or self.gap is not None:  # without an order, the first child stays everybody's relative
                relatives[:, places] = drawn
            latest[places] = when
            owners.append(places)
            codes.append(drawn)
            moments.append(when)
        if not owners:
            return np.zeros(0, np.int64), np.zeros((width, 0), np.int32), np.zeros(0)
        whose = np.concatenate(owners)
        by_root = np.argsort(whose, kind="stable")
        return whose[by_root], np.concatenate(codes, axis=1)[:, by_root], np.concatenate(moments)[by_root]

    def _draw_first(self, roots: Codes, source: Rng) -> tuple[Codes, Floats]:
        blank = np.zeros((len(self.children.names), roots.shape[1]), np.int32)
        tree, tables = self.first.tree, self.first.tables
        drawn = complete_codes(tree, tables, np.concatenate([roots, blank]), range(len(roots)), source)[len(roots) :]
        if self.gap is None:
            return drawn, np.zeros(roots.shape[1])
        return drawn, self.children.draw_column(self.children.names[-1], drawn[-1], source, None)

    def _draw_later(self, roots: Codes, relatives: Codes, latest: Floats, source: Rng) -> tuple[Codes, Floats]:
        assert self.later is not None, "the number of children is at most one where there is no such model"
        codes = np.concatenate([roots, relatives, np.zeros(relatives.shape, np.int32)])
        known, factors = range(len(roots) + len(relatives)), dict[int, Floats]()
        if self.gap is not None:
            factors[len(codes) - 1] = self._room(self.gap, latest)
        drawn = complete_codes(self.later.tree, self.later.tables, codes, known, source, factors)[len(known) :]
        if self.gap is None:
            return drawn, np.zeros(roots.shape[1])
        moments = self._follow(self.gap, drawn[-1], latest, source)
        drawn[-1] = self.children.cells(self.children.names[-1], moments)
        return drawn, moments

    def _end(self) -> float:
        column = self.children.declaration.schema[self.children.names[-1]]
        assert isinstance(column, Bounded)
        return column.high

    def _spans(self, gap: Domain, latest: Floats) -> tuple[Floats, Floats]:
        """The least gap of each cell, and by record where its gaps end; after a missing place, there is zero alone."""
        low, high = gap.spans(GAP)
        room = np.where(np.isnan(latest), 0.0, self._end() - latest)
        most = np.floor(room) + 1 if gap.is_whole(GAP) else np.nextafter(room, np.inf)
        return low, np.minimum(high, most[:, None])

    def _room(self, gap: Domain, latest: Floats) -> Floats:
        """The share of each cell of gaps that leaves the next child within the bounds; after a child whose place is
        missing, which are last, all are missing.
        """
        shape, (low, high), (_, last) = gap.shape(GAP), gap.spans(GAP), self._spans(gap, latest)
        every, inside = shape.share(low, high), np.where(last > low, shape.share(low, last), 0.0)
        share = np.divide(inside, every, out=np.zeros(inside.shape), where=every > 0)
        if not gap.may_miss(GAP):
            return share
        share[np.isnan(latest)] = 0.0
        return np.concatenate([share, np.ones((len(share), 1))], axis=1)

    def _follow(self, gap: Domain, cells: NDArray[np.int32], latest: Floats, source: Rng) -> Floats:
        """Where the next child stands: a gap of such a cell after the latest one."""
        low, high = self._spans(gap, latest)
        at, rows = np.minimum(cells, len(low) - 1), np.arange(len(cells))
        steps = gap.shape(GAP).draw(low[at], np.maximum(high[rows, at], low[at] + gap.is_whole(GAP)), source)
        moments = np.clip(latest + steps, latest, self._end())
        return np.where((cells > at) | np.isnan(latest), np.nan, moments)
