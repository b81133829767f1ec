"""The course's own figures: what its theorems look like. Most are closed forms; one is measured in seconds.

``python -m experiments course`` draws ``docs/images/course-*.png``: the attacker's trade-off of three releases of equal
(ε, δ); Laplace's and Gauss's error by the number of answers; what MWEM and two strategies leave of all ranges; how the
error of running sums grows with their number. ``--quick`` computes and draws all of it on less.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

import discreet as dp
from discreet.mechanisms import factorization as f
from experiments import _results

Lines = dict[str, list[float]]
ALARMS = np.linspace(0.001, 1, 200)
COUNTS = (1, 2, 5, 10, 20, 50, 100)
EPSILONS, CELLS, RECORDS = (0.03, 0.1, 0.3, 1.0), 256, 1000
STEPS = (4, 16, 64, 256, 1024)


def tradeoffs(alarms: np.ndarray) -> Lines:
    """What an attacker finds at each rate of false alarms, at most."""
    epsilon, delta = 1.0, 1e-5
    gauss = dp.mechanisms.Gaussian(sensitivity=1.0, epsilon=epsilon, delta=delta).event
    events = {
        "Gaussian noise, (1, 1e-5)-private": gauss,
        "Laplace noise, 1-private": dp.mechanisms.Laplace(sensitivity=1.0, epsilon=epsilon).event,
        "anything (1, 1e-5)-private": dp.events.ApproxDP(epsilon=epsilon, delta=delta),
    }
    guarantees = {name: dp.guarantee(event) for name, event in events.items()}
    return {name: [guarantee.tpr_at(alarm) for alarm in alarms] for name, guarantee in guarantees.items()}


def noises(counts: tuple[int, ...]) -> Lines:
    """Errors that 95 of 100 stay within, of k answers that one record moves by 1 each; ε = 1, δ = 1e-6."""
    gauss = [
        dp.mechanisms.Gaussian(sensitivity=sqrt(k), epsilon=1.0, delta=1e-6).error(confidence=0.95) for k in counts
    ]
    laplace = [dp.mechanisms.Laplace(sensitivity=k, epsilon=1.0).error(confidence=0.95) for k in counts]
    return {"Laplace, δ = 0": laplace, "Gauss, δ = 1e-6": gauss}


def released(cells: int, runs: int) -> Lines:
    """Root-mean-square error of all ranges, by ε: a few records in a few places."""
    x = np.random.default_rng(0).multinomial(RECORDS, np.random.default_rng(1).dirichlet(np.full(cells, 0.05)))
    w, rng = dp.workloads.AllRanges(cells), dp.random.seeded(4)
    best = dp.workloads.optimise(w, noise="laplace")
    found: Lines = {"cells": [], "optimised strategy": [], "MWEM": []}
    for epsilon in EPSILONS:
        ways: dict[str, dp.release.Operation] = {
            "cells": dp.workloads.Query(workload=w, strategy=dp.workloads.identity(w), epsilon=epsilon),
            "optimised strategy": dp.workloads.Query(workload=w, strategy=best, epsilon=epsilon),
            "MWEM": dp.synthesis.MWEM(workload=dp.workloads.Prefix(cells), epsilon=epsilon, n=RECORDS, rounds=6),
        }
        for name, way in ways.items():
            gaps = [np.append(0, np.cumsum(way.release(x, rng).value.estimate - x)) for _ in range(runs)]
            found[name].append(float(np.sqrt(np.mean([2 * gap.var() for gap in gaps]))))
    return found


def sums(steps: tuple[int, ...]) -> Lines:
    """Root-mean-square error of all running sums, at noise 1 for a record that comes once."""
    found: Lines = {"independent": [], "binary tree": [], "square root": []}
    for n in steps:
        w, once = f.Workload(n), f.Pattern.passes(n, n)
        for name, strategy in zip(found, (f.Banded([1.0], n), f.Tree(n), f.SquareRoot(w)), strict=True):
            found[name].append(float(strategy.loss(w, once)))
    return found


def draw(name: str, at: object, lines: Lines, **labels: str) -> None:
    with _results.figure(f"course-{name}", 1, 5.5) as (axis,):
        for label, values in lines.items():
            axis.plot(at, values, "-" if len(values) > 20 else "o-", label=label)
        axis.set(**labels)
        axis.legend(fontsize=8, frameon=False)


def main(quick: bool = False) -> None:
    alarms, counts, steps = (ALARMS[::40], COUNTS[:2], STEPS[:2]) if quick else (ALARMS, COUNTS, STEPS)
    attacker, noise, running = tradeoffs(alarms), noises(counts), sums(steps)
    ranges = released(32 if quick else CELLS, 2 if quick else 20)
    for name, lines in {"noise": noise, "release": ranges, "sums": running}.items():
        print(name, {label: [round(value, 2) for value in values] for label, values in lines.items()})
    _results.save("course", {"noise": noise, "release": ranges, "sums": running})
    draw("tradeoff", alarms, attacker, xlabel="outsiders accused", ylabel="members found, at most")
    log = {"xscale": "log", "yscale": "log"}
    draw("noise", counts, noise, xlabel="answers that one record moves", ylabel="error, 95 of 100", **log)
    draw("release", EPSILONS, ranges, xlabel="ε", ylabel="error of a range, records", **log)
    draw("sums", steps, running, xlabel="running sums", ylabel="error of a sum, noise 1", **log)


if __name__ == "__main__":
    main(quick=_results.begin(__doc__))
