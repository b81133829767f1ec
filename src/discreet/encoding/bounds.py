"""The bounds of features, as estimators take them. Public facts.

Two numbers hold for every feature. Otherwise they are given a feature at a time, in one of three forms: a mapping from
a column's name (or its number, from 0) to its pair; a list with a pair for each column; or (lowers, uppers), one number
a feature on a side. Two pairs of numbers for two features could be either of the last two; where both readings make
sense they are refused, because the wrong one would cut the data to other bounds without a word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["declared_features", "per_feature"]

Sides = tuple[NDArray[np.float64], NDArray[np.float64]]
_FORMS = (
    "bounds must be finite, each lower one below its upper one: (lower, upper) for all features, one pair (lower, "
    "upper) for each, or a mapping from a column's name to its pair."
)


def declared_features(bounds: Any) -> int | None:
    """How many features ``bounds`` of one entry a feature declares; None for two numbers, or no bounds.

    >>> declared_features((0.0, [1.0, 2.0])), declared_features([(0, 1), (0, 5), (2, 3)]), declared_features((0, 1))
    (2, 3, None)
    """
    if bounds is None:
        return None
    if isinstance(bounds, Mapping):
        return len(bounds)
    shape = _shape(bounds)
    if len(shape) == 1:
        return next((len(side) for side in bounds if np.ndim(side)), None)
    return shape[1] if shape[0] == 2 else shape[0]


def per_feature(bounds: Any, features: int, names: Sequence[Any] | None = None) -> Sides:
    """The lower and the upper bound of each feature; ``names`` are the columns', where they have some.

    >>> [side.tolist() for side in per_feature([(0, 10), (50, 99), (0, 1)], 3)]
    [[0.0, 50.0, 0.0], [10.0, 99.0, 1.0]]
    >>> [side.tolist() for side in per_feature({"age": (18, 90), "hours": (0, 99)}, 2, ["hours", "age"])]
    [[0.0, 18.0], [99.0, 90.0]]
    >>> per_feature([(0, 10), (50, 99)], 2)
    Traceback (most recent call last):
    ...
    ValueError: bounds may mean one pair per feature, or all lower and then all upper bounds: say which by a mapping...
    """
    if isinstance(bounds, Mapping):
        low, high = _by_name(bounds, features, names)
    else:
        low, high = _by_place(bounds, features)
    if not _are_intervals((low, high)):
        raise ValueError(_FORMS)
    return low, high


def _by_name(bounds: Mapping[Any, Any], features: int, names: Sequence[Any] | None) -> Sides:
    columns = list(range(features)) if names is None or not set(bounds) & set(names) else list(names)
    if missing := [column for column in columns if column not in bounds]:
        raise ValueError(f"bounds has no entry for the column {missing[0]!r}: declare (lower, upper) for each.")
    if unknown := [name for name in bounds if name not in columns]:
        raise ValueError(f"bounds has an entry for {unknown[0]!r}, which is no column of the data.")
    try:
        pairs = [(float(low), float(high)) for low, high in (bounds[column] for column in columns)]
    except (TypeError, ValueError):
        raise ValueError(_FORMS) from None
    low, high = np.array(pairs, np.float64).reshape(-1, 2).T
    return low, high


def _by_place(bounds: Any, features: int) -> Sides:
    shape = _shape(bounds)
    if len(shape) == 1:
        low, high = bounds
        return _one_each(low, features), _one_each(high, features)
    readings = [sides for sides in _readings(bounds, shape) if len(sides[0]) == features]
    if not readings:
        raise ValueError(f"bounds has {max(shape)} entries, but the data has {features} features.")
    sensible = [sides for sides in readings if _are_intervals(sides)]
    if len(sensible) == 2 and not _are_two_arrays(bounds) and not np.array_equal(sensible[0], sensible[1]):
        first, second = (f"({float(low):g}, {float(high):g})" for low, high in np.array(bounds, np.float64))
        raise ValueError(
            "bounds may mean one pair per feature, or all lower and then all upper bounds: say which by a mapping, "
            f"such as {{0: {first}, 1: {second}}}, by columns' names or numbers."
        )
    return (sensible or readings)[0]


def _readings(bounds: Any, shape: tuple[int, ...]) -> list[Sides]:
    """What a table of numbers may mean: lower bounds above upper ones, where it has two rows; pairs, where it has two
    columns."""
    numbers = np.array(bounds, np.float64)
    readings = []
    if shape[0] == 2:
        readings.append((numbers[0], numbers[1]))
    if shape[1] == 2:
        readings.append((numbers[:, 0], numbers[:, 1]))
    return readings


def _are_two_arrays(bounds: Any) -> bool:
    """Whether these are two arrays, as ``X.min(axis=0), X.max(axis=0)`` are: nobody writes pairs so."""
    return isinstance(bounds, tuple) and all(isinstance(side, np.ndarray) for side in bounds)


def _are_intervals(sides: Sides) -> bool:
    """Whether each lower bound is below its upper one, and nothing computed of them leaves the doubles."""
    low, high = sides
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(low + high).all() and np.isfinite(high - low).all() and (low < high).all())


def _shape(bounds: Any) -> tuple[int, ...]:
    """(2,) of a pair whose sides are numbers or one of them a list; otherwise (rows, columns), one of which is 2."""
    try:
        sides = list(bounds)
        shapes = {np.shape(side) for side in sides}
    except (TypeError, ValueError):
        raise ValueError(_FORMS) from None
    if len(sides) == 2 and () in shapes and all(len(shape) < 2 for shape in shapes):
        return (2,)
    if len(shapes) != 1:
        raise ValueError(_FORMS)
    [row] = shapes
    if len(row) != 1 or 2 not in (len(sides), row[0]):
        raise ValueError(_FORMS)
    return (len(sides), row[0])


def _one_each(side: Any, features: int) -> NDArray[np.float64]:
    """One number for all features, or one each."""
    try:
        return np.broadcast_to(np.asarray(side, np.float64), (features,))
    except (TypeError, ValueError):
        if isinstance(side, str):
            raise ValueError(_FORMS) from None
        raise ValueError(
            f"bounds has {np.size(side)} entries on a side, but the data has {features} features."
        ) from None
