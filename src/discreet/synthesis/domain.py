"""The cells of a table: which values of each column count as one, from public facts alone.

================  =====================================================================================================
column            its cells
================  =====================================================================================================
``Categories``    one per label, ``other`` among them; without ``other``, a row with an unlisted or missing entry counts
                  nowhere, as in tables
``Bounded``       bins between the bounds, and one more for missing entries, unless the schema says what they count as;
                  within a bin, numbers lie as the column's shape says (``column_shape``)
determined        none of its own: a *dependency* says its value for each label of another column
``Unlisted``      none: it is left out, as the unit's column is
================  =====================================================================================================

Rows in a structural zero (a combination that is declared impossible) count nowhere either. Each row is judged by
itself, and none causes an error. Dates are numbers of days here (``dates``).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import Encoded, Encoder
from discreet.errors import number, whole
from discreet.random import Rng
from discreet.schema import Bounded, Categories, Dates, Declaration, Times
from discreet.synthesis.column_shape import Shape, ends, spans, uniform_shape
from discreet.synthesis.counting import Codes, Columns
from discreet.synthesis.dates import as_iso_text, as_read, day, written_day
from discreet.synthesis.inequalities import Inequality, contradiction, lift, parse, tightest_ranges, violates
from discreet.synthesis.measured_shape import ColumnGrid
from discreet.synthesis.structural_zeros import category, mask_of

__all__ = ["Domain", "PrivateBins"]

_MOST_BINS = 1 << 16
_ROUNDING = 1e-9  # of the numbers: cells that miss an inequality by less are possible
_REDRAWS = 20  # of rows that break an inequality, before their numbers are raised


@dataclass(frozen=True, slots=True)
class PrivateBins:
    """At most ``count`` cells of a bounded column, cut by its noisy shape: numbers that many records share are cells of
    their own, and the rest has cells of about equal weight.
    """

    count: int = 16

    def __post_init__(self) -> None:
        whole("count", self.count, low=2, high=_MOST_BINS)


@dataclass(frozen=True)
class Domain:
    """Which columns are modelled, their cells, and what is impossible.

    >>> from discreet.schema import Schema
    >>> facts = Declaration(Schema(age=Bounded(0, 100), sex=Categories(["f", "m"])))
    >>> domain = Domain(facts, bins={"age": [0, 18, 65, 100]})
    >>> domain.names, domain.sizes  # the fourth cell of age is a missing one
    (('age', 'sex'), (4, 2))
    """

    declaration: Declaration
    bins: Any = 16
    structural_zeros: Mapping[tuple[str, ...], Sequence[tuple[Any, ...]]] = field(default_factory=dict)
    dependencies: Mapping[str, tuple[str, Mapping[Any, Any]]] = field(default_factory=dict)
    whole: Sequence[str] = ()  # bounded columns whose values are drawn as whole numbers
    dates: tuple[str, ...] = ()  # bounded columns of days, which are read and written as dates
    texts: tuple[str, ...] = ()  # those of them that are written as ISO text, whatever the frame
    shapes: Mapping[str, Shape] = field(default_factory=dict)  # of bounded columns, where they were measured
    constraints: tuple[str, ...] = ()  # inequalities between bounded columns: ``inequalities``

    def __post_init__(self) -> None:
        schema = self.declaration.schema
        if moments := [name for name, column in schema.items() if isinstance(column, (Dates, Times))]:
            raise ValueError(
                f"Column {moments[0]!r} is {type(schema[moments[0]]).__name__}, which is not modelled here: declare it "
                "Unlisted(), which leaves it out. (TableSynthesizer models Dates.)"
            )
        if not self.names:
            raise ValueError("The schema declares no bounded or categorical column, but synthesis needs at least one.")
        if isinstance(self.bins, Mapping):
            _refuse_unknown(
                "bins", [name for name in self.bins if not isinstance(schema.get(name), Bounded)], "Bounded"
            )
        _refuse_unknown("whole", [name for name in self.whole if not isinstance(schema.get(name), Bounded)], "Bounded")
        _refuse_unknown("dates", [name for name in self.dates if not isinstance(schema.get(name), Bounded)], "Bounded")
        for name in self.whole:
            if math.ceil(schema[name].low) > math.floor(schema[name].high):  # type: ignore[union-attr]
                raise ValueError(f"whole names {name!r}, but no whole number lies between its bounds.")
        for name in self.dependencies:
            self._check_dependency(name)
        if together := contradiction(self.inequalities, self._ranges({})):
            raise ValueError(f"constraints can never hold within the bounds: {' and '.join(map(repr, together))}.")
        _ = self.sizes, self.impossible, {name: self.derivation_of(name) for name in self.dependencies}

    def _check_dependency(self, name: str) -> None:
        column, (source, values) = self.declaration.schema[name], self.dependencies[name]
        origin = self.declaration.schema[source]
        if source not in self.names or not isinstance(origin, Categories):
            raise ValueError(f"dependencies derives {name!r} from {source!r}, which must be modelled Categories.")
        if name == self.declaration.unit or name in self.dates or not isinstance(column, (Bounded, Categories)):
            raise ValueError(f"dependencies derives {name!r}, which must be Categories or Bounded, and not the unit.")
        if missing := [label for label in origin.labels if label not in values]:
            raise ValueError(f"dependencies has no value of {name!r} for {source!r} = {missing[0]!r}.")
        if isinstance(column, Bounded):
            for label in origin.labels:
                number(name, values[label], low=column.low, high=column.high)

    # --- cells -------------------------------------------------------------------------------------------------------

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns that are modelled."""
        left_out = {self.declaration.unit, *self.dependencies}
        schema = self.declaration.schema
        return tuple(n for n, c in schema.items() if n not in left_out and isinstance(c, (Bounded, Categories)))

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each modelled column has; of privately chosen bins, at most."""
        return tuple(self.size(name) for name in self.names)

    def size(self, name: str) -> int:
        """How many cells a column has."""
        column = self.declaration.schema[name]
        if isinstance(column, Categories):
            return len(column.labels)
        assert isinstance(column, Bounded)
        chosen = self._bins_of(name)
        return (chosen.count if isinstance(chosen, PrivateBins) else len(self.edges(name)) - 1) + _may_miss(column)

    def _bins_of(self, name: str) -> Any:
        """A number, edges or ``PrivateBins``; of few whole numbers each is a cell, which needs no choice."""
        asked = self.bins.get(name, 16) if isinstance(self.bins, Mapping) else self.bins
        if not isinstance(asked, PrivateBins):
            return asked
        first, last = ends(self._bounds(name), True)
        if self.is_whole(name) and last - first <= asked.count:
            low, high = self._bounds(name).low, self._bounds(name).high
            return (low, *map(float, np.arange(first + 1, last)), max(last, high))
        return asked.count if name in self.dependencies else asked

    def _bounds(self, name: str) -> Bounded:
        column = self.declaration.schema[name]
        assert isinstance(column, Bounded)
        return column

    @property
    def private(self) -> dict[str, PrivateBins]:
        """The columns whose bins are still to be chosen."""
        schema = self.declaration.schema
        found = {name: self._bins_of(name) for name in self.names if isinstance(schema[name], Bounded)}
        return {name: asked for name, asked in found.items() if isinstance(asked, PrivateBins)}

    @cached_property
    def columns_to_measure(self) -> tuple[str, ...]:
        """The columns whose shape is measured: bounded ones with more numbers than cells."""
        schema = self.declaration.schema
        return tuple(n for n in self.names if isinstance(schema[n], Bounded) and not self._is_listed(n))

    def _is_listed(self, name: str) -> bool:
        """Whether every cell of a column holds one whole number."""
        if name in self.private or not self.is_whole(name):
            return False
        low, high = self.spans(name)
        return bool((high - low == 1).all())

    def grid(self, name: str) -> ColumnGrid:
        """What the shape of a column is measured on."""
        return ColumnGrid(self._bounds(name), self.is_whole(name))

    def shape(self, name: str) -> Shape:
        """How the numbers of a column lie: as was measured, or evenly between the bounds."""
        return self.shapes.get(name) or uniform_shape(self._bounds(name), self.is_whole(name))

    def edges(self, name: str) -> tuple[float, ...]:
        """The bins of a bounded column: [edge, next edge), the last one closed."""
        column, asked = self.declaration.schema[name], self._bins_of(name)
        assert isinstance(column, Bounded)
        if isinstance(asked, (int, np.integer)) and not isinstance(asked, bool):
            count = whole("bins", asked, low=1)
            if count > _MOST_BINS:
                raise ValueError(f"bins is {count}, but a column has at most {_MOST_BINS:,}.")
            edges = np.linspace(column.low, column.high, count + 1)
            edges = np.array(_rising(column, np.rint(edges))) if self.is_whole(name) else edges
        else:
            edges = np.asarray([day(edge) if isinstance(edge, str) else edge for edge in asked], np.float64)
        rising = edges.ndim == 1 and 2 <= len(edges) <= _MOST_BINS + 1 and bool((np.diff(edges) > 0).all())
        if not rising or not np.isfinite(edges).all() or edges[0] > column.low or edges[-1] < column.high:
            raise ValueError(
                f"bins of {name!r} must be a number of bins, PrivateBins(), or rising edges that hold the bounds "
                f"{column.low:g} and {column.high:g}."
            )
        return tuple(map(float, edges))

    def spans(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Where the numbers of each cell of a bounded column lie: [low, high)."""
        return spans(self._bounds(name), self.edges(name), self.is_whole(name))

    def with_shapes(self, shapes: Mapping[str, Shape], least: float = 0.0) -> Domain:
        """The same domain with shapes that were measured, and bins cut by them where they were to be chosen."""
        schema = self.declaration.schema
        every = {name: self._bins_of(name) for name in schema if isinstance(schema[name], Bounded)}
        for name, asked in self.private.items():
            first, *inner, last = shapes[name].cut(asked.count, least)
            column = self._bounds(name)
            every[name] = (min(first, column.low), *inner, max(last, column.high))
        return replace(self, bins=every, shapes=shapes)

    def with_whole(self, names: Collection[str]) -> Domain:
        """The same domain, in which more of the bounded columns are of whole numbers."""
        told = [n for n in self.declaration.schema if n in names and self.is_bounded(n) and not self.is_whole(n)]
        return replace(self, whole=(*self.whole, *told)) if told else self

    def is_bounded(self, name: str) -> bool:
        """Whether a column holds numbers, or days."""
        return isinstance(self.declaration.schema[name], Bounded)

    def may_miss(self, name: str) -> bool:
        """Whether a column has a cell, its last, for missing entries."""
        column = self.declaration.schema[name]
        return isinstance(column, Bounded) and _may_miss(column)

    def whole_among(self, names: Iterable[str]) -> list[str]:
        """Those of the columns that are numbers without decimals."""
        return [n for n in names if self.is_bounded(n) and self.is_whole(n) and n not in self.dates]

    def is_whole(self, name: str) -> bool:
        """Whether a bounded column is of whole numbers, days among them."""
        return name in self.whole or name in self.dates or getattr(self.declaration.schema[name], "whole", False)

    def labels(self, name: str) -> list[Any]:
        """What each cell stands for: a label, a pair (from, to), or ``None`` for a missing entry."""
        column = self.declaration.schema[name]
        if isinstance(column, Categories):
            return list(column.labels)
        assert isinstance(column, Bounded)
        edges: Any = self.edges(name)
        edges = map(written_day, edges) if name in self.dates else edges
        return [*pairwise(edges), *([None] if _may_miss(column) else [])]

    def places(self, names: Sequence[str]) -> Columns:
        """Where modelled columns stand."""
        if odd := [name for name in names if name not in self.names]:
            raise ValueError(f"{odd[0]!r} is not among the columns: {', '.join(self.names)}.")
        return tuple(self.names.index(name) for name in names)

    @cached_property
    def impossible(self) -> dict[Columns, NDArray[np.bool_]]:
        """For each set of columns with structural zeros, which combinations are impossible."""
        found: dict[Columns, NDArray[np.bool_]] = {}
        for names, values in self.structural_zeros.items():
            places = self.places(names)
            mask, key = mask_of(self.declaration.schema, names, places, values), tuple(sorted(places))
            found[key] = mask | found[key] if key in found else mask  # the same columns in another order
            if found[key].all():
                raise ValueError(f"structural_zeros of {names!r} leaves nothing possible.")
        for each in self.inequalities:
            left, right = self.places([each.left, each.right])
            mask = self._never(each)
            mask, key = (mask, (left, right)) if left < right else (mask.T, (right, left))
            found[key] = mask | found[key] if key in found else mask
        return found

    # --- inequalities ------------------------------------------------------------------------------------------------

    @cached_property
    def inequalities(self) -> tuple[Inequality, ...]:
        """The constraints, as they are understood."""
        return tuple(parse(text, self._whole_ones) for text in self.constraints)

    @cached_property
    def _whole_ones(self) -> dict[str, bool]:
        return {name: self.is_whole(name) for name in self.names if self.is_bounded(name)}

    def _ranges(self, within: Mapping[str, tuple[float, float]]) -> dict[str, tuple[Fraction, Fraction]]:
        """The least and the largest number of each constrained column, exactly as they are written."""
        found = {}
        for name in sorted({name for each in self.inequalities for name in (each.left, each.right)}):
            column = self._bounds(name)
            low, high = within.get(name, (column.low, column.high))
            low, high = max(low, column.low), min(high, column.high)
            ends_of_whole = (math.ceil(low), math.floor(high))
            low, high = ends_of_whole if self.is_whole(name) else (low, high)
            found[name] = Fraction(repr(float(low))), Fraction(repr(float(high)))
        return found

    def _never(self, each: Inequality) -> NDArray[np.bool_]:
        """Which cells of the left and the right column hold no two numbers that satisfy an inequality."""
        mask = np.zeros((self.size(each.left), self.size(each.right)), np.bool_)
        if {each.left, each.right} & self.private.keys():
            return mask  # their cells are still to be cut
        (_, most), (least, _) = (self.spans(name) for name in (each.left, each.right))
        most, least = (most - self.is_whole(each.left))[:, None], least[None, :]
        needed = float(each.least)
        rounding = _ROUNDING * (np.abs(most) + np.abs(least) + abs(needed))
        mask[: most.size, : least.size] = most - least < needed - rounding
        return mask

    def _draw_numbers(
        self, codes: Codes, rng: Rng, within: Mapping[str, tuple[float, float]]
    ) -> dict[str, NDArray[np.float64]]:
        """The numbers of every bounded column, which satisfy the inequalities."""
        names = [name for name in self.names if self.is_bounded(name)]
        found = {n: self.draw_column(n, codes[self.names.index(n)], rng, within.get(n)) for n in names}
        if not self.inequalities:
            return found
        ranges = tightest_ranges(self.inequalities, self._ranges(within))
        if ranges is None:
            raise ValueError("where asks for numbers that contradict the constraints.")
        for _ in range(_REDRAWS):
            if not (broken := violates(self.inequalities, found)).any():
                return found
            for name in ranges:
                cells = codes[self.names.index(name), broken]
                found[name][broken] = self.draw_column(name, cells, rng, within.get(name))
        broken = violates(self.inequalities, found)
        lifted = lift(self.inequalities, {n: found[n][broken] for n in ranges}, ranges, self._whole_ones)
        for name, numbers in lifted.items():
            found[name][broken] = numbers
        return found

    def derivation_of(self, name: str) -> tuple[int, NDArray[np.int64]]:
        """The place of the column that determines ``name``, and the cell of ``name`` for each of its labels."""
        source, values = self.dependencies[name]
        origin, column = self.declaration.schema[source], self.declaration.schema[name]
        assert isinstance(origin, Categories)
        if isinstance(column, Categories):
            cells = [category(name, column, values[label]) for label in origin.labels]
        else:
            assert isinstance(column, Bounded)
            numbers = np.array([float(values[label]) for label in origin.labels])
            cells = _bin(numbers, self.edges(name)).tolist()
        return self.names.index(source), np.array(cells, np.int64)

    # --- records -----------------------------------------------------------------------------------------------------

    @property
    def encoder(self) -> Encoder:
        """What reads the modelled columns."""
        return Encoder(as_read(self.declaration, self.dates), self.names)

    def numbers(self, rows: Encoded, name: str) -> NDArray[np.float64]:
        """The entries of a bounded column, within its bounds; NaN for missing ones."""
        return rows.days(name) if name in self.dates else rows.numbers(name)

    def codes(self, rows: Encoded) -> Codes:
        """The cell of each entry; rows that count nowhere are left out, one by one."""
        found, keep = self.every_code(rows)
        return np.ascontiguousarray(found[:, keep])

    def every_code(self, rows: Encoded) -> tuple[Codes, NDArray[np.bool_]]:
        """The cell of each entry, and which rows count."""
        found = np.empty((len(self.names), len(rows)), np.int32)
        for i, name in enumerate(self.names):
            column = self.declaration.schema[name]
            if isinstance(column, Categories):
                found[i] = rows.codes(name)
                continue
            found[i] = self.cells(name, self.numbers(rows, name))
        keep: NDArray[np.bool_] = np.asarray((found >= 0).all(axis=0))
        for columns, mask in self.impossible.items():
            keep &= ~mask[tuple(np.maximum(found[i], 0) for i in columns)]
        return found, keep

    def cells(self, name: str, numbers: NDArray[np.float64]) -> NDArray[np.int64]:
        """The cell of each number of a bounded column; NaN is in the last one."""
        return np.where(np.isnan(numbers), self.size(name) - 1, _bin(numbers, self.edges(name)))

    def values(self, codes: Codes, rng: Rng, within: Mapping[str, tuple[float, float]] | None = None) -> dict[str, Any]:
        """Records of such cells, by column: a label, or a number of its bin, by the shape; missing: ``None``.

        ``within`` says of some bounded columns between which numbers theirs lie, both included.
        """
        schema, found = self.declaration.schema, dict[str, Any]()
        numbers = self._draw_numbers(codes, rng, within or {})
        for name in schema:
            if name in self.names:
                column = schema[name]
                if isinstance(column, Categories):
                    found[name] = np.array(column.labels)[codes[self.names.index(name)]]
                else:
                    found[name] = as_iso_text(numbers[name]) if name in self.dates else numbers[name]
            elif name in self.dependencies:
                source, values = self.dependencies[name]
                origin = schema[source]
                assert isinstance(origin, Categories)
                table = np.array([values[label] for label in origin.labels])
                found[name] = table[codes[self.names.index(source)]]
        return found

    def draw_column(
        self, name: str, cells: NDArray[np.int32], rng: Rng, within: tuple[float, float] | None
    ) -> NDArray[np.float64]:
        """A number of each cell, by the shape; NaN in the cell of missing ones."""
        low, high = self.spans(name)
        at = np.minimum(cells, len(low) - 1)
        low, high = low[at], high[at]
        if within is not None:
            first, last = self._half_open(name, *within)
            low, high = np.maximum(low, first), np.minimum(high, last)
        numbers = self.shape(name).draw(low, high, rng)
        if within is not None:
            numbers = np.clip(numbers, *within)
        return np.where(cells > at, math.nan, numbers)

    def _half_open(self, name: str, low: float, high: float) -> tuple[float, float]:
        """The numbers from low to high, both included, as [low, end)."""
        return (math.ceil(low), math.floor(high) + 1) if self.is_whole(name) else (low, np.nextafter(high, math.inf))

    def between(self, name: str, low: float, high: float) -> NDArray[np.float64]:
        """The share of each cell of a bounded column that lies in [low, high]; none of the missing one."""
        first, last = self.spans(name)
        low, high = self._half_open(name, low, high)
        every = self.shape(name).share(first, last)
        found = self.shape(name).share(np.maximum(first, low), np.minimum(last, high))
        shares = np.divide(found, every, out=np.zeros(len(every)), where=every > 0)
        return np.append(shares, 0.0) if self.may_miss(name) else shares


def _may_miss(column: Bounded) -> bool:
    return column.missing == "drop"


def _bin(numbers: NDArray[np.float64], edges: Sequence[float]) -> NDArray[np.int64]:
    return np.searchsorted(np.asarray(edges)[1:-1], numbers, side="right")


def _rising(column: Any, inner: Any) -> tuple[float, ...]:
    """Edges between the bounds and with them: those of ``inner`` that lie inside, each once."""
    inside = np.unique(inner)
    return (column.low, *inside[(inside > column.low) & (inside < column.high)].tolist(), column.high)


def _refuse_unknown(what: str, odd: Sequence[str], kind: str) -> None:
    if odd:
        raise ValueError(f"{what} names {odd[0]!r}, which the schema does not declare as {kind}.")
