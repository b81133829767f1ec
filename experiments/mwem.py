"""MWEM where it is made for: many ranges, few records, little budget. And its theorem beside what is measured.

The first table thins the four DPBench histograms (4,096 cells) to 1,000 records and answers all 8.4 million ranges at
ε = 0.1: the cells with noise, the optimised strategy with and without non-negativity, and MWEM, whose n is declared.
MWEM corrects its histogram for prefixes: a range is a difference of two, and 4,096 candidates are told apart with less
budget than 8.4 million. Each figure is the root-mean-square error over all ranges, averaged over runs, and the largest
error in brackets. The number of rounds is the one that makes the bound least;
``choice`` has others, on histograms that are made here.
The second has the theorem's bound, for one pass and the average, and the largest error that was measured, by epsilon.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

import discreet as dp
from experiments import _results
from experiments._data import histograms

RECORDS, EPSILON, RUNS = 1000, 0.1, 5
Errors = tuple[float, float]


def thinned(x: np.ndarray, records: int = RECORDS) -> np.ndarray:
    """A histogram of so many records, drawn from the shares of ``x``; always the same one."""
    return np.random.default_rng(0).multinomial(records, x / x.sum())


def range_errors(estimate: np.ndarray, x: np.ndarray) -> Errors:
    """Root mean square and largest error of all ranges: differences of running sums."""
    gap = np.concatenate([[0.0], np.cumsum(estimate - x)])
    k = gap.size
    return float(np.sqrt(2 * (k * (gap**2).sum() - gap.sum() ** 2) / (k * (k - 1)))), float(gap.max() - gap.min())


def ways(cells: int, epsilon: float = EPSILON) -> dict[str, dp.release.Operation]:
    """The operations that are compared."""
    w = dp.workloads.AllRanges(cells)
    optimised = dp.workloads.optimise(w, noise="laplace")
    facts = dp.workloads.Constraints(nonnegative=True)
    return {
        "identity": dp.workloads.Query(workload=w, strategy=dp.workloads.identity(w), epsilon=epsilon),
        "optimised": dp.workloads.Query(workload=w, strategy=optimised, epsilon=epsilon),
        "optimised, no negative counts": dp.workloads.Query(
            workload=w, strategy=optimised, epsilon=epsilon, constraints=facts
        ),
        "MWEM": _mwem(cells, None, epsilon),
    }


def _mwem(cells: int, rounds: int | None, epsilon: float = EPSILON) -> dp.synthesis.MWEM:
    prefixes = dp.workloads.Prefix(cells)
    return dp.synthesis.MWEM(workload=prefixes, epsilon=epsilon, n=RECORDS, rounds=rounds, passes=100)


def choice(cells: int = 4096, runs: int = 10) -> Table:
    """The error by the number of rounds, on made-up histograms: scattered, a peak, a few cells, a heavy head."""
    rng, at = np.random.default_rng(5), np.arange(cells)
    made = {
        "scattered": rng.permutation(1 / (at + 1.0) ** 1.2),
        "peak": np.exp(-0.5 * ((at - 900) / 60) ** 2) + 0.02,
        "few cells": np.where(rng.random(cells) < 0.01, rng.pareto(1, cells) + 0.1, 0),
        "head": 1 / (at + 1.0) ** 1.5,
    }
    grid = Table(title="Made-up histograms: rms error (largest) by rounds", title_justify="left")
    for header in ("rounds", *made):
        grid.add_column(header, justify="right")
    for rounds in (1, 2, 3, 4, 6, 8):
        found = [measured(_mwem(cells, rounds), thinned(x), runs) for x in made.values()]
        grid.add_row(str(rounds), *(f"{rms:.0f} ({most:.0f})" for rms, most in found))
    return grid


def measured(operation: dp.release.Operation, x: np.ndarray, runs: int = RUNS) -> Errors:
    """The mean over runs of both errors."""
    rng = dp.random.seeded(1)
    found = [range_errors(np.asarray(operation.release(x, rng).value.estimate), x) for _ in range(runs)]
    return tuple(np.mean(found, axis=0))  # type: ignore[return-value]


def comparison(runs: int = RUNS) -> tuple[Table, dict[str, dict[str, Errors]]]:
    """The four histograms, and the figures."""
    found: dict[str, dict[str, Errors]] = {}
    operations = ways(4096)
    grid = Table(
        title=f"All ranges of 4,096 cells, {RECORDS:,} records, ε = {EPSILON:g}: rms error (largest)",
        title_justify="left",
    )
    for header in ("histogram", *operations):
        grid.add_column(header, justify="left" if header == "histogram" else "right")
    for name, x in histograms():
        found[name] = {way: measured(operation, thinned(x), runs) for way, operation in operations.items()}
        grid.add_row(name, *(f"{rms:.0f} ({most:.0f})" for rms, most in found[name].values()))
    return grid, found


def theorem(runs: int = 20, cells: int = 64, records: int = 100_000) -> Table:
    """Bound and measurement on a skewed histogram, one pass, the average, T by the bound."""
    x = np.random.default_rng(1).multinomial(records, 1 / np.arange(1, cells + 1) / (1 / np.arange(1, cells + 1)).sum())
    w = dp.workloads.AllRanges(cells)
    grid = Table(title=f"All ranges of {cells} cells, {records:,} records: the theorem (95 %)", title_justify="left")
    for header in ("ε", "rounds", "bound", "largest error, mean of runs", "of all runs"):
        grid.add_column(header, justify="right")
    for epsilon in (0.01, 0.1, 1.0):
        told: dict[str, object] = {"passes": 1, "output": "average"}
        operation = dp.synthesis.MWEM(workload=w, epsilon=epsilon, n=records, **told)  # type: ignore[arg-type]
        rng = dp.random.seeded(2)
        errors = [range_errors(operation.release(x, rng).value.estimate, x)[1] for _ in range(runs)]
        row = (operation.error(), float(np.mean(errors)), max(errors))
        grid.add_row(f"{epsilon:g}", str(operation.rounds), *(f"{value:,.0f}" for value in row))
    return grid


def main(quick: bool = False) -> None:
    console = Console(width=max(110, Console().width))
    grid, found = comparison(1 if quick else RUNS)
    console.print(grid)
    _judge(found, console.print)
    if not quick:
        console.print(choice())
    console.print(theorem(2 if quick else 20))


def _judge(found: dict[str, dict[str, Errors]], say: Callable[[str], None]) -> None:
    for name, errors in found.items():
        for other in ("identity", "optimised"):
            for what, mine, theirs in zip(("rms", "largest"), errors["MWEM"], errors[other], strict=True):
                if mine >= theirs:
                    say(f"MISSES  {name}: MWEM's {what} error {mine:.0f} is not below {other}'s {theirs:.0f}")


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
