"""Questions that choose a public parameter privately before they are answered: rows of a unit, bounds of a column.

Each choice costs a tenth of the budget. What is left answers the question with what was chosen, at a price that does
not depend on it: noise is in proportion to the sensitivity, whatever that turns out to be. The choice is among public
candidates, so nothing can fail, or cost more, because of it.

Decision 351.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet import events
from discreet.mechanisms.budget import Budget
from discreet.mechanisms.exponential import Exponential
from discreet.random import Rng, RngLike, as_rng
from discreet.release import Release
from discreet.schema import Bounded, Schema
from discreet.statistics.private_bounds import bounds_of_counts, powers
from discreet.tables.biases import biases
from discreet.tables.bounding import ContributionLimit, SecretKey
from discreet.tables.columns import BinCut
from discreet.tables.operation import Explanation, TableOperation
from discreet.tables.passes import GroupedRows, Progress, ScanPass

if TYPE_CHECKING:
    from discreet.tables.query import TableQuery

__all__ = ["ChoosingOperation"]

SHARE = 0.1  # of the budget, for each choice
MOST_ROWS = tuple(1 << power for power in range(11))  # candidates for the rows of a unit that count
EDGES = powers(-10, 40)  # candidates for bounds


@dataclass(frozen=True)
class ChoosingOperation:
    """A question with its budget divided between choices and the answer."""

    query: TableQuery = field(repr=False)
    budget: Budget
    columns: tuple[str, ...]  # whose bounds are chosen
    progress: Progress | None = field(default=None, repr=False, compare=False)
    errors: bool = False
    doubts: list[str] | None = field(default=None, repr=False, compare=False)  # to be filled with what looks wrong

    @classmethod
    def of(
        cls, query: TableQuery, budget: Budget, progress: Progress | None, errors: bool = False
    ) -> ChoosingOperation:
        """The question, refused now if the answer would be for any candidate."""
        found = cls(query, budget, query.rows.auto_bounds(query.aggregates), progress, errors)
        if found._choices > 5:
            raise ValueError(
                f"{found._choices} bounds or caps are to be chosen, but at most 5 by one query: declare some."
            )
        for most in (MOST_ROWS[0], MOST_ROWS[-1]) if query.rows.limit.auto else (None,):
            for bounds in ((EDGES[0], EDGES[-1]), (0.0, 2.0**-10)):
                _ = found._answering(most, dict.fromkeys(found.columns, bounds)).event
        return found

    @property
    def _choices(self) -> int:
        return len(self.columns) + self.query.rows.limit.auto

    def _choosing(self) -> Budget:
        budget = self.budget
        if budget.rho is not None:
            return Budget(rho=budget.rho * SHARE)
        return Budget(epsilon=(budget.epsilon or 0.0) * SHARE)

    def _rest(self) -> Budget:
        left, budget = 1 - SHARE * self._choices, self.budget
        if budget.rho is not None:
            return Budget(rho=budget.rho * left, noise=budget.noise)
        return Budget((budget.epsilon or 0.0) * left, budget.delta, noise=budget.noise)

    @property
    def event(self) -> events.Event:
        """The choices, and all that the answer was given, whichever candidates are chosen."""
        cost: events.Event = _event_of_budget(self._rest())
        if self.query.rows.limit.auto:
            cost = self._cap.event + cost
        for _ in self.columns:
            cost = self._counted.event + cost
        return cost

    @property
    def unit(self) -> str:
        """Whom the answer protects."""
        return self.query.rows.limit.protects

    @property
    def _cap(self) -> Exponential:
        # of caps that cut off as little, the smallest: each is a quarter as likely as the one below
        likely = tuple(0.25**place for place in range(len(MOST_ROWS)))
        return Exponential(sensitivity=1.0, epsilon=self._choosing().selection(), base_measure=likely)

    @property
    def _counted(self) -> Any:
        return self._choosing().additive(1, len(EDGES) - 1, whole=True)

    def _with_row_limit(self, most: int | None) -> GroupedRows:
        rows = self.query.rows
        if most is None:
            return rows
        return replace(rows, limit=replace(rows.limit, rows=most, groups=min(rows.limit.groups, most), auto=False))

    def _answering(self, most: int | None, bounds: dict[str, tuple[float, float]]) -> TableOperation:
        rows = self._with_row_limit(most)
        found = {name: self._with_bounds(name, *ends) for name, ends in bounds.items()}
        rows = replace(rows, schema=Schema({**rows.schema, **found}))
        query = self.query
        asked = TableOperation.of(
            rows, query.aggregates, self._rest(), query.label, self.progress, query.after, query.levels, self.errors
        )
        return replace(asked, doubts=self.doubts)

    def _with_bounds(self, name: str, low: float, high: float) -> Bounded:
        """A column's declaration with chosen bounds; what missing counts as is clipped to them, as values are."""
        declared = self.query.rows.grid(name).bounds
        filled = declared.missing
        if declared.whole:
            low, high = math.floor(low), math.ceil(high)
        return Bounded(low, high, filled if filled == "drop" else min(max(filled, low), high), declared.whole)

    def release(self, data: None = None, rng: RngLike = None) -> Release[Any]:
        """Choose, read the table, and answer."""
        return self.prepare(data, rng)()

    def prepare(self, data: None = None, rng: RngLike = None) -> Callable[[], Release[Any]]:
        """What reads the table, planned as far as that goes without reading."""
        source, told = as_rng(rng), self.explain()
        wide = dict.fromkeys(self.columns, (EDGES[0], EDGES[-1]))
        self._answering(MOST_ROWS[-1] if self.query.rows.limit.auto else None, wide).prepare(data, source)
        sizes = self.query.rows.unit_sizes(MOST_ROWS) if self.query.rows.limit.auto else None

        def run() -> Release[Any]:
            most = None if sizes is None else self._most(sizes(), source)
            bounds = {name: self._bounds(name, source) for name in self.columns}
            answer = self._answering(most, bounds).prepare(None, source)()
            return replace(answer, event=told.event, error={**(answer.error or {}), **_choices_in_words(most, bounds)})

        return run

    def _most(self, over: list[int], rng: Rng) -> int:
        """The number of rows beyond which about as many units go as a row more costs in noise.

        A unit's next row adds one to the total for each of the units that have it, and 1/ε to the error of each group.
        """
        epsilon = self._rest().epsilon or math.sqrt(2 * (self._rest().rho or 1.0))
        enough = self.query.rows.public_groups / epsilon
        scores = [-abs(count - enough) for count in over]
        return MOST_ROWS[int(self._cap.release(np.array(scores), rng).value)]

    def _bounds(self, name: str, rng: Rng) -> tuple[float, float]:
        """The outer powers of two between which records are found, of one row per unit."""
        rows, mechanism = self.query.rows, self._counted
        one = replace(rows, keys=(), limit=ContributionLimit(rows.limit.unit))
        bins = BinCut(name, EDGES)
        counts = next(one.run(ScanPass(bins=bins), SecretKey.draw(rng)).stats.bins(bins))
        noisy = np.asarray(mechanism.release(counts, rng).value, np.float64)
        return bounds_of_counts(noisy, EDGES, mechanism.error(1 - 0.05 / bins.count))

    def explain(self) -> Explanation:
        """What will be done, its cost, and its errors where few rows of a unit, and narrow bounds, are chosen."""
        most = MOST_ROWS[0] if self.query.rows.limit.auto else None
        rows = self.query.rows
        told = self._answering(most, dict.fromkeys(self.columns, (0.0, 1.0))).explain()
        errors = {
            name: f"{error}, times the cap and the width of the bounds that are chosen"
            for name, error in told.errors.items()
        }
        bias = "\n".join(biases(rows, [aggregate for _, aggregate in self.query.aggregates]))
        return replace(told, unit=rows.limit.describe(), event=self.event, errors=errors, bias=bias or None)


def _choices_in_words(most: int | None, bounds: dict[str, tuple[float, float]]) -> dict[str, str]:
    """What was chosen, in words: released, as the answer is."""
    rows = {} if most is None else {"max_rows_per_unit": str(most)}
    return rows | {f"bounds of {name}": f"{low:g} to {high:g}" for name, (low, high) in bounds.items()}


def _event_of_budget(budget: Budget) -> events.Event:
    """A budget as a cost: whatever is released for it stays within, also where earlier answers decide what that is."""
    if budget.rho is not None:
        return events.ZCDP(rho=budget.rho)
    epsilon = budget.epsilon or 0.0
    return (
        events.PureDP(epsilon=epsilon) if budget.delta is None else events.ApproxDP(epsilon=epsilon, delta=budget.delta)
    )
