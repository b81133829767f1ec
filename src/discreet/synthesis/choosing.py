r"""Which sets of columns to measure, and how to divide the budget among them; all from noisy errors.

Measuring set i with noise τ_i a cell leaves an error of about a_i τ_i in its place, a_i = √(2/π) n_i for n_i cells; it
costs p_i/(2τ_i²), p_i = Π (1 - 1/d). For a budget ρ the least Σ w_i a_i τ_i is at ρ_i ∝ y_i = (w_i a_i √p_i)^(2/3), and
is (Σ y)^{3/2}/√(2ρ). So a selection S with noisy errors e is worth

.. math:: \sum_{i \in S} w_i e_i - \Bigl(\sum_{i \in S} y_i\Bigr)^{3/2} / \sqrt{2\rho},

and sets are taken in the order of w_i e_i / y_i as long as that grows and the junction tree stays within its size. The
subsets of what is taken are measured too: a residual says nothing of what its subsets tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

from discreet.synthesis.counting import Columns, closure, share_of_cells
from discreet.synthesis.trees import tree_cells

__all__ = ["choose", "divide_budget", "weigh"]

_PATIENCE = 20  # sets that would not pay, before the search ends


def weigh(workload: Mapping[Columns, float], sets: Sequence[Columns]) -> dict[Columns, float]:
    """How much of the workload a set touches: Σ over its sets r of weight × |c ∩ r|, the largest being 1."""
    columns: dict[int, float] = {}
    for r, weight in workload.items():
        for i in r:
            columns[i] = columns.get(i, 0.0) + weight
    found = {c: sum(columns.get(i, 0.0) for i in c) for c in sets}
    top = max(found.values(), default=1.0) or 1.0
    return {c: value / top for c, value in found.items()}


def choose(
    errors: Mapping[Columns, float],
    weights: Mapping[Columns, float],
    sizes: Sequence[int],
    rho: float,
    kept: Sequence[Columns],
    max_cells: int,
) -> list[Columns]:
    """The sets that are worth measuring, beside those that the tree already keeps together.

    >>> errors = {(0, 1): 900.0, (0, 2): 5.0, (1, 2): 800.0}
    >>> choose(errors, dict.fromkeys(errors, 1.0), (2, 2, 2), 0.1, [], 100)
    [(0, 1), (1, 2)]
    """
    effort = {c: _effort(weights[c], c, sizes) for c in errors}
    worth = {c: weights[c] * errors[c] for c in errors}
    chosen, gained, efforts, best, missed = list[Columns](), 0.0, 0.0, 0.0, 0
    for c in sorted(errors, key=lambda c: -worth[c] / effort[c]):
        value = gained + worth[c] - (efforts + effort[c]) ** 1.5 / math.sqrt(2 * rho)
        if value <= best:
            missed += 1
            if missed > _PATIENCE:
                break
        elif tree_cells(sizes, [*kept, *chosen, c]) <= max_cells:
            chosen.append(c)
            gained, efforts, best = gained + worth[c], efforts + effort[c], value
    return chosen


def divide_budget(
    sets: Sequence[Columns],
    weights: Callable[[Columns], float],
    sizes: Sequence[int],
    rho: float,
    known: Collection[Columns] = (),
) -> dict[Columns, float]:
    """A budget for each residual of the sets and their subsets, by the rule above; none for those that are known."""
    shares = {
        part: _effort(sum(weights(c) for c in sets if set(part) <= set(c)), part, sizes)
        for part in closure(sets)
        if all(sizes[i] > 1 for i in part) and part not in known
    }
    every = sum(shares.values())
    return {part: rho * share / every for part, share in shares.items()}


def _effort(weight: float, columns: Columns, sizes: Sequence[int]) -> float:
    shape = [sizes[i] for i in columns]
    noise = math.sqrt(2 / math.pi) * math.prod(shape) * math.sqrt(share_of_cells(shape))
    return max(float((weight * noise) ** (2 / 3)), 1e-9)
