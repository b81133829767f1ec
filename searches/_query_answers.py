"""Whether an answer is what plain DuckDB answers, in all that is seen but the noise."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

from searches._queries import Query
from searches._query_groups import excluded_group

__all__ = ["difference", "kinds", "plain", "unlike_kinds"]


def difference(query: Query, names: list[str], rows: list[Any], expected: list[Any]) -> str:
    """In what the answer differs, or nothing."""
    if len(names) != query.shown or any(w is not None and w != n for n, w in zip(names, query.names, strict=True)):
        return f"columns are called {names}, not {query.names}"
    if query.private:  # small groups are not shown, and there is more noise
        loud = [max(2.0, 100 * most) for most in query.wide]
        known = [row for row in rows if any(_alike(row, other[: query.shown], query.loose, loud) for other in expected)]
        return "" if known == rows else "a row that DuckDB does not have"
    if query.empty_groups:
        return _as_sets(query, rows, expected)
    last = None if query.limit is None else query.offset + query.limit
    wanted = expected[query.offset : last]
    if len(rows) != len(wanted):
        return f"{len(rows)} rows, not {len(wanted)}"
    known = [other for other in expected if not _is_placed_by_noise(query, other)]
    noise = [other for other in expected if _is_placed_by_noise(query, other)]
    starts = range(max(0, query.offset - len(noise)), query.offset + 1)  # how many of them OFFSET has left out
    return min((_misplaced(query, rows, wanted, known, start, noise) for start in starts), key=len)


def _is_placed_by_noise(query: Query, other: Sequence[Any]) -> bool:
    """Whether the first noisy key of its order is a NULL, as an average of no rows is in DuckDB: here it is noise, so
    that the row stands anywhere among those with the same keys before it."""
    return len(_exact_keys(query, other)) < len(query.exact_order) and _first_noisy_key(query, other) is None


def _misplaced(query: Query, rows: list[Any], wanted: list[Any], known: list[Any], start: int, noise: list[Any]) -> str:
    """The first row that is not in its place, or nothing: ``known`` rows from ``start`` on, ``noise`` between."""
    left, floating, place = list(known), list(noise), start
    for row, here in zip(rows, wanted, strict=True):
        keys = _exact_keys(query, here)
        match = next((other for other in left if _fits(query, row, known[place : place + 1], other)), None)
        if match is not None and _exact_keys(query, match) == keys:
            left.remove(match)
            place += 1
            continue
        match = next((other for other in floating if _shows(query, row, other)), None)
        if match is None or _exact_keys(query, match) != keys:
            return f"no row {row} belongs here, where DuckDB has {here}"
        floating.remove(match)
    return ""


def _fits(query: Query, row: Sequence[Any], place: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether a row is another of DuckDB's, which may stand in this place: what they are sorted by is equal, up to the
    first key that noise decides."""
    if not place or not _shows(query, row, other) or _exact_keys(query, place[0]) != _exact_keys(query, other):
        return False
    one, two = (_first_noisy_key(query, each) for each in (place[0], other))
    return _near(one, two, False, 4.0)


def _shows(query: Query, row: Sequence[Any], other: Sequence[Any]) -> bool:
    return _alike(row, other[: query.shown], query.loose, query.wide)


def _exact_keys(query: Query, other: Sequence[Any]) -> Sequence[Any]:
    """What it is sorted by, before the first key that noise decides."""
    exact = [*query.exact_order, False].index(False)
    return other[query.shown : query.shown + exact]


def _first_noisy_key(query: Query, other: Sequence[Any]) -> Any:
    """None where noise decides no key."""
    rest = other[query.shown + len(_exact_keys(query, other)) :]
    return rest[0] if rest else None


def _as_sets(query: Query, rows: list[Any], expected: list[Any]) -> str:
    """Every row of DuckDB's is here; others here are groups of no rows, which no condition excludes."""
    left = list(rows)
    for other in expected:
        match = next((row for row in left if _alike(row, other[: query.shown], query.loose, query.wide)), None)
        if match is not None:
            left.remove(match)
        else:
            return f"there is no row {other[: query.shown]}"
    excluded = excluded_group(query, left)
    return "" if excluded is None else f"the group of {excluded} is one that WHERE excludes"


def _alike(row: Sequence[Any], other: Sequence[Any], loose: Sequence[bool], wide: Sequence[float]) -> bool:
    return all(map(_near, row, other, loose, wide))


def _near(value: Any, truth: Any, loose: bool, wide: float) -> bool:
    if truth is None or value is None:
        return (truth is None) if loose else (value is truth)
    if isinstance(value, bool) or isinstance(truth, bool):
        return value is truth
    if isinstance(value, float) and isinstance(truth, float):
        return abs(value - truth) <= (wide + 3e-3 * abs(truth) if wide else 1e-12 * abs(truth))
    if isinstance(value, list) and isinstance(truth, list):
        return len(value) == len(truth) and all(
            _near(one, two, loose, wide) for one, two in zip(value, truth, strict=True)
        )
    return type(value) is type(truth) and bool(value == truth)


def plain(value: Any) -> Any:
    """Numbers as floats, points in time as such, what is missing as None: kinds that a person tells apart."""
    if isinstance(value, (list, np.ndarray)):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float, decimal.Decimal)):
        return float(value)
    if isinstance(value, dt.datetime):
        return dt.datetime(*value.timetuple()[:6])
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day)
    return value


# --- kinds of columns ------------------------------------------------------------------------------------------------

# Whole numbers are shown as such though a function of DuckDB's returns doubles, and a day that is cut to its month
# stays a day (decision 354); where nothing has a value, there is no kind.
ALIKE = {("whole", "real"), ("day", "time")}
_OF_TYPES = {
    "BOOLEAN": "truth",
    "DOUBLE": "real",
    "FLOAT": "real",
    "VARCHAR": "text",
    "DATE": "day",
    "TIMESTAMP": "time",
}


def unlike_kinds(frame: Any, types: Sequence[Any]) -> str:
    """In which kinds of columns an answer differs from plain DuckDB's types, or nothing."""
    ours, theirs = kinds(frame), [_kind_of_type(str(kind)) for kind in types][: len(frame.columns)]
    pairs = zip(ours, theirs, strict=True)
    unlike = [pair for pair in pairs if pair not in ALIKE and pair[0] != pair[1] and pair[0] != "nothing"]
    return f"columns hold {ours}, not {theirs}" if unlike else ""


def kinds(frame: Any) -> list[str]:
    """The kind of each column of an answer: whole, real, text, truth, day, time, list, or nothing."""
    if not isinstance(frame, pd.DataFrame):
        return [_kind(kind) for kind in frame.schema.dtypes()]
    empty = {name for name in frame.columns if frame[name].isna().all() and str(frame[name].dtype) != "Int64"}
    held = pl.from_pandas(frame).schema  # where nothing has a value, pandas has no type to speak of
    return ["nothing" if name in empty else _kind(kind) for name, kind in held.items()]


def _kind(kind: Any) -> str:
    tests = {
        "truth": kind == pl.Boolean,
        "whole": kind.is_integer(),
        "real": kind.is_float() or kind.is_decimal(),
        "text": kind == pl.String,
        "day": kind == pl.Date,
        "time": kind == pl.Datetime,
        "list": kind == pl.List,
        "nothing": kind == pl.Null,
    }
    return next(name for name, holds in tests.items() if holds)


def _kind_of_type(name: str) -> str:
    if name.endswith("]"):
        return "list"
    if name.endswith("INT") or name == "INTEGER":
        return "whole"
    return "real" if name.startswith("DECIMAL") else _OF_TYPES[name]
