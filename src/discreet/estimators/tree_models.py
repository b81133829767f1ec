"""A decision tree and a random forest in scikit-learn's manner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding import features as reading
from discreet.encoding.labels import Labels
from discreet.errors import extra, whole
from discreet.estimators.base import BoundedEstimator
from discreet.estimators.bins import Bins
from discreet.estimators.trees import Forest, Greedy
from discreet.fitting import FitPlan
from discreet.habits import answer_other_names

with extra("sklearn"):
    from sklearn.base import ClassifierMixin
    from sklearn.utils.validation import check_is_fitted

__all__ = ["DecisionTreeClassifier", "RandomForestClassifier"]

DEEPEST = 16
NEWS = 2.0  # how much the leaves of a forest say beyond the common shares, over their mean


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class _Trees(ClassifierMixin, BoundedEstimator):  # type: ignore[misc]
    max_depth: int | None = None
    classes: Any = None
    bins: Any = 32

    def _shape(self, features: int) -> tuple[Bins, NDArray[Any]]:
        return Bins.from_bounds(*self._sides(features), self.bins), Labels(self.classes).declared

    def _depth(self) -> int:
        depth = whole("max_depth", self.max_depth, low=1)
        if depth > DEEPEST:
            raise ValueError(f"max_depth is {depth}, but must be at most {DEEPEST}: leaves double with each level.")
        return depth

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Shares of the classes in each record's leaves, averaged over the trees."""
        found = np.mean(self._every(X), axis=0)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def _every(self, X: Any) -> list[NDArray[np.float64]]:
        """The shares of each record's leaf, tree by tree."""
        check_is_fitted(self)
        codes = self.bins_.codes(reading.table(self, X))
        return [leaves[tree.nodes_of(codes)] for tree, leaves in zip(self.trees_, self.leaves_, strict=True)]

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the largest share."""
        largest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[largest])


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class DecisionTreeClassifier(_Trees):
    """A differentially private decision tree, grown from noisy histograms; ``bins`` as in ``AdditiveClassifier``.

    Guarantee: ``event_``; see ``discreet.estimators.trees``.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(8000, 2)); y = ((X[:, 0] > 0.5) & (X[:, 1] > 0.5)).astype(int)
    >>> model = DecisionTreeClassifier(epsilon=1.0, bounds=(0, 1), classes=(0, 1), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    max_depth: int | None = 4
    bins: Any = 16

    def _plan(self, features: int) -> FitPlan:
        return Greedy(*self._shape(features), self._depth(), self._budget, self._movement)


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class RandomForestClassifier(_Trees):
    """A differentially private forest of random trees; the splits are public, drawn from ``split_seed``. Where
    ``max_depth`` is not given, it is 2 to 9 as a noisy count of the records says, which takes 1 % of the budget.

    Leaves of random trees know little each, and are drawn towards the common class; what they say beyond that counts
    double, as if every second tree were news.

    Guarantee: ``event_``: one noisy vector of leaf counts, and that count; see ``discreet.estimators.trees``.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(8000, 2)); y = (X[:, 0] > 0.5).astype(int)
    >>> model = RandomForestClassifier(epsilon=1.0, bounds=(0, 1), classes=(0, 1), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    n_estimators: int = 20
    split_seed: int = 0

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """π·(geometric mean of share/π)², to sum 1, with π the shares of all records."""
        told = [np.log(np.maximum(shares, 1e-9) / self.class_prior_) for shares in self._every(X)]
        scores = np.log(self.class_prior_) + NEWS * np.mean(told, axis=0)
        found = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def _plan(self, features: int) -> FitPlan:
        trees, seed = whole("n_estimators", self.n_estimators, low=1), whole("split_seed", self.split_seed)
        depth = None if self.max_depth is None else self._depth()
        return Forest(*self._shape(features), trees, depth, self._budget, self._movement, seed)
