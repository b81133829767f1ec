"""Structural zeros: combinations of categories that are declared impossible, as masks over sets of columns.

Rows in them count nowhere, and none is drawn. Everything here is public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.schema import Categories, Schema
from discreet.synthesis.counting import Columns
from discreet.synthesis.raking import rake
from discreet.synthesis.trees import junction_tree

__all__ = ["Impossible", "category", "contradicting_sets", "mask_of", "possible_in"]

Floats = NDArray[np.float64]
Impossible = Mapping[Columns, NDArray[np.bool_]]
_MOST_CELLS = 1 << 28  # of one mask


def category(name: str, column: Any, value: Any) -> int:
    """The place of a label among a column's."""
    if not isinstance(column, Categories) or value not in column.labels:
        raise ValueError(f"{value!r} is no category of {name!r}: impossible and determined values are its labels.")
    return column.labels.index(value)


def mask_of(schema: Schema, names: Sequence[str], places: Columns, values: Sequence[Any]) -> NDArray[np.bool_]:
    """Where the listed combinations of some columns lie; one axis a column, in the order of ``places``."""
    if len(set(names)) < len(names) or not names:
        raise ValueError(f"structural_zeros of {names!r} must be about different columns, at least one.")
    columns = [schema[name] for name in names]
    codes = [_codes(names, columns, combination) for combination in values]
    shape = tuple(len(column.labels) if isinstance(column, Categories) else 1 for column in columns)
    if math.prod(shape) > _MOST_CELLS:
        raise ValueError(f"structural_zeros of {names!r} has {math.prod(shape):,} cells: at most {_MOST_CELLS:,}.")
    mask = np.zeros(shape, np.bool_)
    for code in codes:
        mask[code] = True
    return np.transpose(mask, sorted(range(len(places)), key=lambda k: places[k]))


def _codes(names: Sequence[str], columns: Sequence[Any], values: Any) -> tuple[int, ...]:
    if len(values) != len(columns):
        raise ValueError(f"structural_zeros of {names!r} has an entry of another length.")
    return tuple(category(*each) for each in zip(names, columns, values, strict=True))


def possible_in(clique: Columns, sizes: Sequence[int], zeros: Impossible) -> Floats | None:
    """Ones where a combination of a clique's cells is possible; nothing where all are."""
    mask: Floats | None = None
    for columns, impossible in zeros.items():
        if set(columns) <= set(clique):
            shape = tuple(sizes[i] if i in columns else 1 for i in clique)
            here = np.where(impossible, 0.0, 1.0).reshape(shape)
            mask = here if mask is None else mask * here
    return mask


def contradicting_sets(sizes: tuple[int, ...], zeros: Impossible) -> list[Columns]:
    """A smallest choice of the sets whose zeros together leave no record; empty where some record is possible.

    >>> pairs = np.array([[False, False], [True, True]])
    >>> contradicting_sets((2, 2), {(0,): np.array([True, False]), (0, 1): pairs, (1,): np.zeros(2, bool)})
    [(0,), (0, 1)]
    """
    if _something_is_possible(sizes, zeros):
        return []
    needed = dict(zeros)
    for columns in zeros:
        fewer = {other: mask for other, mask in needed.items() if other != columns}
        if not _something_is_possible(sizes, fewer):
            needed = fewer
    return list(needed)


def _something_is_possible(sizes: tuple[int, ...], zeros: Impossible) -> bool:
    tree = junction_tree(sizes, list(zeros))
    tables = rake(tree, [], 1.0, possible=[possible_in(clique, tree.sizes, zeros) for clique in tree.cliques])
    return bool(tables[0].sum() > 0.5)
