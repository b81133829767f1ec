"""Private scalers: what scikit-learn's learn is a statistic of private records that nobody paid for.

Where bounds are close to the data, those of the models themselves cost nothing, and do better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import random
from discreet.encoding import features as reading
from discreet.errors import extra, number
from discreet.estimators.base import BoundedEstimator
from discreet.estimators.bins import Bins
from discreet.estimators.sums import FINE, cut, group_sums, noise_for, scale_to_unit
from discreet.fitting import FitPlan, NoisyPlan
from discreet.habits import answer_other_names

with extra("sklearn"):
    from sklearn.base import OneToOneFeatureMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted

__all__ = ["MinMaxScaler", "StandardScaler"]

TAIL = 0.005  # the share of records that may lie beyond an extreme
_BINS = 128


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class _Scaler(OneToOneFeatureMixin, TransformerMixin, BoundedEstimator):  # type: ignore[misc]
    supervised = False
    epsilon: float = 0.1

    def _cut(self, X: Any) -> NDArray[np.float64]:
        """Rows cut to the bounds; what is missing stays so."""
        check_is_fitted(self)
        return np.clip(reading.table(self, X), *self._sides(self.n_features_in_))


@dataclass(frozen=True)
class _ColumnMoments(NoisyPlan):
    """How many finite values each feature has, their sum and the sum of their squares, in units of [-1, 1].

    A record has at most (1, 1, 1) in each of d features: 3d in L1, √(3d) in L2.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    noise: Any

    def learn(self, rows: NDArray[np.float64], targets: NDArray[Any], rng: random.Rng) -> Mapping[str, Any]:
        placed = scale_to_unit(rows, self.low, self.high)
        finite = np.isfinite(placed)
        values = np.where(finite, placed, 0.0)
        totals = [finite.astype(np.float64), *(cut(part, FINE) / FINE for part in (values, values**2))]
        noisy = self.noise.draw(np.concatenate([part.sum(axis=0) for part in totals]), rng).reshape(3, -1)
        counts = np.maximum(noisy[0], 1.0)
        mean = np.clip(noisy[1] / counts, -1, 1)
        spread = np.sqrt(np.clip(noisy[2] / counts - mean**2, 1e-4, 1.0))
        half = (self.high - self.low) / 2
        return {
            "mean_": mean * half + (self.low + self.high) / 2,
            "scale_": spread * half,
            "var_": (spread * half) ** 2,
        }


class StandardScaler(_Scaler):
    """Subtracts a private mean and divides by a private standard deviation, feature by feature, within ``bounds``.

    A missing number counts in no feature but its own; transformed, it stays missing.

    Guarantee: ``event_``: one noisy vector of counts, sums and sums of squares, of sensitivity √(3d).

    >>> X = np.random.default_rng(0).normal(3.0, 2.0, size=(5000, 2))
    >>> scaler = StandardScaler(bounds=(-10, 10), epsilon=1.0, random_state=1).fit(X)
    >>> bool(np.abs(scaler.mean_ - 3).max() < 0.2), scaler.transform(X).std().round(1)
    (True, np.float64(1.0))
    """

    def _plan(self, features: int) -> FitPlan:
        noise = noise_for(self._budget, 3 * features, 3 * features, 3 * features, self._movement)
        return _ColumnMoments(*self._sides(features), noise)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Each record by itself, cut to the bounds first."""
        return np.asarray((self._cut(X) - self.mean_) / self.scale_)

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:
        """Back in the units of the features."""
        return np.asarray(np.asarray(X) * self.scale_ + self.mean_)


@dataclass(frozen=True)
class _Extremes(NoisyPlan):
    """A histogram of each feature, of which a record is in one bin each: d in L1, √d in L2."""

    bins: Bins
    noise: Any

    def learn(self, rows: NDArray[np.float64], targets: NDArray[Any], rng: random.Rng) -> Mapping[str, Any]:
        codes, d = self.bins.codes(rows), len(self.bins.counts)
        totals = [group_sums(np.ones(len(rows)), codes[:, j], _BINS + 1) for j in range(d)]
        noisy = self.noise.draw(np.concatenate(totals), rng).reshape(d, _BINS + 1)[:, :_BINS]  # the last: missing ones
        edges = np.stack([self.bins.edges(j) for j in range(d)])
        first = np.array([self._beyond(counts) for counts in noisy])
        last = _BINS - np.array([self._beyond(counts[::-1]) for counts in noisy])
        first, last = np.where(first < last, first, 0), np.where(first < last, last, _BINS)
        at = np.arange(d)
        return {"data_min_": edges[at, first], "data_max_": edges[at, last]}

    def _beyond(self, counts: NDArray[np.float64]) -> int:
        """How many bins from this end hold fewer records than a tail, as far as the noise lets one tell."""
        below = np.cumsum(counts)
        hidden = 3 * self.noise.deviation * np.sqrt(np.arange(1, _BINS + 1))
        found = below > TAIL * max(float(below[-1]), 0.0) + hidden
        return int(found.argmax()) if found.any() else 0


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class MinMaxScaler(_Scaler):
    """Scales each feature from private extremes to ``feature_range``, and cuts it there.

    The true extremes are single records, which no private release tells. What is found are edges, within ``bounds``,
    beyond which at most one record in 200 seems to lie; where the noise hides that, the bounds themselves.

    Guarantee: ``event_``: one noisy histogram a feature, of sensitivity √d together.

    >>> X = np.random.default_rng(0).uniform(20.0, 60.0, size=(5000, 1))
    >>> scaler = MinMaxScaler(bounds=(0, 128), epsilon=1.0, random_state=1).fit(X)
    >>> scaler.data_min_.tolist(), scaler.data_max_.tolist(), scaler.transform([[0.0], [39.5], [90.0]]).ravel().tolist()
    ([20.0], [59.0], [0.0, 0.5, 1.0])
    """

    feature_range: tuple[float, float] = (0.0, 1.0)

    @property
    def _range(self) -> tuple[float, float]:
        low, high = (number("feature_range", side, low=-1e100, high=1e100) for side in self.feature_range)
        if not low < high:
            raise ValueError(
                f"feature_range is {self.feature_range!r}, but must be a pair (lower, upper), lower first."
            )
        return low, high

    def _plan(self, features: int) -> FitPlan:
        self._range  # noqa: B018 - refuse now
        noise = noise_for(self._budget, features, features, features * (_BINS + 1), self._movement)
        return _Extremes(Bins.from_bounds(*self._sides(features), _BINS), noise)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Each record by itself."""
        low, high = self._range
        share = (np.clip(self._cut(X), self.data_min_, self.data_max_) - self.data_min_) / (
            self.data_max_ - self.data_min_
        )
        return np.asarray(low + share * (high - low))

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:
        """Back in the units of the features."""
        low, high = self._range
        return np.asarray((np.asarray(X) - low) / (high - low) * (self.data_max_ - self.data_min_) + self.data_min_)
