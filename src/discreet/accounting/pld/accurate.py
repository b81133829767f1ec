r"""Functions of complex arguments with errors relative to the value itself, however small that is.

A log-moment-generating function K(z) = log E[exp(zL)] is multiplied by as many as 1e15 repetitions. For small losses K
is of the size of their squares, so an error of one unit in the last place *of one* is a hundred times the quantity:
nothing here subtracts numbers that nearly agree, and a series is cut where the rest is below the claimed error.

Every function returns a value and a bound on its absolute error. Arguments may be wrong by a few units in their last
place, which the bounds include.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from discreet.accounting.arrays import Array

__all__ = ["Bounded", "difference_of_sinhc", "exp_less_line", "expm1", "join", "log1p"]

Bounded: TypeAlias = tuple[Array, Array]

UNIT = 2.0**-53
_FEW = 16 * UNIT  # more than a handful of operations can lose, relative to the size of their terms
_SINHC_TERMS = 10  # for |u|, |v| ≤ 1 the rest is below 11·6/23! = 3e-21 of the sum
_EXP_TERMS = 19  # for |w| ≤ 1 the rest is below 4/20! = 2e-18 of the sum


def log1p(w: Array, error: Array | float = 0.0) -> Bounded:
    """log(1 + w), where w is known up to ``error``. (numpy's takes the logarithm of the rounded |1 + w|.)"""
    a, b, size = w.real, w.imag, np.abs(1 + w)
    small = np.abs(w) < 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.log1p(np.where(small, 2 * a + a * a + b * b, 0.0)) / 2  # |1 + w|² - 1
        value = np.where(small, near, np.log(size)) + 1j * np.arctan2(b, 1 + a)
        lost = np.where(error < size, -np.log1p(-np.minimum(error / size, 1.0)), np.inf)
    return value, lost + 2 * _FEW * (np.minimum(np.abs(w), 1.0) + np.abs(value))


def expm1(w: Array) -> Bounded:
    """exp(w) - 1 for Re w ≤ 700."""
    rise, half, grown = np.expm1(w.real), np.sin(w.imag / 2), np.exp(w.real)
    value = rise * np.cos(w.imag) - 2 * half * half + 1j * grown * np.sin(w.imag)
    return value, _FEW * (np.abs(rise) + 2 * half * half + (np.abs(w.imag) + np.abs(w)) * grown)


def exp_less_line(w: Array) -> Bounded:
    """exp(w) - 1 - w for Re w ≤ 700."""
    small = np.abs(w) <= 1
    x = np.where(small, w, 0.0)
    tail = np.ones_like(x)
    for k in range(_EXP_TERMS, 2, -1):
        tail = 1 + tail * x / k
    less, error = expm1(np.where(small, 0.0, w))
    value = np.where(small, x * x * tail / 2, less - w)
    return value, np.where(small, 4 * _FEW * np.abs(x) ** 2, error + _FEW * np.abs(w))


def difference_of_sinhc(z: Array, epsilon: float) -> Bounded:
    r"""sinhc((z + ½)ε) - sinhc(ε/2), with sinhc(x) = sinh(x)/x, where both arguments are at most one.

    With u and v the squares of the arguments it is :math:`(u-v)\sum_k \frac{1}{(2k+1)!}\sum_{i+j=k-1} u^i v^j`, and
    :math:`u - v = \epsilon^2 z(z+1)`: the sum is at least 0.14 in size, and nothing cancels.
    """
    u, v = ((z + 0.5) * epsilon) ** 2, epsilon * epsilon / 4
    total, powers, v_power = np.zeros_like(u), np.zeros_like(u), 1.0
    for k in range(1, _SINHC_TERMS + 1):
        powers = u * powers + v_power  # the sum of u^i v^j, i + j = k - 1
        total = total + powers / math.factorial(2 * k + 1)
        v_power *= v
    value = (epsilon * z) * (epsilon * (z + 1)) * total
    return value, 4 * _FEW * np.abs(value)


def join(near: Array, z: Array, small: Callable[[Array], Bounded], large: Callable[[Array], Bounded]) -> Bounded:
    """One function where ``near`` holds and another elsewhere, each asked only where it is good."""
    value, error = np.empty(z.shape, dtype=complex), np.empty(z.shape)
    for chosen, function in ((near, small), (~near, large)):
        if chosen.any():
            value[chosen], error[chosen] = function(z[chosen])
    return value, error
