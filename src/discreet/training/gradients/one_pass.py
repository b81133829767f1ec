r"""A single thin linear layer, such as a logistic regression: norms, factors and the clipped sum in one compiled pass.

With inputs :math:`x_i` and output gradients :math:`g_i` the gradient of record i is :math:`g_i (x_i, 1)^\top`, so

.. math:: n_i = \|g_i\|\sqrt{\|x_i\|^2 + 1}, \qquad \sum_i w_i f(n_i)\, g_i (x_i, 1)^\top

needs each record once: by torch functions the batch is read twice, and a dozen small tensors are made on the way, which
together take longer than the arithmetic. Single precision on the processor, a few outputs and no more records than one
thread should do; whatever else comes is declined, and a norm that is not finite too, for the ordinary way to look at.

Decision 406.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit

from discreet.errors import extra
from discreet.training.gradients.rules.outer_products import Affine
from discreet.training.gradients.uses import Use

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["in_one_pass"]

THIN = 8  # outputs: with more of them a library's product is faster
LONG = 1 << 12  # inputs: a few rows must stay in the nearest cache
MUCH = 1 << 21  # numbers: of more, torch's threads should each have a part
CHUNK = 64  # records whose sum is made in single precision, before it is added to the others in double
_TINY = np.float32(np.finfo(np.float32).tiny)
_NONE = np.empty(0, np.float32)
_FAST = {"reassoc", "contract", "nsz"}  # sums in any order; what is not a number stays none


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def _measure(x: Any, squares: Any) -> None:
    """Squared lengths of rows, four at a time."""
    even = len(x) - len(x) % 4
    for i in range(0, even, 4):
        a = b = c = d = np.float32(0)
        for j in range(x.shape[1]):
            a += x[i, j] * x[i, j]
            b += x[i + 1, j] * x[i + 1, j]
            c += x[i + 2, j] * x[i + 2, j]
            d += x[i + 3, j] * x[i + 3, j]
        squares[i], squares[i + 1], squares[i + 2], squares[i + 3] = a, b, c, d
    for i in range(even, len(x)):
        a = np.float32(0)
        for j in range(x.shape[1]):
            a += x[i, j] * x[i, j]
        squares[i] = a


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def _multiply(h: Any, x: Any, out: Any) -> None:
    """Products of the rows of ``h`` with ``x``, four records at a time: so often ``out`` is read and written."""
    even = len(x) - len(x) % 4
    out[:] = 0
    for i in range(0, even, 4):
        for k in range(len(h)):
            a, b, c, d = h[k, i], h[k, i + 1], h[k, i + 2], h[k, i + 3]
            for j in range(x.shape[1]):
                out[k, j] += a * x[i, j] + b * x[i + 1, j] + c * x[i + 2, j] + d * x[i + 3, j]
    for i in range(even, len(x)):
        for k in range(len(h)):
            for j in range(x.shape[1]):
                out[k, j] += h[k, i] * x[i, j]


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_FAST)
def _clipped_sum(
    x: Any, g: Any, weights: Any, more: Any, norm: Any, stability: Any, most: Any, squares: Any, out: Any, bias: Any
) -> Any:
    """Fill ``squares``, ``out`` and ``bias``; the sum of the squares, which is not finite where one is not.

    ``more`` is added to an input's squares: one for a bias, otherwise the most that squares too small for their
    precision take away, which is added to those of output gradients, too. Factors are ``norm`` over a length plus
    ``stability``, at ``most`` so much.
    """
    records, inputs, outputs = x.shape[0], x.shape[1], g.shape[1]
    h, factors, total, vanished = (
        np.empty((outputs, CHUNK), np.float32),
        np.empty(CHUNK, np.float32),
        np.float32(0),
        outputs * _TINY,
    )
    sums, sides = np.zeros((outputs, inputs)), np.zeros(outputs)
    for start in range(0, records, CHUNK):
        rows, back, own = x[start : start + CHUNK], g[start : start + CHUNK], squares[start : start + CHUNK]
        size = len(rows)
        _measure(rows, own)
        factors[:] = vanished
        for k in range(outputs):
            for i in range(size):
                h[k, i] = back[i, k]
            for i in range(size):
                factors[i] += h[k, i] * h[k, i]
        for i in range(size):
            own[i] = (own[i] + more) * factors[i] + _TINY  # for a product that vanishes
        for i in range(size):
            total += own[i]
        for i in range(size):
            factors[i] = min(most, norm / (np.sqrt(own[i]) + stability))
        if len(weights):
            for i in range(size):
                factors[i] *= weights[start + i]
        for k in range(outputs):
            for i in range(size):
                h[k, i] *= factors[i]
        _multiply(h, rows, out)
        for k in range(outputs):
            sides[k] += h[k, :size].sum()
            for j in range(inputs):
                sums[k, j] += out[k, j]
    out[:] = sums
    bias[:] = sides
    return total


def in_one_pass(
    use: Use,
    place: int,
    bias: int | None,
    records: int,
    weights: Tensor | None,
    terms: tuple[float, float, float],
    out: Sequence[Tensor],
) -> Tensor | None:
    """Write the clipped sum to ``out``, and return the squared norms; none where this is not the way.

    ``use`` is the only one of the batch, of the parameter at ``place`` in ``out``, and of the one at ``bias`` perhaps.
    ``terms`` are of ``Clipping.terms``.
    """
    x, g = use.activations, use.gradients
    if type(use.handler) is not Affine or g is None or not _fits(x, g, records, weights):
        return None
    squares, (norm, stability, most) = np.empty(records, np.float32), map(np.float32, terms)
    total = _clipped_sum(
        x.numpy(),
        g.contiguous().numpy(),
        _NONE if weights is None else weights.numpy(),
        x.shape[1] * _TINY if bias is None else np.float32(1),
        norm,
        stability,
        most,
        squares,
        out[place].numpy(),
        np.empty(g.shape[1], np.float32) if bias is None else out[bias].numpy(),
    )
    if not math.isfinite(total):  # whose norm that is, the ordinary way finds out
        return None
    for i, part in enumerate(out):
        if i not in (place, bias):
            part.zero_()
    return torch.from_numpy(squares)


def _fits(x: Tensor, g: Tensor, records: int, weights: Tensor | None) -> bool:
    """Whether the compiled pass takes such numbers, and torch's own threads would not do them sooner."""
    given = [x, g] if weights is None else [x, g, weights]
    for y in given:
        if y.dtype is not torch.float32 or not y.is_cpu or y.shape[0] != records or y.is_neg():
            return False
    if not x.is_contiguous() or g.shape[1] > THIN or x.shape[1] > LONG:
        return False
    return x.numel() <= MUCH or torch.get_num_threads() == 1
