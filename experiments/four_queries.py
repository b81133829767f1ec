"""The four queries of the lectures: the same answers, at the same epsilon, with a tenth of the squared error.

How many men with a body mass index below 25, how many men, how many such women, how many women? Each way to ask is run
many times on a made-up group of forty, and its total squared error, times ε², is measured beside the closed form:

    a quarter of ε each     4 × 2 (4/ε)²                                          128
    all at once             one person moves two of the answers: 4 × 2 (2/ε)²      32
    four disjoint cells     one person moves one cell; totals add two cells        12

The last rows add what is known anyway: no count is negative. That is a projection, costs nothing, and never hurts in
the norm it is made in; how much it gains depends on the data. ``--quick`` makes fewer runs and leaves the page as it
is. The figure is ``docs/images/four_queries.png``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import discreet as dp
from experiments import _results

EPSILONS, RUNS, SEED = (1.0, 0.1), 2000, 3
PEOPLE = np.array([6, 15, 8, 11])  # men below and above a body mass index of 25, women likewise
FOUR = dp.workloads.four_queries()
STRATEGIES = {
    "all at once": dp.workloads.all_queries(FOUR),
    "four disjoint cells": dp.workloads.identity(FOUR),
}


def split(epsilon: float, runs: int) -> dict[str, Any]:
    """Every query by itself, with a quarter of the budget."""
    one, truth = dp.mechanisms.Laplace(sensitivity=1.0, epsilon=epsilon / 4), FOUR.apply(PEOPLE)
    rng = dp.random.seeded(SEED)
    noisy = np.asarray([one.release(truth, rng).value for _ in range(runs)])
    return row("a quarter of ε each", epsilon, 4 * 2 * one.scale**2, ((noisy - truth) ** 2).sum(axis=1))


def together(name: str, epsilon: float, runs: int, nonnegative: bool) -> dict[str, Any]:
    """One strategy, measured once, and least squares; without negative counts the error has no closed form."""
    facts = dp.workloads.Constraints(nonnegative=nonnegative)
    query = dp.workloads.Query(workload=FOUR, strategy=STRATEGIES[name], epsilon=epsilon, constraints=facts)
    rng, truth = dp.random.seeded(SEED), FOUR.apply(PEOPLE)
    errors = [((np.asarray(query.release(PEOPLE, rng).value) - truth) ** 2).sum() for _ in range(runs)]
    told = None if nonnegative else query.total_squared_error
    return row(name + (", none negative" if nonnegative else ""), epsilon, told, np.asarray(errors))


def row(name: str, epsilon: float, promised: float | None, errors: Any) -> dict[str, Any]:
    """Everything times ε²."""
    by = epsilon**2
    spread = float(errors.std(ddof=1) / np.sqrt(len(errors)))
    told = None if promised is None else promised * by
    return {"way": name, "epsilon": epsilon, "promised": told, "measured": errors.mean() * by, "error": spread * by}


def results(runs: int) -> list[dict[str, Any]]:
    found = []
    for epsilon in EPSILONS:
        found.append(split(epsilon, runs))
        found += [together(name, epsilon, runs, facts) for facts in (False, True) for name in STRATEGIES]
    return found


def plot(found: list[dict[str, Any]]) -> None:
    ways = list(dict.fromkeys(each["way"] for each in found))
    with _results.figure("four_queries", 1, 7.0) as (axis,):
        for shift, epsilon in enumerate(EPSILONS):
            values = [each["measured"] for each in found if each["epsilon"] == epsilon]
            axis.barh(np.arange(len(ways)) + 0.4 * shift, values, 0.38, label=f"ε = {epsilon:g}")
        axis.set(yticks=np.arange(len(ways)) + 0.2, yticklabels=ways, xlabel="total squared error × ε²")
        axis.invert_yaxis()
        axis.legend(fontsize=8, frameon=False)


def main(quick: bool = False) -> None:
    found = results(100 if quick else RUNS)
    header = ["total squared error × ε²", "closed form", *(f"measured, ε = {e:g}" for e in EPSILONS)]
    rows = []
    for way in dict.fromkeys(each["way"] for each in found):
        cells = [each for each in found if each["way"] == way]
        promised = cells[0]["promised"]
        measured = (f"{cell['measured']:.1f} ± {cell['error']:.1f}" for cell in cells)
        rows.append([way, "" if promised is None else f"{promised:.1f}", *measured])
    _results.show("The four queries", header, rows)
    _results.save("four_queries", found)
    _results.write_table("four_queries", header, rows)
    plot(found)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
