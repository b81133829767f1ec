"""What an LSTM or a GRU does beside its products, compiled: one pass over a step's gates, forward and back.

Single precision on the processor; elsewhere ``recurrence`` does the same by torch functions. Loops are short and have
one result each, so that the compiler makes vectors of them. A gate that is not a number stays none.

Decision 405.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from discreet.random._box_muller import float_of_bits

__all__ = ["gru_back", "gru_step", "lstm_back", "lstm_step"]

_ONE, _TWO, _HALF = np.float32(1), np.float32(2), np.float32(0.5)
_MOST = np.float32(87)  # exp of more is beyond single precision
_PER_LN2, _LN2, _REST = np.float32(1 / np.log(2)), np.float32(0.693359375), np.float32(-2.12194440e-4)
_SERIES = tuple(np.float32(c) for c in (1 / 6, 1 / 24, 1 / 120, 1 / 720, 1 / 5040))
_C3, _C4, _C5, _C6, _C7 = _SERIES


@njit(cache=True, inline="always", error_model="numpy")
def _expm1(x: Any) -> Any:
    """exp(x) - 1 for |x| ≤ 87, to a few units in the last place: 2ⁿ(eʳ - 1) + (2ⁿ - 1) with |r| ≤ ln(2)/2."""
    n = np.floor(x * _PER_LN2 + _HALF)
    r = x - n * _LN2 - n * _REST
    p = r + r * r * (_HALF + r * (_C3 + r * (_C4 + r * (_C5 + r * (_C6 + r * _C7)))))
    power = float_of_bits((np.int32(n) + np.int32(127)) << np.int32(23))
    return power * p + (power - _ONE)


@njit(cache=True, inline="always", error_model="numpy")
def _sigmoid(x: Any) -> Any:
    near = x if x > -_MOST else -_MOST
    near = near if near < _MOST else _MOST
    found = _ONE / (_TWO + _expm1(-near))
    return found if x == x else x


@njit(cache=True, inline="always", error_model="numpy")
def _tanh(x: Any) -> Any:
    size = x if x > np.float32(0) else -x
    size = size if size < _HALF * _MOST else _HALF * _MOST
    e = _expm1(-_TWO * size)
    found = -e / (_TWO + e)
    found = found if x > np.float32(0) else -found
    return found if x == x else x


@njit(cache=True, nogil=True, error_model="numpy")
def lstm_step(t: int, gates: Any, given: Any, bias: Any, past: Any, cells: Any, bent: Any, outputs: Any) -> None:
    """Step t: ``gates`` [T, B, 4H], with what the hidden state gave [B, 4H] and ``bias`` the pre-activations, become
    i, f, g, o; ``past`` [B, H] is the cell before.

    Written are the cell, its tanh, and the hidden state.
    """
    records, size = past.shape
    for b in range(records):
        a, c, bend, h, before = gates[t, b], cells[t, b], bent[t, b], outputs[t, b], past[b]
        i, f, g, o, more = a[:size], a[size : 2 * size], a[2 * size : 3 * size], a[3 * size :], given[b]
        for j in range(2 * size):
            a[j] = _sigmoid(a[j] + more[j] + bias[j])
        for j in range(size):
            g[j] = _tanh(g[j] + more[2 * size + j] + bias[2 * size + j])
        for j in range(size):
            o[j] = _sigmoid(o[j] + more[3 * size + j] + bias[3 * size + j])
        for j in range(size):
            c[j] = f[j] * before[j] + i[j] * g[j]
        for j in range(size):
            bend[j] = _tanh(c[j])
        for j in range(size):
            h[j] = o[j] * bend[j]


@njit(cache=True, nogil=True, error_model="numpy")
def lstm_back(t: int, gates: Any, past: Any, bent: Any, steps: Any, hidden: Any, cell: Any, found: Any) -> None:
    """Step t, back: from the gradients of the hidden state after it (``steps`` [T, B, H] and ``hidden`` [B, H]) and of
    its cell, those of the pre-activations; ``cell`` becomes the gradient of the cell before."""
    records, size = past.shape
    of_hidden, of_cell = np.empty(size, np.float32), np.empty(size, np.float32)
    for b in range(records):
        a, bend, own, later, now = gates[t, b], bent[t, b], found[t, b], hidden[b], steps[t, b]
        i, f, g, o = a[:size], a[size : 2 * size], a[2 * size : 3 * size], a[3 * size :]
        own_i, own_f, own_g, own_o = own[:size], own[size : 2 * size], own[2 * size : 3 * size], own[3 * size :]
        before, kept = past[b], cell[b]
        for j in range(size):
            of_hidden[j] = later[j] + now[j]
        for j in range(size):
            of_cell[j] = kept[j] + of_hidden[j] * o[j] * (_ONE - bend[j] * bend[j])
        for j in range(size):
            own_i[j] = of_cell[j] * g[j] * i[j] * (_ONE - i[j])
        for j in range(size):
            own_f[j] = of_cell[j] * before[j] * f[j] * (_ONE - f[j])
        for j in range(size):
            own_g[j] = of_cell[j] * i[j] * (_ONE - g[j] * g[j])
        for j in range(size):
            own_o[j] = of_hidden[j] * bend[j] * o[j] * (_ONE - o[j])
        for j in range(size):
            kept[j] = of_cell[j] * f[j]


@njit(cache=True, nogil=True, error_model="numpy")
def gru_step(t: int, gates: Any, given: Any, past: Any, outputs: Any) -> None:
    """Step t: ``gates`` [T, B, 3H] are the inputs' parts and become r, z, n; ``given`` are the hidden state's parts.

    Written is the hidden state.
    """
    records, size = past.shape
    for b in range(records):
        a, more, h, before = gates[t, b], given[t, b], outputs[t, b], past[b]
        r, z, n, last = a[:size], a[size : 2 * size], a[2 * size :], more[2 * size :]
        for j in range(2 * size):
            a[j] = _sigmoid(a[j] + more[j])
        for j in range(size):
            n[j] = _tanh(n[j] + r[j] * last[j])
        for j in range(size):
            h[j] = n[j] + z[j] * (before[j] - n[j])


@njit(cache=True, nogil=True, error_model="numpy")
def gru_back(t: int, gates: Any, given: Any, past: Any, steps: Any, hidden: Any, inner: Any, outer: Any) -> None:
    """Step t, back: from the gradients of the hidden state after it, those of all that was added up in the gates:
    ``outer`` for the inputs' part, ``inner`` for the hidden state's; ``hidden`` becomes what goes past the gates."""
    records, size = past.shape
    of_hidden = np.empty(size, np.float32)
    for b in range(records):
        a, before, later, now = gates[t, b], past[b], hidden[b], steps[t, b]
        r, z, n, last = a[:size], a[size : 2 * size], a[2 * size :], given[t, b, 2 * size :]
        own, far = inner[t, b], outer[t, b]
        own_r, own_z, own_n, far_n = own[:size], own[size : 2 * size], own[2 * size :], far[2 * size :]
        for j in range(size):
            of_hidden[j] = later[j] + now[j]
        for j in range(size):
            far_n[j] = of_hidden[j] * (_ONE - z[j]) * (_ONE - n[j] * n[j])
        for j in range(size):
            own_r[j] = far_n[j] * last[j] * r[j] * (_ONE - r[j])
        for j in range(size):
            own_z[j] = of_hidden[j] * (before[j] - n[j]) * z[j] * (_ONE - z[j])
        for j in range(size):
            own_n[j] = far_n[j] * r[j]
        for j in range(2 * size):
            far[j] = own[j]
        for j in range(size):
            later[j] = of_hidden[j] * z[j]
