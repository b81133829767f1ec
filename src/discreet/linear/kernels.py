r"""Sums of clipped gradients in which one record counts for itself alone, down to the last bit.

A float matrix product rounds differently when a row is added, for every row at once; the sensitivity of its result is
not that of the real numbers (Casacuberta et al. 2022). Three things prevent it here.

1. A record's score is computed by a loop over its own row. It cannot depend on other rows.
2. A record's gradient x·rᵀ is shrunk to norm C·(1 - 2^-20) and every entry of it rounded to a grid of step at most
   2^-32·C (at most 2^26 entries, so that rounding adds no more than 2^-20·C): its norm is at most C after rounding.
3. Multiples of the grid step are added. Blocks of 2^11 rows stay below 2^45 steps, so that doubles add them exactly;
   the blocks are added as 64-bit integers, which hold 2^29 records. The total is the exact sum, in any order.

Residuals that are not finite count as zero.

Decision 65.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = [
    "CUSTOM",
    "GRID_BITS",
    "HINGE",
    "INSIDE",
    "KINDS",
    "LOGISTIC",
    "SQUARED",
    "VANISHING",
    "clipped_sum",
    "column_sum",
    "exact",
    "gram_sum",
    "grid_step",
    "inside_count",
    "residual_of",
    "scores",
    "shift_scores",
    "small_norm",
    "square_of",
    "unpack_symmetric",
]

GRID_BITS = 32
INSIDE = 1 - 2.0**-20


def grid_step(clip: float) -> float:
    """The power of two, at most 2^-32 times ``clip``, on which clipped gradients are rounded."""
    return math.ldexp(1.0, math.frexp(clip)[1] - 1 - GRID_BITS)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _scores(rows: Any, weights: Any, out: Any) -> None:
    n, p = rows.shape
    k = weights.shape[0]
    for i in range(n):
        for c in range(k):
            total = 0.0
            for j in range(p):
                total += rows[i, j] * weights[c, j]
            out[i, c] = total


def scores(rows: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """rows @ weights, each row by itself; n × k."""
    out = np.empty((len(rows), weights.shape[1]))
    _scores(rows, np.ascontiguousarray(weights.T), out)
    return out


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def square_of(row: Any) -> float:
    """‖row‖², which underflows for tiny numbers."""
    total = 0.0
    for j in range(len(row)):
        total += row[j] * row[j]
    return total


VANISHING = 2.0**-900  # below it squares may have underflowed, each by less than 2^-1022


@njit(cache=True, nogil=True)
def small_norm(row: Any) -> float:
    """‖row‖ after division by the largest entry, so that no square vanishes."""
    largest = 0.0
    for j in range(len(row)):
        largest = max(largest, abs(row[j]))
    total = 0.0
    for j in range(len(row)):
        total += (row[j] / largest) ** 2 if largest > 0.0 else 0.0
    return math.sqrt(total) * largest


@njit(cache=True, nogil=True)
def _clipped_sum(rows: Any, residuals: Any, clip: float, step: float, totals: Any) -> None:
    """Adds each record's clipped gradient to ``totals`` (k × p, in grid steps)."""
    n, p = rows.shape
    k = residuals.shape[1]
    block = np.zeros((k, p))
    magic = 1.5 * 2.0**52 * step  # adding and subtracting it rounds to a multiple of the step
    for i in range(n):
        width, height = square_of(rows[i]), square_of(residuals[i])
        length = math.sqrt(width) * math.sqrt(height)
        if width < VANISHING or height < VANISHING:
            length = small_norm(residuals[i])
            length = length * small_norm(rows[i]) if length > 0.0 else 0.0
        if length > 0.0 and length < math.inf:  # not for NaN
            shrink = min(1.0, clip / length)
            for c in range(k):
                r = residuals[i, c] * shrink
                for j in range(p):
                    block[c, j] += (r * rows[i, j] + magic) - magic
        if i % 2048 == 2047 or i == n - 1:
            for c in range(k):
                for j in range(p):
                    totals[c, j] += np.int64(block[c, j] / step)
                    block[c, j] = 0.0


def clipped_sum(rows: NDArray[np.float64], residuals: NDArray[np.float64], clip: float) -> Any:
    """Σ of clipped gradients (p × k), exactly: an array of doubles where they can hold it, otherwise of fractions.

    >>> clipped_sum(np.array([[3.0, 4.0]]), np.array([[1.0]]), 0.5).round(6).ravel().tolist()
    [0.3, 0.4]
    """
    totals = np.zeros((residuals.shape[1], rows.shape[1]), np.int64)
    step = grid_step(clip)
    with np.errstate(over="ignore", invalid="ignore"):
        bounded = np.clip(np.nan_to_num(residuals, nan=0.0, posinf=0.0, neginf=0.0), -1e150, 1e150)
    _clipped_sum(rows, bounded, clip * INSIDE, step, totals)
    return exact(totals.T, step)


def exact(totals: NDArray[np.int64], step: float) -> Any:
    """Whole grid steps as the numbers they are: doubles where these can hold them, otherwise fractions."""
    if not totals.size or int(np.abs(totals).max()) < 1 << 53:
        return totals * step
    out = np.empty(totals.shape, object)
    out.reshape(-1)[:] = [int(t) * Fraction(step) for t in totals.reshape(-1)]
    return out


SQUARED, LOGISTIC, HINGE, CUSTOM = 0, 1, 2, 3
# the losses whose residuals are computed here; those of any other (CUSTOM) are given
KINDS = {"squared": SQUARED, "logistic": LOGISTIC, "huber hinge": HINGE}
_HALVE, _LOG2_E, _LN_2 = 1.5 * 2.0**52, 1.4426950408889634, 0.6931471805599453


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _sigmoid(t: float) -> float:
    """1/(1 + e^-t) to 1e-13, by arithmetic that compilers put in vectors: 2^k times a polynomial gives e^-|t|."""
    z = -(abs(t) if abs(t) < 600.0 else 600.0) * _LOG2_E
    shifted = z + _HALVE  # its low bits are the nearest whole number
    f = (z - (shifted - _HALVE)) * _LN_2
    high = 1 / 720 + f * (1 / 5040 + f * (1 / 40320 + f * (1 / 362880 + f * (1 / 3628800))))
    p = 1.0 + f * (1.0 + f * (1 / 2 + f * (1 / 6 + f * (1 / 24 + f * (1 / 120 + f * high)))))
    power = (np.float64(shifted).view(np.int64) - np.float64(_HALVE).view(np.int64) + np.int64(1023)) << np.int64(52)
    e = p * np.int64(power).view(np.float64)
    top = e if t < 0.0 else 1.0
    return top / (1.0 + e)


def check_kind(kind: int, *known: int) -> None:
    """Compiled code ends in the last kind of loss: another must not reach it."""
    if kind not in known:
        raise ValueError(f"There is no kernel for a loss of kind {kind!r}.")


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def residual_of(kind: int, score: float, target: float, width: float) -> float:
    """The derivative of a loss in its score; targets of the classification losses are -1, 1, and 0 for no record."""
    if kind == 0:
        return score - target
    if kind == 1:
        return -target * _sigmoid(-target * score)
    ramp = (1.0 + width - target * score) / (2.0 * width)
    return -target * min(1.0, max(0.0, ramp))


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _whole(g: float, clip: float, magic: float, zero: Any) -> Any:
    """g cut to [-clip, clip], in whole grid steps: they are the low bits of g + magic. Integers add in any order."""
    g = clip if g > clip else g
    g = -clip if g < -clip else g
    return np.float64(g + magic).view(np.int64) - zero


@njit(cache=True, nogil=True, error_model="numpy")  # no check for division by zero: it would keep loops out of vectors
def _column_sum(kind: int, column: Any, scores: Any, targets: Any, width: float, clip: float, magic: float) -> Any:
    total, zero = np.int64(0), np.float64(magic).view(np.int64)
    if kind == 0:
        for i in range(len(column)):
            total += _whole((scores[i] - targets[i]) * column[i], clip, magic, zero)
    elif kind == 1:
        for i in range(len(column)):
            total += _whole(-targets[i] * _sigmoid(-targets[i] * scores[i]) * column[i], clip, magic, zero)
    elif kind == 3:
        for i in range(len(column)):
            total += _whole(scores[i] * column[i], clip, magic, zero)
    else:
        for i in range(len(column)):
            total += _whole(residual_of(kind, scores[i], targets[i], width) * column[i], clip, magic, zero)
    return total


@njit(cache=True, nogil=True)
def _inside_count(kind: int, column: Any, scores: Any, targets: Any, width: float, clip: float) -> Any:
    total = np.int64(0)
    for i in range(len(column)):
        r = scores[i] if kind == 3 else residual_of(kind, scores[i], targets[i], width)
        total += 1 if abs(r * column[i]) <= clip else 0
    return total


@njit(cache=True, nogil=True)
def shift_scores(scores: Any, column: Any, change: float) -> None:
    """scores += change·column, each entry by itself."""
    for i in range(len(column)):
        scores[i] += change * column[i]


@njit(cache=True, nogil=True)
def _shifted_sum(
    kind: int,
    column: Any,
    scores: Any,
    targets: Any,
    width: float,
    clip: float,
    magic: float,
    moved: Any,
    change: float,
) -> Any:
    total = np.int64(0)
    for at in range(0, len(column), 1024):  # a block that stays in cache between the two loops
        part = slice(at, min(at + 1024, len(column)))
        if change != 0.0:
            shift_scores(scores[part], moved[part], change)
        total += _column_sum(kind, column[part], scores[part], targets[part], width, clip, magic)
    return total


def column_sum(
    kind: int,
    column: NDArray[Any],
    scores: NDArray[np.float64],
    targets: NDArray[np.float64],
    width: float,
    clip: float,
    moved: NDArray[Any] | None = None,
    change: float = 0.0,
) -> Any:
    """Σ of one coordinate's derivatives, each cut to [-clip, clip], exactly, as an array of one entry.

    ``kind`` says which loss; 3 says that ``scores`` are the residuals themselves. In the same pass ``scores`` grow by
    ``change`` times the column that ``moved``, before they are looked at. Columns may be of single precision.
    """
    check_kind(kind, *KINDS.values(), CUSTOM)
    step = grid_step(clip)
    total = _shifted_sum(
        kind,
        column,
        scores,
        targets,
        width,
        clip * INSIDE,
        1.5 * 2.0**52 * step,
        column if moved is None else moved,
        change,
    )
    return exact(np.array([total], np.int64), step)


def inside_count(
    kind: int,
    column: NDArray[Any],
    scores: NDArray[np.float64],
    targets: NDArray[np.float64],
    width: float,
    clip: float,
) -> int:
    """How many records' derivatives lie within [-clip, clip]."""
    check_kind(kind, *KINDS.values(), CUSTOM)
    return int(_inside_count(kind, column, scores, targets, width, clip))


@njit(cache=True, nogil=True)
def _gram(rows: Any, left: Any, right: Any, weights: Any, step: float, totals: Any) -> None:
    for i in range(len(rows)):
        for e in range(len(left)):
            totals[e] += np.int64(rows[i, left[e]] * rows[i, right[e]] * weights[e] / step)


def gram_sum(rows: NDArray[np.float64], targets: NDArray[np.float64], norm: float, sensitivity: float) -> Any:
    """Σ of the packed xxᵀ (off-diagonal entries times √2) and norm·xy, exactly,
    each record's cut towards zero to a grid.
    """
    left, right = np.triu_indices(rows.shape[1])
    weights = np.where(left == right, 1.0, math.sqrt(2))
    step, totals = grid_step(sensitivity), np.zeros(len(left) + rows.shape[1], np.int64)
    _gram(rows, left, right, weights, step, totals[: len(left)])
    crossed = (rows * (norm * targets)[:, None] / step).astype(np.int64)
    totals[len(left) :] = crossed.sum(axis=0)
    return exact(totals, step)


def unpack_symmetric(packed: NDArray[np.float64], features: int) -> NDArray[np.float64]:
    """The symmetric matrix whose packed upper triangle ``gram_sum`` adds up."""
    upper = np.triu_indices(features)
    matrix = np.zeros((features, features))
    matrix[upper] = packed / np.where(upper[0] == upper[1], 1.0, math.sqrt(2))
    return np.asarray(matrix + np.triu(matrix, 1).T)
