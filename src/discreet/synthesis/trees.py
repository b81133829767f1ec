"""Junction trees: which columns must be kept together so that given sets of columns each lie inside one clique.

The sets make a graph; a column is eliminated after another, the one whose clique is smallest first, and what was its
neighbourhood becomes a clique. Cliques come with their parents, root first: the columns a clique shares with all
earlier ones lie in its parent (running intersection), so that tables of cliques that agree on what they share make one
distribution.

Reference: Koller and Friedman (2009), chapter 10.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from discreet.synthesis.counting import Columns

__all__ = ["JunctionTree", "junction_tree", "tree_cells"]


@dataclass(frozen=True)
class JunctionTree:
    """Cliques, each with the place of its parent; the root, the first, is its own."""

    sizes: tuple[int, ...]
    cliques: tuple[Columns, ...]
    parents: tuple[int, ...]

    @cached_property
    def cells(self) -> int:
        """Of all cliques together."""
        return sum(math.prod(self.shape(clique)) for clique in self.cliques)

    def shape(self, columns: Columns) -> tuple[int, ...]:
        """How many cells each of the columns has."""
        return tuple(self.sizes[i] for i in columns)

    def separator(self, place: int) -> Columns:
        """What a clique shares with its parent; the root, nothing."""
        if not place:
            return ()
        return tuple(i for i in self.cliques[place] if i in self.cliques[self.parents[place]])

    def home(self, columns: Columns) -> int | None:
        """The smallest clique that holds the columns."""
        wanted = set(columns)
        found = [place for place, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(found, key=lambda place: math.prod(self.shape(self.cliques[place])), default=None)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Of each clique."""
        return tuple(
            tuple(child for child in range(1, len(self.parents)) if self.parents[child] == place)
            for place in range(len(self.cliques))
        )


def junction_tree(sizes: Sequence[int], sets: Iterable[Columns]) -> JunctionTree:
    """A tree whose cliques hold the sets; every column is in one.

    >>> tree = junction_tree((2, 2, 2, 2), [(0, 1), (1, 2)])
    >>> tree.cliques, tree.parents, tree.cells
    (((0, 1), (1, 2), (3,)), (0, 0, 0), 10)
    """
    return _junction_tree(tuple(sizes), _eliminate(sizes, sets))


def tree_cells(sizes: Sequence[int], sets: Iterable[Columns]) -> int:
    """How many cells that tree has."""
    return sum(math.prod(sizes[i] for i in clique) for clique in _eliminate(sizes, sets))


def _eliminate(sizes: Sequence[int], sets: Iterable[Columns]) -> list[frozenset[int]]:
    """The largest cliques, in the order of elimination."""
    neighbours: list[set[int]] = [set() for _ in sizes]
    for columns in sets:
        for i in columns:
            neighbours[i].update(columns)
    for i, around in enumerate(neighbours):
        around.discard(i)
    left, found = set(range(len(sizes))), list[frozenset[int]]()
    weights = {i: _weight(sizes, i, neighbours) for i in left}
    while left:
        column = min(left, key=lambda i: (weights[i], i))
        around = neighbours[column] & left
        clique = frozenset(around | {column})
        if not any(clique <= other for other in found):
            found.append(clique)
        left.discard(column)
        for i in around:
            neighbours[i] |= around - {i}
            neighbours[i].discard(column)
        for i in around:
            weights[i] = _weight(sizes, i, neighbours)
    return found


def _weight(sizes: Sequence[int], column: int, neighbours: list[set[int]]) -> int:
    return math.prod(sizes[i] for i in neighbours[column]) * sizes[column]


def _junction_tree(sizes: tuple[int, ...], cliques: list[frozenset[int]]) -> JunctionTree:
    """Each clique hangs on the earlier one that shares most: a maximum spanning tree, which is a junction tree."""
    root = max(range(len(cliques)), key=lambda place: (math.prod(sizes[i] for i in cliques[place]), -place))
    order, parents, left = [root], [0], [place for place in range(len(cliques)) if place != root]
    while left:
        overlaps = [(len(cliques[new] & cliques[old]), -new, -k) for new in left for k, old in enumerate(order)]
        _, new, parent = max(overlaps)
        order.append(-new)
        parents.append(-parent)
        left.remove(-new)
    return JunctionTree(sizes, tuple(tuple(sorted(cliques[place])) for place in order), tuple(parents))
