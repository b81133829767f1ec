"""Covariance and correlation of two columns, for the price of one release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.mechanisms.budget import AdditiveMechanism
from discreet.tables.aggregates import SIZES, Aggregate
from discreet.tables.confidence import LEVEL, POPULATION, around, half_of_moment, sample_interval
from discreet.tables.fixed_point import COARSE
from discreet.tables.passes import GroupedRows, ScanPass, Stats
from discreet.tables.scans import Whole

__all__ = ["Covariance"]


@dataclass(frozen=True)
class Covariance(Aggregate):
    r"""The covariance of two columns that have values in the same rows, that of the ``sample``, or their
    ``correlation``.

    With k ≤ K and l ≤ L the steps of a row, what meets noise is (Σkl, Σk(L - l), Σ(K - k)l, Σ(K - k)(L - l)), parts of
    a row that add up to KL, and for a correlation Σk(K - k) ≤ K²/4 and Σl(L - l) ≤ L²/4 beside them. So the L1
    sensitivity is KL, or KL + K²/4 + L²/4, for the count and all moments together.
    """

    left: str
    right: str
    sample: bool = False
    correlation: bool = False

    @property
    def name(self) -> str:
        return f"{self.left}_{self.right}_{'correlation' if self.correlation else 'covariance'}"

    def entries(self, rows: GroupedRows) -> int:
        return 6 if self.correlation else 4

    def scan(self, rows: GroupedRows) -> ScanPass:
        for column in (self.left, self.right):
            rows.grid(column)
        sums = tuple(dict.fromkeys([(self.left, COARSE), (self.right, COARSE)]))
        return ScanPass(sums=sums, products=((self.left, self.right),))

    def _tops(self, rows: GroupedRows) -> tuple[int, int]:
        return rows.grid(self.left, COARSE).top, rows.grid(self.right, COARSE).top

    def sensitivity(self, rows: GroupedRows) -> int:
        one, other = self._tops(rows)
        return rows.limit.rows * (one * other + (one**2 // 4 + other**2 // 4 if self.correlation else 0))

    def exact(self, rows: GroupedRows, stats: Stats) -> Sequence[Whole]:
        one, other = self._tops(rows)
        count, k, l = (  # noqa: E741
            stats.count_of(self.left, COARSE),
            stats.total(self.left, COARSE),
            stats.total(self.right, COARSE),
        )
        both = stats.product(self.left, self.right)
        parts = [both, k * other - both, one * l - both, count * one * other - k * other - one * l + both]
        if not self.correlation:
            return parts
        return [*parts, one * k - stats.squares(self.left), other * l - stats.squares(self.right)]

    def estimate(self, rows: GroupedRows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        one, other = self._tops(rows)
        parts = np.maximum(noisy[:, :4], 0.0)
        whole = parts.sum(axis=1)
        share = np.where(whole[:, None] > 0, parts / np.where(whole > 0, whole, 1.0)[:, None], 0.25)
        t, s = share[:, 0] + share[:, 1], share[:, 0] + share[:, 2]  # the means of k/K and l/L
        found = share[:, 0] - t * s
        if self.correlation:
            size = np.maximum(whole / (one * other), 1.0)
            spread = np.maximum(noisy[:, 4:], 0.0) / (size[:, None] * np.array([one**2, other**2]))
            variance = np.maximum(np.stack([t - t**2, s - s**2], 1) - spread, 0.0)
            scale = np.sqrt(variance.prod(axis=1))
            return np.asarray(np.clip(np.where(scale > 0, found / np.where(scale > 0, scale, 1.0), 0.0), -1.0, 1.0))
        if self.sample:
            size = np.maximum(whole / (one * other), 2.0)
            found = found * size / (size - 1)
        return np.asarray(found * self._scale(rows))

    def _scale(self, rows: GroupedRows) -> float:
        bounds = [rows.grid(column).bounds for column in (self.left, self.right)]
        return (bounds[0].high - bounds[0].low) * (bounds[1].high - bounds[1].low)

    def interval(
        self, rows: GroupedRows, mechanism: Any, noisy: NDArray[np.float64], cells: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        if self.correlation:
            return None
        parts = np.maximum(noisy, 0.0)
        share = parts / np.maximum(parts.sum(axis=1, keepdims=True), 1.0)
        t, s = share[:, 0] + share[:, 1], share[:, 0] + share[:, 2]
        slopes = np.stack([(1 - t) * (1 - s), -s * (1 - t), -t * (1 - s), t * s], 1)
        weights = slopes - (share[:, 0] - t * s)[:, None]
        half = half_of_moment(noisy, weights, mechanism, cells, 0.5, 1.25, POPULATION if self.sample else LEVEL)
        ends = np.clip(around(share[:, 0] - t * s, half), -0.25, 0.25) * self._scale(rows)
        one, other = self._tops(rows)
        return sample_interval(ends, noisy, one * other, mechanism, cells) if self.sample else ends

    def describe_error(self, rows: GroupedRows, mechanism: AdditiveMechanism) -> str:
        if self.correlation:
            return "depends on the variances: that of the covariance over the deviations' product, to first order"
        # The noise acts through the weights ((1-t)(1-s) - c, -s(1-t) - c, -t(1-s) - c, ts - c) on the four parts, c the
        # covariance of t and s in [0, 1]: their absolute values add up to at most 5/4, at t = s = 1/4 and c = t(1 - t).
        one, other = self._tops(rows)
        each = 1.25 * mechanism.error(0.95) / (one * other)
        return ", ".join(f"±{min(each / n, 0.25) * self._scale(rows):.4g} at {n:,} rows" for n in SIZES)
