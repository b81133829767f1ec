r"""The chance that a binomial count is large, from above, for as many trials as there are.

A term is at most :math:`b(j) \le e^{-np\,\varphi(u) - nq\,\varphi(v)}\sqrt{n/2\pi j(n-j)}\;e^{s}`, where
:math:`\varphi(x) = (1+x)\log(1+x) - x`, u and v are how far j and n - j are from np and nq, relative to those, and s is
what Stirling's series may differ by: nothing large is left to cancel. From j on the terms fall by at least
:math:`f_j = 1 - b(j+1)/b(j)`, so each of some hundred blocks of m terms is at most
:math:`b(j)\,(1-(1-f_j)^m)/f_j`.

References: Robbins (1955) for Stirling's series; Loader (2000) for the form of a term.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from discreet.accounting.arrays import Array
from discreet.accounting.outward import FLOOR

__all__ = ["binomial_tail"]

_BLOCKS = 512  # a standard deviation: the square of that, some 4e-6, is the most that a block can be too large by
_FAR = 12  # standard deviations beyond the first term, where what is left is one block
_SERIES = 16  # terms of the logarithm for |x| ≤ 0.1: the rest is below 1e-17 of the sum
_SMALL = np.array([0.0] + [math.log(math.factorial(n)) - (n * math.log(n) - n + math.log(2 * math.pi * n) / 2)
                           for n in range(1, 17)])  # fmt: skip
_UP = 1 + 1e-9  # exponents are at most some 700 in size, and right to 13 digits


def binomial_tail(least: int, trials: int, rate: float) -> float:
    """Pr[X ≥ least], rounded up, for X of so many trials; one, where that is not above the mean.

    >>> binomial_tail(3, 4, 0.25) >= 13 / 256, round(binomial_tail(3, 4, 0.25), 4)
    (True, 0.0508)
    """
    p = Fraction(rate)
    mean, rest = trials * p, trials * (1 - p)
    if least <= mean:
        return 1.0
    if least > trials:
        return 0.0
    deviation = math.sqrt(float(mean * (1 - p)))
    width = max(1, int(deviation / _BLOCKS))
    away = width * np.arange(_BLOCKS * (_FAR + 1) + 1.0)
    away = np.unique(np.minimum(away, float(trials - least)))  # a short tail ends at the last count there is
    above = float(least - mean) + away
    j, left = least + away, trials - least - away
    log = -_deviance(above, float(mean)) - _deviance(-above, float(rest)) + _stirling(j, left, trials)
    falls = (above + float(1 - p)) / ((j + 1) * float(1 - p))
    sizes = np.append(np.diff(away), math.inf)
    with np.errstate(divide="ignore"):
        shares = -np.expm1(sizes * np.log1p(-np.minimum(falls, 1.0)))
    return min(1.0, float(np.exp(log) @ (shares / falls)) * _UP + FLOOR)


def _deviance(above: Array, mean: float) -> Array:
    """mean·φ(above/mean)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        x = above / mean
        far = np.where(x > -1, (mean + above) * np.log1p(np.maximum(x, -1.0)), 0.0) - above
    near, small = np.zeros_like(x), np.clip(x, -0.1, 0.1)
    for k in range(_SERIES + 1, 1, -1):
        near = 1 / (k * (k - 1)) - small * near
    return np.where(np.abs(x) <= 0.1, mean * small**2 * near, far)


def _remainder(counts: Array) -> Array:
    """log n! less Stirling's n·log n - n + log(2πn)/2: between this and 1/1260n⁵ more from 16 on, exact below."""
    large = np.maximum(counts, 16.0)
    return np.where(counts < 16, _SMALL[np.minimum(counts, 16).astype(int)], 1 / (12 * large) - 1 / (360 * large**3))


def _stirling(j: Array, left: Array, trials: int) -> Array:
    """log √(n/2πj(n-j)) and what Stirling's series may differ by; at j = n there is one term and no difference."""
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.log(trials / (2 * math.pi * j * left)) / 2
    own = _remainder(np.array([float(trials)]))[0] + (1 / (1260 * float(trials) ** 5) if trials >= 16 else 0.0)
    return np.where(left > 0, root + own - _remainder(j) - _remainder(left), 0.0)
