"""Private selection in scikit-learn's manner: an estimator that searches, charges once, and keeps the best.

What leaks elsewhere: ``GridSearchCV`` and ``cross_val_score`` read the private records once per fold and candidate, and
what they report, or choose, was never paid for, even where every single model is private.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

from discreet import random
from discreet.encoding import features
from discreet.encoding.bounds import declared_features
from discreet.errors import extra
from discreet.release import Chargeable, charged
from discreet.tuning.scores import Correct, Score, squared_errors
from discreet.tuning.selection import Selection

with extra("sklearn"):
    from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
    from sklearn.utils.validation import check_is_fitted

__all__ = ["PrivateSearch"]


@dataclass(eq=False, repr=False)
class PrivateSearch(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """The best of a random number of private fits, over a public space of parameters.

    ``estimator`` is one of ``discreet.linear``, with the budget of one fit; ``score_epsilon`` is what comparing a fit
    with others costs on top, a tenth of it by default. ``scoring`` replaces the share of correct predictions, or, for
    regressions, minus the squared error within the target's bounds.

    >>> import numpy as np
    >>> from discreet.linear import LogisticRegression
    >>> X = np.random.default_rng(0).normal(size=(2000, 3)); y = (X[:, 0] > 0).astype(int)
    >>> model = LogisticRegression(epsilon=1.0, delta=0, feature_norm=1.0, classes=(0, 1))
    >>> search = PrivateSearch(model, {"regularization": [0.01, 0.1]}, random_state=1).fit(X, y)
    >>> sorted(search.best_params_), search.score(X, y) > 0.9
    (['regularization'], True)
    """

    estimator: Any
    space: Any
    _: KW_ONLY
    mean: float = 10.0
    law: str | float = "logarithmic"
    cap: int | None = None
    scoring: Score | None = None
    score_epsilon: float | None = None
    random_state: Any = None

    def operation(self, n_features: int | None = None) -> Selection:
        """The whole search as an operation on (X, y)."""
        return Selection(
            train=self._train(n_features),
            space=self.space,
            score=self._score(),
            mean=self.mean,
            law=self.law,
            cap=self.cap,
        )

    def _train(self, n_features: int | None) -> Callable[[dict[str, Any]], Any]:
        return lambda params: clone(self.estimator).set_params(**params).operation(n_features)

    def fit(self, X: Any, y: Any, *, book: Chargeable | None = None) -> PrivateSearch:
        """Search. The book is charged once, for all of it, before a value is read."""
        rows = features.check_features(clone(self.estimator), X, declared=declared_features(self.estimator.bounds))
        search = self.operation(rows.columns)
        chosen = charged(search, (X, y), book=book, rng=random.from_state(self.random_state)).value
        if chosen.failed:
            raise RuntimeError("Every candidate that was tried failed. The search was charged for.")
        self.best_estimator_, self.best_params_ = chosen.model, chosen.params
        self.best_score_, self.event_ = chosen.score, chosen.event
        self.n_features_in_ = chosen.model.n_features_in_
        if hasattr(chosen.model, "classes_"):
            self.classes_ = chosen.model.classes_
        return self

    def _score(self) -> Score:
        if self.scoring is not None:
            return self.scoring
        model = self.estimator
        shared = {
            "epsilon": model.epsilon / 10 if self.score_epsilon is None else self.score_epsilon,
            "adjacency": model.adjacency,
            "unit": model.unit,
        }
        return Correct(**shared) if is_classifier(model) else squared_errors(model.target_bounds, **shared)

    def predict(self, X: Any) -> Any:
        """The prediction of the model that was selected."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    def score(self, X: Any, y: Any) -> float:
        """The selected model's score on other data, which is read freely: public data, or your own to keep."""
        check_is_fitted(self)
        return float(self.best_estimator_.score(X, y))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = self.estimator.__sklearn_tags__().estimator_type
        tags.classifier_tags = self.estimator.__sklearn_tags__().classifier_tags
        tags.regressor_tags = self.estimator.__sklearn_tags__().regressor_tags
        return tags
