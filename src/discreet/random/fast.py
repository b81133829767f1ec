r"""Fast float Gaussian noise, for training: large tensors, many steps, no grid.

Threat model, by generator:

``secure=True`` (the default)
    AES in counter mode keyed by the operating system. Someone who sees any number of noisy gradients cannot predict
    other noise from them. The sample itself is a float: its law differs from the Gaussian by float rounding, and a
    float's low bits can betray which value it was added to (Mironov 2012). The account of a training run therefore
    holds for the ideal Gaussian, up to that rounding. Publish models, not raw noisy sums; release single statistics
    through ``mechanisms.Gaussian``, whose law is exact.
``secure=False``
    NumPy's SFC64, keyed by the same entropy. As good statistically, and with the same float caveat, but its state can
    be reconstructed from enough raw output. Only for noise nobody outside sees term by term, and faster only on
    processors that have no instructions for AES.

Method: Box and Muller's transform for singles, half a 64-bit word each (``_box_muller``); the ziggurat for doubles.
Large buffers are filled from independent streams by several threads; a seeded result does not depend on how many, nor
on whether the processor has instructions for AES (``_blocks``).

Reference: Marsaglia and Tsang (2000), "The ziggurat method for generating random variables". Decision 240.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.errors import nonnegative, positive
from discreet.random._blocks import NONE, encrypt, reserve
from discreet.random._box_muller import PAIRS, draw_pairs
from discreet.random._words import draw_words, next_word
from discreet.random.source import Rng, RngLike, Team, as_rng, in_lanes

__all__ = ["gaussian_noise"]

_LAYERS = 256
_EDGE = 3.6541528853610088  # where the tail layer begins
_AREA = 0.00492867323399  # the area of every layer
_SMALL = 1 << 16  # a fifth of a millisecond: not worth a second thread
_MANY = 1 << 12  # words, from which on it is worth some microseconds to read the generator's state


@cache
def _layers() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Right edges x_0 > x_1 > … > x_256 = 0 (x_0 is the base layer's nominal width) and exp(-x²/2) at each."""
    x = np.empty(_LAYERS + 1)
    x[0], x[1] = _AREA / math.exp(-0.5 * _EDGE**2), _EDGE
    for i in range(2, _LAYERS):
        x[i] = math.sqrt(-2 * math.log(_AREA / x[i - 1] + math.exp(-0.5 * x[i - 1] ** 2)))
    x[_LAYERS] = 0.0
    return x, np.exp(-0.5 * x * x)


@njit(cache=True, inline="always")
def _unit(function: int, state: int) -> float:
    return (float(next_word(function, state) >> np.uint64(11)) + 0.5) * 2.0**-53


@njit(cache=True, nogil=True)
def _outside(layer: Any, x: float, edges: Any, heights: Any, function: int, state: int) -> float:
    """What to do with a point outside its layer's core: the tail, the wedge, or (negative) another try."""
    if layer == 0:
        while True:
            a = -math.log(_unit(function, state)) / _EDGE
            if -2.0 * math.log(_unit(function, state)) > a * a:
                return _EDGE + a
    rise = heights[layer] + _unit(function, state) * (heights[layer + 1] - heights[layer])
    return x if rise < math.exp(-0.5 * x * x) else -1.0


@njit(cache=True, nogil=True)
def _again(word: Any, edges: Any, heights: Any, function: int, state: int) -> Any:
    """The number that a word decides which is outside its layer's core, with further words."""
    while True:
        layer = np.int64(word & np.uint64(255))
        x = float(word >> np.uint64(11)) * 2.0**-53 * edges[layer]
        if x >= edges[layer + 1]:
            x = _outside(layer, x, edges, heights, function, state)
        if x >= 0.0:
            return -x if word & np.uint64(256) else x
        word = next_word(function, state)


@njit(cache=True, nogil=True)
def _fill_double(
    out: Any,
    sigma: float,
    scale: float,
    function: int,
    state: int,
    keys: Any,
    counter: int,
    given: Any,
    edges: Any,
    heights: Any,
) -> None:
    """Add noise; words are made under ``keys`` from ``counter`` on, or ``given`` where there are none.

    In loops without a branch: 98 of 100 numbers are in their layer's core, and the others follow.
    """
    words, drawn, inside = np.empty(PAIRS, np.uint64), np.empty(PAIRS), np.empty(PAIRS, np.bool_)
    for start in range(0, len(out), PAIRS):
        part = out[start : start + PAIRS]
        if len(keys):
            encrypt(words, keys, counter + start // 2)
        own = words if len(keys) else given[start : start + PAIRS]
        for i in range(len(part)):
            layer = own[i] & np.uint64(255)
            x = float(own[i] >> np.uint64(11)) * 2.0**-53 * edges[layer]
            inside[i] = x < edges[layer + np.uint64(1)]
            drawn[i] = -x if own[i] & np.uint64(256) else x
        for i in range(len(part)):
            if not inside[i]:
                drawn[i] = _again(own[i], edges, heights, function, state)
        for i in range(len(part)):
            part[i] = (part[i] + sigma * drawn[i]) * scale


@njit(cache=True, nogil=True)
def _fill_single(
    out: Any,
    sigma: float,
    scale: float,
    function: int,
    state: int,
    keys: Any,
    counter: int,
    given: Any,
) -> None:
    """The same, half a word a number."""
    words, radii, drawn = np.empty(PAIRS, np.uint64), np.empty(PAIRS, np.float32), np.empty(2 * PAIRS, np.float32)
    for start in range(0, len(out), 2 * PAIRS):
        part = out[start : start + 2 * PAIRS]
        pairs = (len(part) + 1) // 2
        if len(keys):
            encrypt(words, keys, counter + start // 4)
        own = words[:pairs] if len(keys) else given[start // 2 : start // 2 + pairs]
        draw_pairs(own.view(np.uint32), radii[:pairs], drawn[: 2 * pairs], function, state)
        for i in range(len(part)):
            part[i] = (part[i] + sigma * drawn[i]) * scale


def gaussian_noise(
    out: int | tuple[int, ...] | NDArray[Any],
    sigma: float = 1.0,
    rng: RngLike = None,
    *,
    secure: bool = True,
    add: bool = False,
    subtract: bool = False,
    scale: float = 1.0,
    team: Team | None = None,
) -> NDArray[Any]:
    """Float Gaussian noise of standard deviation ``sigma``: a new double array of a shape, or a buffer filled in place.

    A buffer is a C-contiguous float32 or float64 array (``tensor.numpy()`` shares a CPU tensor's memory). With ``add``
    the noise is added to what a buffer holds, with ``subtract`` taken away from it. What comes out is multiplied by
    ``scale``. ``team`` lends its threads, for callers whose own would otherwise stand in the way. Read the module's
    threat model before publishing what this noise protects.

    >>> buffer = np.empty(4, np.float32)
    >>> gaussian_noise(buffer, sigma=2.0, rng=1) is buffer
    True
    """
    sigma, scale = nonnegative("sigma", sigma), positive("scale", scale)
    buffer = out if isinstance(out, np.ndarray) else np.empty(out)
    kind = buffer.dtype.char
    if kind not in "fd" or not buffer.flags.c_contiguous or not buffer.flags.writeable or not buffer.dtype.isnative:
        raise ValueError("out is not a writeable C-contiguous float32 or float64 array, but must be one, or a shape.")
    if not (add or subtract):
        buffer[...] = 0.0

    def fill(part: NDArray[Any], source: Rng) -> None:
        with source.lock:
            words: Any = _words(source, part.size if kind == "d" else -(-part.size // 2), secure)
            if kind == "d":
                _fill_double(part, -sigma if subtract else sigma, scale, *words, *_layers())  # type: ignore[call-arg]
            else:
                _fill_single(part, -sigma if subtract else sigma, scale, *words)

    in_lanes(fill, buffer.reshape(-1), as_rng(rng), small=_SMALL, team=team)
    return buffer


def _words(source: Rng, count: int, secure: bool) -> tuple[Any, ...]:
    """Where so many words, and further ones, come from, as the loops take it."""
    if not secure:
        given, address = np.empty(count, np.uint64), source.quick()
        draw_words(given, *address)
        return *address, NONE, 0, given
    if count < _MANY:
        return *source.address, NONE, 0, source.words(count)
    return *source.address, *reserve(source.bits, count)
