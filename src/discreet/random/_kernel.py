r"""The compiled loop behind every exact sampler: propose by coin flips, accept by a certified comparison.

A magnitude y = k·strip + j is proposed with k geometric (probability 2^-(k+1), read off one word's bits) and j
uniform below ``strip``, and accepted with probability p, where

    Laplace     p = 2^k · exp(-y/m)          strip ≥ m ln 2, so p ≤ 2^k · 2^-k = 1
    Gaussian    p = 2^k · exp(-y²/2σ²)       strip ≥ σ √(2 ln 2), so p ≤ 2^k · 2^-k² ≤ 1

The accepted y then has mass proportional to exp(-y/m) or exp(-y²/2σ²) exactly. For Gaussian *cells* p is evaluated at
y + u, with u uniform on [0, 1): the accepted y is the integer part of a continuous half-normal.

One 64-bit uniform decides. It is compared with bounds on p, never with p itself: first a table (one lookup a side),
then a polynomial, and where even that leaves |U - p| ≤ 2^-40 the loop stops and hands the candidate to exact integer
arithmetic (see ``exact``). MARGIN covers every float error made here, by this count (ulp = 2^-53, r the exponent):
y → float, the division, the square: r carries at most 8 ulp relative error, so 2^-44 absolute for r ≤ 64; the table
entries 1 ulp, the degree-6 polynomial below 2^-48, U cut to 53 bits 1 ulp. All of them together stay below 2^-42,
and p ≤ 1. Only +, -, ×, ÷ and a table computed from correctly rounded decimals are used: no libm is trusted.
For r ≥ 64 and k ≤ 40, p < 2^-52, also inside the margin; k > 40 is always handed over.
"""

from __future__ import annotations

from decimal import Context, Decimal
from functools import cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.random._words import next_word

__all__ = ["GAUSSIAN", "LAPLACE", "WIDEST", "draw_magnitudes", "exp_table", "pick", "walk"]

LAPLACE, GAUSSIAN = 0, 1
WIDEST = 53  # bits of j in a word; one more is the sign and ten start the geometric

_MARGIN = 2.0**-40
_STEPS = 64  # table entries per unit of exponent
_LAST = 64  # the table ends at exp(-64)


@cache
def exp_table() -> NDArray[np.float64]:
    """exp(-i/64), each correctly rounded, up to exp(-64) and one entry beyond."""
    exact = Context(prec=30)
    return np.array([float(exact.exp(Decimal(-i) / _STEPS)) for i in range(_STEPS * _LAST + 2)])


@njit(cache=True, inline="always")
def _exp_minus(r: float, table: Any) -> float:
    """exp(-r) for 0 ≤ r < 64: a table entry times a Taylor polynomial of the rest, which is below 1/64."""
    i = int(r * _STEPS)
    f = r - i / _STEPS
    series = 1.0 - f * (1.0 - f / 2 * (1.0 - f / 3 * (1.0 - f / 4 * (1.0 - f / 5 * (1.0 - f / 6)))))
    return float(table[i] * series)


@njit(cache=True, inline="always")
def _exponent(kind: int, y: float, scale: float) -> float:
    q = y / scale
    return q if kind == 0 else 0.5 * q * q


@njit(cache=True, nogil=True)
def draw_magnitudes(
    out: Any,
    start: int,
    kind: int,
    cells: bool,
    strip: int,
    scale: float,
    divisor: int,
    function: int,
    state: int,
    table: Any,
    pending: Any,
) -> int:
    """Fill ``out[start:]``; return how far it came. Below ``len(out)``, ``pending`` holds an undecided candidate.

    ``pending`` = (k, j, sign, U's word, u's word, how many of these two were drawn).
    """
    mask = np.uint64(0)
    while mask < np.uint64(strip - 1):
        mask = (mask << np.uint64(1)) | np.uint64(1)
    i = start
    while i < len(out):
        word = next_word(function, state)
        j = np.int64(word & mask)
        if j >= strip:
            continue
        k = 0
        coins = word >> np.uint64(54)
        if coins == 0:
            k = 10
            coins = next_word(function, state)
            while coins == 0:
                k += 64
                coins = next_word(function, state)
        while coins & np.uint64(1) == 0:
            k += 1
            coins >>= np.uint64(1)
        sign = (word >> np.uint64(53)) & np.uint64(1)
        if k > 40:
            pending[0], pending[1], pending[2], pending[5] = k, j, sign, 0
            return i
        y = k * strip + j
        front = float(np.int64(1) << k)
        near = _exponent(kind, float(y), scale)
        last = next_word(function, state)
        u = float(last >> np.uint64(11)) * 2.0**-53
        top = front * table[int(near * _STEPS)] if near < _LAST else 0.0
        if u >= top + _MARGIN:
            continue
        far = _exponent(kind, float(y + 1), scale) if cells and kind == 1 else near
        floor = front * table[int(far * _STEPS) + 1] if far < _LAST else 0.0
        if u >= floor - _MARGIN:
            drawn, inner = 1, np.uint64(0)
            if cells and kind == 1:
                drawn, inner = 2, next_word(function, state)
                near = _exponent(kind, float(y) + float(inner >> np.uint64(11)) * 2.0**-53, scale)
            p = front * _exp_minus(near, table) if near < _LAST else 0.0
            if abs(u - p) <= _MARGIN:
                pending[0], pending[1], pending[2] = k, j, sign
                pending[3], pending[4], pending[5] = last, inner, drawn
                return i
            if u > p:
                continue
        y = y // divisor
        if cells:
            out[i] = -y - 1 if sign else y
        elif sign and y == 0:
            continue  # zero would otherwise be drawn twice
        else:
            out[i] = -y if sign else y
        i += 1
    return i


@njit(cache=True, nogil=True)
def _below(bound: int, function: int, state: int) -> int:
    """A uniform integer in [0, bound), exactly."""
    mask = np.uint64(0)
    while mask < np.uint64(bound - 1):
        mask = (mask << np.uint64(1)) | np.uint64(1)
    while True:
        draw = np.int64(next_word(function, state) & mask)
        if draw < bound:
            return int(draw)


@njit(cache=True, nogil=True)
def _accept(r: float, word: Any, table: Any) -> int:
    """Whether the uniform that begins with ``word`` is below exp(-r): 1, 0, or -1 for too close to call."""
    u = float(word >> np.uint64(11)) * 2.0**-53
    if r < _LAST and u >= table[int(r * _STEPS)] + _MARGIN:
        return 0
    p = _exp_minus(r, table) if r < _LAST else 0.0
    if abs(u - p) <= _MARGIN:
        return -1
    return 1 if u < p else 0


@njit(cache=True, nogil=True)
def pick(gaps: Any, scale: float, function: int, state: int, table: Any, pending: Any) -> int:
    """An index i with probability proportional to exp(-gaps[i]/scale), for whole gaps of which the least is zero.

    Uniform proposals, accepted with that probability: at most ``len(gaps)`` of them on average, because the best
    is never refused. A negative result means ``pending`` = (index, U's word) has to be decided exactly.
    """
    while True:
        i = _below(len(gaps), function, state)
        if gaps[i] == 0:
            return i
        word = next_word(function, state)
        decision = _accept(float(gaps[i]) / scale, word, table)
        if decision == 1:
            return i
        if decision < 0:
            pending[0], pending[1] = i, word
            return -1


@njit(cache=True, nogil=True)
def walk(gaps: Any, order: Any, start: int, scale: float, function: int, state: int, table: Any, pending: Any) -> int:
    """The position in ``order``, shuffled on the way from ``start``, at which the first proposal was accepted.

    As in ``pick``, but without replacement. A negative result means the index at position ``pending[0]`` has to be
    decided exactly, with the uniform that begins with ``pending[1]``.
    """
    for i in range(start, len(order)):
        j = i + _below(len(order) - i, function, state)
        order[i], order[j] = order[j], order[i]
        if gaps[order[i]] == 0:
            return i
        word = next_word(function, state)
        decision = _accept(float(gaps[order[i]]) / scale, word, table)
        if decision == 1:
            return i
        if decision < 0:
            pending[0], pending[1] = i, word
            return -1
    return len(order)
