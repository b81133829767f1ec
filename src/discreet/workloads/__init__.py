"""Linear queries: workload, strategy, measure, infer. One path for everything linear.

A *workload* is what must be answered, a *strategy* what is measured in its place. Noise is added to the strategy's
answers; least squares, with what else is known, turns them into one histogram and that into consistent answers.

>>> import numpy as np
>>> w = AllRanges(256)
>>> s = optimise(w, noise="gaussian")
>>> query = Query(workload=w, strategy=s, rho=0.5)      # cost and error are known here
>>> round(query.rmse, 3)
2.902
>>> release = query.release(np.ones(256, int), rng=1)   # data is read here
>>> bool(abs(np.asarray(release.value)[w.index(0, 255)] - 256) < 10)
True
"""

from __future__ import annotations

from discreet.workloads.buckets import Adaptive, adaptive
from discreet.workloads.comparison import Comparison, compare
from discreet.workloads.constrained_inference import Constraints, constrained_inference, project
from discreet.workloads.explicit import Explicit, four_queries
from discreet.workloads.marginals import Marginals
from discreet.workloads.matrices import Matrix, all_queries
from discreet.workloads.measurement import Joint, Measure, Measurement, infer, measure
from discreet.workloads.products import Product
from discreet.workloads.query import Answers, Query, answer
from discreet.workloads.ranges import AllRanges, Prefix
from discreet.workloads.selection import fourier, hierarchy, identity, optimise, svd_bound, unit_error, wavelet
from discreet.workloads.strategy import Strategy
from discreet.workloads.workload import Identity, Workload

__all__ = [
    "Adaptive",
    "AllRanges",
    "Answers",
    "Comparison",
    "Constraints",
    "Explicit",
    "Identity",
    "Joint",
    "Marginals",
    "Matrix",
    "Measure",
    "Measurement",
    "Prefix",
    "Product",
    "Query",
    "Strategy",
    "Workload",
    "adaptive",
    "all_queries",
    "answer",
    "compare",
    "constrained_inference",
    "four_queries",
    "fourier",
    "hierarchy",
    "identity",
    "infer",
    "measure",
    "optimise",
    "project",
    "svd_bound",
    "unit_error",
    "wavelet",
]
