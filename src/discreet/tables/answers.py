"""The answer as a frame of the user's kind: totals over groups, what is shown of them, dates as dates.

Decision 354.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.dates import DAY, moment
from discreet.encoding.values import display_of
from discreet.errors import extra
from discreet.schema import Categories, Unlisted
from discreet.tables.after import Presentation
from discreet.tables.nodes import Column
from discreet.tables.passes import GroupedRows
from discreet.tables.whole_values import holds_whole_numbers

__all__ = ["Totals", "as_frame", "as_table"]

_LARGEST = 2.0**62


@dataclass(frozen=True)
class Totals:
    """Groups, and totals over some of their keys, which are added up of the groups' noisy numbers."""

    size: int
    keys: Mapping[str, list[Any]]  # a key's value in each line
    places: tuple[NDArray[np.int64], ...] = ()  # for each level, where each group's numbers are added

    @classmethod
    def of(cls, size: int, keys: Mapping[str, list[Any]], levels: Sequence[Sequence[str]]) -> Totals:
        """The groups of every level, in the order of the levels; without levels, the groups."""
        if not levels:
            return cls(size, keys)
        found: list[tuple[Any, ...]] = []
        places = []
        for level in levels:
            kept = list(zip(*(held if key in level else [None] * size for key, held in keys.items()), strict=True))
            first = {cell: len(found) + number for number, cell in enumerate(dict.fromkeys(kept))}
            places.append(np.array([first[cell] for cell in kept], np.int64))
            found += list(first)
        columns = zip(*found, strict=True)
        return cls(len(found), dict(zip(keys, map(list, columns), strict=True)), tuple(places))

    @property
    def sizes(self) -> NDArray[np.float64]:
        """How many groups' noise each line holds."""
        if not self.places:
            return np.ones(self.size)
        return np.asarray(sum(np.bincount(places, minlength=self.size) for places in self.places), np.float64)

    def add_totals(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """The noisy numbers of every group and total."""
        if not self.places:
            return noisy
        out = np.zeros((self.size, noisy.shape[1]))
        for places in self.places:
            np.add.at(out, places, noisy)
        return out


def as_frame(
    rows: GroupedRows,
    totals: Totals,
    answers: Mapping[str, Any],
    after: Presentation | None = None,
    ends: Mapping[str, NDArray[np.float64]] | None = None,
    whole: Collection[str] = (),
) -> Any:
    """The answer as a frame; lists of a histogram stay lists. ``ends`` are shown beside what they belong to, and what
    is computed of ``whole`` answers is whole where it can be nothing else.

    In pandas a private key is a column of objects, whatever its type was, which one record decides. Without rows, as
    after LIMIT 0, columns have the types of the whole answer.
    """
    frame = _as_frame(rows, totals, answers, after, ends, whole)
    if after is None or len(frame):
        return frame
    return _as_frame(rows, totals, answers, after.uncut(), ends, whole).head(0)


def _as_frame(
    rows: GroupedRows,
    totals: Totals,
    answers: Mapping[str, Any],
    after: Presentation | None,
    ends: Mapping[str, NDArray[np.float64]] | None,
    whole: Collection[str],
) -> Any:
    pandas = rows.source.pandas
    unlisted = {key for key in rows.keys if isinstance(rows.schema[key], Unlisted) and key not in rows.derived}
    columns: dict[str, Any] = dict(totals.keys)
    if pandas:
        columns |= {key: [display_of(found) for found in columns[key]] for key in unlisted}
    columns |= {
        name: values.tolist() if getattr(values, "ndim", 1) == 2 else values for name, values in answers.items()
    }
    for name, found in (ends or {}).items():
        columns |= {f"{name}_low": found[:, 0], f"{name}_high": found[:, 1]}
    if ends:
        names = (*rows.keys, *answers)
        after = (after or Presentation(names, (tuple(map(Column, names)),))).with_ends(tuple(ends))
    moments: set[str] = set(rows.moments)
    made_whole: set[str] = set()
    if after is not None:
        plain = {
            name: column if isinstance(column, list) else np.asarray(column).tolist()
            for name, column in columns.items()
        }
        columns, moments = after.columns_shown(plain, totals.size), after.moments(rows.moments)
        made_whole = after.whole_columns(_whole_test(rows, whole))
        columns |= {name: _as_integers(columns[name]) for name in made_whole}
    columns |= {name: _moments(columns[name]) for name in moments}
    with extra("tables"):
        if pandas:
            import pandas as pd

            objects = {name: pd.Series(columns[name], dtype=object) for name in columns if name in unlisted}
            empty = {name: pd.array(columns[name], dtype="Int64") for name in made_whole if _is_empty(columns[name])}
            shown = {name: _whole_beside_missing(column) for name, column in columns.items()}
            return pd.DataFrame(shown | objects | empty)
        import polars as pl
    types: dict[str, Any] = {name: pl.Int64 for name in made_whole if _is_empty(columns[name])}
    if not totals.size:
        types = _types_without_rows(rows, unlisted, answers, after) | types
    return pl.DataFrame(columns, strict=False, schema_overrides=types)


def _types_without_rows(
    rows: GroupedRows, unlisted: Collection[str], answers: Mapping[str, Any], after: Presentation | None
) -> dict[str, Any]:
    """The types of private keys, none of which is shown, and of numbers beside them: no value tells them.

    A file's types are public. A frame's may have been taken from a record, so that its keys are text here, whatever
    their type is (decision 293).
    """
    import polars as pl

    kinds: dict[str, Any] = {"text": pl.String, "integer": pl.Int64, "number": pl.Float64}
    types = {key: kinds[rows.source.kinds[key]] if rows.source.order else pl.String for key in unlisted}
    types |= {name: pl.Float64 for name, found in answers.items() if getattr(found, "dtype", None) == np.float64}
    if after is None:
        return types
    shown = zip(after.names, zip(*after.rows, strict=True), strict=True)
    return {name: types[key] for name, nodes in shown for key in types if all(node == Column(key) for node in nodes)}


def as_table(facts: Mapping[str, str]) -> str:
    """Public facts as a table of HTML, for notebooks."""
    lines = [f"<tr><th>{html.escape(name)}</th><td>{html.escape(fact)}</td></tr>" for name, fact in facts.items()]
    return f"<table>{''.join(lines)}</table>"


def _whole_test(rows: GroupedRows, whole: Collection[str]) -> Callable[[str], bool]:
    """What tells which columns of the answer hold whole numbers: some answers with their ends, and some keys."""
    known = {name for answer in whole for name in (answer, f"{answer}_low", f"{answer}_high")}
    declared = {key: rows.schema[key] for key in rows.keys}
    numbers = [key for key, kind in declared.items() if isinstance(kind, Categories) and not _is_of_truths(kind)]
    keys = {key for key in numbers if holds_whole_numbers(rows, key)}
    return (known | keys).__contains__


def _is_of_truths(declared: Categories) -> bool:
    return any(isinstance(value, bool) for value in declared.values)


def _as_integers(values: list[Any]) -> list[Any]:
    """Whole numbers that were computed as doubles; a list with one that is too large stays as it is."""
    if not all(abs(value) < _LARGEST for value in values if type(value) is float):
        return values
    return [round(value) if type(value) is float else value for value in values]


def _is_empty(values: Sequence[Any]) -> bool:
    return all(value is None for value in values)


def _whole_beside_missing(values: Any) -> Any:
    """Whole numbers and truth values as such where one is missing; pandas would make floats, or objects, of them."""
    import pandas as pd

    entries = [value for value in values if value is not None] if isinstance(values, list) else []
    if not entries or len(entries) == len(values):
        return values
    if all(isinstance(value, bool) for value in entries):
        return pd.array(values, dtype="boolean")
    if all(type(value) is int and abs(value) < 2**63 for value in entries):
        return pd.array(values, dtype="Int64")
    return values


def _moments(values: list[float | None]) -> list[Any]:
    """Points in time as such: days, if all are."""
    days = all(value is None or value % DAY == 0 for value in values)
    found = [None if value is None else moment(value) for value in values]
    return [at if at is None or not days else at.date() for at in found]
