"""The exact law of Kolmogorov and Smirnov's distance of two samples with ties: a count of lattice paths.

Given all values, each way to deal them to the two groups is as likely, if both have one law. A way is a path of steps,
one for each value in order, and the distance is how far the path is from the diagonal where a tie ends. The mass of the
paths that have not been so far is carried from step to step. Reference: Schröer and Trenkler (1995); without ties it is
Hodges (1957).

Decision 559.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from discreet.inference.simulation import Array

__all__ = ["MOST_RECORDS", "smirnov"]

MOST_RECORDS = 20_000  # in both groups: about a second
_NEAR = 1e-9  # distances that are equal but for rounding


def smirnov(counts: Array) -> float:
    """The p-value of two groups of counts in ordered cells, of which both have records.

    >>> round(smirnov(np.array([[3, 0, 1], [0, 2, 2]])), 6)  # of 70 ways 16 are as far apart
    0.228571
    """
    sizes = counts.sum(-1)
    cdf = np.cumsum(counts, axis=-1) / sizes[:, None]
    ends = np.cumsum(counts.sum(0))
    distance = np.abs(cdf[0] - cdf[1]).max() - _NEAR
    return float(_mass_beyond(int(sizes[0]), int(sizes[1]), ends.astype(np.int64), distance))


@njit(cache=True, nogil=True)
def _mass_beyond(first: int, second: int, ends: Any, distance: float) -> float:
    """The mass of paths to (first, second) that are so far from the diagonal at one of these steps."""
    mass, beyond, step = np.zeros(first + 1), 0.0, 0
    mass[0] = 1.0
    for end in ends:
        while step < end:
            left = first + second - step
            for i in range(min(first, step + 1), -1, -1):
                stays = mass[i] * (left - (first - i)) / left
                mass[i] = stays + (mass[i - 1] * (first - i + 1) / left if i else 0.0)
            step += 1
        for i in range(first + 1):
            if abs(i / first - (step - i) / second) >= distance:
                beyond += mass[i]
                mass[i] = 0.0
    return beyond
