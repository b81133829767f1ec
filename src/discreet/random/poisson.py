"""Poisson sampling: every record decides by a coin of its own whether it takes part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from discreet.random.source import Rng
from discreet.random.tap import coins

__all__ = ["poisson_sample"]


def poisson_sample(keys: Sequence[object], rate: float, rng: Rng) -> NDArray[np.bool_]:
    """Which of the records that ``keys`` name take part: each with probability ⌊rate·2^64⌋/2^64, by a coin of its own.

    The probability is not above ``rate``, so the event at that rate covers it. At a rate of 1 all do, and no coin is
    drawn.

    >>> from discreet.random import seeded
    >>> int(poisson_sample(range(1000), 0.1, seeded(1)).sum())
    106
    """
    if rate >= 1:
        return np.ones(len(keys), bool)
    return coins(keys, rng) < np.uint64(int(rate * 2.0**64))
