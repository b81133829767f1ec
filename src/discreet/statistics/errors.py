r"""The law of a mean's error, from the law of its noise.

With t the mean's place between the bounds and (a, b) the noise on the pair of sums (n·t, n·(1 - t)), the estimate
exceeds s = t + r exactly if (1 - s)·a - s·b > n·r, a linear event: its probability is known in closed form for
Laplace and for Gaussian noise, with no expansion in 1/n (Fieller 1954 for the Gaussian). The only case left out is
both noisy sums being negative, of probability at most e^{-nε}/2 each way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from scipy.optimize import brentq

from discreet.mechanisms import DiscreteGaussian, Gaussian
from discreet.mechanisms.budget import AdditiveMechanism

__all__ = ["Tail", "pair_tail", "quantile", "root_mean_square", "single_tail"]

Tail = Callable[[float], float]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)


def pair_tail(mechanism: AdditiveMechanism, n: float, t: float) -> Tail:
    """The probability that the mean of a noisy pair is further than r from t."""

    def over(r: float, t: float) -> float:
        s = t + r
        return 0.0 if s >= 1 else _exceeds(mechanism, 1 - s, s, n * r)

    return lambda r: over(r, t) + over(r, 1 - t)  # below t is above 1 - t with the pair swapped


def single_tail(mechanism: AdditiveMechanism, t: float) -> Tail:
    """The probability that t plus noise, cut to [0, 1], is further than r from t."""
    return lambda r: sum(_exceeds(mechanism, 1.0, 0.0, r) for room in (1 - t, t) if r < room)


def _exceeds(mechanism: AdditiveMechanism, u: float, v: float, x: float) -> float:
    """Pr[u·a - v·b > x] for x ≥ 0 and independent noises a, b."""
    if isinstance(mechanism, (Gaussian, DiscreteGaussian)):
        assert mechanism.sigma is not None
        return NormalDist().cdf(-x / (mechanism.sigma * math.hypot(u, v)))
    assert mechanism.scale is not None
    wide, narrow = mechanism.scale * max(u, v), mechanism.scale * min(u, v)
    if narrow < 1e-9 * wide:
        return math.exp(-x / wide) / 2
    if wide - narrow < 1e-6 * wide:
        return math.exp(-x / wide) * (2 + x / wide) / 4
    return (wide**2 * math.exp(-x / wide) - narrow**2 * math.exp(-x / narrow)) / (2 * (wide**2 - narrow**2))


def quantile(tail: Tail, probability: float) -> float:
    """The distance that is exceeded with this probability, at most 1."""
    if tail(1 - 1e-12) >= probability:
        return 1.0
    return 0.0 if tail(0.0) <= probability else float(brentq(lambda r: tail(r) - probability, 0.0, 1.0, xtol=1e-15))


def root_mean_square(tail: Tail, typical: float) -> float:
    """√(∫ 2r·tail(r) dr) over [0, 1], by Gauss-Legendre on panels that double, from a hundredth of ``typical``."""
    edges, step = [0.0], min(typical / 100, 0.01)
    while edges[-1] < 1:
        edges.append(min(1.0, edges[-1] + step))
        step = min(2 * step, max(typical / 2, 1e-3))
        if edges[-1] > 80 * typical:
            edges.append(1.0)
    total = 0.0
    for low, high in pairwise(edges):
        half, middle = (high - low) / 2, (high + low) / 2
        total += half * sum(w * 2 * r * tail(r) for r, w in zip(middle + half * _NODES, _WEIGHTS, strict=True))
    return math.sqrt(total)
