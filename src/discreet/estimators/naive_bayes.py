"""Gaussian naive Bayes from one noisy vector: counts, sums and sums of squares, class by class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import random
from discreet.encoding.labels import Labels
from discreet.errors import extra
from discreet.estimators.base import BoundedEstimator
from discreet.estimators.sums import group_sums, noise_for, scale_to_unit
from discreet.fitting import FitPlan, NoisyPlan
from discreet.habits import answer_other_names

with extra("sklearn"):
    from sklearn.base import ClassifierMixin

__all__ = ["GaussianNB"]

_PRIOR = 1 / 3  # the variance of a uniform feature on [-1, 1], which a class without records is given


@dataclass(frozen=True)
class _ClassMoments(NoisyPlan):
    """One vector for all classes. A record is in one class, with (1, x, x²) of every feature, all within [-1, 1]:
    1 + 2d in L1, √(1 + 2d) in L2.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    classes: NDArray[Any]
    noise: Any

    def learn(self, rows: NDArray[np.float64], targets: NDArray[Any], rng: random.Rng) -> Mapping[str, Any]:
        placed, k, d = scale_to_unit(rows, self.low, self.high), len(self.classes), len(self.low)
        codes = np.where(np.isfinite(placed).all(axis=1), targets, -1)
        values = np.where(np.isfinite(placed), placed, 0.0)
        parts = [np.ones(len(rows)), *values.T, *(values**2).T]
        totals = np.stack([group_sums(part, codes, k) for part in parts], axis=1)
        noisy = self.noise.draw(totals.ravel(), rng).reshape(k, 1 + 2 * d)
        return self._model(noisy, d)

    def _model(self, noisy: NDArray[np.float64], d: int) -> Mapping[str, Any]:
        """Post-processing: means inside the bounds, variances between what the noise hides and a uniform feature's."""
        counts = np.maximum(noisy[:, 0], 1.0)
        # a class that is lost in the noise is predicted only where there is no other
        weights = np.where(noisy[:, 0] > 2 * self.noise.deviation, counts, 1e-9 * counts)
        weak = self.noise.deviation / counts  # the noise of a mean, at which a variance is believed no further
        means = np.clip(noisy[:, 1 : d + 1] / counts[:, None], -1, 1)
        spread = np.clip(noisy[:, d + 1 :] / counts[:, None] - means**2, 0.0, 1.0)
        spread = np.maximum((spread + weak[:, None] * _PRIOR) / (1 + weak[:, None]), 1e-4)
        half, middle = (self.high - self.low) / 2, (self.low + self.high) / 2
        return {
            "classes_": self.classes,
            "class_count_": counts,
            "class_prior_": weights / weights.sum(),
            "theta_": means * half + middle,
            "var_": spread * half**2,
        }


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class GaussianNB(ClassifierMixin, BoundedEstimator):  # type: ignore[misc]
    """Differentially private Gaussian naive Bayes.

    ``bounds`` of the features and ``classes`` are declared; a record with a missing feature, or another label,
    contributes nothing.

    Guarantee: ``event_``: one noisy vector of class counts, sums and sums of squares, whose sensitivity is exact.
    Reference: Vaidya, Shafiq, Basu and Hong (2013), with one release instead of one a statistic.

    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 5000); X = rng.normal(y[:, None] * 2.0, 1.0, size=(5000, 2))
    >>> model = GaussianNB(epsilon=1.0, bounds=(-5, 7), classes=(0, 1), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    classes: Any = None

    def _plan(self, features: int) -> FitPlan:
        classes, reach = Labels(self.classes).declared, 1 + 2 * features
        noise = noise_for(self._budget, reach, reach, len(classes) * reach, self._movement)
        return _ClassMoments(*self._sides(features), classes, noise)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of the classes' probabilities."""
        rows = self._table(X)[:, None, :]
        fit = -0.5 * (np.log(2 * np.pi * self.var_) + (rows - self.theta_) ** 2 / self.var_).sum(axis=2)
        joint = np.log(self.class_prior_) + fit
        top = joint.max(axis=1, keepdims=True)
        return np.asarray(joint - top - np.log(np.exp(joint - top).sum(axis=1, keepdims=True)))

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class."""
        likeliest = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])
