"""Columns as arrays: numbers as doubles, text and identifiers as the numbers of the different words. One entry at a
time.

Nothing here fails because of an entry: what is no number is NaN, what is no text is the word -1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.dates import seconds
from discreet.encoding.containers import kind_of
from discreet.encoding.values import identity, label, number
from discreet.mechanisms.records import check_container, doubles, element_type, entries
from discreet.schema import Bounded, Categories

__all__ = [
    "Words",
    "check_type",
    "clip_numbers",
    "codes",
    "identities",
    "moments",
    "of_arrow",
    "spelled_doubles",
    "texts",
]


class Words(NamedTuple):
    """Which word each entry is, -1 for a missing one, and the different words."""

    at: NDArray[np.int64]
    words: list[Any]


def check_type(name: str, values: Any, *, dates: bool = False) -> None:
    """Refuse a container whose type, a public fact, holds neither numbers nor text, or numbers where ``dates`` are
    declared: who counts from another day would be answered wrongly. A list states none.

    So is one that does not hold one entry per row: a number, a text, an iterator, a table, a sparse matrix.
    """
    if not hasattr(type(values), "__len__") or getattr(values, "ndim", 1) != 1:
        raise ValueError(
            f"Column {name!r} is a {type(values).__name__}, but must be a list or an array with one entry per row."
        )
    check_container(values, f"Column {name!r}")
    kind = element_type(values)
    if dates:
        if kind is not None and kind_of(kind) == "numbers":
            raise ValueError(f"Column {name!r} has type {kind}, but must hold dates, times or text: cast it first.")
        return
    if kind is not None and kind_of(kind) not in ("numbers", "text", "objects"):
        raise ValueError(
            f"Column {name!r} has type {kind}, but must hold numbers, truth values or text: cast it first."
        )


def spelled_doubles(values: Any, *, truth: bool = False) -> NDArray[np.float64]:
    """Entries as numbers, or truth values, by the grammar of ``values``; NaN for what is none."""
    return doubles(values, partial(number, truth=truth))


def moments(values: Any) -> NDArray[np.float64]:
    """Entries as seconds since 1970: dates, times, or text that spells one; NaN for what is none.

    >>> moments(np.array(["1970-01-02", "NaT"], "M8[s]")).tolist(), moments(["1970-01-01 00:01", "soon"]).tolist()
    ([86400.0, nan], [60.0, nan])
    """
    values = values.to_arrow() if hasattr(values, "to_arrow") else values  # of polars
    ticks, unit = _ticks(values)
    if ticks is None:
        found = (seconds(value) for value in entries(values))
        return np.array([math.nan if moment is None else moment for moment in found], np.float64)
    # microseconds, as engines have them; in doubles, for a far one is beyond 64 bits
    micros = np.floor_divide(ticks, 1000) if unit == "ns" else ticks.astype(np.float64) * _MICROSECONDS[unit]
    return np.where(ticks == _MISSING, np.nan, micros / 1e6)


_MISSING = np.iinfo(np.int64).min
_MICROSECONDS = {"D": 86_400e6, "s": 1e6, "ms": 1e3, "us": 1.0}


def _ticks(values: Any) -> tuple[NDArray[np.int64] | None, str]:
    """The whole numbers that stand for moments in NumPy's and Arrow's types of them, and what they count."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        unit = np.datetime_data(values.dtype)[0]
        values = values if unit in (*_MICROSECONDS, "ns") else values.astype("M8[us]")
        return values.astype(np.int64), np.datetime_data(values.dtype)[0]
    if not hasattr(values, "to_pylist"):
        return None, ""
    import pyarrow as pa

    kind = values.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        return None, ""
    unit = kind.unit if pa.types.is_timestamp(kind) else "D" if pa.types.is_date32(kind) else "ms"
    whole = values.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64()).cast(pa.int64())
    return np.asarray(whole.fill_null(_MISSING)), unit


def texts(values: Any) -> Words:
    """Entries as labels, each by itself: one that is missing makes floats, or objects, of whole numbers."""
    return _words(map(label, _plain(values)))


def identities(values: Any) -> Words:
    """Entries as identifiers: two are the same word if and only if they name one unit."""
    return _words(map(identity, _plain(values)))


def of_arrow(column: Any) -> Words:
    """An Arrow column of text. Bytes that are none are a word of their own, which is no label."""
    encoded = column.combine_chunks().dictionary_encode()
    found = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return Words(found, list(entries(encoded.dictionary)))


def clip_numbers(column: Bounded, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers inside the bounds, infinities too, whole ones where that is declared; a missing one as declared, or NaN.

    >>> clip_numbers(Bounded(0, 9, whole=True), np.array([2.5, 2.4, np.inf, np.nan])).tolist()
    [3.0, 2.0, 9.0, nan]
    """
    filled = numbers if column.missing == "drop" else np.where(np.isnan(numbers), column.missing, numbers)
    inside = np.clip(filled, column.low, column.high)
    return np.asarray(np.floor(inside + 0.5) if column.whole else inside)


def codes(column: Categories, found: NDArray[np.float64] | Words) -> NDArray[np.int64]:
    """Which label each entry is: that of ``other`` for what is none of them, or -1."""
    elsewhere = -1 if column.other is None else len(column.values)
    if isinstance(found, Words):
        places: dict[Any, int] = {label: i for i, label in enumerate(column.labels)}
        table = np.array([*(places.get(word, elsewhere) for word in found.words), elsewhere], np.int64)
        return np.asarray(table[found.at])  # -1 is the last
    labels = np.array([float(label) for label in column.labels])
    order = np.argsort(labels)
    at = np.minimum(np.searchsorted(labels[order], found), len(labels) - 1)
    return np.asarray(np.where(labels[order][at] == found, order[at], elsewhere), np.int64)


def _plain(values: Any) -> Iterable[Any]:
    """Entries as Python's objects where the container is typed."""
    return values.tolist() if isinstance(values, np.ndarray) else entries(values)


def _words(found: Iterable[str | None]) -> Words:
    seen: dict[str, int] = {}
    at = [-1 if word is None else seen.setdefault(word, len(seen)) for word in found]
    return Words(np.array(at, np.int64), list(seen))
