"""k-means: Lloyd's iterations on noisy counts and sums, from public starting points that are far apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.errors import extra, whole
from discreet.estimators.base import BoundedEstimator
from discreet.estimators.sums import group_sums, in_ball, noise_for, scale_to_unit
from discreet.fitting import FitPlan
from discreet.habits import answer_other_names

with extra("sklearn"):
    from sklearn.base import TransformerMixin

__all__ = ["KMeans"]

MOVE = 0.2  # of half the box's width; chosen on made-up clouds (``docs/decisions/0383``)


@dataclass(frozen=True)
class _Lloyd(FitPlan):
    """A record is in one cluster, with a count of 1 and a row of length at most 1: √2 in L2, 1 + √d in L1."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    clusters: int
    steps: int
    noise: Any

    @property
    def event(self) -> events.Event:
        return self.noise.event * self.steps  # type: ignore[no-any-return]

    def learn(self, rows: NDArray[np.float64], targets: NDArray[Any], rng: random.Rng) -> Mapping[str, Any]:
        d, placed = len(self.low), scale_to_unit(rows, self.low, self.high)
        usable, points = np.isfinite(placed).all(axis=1), in_ball(placed, math.sqrt(len(self.low)))
        public = np.random.default_rng(_public_seed(self.clusters, d))
        centres = _spread_out(self.clusters, d, public)
        for _ in range(self.steps):
            nearest = np.where(usable, _nearest(points, centres), -1)
            parts = [np.ones(len(points)), *points.T]
            totals = np.stack([group_sums(part, nearest, self.clusters) for part in parts], axis=1)
            noisy = self.noise.draw(totals.ravel(), rng).reshape(self.clusters, d + 1)
            centres = _shrunk_centres(centres, noisy, self.noise.deviation, public)
        half = (self.high - self.low) / 2 * math.sqrt(d)
        return {"cluster_centers_": centres * half + (self.low + self.high) / 2, "n_iter_": self.steps}


def _public_seed(*facts: int) -> list[int]:
    """Starting points are the same for everyone: they may depend on public facts alone."""
    return [20231, *facts]


def _spread_out(clusters: int, d: int, public: np.random.Generator) -> NDArray[np.float64]:
    """Centres of a uniform cloud in the box: far from each other, and chosen without a look at the data."""
    cloud = public.uniform(-1, 1, size=(200 * clusters, d)) / math.sqrt(d)
    centres = cloud[:clusters]
    for _ in range(20):
        nearest = _nearest(cloud, centres)
        centres = np.stack([cloud[nearest == j].mean(axis=0) if (nearest == j).any() else centres[j]
                            for j in range(clusters)])  # fmt: skip
    return centres


def _nearest(points: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.int64]:
    """Entry by entry: a matrix product rounds a row by how many others there are; all would move with one record."""
    distances = np.zeros((len(points), len(centres)))
    for column, places in zip(points.T, centres.T, strict=True):
        distances += (column[:, None] - places) ** 2
    return np.asarray(distances.argmin(axis=1))


def _shrunk_centres(
    centres: NDArray[np.float64], noisy: NDArray[np.float64], noise: float, public: np.random.Generator
) -> NDArray[np.float64]:
    """Noisy means, inside the box, drawn towards the centres before them as far as the noise hides them: the likeliest
    place for a centre that moves by ``MOVE`` of the box a coordinate. A cluster whose count is lost in the noise starts
    again beside the largest, if that one is known well enough to start from.
    """
    counts, reach = np.maximum(noisy[:, 0], 0.0), 1 / math.sqrt(centres.shape[1])
    hidden = noise / (MOVE * reach)
    believed = counts / hidden / (1 + (counts / hidden) ** 2) / hidden
    found = centres + (noisy[:, 1:] - noisy[:, :1] * centres) * believed[:, None]
    largest = counts.argmax()
    if noise < counts[largest] * reach / 4:
        jump = public.normal(size=centres.shape) * reach / 4
        found = np.where((counts > 2 * noise)[:, None], found, found[largest] + jump)
    return np.clip(found, -reach, reach)


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class KMeans(TransformerMixin, BoundedEstimator):  # type: ignore[misc]
    """Differentially private k-means.

    Features are cut to ``bounds``. ``n_iter`` iterations divide the budget; the default has few, since each is noisy.
    There are no ``labels_`` of the private records: ``predict`` labels any others.

    Guarantee: ``event_``, the same noisy vector ``n_iter`` times. Starting points are public.
    Reference: Su, Cao, Li, Bertino and Jin (2016), DPLloyd, with one vector per step and its L2 sensitivity.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([[0.0, 0.0], [4.0, 4.0]], 0.5, size=(4000, 2, 2)).reshape(-1, 2)
    >>> model = KMeans(n_clusters=2, epsilon=1.0, bounds=(-2, 6), random_state=0).fit(X)
    >>> sorted(np.rint(model.cluster_centers_).tolist())
    [[0.0, 0.0], [4.0, 4.0]]
    """

    supervised = False

    n_clusters: int = field(default=8, kw_only=False)
    n_iter: int = 6

    def _plan(self, features: int) -> FitPlan:
        clusters, steps = whole("n_clusters", self.n_clusters, low=1), whole("n_iter", self.n_iter, low=1)
        reach = 1 + math.isqrt(features - 1) + 1  # √d, rounded up
        noise = noise_for(self._budget.part(1 / steps), reach, 2, clusters * (features + 1), self._movement)
        return _Lloyd(*self._sides(features), clusters, steps, noise)

    def predict(self, X: Any) -> NDArray[np.int64]:
        """The nearest centre of each record."""
        return np.asarray(self.transform(X).argmin(axis=1))

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Distances to the centres, in units of the bounds' half widths."""
        rows = self._table(X)
        low, high = self._sides(self.n_features_in_)
        apart = (rows[:, None, :] - self.cluster_centers_) / ((high - low) / 2)
        return np.asarray(np.sqrt((apart**2).sum(axis=2)))
