"""SmallDB: what its theorem promises, what is measured, and where the space of candidates ends it.

For all prefix counts of k cells and a target α the mechanism scores every data set of m = ⌊ln(2|Q|)/2α²⌋ + 1 records.
Their number grows like k^m: the table says where that stops, and how long it takes until there. The bound is of the
difference of shares, with 95 % confidence, for n = 10,000 records at ε = 1; the error is the largest of ten runs.
"""

from __future__ import annotations

import time

import numpy as np
from rich.console import Console
from rich.table import Table

import discreet as dp
from experiments import _results

RECORDS, EPSILON, RUNS = 10_000, 1.0, 10
CELLS, ALPHAS = (2, 4, 8, 16, 32), (0.5, 0.3, 0.2, 0.1)


def skewed(cells: int) -> np.ndarray:
    """A public example: the i-th cell has a share proportional to 1/i."""
    weights = 1 / np.arange(1, cells + 1)
    return np.random.default_rng(0).multinomial(RECORDS, weights / weights.sum())


def row(cells: int, alpha: float, runs: int = RUNS) -> tuple[str, ...]:
    """One setting: records, candidates, bound, error, seconds a release; or that it is refused."""
    workload, x = dp.workloads.Prefix(cells), skewed(cells)
    try:
        small = dp.synthesis.SmallDB(workload=workload, alpha=alpha, epsilon=EPSILON, n=RECORDS)
    except ValueError as error:
        return (str(cells), f"{alpha:g}", "", str(error).split(" data sets")[0].removeprefix("There are "), "refused")
    start, rng = time.perf_counter(), dp.random.seeded(1)
    truth = workload.apply(x)
    errors = [np.abs(np.asarray(small.release(x, rng).value) - truth).max() / RECORDS for _ in range(runs)]
    seconds = (time.perf_counter() - start) / runs
    facts = (small.records, f"{small.candidates:,}", f"{small.error():.3f}", f"{max(errors):.3f}", f"{seconds:.2f}")
    return (str(cells), f"{alpha:g}", *map(str, facts))


def feasible(cells: tuple[int, ...] = CELLS, alphas: tuple[float, ...] = ALPHAS, runs: int = RUNS) -> Table:
    """Every setting."""
    grid = Table(
        title=f"SmallDB, all prefixes, {RECORDS:,} records, ε = {EPSILON:g}: bound and error as shares",
        title_justify="left",
    )
    for header in ("cells", "α", "m", "data sets", "bound (95 %)", "error", "s a release"):
        grid.add_column(header, justify="right")
    for alpha in alphas:
        for k in cells:
            grid.add_row(*row(k, alpha, runs))
    return grid


def main(quick: bool = False) -> None:
    Console(width=max(100, Console().width)).print(feasible(cells=CELLS[:3], runs=2) if quick else feasible())


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
