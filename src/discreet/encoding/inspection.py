"""How a file meets its schema, counted without noise, for its owner's eyes alone: what is missing, what is not read as
meant, what lies outside of what is declared, how many rows a unit has.

Nothing here is private. It is for whoever may see the data anyway, before anything is asked of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding.encoder import Encoded, Encoder
from discreet.encoding.engines import quietly
from discreet.encoding.sources import open_source
from discreet.mechanisms.records import entries
from discreet.schema import Bounded, Categories, Column, Dates, Declaration, Schema, Times, Unlisted

__all__ = ["ColumnCounts", "UnitCounts", "UnreadCounts", "count_problems", "count_units", "count_unread_rows"]


@dataclass(frozen=True, slots=True)
class ColumnCounts:
    """Of one declared column: cells that are empty, that spell nothing of its kind, and that lie outside of what is
    declared (beyond the bounds, or in no category)."""

    name: str
    rows: int
    empty: int
    unreadable: int
    outside: int


@dataclass(frozen=True, slots=True)
class UnitCounts:
    """How many units there are, the most rows that one has, and what a cap leaves out."""

    units: int
    most: int
    over: int  # units with more rows than count
    lost: int  # rows that do not count


@dataclass(frozen=True, slots=True)
class UnreadCounts:
    """How many rows there are, in how many of them an entry was not read, and in how many by column."""

    rows: int
    unread: int
    columns: dict[str, int]


def count_unread_rows(data: Any, declared: Declaration, names: tuple[str, ...]) -> UnreadCounts:
    """Rows with an entry that is empty, no number, or no listed category where nothing is declared for others."""
    read = Encoder(declared, names, one_row_a_unit=False).read(data)
    unread = {name: _unread(read, name, declared.schema[name]) for name in names}
    columns = {name: int(cells.sum()) for name, cells in unread.items() if cells.any()}
    return UnreadCounts(len(read), int(np.any([*unread.values()], axis=0).sum()), columns)


def _unread(read: Encoded, name: str, column: Column) -> NDArray[np.bool_]:
    if isinstance(column, Categories):
        return np.asarray(read.codes(name) < 0)
    return np.isnan(np.asarray(read.found[name], np.float64))


def count_problems(data: Any, declared: Declaration) -> list[ColumnCounts]:
    """For each declared column, how its cells meet the declaration."""
    # a time is looked at as its day
    days = {name: Dates(one.first, one.last) for name, one in declared.schema.items() if isinstance(one, Times)}
    known = {
        name: column
        for name, column in {**declared.schema, **days}.items()
        if name != declared.unit
        and (isinstance(column, (Categories, Dates)) or (isinstance(column, Bounded) and not column.auto))
    }
    if not known:
        return []
    facts = Declaration(Schema(known), text=declared.text)
    read, empty = Encoder(facts, tuple(known), one_row_a_unit=False).read(data), _empty(data, tuple(known), declared)
    counts = []
    for name, column in known.items():
        if isinstance(column, Categories):
            codes = read.codes(name)
            listed = (codes >= 0) & (codes < len(column.values))
            unreadable, outside = 0, int((~listed).sum()) - empty[name]
        else:
            values = np.asarray(read.found[name], np.float64)
            unreadable = int(np.isnan(values).sum()) - empty[name]
            outside = int(((values < column.low) | (values > column.high)).sum())
        counts.append(ColumnCounts(name, len(read), empty[name], max(unreadable, 0), max(outside, 0)))
    return counts


def count_units(data: Any, declared: Declaration) -> UnitCounts | None:
    """How many rows units have, and how many of them count; nothing where a row is its own unit."""
    if declared.unit is None:
        return None
    rows = _raw(data, (declared.unit,), declared)[declared.unit].value_counts().field("counts").to_numpy()
    most = declared.max_rows_per_unit
    cap = int(rows.max(initial=1)) if isinstance(most, str) else most
    return UnitCounts(
        len(rows), int(rows.max(initial=0)), int((rows > cap).sum()), int(np.maximum(rows - cap, 0).sum())
    )


def _empty(data: Any, names: tuple[str, ...], declared: Declaration) -> dict[str, int]:
    """How many cells hold nothing, or only blanks."""
    counts = {}
    for name, column in _raw(data, names, declared).items():
        values = entries(column)
        counts[name] = sum(
            value is None or (isinstance(value, str) and not value.strip()) or value != value for value in values
        )
    return counts


def _raw(data: Any, names: tuple[str, ...], declared: Declaration) -> dict[str, Any]:
    """Columns as the file has them."""
    source = open_source(data, Schema({name: Unlisted() for name in names}), None, text=declared.text)
    table = quietly(source.frame.to_arrow_table)
    return {name: table.column(own).combine_chunks() for name, own in source.names.items()}
