"""What the fit of two linked tables will do, from public facts alone: three models of cells, and their budgets.

=========  ==========================================  ================================================================
model      its columns                                 a row, of which a root has one
=========  ==========================================  ================================================================
roots      the parent's, and the number of children    the root
first      those, and a child's                        a root with its first child
later      those of *first*, and another child's       a root with a child after the first, beside the *relative* of
                                                       that child; those of a root share its weight
=========  ==========================================  ================================================================

The relative is the child before where children come in a declared order, and the first one otherwise. Of the order's
column a later child has the *gap* to the child before, which is never negative.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import events
from discreet.adjacency import Adjacency
from discreet.mechanisms.budget import Budget
from discreet.schema import Bounded, Categories, Declaration, Schema
from discreet.synthesis.counting import Columns
from discreet.synthesis.domain import Domain, PrivateBins
from discreet.synthesis.plan import SynthesisPlan, workload_of

__all__ = ["GAP", "JoinedColumns", "LinkedPlan", "joined_columns", "with_count"]

GAP = "gap"
_ROOTS = 0.4  # of the budget for the model of roots; the rest is for children
_VALUES = 0.08  # of that for the shapes of the children's columns of numbers, if there are any
_FIRST = 0.45  # of what is left, for the model of first children, where there are later ones
_LEAST_LATER = 2  # children that a root has where there is a later one


@dataclass(frozen=True)
class JoinedColumns:
    """Columns of several tables side by side, as ``LearningRun`` asks for them."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    impossible: Mapping[Columns, NDArray[np.bool_]]
    missing: frozenset[str]

    columns_to_measure = ()

    def may_miss(self, name: str) -> bool:
        """Whether a column's last cell is that of missing entries."""
        return name in self.missing


def joined_columns(roots: Domain, fewest: int, *children: Domain, gap: Domain | None = None) -> JoinedColumns:
    """Columns of roots with so many children at least, and of some of these; of the last one's order, the ``gap``."""
    names, sizes, missing = list[str](), list[int](), set[str]()
    impossible = dict[Columns, NDArray[np.bool_]]()
    for number, domain in enumerate((roots, *children)):
        is_last = number == len(children)
        for columns, mask in domain.impossible.items():
            impossible[tuple(len(names) + i for i in columns)] = mask
        for name, size in zip(domain.names, domain.sizes, strict=True):
            named = f"{name} of {number}"
            is_gap = is_last and gap is not None and name == domain.names[-1]
            sizes.append(gap.sizes[0] if is_gap and gap is not None else size)
            if gap.may_miss(GAP) if is_gap and gap is not None else domain.may_miss(name):
                missing.add(named)
            names.append(named)
    count = len(roots.names) - 1
    impossible[(count,)] = np.arange(roots.sizes[count]) < fewest
    return JoinedColumns(tuple(names), tuple(sizes), impossible, frozenset(missing))


@dataclass(frozen=True)
class LinkedPlan:
    """The domains of both tables, which column orders children, how many count, and the budget."""

    parents: Domain  # its last column is the number of children
    children: Domain  # its last column is their order, if there is one
    order: str | None
    most: int
    budget: Budget
    adjacency: Adjacency
    total: float | None
    max_cells: int
    workload: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _ = self.roots, self.first, self.later  # which refuse what is too large

    def with_whole(self, parents: Collection[str], children: Collection[str]) -> LinkedPlan:
        """The same plan, where the files' own types say which bounded columns are of whole numbers."""
        return replace(self, parents=self.parents.with_whole(parents), children=self.children.with_whole(children))

    @property
    def event(self) -> events.Event:
        """One Gaussian release: everything measured together costs no more."""
        return events.Gaussian(noise_multiplier=self.budget.noise_multiplier, adjacency=self.adjacency)

    @property
    def rho(self) -> float:
        """The budget as zCDP of Gaussian noise."""
        return 1 / (2 * self.budget.noise_multiplier**2)

    @cached_property
    def gap(self) -> Domain | None:
        """The one column of what lies between a child and the one before."""
        if self.order is None:
            return None
        column = self.children.declaration.schema[self.order]
        assert isinstance(column, Bounded)
        is_whole = self.children.is_whole(self.order)
        low, high = (math.ceil(column.low), math.floor(column.high)) if is_whole else (column.low, column.high)
        missing: Any = "drop" if self.children.may_miss(self.order) else 0.0
        facts = Schema({GAP: Bounded(0.0, float(high - low), missing=missing, whole=is_whole)})
        return Domain(Declaration(facts), {GAP: PrivateBins()})

    @property
    def measured_columns(self) -> int:
        """How many columns of numbers of children have their shape measured; gaps only where a child can follow one."""
        has_gaps = self.gap is not None and self.most >= _LEAST_LATER and bool(self.gap.columns_to_measure)
        return len(self.children.columns_to_measure) + has_gaps

    @property
    def values_share(self) -> float:
        """The share of the budget for each of these."""
        return (1 - _ROOTS) * _VALUES / self.measured_columns if self.measured_columns else 0.0

    @cached_property
    def _models_share(self) -> float:
        return (1 - _ROOTS) * (1 - _VALUES if self.measured_columns else 1.0)

    @cached_property
    def roots(self) -> SynthesisPlan:
        """The model of roots."""
        return self._part(self.parents, _ROOTS, self.total)

    @cached_property
    def first(self) -> SynthesisPlan:
        """The model of first children."""
        share = _FIRST if self.most >= _LEAST_LATER else 1.0
        return self._part(joined_columns(self.parents, 1, self.children), self._models_share * share)

    @cached_property
    def later(self) -> SynthesisPlan | None:
        """The model of later children, where there can be any."""
        if self.most < _LEAST_LATER:
            return None
        columns = joined_columns(self.parents, _LEAST_LATER, self.children, self.children, gap=self.gap)
        return self._part(columns, self._models_share * (1 - _FIRST))

    def _part(self, domain: Any, share: float, total: float | None = None) -> SynthesisPlan:
        workload = workload_of(domain, self.workload)
        return SynthesisPlan(domain, workload, self.budget.part(share), self.adjacency, total, self.max_cells)


def with_count(facts: Declaration, most: int) -> Declaration:
    """A parent table's facts with one more column, the number of children, its last."""
    name = "number of children"
    while name in facts.schema:
        name += "_"
    return replace(facts, schema=Schema({**facts.schema, name: Categories(range(most + 1))}))
