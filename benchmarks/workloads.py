"""Workloads: errors of strategies beside the lower bound, and time and memory of a whole release up to 16,384 cells,
and the time to infer a grid without negative counts.

Each timed row is a fresh process, so that the peak of memory is its own.
"""

from __future__ import annotations

import json
import math
import sys
import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import discreet as dp
from benchmarks import peers

OWED = {"AllRanges": 1.03, "Prefix": 1.06}  # times the singular-value bound
SIZES = (256, 1024, 16_384)
GRIDS = (32, 64, 128)
SECONDS, MEGABYTES = 10.0, 2048.0


def errors() -> tuple[Table, list[str], list[dict[str, Any]]]:
    """Root-mean-square errors in closed form, Gaussian noise of unit variance per unit of sensitivity."""
    grid, missed, rows = Table(title="Root-mean-square error, Gaussian noise, rho = 0.5, add-remove"), [], []
    names = ("all queries", "identity", "hierarchy 2", "wavelet", "hierarchy, best", "fourier", "optimised")
    for header in ("workload", *names, "SVD bound", "optimised / bound"):
        grid.add_column(header)
    for kind in ("AllRanges", "Prefix"):
        for n in SIZES:
            table = dp.workloads.compare(getattr(dp.workloads, kind)(n))
            ratio = table.rmse["optimised"] / table.bound
            grid.add_row(
                f"{kind}({n})", *(f"{table.rmse[name]:.3f}" for name in names), f"{table.bound:.3f}", f"{ratio:.4f}"
            )
            rows.append({"workload": kind, "n": n, "bound": table.bound, **table.rmse})
            if ratio > OWED[kind]:
                missed.append(f"{kind}({n}): {ratio:.3f} times the bound, above {OWED[kind]}")
    return grid, missed, rows


def releases() -> tuple[Table, list[str], list[dict[str, Any]]]:
    """Optimise, measure, infer: seconds and added megabytes."""
    grid, missed, rows = Table(title="Optimise, measure and infer: time and peak memory"), [], []
    for header in ("workload", "noise", "strategy", "measured values", "rmse", "time", "memory"):
        grid.add_column(header)
    for kind in ("AllRanges", "Prefix"):
        for noise in ("gaussian", "laplace"):
            for n in SIZES:
                question = {"workload": kind, "n": n, "noise": noise}
                found = peers.ask(
                    sys.executable,
                    peers.ROOT / "benchmarks/ours_workloads.py",
                    {"warm": {**question, "n": 16}, "question": question},
                )
                if isinstance(found, peers.Failure):
                    raise SystemExit(f"{question}: {found.reason}")
                value = found["value"]
                grid.add_row(
                    f"{kind}({n})",
                    noise,
                    value["strategy"],
                    f"{value['rows']:,}",
                    f"{value['rmse']:.3f}",
                    f"{found['seconds']:.2f} s",
                    f"{found['megabytes']:.0f} MB",
                )
                rows.append(question | value | {"seconds": found["seconds"], "megabytes": found["megabytes"]})
                if found["seconds"] > SECONDS or found["megabytes"] > MEGABYTES:
                    missed.append(
                        f"{kind}({n}), {noise}: {found['seconds']:.1f} s and {found['megabytes']:.0f} MB, above "
                        f"{SECONDS:g} s or {MEGABYTES:g} MB"
                    )
    return grid, missed, rows


def grids() -> tuple[Table, list[str], list[dict[str, Any]]]:
    """No negative counts on a square grid, in the norm of ranges of both axes: seconds of the inference alone."""
    grid, missed, rows = Table(title="No negative counts on a grid: inference after the measurement"), [], []
    for header in ("grid", "records", "time"):
        grid.add_column(header)
    for n in GRIDS:
        w, rng = dp.workloads.Product((dp.workloads.AllRanges(n),) * 2), np.random.default_rng(n)
        x = rng.multinomial(100_000, rng.dirichlet(np.full(n * n, 0.05))).reshape(n, n)
        measured = dp.workloads.Query(workload=w, epsilon=1.0).measure.release(x, rng=1).value
        start = time.process_time()
        dp.workloads.infer(measured, w, dp.workloads.Constraints(nonnegative=True))
        seconds = time.process_time() - start
        grid.add_row(f"{n} × {n}", f"{x.sum():,}", f"{seconds:.2f} s")
        rows.append({"n": n, "seconds": seconds})
        if seconds > SECONDS:
            missed.append(f"a grid of {n} × {n}: {seconds:.1f} s, above {SECONDS:g} s")
    return grid, missed, rows


def four_queries() -> Table:
    """The lectures' example: what each way of asking costs in error."""
    w, epsilon = dp.workloads.four_queries(), 1.0
    split = w.queries * 2 * dp.mechanisms.Laplace(sensitivity=1.0, epsilon=epsilon / w.queries, max_size=1).scale ** 2
    grid = Table(title="Four queries, total squared error × ε²")
    for header in ("budget split", "all at once", "disjoint buckets", "optimised", "SVD bound"):
        grid.add_column(header)
    totals = [
        dp.workloads.Query(workload=w, strategy=s, epsilon=epsilon).total_squared_error
        for s in (dp.workloads.all_queries(w), dp.workloads.identity(w), dp.workloads.optimise(w, noise="laplace"))
    ]
    grid.add_row(*(f"{value:.4g}" for value in (split, *totals, 2 * dp.workloads.svd_bound(w))))
    return grid


def main() -> None:
    console = Console(width=max(160, Console().width))
    results, problems = {}, []
    for name, part in (("errors", errors), ("releases", releases), ("grids", grids)):
        grid, missed, rows = part()
        console.print(grid)
        results[name], problems = rows, problems + missed
    console.print(four_queries())
    for problem in problems:
        console.print(f"MISSES  {problem}", markup=False)
    peers.BUILD.mkdir(exist_ok=True)
    (peers.BUILD / "bench-workloads.json").write_text(json.dumps(results, indent=2, default=lambda x: math.nan))
    console.print("Wrote build/bench-workloads.json.")


if __name__ == "__main__":
    main()
