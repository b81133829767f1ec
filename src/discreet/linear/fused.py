"""The sum of clipped gradients of a loss of one score, in one pass over the rows.

The same sum as ``kernels.clipped_sum`` of the same residuals, and as exact: a record's score comes from its own row,
its gradient is shrunk to the clip, rounded to the grid and added in whole steps. Nothing is written beside the totals,
and a row's length, which the clip needs, is measured once for all passes. Gradients that are not finite count as zero.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.linear.kernels import (
    INSIDE,
    KINDS,
    VANISHING,
    check_kind,
    exact,
    grid_step,
    residual_of,
    small_norm,
    square_of,
)

__all__ = ["gradient_sum", "lengths"]

_ROWS = 512  # a block that stays in cache


@njit(cache=True, nogil=True)
def _lengths(rows: Any, out: Any) -> None:
    n, p = rows.shape
    row = np.zeros(p)  # in doubles: squares of single precision vanish too soon
    for i in range(n):
        for j in range(p):
            row[j] = rows[i, j]
        square = square_of(row)
        out[i] = small_norm(row) if square < VANISHING else math.sqrt(square)


def lengths(rows: NDArray[Any]) -> NDArray[np.float64]:
    """The norm of each row, of however small numbers."""
    out = np.empty(len(rows))
    _lengths(rows, out)
    return out


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(row: Any, weights: Any) -> float:
    total = 0.0
    for j in range(len(row)):
        total += row[j] * weights[j]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def _slopes(kind: int, scores: Any, norms: Any, targets: Any, width: float, clip: float, out: Any) -> None:
    """Derivatives of the loss, shrunk so that with rows of these norms no gradient is longer than the clip: loops that
    compilers put in vectors.
    """
    if kind == 1:
        for i in range(len(scores)):
            out[i] = residual_of(1, scores[i], targets[i], width)
    else:
        for i in range(len(scores)):
            out[i] = residual_of(kind, scores[i], targets[i], width)
    for i in range(len(scores)):
        length = norms[i] * abs(out[i])
        shrunk = out[i] * (clip / length) if length > clip else out[i]
        out[i] = shrunk if length < math.inf else 0.0  # and for NaN: no cast of it to whole steps is bounded


@njit(cache=True, nogil=True, error_model="numpy")
def _gradient_sum(
    kind: int, rows: Any, norms: Any, targets: Any, weights: Any, width: float, clip: float, step: float, totals: Any
) -> None:
    n, p = rows.shape
    block, scores, slopes = np.zeros(p), np.zeros(_ROWS), np.zeros(_ROWS)
    magic = 1.5 * 2.0**52 * step  # adding and subtracting it rounds to a multiple of the step
    for at in range(0, n, _ROWS):
        size = min(_ROWS, n - at)
        for i in range(size):
            scores[i] = _dot(rows[at + i], weights)
        end = at + size
        _slopes(kind, scores[:size], norms[at:end], targets[at:end], width, clip, slopes[:size])
        for i in range(size):
            r, row = slopes[i], rows[at + i]
            for j in range(p):
                block[j] += (r * row[j] + magic) - magic
        for j in range(p):  # at most 2^9 times 2^33 steps: exact in doubles, and added as whole numbers
            totals[j] += np.int64(block[j] / step)
            block[j] = 0.0


def gradient_sum(
    kind: int,
    rows: NDArray[Any],
    norms: NDArray[np.float64],
    targets: NDArray[np.float64],
    weights: NDArray[np.float64],
    width: float,
    clip: float,
) -> Any:
    """Σ of clipped gradients (p × 1) at ``weights``.

    Rows may be of single precision, which halves what is read; scores and gradients are doubles.
    ``targets`` are -1, 1 and, for no record, 0; or numbers, for the squared loss. ``norms`` are the rows' ``lengths``.

    >>> x = np.array([[3.0, 4.0]])
    >>> gradient_sum(0, x, lengths(x), np.array([-9.0]), np.zeros(2), 0.0, 0.5).round(6).ravel().tolist()
    [0.3, 0.4]
    """
    check_kind(kind, *KINDS.values())
    totals, step = np.zeros(rows.shape[1], np.int64), grid_step(clip)
    _gradient_sum(kind, rows, norms, targets, np.ascontiguousarray(weights), width, clip * INSIDE, step, totals)
    return exact(totals[:, None], step)
