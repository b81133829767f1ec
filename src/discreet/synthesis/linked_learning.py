"""The course of a fit of two linked tables; all of it that reads records is here and in ``learning``.

Cells of the children's columns are cut first, since what is left out of a table may be a child. Then the models of
``linked_plan``, each starting from what the ones before know of the columns they share, which is not paid for again:
their noisy counts among roots with enough children, as their model has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import Encoded
from discreet.random import Streams
from discreet.schema import Schema
from discreet.synthesis.conditioning import condition
from discreet.synthesis.counting import Codes, WeightedCodes
from discreet.synthesis.domain import Domain
from discreet.synthesis.learning import LearningRun, Progress, TableEngine, shape_columns
from discreet.synthesis.linked_plan import GAP, JoinedColumns, LinkedPlan, joined_columns
from discreet.synthesis.linked_rows import ONE, LinkedRows
from discreet.synthesis.plan import SynthesisPlan
from discreet.synthesis.spending import Spending
from discreet.synthesis.trees import JunctionTree

__all__ = ["CellModel", "LinkedTables", "learn_links"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class CellModel:
    """A distribution over cells: a junction tree and the counts of its cliques."""

    tree: JunctionTree
    tables: Sequence[Floats]


@dataclass(frozen=True)
class LinkedTables:
    """What a fit gives: domains whose cells are cut, and the three models."""

    parents: Domain
    children: Domain
    gap: Domain | None
    roots: CellModel
    first: CellModel
    later: CellModel | None


def learn_links(
    plan: LinkedPlan, rows: LinkedRows, streams: Streams, engine: TableEngine, progress: Progress | None = None
) -> LinkedTables:
    """Fit the models of roots, of first children and of later ones."""
    return _LinkedRun(plan, rows, Spending(plan.rho, plan.adjacency, streams), engine, progress).learn()


class _LinkedRun:
    """One fit. Rows that count nowhere leave as soon as their cells say so, each with its root's other rows in mind."""

    def __init__(
        self,
        plan: LinkedPlan,
        rows: LinkedRows,
        spending: Spending,
        engine: TableEngine,
        progress: Progress | None,
    ) -> None:
        self.plan, self.spending, self.engine = plan, spending, engine
        self.progress = progress or (lambda share, stage: None)
        self.rows = rows
        self.roots_spending = spending.take(plan.roots.rho)

    def learn(self) -> LinkedTables:
        plan = self.plan
        self.children, self.gap = self._shape_children(), self._shape_gap()
        child_codes = self._keep_children()
        self.parents = self._shape_roots()
        self.root_codes, child_codes = self._keep_roots(child_codes)
        self.child_codes = child_codes
        self.progress(0.0, "parents")
        roots = LearningRun(plan.roots, self.parents, self.root_codes, self.roots_spending, self.engine)
        roots.learn()
        self.progress(0.3, "first children")
        first = self._learn_first(roots)
        self.progress(0.6, "later children")
        later = None if plan.later is None else self._learn_later(roots, first)
        self.progress(1.0, "done")
        later_model = None if later is None else CellModel(later.tree, later.tables)
        first_model = CellModel(first.tree, first.tables)
        return LinkedTables(
            self.parents, self.children, self.gap, CellModel(roots.tree, roots.tables), first_model, later_model
        )

    # --- cells -------------------------------------------------------------------------------------------------------

    def _shape_children(self) -> Domain:
        """The children's domain with cells, by all children of a root, who share its weight."""
        plan, domain = self.plan, self.plan.children
        noise = self.spending.deviation(plan.first.share("columns") / len(domain.names))
        rho = self.spending.rho * plan.values_share * (1 - 2.0**-36)
        return shape_columns(domain, self.rows.children, self.spending, rho, noise, self.rows.weights(), ONE)

    def _shape_gap(self) -> Domain | None:
        """The domain of gaps with cells, by all children of a root that follow another."""
        plan = self.plan
        if plan.gap is None or plan.later is None:
            return plan.gap
        noise = self.spending.deviation(plan.later.share("columns") / len(plan.children.names))
        rho = self.spending.rho * plan.values_share * (1 - 2.0**-36)
        gaps = self._gaps()
        rows = Encoded(Schema(plan.gap.declaration.schema), len(gaps), {GAP: gaps})
        return shape_columns(plan.gap, rows, self.spending, rho, noise, self.rows.weights(skipped=1), ONE)

    def _gaps(self) -> Floats:
        """What lies between each child and the one before it; NaN for a first one."""
        assert self.plan.order is not None
        numbers = self.plan.children.numbers(self.rows.children, self.plan.order)
        gaps = np.diff(numbers, prepend=np.nan)
        return np.where(self.rows.position == 0, np.nan, gaps)

    def _shape_roots(self) -> Domain:
        """The parents' domain with cells; its last column, the number of children, is that of those who are left."""
        plan, spending = self.plan.roots, self.roots_spending
        domain = self.plan.parents
        self.roots = replace(
            self.rows.roots,
            found={**self.rows.roots.found, domain.names[-1]: self.rows.counts.astype(np.float64)},
            schema=domain.declaration.schema,
        )
        noise = spending.deviation(plan.share("columns") / len(domain.names))
        rho = plan.share("values") / max(len(domain.columns_to_measure), 1)
        return shape_columns(domain, self.roots, spending, rho, noise)

    def _keep_children(self) -> Codes:
        """The cells of the children that count; the others leave."""
        codes, counts = self.children.every_code(self.rows.children)
        self.rows = self.rows.keep(np.ones(len(self.rows.roots), np.bool_), counts)
        return codes[:, counts]

    def _keep_roots(self, child_codes: Codes) -> tuple[Codes, Codes]:
        """The cells of the roots that count, and of their children."""
        codes, counts = self.parents.every_code(self.roots)
        stays = counts[self.rows.root_of]
        self.rows = self.rows.keep(counts, np.ones(len(stays), np.bool_))
        return np.ascontiguousarray(codes[:, counts]), child_codes[:, stays]

    # --- models ------------------------------------------------------------------------------------------------------

    def _learn_first(self, roots: LearningRun) -> LearningRun:
        """The model of roots with their first child."""
        is_first = self.rows.position == 0
        codes = np.concatenate([self.root_codes[:, self.rows.root_of[is_first]], self.child_codes[:, is_first]])
        columns, known = joined_columns(self.parents, 1, self.children), range(len(self.parents.names))
        return self._run(self.plan.first, columns, np.ascontiguousarray(codes), known, roots, fewest=1)

    def _learn_later(self, roots: LearningRun, first: LearningRun) -> LearningRun:
        """The model of roots with a later child and its relative."""
        assert self.plan.later is not None
        rows, is_later = self.rows, self.rows.position > 0
        places = np.flatnonzero(is_later)
        owners = rows.root_of[places]
        relatives = rows.first[owners] if self.plan.order is None else places - 1
        own = self.child_codes[:, places]
        if self.gap is not None:
            own = np.array(own)
            own[-1] = self.gap.cells(GAP, self._gaps()[places])
        codes = np.concatenate([self.root_codes[:, owners], self.child_codes[:, relatives], own])
        weighted = WeightedCodes(np.ascontiguousarray(codes), rows.weights(skipped=1)[places], ONE)
        columns = joined_columns(self.parents, 2, self.children, self.children, gap=self.gap)
        if self.plan.order is None:  # relatives are first children, who are known
            known, before = range(len(columns.names) - len(self.children.names)), first
        else:
            known, before = range(len(self.parents.names)), roots
        return self._run(self.plan.later, columns, weighted, known, before, fewest=2)

    def _run(
        self,
        plan: SynthesisPlan,
        columns: JoinedColumns,
        codes: Codes | WeightedCodes,
        known: range,
        before: LearningRun,
        fewest: int,
    ) -> LearningRun:
        """A model that starts from what the one before says of roots with so many children."""
        run = LearningRun(plan, columns, codes, self.spending.take(plan.rho), self.engine, known=known)
        count = len(self.parents.names) - 1
        enough = (np.arange(self.parents.sizes[count]) >= fewest).astype(np.float64)
        run.adopt(before, condition(before.tree, before.tables, {count: enough}))
        run.learn()
        return run
