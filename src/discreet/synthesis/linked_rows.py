r"""Two tables as roots with their children, and how much of a root counts.

A *root* is a key of the parent table: its first row there, and at most ``most`` of the rows of the child table that
have that key: the first by the declared order, or as they stand in the file. Which rows those are depends on the root's
own rows alone, so that one root more or less changes nothing of another.

==========================  ===========================================================================================
private data                meaning
==========================  ===========================================================================================
a key twice among parents   the first row counts, as of every unit
a missing key               all missing ones are one key
a child without its parent  counts nowhere
an unlisted category        the child is left out before children are counted
a structural zero           the child is left out of those that count
a parent that counts        none of the root's rows counts
nowhere
==========================  ===========================================================================================

A root's m rows share one whole number, as evenly as whole numbers can: so all its rows together weigh what one record
weighs elsewhere (``spending`` has what follows for sensitivities).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import Encoded
from discreet.encoding.columns import Words

__all__ = ["ONE", "LinkedRows", "link_rows"]

ONE = 1 << 12  # what the rows of a root share: a power of two, far above any number of children
Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LinkedRows:
    """One row a root, and its children, in order. They are private."""

    roots: Encoded
    children: Encoded
    root_of: Places  # of each child; rising

    @cached_property
    def counts(self) -> Places:
        """How many children each root has."""
        return np.bincount(self.root_of, minlength=len(self.roots))

    @cached_property
    def first(self) -> Places:
        """The place of each root's first child, or where it would be."""
        return np.append(0, np.cumsum(self.counts)[:-1]) if len(self.counts) else self.counts

    @cached_property
    def position(self) -> Places:
        """Which of its root's children each is, from zero."""
        return np.arange(len(self.root_of)) - self.first[self.root_of]

    def weights(self, skipped: int = 0) -> Places:
        """What each child has of ``ONE``, which those of a root share; of the first ones that are skipped, nothing.

        >>> rows = LinkedRows(Encoded({}, 2, {}), Encoded({}, 4, {}), np.array([0, 1, 1, 1]))
        >>> rows.weights().tolist(), rows.weights(skipped=1).tolist()
        ([4096, 1365, 1365, 1366], [0, 0, 2048, 2048])
        """
        sharing = np.maximum(self.counts[self.root_of] - skipped, 1)
        turn = self.position - skipped
        return np.where(turn < 0, 0, ONE * (turn + 1) // sharing - ONE * turn // sharing)

    def keep(self, roots: NDArray[np.bool_], children: NDArray[np.bool_]) -> LinkedRows:
        """Without some roots, whose children go too, and without some children."""
        stays = children & roots[self.root_of]
        number = np.cumsum(roots) - 1
        return LinkedRows(
            self.roots.rows(np.flatnonzero(roots)),
            self.children.rows(np.flatnonzero(stays)),
            number[self.root_of[stays]],
        )


def link_rows(
    parents: Encoded,
    parent_keys: Words,
    children: Encoded,
    child_keys: Words,
    listed: NDArray[np.bool_],
    order: NDArray[np.float64] | None,
    most: int,
) -> LinkedRows:
    """Roots with at most so many children each, of those that are ``listed``; missing entries of ``order`` are last."""
    root_keys, rows = np.unique(_numbers(parent_keys, parent_keys), return_index=True)
    row_order = np.argsort(rows)  # roots stand as their first rows do
    keys = _numbers(child_keys, parent_keys)
    at = np.minimum(np.searchsorted(root_keys, keys), max(len(root_keys) - 1, 0))
    has_parent = root_keys[at] == keys if len(root_keys) else np.zeros(len(keys), np.bool_)
    rank = np.empty(len(rows), np.int64)
    rank[row_order] = np.arange(len(rows))
    places = np.flatnonzero(has_parent & listed)
    roots = rank[at[places]]
    by = (places, roots) if order is None else (places, order[places], roots)
    sort = np.lexsort(by)
    places, roots = places[sort], roots[sort]
    every = LinkedRows(parents.rows(rows[row_order]), children.rows(places), roots)
    return every.keep(np.ones(len(rows), np.bool_), every.position < most)


def _numbers(keys: Words, known: Words) -> Places:
    """Each key as its place among the words of ``known``; a missing one after them all, one that is none of them -1."""
    place = {word: i for i, word in enumerate(known.words)}
    numbers = np.array([*(place.get(word, -1) for word in keys.words), len(known.words)], np.int64)
    return np.asarray(numbers[keys.at])
