"""What was measured: noisy residuals, each perhaps several times, and the counts that they add up to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from discreet.synthesis.counting import (
    Codes,
    Columns,
    WeightedCodes,
    project_residual,
    reconstruct_counts,
    share_of_cells,
)
from discreet.synthesis.raking import Target
from discreet.synthesis.spending import Spending
from discreet.workloads.marginals import subsets

__all__ = ["Evidence"]


@dataclass
class Evidence:
    """Residuals with their precisions; two measurements of one are averaged by the inverse of their variances."""

    sizes: tuple[int, ...]
    total: float | None = None  # declared: then it is not measured
    sums: dict[Columns, NDArray[np.float64]] = field(default_factory=dict)
    precisions: dict[Columns, float] = field(default_factory=dict)

    def measure(self, codes: Codes | WeightedCodes, budgets: Mapping[Columns, float], spending: Spending) -> None:
        """Measure residuals, each with its budget."""
        for columns, rho in budgets.items():
            noisy, deviation = spending.residual(codes, columns, self.sizes, rho)
            weight = 1 / deviation**2
            self.sums[columns] = self.sums.get(columns, 0.0) + weight * noisy
            self.precisions[columns] = self.precisions.get(columns, 0.0) + weight

    def adopt(self, tables: Mapping[Columns, NDArray[np.float64]], precisions: Mapping[Columns, float]) -> None:
        """Take counts that another model says of some sets of columns as known this precisely; nothing is measured."""
        for columns, table in tables.items():
            self.sums[columns] = precisions[columns] * project_residual(table * float(math.prod(table.shape)))
            self.precisions[columns] = precisions[columns]

    @property
    def size(self) -> float:
        """The number of records, declared or as measured; at least one."""
        if self.total is not None:
            return float(self.total)
        return max(float(self.sums[()]) / self.precisions[()], 1.0)

    @property
    def sets(self) -> list[Columns]:
        """The sets of columns whose counts are known."""
        return [columns for columns in self.sums if columns]

    def targets(self) -> list[Target]:
        """The noisy counts of every set that was measured, for ``raking``."""
        residuals = {c: self.sums[c] / self.precisions[c] for c in self.sums} | {(): np.array(self.size)}
        return [Target(c, reconstruct_counts(c, self.sizes, residuals), self.variance(c)) for c in self.sets]

    def variance(self, columns: Columns) -> float:
        """Of the noise on a cell: each residual's, spread over the columns that it does not have."""
        return sum(
            float(share_of_cells(shape(self.sizes, part)))
            / self.precisions[part]
            / math.prod(self.sizes[i] for i in columns if i not in part) ** 2
            for part in subsets(columns)
            if part in self.precisions
        )


def shape(sizes: Sequence[int], columns: Columns) -> tuple[int, ...]:
    """How many cells each of the columns has."""
    return tuple(sizes[i] for i in columns)
