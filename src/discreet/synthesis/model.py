"""A fitted model of a table: a distribution over its cells, along a junction tree. It may be published.

>>> from discreet.schema import Categories, Declaration, Schema
>>> from discreet.synthesis.trees import junction_tree
>>> facts = Declaration(Schema(sex=Categories(["f", "m"]), sick=Categories(["no", "yes"])))
>>> model = Model(Domain(facts), junction_tree((2, 2), [(0, 1)]), [np.array([[30.0, 10.0], [50.0, 10.0]])], "columns")
>>> model.marginal(["sick"]).tolist(), model.count({"sex": "m", "sick": ["yes"]}), model.total
([80.0, 20.0], 10.0, 100.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import number, whole
from discreet.random import RngLike, as_rng
from discreet.schema import Bounded, Categories
from discreet.synthesis.conditioning import condition, rake_to_margins
from discreet.synthesis.counting import Codes, Columns
from discreet.synthesis.dates import day
from discreet.synthesis.domain import Domain
from discreet.synthesis.drawing import draw_codes, most_rows
from discreet.synthesis.frames import Kind, as_frame
from discreet.synthesis.raking import marginal
from discreet.synthesis.trees import JunctionTree

__all__ = ["Model", "frame_of"]

Floats = NDArray[np.float64]
_MOST_CELLS = 1 << 26  # of a table on the way to an answer
_IMPOSSIBLE = 1e-12  # of the total: what rounding leaves of nothing


@dataclass(frozen=True)
class Model:
    """Expected counts for each clique of a tree; ``kind`` is the kind of frame that ``sample`` gives."""

    domain: Domain
    tree: JunctionTree = field(repr=False)
    tables: Sequence[Floats] = field(repr=False)
    kind: Kind = "polars"
    statement: Mapping[str, Any] = field(default_factory=dict, repr=False)
    order: tuple[str, ...] = ()  # the columns of the data, as they stood there

    @property
    def total(self) -> float:
        """The number of records, as declared or measured."""
        return float(self.tables[0].sum())

    def sample(self, n: int | None = None, rng: RngLike = None, where: Mapping[str, Any] | None = None) -> Any:
        """``n`` synthetic records, as the kind of frame that was given; without ``n``, about as many as there were.

        ``where`` gives records of the model's distribution given what it says, exactly: by column a label or a list of
        them, a pair (low, high) of numbers or dates, both included, or ``None`` for missing entries. What the model
        holds impossible is refused.
        """
        source, tables, within = as_rng(rng), self.tables, dict[str, tuple[float, float]]()
        if where:
            tables, within = self.condition_on(where)
        rows = round(float(tables[0].sum())) if n is None else n
        codes = draw_codes(self.tree, tables, whole("n", rows, high=most_rows(len(self.tree.sizes))), source)
        return frame_of(self.domain, self.domain.values(codes, source, within), self.kind, self.order)

    def condition_on(self, where: Mapping[str, Any]) -> tuple[list[Floats], dict[str, tuple[float, float]]]:
        """The tables of the records that are as asked, and the ranges of numbers within their cells."""
        factors, within, domain = dict[int, Floats](), dict[str, tuple[float, float]](), self.domain
        for name, wanted in where.items():
            if name in domain.dependencies:
                place, factor = self._factor_of_source(name, wanted)
            else:
                (place,), factor = domain.places([name]), self._indicator(name, wanted)
                if domain.is_bounded(name) and wanted is not None:
                    within[name] = self._pair(name, wanted)
            factors[place] = factors.get(place, 1.0) * factor
        tables = condition(self.tree, self.tables, factors)
        if not float(tables[0].sum()) > _IMPOSSIBLE * self.total:
            raise ValueError(f"where asks for {dict(where)!r}, to which the model gives no probability.")
        return tables, within

    def _factor_of_source(self, name: str, wanted: Any) -> tuple[int, Floats]:
        """What is asked of a column that another determines, as asked of the other."""
        place, cells = self.domain.derivation_of(name)
        if not self.domain.is_bounded(name):
            return place, self._indicator(name, wanted)[cells]
        source, values = self.domain.dependencies[name]
        low, high = self._pair(name, wanted)
        labels = self.domain.labels(source)
        return place, np.array([float(low <= float(values[label]) <= high) for label in labels])

    def rake_to(self, margins: Mapping[Any, Mapping[Any, float]]) -> Model:
        """The nearest model with counts that are publicly known, as those of a census; it costs nothing.

        ``margins`` gives, for a column of categories (or several that the model holds together, as a tuple), a number
        for each label (or tuple of labels): counts, which become the model's total, or shares, which add up to 1.

        >>> from discreet.schema import Categories, Declaration, Schema
        >>> from discreet.synthesis.trees import junction_tree
        >>> facts = Declaration(Schema(sex=Categories(["f", "m"])))
        >>> model = Model(Domain(facts), junction_tree((2,), []), [np.array([30.0, 10.0])])
        >>> model.rake_to({"sex": {"f": 0.5, "m": 0.5}}).marginal(["sex"]).tolist()
        [20.0, 20.0]
        """
        goals = dict[Columns, Floats]()
        for names, known in margins.items():
            columns, goal = self._margin((names,) if isinstance(names, str) else tuple(names), known)
            if columns in goals:
                raise ValueError(f"margins names {names!r} twice.")
            goals[columns] = goal
        if not goals:
            raise ValueError("margins names no columns.")
        totals = [float(goal.sum()) for goal in goals.values()]
        if max(totals) - min(totals) > 1e-6 * max(totals):
            raise ValueError(f"margins have different totals: {', '.join(f'{total:g}' for total in totals)}.")
        scaled = {columns: goal * (totals[0] / float(goal.sum())) for columns, goal in goals.items()}
        return replace(self, tables=rake_to_margins(self.tree, self.tables, scaled))

    def _margin(self, names: tuple[str, ...], known: Mapping[Any, float]) -> tuple[Columns, Floats]:
        """The places of a margin's columns, in order, and its counts."""
        schema = self.domain.declaration.schema
        places = self.domain.places(names)
        if len(set(names)) < len(names) or any(not isinstance(schema[name], Categories) for name in names):
            raise ValueError(f"margins of {names!r} must be about different columns of categories.")
        if self.tree.home(tuple(sorted(places))) is None:
            raise ValueError(f"margins of {names!r} need columns that are together in one clique of the model.")
        every = list(product(*(schema[name].labels for name in names)))  # type: ignore[union-attr]
        given = {(label if isinstance(label, tuple) else (label,)): value for label, value in known.items()}
        if odd := [label for label in given if label not in every] or [label for label in every if label not in given]:
            raise ValueError(f"margins of {names!r} must have a number for each combination of labels: see {odd[0]!r}.")
        counts = np.array([number("margins", given[label], low=0, high=math.inf) for label in every])
        if not counts.sum() > 0:
            raise ValueError(f"margins of {names!r} add up to nothing.")
        if abs(counts.sum() - 1) < 1e-6:
            counts = counts * self.total
        shape = tuple(self.domain.size(name) for name in names)
        order = sorted(range(len(places)), key=lambda k: places[k])
        return tuple(sorted(places)), np.transpose(counts.reshape(shape), order)

    def codes(self, n: int, rng: RngLike = None) -> Codes:
        """``n`` synthetic records as cells, one row a modelled column."""
        return draw_codes(self.tree, self.tables, whole("n", n, high=most_rows(len(self.tree.sizes))), as_rng(rng))

    def labels(self, name: str) -> list[Any]:
        """What the cells of a column stand for, in the order of ``marginal``."""
        return self.domain.labels(name)

    def marginal(self, names: Sequence[str]) -> Floats:
        """Expected counts of every combination of the columns' cells, one axis a column; no records are drawn."""
        if isinstance(names, str) or len(set(names)) < len(names):
            raise ValueError("names must be a list of different columns.")
        maps = {name: self.domain.derivation_of(name) for name in names if name in self.domain.dependencies}
        places = [maps[name][0] if name in maps else self.domain.places([name])[0] for name in names]
        columns = tuple(sorted(set(places)))
        table = self._answer(columns)
        shape = tuple(self.domain.size(name) for name in names)
        if math.prod(shape) > _MOST_CELLS:
            raise ValueError(f"The marginal has more than {_MOST_CELLS:,} cells: ask for fewer columns.")
        # every cell of the modelled columns falls into one cell of the asked ones
        grid: Any = np.indices(table.shape, sparse=True)
        cells: list[Any] = [grid[columns.index(i)] for i in places]
        cells = [maps[n][1][c] if n in maps else c for n, c in zip(names, cells, strict=True)]
        flat = np.ravel_multi_index(np.broadcast_arrays(*cells), shape) if names else np.zeros(table.shape, np.int64)
        return np.asarray(np.bincount(flat.ravel(), table.ravel(), math.prod(shape)).reshape(shape), np.float64)

    def count(self, where: Mapping[str, Any]) -> float:
        """The expected number of records with such values: one, a list of them, or, of numbers, a pair (low, high).

        A pair counts cells by the share of their numbers that lies between its ends, both included.
        """
        answer = self.marginal(list(where))
        for name, wanted in reversed(list(where.items())):
            answer = answer @ self._indicator(name, wanted)
        return float(answer)

    def _indicator(self, name: str, wanted: Any) -> Floats:
        labels = self.labels(name)
        if isinstance(self.domain.declaration.schema[name], Bounded) and wanted is not None:
            return self.domain.between(name, *self._pair(name, wanted))
        several = isinstance(wanted, Collection) and not isinstance(wanted, str)
        values = list(wanted) if several else [wanted]
        if odd := [value for value in values if value not in labels]:
            raise ValueError(f"where asks {name!r} for {odd[0]!r}, which is none of its labels.")
        return np.array([float(label in values) for label in labels])

    def _pair(self, name: str, wanted: Any) -> tuple[float, float]:
        """The ends of a range of numbers, or of days."""
        as_number: Callable[[Any], float] = day if name in self.domain.dates else float
        try:
            low, high = map(as_number, wanted)
        except (TypeError, ValueError):
            raise ValueError(f"where must have a pair (low, high) of numbers or dates for {name!r}.") from None
        if not low <= high:
            raise ValueError(f"where must have a pair (low, high) for {name!r}, the lower one first.")
        return low, high

    def _answer(self, columns: Columns) -> Floats:
        """Exact counts of any columns: those of a clique, or messages towards the root that keep what is asked."""
        if (home := self.tree.home(columns)) is not None:
            return marginal(self.tables[home], self.tree.cliques[home], columns)
        tree, messages = self.tree, dict[int, tuple[Columns, Floats]]()
        for place in reversed(range(len(tree.cliques))):
            shared = tree.separator(place)
            kept, table = self._conditional(place, shared)
            for child in tree.children[place]:
                kept, table = _times(tree, kept, table, *messages.pop(child))
            messages[place] = _sum_out(kept, table, {*columns, *shared})
        kept, table = messages[0]
        return np.transpose(table, [kept.index(i) for i in columns])

    def _conditional(self, place: int, shared: Columns) -> tuple[Columns, Floats]:
        clique, table = self.tree.cliques[place], self.tables[place]
        if not place:
            return clique, table
        given = marginal(table, clique, shared)
        shape = tuple(size if i in shared else 1 for i, size in zip(clique, table.shape, strict=True))
        safe = np.where(given > 0, given, 1.0).reshape(shape)
        return clique, table / safe


def frame_of(
    domain: Domain, values: Mapping[str, Any], kind: Kind, order: Sequence[str], keys: Collection[str] = ()
) -> Any:
    """Values of a domain's columns, and whole numbers that are keys, as the frame that was given."""
    columns = {n: values[n] for n in sorted(values, key=lambda n: order.index(n) if n in order else -1)}
    own = [n for n in values if n not in keys]
    dates = [n for n in own if n in domain.dates and n not in domain.texts]
    return as_frame(kind, columns, [*keys, *domain.whole_among(own)], dates)


def _times(tree: JunctionTree, kept: Columns, table: Floats, more: Columns, factor: Floats) -> tuple[Columns, Floats]:
    every = tuple(sorted({*kept, *more}))
    if math.prod(tree.shape(every)) > _MOST_CELLS:
        raise ValueError(
            "These columns lie too far apart in the model for an exact answer: count in sample(n) instead."
        )

    def align(columns: Columns, values: Floats) -> Floats:
        return values.reshape(tuple(tree.sizes[i] if i in columns else 1 for i in every))

    return every, align(kept, table) * align(more, factor)


def _sum_out(kept: Columns, table: Floats, wanted: set[int]) -> tuple[Columns, Floats]:
    columns = tuple(i for i in kept if i in wanted)
    return columns, marginal(table, kept, columns)
