"""Errors of private means and of private choices, measured beside their theorems: ``python -m experiments means``.

*Means*, mean squared error over many runs: bits (p(1 - p)/n + 2/(nε)²); values of bounded variance, clipped at the best
τ (σ²/n + √2 σ²/(nε)); the same in d dimensions. *Choices*: how far the exponential mechanism's choice is below the best
score in 95 of 100 runs, beside (2/ε) ln(|T|/0.05), when all candidates but one are equally bad: the worst case.

The figure is ``docs/images/means.png``. ``--quick`` makes fewer runs, and leaves the page as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from discreet import mechanisms, statistics
from experiments import _results

SIZES, EPSILON, RUNS = (100, 1_000, 10_000), 0.5, 400
CANDIDATES, GAPS = (10, 1_000, 100_000), np.linspace(0, 60, 61)
P, D = 0.3, 10


def bits(n: int, rng: np.random.Generator) -> tuple[float, float]:
    """Squared error of one run, and what is promised of its mean."""
    mean = statistics.Mean(bounds=(0, 1), epsilon=EPSILON, adjacency="replace", n=n)
    found = float(mean.release(rng.random(n) < P).value) - P
    return found**2, P * (1 - P) / n + 2 / (n * EPSILON) ** 2


def heavy(n: int, rng: np.random.Generator) -> tuple[float, float]:
    """Student's t with three degrees of freedom: variance 3, and nothing more is known."""
    mean = statistics.BoundedVarianceMean(sd=np.sqrt(3.0), n=n, epsilon=EPSILON, adjacency="replace")
    return float(mean.release(rng.standard_t(3, n)).value) ** 2, mean.mse()


def vectors(n: int, rng: np.random.Generator) -> tuple[float, float]:
    """Ten such columns: one vector a record."""
    mean = statistics.BoundedVarianceMean(
        sd=np.sqrt(3.0 * D), n=n, dimension=D, epsilon=EPSILON, delta=1e-6, adjacency="replace"
    )
    found = np.asarray(mean.release(rng.standard_t(3, (n, D))).value)
    return float(found @ found), mean.mse()


KINDS = {"bits": bits, "bounded variance": heavy, f"bounded variance, {D} columns": vectors}


def mean_errors(runs: int) -> list[dict[str, Any]]:
    found = []
    for name, one in KINDS.items():
        for n in SIZES:
            rng = np.random.default_rng(0)
            pairs = [one(n, rng) for _ in range(max(20, runs * 100 // n) if n > 1000 else runs)]
            measured = float(np.mean([error for error, _ in pairs]))
            found.append({"of": name, "n": n, "measured": measured, "promised": pairs[0][1]})
    return found


def choice_errors(runs: int) -> list[dict[str, Any]]:
    """At each gap between the best score and all others: how often is the best one missed?"""
    found = []
    for size in CANDIDATES:
        choice = mechanisms.Exponential(sensitivity=1.0, epsilon=1.0)
        scores = np.zeros(size)
        worst = 0.0
        for gap in GAPS[::5]:
            scores[0] = gap
            missed = np.mean([choice.release(scores).value != 0 for _ in range(runs)])
            worst = max(worst, float(gap)) if missed > 0.05 else worst
        found.append({"candidates": size, "measured": worst, "promised": choice.error(0.95, size=size)})
    return found


def plot(means: list[dict[str, Any]], choices: list[dict[str, Any]]) -> None:
    with _results.figure("means", 2) as (left, right):
        for name in KINDS:
            cells = [cell for cell in means if cell["of"] == name]
            line = left.plot(SIZES, [cell["promised"] for cell in cells], linestyle="--")
            left.plot(SIZES, [cell["measured"] for cell in cells], "o", color=line[0].get_color(), label=name)
        left.set(xscale="log", yscale="log", xlabel="records", ylabel="mean squared error", title="dashed: the theorem")
        left.legend(fontsize=7, frameon=False)
        right.plot(CANDIDATES, [cell["promised"] for cell in choices], "--", label="the theorem")
        right.plot(CANDIDATES, [cell["measured"] for cell in choices], "o", label="worst seen in 95 of 100")
        right.set(
            xscale="log", xlabel="candidates", ylabel="below the best score", title="exponential mechanism, ε = 1"
        )
        right.legend(fontsize=7, frameon=False)


def main(quick: bool = False) -> None:
    runs = 40 if quick else RUNS
    means, choices = mean_errors(runs), choice_errors(runs)
    table = Table("", "measured", "theorem")
    rows = [[f"{e['of']}, n = {e['n']:,}", f"{e['measured']:.2e}", f"{e['promised']:.2e}"] for e in means]
    rows += [
        [f"choice among {e['candidates']:,}", f"{e['measured']:.0f} below", f"at most {e['promised']:.1f}"]
        for e in choices
    ]
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    _results.save("means", {"means": means, "choices": choices})
    _results.write_table("means", ["", "measured", "theorem"], rows)
    plot(means, choices)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
