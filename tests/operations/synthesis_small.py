"""The operations of ``discreet.synthesis`` that answer a workload: the size of a histogram is public."""

from __future__ import annotations

import numpy as np

from discreet import synthesis, workloads
from tests.operations.contract import Case

HISTOGRAM, NEIGHBOUR = [3, 0, 5, 2], [3, 0, 6, 2]
MOVED = [3, 1, 4, 2]


def published(value):
    return np.asarray(value.estimate)


def small(**told):
    return synthesis.SmallDB(workload=workloads.Prefix(4), alpha=0.5, **told)


def mwem(**told):
    return synthesis.MWEM(workload=workloads.AllRanges(4), rounds=3, **told)


OPERATIONS = [
    Case("SmallDB", lambda: small(epsilon=1.0, n=10), HISTOGRAM, NEIGHBOUR, sized=True, result=published),
    Case(
        "SmallDB, replace",
        lambda: small(epsilon=1.0, delta=1e-6, adjacency="replace"),
        HISTOGRAM,
        MOVED,
        sized=True,
        result=published,
    ),
    Case("MWEM", lambda: mwem(epsilon=1.0, n=10), HISTOGRAM, NEIGHBOUR, sized=True, result=published),
    Case("MWEM, n measured", lambda: mwem(epsilon=1.0), HISTOGRAM, NEIGHBOUR, sized=True, result=published),
    Case(
        "MWEM, replace",
        lambda: mwem(rho=0.5, n=10, passes=1, output="average", adjacency="replace"),
        HISTOGRAM,
        MOVED,
        sized=True,
        result=published,
    ),
]
