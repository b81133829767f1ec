"""What the estimators of this room share: bounds of every feature, one budget, and how much a neighbour changes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.adjacency import Adjacency, changed_records
from discreet.encoding import features as reading
from discreet.encoding.bounds import per_feature
from discreet.errors import extra
from discreet.fitting import PrivateEstimator
from discreet.mechanisms import Budget

with extra("sklearn"):
    from sklearn.utils.validation import check_is_fitted

__all__ = ["BoundedEstimator"]

FARTHEST = 1e100


class BoundedEstimator(PrivateEstimator):
    """An estimator whose noisy sums are bounded by declared ``bounds`` of the features."""

    @property
    def _budget(self) -> Budget:
        return Budget(epsilon=self.epsilon, delta=self.delta)

    @property
    def _movement(self) -> int:
        """How many records' parts a neighbour changes: under replace one leaves and another comes."""
        if self._adjacency is Adjacency.ZERO_OUT:
            raise ValueError("adjacency is 'zero-out', but must be 'add-remove' or 'replace'.")
        return changed_records(self._adjacency)

    def _sides(self, features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self.bounds is None:
            raise ValueError("bounds is None, but must be declared: (lower, upper), numbers or one per feature.")
        low, high = per_feature(self.bounds, features, getattr(self, "feature_names_in_", None))
        wide = np.maximum(np.abs(low), np.abs(high))
        if not ((wide <= FARTHEST) & (high - low >= 1 / FARTHEST)).all():  # variances are squares of these
            raise ValueError(
                f"bounds must lie within ±{FARTHEST:g}, each lower one below its upper one by {1 / FARTHEST:g} or "
                "more: change the units."
            )
        return low, high

    def _table(self, X: Any) -> NDArray[np.float64]:
        """Rows to predict for: cut to the bounds the model knows, the middle of them where a number is missing."""
        check_is_fitted(self)
        rows = reading.table(self, X)
        low, high = self._sides(self.n_features_in_)
        with np.errstate(invalid="ignore"):
            return np.where(np.isnan(rows), (low + high) / 2, np.clip(rows, low, high))
