"""The operations of ``discreet.workloads``: the size of a histogram, its number of cells, is public."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet import workloads as w
from tests.operations.contract import Case, Worst

HISTOGRAM, NEIGHBOUR = [3, 0, 5, 2], [3, 0, 6, 2]
MOVED = [3, 1, 4, 2]
FACTS = w.Constraints(nonnegative=True)


def answers(value):
    return np.asarray(value)


def measured(value):
    return value.values


# 256 cells, so that there are widths to choose from; a record at the end of a bucket that is empty otherwise
EMPTY, LAST = [0] * 256, [0] * 255 + [1]

HISTOGRAMS = [
    Case(
        "Adaptive",
        lambda: w.Adaptive(workload=w.AllRanges(256), epsilon=1.0),
        [3, 0] * 128,
        [3, 0] * 127 + [3, 1],
        sized=True,
        result=answers,
        worst=Worst(EMPTY, LAST, make=lambda: w.Adaptive(workload=w.Prefix(256), epsilon=1.0), trials=100),
    ),
    Case(
        "Adaptive, cells",
        lambda: w.Adaptive(workload=w.Identity(256), epsilon=1.0),
        [3, 0] * 128,
        [3, 0] * 127 + [3, 1],
        sized=True,
        result=answers,
        worst=Worst(EMPTY, LAST, trials=100),
    ),
    Case(
        "Query, laplace",
        lambda: w.Query(workload=w.Prefix(4), epsilon=1.0),
        HISTOGRAM,
        NEIGHBOUR,
        sized=True,
        result=answers,
    ),
    Case(
        "Query, gaussian",
        lambda: w.Query(workload=w.AllRanges(4), rho=0.5),
        HISTOGRAM,
        NEIGHBOUR,
        sized=True,
        result=answers,
    ),
    Case(
        "Query, replace",
        lambda: w.Query(workload=w.AllRanges(4), rho=0.5, adjacency="replace"),
        HISTOGRAM,
        MOVED,
        sized=True,
        result=answers,
        worst=Worst([1, 0, 0, 0], [0, 0, 0, 1], reach=0.96),
    ),
    Case(
        "Query, known facts",
        lambda: w.Query(workload=w.Prefix(4), epsilon=1.0, constraints=FACTS),
        HISTOGRAM,
        NEIGHBOUR,
        sized=True,
        result=answers,
    ),
    Case(
        "Measure",
        lambda: w.Measure(strategy=w.hierarchy(4), epsilon=1.0, delta=1e-6),
        HISTOGRAM,
        NEIGHBOUR,
        sized=True,
        result=measured,
    ),
    Case(
        "Measure of households",
        lambda: w.Measure(strategy=w.identity(4), rho=0.5, unit="household"),
        HISTOGRAM,
        NEIGHBOUR,
        sized=True,
        result=measured,
    ),
]

OPERATIONS = [replace(case, holds="values") for case in HISTOGRAMS]
