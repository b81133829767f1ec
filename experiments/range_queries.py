"""Range queries: the three strategies of the lectures and what came after, in closed form and on real histograms.

A lecture compares three ways to answer every range count of k cells with Laplace noise: all ranges directly, the cells,
and a hierarchy. Its totals are k⁴, k³ and k² log³ k; the first of these is the error of *one* query (sensitivity k²,
squared), and there are k² queries, so that comparable totals are k⁶, k³ and k² log³ k. Both are shown. The wavelet,
Fourier and optimised strategies follow, then measured errors on histograms of the DPBench study.
The growth goes to ``build/range_queries.png``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import discreet as dp

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
SIZES = (16, 64, 256, 1024)
EPSILON = 1.0
RUNS = 20
RANGES = 2000  # ranges drawn to measure an error on real data


@dataclass(frozen=True)
class Row:
    """A strategy's total squared error × ε² over all ranges of k cells, for each k."""

    name: str
    slide: str
    law: str
    totals: tuple[float, ...]


def total(n: int, strategy: dp.workloads.Strategy) -> float:
    """Expected total squared error × ε² of least squares after Laplace noise."""
    return 2 * dp.workloads.unit_error(dp.workloads.AllRanges(n), strategy, "laplace")


def untouched(n: int) -> float:
    """All ranges with noise, published as they are: every query has variance 2(Δ/ε)²,
    Δ the ranges over the middle cell.
    """
    w = dp.workloads.AllRanges(n)
    return w.queries * 2 * w.column_norm("l1") ** 2


def rows(sizes: tuple[int, ...] = SIZES) -> list[Row]:
    """The lectures' three strategies, then the ones after."""
    ways = dp.workloads

    def law(strategy) -> tuple[float, ...]:  # type: ignore[no-untyped-def]
        return tuple(total(n, strategy(ways.AllRanges(n))) for n in sizes)

    return [
        Row("1: all ranges, as they come", "k⁴ (per query)", "k⁶", tuple(untouched(n) for n in sizes)),
        Row("1 with least squares", "", "k⁵", law(ways.all_queries)),
        Row("2: cells", "k³", "k³", law(ways.identity)),
        Row("3: binary hierarchy", "k² log³ k", "k² log³ k", law(ways.hierarchy)),
        Row("   best branching", "", "k² log³ k", law(lambda w: ways.hierarchy(w, None, noise="laplace"))),
        Row(
            "   and weights per level",
            "",
            "k² log³ k",
            law(lambda w: ways.hierarchy(w, None, noise="laplace", weighted=True)),
        ),
        Row("wavelet", "", "k² log³ k", law(ways.wavelet)),
        Row("fourier", "", "", law(ways.fourier)),
        Row("optimised", "", "", law(lambda w: ways.optimise(w, noise="laplace"))),
        Row("SVD lower bound", "", "", tuple(2 * ways.svd_bound(ways.AllRanges(n)) for n in sizes)),
    ]


def table(found: list[Row], sizes: tuple[int, ...] = SIZES) -> Table:
    grid = Table(title="All ranges of k cells, Laplace noise: expected total squared error × ε²", title_justify="left")
    for header in ("strategy", "slide's total", "comparable total", *(f"k = {n}" for n in sizes)):
        grid.add_column(header, justify="right" if header.startswith("k =") else "left")
    for row in found:
        grid.add_row(row.name, row.slide, row.law, *(f"{value:.3g}" for value in row.totals))
    return grid


# --- real histograms -----------------------------------------------------------------------------------------------


def histograms() -> Iterator[tuple[str, np.ndarray]]:
    """The DPBench histograms, from ``DISCREET_DATA`` or the folder beside the checkout;
    nothing if they are not there.
    """
    home = Path(os.environ.get("DISCREET_DATA", ROOT.parent / "shared" / "data")) / "dpbench"
    for path in sorted(home.glob("*.npy")):
        yield path.stem.split(".")[0], np.load(path).astype(np.int64)


def measured(
    x: np.ndarray, strategy: dp.workloads.Strategy, *, runs: int, nonnegative: bool = False, seed: int = 1
) -> tuple[float, float]:
    """Root-mean-square error of random ranges, and of cells, over several releases."""
    w, rng, choose = dp.workloads.AllRanges(x.size), dp.random.seeded(seed), np.random.default_rng(seed)
    ends = np.sort(choose.integers(0, x.size + 1, (RANGES, 2)), axis=1)
    squares = []  # of ranges, of cells
    for _ in range(runs):
        release = dp.workloads.answer(w, x, strategy=strategy, epsilon=EPSILON, nonnegative=nonnegative, rng=rng)
        wrong = release.value.estimate - x
        gap = np.concatenate([[0.0], np.cumsum(wrong)])
        squares.append((np.mean((gap[ends[:, 1]] - gap[ends[:, 0]]) ** 2), np.mean(wrong**2)))
    ranges, cells = np.sqrt(np.mean(squares, axis=0))
    return float(ranges), float(cells)


def real(runs: int = RUNS) -> Table:
    """Without constraints the error does not depend on the data. Without negative counts it is smaller the sparser they
    are; the projection is made in the norm of all ranges, so their total squared error cannot grow.
    """
    grid = Table(
        title=f"DPBench histograms, 4,096 cells, ε = {EPSILON:g}: root-mean-square error of random ranges / of cells",
        title_justify="left",
    )
    w = dp.workloads.AllRanges(4096)
    ways = {
        "identity": dp.workloads.identity(w),
        "hierarchy 2": dp.workloads.hierarchy(w),
        "optimised": dp.workloads.optimise(w, noise="laplace"),
    }
    for header in ("histogram", "records", "empty cells", *ways, "optimised, no negative counts"):
        grid.add_column(header, justify="left" if header == "histogram" else "right")
    for name, x in histograms():
        found = [measured(x, strategy, runs=runs) for strategy in ways.values()]
        found.append(measured(x, ways["optimised"], runs=runs, nonnegative=True))
        cells = (f"{ranges:.1f} / {cell:.2f}" for ranges, cell in found)
        grid.add_row(name, f"{x.sum():,}", f"{np.mean(x == 0):.0%}", *cells)
    return grid


def plot(found: list[Row], path: Path, sizes: tuple[int, ...] = SIZES) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for row in found:
        axes.loglog(sizes, row.totals, "k--" if row.name.startswith("SVD") else "o-", label=row.name)
    axes.set_xlabel("cells k")
    axes.set_ylabel("expected total squared error × ε²")
    axes.legend(fontsize=8)
    figure.savefig(path)


def main() -> None:
    console = Console()
    found = rows()
    console.print(table(found))
    if any(True for _ in histograms()):
        console.print(real())
    else:
        console.print("No DPBench histograms: put them in the folder that DISCREET_DATA names, under dpbench/.")
    BUILD.mkdir(exist_ok=True)
    plot(found, BUILD / "range_queries.png")
    console.print("Wrote build/range_queries.png.")


if __name__ == "__main__":
    main()
