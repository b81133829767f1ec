"""The operations of ``discreet.synthesis`` that answer a workload: the size of a histogram is public."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet import synthesis, workloads
from discreet.schema import Bounded, Categories, Declaration, Schema
from tests.operations.contract import Case, Worst
from tests.operations.linear import spied_columns

HISTOGRAM, NEIGHBOUR = [3, 0, 5, 2], [3, 0, 6, 2]
MOVED = [3, 1, 4, 2]


FACTS = Declaration(Schema(age=Bounded(0, 100), sex=Categories(["f", "m"])), unit="who")
TABLE = {"who": [1, 2, 3, 4, 4], "age": [20, 40, 60, 80, 0], "sex": ["f", "m", "f", "x", "f"]}
FEWER = {name: values[1:] for name, values in TABLE.items()}


def published(value):
    return np.asarray(value.estimate)


def small(**told):
    return synthesis.SmallDB(workload=workloads.Prefix(4), alpha=0.5, **told)


def mwem(**told):
    return synthesis.MWEM(workload=workloads.AllRanges(4), rounds=3, **told)


def checked(**told):
    return synthesis.QualityCheck(synthetic=FEWER, schema=FACTS, n=4, target="sex", **told)


FEWER_RUNS = Worst(trials=300)
HALF = Worst(trials=400, reach=0.5)  # no record is at the edge of everything that is checked at once

HISTOGRAMS = [
    Case("SmallDB", lambda: small(epsilon=1.0, n=10), HISTOGRAM, NEIGHBOUR, sized=True, result=published),
    Case(
        "SmallDB, replace",
        lambda: small(epsilon=1.0, delta=1e-6, adjacency="replace"),
        HISTOGRAM,
        MOVED,
        sized=True,
        result=published,
    ),
    Case("MWEM", lambda: mwem(epsilon=1.0, n=10), HISTOGRAM, NEIGHBOUR, sized=True, result=published, worst=FEWER_RUNS),
    Case(
        "MWEM, n measured",
        lambda: mwem(epsilon=1.0),
        HISTOGRAM,
        NEIGHBOUR,
        sized=True,
        result=published,
        worst=FEWER_RUNS,
    ),
    Case(
        "MWEM, replace",
        lambda: mwem(rho=0.5, n=10, passes=1, output="average", adjacency="replace"),
        HISTOGRAM,
        MOVED,
        sized=True,
        result=published,
        worst=FEWER_RUNS,
    ),
]

OPERATIONS = [
    Case("QualityCheck", lambda: checked(epsilon=1.0), TABLE, FEWER, spy=spied_columns, sized=True, worst=HALF),
    Case("QualityCheck, gaussian", lambda: checked(rho=0.5), TABLE, FEWER, spy=spied_columns, sized=True, worst=HALF),
    *(replace(case, holds="values") for case in HISTOGRAMS),
]
