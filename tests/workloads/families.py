"""The members every common law is checked on."""

from __future__ import annotations

import numpy as np

from discreet.workloads import (
    AllRanges,
    Explicit,
    Identity,
    Marginals,
    Matrix,
    Prefix,
    Product,
    all_queries,
    four_queries,
    fourier,
    hierarchy,
    identity,
    optimise,
    wavelet,
)

WORKLOADS = {
    "identity": Identity(12),
    "identity table": Identity((3, 4)),
    "prefix": Prefix(12),
    "ranges": AllRanges(12),
    "explicit": Explicit(np.random.default_rng(1).integers(-2, 3, (7, 12))),
    "four queries": four_queries(),
    "product": Product((Prefix(3), AllRanges(4))),
    "marginals": Marginals((2, 3, 2), [(0,), (1, 2)]),
    "one cell": AllRanges(1),
}

STRATEGIES = {
    "identity": identity(12),
    "identity table": identity((3, 4)),
    "all queries, ranges": all_queries(AllRanges(12)),
    "all queries, prefix": all_queries(Prefix(12)),
    "all queries, product": all_queries(Product((Prefix(3), AllRanges(4)))),
    "hierarchy 2": hierarchy(12, 2),
    "hierarchy 5": hierarchy(12, 5),
    "weighted hierarchy": hierarchy(AllRanges(12), branching=None, weighted=True),
    "hierarchy table": hierarchy((3, 5), 2),
    "wavelet": wavelet(12),
    "wavelet table": wavelet((3, 4)),
    "fourier": fourier(AllRanges(12)),
    "fourier, one cell": fourier(Prefix(1)),
    "filters, ranges": optimise(AllRanges(12)),
    "filters, prefix": optimise(Prefix(12)),
    "filters, two cells": optimise(Prefix(2)),
    "filters, product": optimise(Product((Prefix(3), AllRanges(4)))),
    "p-identity": optimise(AllRanges(32), noise="laplace"),
    "optimal matrix": optimise(Explicit(np.random.default_rng(1).integers(-2, 3, (14, 12)))),
    "residuals": optimise(Marginals((2, 3, 2), 3)),
    "marginal counts": optimise(Marginals((2, 3, 2), [(0, 1, 2), (0,)]), noise="laplace"),
    "matrix": Matrix(np.random.default_rng(2).normal(size=(15, 12))),
    "one cell": optimise(AllRanges(1)),
}


def matrix_of(linear, shape, dtype=float):
    """The dense matrix of a linear map over cells of a shape."""
    size = int(np.prod(shape))
    return np.stack(
        [np.asarray(linear(row.reshape(shape)), float).reshape(-1) for row in np.eye(size, dtype=dtype)], axis=1
    )
