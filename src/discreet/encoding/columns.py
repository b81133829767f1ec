"""Columns as arrays: numbers as doubles, text and identifiers as the numbers of the different words. One entry at a
time.

Nothing here fails because of an entry: what is no number is NaN, what is no text is the word -1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet.encoding.containers import kind_of
from discreet.encoding.values import identity, label, number
from discreet.mechanisms.records import check_container, element_type, entries, quiet_doubles
from discreet.schema import Bounded, Categories

__all__ = ["Words", "check_type", "clipped", "codes", "doubles", "identities", "of_arrow", "texts"]


class Words(NamedTuple):
    """Which word each entry is, -1 for a missing one, and the different words."""

    at: NDArray[np.int64]
    words: list[Any]


def check_type(name: str, values: Any) -> None:
    """Refuse a container whose type, a public fact, holds neither numbers nor text; a list states none.

    So is one that does not hold one entry a row: a number, a text, an iterator, a table, a sparse matrix.
    """
    if not hasattr(type(values), "__len__") or getattr(values, "ndim", 1) != 1:
        raise ValueError(
            f"Column {name!r} is a {type(values).__name__}, but must be a list or an array with one entry a row."
        )
    check_container(values, f"Column {name!r}")
    kind = element_type(values)
    if kind is not None and kind_of(kind) not in ("numbers", "text", "objects"):
        raise ValueError(
            f"Column {name!r} has type {kind}, but must hold numbers, truth values or text: cast it first."
        )


def doubles(values: Any) -> NDArray[np.float64]:
    """Entries as numbers, by the grammar of ``values``; NaN for what is none."""
    kind = getattr(values, "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind in "biuf":
        return quiet_doubles(np.asarray(values))  # a long double may be beyond all doubles
    return np.array([number(value) for value in entries(values)], np.float64)


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


def clipped(column: Bounded, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Numbers inside the bounds, infinities too; a missing one as declared, or NaN."""
    filled = numbers if column.missing == "drop" else np.where(np.isnan(numbers), column.missing, numbers)
    return np.asarray(np.clip(filled, column.low, column.high))


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
