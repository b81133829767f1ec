"""Generalised additive models in scikit-learn's manner: a classifier and a regressor whose parts can be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import features as reading
from discreet.encoding.containers import UnreadColumn
from discreet.encoding.labels import Labels
from discreet.errors import extra, number, whole
from discreet.estimators.additive import Additive, total
from discreet.estimators.additive_regression import AdditiveRegression
from discreet.estimators.base import BoundedEstimator
from discreet.estimators.bins import Bins
from discreet.fitting import FitPlan
from discreet.habits import answer_other_names

with extra("sklearn"):
    from sklearn.base import ClassifierMixin, RegressorMixin
    from sklearn.utils.validation import check_is_fitted

__all__ = ["AdditiveClassifier", "AdditiveRegressor"]

SMOOTHING, RIDGE = 2.0, 0.3


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class _Additive(BoundedEstimator):
    bins: Any = 32
    nominal: Sequence[int] = ()
    rounds: int = 10
    smoothing: float = SMOOTHING
    ridge: float = RIDGE

    def _facts(self, features: int) -> dict[str, Any]:
        """What a classifier's and a regressor's boosting have in common."""
        nominal = frozenset(whole("nominal", j) for j in self.nominal)
        outside = [j for j in nominal if j >= features]
        if outside:
            raise ValueError(f"nominal has {outside[0]!r}, but there are {features} features, counted from 0.")
        return {
            "bins": Bins.from_bounds(*self._sides(features), self.bins),
            "nominal": nominal,
            "rounds": whole("rounds", self.rounds, low=1),
            "budget": self._budget,
            "movement": self._movement,
        }

    @property
    def _penalties(self) -> tuple[float, float]:
        """``smoothing`` and ``ridge``, of which what is solved for stays finite."""
        return (
            number("smoothing", self.smoothing, low=0, high=2.0**20),
            number("ridge", self.ridge, low=2.0**-20, high=2.0**20),
        )

    def _scores(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        return total(self.term_scores_, self.bins_.codes(reading.table(self, X))) + getattr(self, "intercept_", 0.0)

    def effect(self, feature: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """A feature's part in the score: the edges of its bins, and the value in each; a missing value's comes last."""
        return self.bins_.edges(feature), self.term_scores_[feature].squeeze(axis=1 if self._single else ())

    @property
    def _single(self) -> bool:
        return bool(self.term_scores_[0].shape[1] == 1)


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class AdditiveClassifier(ClassifierMixin, _Additive):  # type: ignore[misc]
    """A differentially private generalised additive classifier (the class of explainable boosting machines).

    ``bounds`` of the features are declared and cut into ``bins`` of equal width, a number or one per feature. A column
    of codes 0 … m − 1 has the bounds (−0.5, m − 0.5) and m bins; name it in ``nominal``, so that its neighbours are not
    smoothed together. What is missing has a bin of its own.

    Guarantee: ``event_``; see ``discreet.estimators.additive``.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(8000, 2)); y = (np.abs(X[:, 0]) > 0.5).astype(int)
    >>> model = AdditiveClassifier(epsilon=1.0, bounds=(-1, 1), classes=(0, 1), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9), model.effect(0)[0].shape
    (True, (33,))
    """

    classes: Any = None

    def _plan(self, features: int) -> FitPlan:
        smoothing, ridge = self._penalties
        return Additive(
            **self._facts(features), classes=Labels(self.classes).declared, smoothing=smoothing, ridge=ridge
        )

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores: one per record for two classes, otherwise one per class."""
        scores = self._scores(X)
        return scores[:, 0] if self._single else scores

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes."""
        scores = self._scores(X)
        both = np.concatenate([np.zeros_like(scores), scores], axis=1) if self._single else scores
        shares = np.exp(both - both.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class AdditiveRegressor(RegressorMixin, _Additive):  # type: ignore[misc]
    """A differentially private generalised additive regression; targets are cut to ``target_bounds``.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(8000, 2)); y = X[:, 0] ** 2
    >>> model = AdditiveRegressor(epsilon=1.0, bounds=(-1, 1), target_bounds=(0, 1), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    rounds: int = 4
    target_bounds: Any = None

    def _ends(self) -> tuple[float, float]:
        try:
            low, high = map(float, self.target_bounds)
        except (TypeError, ValueError):
            low = high = 0.0
        if not (np.isfinite(high - low) and low < high):
            raise ValueError("target_bounds must be declared: (lower, upper), the lower one below the upper one.")
        return low, high

    def _check_targets(self, y: UnreadColumn) -> None:
        self._ends()
        if y.kind not in ("numbers", "objects"):
            raise ValueError(f"y holds {y.kind}, but a regression needs numbers.")

    def _read_targets(self, y: UnreadColumn) -> NDArray[Any]:
        (low, high), values = self._ends(), y.floats()
        with np.errstate(all="ignore"):
            return np.clip((values - (low + high) / 2) / ((high - low) / 2), -1, 1)

    def _plan(self, features: int) -> FitPlan:
        self._ends()
        smoothing, ridge = self._penalties
        return AdditiveRegression(
            **self._facts(features), bent=SMOOTHING / max(smoothing, 2.0**-20), variance=RIDGE / ridge
        )

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Values inside the target's bounds."""
        low, high = self._ends()
        return np.asarray((low + high) / 2 + np.clip(self._scores(X)[:, 0], -1, 1) * (high - low) / 2)
