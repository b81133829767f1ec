r"""Fitting a junction tree to noisy counts: from the distribution of most entropy, step by step towards all of them.

Let y_c be unbiased noisy counts of the set c, with variance v_c a cell. From uniform tables P (expected counts, none on
structural zeros) each set in turn moves P to the minimum of

.. math:: \mathrm{KL}(P' \,\|\, P) + \frac{1}{2 \eta v_c} \lVert M_c P' - y_c \rVert_2^2 .

With m = M_c P, the new counts m' of c satisfy log m' + m'/(ηv) = log m + y/(ηv), cell by cell, so

.. math:: m' = \eta v\,\omega(\log m + y/(\eta v) - \log \eta v)

with ω Wright's function; every table that holds c is multiplied by m'/m. This is iterative proportional fitting
(raking) with soft targets, or a proximal point method in Bregman's sense: it stays positive, needs no step size, and
bears noisy counts that are negative or contradict each other. Counts that agree are met in the end by the distribution
of most entropy. Noisy ones should not be met: after T sweeps a set has drawn P towards it with a weight of about
T/(ηv), and stopping there leaves what noise alone would explain to the other counts.

Walking along the tree, in and out of every clique, carries each change to where it is next needed. Everything here is
computed from noisy counts: it is post-processing, and reads no record.

Reference: Censor and Zenios (1997), "Parallel Optimization", on proximal methods with Bregman distances; Burger,
Resmerita and He (2007) on stopping them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import wrightomega

from discreet.synthesis.counting import Columns
from discreet.synthesis.trees import JunctionTree

__all__ = ["Target", "rake"]

Floats = NDArray[np.float64]

_SOFTNESS = 1.0  # η: with the number of sweeps it decides how closely noisy counts are met; decision 0360
_ALONE = 0.05  # of single columns, which are measured well: they are hardly shrunk
_LEAST = 1e-250  # a cell below this is empty for good


@dataclass(frozen=True)
class Target:
    """Noisy counts of a set of columns, and the variance of each."""

    columns: Columns
    counts: Floats
    variance: float


def rake(
    tree: JunctionTree,
    targets: Sequence[Target],
    total: float,
    *,
    possible: Sequence[Floats | None] = (),
    sweeps: int = 60,
    tolerance: float = 1e-4,
    softness: float | None = None,
) -> list[Floats]:
    """The tables of the tree's cliques, which agree on what they share and add up to ``total`` each.

    ``possible`` holds, for each clique, ones where a combination may occur. It stops when a sweep moves less than
    ``tolerance`` of the total in every target.

    >>> from discreet.synthesis.trees import junction_tree
    >>> tree = junction_tree((2, 2), [(0, 1)])
    >>> targets = [Target((0,), np.array([30.0, 10.0]), 1.0), Target((1,), np.array([12.0, 28.0]), 1.0)]
    >>> (table,) = rake(tree, targets, 40.0)
    >>> table.round().tolist()
    [[9.0, 21.0], [3.0, 7.0]]
    """
    walk = _Walk(tree, targets, total, possible, _SOFTNESS if softness is None else softness)
    for _ in range(sweeps):
        if walk.sweep() < tolerance * total:
            break
    return walk.agreeing_tables(total)


class _Walk:
    """One pass after another over the tree; ``tables`` are the counts of cliques when they were last visited."""

    def __init__(
        self,
        tree: JunctionTree,
        targets: Sequence[Target],
        total: float,
        possible: Sequence[Floats | None],
        softness: float,
    ) -> None:
        self.tree, self.softness, self.moved = tree, softness, 0.0
        shapes = [tree.shape(clique) for clique in tree.cliques]
        self.tables = [np.full(shape, total / math.prod(shape)) for shape in shapes]
        self.masks = dict(enumerate(possible))  # each is applied once, as a factor
        self.groups: list[list[tuple[Columns, list[Target]]]] = [[] for _ in tree.cliques]
        for columns, group in group_targets(targets):
            home = tree.home(columns)
            assert home is not None, "every measured set lies in a clique"
            self.groups[home].append((columns, group))

    def sweep(self) -> float:
        """Through every clique and back; the largest change of a target's counts, in all its cells together."""
        self.moved = 0.0
        stack = [(0, -1)]  # a clique, and the one it is entered from
        while stack:
            place, source = stack.pop()
            if source >= 0:
                self._pass(source, place)
            if place > source:  # on the way out: children come later in the order than their parents
                if (mask := self.masks.pop(place, None)) is not None:
                    self.tables[place] *= mask
                for columns, group in self.groups[place]:
                    self._scale(place, columns, group)
                for child in self.tree.children[place]:
                    stack += [(place, child), (child, place)]
        return self.moved

    def _scale(self, place: int, columns: Columns, group: Sequence[Target]) -> None:
        """Move a clique towards all targets within ``columns``, by way of the counts of these columns alone."""
        clique, table = self.tree.cliques[place], self.tables[place]
        before = marginal(table, clique, columns)
        counts = before.copy()
        for target in group:
            self._soften(counts, columns, target)
        multiply(table, clique, columns, _ratio(counts, before))

    def _soften(self, counts: Floats, columns: Columns, target: Target) -> None:
        before = marginal(counts, columns, target.columns)
        soft = (self.softness if len(target.columns) > 1 else min(self.softness, _ALONE)) * target.variance
        with np.errstate(divide="ignore"):
            exponent = np.log(before) + target.counts / soft - math.log(soft)
        after = np.where(before > _LEAST, soft * wrightomega(exponent), 0.0)
        self.moved = max(self.moved, float(np.abs(after - before).sum()))
        multiply(counts, columns, target.columns, _ratio(after, before))

    def _pass(self, source: int, place: int) -> None:
        """Carry what changed from one clique to its neighbour."""
        shared = self.tree.separator(max(source, place))
        new = marginal(self.tables[source], self.tree.cliques[source], shared)
        old = marginal(self.tables[place], self.tree.cliques[place], shared)
        multiply(self.tables[place], self.tree.cliques[place], shared, _ratio(new, old))

    def agreeing_tables(self, total: float) -> list[Floats]:
        """The tables, in agreement, from the root outwards."""
        for place in range(len(self.tables)):
            if place:
                self._pass(self.tree.parents[place], place)
        scale = total / max(float(self.tables[0].sum()), _LEAST)
        return [table * scale for table in self.tables]


def group_targets(targets: Sequence[Target]) -> list[tuple[Columns, list[Target]]]:
    """The targets by the largest sets that hold them: what lies in such a set is scaled on its counts, which are few.

    >>> noisy = [Target(columns, np.zeros(0), 1.0) for columns in [(0,), (1,), (0, 1), (2,)]]
    >>> [(columns, len(group)) for columns, group in group_targets(noisy)]
    [((0, 1), 3), ((2,), 1)]
    """
    found: dict[Columns, list[Target]] = {}
    for target in sorted(targets, key=lambda target: -len(target.columns)):  # stable: subsets keep their order
        home = next((columns for columns in found if set(target.columns) <= set(columns)), target.columns)
        found.setdefault(home, []).append(target)
    return [(columns, group[::-1]) for columns, group in found.items()]


def _ratio(new: Floats, old: Floats) -> Floats:
    return np.divide(new, old, out=np.zeros(np.shape(old)), where=np.asarray(old) > _LEAST)


def marginal(table: Floats, clique: Columns, columns: Columns) -> Floats:
    """The counts of some columns of a clique."""
    axes = tuple(axis for axis, i in enumerate(clique) if i not in columns)
    return np.asarray(table.sum(axis=axes)) if axes else table


def multiply(table: Floats, clique: Columns, columns: Columns, factor: Any) -> None:
    """Multiply a clique's table by a factor that depends on some of its columns, in place."""
    shape = tuple(size if i in columns else 1 for i, size in zip(clique, table.shape, strict=True))
    table *= np.reshape(factor, shape)
