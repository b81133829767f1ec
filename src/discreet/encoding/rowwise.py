"""A function of rows, applied so that a row's result depends on no other row, down to the last bit.

A matrix product rounds a row by how many rows there are and by where it stands among them. Where results are then
counted, voted or compared, one record more could move the results of all others that lie near a tie. So rows are
handed over in blocks of a fixed size, each row at a place that its own content decides; of the others only the values
vary, which a function that treats rows separately does not mix. Where a block fails, each of its rows is asked in a
block full of itself, at the same place: what one record does to the function is that record's matter alone.

Equal rows are asked once.
"""

from __future__ import annotations

import math
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding.containers import as_list, column_types, frame_columns, is_frame
from discreet.mechanisms import records

__all__ = ["BLOCK", "NOTHING", "map_rows", "row_answers"]

BLOCK = 256  # rows handed over at once: enough for fast products, few enough for a handful of records


class _Nothing:
    """The result of a row on which the function fails; it equals nothing else."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = _Nothing()


def map_rows(function: Callable[[Any], Any], rows: Any, size: int) -> list[Any]:
    """One result for each of the first ``size`` rows; ``NOTHING`` where the function fails or there is no row.

    ``rows`` is an array, a frame, a sparse matrix, a tensor, a list, or a tuple of such with a row of a record each.

    >>> map_rows(lambda rows: [1 / x for x in rows], [1, 2, 0, 4], 4)
    [1.0, 0.5, NOTHING, 0.25]
    """
    rows = _columns(rows)
    keys = list(_keys(rows))[:size]
    first = {key: i for i, key in reversed(list(enumerate(keys)))}
    results: dict[bytes, Any] = {}
    for block in _blocks(list(first)):
        results |= _ask(function, rows, {place: (key, first[key]) for place, key in block.items()})
    return [results[key] for key in keys] + [NOTHING] * (size - len(keys))


def _blocks(keys: Sequence[bytes]) -> Iterator[dict[int, bytes]]:
    """Keys by their places, no two of a block at one place."""
    blocks: list[dict[int, bytes]] = []
    taken = [0] * BLOCK  # blocks in which the place is no longer free
    for key in keys:
        place = int.from_bytes(key[:8]) % BLOCK
        if taken[place] == len(blocks):
            blocks.append({})
        blocks[taken[place]][place] = key
        taken[place] += 1
    yield from blocks


def _ask(
    function: Callable[[Any], Any], rows: tuple[Any, ...] | Any, block: dict[int, tuple[bytes, int]]
) -> dict[bytes, Any]:
    filler = next(iter(block.values()))[1]
    at = np.full(BLOCK, filler)
    for place, (_, row) in block.items():
        at[place] = row
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a function says of one record is said to nobody
            results = row_answers(function(_take(rows, at)))
    except Exception:  # one record must not decide what is said of all others
        results = []
    if len(results) == BLOCK:
        return {key: results[place] for place, (key, _) in block.items()}
    if len(block) == 1:
        return {key: NOTHING for key, _ in block.values()}
    return {k: v for place, one in block.items() for k, v in _ask(function, rows, {place: one}).items()}


def row_answers(values: Any) -> list[Any]:
    """One entry a row, in order: of a column, or of a table with a single one. Nothing is asked by an index's label."""
    if is_frame(values):
        [(name, _)] = column_types(values)  # more columns are no column, however many rows there are
        values = values[name]
    elif getattr(values, "ndim", 1) == 2 and values.shape[1] == 1:
        values = values[:, 0]
    listing = values.tolist() if hasattr(values, "tolist") else list(values)
    return listing if isinstance(listing, list) else [listing]  # a single row's answer may have lost its dimension


# --- rows of any container -------------------------------------------------------------------------------------------


def _columns(rows: Any) -> Any:
    if isinstance(rows, tuple):
        return tuple(_columns(part) for part in rows)
    if "sparse" in str(getattr(rows, "layout", "")):  # a tensor
        return rows.to_dense()
    return rows.tocsr() if hasattr(rows, "tocsr") else as_list(rows)


def _take(rows: Any, at: NDArray[np.intp]) -> Any:
    """The rows with these numbers, in a container of the same kind."""
    if isinstance(rows, tuple):
        return tuple(_take(part, at) for part in rows)
    if hasattr(rows, "iloc"):
        return rows.iloc[at]
    if hasattr(rows, "take") and is_frame(rows) and not hasattr(rows, "dtypes"):  # a table of Arrow
        return rows.take(at)
    return [rows[i] for i in at] if isinstance(rows, list) else rows[at]


def _keys(rows: Any) -> Iterator[bytes]:
    """A digest of each row's own content."""
    for content in _contents(rows):
        yield blake2b(content, digest_size=16).digest()


def _contents(rows: Any) -> Iterator[bytes]:
    if isinstance(rows, tuple):
        return (
            b"".join(blake2b(part).digest() for part in parts) for parts in zip(*map(_contents, rows), strict=False)
        )
    if hasattr(rows, "indptr"):
        spans = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
        return (rows.indices[a:b].tobytes() + rows.data[a:b].tobytes() for a, b in spans)
    if hasattr(rows, "detach"):  # a tensor; NumPy knows not all of its types
        flat = rows.detach().cpu().reshape(len(rows), math.prod(rows.shape[1:])).contiguous()
        rows = flat.view(sys.modules["torch"].uint8).numpy()
    if isinstance(rows, np.ndarray) and not rows.dtype.hasobject:
        return (row.tobytes() for row in rows)
    if is_frame(rows):
        return map(_pickle, zip(*map(records.entries, frame_columns(rows)), strict=True))
    return map(_pickle, records.entries(rows))


def _pickle(row: Any) -> bytes:
    try:
        return pickle.dumps(row)
    except Exception:  # an object of its own kind; its name in memory is no other's
        return repr(id(row)).encode()
