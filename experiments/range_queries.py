"""Range queries: the three strategies of the lectures and what came after, in closed form and on real histograms.

A lecture compares three ways to answer every range count of k cells with Laplace noise: all ranges directly, the cells,
and a hierarchy. Its totals are k⁴, k³ and k² log³ k; the first of these is the error of *one* query (sensitivity k²,
squared), and there are k² queries, so that comparable totals are k⁶, k³ and k² log³ k. Both are shown. The wavelet,
Fourier and optimised strategies follow, then measured errors on histograms of the DPBench study.
The figure is ``docs/images/range_queries.png``. ``--quick``: fewer cells and runs, and the page stays as it is.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import discreet as dp
from experiments import _results
from experiments._data import histograms

ROOT = Path(__file__).resolve().parent.parent
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


def cells(row: Row) -> list[str]:
    return [row.name, row.slide, row.law, *(f"{value:.3g}" for value in row.totals)]


# --- real histograms -----------------------------------------------------------------------------------------------


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


WAYS = ("cells", "binary hierarchy", "optimised", "optimised, no negative counts")


def real(runs: int = RUNS, size: int = 4096) -> list[list[str]]:
    """A row a histogram: its facts, then error of random ranges / of cells by each of ``WAYS``.

    Without constraints the error does not depend on the data. Without negative counts it is smaller the sparser they
    are; the projection is made in the norm of all ranges, so their total squared error cannot grow.
    """
    w = dp.workloads.AllRanges(size)
    best = dp.workloads.optimise(w, noise="laplace")
    rows = []
    for name, x in histograms():
        x = x.reshape(size, -1).sum(axis=1)
        found = [measured(x, way, runs=runs) for way in (dp.workloads.identity(w), dp.workloads.hierarchy(w), best)]
        found.append(measured(x, best, runs=runs, nonnegative=True))
        told = (f"{ranges:.1f} / {cell:.2f}" for ranges, cell in found)
        rows.append([name, f"{x.sum():,}", f"{np.mean(x == 0):.0%}", *told])
    return rows


def plot(found: list[Row], sizes: tuple[int, ...] = SIZES) -> None:
    """On the left how totals grow, on the right how far the better ones are above the bound."""
    bound = np.asarray(found[-1].totals)
    with _results.figure("range_queries", 2, 9.5) as (left, right):
        for row in found:
            if row.name[0] in "123":
                left.loglog(sizes, row.totals, "o-", label=row.name)
            if row.name[0] != "1":
                style = "k--" if row is found[-1] else "o-"
                right.loglog(sizes, np.asarray(row.totals) / bound, style, label=row.name.strip())
        left.set(xlabel="cells k", ylabel="expected total squared error × ε²")
        right.set(xlabel="cells k", ylabel="... over the SVD lower bound")
        left.legend(fontsize=7, frameon=False)
        right.legend(fontsize=7, frameon=False, ncols=2)
        right.set_ylim(0.8, 3000)


def main(quick: bool = False) -> None:
    sizes = SIZES[:2] if quick else SIZES
    found = rows(sizes)
    header = ["strategy", "slide's total", "comparable total", *(f"k = {n}" for n in sizes)]
    title = "All ranges of k cells, Laplace noise: expected total squared error × ε²"
    _results.show(title, header, [cells(row) for row in found])
    on_files = real(2, 256) if quick else real()
    columns = ["histogram", "records", "empty cells", *WAYS]
    title = f"DPBench histograms, ε = {EPSILON:g}: root-mean-square error of random ranges / of cells"
    _results.show(title, columns, on_files)
    _results.save("range_queries", {"totals": [asdict(row) for row in found], "files": on_files})
    _results.write_table("range_queries", header, [cells(row) for row in found])
    _results.write_table("range_queries", columns, on_files, mark="files")
    plot(found, sizes)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
