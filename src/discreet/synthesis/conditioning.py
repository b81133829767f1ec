"""Other distributions along the same junction tree: given what some columns are, or with public margins.

Everything here is post-processing of a model that may be published: it reads no record and costs nothing.

>>> from discreet.synthesis.trees import junction_tree
>>> tree = junction_tree((2, 2), [(0, 1)])
>>> tables = [np.array([[30.0, 10.0], [50.0, 10.0]])]
>>> condition(tree, tables, {0: np.array([1.0, 0.0])})[0].tolist()
[[30.0, 10.0], [0.0, 0.0]]
>>> rake_to_margins(tree, tables, {(0,): np.array([20.0, 80.0])})[0].round().tolist()
[[15.0, 5.0], [67.0, 13.0]]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.synthesis.counting import Columns
from discreet.synthesis.raking import marginal, multiply
from discreet.synthesis.trees import JunctionTree

__all__ = ["condition", "rake_to_margins"]

Floats = NDArray[np.float64]
_SWEEPS = 200
_CLOSE = 1e-9  # of the total, in all cells of a margin together: near enough to stop
_NEAR = 1e-6  # farther off after all sweeps, the margins contradict each other, or what is impossible


def condition(tree: JunctionTree, tables: Sequence[Floats], factors: Mapping[int, Floats]) -> list[Floats]:
    r"""The tables of :math:`P(x) \prod_i f_i(x_i)`, in agreement; f is one where a column is as asked, zero elsewhere.

    They add up to the expected number of such records.
    """
    changed = [np.array(table) for table in tables]
    for place, factor in factors.items():
        home = tree.home((place,))
        assert home is not None, "every column lies in a clique"
        multiply(changed[home], tree.cliques[home], (place,), factor)
    return _agree(tree, tables, changed)


def rake_to_margins(tree: JunctionTree, tables: Sequence[Floats], margins: Mapping[Columns, Floats]) -> list[Floats]:
    """The nearest tables, by relative entropy, that have these counts: proportional fitting (Deming and Stephan 1940).

    Each set of columns lies in one clique, and all margins have the same total.
    """
    total = float(next(iter(margins.values())).sum())
    current = [table * (total / float(tables[0].sum())) for table in tables]
    for _ in range(_SWEEPS):
        farthest = 0.0
        for columns, goal in margins.items():
            home = tree.home(columns)
            assert home is not None, "the caller asks for sets that lie in a clique"
            counts = marginal(current[home], tree.cliques[home], columns)
            farthest = max(farthest, float(np.abs(counts - goal).sum()) / total)
            changed = [np.array(table) for table in current]
            multiply(changed[home], tree.cliques[home], columns, _ratio(goal, counts))
            current = _agree(tree, current, changed)
        if farthest < _CLOSE:
            return current
    if farthest > _NEAR:
        raise ValueError(
            "margins cannot all be met: they contradict each other, or ask for records that the model excludes."
        )
    return current


def _agree(tree: JunctionTree, before: Sequence[Floats], changed: list[Floats]) -> list[Floats]:
    """Carry changes to all cliques: ``before`` agreed, and says what each separator was."""
    for place in reversed(range(1, len(changed))):  # children come later in the order than their parents
        clique, parent, shared = tree.cliques[place], tree.parents[place], tree.separator(place)
        message = _ratio(marginal(changed[place], clique, shared), marginal(before[place], clique, shared))
        multiply(changed[parent], tree.cliques[parent], shared, message)
    for place in range(1, len(changed)):
        clique, parent, shared = tree.cliques[place], tree.parents[place], tree.separator(place)
        counts = marginal(changed[parent], tree.cliques[parent], shared)
        multiply(changed[place], clique, shared, _ratio(counts, marginal(changed[place], clique, shared)))
    return changed


def _ratio(new: Any, old: Any) -> Floats:
    return np.asarray(np.divide(new, old, out=np.zeros(np.shape(old)), where=np.asarray(old) > 0), np.float64)
