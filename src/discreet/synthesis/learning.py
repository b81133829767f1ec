"""The course of a fit: measure, fit, look where the model is worst, measure there. All that reads records is here.

Records are met in three ways, each through ``Spending``: counts of a column's numbers, residuals of counts of cells,
and errors of the model so far. Everything else is a function of their noisy answers, of public facts and of public
coins. The errors compare the data with the counts of records that the model itself draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import Encoded
from discreet.random import Streams
from discreet.synthesis.choosing import choose, divide_budget, weigh
from discreet.synthesis.counting import Codes, Columns, WeightedCodes, counts
from discreet.synthesis.domain import Domain
from discreet.synthesis.drawing import draw_codes
from discreet.synthesis.evidence import Evidence
from discreet.synthesis.measured_shape import measure_shape
from discreet.synthesis.plan import SynthesisPlan
from discreet.synthesis.raking import Target, marginal, rake
from discreet.synthesis.spending import Spending, error_of
from discreet.synthesis.structural_zeros import Impossible, possible_in
from discreet.synthesis.trees import JunctionTree, junction_tree

__all__ = ["CellDomain", "LearningRun", "Progress", "TableEngine", "learn", "rake_tables", "shape_columns"]

Floats = NDArray[np.float64]
Progress = Callable[[float, str], object]
_CERTAIN = 3.0  # standard deviations of the noise: a column with fewer missing entries is drawn without any
_LIGHTEST = 4.0  # standard deviations of a column's noisy counts: no cell is cut lighter
_DRAWN = 1 << 18  # records at most that the model draws to be compared with the data: a speed knob
_LEAST_DRAWN, _DRAWN_FOR_ONE = 1 << 14, 256  # at least, and for each record that the table is measured to have


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
    spending = Spending(plan.rho, plan.adjacency, streams)
    count = len(plan.domain.columns_to_measure)
    noise = spending.deviation(plan.share("columns") / len(plan.domain.names))
    domain = shape_columns(plan.domain, rows, spending, plan.share("values") / max(count, 1), noise)
    run = LearningRun(plan, domain, domain.codes(rows), spending, engine, progress)
    run.learn()
    return domain, run.tree, run.tables


def shape_columns(
    domain: Domain,
    rows: Encoded,
    spending: Spending,
    rho: float,
    noise: float,
    weights: NDArray[np.int64] | None = None,
    one: int = 1,
) -> Domain:
    """The domain with the shape of each bounded column, and cells that were cut by it where none are declared.

    ``rho`` is for each column; ``noise`` is the standard deviation that the counts of its cells will have.
    """
    shapes = {
        name: measure_shape(domain.grid(name), domain.numbers(rows, name), spending, rho, weights, one)
        for name in domain.columns_to_measure
    }
    return domain.with_shapes(shapes, least=_LIGHTEST * noise) if shapes else domain


class CellDomain(Protocol):
    """What a model of cells knows of its columns: ``Domain`` of one table's, or those of several together."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        ...

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each has."""
        ...

    @property
    def impossible(self) -> Impossible:
        """Which combinations of cells are."""
        ...

    def may_miss(self, name: str) -> bool:
        """Whether a column's last cell is that of missing entries."""
        ...


class LearningRun:
    """One fit: what was measured so far, and the model of it.

    What an earlier run says of ``known`` columns is adopted: only sets with other columns are measured.
    """

    def __init__(
        self,
        plan: SynthesisPlan,
        domain: CellDomain,
        codes: Codes | WeightedCodes,
        spending: Spending,
        engine: TableEngine,
        progress: Progress | None = None,
        known: Collection[int] = (),
    ) -> None:
        self.plan, self.domain, self.codes = plan, domain, codes
        self.spending, self.engine = spending, engine
        self.progress = progress or (lambda share, stage: None)
        self.known = frozenset(known)
        self.evidence = Evidence(domain.sizes, plan.total)
        self.zeros = dict(domain.impossible)
        self.rounds = 0
        self._adopted: frozenset[Columns] = frozenset()

    def adopt(self, before: LearningRun, tables: Sequence[Floats]) -> None:
        """Take as known what ``tables`` of an earlier run's model say of the sets that it measured."""
        self.zeros = before.zeros | self.zeros
        known = before.evidence.sets
        homes = {columns: before.tree.home(columns) for columns in known}
        counts = {c: marginal(tables[k], before.tree.cliques[k], c) for c, k in homes.items() if k is not None}
        counts[()] = np.array(max(float(tables[0].sum()), 1.0))
        precisions = before.evidence.precisions
        surest = max(precisions[c] for c in known if len(c) == 1)  # where the total was declared
        self.evidence.adopt(counts, {c: precisions.get(c, surest) for c in counts})
        self._adopted = frozenset(counts)

    def learn(self) -> None:
        """Measure columns, then pairs, then larger sets."""
        self.columns()
        self.pairs()
        self.sets()

    def columns(self) -> None:
        """The total, unless it is declared or known, and each column alone."""
        self.progress(0.0, "columns")
        sizes, rho = self.domain.sizes, self.plan.share("columns")
        ones: list[Columns] = [(i,) for i, size in enumerate(sizes) if size > 1 and i not in self.known]
        budgets = dict.fromkeys(ones, rho / max(len(ones), 1))
        if self.plan.total is None and () not in self.evidence.sums:
            budgets = {(): 0.05 * rho} | {c: 0.95 * share for c, share in budgets.items()}
        self.evidence.measure(self.codes, budgets, self.spending)
        self.zeros |= self._cells_of_none_missing()
        self.fit()

    def _cells_of_none_missing(self) -> dict[Columns, NDArray[np.bool_]]:
        """The cells of missing entries whose noisy count noise alone explains: nothing is drawn there."""
        zeros = dict[Columns, NDArray[np.bool_]]()
        for target in self.evidence.targets():
            place = target.columns[0]
            if len(target.columns) == 1 and place not in self.known and self.domain.may_miss(self.domain.names[place]):
                is_missing = np.arange(len(target.counts)) == len(target.counts) - 1
                if target.counts[-1] < _CERTAIN * math.sqrt(target.variance):
                    zeros[target.columns] = is_missing
        return zeros

    def pairs(self) -> None:
        """The pairs of columns that are worth it."""
        self.progress(0.15, "errors of pairs")
        errors = self.errors(_with_new_columns(self.plan.pairs, self.known), self.plan.share("first errors"))
        self.progress(0.3, "pairs")
        self.improve(errors, self.plan.share("pairs"))
        self.fit()

    def sets(self) -> None:
        """Larger sets, and pairs once more; then whatever is left of the budget."""
        self.progress(0.5, "errors of sets")
        candidates = _with_new_columns([*self.plan.pairs, *self.plan.larger(self.tree.cliques)], self.known)
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
        rows = min(max(_DRAWN_FOR_ONE * math.ceil(self.evidence.size), _LEAST_DRAWN), _DRAWN)
        drawn = draw_codes(self.tree, self.tables, rows, self.spending.streams.public(*self.spending.part, self.rounds))
        sizes, scale = self.domain.sizes, self.evidence.size / rows
        exact = [error_of(self.codes, c, sizes, np.float64(scale) * counts(drawn, c, sizes)) for c in candidates]
        return dict(zip(candidates, self.spending.errors(exact, rho).tolist(), strict=True))

    def improve(self, errors: dict[Columns, float], rho: float, last: bool = False) -> None:
        """Measure the sets that are worth it; in the last round, if there is none, what was measured before."""
        sizes, weights = self.domain.sizes, weigh(self.plan.workload, list(errors))
        kept = [*self.evidence.sets, *self.domain.impossible]
        chosen = choose(errors, weights, sizes, rho, kept, self.plan.max_cells)
        if not chosen and last:
            chosen = _with_new_columns(self.evidence.sets, self.known)
        if chosen:
            budgets = divide_budget(chosen, lambda c: weights.get(c, 1.0), sizes, rho, self._adopted)
            if self.plan.total is not None:
                budgets = {c: share for c, share in budgets.items() if c}
            self.evidence.measure(self.codes, budgets, self.spending)

    def fit(self, last: bool = False) -> None:
        """A tree that holds all that was measured, and its tables."""
        together = [c for c in (*self.evidence.sets, *self.domain.impossible) if len(c) > 1]
        self.tree = junction_tree(self.domain.sizes, together)
        possible = [possible_in(clique, self.domain.sizes, self.zeros) for clique in self.tree.cliques]
        self.tables: list[Any] = self.engine(self.tree, self.evidence.targets(), self.evidence.size, possible, last)


def _with_new_columns(sets: Sequence[Columns], known: frozenset[int]) -> list[Columns]:
    """The sets that have a column which is not known."""
    return [columns for columns in sets if not known.issuperset(columns)]
