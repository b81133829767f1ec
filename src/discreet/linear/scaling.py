"""Private scaling: means and standard deviations of features, for pipelines that would otherwise read them for free."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import events, mechanisms, random
from discreet.adjacency import Adjacency
from discreet.encoding import features
from discreet.encoding.bounds import declared_features
from discreet.encoding.containers import UnreadRows
from discreet.errors import extra
from discreet.linear.rows import Map
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import store
from discreet.release import ONE_RECORD, Chargeable, charged

with extra("sklearn"):
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted

__all__ = ["Moments", "PrivateScaler"]

_PARTS = 1 << 20  # features are counted in whole parts, so that totals are exact in any order


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments(Mechanism[Any]):
    """How many finite values each feature has, their sum and the sum of their squares, in units of [-1, 1].

    A record has at most (1, 1, 1) in each feature, so an L2 sensitivity of √(3d), twice that under replace.
    """

    map: Map
    features: int
    epsilon: float
    delta: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    label = "scaling"

    def __post_init__(self) -> None:
        store(self, adjacency=self.adjacency)
        self.event  # noqa: B018 - refuse now

    @property
    def _noise(self) -> mechanisms.Gaussian:
        reach = math.sqrt(3 * self.features) * (1 + 1e-12)
        return mechanisms.Gaussian(
            sensitivity=reach * (2 if self.adjacency is Adjacency.REPLACE else 1),
            epsilon=self.epsilon,
            delta=self.delta,
            max_size=3 * self.features,
            adjacency=self.adjacency,
        )

    @property
    def event(self) -> events.Event:
        """The cost of one noisy vector."""
        return self._noise.event

    def draw(self, data: Any, rng: random.Rng) -> NDArray[np.float64]:
        """Counts, means and mean squares, a row each; noisy."""
        rows = data if isinstance(data, UnreadRows) else UnreadRows(data, self.features)
        with np.errstate(all="ignore"):
            placed = (rows.read() - self.map.shift) / self.map.scale
        finite = np.isfinite(placed)
        parts = np.rint(np.clip(np.where(finite, placed, 0.0), -1, 1) * _PARTS).astype(np.int64)
        totals = [finite.sum(axis=0), parts.sum(axis=0) / _PARTS, (parts * parts // _PARTS).sum(axis=0) / _PARTS]
        noisy = self._noise.draw(np.concatenate(totals).astype(np.float64), rng).reshape(3, -1)
        counts = np.maximum(noisy[0], 1.0)
        return np.stack([counts, noisy[1] / counts, noisy[2] / counts])


class PrivateScaler(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Subtracts a private mean and divides by a private standard deviation, feature by feature, within ``bounds``.

    What ``StandardScaler`` learns is a statistic of private records that nobody paid for; this one is charged like any
    other release. Where bounds are close to the data, those of the models themselves cost nothing, and do better.

    >>> X = np.random.default_rng(0).normal(3.0, 2.0, size=(5000, 2))
    >>> scaler = PrivateScaler(bounds=(-10, 10), epsilon=1.0, random_state=1).fit(X)
    >>> bool(np.abs(scaler.mean_ - 3).max() < 0.2), scaler.transform(X).std().round(1)
    (True, np.float64(1.0))
    """

    def __init__(
        self,
        *,
        bounds: Any,
        epsilon: float = 0.1,
        delta: float = 1e-6,
        adjacency: str = "add-remove",
        unit: str = ONE_RECORD,
        random_state: Any = None,
    ) -> None:
        self.bounds = bounds
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.unit = unit
        self.random_state = random_state

    def operation(self, n_features: int) -> Moments:
        """What ``fit`` charges for."""
        return Moments(
            map=Map.declared(None, self.bounds, n_features, False),
            features=n_features,
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=Adjacency(self.adjacency),
            unit=self.unit,
        )

    def fit(self, X: Any, y: Any = None, *, book: Chargeable | None = None) -> PrivateScaler:
        """Learn privately; the book is charged before a value is read."""
        rows = features.held(self, X, declared=declared_features(self.bounds))
        operation = self.operation(rows.columns)
        _, mean, square = charged(operation, rows, book=book, rng=random.from_state(self.random_state)).value
        spread = np.sqrt(np.clip(square - mean**2, 1e-4, 1.0))
        self.mean_ = np.clip(mean, -1, 1) * operation.map.scale + operation.map.shift
        self.scale_ = spread * operation.map.scale
        self.event_ = operation.event
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Each record by itself, cut to the bounds first."""
        check_is_fitted(self)
        low, high = (np.asarray(side, dtype=np.float64) for side in self.bounds)
        return np.asarray((np.clip(features.table(self, X), low, high) - self.mean_) / self.scale_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
