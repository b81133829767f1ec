r"""The mean of tightly clustered points in ℝᵈ, without bounds: propose-test-release.

The plain mean has no safe data sets, since one record can move it anywhere. The base algorithm is therefore a mean that
ignores outliers: with f_i the number of points within ``radius`` r of point i (itself included), point i has weight
w_i = (4f_i - 2n)/n cut to [0, 1]: none if it is near half of the data or less, full if it is near three quarters.

Score: g(x) = the least k such that at least n - k points have f_i ≥ n - k. One replaced record changes every other
f_i by at most 1, hence g by at most 1. Data are safe if g(x) ≤ K = ⌊n/8⌋; the distance to unsafe data is at least
K + 1 - g(x).

Sensitivity on safe data (n ≥ 16). Let x' replace one record of x, k = g(x). At least n - k - 1 unchanged points have
f ≥ n - k - 1 ≥ 3n/4 in both, so weight 1 in both; fix one, c. Any point of positive weight is near more than half of
the data, so it shares a neighbour with c and lies within 2r of it. With N = Σ w_i(x_i - c) and W = Σ w_i:

    ‖N - N'‖ ≤ k·(4/n)·2r + 4r       at most k unchanged weights move, by 4/n; the replaced point counts 2r twice
    |W - W'| ≤ 4k/n + 1,   W ≥ n - k - 1,   ‖N'‖/W' ≤ 2r
    ‖N/W - N'/W'‖ ≤ (‖N - N'‖ + 2r·|W - W'|)/W ≤ (16rk/n + 6r)/(n - k - 1)

which with k ≤ K is at most about 9.2·r/n. Sums are exact; distances are computed in doubles, and r is enlarged by
1e-9 in the bound for that.

Reference: Dwork and Lei (2009) for the method; the core of "friendly" points: Tsfadia et al. (2022).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.errors import number, positive, whole
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import store
from discreet.mechanisms.propose_test_release import ProposeTestRelease
from discreet.mechanisms.records import check_rows, rows

__all__ = ["ClusteredMean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredMean(Mechanism[NDArray[np.float64] | None]):
    """The mean of ``size`` points in ``dimension`` dimensions if nearly all lie within ``radius`` of each other.

    Test and noise take half of ``epsilon`` and ``delta`` each. ``None`` if the data are not, or not clearly, clustered.
    Guarantee: the event, under replace (the number of records is public).

    >>> mechanism = ClusteredMean(radius=1.0, dimension=2, size=400, epsilon=2.0, delta=1e-6)
    >>> points = 1e6 + np.random.default_rng(0).uniform(-0.3, 0.3, size=(400, 2))
    >>> bool(np.abs(mechanism.release(points, rng=1).value - 1e6).max() < 0.5)
    True
    """

    radius: float
    dimension: int
    size: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        # Inside these limits no square of a distance that matters can underflow to zero or overflow.
        store(
            self,
            radius=number("radius", self.radius, low=2.0**-400, high=2.0**400),
            dimension=whole("dimension", self.dimension, low=1),
            size=whole("size", self.size, low=16),
            epsilon=positive("epsilon", self.epsilon),
            delta=number("delta", self.delta, low=0, high=1, open_low=True, open_high=True),
        )

    @property
    def slack(self) -> int:
        """How many outliers data may have and still be safe."""
        return self.size // 8

    @property
    def sensitivity(self) -> float:
        """The L2 sensitivity of the weighted mean on safe data."""
        r, n, k = self.radius * (1 + 1e-9), self.size, self.slack
        return math.nextafter((16 * r * k / n + 6 * r) / (n - k - 1), math.inf) * (1 + 1e-12)

    @property
    def _noise(self) -> Gaussian:
        return Gaussian(
            sensitivity=self.sensitivity,
            epsilon=self.epsilon / 2,
            delta=self.delta / 2,
            max_size=self.dimension,
            adjacency=Adjacency.REPLACE,
        )

    @property
    def _test(self) -> ProposeTestRelease[NDArray[np.float64]]:
        return ProposeTestRelease(
            epsilon=self.epsilon / 2, delta=self.delta / 2, base_event=self._noise.event, adjacency=Adjacency.REPLACE
        )

    @property
    def event(self) -> events.Event:
        """The cost of test and noise."""
        return self._test.event

    def error(self, confidence: float = 0.95) -> float:
        """What the noise on one coordinate stays within, given an answer."""
        return self._noise.error(confidence)

    def check(self, data: Any) -> None:
        """Refuse what are publicly not ``size`` rows of ``dimension`` numbers."""
        check_rows(data, self.dimension)
        if not hasattr(data, "__len__") or len(data) != self.size:
            raise ValueError(f"points must be a list or array of shape ({self.size}, {self.dimension}), as declared.")

    def draw(self, data: ArrayLike, rng: random.Rng) -> NDArray[np.float64] | None:
        """The noisy mean, or ``None``. A point with NaN, infinities or entries that are no numbers, or with too few or
        too many of them, counts as an outlier."""
        x = rows(data, self.dimension)
        near, noise = self._near(x), self._noise
        test = replace(
            self._test,
            distance=lambda _: self.slack + 1 - _score(near),
            base=lambda x: noise.draw(_weighted_mean(x, near), rng),
        )
        return test.draw(x, rng)

    def _near(self, x: NDArray[np.float64]) -> NDArray[np.int64]:
        """How many points lie within the radius of each, itself included; none for a point that is not finite."""
        finite = np.isfinite(x).all(axis=1)
        good, counts = x[finite], np.zeros(self.size, np.int64)
        with np.errstate(over="ignore", invalid="ignore"):
            counts[finite] = [int((np.sqrt(((good - p) ** 2).sum(axis=1)) <= self.radius).sum()) for p in good]
        return counts


def _score(near: NDArray[np.int64]) -> int:
    """The least k such that at least n - k points are near at least n - k."""
    ranked = np.sort(near)[::-1]
    return int(len(near) - (ranked >= np.arange(1, len(near) + 1)).sum())


def _weighted_mean(x: NDArray[np.float64], near: NDArray[np.int64]) -> Any:
    """Σ w_i x_i / Σ w_i in exact arithmetic, grouping points of equal weight; zeros if no point has weight."""
    weights = np.clip(4 * near - 2 * len(x), 0, len(x))
    total, mass = [Fraction(0)] * x.shape[1], int(weights.sum())
    for weight in np.unique(weights[weights > 0]).tolist():
        part = x[weights == weight]
        total = [t + weight * random.exact_sum(part[:, j]) for j, t in enumerate(total)]
    mean = np.empty(x.shape[1], object)
    mean[:] = [t / mass if mass else Fraction(0) for t in total]
    return mean
