"""The bounds of features, as estimators take them: a pair of numbers, or of one number a feature. Public facts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["declared_features", "per_feature"]


def declared_features(bounds: Any) -> int | None:
    """How many features ``bounds`` with one number a feature declares; None for two numbers, or no bounds.

    >>> declared_features((0.0, [1.0, 2.0])), declared_features((0, 1))
    (2, None)
    """
    return None if bounds is None else next((len(side) for side in _pair(bounds) if np.ndim(side)), None)


def per_feature(bounds: Any, features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lower and the upper bound of each feature.

    >>> [side.tolist() for side in per_feature((0, [1, 2]), 2)]
    [[0.0, 0.0], [1.0, 2.0]]
    """
    low, high = (_one_each(side, features) for side in _pair(bounds))
    with np.errstate(over="ignore", invalid="ignore"):
        usable = np.isfinite(low + high).all() and np.isfinite(high - low).all() and (low < high).all()
    if not usable:
        raise ValueError(
            "bounds must be finite, each lower one below its upper one: (lower, upper), numbers or one a feature."
        )
    return low, high


def _pair(bounds: Any) -> tuple[Any, Any]:
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise ValueError("bounds must be a pair (lower, upper) of numbers, or of one number a feature.") from None
    return low, high


def _one_each(side: Any, features: int) -> NDArray[np.float64]:
    try:
        return np.broadcast_to(np.asarray(side, np.float64), (features,))
    except ValueError:
        raise ValueError(
            f"bounds has {np.size(side)} entries on a side, but the data has {features} features."
        ) from None
