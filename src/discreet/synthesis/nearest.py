"""Votes of records for their nearest candidates, exactly: one record's vote depends on no other record.

Features are whole numbers, so squared Euclidean distances are computed without rounding, whatever the order of the
sums and however many records share a product: a record near a tie votes the same beside any others. Of equally near
candidates the first gets the vote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding.rowwise import NOTHING, map_rows

__all__ = ["WIDEST", "Embedding", "Features", "count_votes", "embed_rows", "nearest", "whole_features"]

Features = NDArray[np.float64]  # whole numbers
Embedding = Callable[[Any], Any]

_LEVELS = 255  # of an entry between 0 and 1
_FINEST, _LARGEST = 1 << 10, 1 << 20  # of an entry of an embedding: steps in one, and the largest number of steps
WIDEST = 1000  # entries of an embedding: 8 · 1000 · 2^40 is below 2^53, so that every sum of products is exact
_BLOCK = 4096  # records whose distances are held at once: a speed knob


def whole_features(rows: Any) -> Features:
    """Entries from 0 to 1 as whole numbers up to 255."""
    return np.rint(np.asarray(rows, np.float64) * _LEVELS)


def embed_rows(embedding: Embedding, rows: Any, width: int | None = None) -> tuple[Features, NDArray[np.bool_]]:
    """What a public function makes of each row by itself, in steps of 1/1024 cut at 1024; and which rows have it.

    A row on which the function fails, or gives anything but ``width`` finite numbers (none: as many as of the first
    row), has no features: it does not vote.
    """
    answers = map_rows(lambda block: list(np.asarray(embedding(block), np.float64)), rows, len(rows))
    vectors = [np.zeros(0) if answer is NOTHING else np.ravel(answer) for answer in answers]
    width = len(vectors[0]) if width is None else width
    readable = np.array([len(vector) == width and bool(np.isfinite(vector).all()) for vector in vectors], bool)
    features = np.zeros((len(vectors), width))
    for place in np.flatnonzero(readable):
        features[place] = vectors[place]
    return np.clip(np.rint(features * _FINEST), -_LARGEST, _LARGEST), readable


def nearest(features: Features, candidates: Features) -> NDArray[np.intp]:
    """The candidate with the least squared Euclidean distance to each record; one with a NaN is as far as can be.

    >>> nearest(np.array([[0.0, 3.0], [2.0, 2.0]]), np.array([[0.0, 0.0], [2.0, 3.0], [2.0, 1.0]])).tolist()
    [1, 1]
    """
    readable = np.asarray(np.isfinite(candidates).all(axis=1))
    candidates = np.where(readable[:, None], candidates, 0.0)
    norms = np.where(readable, (candidates * candidates).sum(axis=1), np.inf)
    blocks = range(0, len(features), _BLOCK)
    places = [(norms - 2 * (features[at : at + _BLOCK] @ candidates.T)).argmin(axis=1) for at in blocks]
    return np.concatenate([np.zeros(0, np.intp), *places])


def count_votes(
    features: Features, codes: NDArray[np.int64], candidates: Features, classes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many records each candidate is the nearest of its own class to: one record more is one vote more."""
    votes = np.zeros(len(candidates), np.int64)
    for code in np.unique(classes):
        own = np.flatnonzero(classes == code)
        chosen = nearest(features[codes == code], candidates[own])
        votes[own] = np.bincount(chosen, minlength=len(own))
    return votes
