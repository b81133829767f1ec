r"""Drawing the rest of records of which some columns are known, each by its own conditional distribution.

Along a junction tree P(x) is the product of P(clique | what it shares with its parent). With the known columns put in,
each clique is a small table by record; messages from the leaves sum out what is not shared (sum-product), so that
drawing from the root outwards follows P(unknown | known) exactly. Where the model holds what is known impossible, a
clique is drawn as if nothing of it were known.

Records that agree take their quantiles from one sequence u + iφ mod 1, φ the golden section: each is uniform, and their
counts scatter less than by chance. No private record is read.

Reference: Koller and Friedman (2009), chapter 10.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.random import Rng
from discreet.synthesis.counting import Codes, Columns
from discreet.synthesis.drawing import cell_numbers, shuffled_order
from discreet.synthesis.raking import marginal
from discreet.synthesis.trees import JunctionTree

__all__ = ["complete_codes"]

Floats = NDArray[np.float64]
_ENTRIES = 1 << 23  # numbers that are held at once: a speed knob
_GOLDEN = (math.sqrt(5) - 1) / 2


def complete_codes(
    tree: JunctionTree,
    tables: Sequence[Floats],
    codes: Codes,
    known: Collection[int],
    rng: Rng,
    factors: Mapping[int, Floats] | None = None,
) -> Codes:
    """The same records with all columns; ``factors`` say by record how likely each cell of a column is beside that.

    >>> from discreet.random import seeded
    >>> from discreet.synthesis.trees import junction_tree
    >>> tree = junction_tree((2, 2), [(0, 1)])
    >>> known = np.array([[0, 1, 1], [0, 0, 0]], np.int32)
    >>> complete_codes(tree, [np.array([[1.0, 0.0], [0.0, 3.0]])], known, {0}, seeded(1)).tolist()
    [[0, 1, 1], [0, 1, 1]]
    """
    cliques = [_Clique(tree, tables, place, frozenset(known)) for place in range(len(tree.cliques))]
    completed, beside = np.array(codes), dict(factors or {})
    step = max(_ENTRIES // sum(clique.width for clique in cliques), 1)
    for start in range(0, completed.shape[1], step):
        part = slice(start, start + step)
        _complete(tree, cliques, completed[:, part], {i: factor[part] for i, factor in beside.items()}, rng)
    return completed


class _Clique:
    """A clique's distribution given what it shares with its parent: known columns first, then free ones."""

    def __init__(self, tree: JunctionTree, tables: Sequence[Floats], place: int, known: frozenset[int]) -> None:
        clique, table, shared = tree.cliques[place], tables[place], tree.separator(place)
        self.known = tuple(i for i in clique if i in known)
        self.free = tuple(i for i in clique if i not in known)
        self.shared = tuple(i for i in self.free if i in shared)
        self.new = tuple(i for i in self.free if i not in shared)
        self.sizes, self.shape = tree.sizes, tree.shape(self.free)
        self.width = math.prod(self.shape)
        given = marginal(table, clique, shared)
        spread = np.reshape(
            given, tuple(size if i in shared else 1 for i, size in zip(clique, table.shape, strict=True))
        )
        conditional = np.divide(table, spread, out=np.zeros(table.shape), where=spread > 0)
        order = [clique.index(i) for i in (*self.known, *self.free)]
        self.table = np.transpose(conditional, order).reshape(-1, *self.shape)
        self.alone = np.asarray(marginal(table, clique, self.free))

    def tables_of(self, codes: Codes) -> Floats:
        """The table of each record."""
        return self.table[cell_numbers(codes, self.known, self.sizes)]

    def align(self, columns: Columns, values: Floats) -> Floats:
        """A table by record over some free columns, to multiply with."""
        shape = tuple(size if i in columns else 1 for i, size in zip(self.free, self.shape, strict=True))
        return values.reshape(len(values), *shape)


def _complete(
    tree: JunctionTree, cliques: list[_Clique], codes: Codes, factors: Mapping[int, Floats], rng: Rng
) -> None:
    homes = {i: tree.home((i,)) for i in factors}
    weights, messages = dict[int, Floats](), dict[int, Floats]()
    for place in reversed(range(len(cliques))):
        clique = cliques[place]
        if not clique.free:
            continue  # of known columns alone: what it says of a record is one number
        beside: list[Floats] = [
            clique.align(cliques[child].shared, messages.pop(child))
            for child in tree.children[place]
            if child in messages
        ]
        beside += [clique.align((i,), factor) for i, factor in factors.items() if homes[i] == place]
        weights[place] = _product(clique, codes, beside)
        if clique.shared:
            axes = tuple(1 + clique.free.index(i) for i in clique.new)
            messages[place] = _scale_message(weights[place].sum(axis=axes))
    for place, table in reversed(weights.items()):
        clique = cliques[place]
        if clique.new:
            _draw(clique, table, codes, rng)


def _product(clique: _Clique, codes: Codes, beside: Sequence[Floats]) -> Floats:
    """The table of each record; where that is empty, the clique's own, or at last what stands beside it."""
    found = clique.tables_of(codes)
    for factor in beside:
        found = found * factor
    for other in (clique.alone, np.ones(clique.shape)):
        empty = ~(found.reshape(len(found), -1).sum(axis=1) > 0)
        if not empty.any():
            break
        found[empty] = other
        for factor in beside:
            found[empty] *= factor[empty]
    return found


def _scale_message(message: Floats) -> Floats:
    """A message by record, the largest entry of each being one; no message where there is nothing."""
    flat = message.reshape(len(message), -1)
    top = flat.max(axis=1, keepdims=True)
    return np.asarray(np.where(top > 0, flat / np.where(top > 0, top, 1.0), 1.0).reshape(message.shape))


def _draw(clique: _Clique, table: Floats, codes: Codes, rng: Rng) -> None:
    """Draw what is new in a clique, given what of it was drawn before."""
    rows = len(table)
    order = [0, *(1 + clique.free.index(i) for i in (*clique.shared, *clique.new))]
    shape = tuple(clique.shape[clique.free.index(i)] for i in clique.new)
    shared = cell_numbers(codes, clique.shared, clique.sizes)
    shares = np.transpose(table, order).reshape(rows, -1, math.prod(shape))[np.arange(rows), shared]
    cumulative = np.cumsum(shares, axis=1)
    empty = ~(cumulative[:, -1] > 0)
    cumulative[empty] = np.arange(1.0, cumulative.shape[1] + 1)
    alike = cell_numbers(codes, (*clique.shared, *clique.known), clique.sizes)
    place = np.empty(rows)
    alike_cells = math.prod(clique.sizes[i] for i in (*clique.shared, *clique.known))
    place[shuffled_order(alike, alike_cells, rng)] = (_unit(rng.words(1)) + np.arange(rows) * _GOLDEN) % 1.0
    chosen = (cumulative <= (place * cumulative[:, -1])[:, None]).sum(axis=1)
    last = cumulative.shape[1] - 1 - np.argmax(np.diff(cumulative, axis=1, prepend=0.0)[:, ::-1] > 0, axis=1)
    for i, cell in zip(clique.new, np.unravel_index(np.minimum(chosen, last), shape), strict=True):
        codes[i] = cell


def _unit(words: Any) -> Floats:
    return np.asarray((words >> np.uint64(11)).astype(np.float64) * 2.0**-53)
