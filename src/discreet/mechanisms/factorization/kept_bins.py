"""The event of a run with correlated noise whose records keep their bins: Gram entries of what each bin moves."""

from __future__ import annotations

import numpy as np

from discreet import events
from discreet.errors import positive, whole
from discreet.mechanisms.factorization.strategy import Strategy

__all__ = ["kept_bins_event"]

_UP = 1 + 1e-9  # sums of at most 10^6 terms that are not negative lose less


def kept_bins_event(strategy: Strategy, bins: int, noise_multiplier: float) -> events.KeptBins:
    """What a run costs in which a record of bin i takes part at steps i, i + bins, i + 2·bins, ...

    Guarantee: holds for contributions of norm at most one, chosen after earlier noisy sums, because no entry of the
    matrix is negative; any other matrix is refused.

    >>> from discreet.mechanisms.factorization import LambdaCGD
    >>> event = kept_bins_event(LambdaCGD(0.5, 8), bins=4, noise_multiplier=2.0)
    >>> event.bins, len(event.products)
    (4, 4)
    """
    bins = whole("bins", bins, low=1)
    if bins > strategy.steps:
        raise ValueError(f"bins is {bins}, but a run of {strategy.steps} steps has no more than so many.")
    matrix = np.asarray(strategy.matrix())
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{type(strategy).__name__} has a matrix of type {matrix.dtype}, but must have real numbers.")
    matrix = matrix.astype(float)
    if not (matrix >= 0).all():
        raise ValueError(
            f"{type(strategy).__name__} has a negative entry, but kept bins are amplified only where the matrix has "
            "none: a record could then move two bins in opposite directions. Price it unamplified, by its sensitivity."
        )
    if matrix.shape[0] != matrix.shape[1] or np.triu(matrix, 1).any():
        raise ValueError(
            f"{type(strategy).__name__} is not square and lower triangular, but the proof for kept bins goes from row "
            "to row of a matrix whose rows see no later step. Price it unamplified, by its sensitivity."
        )
    moved = np.stack([matrix[:, i::bins].sum(axis=1) for i in range(bins)], axis=1)
    gram = moved.T @ moved * _UP
    products = tuple(float(np.diagonal(gram, d).max()) for d in range(bins))
    return events.KeptBins(
        bins=bins, products=products, noise_multiplier=positive("noise_multiplier", noise_multiplier)
    )
