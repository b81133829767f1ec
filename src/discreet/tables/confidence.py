r"""Intervals that hold the answer without noise in at least 95 of 100 groups, from what was released.

They are about the noise alone: what clipping, caps and dropped rows take away is a bias, which ``explain`` states.
``cells`` says how many groups' noise was added up in each line of totals: the quantile of a sum of c symmetric
log-concave noises, over its deviation, falls with c towards the normal one, so it is at most √c times that of one.

*Means.* With A and B noisy parts of a row's whole, S = A + B, the true place p of the mean satisfies
(1 - p)(A - N₁) = p(B - N₂), that is A - pS = (1 - p)N₁ - pN₂. So p lies in {p : |A - pS| ≤ c(p)} with at least the
chance that c(p), the 95 % quantile of the right side, is meant for: whatever the size of the group (Fieller 1954).

*Samples.* A variance of a sample is n/(n - 1) times that of the population, and n is as uncertain as the rest: one
interval holds the population's with 96 %, another n with 99 %, and both do with 95 %. In groups of few rows, where n
may be 2, this is wide, and holds more than is promised.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from discreet.mechanisms.discrete_gaussian import DiscreteGaussian
from discreet.mechanisms.discrete_laplace import DiscreteLaplace
from discreet.mechanisms.gaussian import Gaussian
from discreet.mechanisms.laplace import Laplace

__all__ = ["LEVEL", "POPULATION", "around", "half_of_moment", "place_of_mean", "reach", "sample_interval"]

LEVEL = 0.95
POPULATION = 0.96  # the level of a moment of the population, where that of a sample needs n too
Doubles = NDArray[np.float64]
_STEPS = 513


def reach(mechanism: Any, cells: Doubles, level: float = LEVEL) -> Doubles:
    """What the sum of the noise of so many groups stays within."""
    one = mechanism.error(level)
    if isinstance(mechanism, (DiscreteLaplace, DiscreteGaussian)):  # which may be zero nearly always, but not in a sum
        several = np.ceil(np.sqrt(cells) * max(one, mechanism.error(LEVEL), 2.2 * mechanism.deviation))
        return np.asarray(np.where(cells > 1, several, one), np.float64)
    return np.asarray(np.sqrt(cells) * one, np.float64)


def around(value: Doubles, half: Doubles) -> Doubles:
    """Low and high ends."""
    return np.stack([value - half, value + half], axis=1)


def half_of_moment(
    noisy: Doubles, weights: Doubles, mechanism: Any, cells: Doubles, most: float, factor: float, level: float = LEVEL
) -> Doubles:
    """Half the interval of a variance or covariance of places in [0, 1], of noisy parts that add up to n wholes.

    Noise acts through ``weights`` over n, whose absolute values add up to at most ``factor``. In groups whose size is
    ten times what noise does to it, to first order, at the weights that were found: of noises of one deviation the sum
    with weights w has that times |w|, and no quantile of it, over that, exceeds a single one's. In smaller groups, at
    the worst weights and the smallest n, which take their parts of what ``level`` leaves; ``most`` at most.
    """
    whole, one = noisy.sum(axis=1), reach(mechanism, cells, level)
    large = whole > 10 * np.sqrt(noisy.shape[1]) * one
    sizes = np.where(whole > 0, whole, 1.0)
    near = one * np.linalg.norm(weights, axis=1) * (1 + np.sqrt(noisy.shape[1]) * one / sizes)
    least = whole - np.sqrt(noisy.shape[1]) * reach(mechanism, cells, 1 - 0.4 * (1 - level))
    far = np.where(
        least > 0, factor * reach(mechanism, cells, 1 - 0.6 * (1 - level)) / np.where(least > 0, least, 1.0), most
    )
    return np.asarray(np.minimum(np.where(large, near / sizes, far), most))


def sample_interval(ends: Doubles, noisy: Doubles, whole: float, mechanism: Any, cells: Doubles) -> Doubles:
    """The interval of a sample's moment, n/(n - 1) times that of the population, which lies between ``ends`` with
    ``POPULATION``; of noisy parts that add up to n wholes.
    """
    far = np.sqrt(noisy.shape[1]) * reach(mechanism, cells, 1 + LEVEL - POPULATION)
    size = noisy.sum(axis=1)
    least, most = (np.maximum(end, 2.0) for end in (np.ceil((size - far) / whole), np.floor((size + far) / whole)))
    larger, smaller = (n / (n - 1) for n in (least, most))
    low, high = ends[:, 0], ends[:, 1]
    return np.stack([low * np.where(low < 0, larger, smaller), high * np.where(high > 0, larger, smaller)], axis=1)


def place_of_mean(noisy: Doubles, mechanism: Any, cells: Doubles, place: Doubles) -> Doubles:
    """The interval of a mean's place between its bounds, in [0, 1], from noisy pairs (A, B)."""
    grid = np.linspace(0.0, 1.0, _STEPS)
    widths = _weighted_quantile(mechanism, grid)
    out = np.empty((len(noisy), 2))
    for line, (first, second) in enumerate(noisy):
        whole, scale = first + second, float(np.sqrt(cells[line]))
        if whole > 4 * scale * widths.max():
            ends = [_edge(first, whole, scale * sign, grid, widths) for sign in (-1.0, 1.0)]
        else:
            ends = _hull(np.abs(first - grid * whole) <= scale * widths, grid)
        out[line] = min(ends[0], place[line]), max(ends[1], place[line])
    return out


def _edge(first: float, whole: float, scale: float, grid: Doubles, widths: Doubles) -> float:
    """Where pS - A reaches c(p), from the middle outwards: a contraction, as c rises by less than S."""
    p = first / whole
    for _ in range(30):
        p = float(np.clip((first + scale * np.interp(np.clip(p, 0, 1), grid, widths)) / whole, 0.0, 1.0))
    return p


def _hull(held: NDArray[np.bool_], grid: Doubles) -> list[float]:
    found = np.flatnonzero(held)
    if not len(found):
        return [0.0, 1.0]
    return [float(grid[max(found[0] - 1, 0)]), float(grid[min(found[-1] + 1, len(grid) - 1)])]


def _weighted_quantile(mechanism: Any, p: Doubles) -> Doubles:
    """The quantile of (1 - p)N₁ - pN₂, in magnitude."""
    if isinstance(mechanism, Gaussian):
        return np.asarray(float(mechanism.sigma or 0.0) * -ndtri((1 - LEVEL) / 2) * np.hypot(p, 1 - p))
    if not isinstance(mechanism, Laplace):
        return np.full_like(p, mechanism.error(LEVEL))  # a convex combination is no wider than one (Proschan 1965)
    a, b = np.maximum(p, 1 - p), np.minimum(p, 1 - p)
    low, high = np.zeros_like(p), np.full_like(p, 4.0)
    for _ in range(60):  # P(|X| > t) = (a² e^(-t/a) - b² e^(-t/b)) / (a² - b²), which falls in t
        t = (low + high) / 2
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            apart = (a**2 * np.exp(-t / a) - b**2 * np.where(b > 0, np.exp(-t / b), 0.0)) / (a**2 - b**2)
        tail = np.where(a - b > 1e-6, apart, (1 + t / (2 * a)) * np.exp(-t / a))
        low, high = np.where(tail > 1 - LEVEL, t, low), np.where(tail > 1 - LEVEL, high, t)
    return np.asarray(high * float(mechanism.scale or 0.0) * (1 + 1e-9))
