"""The event of a run with correlated noise whose records keep their bins: Gram entries of what each bin moves."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from discreet import events
from discreet.errors import positive, whole
from discreet.mechanisms.factorization.participation import Pattern, shifted_sum
from discreet.mechanisms.factorization.strategy import Strategy, ToeplitzStrategy
from discreet.mechanisms.factorization.toeplitz import Floats

__all__ = ["kept_bins_event", "why_not_amplified"]

_UP, _DOWN = 1 + 1e-9, 1 - 1e-9  # sums of at most 10^6 terms that are not negative lose less


def kept_bins_event(strategy: Strategy, bins: int, noise_multiplier: float) -> events.KeptBins:
    """What a run costs in which a record of bin i takes part at steps i, i + bins, i + 2·bins, ...

    Guarantee: holds for contributions of norm at most one, chosen after earlier noisy sums, because no entry of the
    matrix is negative; any other matrix is refused. In a run of less than a pass the last bins have no step.

    >>> from discreet.mechanisms.factorization import LambdaCGD
    >>> event = kept_bins_event(LambdaCGD(0.5, 8), bins=4, noise_multiplier=2.0)
    >>> event.bins, len(event.products)
    (4, 4)
    """
    bins = whole("bins", bins, low=1)
    if (reason := why_not_amplified(strategy)) is not None:
        raise ValueError(reason)
    largest, smallest = _products(strategy, bins)
    return events.KeptBins(
        bins=bins,
        products=largest,
        noise_multiplier=positive("noise_multiplier", noise_multiplier),
        smallest_products=smallest,
    )


@lru_cache(maxsize=64)  # asked for at every noise that a calibration tries
def why_not_amplified(strategy: Strategy) -> str | None:
    """Why kept bins have no amplified price with a matrix, as a sentence; none where they have one."""
    name = type(strategy).__name__
    if isinstance(strategy, ToeplitzStrategy):  # square and lower triangular
        entries = np.asarray(strategy.coefficients)
    else:
        entries = np.asarray(strategy.matrix())
    if entries.dtype.kind not in "biuf":
        return f"{name} has a matrix of type {entries.dtype}, but must have real numbers."
    if not np.isfinite(entries).all():
        return f"{name} has an entry that is not finite, but every entry must be a number of at least zero."
    if not (entries >= 0).all():
        return (
            f"{name} has a negative entry, but kept bins are amplified only where the matrix has none: a record could "
            "then move two bins in opposite directions. Price it unamplified, by its sensitivity."
        )
    if entries.ndim == 2 and (entries.shape[0] != entries.shape[1] or np.triu(entries, 1).any()):
        return (
            f"{name} is not square and lower triangular, but the proof for kept bins goes from row to row of a matrix "
            "whose rows see no later step. Price it unamplified, by its sensitivity."
        )
    return None


@lru_cache(maxsize=64)
def _products(strategy: Strategy, bins: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The largest inner product, and the smallest, of what two bins move that are 0, 1, 2, ... apart."""
    if isinstance(strategy, ToeplitzStrategy):
        largest, smallest = _toeplitz_products(np.asarray(strategy.coefficients, dtype=float), bins)
    else:
        matrix = np.asarray(strategy.matrix(), dtype=float)
        moved = np.stack([matrix[:, i::bins].sum(axis=1) for i in range(bins)], axis=1)
        gram = moved.T @ moved
        largest = np.array([np.diagonal(gram, d).max() for d in range(bins)])
        smallest = np.array([np.diagonal(gram, d).min() for d in range(bins)])
    return tuple((largest * _UP).tolist()), tuple((smallest * _DOWN).tolist())


def _toeplitz_products(coefficients: Floats, bins: int) -> tuple[Floats, Floats]:
    """Bin i moves what bin 0 does, i steps later and cut at the end: the first bins have the largest products, the last
    ones the smallest."""
    steps = len(coefficients)
    first = shifted_sum(coefficients, Pattern.passes(steps, bins))
    cut = max(0, steps - bins + 1)  # what is left of the last bin
    largest = [float(first[: max(0, steps - d)] @ first[d:]) for d in range(bins)]
    smallest = [float(first[:cut] @ first[d : d + cut]) for d in range(bins)]
    return np.array(largest), np.array(smallest)
