"""Outputs that no half-line tells apart: features of a vector, and the linear discriminant that the pilot runs fit.

A record may show in the last bit of an output, in its size and not its sign, or in a product of signs. The features of
a vector are its coordinates, their distances from the middle, their signs, whether their whole parts are odd, the last
bits of their floats, and products of two signs and of all; Fisher's discriminant of the two pilots is the score.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["fit_discriminant"]

Floats = NDArray[np.float64]
_COORDINATES = 12  # those that differ most; all pairs of them are looked at
_BITS = 3


def fit_discriminant(first: Floats, second: Floats) -> Callable[[Floats], Floats]:
    """A score of outputs, larger for those like ``second``'s, from pilot outputs (runs × coordinates) of both sides.

    >>> rng = np.random.default_rng(0)
    >>> even, odd = (2 * rng.integers(-50, 50, (200, 1)) + parity for parity in (0.0, 1.0))
    >>> score = fit_discriminant(even, odd)
    >>> bool(score(even).max() < score(odd).min())
    True
    """
    middle = np.median(np.concatenate([first, second]), axis=0)
    used = np.argsort(-_difference(first - middle, second - middle), kind="stable")[:_COORDINATES]

    def features(rows: Floats) -> Floats:
        return _features(rows[:, used], middle[used])

    sides = [features(side) for side in (first, second)]
    mean, scale = np.concatenate(sides).mean(axis=0), np.concatenate(sides).std(axis=0)
    scale[scale == 0] = np.inf  # the same in every run: it tells nothing
    sides = [(side - mean) / scale for side in sides]
    moved = sides[1].mean(axis=0) - sides[0].mean(axis=0)
    within = sum(np.cov(side, rowvar=False).reshape(len(moved), len(moved)) for side in sides)
    # one part in ten of the identity: there may be as many features as runs
    weights = np.linalg.solve(within + 0.1 * np.eye(len(moved)), moved)
    return lambda rows: np.asarray((features(rows) - mean) / scale @ weights)


def _difference(first: Floats, second: Floats) -> Floats:
    """How far apart the sides are in each coordinate, by its mean or by its mean size, in standard errors."""
    apart = np.zeros(first.shape[1])
    for a, b in ((first, second), (np.abs(first), np.abs(second))):
        error = np.sqrt(a.var(axis=0) + b.var(axis=0))
        apart = np.maximum(apart, np.abs(a.mean(axis=0) - b.mean(axis=0)) / np.where(error > 0, error, 1.0))
    return apart


def _features(rows: Floats, middle: Floats) -> Floats:
    signs = np.sign(rows)
    whole = np.clip(np.rint(rows), -(2.0**52), 2.0**52).astype(np.int64)
    bits = np.ascontiguousarray(rows).view(np.int64)
    pairs = [signs[:, i] * signs[:, j] for i, j in itertools.combinations(range(rows.shape[1]), 2)]
    return np.column_stack(
        [
            rows,
            np.abs(rows - middle),
            signs,
            whole & 1,
            *(bits >> place & 1 for place in range(_BITS)),
            *pairs,
            signs.prod(axis=1),
        ]
    )
