"""What a fit will do, from public facts alone: its budget, its rounds, how large its model may become.

A fit has a fixed course. The shape of each bounded column; the total and every column alone; the noisy errors of all
pairs; the pairs that are worth it; the noisy errors, under the model so far, of all pairs and of the larger sets that
the model keeps together; the sets that are worth it. What is left at the end goes once more to what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from discreet import events
from discreet.adjacency import Adjacency, changed_records
from discreet.encoding import one_row_note
from discreet.errors import number, positive, whole
from discreet.mechanisms.budget import Budget
from discreet.synthesis.counting import Columns, difference_square, share_of_cells
from discreet.synthesis.domain import Domain
from discreet.synthesis.structural_zeros import contradicting_sets
from discreet.synthesis.trees import tree_cells
from discreet.workloads.marginals import subsets

__all__ = ["SynthesisExplanation", "SynthesisPlan"]

_INSIDE = 1 - 2.0**-36  # what is divided stays this far inside, so that no rounding of the parts can exceed it
_MOST_CELLS = 1 << 28  # two gigabytes a copy
_MOST_RECORDS = 1 << 40  # up to which errors are exact: ``spending``
_MOST_NOISE = 10**6  # beyond which the grid of the noise would be too coarse for small shares of the budget
_MOST_SETS = 1 << 23  # sets of three and more columns within those of the workload
_MOST_CANDIDATES = 1 << 13
SHARES = {"columns": 0.25, "first errors": 0.08, "pairs": 0.40, "second errors": 0.07}
SHARES_WITH_SHAPES = {"values": 0.20, "columns": 0.22, "first errors": 0.07, "pairs": 0.36, "second errors": 0.06}


@dataclass(frozen=True)
class SynthesisPlan:
    """A domain, a workload of marginals with weights, a budget, and the limits of the model."""

    domain: Domain
    workload: Mapping[Columns, float]
    budget: Budget
    adjacency: Adjacency
    total: float | None
    max_cells: int

    def __post_init__(self) -> None:
        if self.adjacency == Adjacency.ZERO_OUT:
            raise ValueError("adjacency is 'zero-out', but synthesis counts a blank record too: use another.")
        if self.total is not None:
            number("total", self.total, low=0, high=_MOST_RECORDS, open_low=True)
        if whole("max_cells", self.max_cells, low=1) > _MOST_CELLS:
            raise ValueError(f"max_cells is {self.max_cells:,}, but at most {_MOST_CELLS:,} are held in memory.")
        if tree_cells(self.domain.sizes, self.domain.impossible) > self.max_cells:
            raise ValueError(
                f"The columns alone, or with what structural zeros keep together, have more than max_cells="
                f"{self.max_cells:,} cells: use fewer bins, or raise max_cells (8 bytes each, several times over)."
            )
        if together := contradicting_sets(self.domain.sizes, self.domain.impossible):
            names = " and ".join(str(tuple(self.domain.names[i] for i in columns)) for columns in together)
            raise ValueError(f"structural_zeros of {names} together leave nothing possible.")
        if self.budget.noise_multiplier > _MOST_NOISE:  # which refuses, too, a budget that pays for no Gaussian noise
            raise ValueError(f"epsilon and delta are so small that a count needs noise of more than {_MOST_NOISE:,}.")

    @cached_property
    def rho(self) -> float:
        """The budget as zCDP of Gaussian noise."""
        return 1 / (2 * self.budget.noise_multiplier**2)

    @property
    def event(self) -> events.Event:
        """One Gaussian release: everything measured together costs no more."""
        return events.Gaussian(noise_multiplier=self.budget.noise_multiplier, adjacency=self.adjacency)

    def share(self, name: str) -> float:
        """The budget of a stage."""
        parts = SHARES_WITH_SHAPES if self.domain.columns_to_measure else SHARES
        return self.rho * _INSIDE * parts.get(name, 0.0)

    def with_whole(self, names: Collection[str]) -> SynthesisPlan:
        """The same plan, where a file's own types say which bounded columns are of whole numbers."""
        return replace(self, domain=self.domain.with_whole(names))

    @property
    def pairs(self) -> list[Columns]:
        """The pairs of columns in the workload's sets that fit the model."""
        found = {pair for columns in self.workload for pair in combinations(columns, 2)}
        return sorted(pair for pair in found if self.fits(pair))

    def larger(self, cliques: tuple[Columns, ...]) -> list[Columns]:
        """The sets of three and more in the workload's sets that lie in a clique of the model so far; small ones first,
        where they are too many.
        """
        asked = {part for columns in self.workload for part in subsets(columns) if len(part) > 2}
        order = max(map(len, self.workload))
        found = {
            part
            for clique in cliques
            for size in range(3, order + 1)
            for part in combinations(clique, size)
            if part in asked and self.fits(part)
        }
        return sorted(sorted(found, key=lambda part: (len(part), part))[:_MOST_CANDIDATES])

    def fits(self, columns: Columns) -> bool:
        """Whether the set's cells are within the limit; columns of one cell say nothing."""
        sizes = [self.domain.sizes[i] for i in columns]
        return min(sizes) > 1 and math.prod(sizes) <= self.max_cells

    def explain(self, n: int) -> SynthesisExplanation:
        """The cost, and the error that noise alone brings for ``n`` records."""
        n, sizes = whole("n", n, low=1), self.domain.sizes
        ones = [min(self._expected_error((i,), self.share("columns") / len(sizes)) / n, 1.0) for i in range(len(sizes))]
        pairs = self.pairs
        measured = max(min(len(sizes) - 1, len(pairs)), 1)
        rest = self.rho * _INSIDE - sum(map(self.share, ("values", "columns", "first errors", "second errors")))
        twos = [min(self._expected_error(pair, rest / measured) / n, 1.0) for pair in pairs]
        known = dict(zip(pairs, twos, strict=True)) | {(i,): one for i, one in enumerate(ones)}
        return SynthesisExplanation(
            event=self.event,
            adjacency=self.adjacency,
            columns=dict(zip(self.domain.names, sizes, strict=True)),
            candidates=len(pairs),
            column_error=_mean(ones),
            pair_error=_mean(twos),
            workload_error=_mean([_along_a_tree(columns, known) for columns in self.workload]),
            note=one_row_note(self.domain.declaration),
        )

    def _expected_error(self, columns: Columns, rho: float) -> float:
        """Half the L1 norm of the noise on a set's counts, in records."""
        shape = [self.domain.sizes[i] for i in columns]
        square = difference_square(shape)[changed_records(self.adjacency) == 2]
        return 0.5 * math.sqrt(2 / math.pi) * math.sqrt(float(share_of_cells(shape)) * square / (2 * rho))


def _along_a_tree(columns: Columns, known: Mapping[Columns, float]) -> float:
    """The error of a set whose columns depend on each other along its best pairs: at most the sum of the pairs'."""
    if len(columns) == 1:
        return min(known[columns], 1.0)
    pairs = sorted(known.get(pair, 1.0) for pair in combinations(columns, 2))
    return min(sum(pairs[: len(columns) - 1]), 1.0)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


@dataclass(frozen=True)
class SynthesisExplanation:
    """What a fit costs, and the error that the noise of its measurements brings, before anything is read.

    No error here is a bound. Each is the average total-variation error by noise alone: ``column_error`` of the marginal
    of one column; ``pair_error`` of a pair, if as many pairs are measured as make a tree; ``workload_error`` of the
    workload's sets, as if their columns depended on each other along measured pairs. What the model leaves out comes on
    top: it depends on the data, so that no public fact tells it, and it is most of the error where the budget is large.
    """

    event: events.Event
    adjacency: Adjacency
    columns: Mapping[str, int]
    candidates: int
    column_error: float
    pair_error: float
    workload_error: float
    note: str = ""  # which rows count, where the schema would let more of them

    def __str__(self) -> str:
        cells = ", ".join(f"{name} {size}" for name, size in self.columns.items())
        note = f"\n{self.note}" if self.note else ""
        return (
            f"cost: {self.event} ({self.adjacency})\ncells: {cells}\npairs to choose from: {self.candidates}\n"
            f"error by noise alone: {self.column_error:.4f} a column, {self.pair_error:.4f} a measured pair, "
            f"{self.workload_error:.4f} a set of the workload\n"
            f"no bound: what the model leaves out comes on top, and only the data would tell it{note}"
        )


def workload_of(domain: Domain, asked: Any) -> dict[Columns, float]:
    """A workload as users say it: ``None`` for all sets of three columns, a number for all of so many, a list of lists
    of names, or a mapping of them to weights.
    """
    d = len(domain.names)
    if isinstance(asked, (str, bool)):
        raise ValueError(f"workload is {asked!r}, but must be a number, a list of lists of columns, or a mapping.")
    if asked is None or isinstance(asked, (int, np.integer)):
        order = min(3 if asked is None else whole("workload", asked, low=1), d)
        _check_many(_larger(order) * math.comb(d, order))
        return dict.fromkeys(combinations(range(d), order), 1.0)
    given = asked.items() if isinstance(asked, Mapping) else [(names, 1.0) for names in asked]
    found = {
        tuple(sorted(domain.places([names] if isinstance(names, str) else names))): positive("workload", weight)
        for names, weight in given
    }
    if not found or any(not columns or len(set(columns)) < len(columns) for columns in found):
        raise ValueError("workload must list sets of different columns, at least one.")
    _check_many(sum(_larger(len(columns)) for columns in found))
    top = max(found.values())
    return {columns: max(weight / top, 1e-9) for columns, weight in found.items()}


def _larger(columns: int) -> int:
    """How many sets of three and more there are among so many columns; at least one, itself."""
    return max((1 << columns) - 1 - columns - math.comb(columns, 2), 1)


def _check_many(sets: int) -> None:
    if sets > _MOST_SETS:
        raise ValueError(
            f"workload has more than {_MOST_SETS:,} sets of columns, or so many within its sets: list fewer or smaller."
        )
