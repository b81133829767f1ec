r"""Fast float Gaussian noise, for training: large tensors, many steps, no grid.

Threat model, by generator:

``secure=True`` (the default)
    AES in counter mode keyed by the operating system. Someone who sees any number of noisy gradients cannot predict
    other noise from them. The sample itself is a float: its law differs from the Gaussian by float rounding, and a
    float's low bits can betray which value it was added to (Mironov 2012). The account of a training run therefore
    holds for the ideal Gaussian, up to that rounding. Publish models, not raw noisy sums; release single statistics
    through ``mechanisms.Gaussian``, whose law is exact.
``secure=False``
    NumPy's SFC64, keyed by the same entropy. As good statistically, faster, and with the same float caveat, but its
    state can be reconstructed from enough raw output. Only for noise nobody outside sees term by term.

Method: the ziggurat of Marsaglia and Tsang (2000) with 256 layers, one 64-bit word a double and half of one a single.
Large buffers are filled from independent streams by several threads; a seeded result does not depend on how many.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from discreet.errors import nonnegative, positive
from discreet.random._lanes import Team, in_lanes
from discreet.random._words import next_word
from discreet.random.source import Rng, RngLike, as_rng

__all__ = ["gaussian_noise"]

_LAYERS = 256
_EDGE = 3.6541528853610088  # where the tail layer begins
_AREA = 0.00492867323399  # the area of every layer
_CHUNK = 1 << 10  # numbers that are made at a time: what is in between stays in the nearest cache
_SMALL = 1 << 16  # a fifth of a millisecond: not worth a second thread


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
def _fill_double(
    out: Any, sigma: float, add: bool, scale: float, function: int, state: int, edges: Any, heights: Any
) -> None:
    i = 0
    while i < len(out):
        word = next_word(function, state)
        layer = np.int64(word & np.uint64(255))
        x = float(word >> np.uint64(11)) * 2.0**-53 * edges[layer]
        if x >= edges[layer + 1]:
            x = _outside(layer, x, edges, heights, function, state)
            if x < 0.0:
                continue
        noise = -sigma * x if word & np.uint64(256) else sigma * x
        out[i] = ((out[i] if add else 0.0) + noise) * scale
        i += 1


@njit(cache=True, nogil=True)
def _single(half: Any, edges: Any, heights: Any, function: int, state: int) -> Any:
    """The number that half a word decides, with further words where it is outside its layer's core."""
    while True:
        layer = np.int64(half & np.uint32(255))
        x = (float(half >> np.uint32(9)) + 0.5) * 2.0**-23 * edges[layer]
        if x >= edges[layer + 1]:
            x = _outside(layer, x, edges, heights, function, state)
        if x >= 0.0:
            return -x if half & np.uint32(256) else x
        half = np.uint32(next_word(function, state) >> np.uint64(32))


@njit(cache=True, nogil=True)
def _fill_single(
    out: Any, sigma: float, add: bool, scale: float, function: int, state: int, edges: Any, heights: Any
) -> None:
    """In chunks, each by loops without a branch: 98 of 100 numbers are in their layer's core, and the others follow."""
    words, drawn, inside = np.empty(_CHUNK // 2, np.uint64), np.empty(_CHUNK), np.empty(_CHUNK, np.bool_)
    halves = words.view(np.uint32)
    for start in range(0, len(out), _CHUNK):
        part = out[start : start + _CHUNK]
        for i in range((len(part) + 1) // 2):
            words[i] = next_word(function, state)
        for i in range(len(part)):
            half = halves[i]
            layer = half & np.uint32(255)
            x = (float(half >> np.uint32(9)) + 0.5) * 2.0**-23 * edges[layer]
            inside[i] = x < edges[layer + np.uint32(1)]
            drawn[i] = -x if half & np.uint32(256) else x
        for i in range(len(part)):
            if not inside[i]:
                drawn[i] = _single(halves[i], edges, heights, function, state)
        if add:
            for i in range(len(part)):
                part[i] = (part[i] + sigma * drawn[i]) * scale
        else:
            for i in range(len(part)):
                part[i] = sigma * drawn[i] * scale


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
    kernel = {"f": _fill_single, "d": _fill_double}.get(buffer.dtype.char)
    if kernel is None or not buffer.flags.c_contiguous or not buffer.flags.writeable or not buffer.dtype.isnative:
        raise ValueError("out is not a writeable C-contiguous float32 or float64 array, but must be one, or a shape.")

    def fill(part: NDArray[Any], source: Rng) -> None:
        address = source.address if secure else source.quick()
        with source.lock:
            kernel(part, -sigma if subtract else sigma, add or subtract, scale, *address, *_layers())

    in_lanes(fill, buffer.reshape(-1), as_rng(rng), small=_SMALL, team=team)
    return buffer
