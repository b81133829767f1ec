"""Epsilon from closed forms, in 60-digit arithmetic: an oracle that shares no code with the library.

Each function gives delta(epsilon) of one family of events exactly; ``epsilon`` inverts it by bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mpmath import mp, mpf

from discreet import events as ev

mp.dps = 60

Delta = Callable[[mpf], mpf]


def epsilon(event: ev.Event, delta: float, adjacency: str = "add-remove") -> float | None:
    """The exact epsilon at delta, or None where no closed form is known to us."""
    curve = delta_of(event, adjacency)
    return None if curve is None else invert(curve, mpf(delta))


def invert(curve: Delta, delta: mpf) -> float:
    """The smallest epsilon of at least 0 with ``curve(epsilon) <= delta``."""
    if curve(mpf(0)) <= delta:
        return 0.0
    low, high = mpf(0), mpf(1)
    while curve(high) > delta:
        low, high = high, 2 * high
        if high > 1e6:  # delta below the probability of a catastrophe: no epsilon is enough
            return math.inf
    while high - low > mpf(10) ** -25 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if curve(middle) > delta else (low, middle)
    return float(high)


def delta_of(event: ev.Event, adjacency: str) -> Delta | None:
    """delta(epsilon) of an event, where a closed form is known."""
    leaves = ev.leaves(event)
    if all(isinstance(leaf, ev.Gaussian) for leaf in leaves):
        moved = 2 if adjacency == "replace" else 1  # a replaced record moves a clipped sum twice as far
        precision = sum(count / mpf(leaf.noise_multiplier) ** 2 for leaf, count in leaves.items())
        return gaussian(moved * mp.sqrt(precision))
    if len(leaves) != 1:
        return None
    ((leaf, count),) = leaves.items()
    match leaf:
        case ev.PureDP(epsilon=e):
            return lattice(mpf(e), {1: mp.exp(e), -1: mpf(1)}, count, mpf(0))
        case ev.ApproxDP(epsilon=e, delta=d):
            return lattice(mpf(e), {1: mp.exp(e), -1: mpf(1)}, count, mpf(d))
        case ev.RandomizedResponse(epsilon=e, categories=k) if adjacency == "replace":
            return lattice(mpf(e), {1: mp.exp(e), 0: mpf(k - 2), -1: mpf(1)}, count, mpf(0))
    return single(leaf) if count == 1 else None


def single(leaf: ev.Event) -> Delta | None:
    """delta(epsilon) of one run of a leaf."""
    match leaf:
        case ev.Laplace(noise_multiplier=b):
            return laplace(1 / mpf(b))
        case ev.DiscreteLaplace(scale=b, sensitivity=s):
            return discrete(lambda x: mp.exp(-abs(x) / mpf(b)), s, reach=int(150 * b) + 2 * s)
        case ev.DiscreteGaussian(sigma=b, sensitivity=s):
            return discrete(lambda x: mp.exp(-(mpf(x) ** 2) / (2 * mpf(b) ** 2)), s, reach=int(20 * b) + 2 * s)
        case ev.PoissonSampled(rate=q, event=ev.Gaussian(noise_multiplier=b)):
            return sampled(mpf(q), gaussian(1 / mpf(b)))
        case ev.PoissonSampled(rate=q, event=ev.Laplace(noise_multiplier=b)):
            return sampled(mpf(q), laplace(1 / mpf(b)))
    return None


def gaussian(mu: mpf) -> Delta:
    """Hockey-stick divergence of N(mu, 1) from N(0, 1), at any real epsilon (Balle and Wang 2018, Theorem 5)."""
    return lambda e: mp.ncdf(-e / mu + mu / 2) - mp.exp(e) * mp.ncdf(-e / mu - mu / 2)


def laplace(top: mpf) -> Delta:
    """Hockey-stick divergence of Laplace distributions a distance ``top`` scales apart, at any real epsilon."""

    def curve(e: mpf) -> mpf:
        if e >= top:
            return mpf(0)
        return 1 - mp.exp(e) if e <= -top else 1 - mp.exp((e - top) / 2)

    return curve


def sampled(q: mpf, inner: Delta) -> Delta:
    """Poisson sampling of a pair with a symmetric divergence: the worse of removing and adding a record."""

    def curve(e: mpf) -> mpf:
        remove = q * inner(mp.log1p(mp.expm1(e) / q))
        rest = 1 - mp.exp(e) * (1 - q)
        add = rest * inner(mp.log(mp.exp(e) * q / rest)) if rest > 0 else mpf(0)
        return max(remove, add)

    return curve


def discrete(mass: Callable[[int], mpf], shift: int, *, reach: int) -> Delta:
    """Integer noise against itself moved by ``shift``; the mass beyond ``reach`` is far below the working precision."""
    support = range(-reach, reach + 1)
    weights = {x: mass(x) for x in range(-reach - shift, reach + shift + 1)}
    total = sum(weights[x] for x in support)
    return lambda e: sum(max(mpf(0), weights[x] - mp.exp(e) * weights[x - shift]) for x in support) / total


def lattice(step: mpf, odds: dict[int, mpf], count: int, catastrophe: mpf) -> Delta:
    """``count`` runs of a mechanism whose loss is ``step`` times a small integer, with probability in these odds.

    Each run fails altogether with probability ``catastrophe`` (Kairouz, Oh and Viswanath 2015, Theorem 3.3).
    """
    norm = sum(odds.values())
    law = {0: mpf(1)}
    for _ in range(count):
        after: dict[int, mpf] = {}
        for at, p in law.items():
            for jump, weight in odds.items():
                after[at + jump] = after.get(at + jump, mpf(0)) + p * weight / norm
        law = after
    survive = (1 - catastrophe) ** count
    return lambda e: 1 - survive * (1 - sum(p * max(mpf(0), 1 - mp.exp(e - step * at)) for at, p in law.items()))
