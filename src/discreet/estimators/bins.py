"""Features as bins of public edges: equal widths within the bounds, and one more bin for what is missing.

A column of codes 0, 1, …, m − 1 has the bounds (−0.5, m − 0.5) and m bins, one a code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import whole

__all__ = ["Bins"]

MOST = 1 << 12  # of a feature: a model has a square matrix of them


@dataclass(frozen=True)
class Bins:
    """Lower and upper bounds and the number of bins of each feature.

    >>> bins = Bins.from_bounds(np.array([0.0]), np.array([4.0]), 4)
    >>> bins.codes(np.array([[-1.0], [0.5], [3.9], [9.0], [np.nan]]))[:, 0].tolist(), bins.sizes
    ([0, 0, 3, 3, 4], (5,))
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    counts: tuple[int, ...]

    @staticmethod
    def from_bounds(low: NDArray[np.float64], high: NDArray[np.float64], bins: Any) -> Bins:
        """``bins`` is a number, or one per feature."""
        given = list(bins) if isinstance(bins, (Sequence, np.ndarray)) else [bins] * len(low)
        if len(given) != len(low):
            raise ValueError(f"bins has {len(given)} entries, but there are {len(low)} features.")
        counts = tuple(whole("bins", count, low=1) for count in given)
        if max(counts, default=1) > MOST:
            raise ValueError(f"bins is {max(counts)}, but must be at most {MOST} a feature.")
        return Bins(low, high, counts)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values a feature's code has: its bins, and the one of missing values."""
        return tuple(count + 1 for count in self.counts)

    def codes(self, rows: NDArray[np.float64]) -> NDArray[np.int64]:
        """The bin of every entry."""
        counts = np.asarray(self.counts)
        with np.errstate(all="ignore"):
            places = np.floor((np.clip(rows, self.low, self.high) - self.low) / (self.high - self.low) * counts)
        return np.where(np.isnan(rows), counts, np.clip(places, 0, counts - 1)).astype(np.int64)

    def edges(self, feature: int) -> NDArray[np.float64]:
        """The edges of a feature's bins."""
        return np.linspace(self.low[feature], self.high[feature], self.counts[feature] + 1)
