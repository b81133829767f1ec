"""Principal components of a noisy second-moment matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import random
from discreet.errors import extra, number, whole
from discreet.estimators.base import BoundedEstimator
from discreet.estimators.sums import in_ball, noise_for, room_to_round, scale_to_unit
from discreet.fitting import FitPlan, NoisyPlan
from discreet.habits import answer_other_names
from discreet.mechanisms.grid import wide

with extra("sklearn"):
    from sklearn.base import TransformerMixin

__all__ = ["PCA"]

_PARTS = 1 << 16  # of a number: products of 2^29 records stay below 2^61
_CHUNK = 1 << 20  # rows whose products, of 2^32 parts each, add up exactly in doubles


@dataclass(frozen=True)
class _SecondMoments(NoisyPlan):
    """A count, a sum and the upper triangle of Σ zzᵀ, for rows z of length at most 1.

    A record moves the count by 1, the sum by ‖z‖ ≤ 1 and the triangle by at most ‖zzᵀ‖ = ‖z‖² ≤ 1: √3 in L2 together.
    In L1 the sum moves by √d at most, and the triangle by ‖z‖₁² ≤ d.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    norm: float
    components: int
    noise: Any

    def learn(self, rows: NDArray[np.float64], targets: NDArray[Any], rng: random.Rng) -> Mapping[str, Any]:
        placed = scale_to_unit(rows, self.low, self.high)
        count = float(np.isfinite(placed).all(axis=1).sum())
        d = len(self.low)
        # To the nearest part: towards zero would take as much off every variance, whatever the number of records.
        parts = np.rint(in_ball(placed, self.norm) * (room_to_round(d, _PARTS) * _PARTS))
        second = sum(((chunk.T @ chunk).astype(np.int64) for chunk in _chunks(parts)), np.zeros((d, d), np.int64))
        upper = _divide_exactly(second[np.triu_indices(d)], _PARTS**2)
        noisy = self.noise.draw(np.concatenate([[count], parts.sum(axis=0) / _PARTS, upper]), rng)
        return self._model(noisy, d)

    def _model(self, noisy: NDArray[np.float64], d: int) -> Mapping[str, Any]:
        """Post-processing: the covariance, its eigenvectors, and everything back in the user's units."""
        count, room = max(noisy[0], 1.0), room_to_round(d, _PARTS)
        mean, second = np.clip(noisy[1 : d + 1] / (count * room), -1, 1), np.zeros((d, d))
        second[np.triu_indices(d)] = noisy[d + 1 :] / (count * room**2)
        second = second + np.triu(second, 1).T - np.outer(mean, mean)
        half = (self.high - self.low) / 2 * self.norm
        values, vectors = np.linalg.eigh(second * np.outer(half, half))
        order = np.argsort(values)[::-1][: self.components]
        found = vectors[:, order].T
        signs = np.sign(found[np.arange(len(found)), np.abs(found).argmax(axis=1)])
        spread = np.maximum(values, 0.0)
        return {
            "components_": found * signs[:, None],
            "mean_": mean * half + (self.low + self.high) / 2,
            "explained_variance_": spread[order],
            "explained_variance_ratio_": spread[order] / max(spread.sum(), 1e-300),
            "n_components_": self.components,
        }


def _chunks(rows: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    return [rows[at : at + _CHUNK] for at in range(0, len(rows), _CHUNK)]


def _divide_exactly(totals: NDArray[np.int64], unit: int) -> NDArray[Any]:
    """Doubles where they hold quotients by a power of two, else fractions: rounding would add to the sensitivity."""
    if wide(totals):
        return np.array([Fraction(int(total), unit) for total in totals], object)
    return totals / unit


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class PCA(TransformerMixin, BoundedEstimator):  # type: ignore[misc]
    """Differentially private principal components.

    Features are cut to ``bounds`` and scaled to [-1, 1]; rows are then shrunk to ``feature_norm`` (√d by default, which
    shrinks none). A record with a missing feature contributes nothing.

    Guarantee: ``event_``: one noisy vector of √3 sensitivity, whatever the number of components.
    Reference: Dwork, Talwar, Thakurta and Zhang (2014), "Analyze Gauss", with the mean in the same release.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 1)) * [2.0, 1.0] + 0.1 * rng.normal(size=(5000, 2))
    >>> model = PCA(n_components=1, epsilon=1.0, bounds=(-8, 8), random_state=0).fit(X)
    >>> np.abs(model.components_ @ [2, 1] / np.sqrt(5)).round(2).tolist(), model.transform(X).shape
    ([1.0], (5000, 1))
    """

    supervised = False

    n_components: int | None = None
    feature_norm: float | None = None

    def _plan(self, features: int) -> FitPlan:
        wanted = features if self.n_components is None else whole("n_components", self.n_components, low=1)
        if wanted > features:
            raise ValueError(f"n_components is {wanted}, but there are {features} features.")
        norm = math.sqrt(features) if self.feature_norm is None else self.feature_norm
        norm = number("feature_norm", norm, low=2.0**-100, high=2.0**100)
        size = 1 + features + features * (features + 1) // 2
        noise = noise_for(self._budget, 1 + 2 * features, 3, size, self._movement)
        return _SecondMoments(*self._sides(features), norm, wanted, noise)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Coordinates of each record, by itself."""
        return np.asarray((self._table(X) - self.mean_) @ self.components_.T)

    def inverse_transform(self, coordinates: Any) -> NDArray[np.float64]:
        """Points in the space of the features."""
        return np.asarray(np.asarray(coordinates) @ self.components_ + self.mean_)
