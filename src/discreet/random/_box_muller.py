r"""Gaussian numbers of single precision, by Box and Muller's transform in loops that the compiler makes vectors of.

Of 32 bits each, :math:`u \in (0, 1)` and an angle: :math:`\sqrt{-2 \ln u}\,(\cos\varphi, \sin\varphi)` are two
independent Gaussians. Logarithm and angle functions are polynomials, exact to a few units in the last place.

Where u is below :math:`2^{-12}` its 32 bits are too coarse, and end the tail at 6.7: there a further word refines it to
96 bits, in double precision. So numbers are as fine as single precision everywhere, and the tail goes to 11.5, which
1 in 10³⁰ would exceed.

Reference: Box and Muller (1958), "A note on the generation of random normal deviates".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic

from discreet.random._words import next_word

__all__ = ["PAIRS", "draw_pairs", "float_of_bits"]

PAIRS = 1 << 12
_COARSE = np.uint32(1 << 20)  # of 2³²: below, u is refined


def _polynomial(function: Callable[[Any], Any], low: float, high: float, degree: int) -> tuple[np.float32, ...]:
    """Coefficients, from the constant on, of the polynomial that meets ``function`` in Chebyshev's points."""
    points = np.polynomial.chebyshev.chebpts1(degree + 1) * (high - low) / 2 + (high + low) / 2
    fitted = np.polynomial.Polynomial.fit(points, function(points), degree, domain=[low, high])
    return tuple(np.float32(c) for c in fitted.convert().coef)


_LOG = _polynomial(lambda f: np.log1p(f) / f, -0.5, -1e-9, 11)
_SIN = _polynomial(lambda q: np.sinc(np.sqrt(q) / np.pi), 1e-9, (math.pi / 4) ** 2, 4)
_COS = _polynomial(lambda q: np.cos(np.sqrt(q)), 1e-9, (math.pi / 4) ** 2, 5)
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7, _L8, _L9, _L10, _L11 = _LOG
_S0, _S1, _S2, _S3, _S4 = _SIN
_C0, _C1, _C2, _C3, _C4, _C5 = _COS
_LN2, _HALF, _ONE, _TWO = np.float32(math.log(2)), np.float32(0.5), np.float32(1), np.float32(2)
_UNIT, _ANGLE = np.float32(2.0**-32), np.float32(math.pi / 2 * 2.0**-32)


def _bits_type(typingctx: Any, x: Any) -> Any:
    """The bits of a single-precision number."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), codegen


def _float_type(typingctx: Any, bits: Any) -> Any:
    """The single-precision number with these bits."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), codegen


_bits: Any = intrinsic(_bits_type)
float_of_bits: Any = intrinsic(_float_type)


@njit(cache=True, inline="always", error_model="numpy")
def _radius(word: Any) -> Any:
    """sqrt(-2 ln u) for u = (word + ½)/2³².

    In the upper half 1 - u is what the bits say exactly; in the lower, u is a power of two times m in [½, 1).
    """
    signed = np.int32(word)
    x = np.float32(signed) + _HALF
    bits = _bits(x)
    below = float_of_bits(np.int32(np.int32(bits & np.int32(0x7FFFFF)) | np.int32(0x3F000000))) - _ONE  # m - 1
    halvings = np.float32(np.int32(np.int32(158) - np.int32(np.int32(bits >> np.int32(23)) & np.int32(0xFF))))
    f = x * _UNIT if signed < np.int32(0) else below
    k = halvings if signed >= np.int32(0) else np.float32(0)
    p = _L6 + f * (_L7 + f * (_L8 + f * (_L9 + f * (_L10 + f * _L11))))
    p = _L0 + f * (_L1 + f * (_L2 + f * (_L3 + f * (_L4 + f * (_L5 + f * p)))))
    return np.sqrt(_TWO * (k * _LN2 - f * p))


@njit(cache=True, inline="always", error_model="numpy")
def _fine_radius(word: Any, more: Any) -> Any:
    """The same, for u of 96 bits; never zero."""
    u = (float(word) + (float(more >> np.uint64(11)) + 0.5) * 2.0**-53) * 2.0**-32
    return np.float32(math.sqrt(-2.0 * math.log(u)))


@njit(cache=True, inline="always", error_model="numpy")
def _point(word: Any) -> Any:
    """The point of the unit circle whose angle a word says: 30 bits within a quarter, two which quarter."""
    angle = (np.float32(np.int32(np.uint32(word << np.uint32(2)))) + _TWO) * _ANGLE  # in ±π/4
    q = angle * angle
    s = angle * (_S0 + q * (_S1 + q * (_S2 + q * (_S3 + q * _S4))))
    c = _C0 + q * (_C1 + q * (_C2 + q * (_C3 + q * (_C4 + q * _C5))))
    c = -c if np.uint32(word & np.uint32(1 << 31)) != np.uint32(0) else c
    across = np.uint32(word & np.uint32(1 << 30)) != np.uint32(0)
    return (s if across else c), (c if across else s)


@njit(cache=True, nogil=True, error_model="numpy")
def draw_pairs(halves: Any, radii: Any, out: Any, function: int, state: int) -> None:
    """Two Gaussians for each of ``radii``, in ``out``, of two halves of words each; further words refine."""
    pairs = len(radii)
    ours, angles, first, second = halves[:pairs], halves[pairs:], out[:pairs], out[pairs:]
    least = _COARSE
    for i in range(pairs):
        radii[i] = _radius(ours[i])
    for i in range(pairs):
        least = min(least, ours[i])
    if least < _COARSE:
        for i in range(pairs):
            if ours[i] < _COARSE:
                radii[i] = _fine_radius(ours[i], next_word(function, state))
    for i in range(pairs):
        x, y = _point(angles[i])
        first[i] = radii[i] * x
        second[i] = radii[i] * y
