"""The course of a fit: measure, fit, look where the model is worst, measure there. All that reads records is here.

Records are met in three ways, each through ``Spending``: counts of a column's numbers, residuals of counts of cells,
and errors of the model so far. Everything else is a function of their noisy answers, of public facts and of public
coins. The errors compare the data with the counts of records that the model itself draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import Encoded
from discreet.random import Streams
from discreet.synthesis.choosing import choose, divide_budget, weigh
from discreet.synthesis.column_shape import Shape
from discreet.synthesis.counting import Codes, Columns, counts
from discreet.synthesis.domain import Domain
from discreet.synthesis.drawing import draw_codes
from discreet.synthesis.evidence import Evidence
from discreet.synthesis.measured_shape import measure_shape
from discreet.synthesis.plan import SynthesisPlan
from discreet.synthesis.raking import Target, rake
from discreet.synthesis.spending import Spending, error_of
from discreet.synthesis.structural_zeros import possible_in
from discreet.synthesis.trees import JunctionTree, junction_tree

__all__ = ["Progress", "TableEngine", "learn", "rake_tables"]

Floats = NDArray[np.float64]
Progress = Callable[[float, str], object]
_CERTAIN = 3.0  # standard deviations of the noise: a column with fewer missing entries is drawn without any
_LIGHTEST = 4.0  # standard deviations of a column's noisy counts: no cell is cut lighter
_DRAWN = 1 << 18  # records that the model draws to be compared with the data: a speed knob


class TableEngine(Protocol):
    """Fits the tables of a tree's cliques to noisy counts; reads no record."""

    def __call__(
        self, tree: JunctionTree, targets: Sequence[Target], total: float, possible: Sequence[Floats | None], last: bool
    ) -> list[Floats]:
        """The tables, which agree and add up to the total."""
        ...


def rake_tables(
    tree: JunctionTree, targets: Sequence[Target], total: float, possible: Sequence[Floats | None], last: bool
) -> list[Floats]:
    """The engine "residual": raking, longer in the last round."""
    return rake(tree, targets, total, possible=possible, sweeps=100 if last else 60, tolerance=1e-4)


def learn(
    plan: SynthesisPlan, rows: Encoded, streams: Streams, engine: TableEngine, progress: Progress | None = None
) -> tuple[Domain, JunctionTree, list[Floats]]:
    """A domain whose bins are chosen, a tree, and the tables of its cliques."""
    run = _LearningRun(plan, rows, streams, engine, progress or (lambda share, stage: None))
    run.columns()
    run.pairs()
    run.sets()
    return run.domain, run.tree, run.tables


class _LearningRun:
    """One fit: what was measured so far, and the model of it."""

    def __init__(
        self, plan: SynthesisPlan, rows: Encoded, streams: Streams, engine: TableEngine, progress: Progress
    ) -> None:
        self.plan, self.streams, self.engine, self.progress = plan, streams, engine, progress
        self.spending = Spending(plan.rho, plan.adjacency, streams)
        self.domain = self._shape_columns(rows)
        self.codes: Codes = self.domain.codes(rows)
        self.evidence = Evidence(self.domain.sizes, plan.total)
        self.zeros = dict(self.domain.impossible)
        self.rounds = 0

    def _shape_columns(self, rows: Encoded) -> Domain:
        """The domain with the shape of each bounded column, and cells that were cut by it where none are declared."""
        domain = self.plan.domain
        shapes = dict[str, Shape]()
        for name in domain.columns_to_measure:
            share = self.plan.share("values") / len(domain.columns_to_measure)
            shapes[name] = measure_shape(domain.grid(name), domain.numbers(rows, name), self.spending, share)
        noise = self.spending.deviation(self.plan.share("columns") / len(domain.names))
        return domain.with_shapes(shapes, least=_LIGHTEST * noise) if shapes else domain

    def columns(self) -> None:
        """The total, unless it is declared, and each column alone."""
        self.progress(0.0, "columns")
        sizes, rho = self.domain.sizes, self.plan.share("columns")
        ones: list[Columns] = [(i,) for i, size in enumerate(sizes) if size > 1]
        budgets = dict.fromkeys(ones, rho / max(len(ones), 1))
        if self.plan.total is None:
            budgets = {(): 0.05 * rho} | {c: 0.95 * share for c, share in budgets.items()}
        self.evidence.measure(self.codes, budgets, self.spending)
        self.zeros |= self._cells_of_none_missing()
        self.fit()

    def _cells_of_none_missing(self) -> dict[Columns, NDArray[np.bool_]]:
        """The cells of missing entries whose noisy count noise alone explains: nothing is drawn there."""
        zeros = dict[Columns, NDArray[np.bool_]]()
        for target in self.evidence.targets():
            (place,) = target.columns
            if self.domain.may_miss(self.domain.names[place]):
                is_missing = np.arange(len(target.counts)) == len(target.counts) - 1
                if target.counts[-1] < _CERTAIN * math.sqrt(target.variance):
                    zeros[target.columns] = is_missing
        return zeros

    def pairs(self) -> None:
        """The pairs of columns that are worth it."""
        self.progress(0.15, "errors of pairs")
        errors = self.errors(self.plan.pairs, self.plan.share("first errors"))
        self.progress(0.3, "pairs")
        self.improve(errors, self.plan.share("pairs"))
        self.fit()

    def sets(self) -> None:
        """Larger sets, and pairs once more; then whatever is left of the budget."""
        self.progress(0.5, "errors of sets")
        candidates = [*self.plan.pairs, *self.plan.larger(self.tree.cliques)]
        errors = self.errors(candidates, self.plan.share("second errors"))
        self.progress(0.7, "sets")
        self.improve(errors, self.spending.left * (1 - 2.0**-36), last=True)
        self.progress(0.75, "model")
        self.fit(last=True)
        self.progress(1.0, "done")

    def errors(self, candidates: Sequence[Columns], rho: float) -> dict[Columns, float]:
        """How far the model is from the data on each candidate, with noise."""
        if not candidates:
            return {}
        self.rounds += 1
        drawn = draw_codes(self.tree, self.tables, _DRAWN, self.streams.public(self.rounds))
        sizes, scale = self.domain.sizes, self.evidence.size / _DRAWN
        exact = [error_of(self.codes, c, sizes, np.float64(scale) * counts(drawn, c, sizes)) for c in candidates]
        return dict(zip(candidates, self.spending.errors(exact, rho).tolist(), strict=True))

    def improve(self, errors: dict[Columns, float], rho: float, last: bool = False) -> None:
        """Measure the sets that are worth it; in the last round, if there is none, what was measured before."""
        sizes, weights = self.domain.sizes, weigh(self.plan.workload, list(errors))
        kept = [*self.evidence.sets, *self.domain.impossible]
        chosen = choose(errors, weights, sizes, rho, kept, self.plan.max_cells)
        if not chosen and last:
            chosen = self.evidence.sets
        if chosen:
            budgets = divide_budget(chosen, lambda c: weights.get(c, 1.0), sizes, rho)
            if self.plan.total is not None:
                budgets = {c: share for c, share in budgets.items() if c}
            self.evidence.measure(self.codes, budgets, self.spending)

    def fit(self, last: bool = False) -> None:
        """A tree that holds all that was measured, and its tables."""
        together = [c for c in (*self.evidence.sets, *self.domain.impossible) if len(c) > 1]
        self.tree = junction_tree(self.domain.sizes, together)
        possible = [possible_in(clique, self.domain.sizes, self.zeros) for clique in self.tree.cliques]
        self.tables: list[Any] = self.engine(self.tree, self.evidence.targets(), self.evidence.size, possible, last)
