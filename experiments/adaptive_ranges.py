"""Buckets as wide as suits the data against the optimised strategy, by how many records there are for the budget.

Histograms of the DPBench study give shapes, from which so many records are drawn that ε·n is as stated; ε = 0.1. The
error is the root-mean-square one of 2,000 random ranges, or of the cells, of several releases without negative counts.
A 25th of the budget for the choice, and widths 1, 4, 16 and 64, were chosen on made-up shapes (``--made-up`` shows six
of them, of another seed), none of these files. ``--quick`` takes four runs.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import discreet as dp
from experiments import _results
from experiments._data import histograms
from experiments.range_queries import RANGES

EPSILON = 0.1
SCALES = (100, 1_000, 10_000, 100_000)
RUNS = 60
CELLS = 4096


def made_up(seed: int = 0) -> dict[str, np.ndarray]:
    """Sparse and heavy-tailed, smooth, a mixture, steps, spikes on a floor, an exponential fall."""
    rng, t = np.random.default_rng(seed), np.linspace(0, 1, CELLS)
    sparse, spikes = np.zeros(CELLS), np.full(CELLS, 0.02)
    sparse[rng.choice(CELLS, 120, replace=False)] = rng.zipf(1.6, 120)
    spikes[rng.choice(CELLS, 40, replace=False)] = rng.uniform(1, 20, 40)
    peaks = ((0.4, 0.2, 0.01), (0.3, 0.5, 0.03), (0.3, 0.8, 0.002))
    smooth = np.exp(-(((t - 0.6) / 0.25) ** 2)) + 0.15 * np.sin(9 * t) + 0.3
    return {
        "sparse": sparse,
        "smooth": np.maximum(smooth, 0.02) * rng.uniform(0.8, 1.2, CELLS),
        "mixture": sum(w * np.exp(-(((t - m) / s) ** 2) / 2) / s for w, m, s in peaks) + 0.05,
        "steps": np.repeat(rng.gamma(0.5, 1, 16), CELLS // 16) + 1e-3,
        "spikes": spikes,
        "fall": np.exp(-12 * t) * rng.uniform(0.5, 1.5, CELLS),
    }


@cache
def operations(kind: type[dp.workloads.Workload], cells: int) -> dict[str, Any]:
    """The optimised strategy without negative counts, and buckets."""
    workload, facts = kind(cells), dp.workloads.Constraints(nonnegative=True)  # type: ignore[call-arg]
    return {
        "optimised": dp.workloads.Query(workload=workload, epsilon=EPSILON, constraints=facts),
        "buckets": dp.workloads.Adaptive(workload=workload, epsilon=EPSILON),
    }


def errors(x: np.ndarray, runs: int, seed: int) -> dict[str, tuple[float, float]]:
    """Root-mean-square error of ranges and of cells, by the optimised strategy and by buckets."""
    rng = dp.random.seeded(seed)
    ends = np.sort(np.random.default_rng(seed).integers(0, x.size + 1, (RANGES, 2)), axis=1)
    squares: dict[str, list[tuple[float, float]]] = {"optimised": [], "buckets": []}

    def asked(kind: type[dp.workloads.Workload]) -> dict[str, np.ndarray]:
        return {name: operation.release(x, rng).value.estimate for name, operation in operations(kind, x.size).items()}

    for _ in range(runs):
        ranges, cells = asked(dp.workloads.AllRanges), asked(dp.workloads.Identity)
        for name, found in squares.items():
            gap = np.concatenate([[0.0], np.cumsum(ranges[name] - x)])
            wide = np.mean((gap[ends[:, 1]] - gap[ends[:, 0]]) ** 2)
            found.append((float(wide), float(np.mean((cells[name] - x) ** 2))))
    return {name: tuple(np.sqrt(np.mean(found, axis=0))) for name, found in squares.items()}  # type: ignore[misc]


def table(shapes: dict[str, np.ndarray], runs: int) -> Table:
    title = (
        f"ε = {EPSILON:g}, {CELLS:,} cells, {runs} runs: error of ranges / of cells, and how much smaller with buckets"
    )
    grid = Table(title=title, title_justify="left")
    for header in ("shape", "ε·n", "optimised", "buckets", "gain in ranges", "in cells"):
        grid.add_column(header, justify="left" if header == "shape" else "right")
    for number, (name, shape) in enumerate(shapes.items()):
        for scale in SCALES:
            x = np.random.default_rng(scale).multinomial(round(scale / EPSILON), shape / shape.sum())
            found = errors(x, runs, seed=scale + number)  # or all shapes would share their noise
            gains = (found["optimised"][place] / found["buckets"][place] for place in (0, 1))
            told = (f"{found[way][0]:.1f} / {found[way][1]:.2f}" for way in ("optimised", "buckets"))
            grid.add_row(name, f"{scale:,}", *told, *(f"{gain:.2f}" for gain in gains))
    return grid


def main(quick: bool = False) -> None:
    console, runs = Console(width=110), 4 if quick else RUNS
    if "--made-up" in sys.argv:
        console.print(table(made_up(), runs))
        return
    shapes = {name: x.astype(float) for name, x in histograms()}
    console.print(table(shapes, runs))


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
