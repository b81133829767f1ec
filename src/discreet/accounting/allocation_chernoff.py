r"""Chernoff's bound for the lower tail of a sum on the lattice of :mod:`discreet.accounting.allocation_lattice`.

Errors of a Fourier transform are as large in the lower tail as elsewhere. There they would look like mass, and keep the
lattice's start, and so its fine points, where nothing is. What a sum of two laws X and Y can have at n is at most

.. math:: \Pr(X + Y \le n) \le e^{\tau n}\, E e^{-\tau X}\, E e^{-\tau Y} \qquad (\tau > 0).

Reference: Chernoff (1952).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from discreet.accounting.arrays import Array

__all__ = ["lower_tail"]

Law: TypeAlias = tuple[Array, Array]  # numbers of points, and masses

_TILTS = 1.5 * np.arange(1, 9)  # over a deviation: of normal tails to 1e-31
_FAINT = 1e-20


def lower_tail(laws: Sequence[Law], numbers: Array) -> Array:
    """What the sum of two laws (or of one and itself) can have at most at its points, infinity above its mean.

    Spreads move what is r rows up by less than four of that row's points, and it is half a row, but for four points,
    away from the start: by at most 4, or 10/columns of the distance of where it goes to (columns ≥ 512).
    """
    times = 2 // len(laws)
    means, variances = zip(*(_mean_and_variance(*law) for law in laws), strict=True)
    deviation, start = math.sqrt(times * sum(variances)), float(numbers[0, 0])
    logs = times * np.sum([_log_transforms(*law, deviation) for law in laws], axis=0)
    left = numbers < times * sum(means)
    n = (numbers[left] - start) * (1 + 10 / numbers.shape[1]) + 4
    bounds = np.full(len(n), 1e-9)
    for tilt, log in zip(_TILTS, logs, strict=True):
        np.minimum(bounds, tilt / deviation * n + log, out=bounds)
    result = np.full(numbers.shape, np.inf)
    result[left] = np.exp(bounds)
    return result


def _mean_and_variance(numbers: Array, masses: Array) -> tuple[float, float]:
    mean = float((masses * numbers).sum())
    return mean, float((masses * (numbers - mean) ** 2).sum())


def _log_transforms(numbers: Array, masses: Array, deviation: float) -> Array:
    """log E exp(-τ(n - start)/deviation), for every tilt τ, rounded up; far from the start all counts as so far."""
    decay = np.exp(-(numbers - numbers[0, 0]) / deviation * _TILTS[0])
    near = decay > _FAINT
    decay, tilted = decay[near], masses[near]
    rest, sums = max(0.0, float(masses.sum() - tilted.sum())), []
    for _ in _TILTS:
        tilted = tilted * decay
        sums.append(float(tilted.sum()))
    return np.asarray(np.log(np.array(sums) + (rest + 1e-12) * _FAINT ** np.arange(1, len(sums) + 1)) + 1e-9)
