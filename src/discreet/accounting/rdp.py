r"""Rényi DP (the moments accountant): a curve a leaf, curves add up, the best order converts.

The divergence of order :math:`\alpha = 1 + c` is :math:`K(c)/c` for the log-moment-generating function K of the privacy
loss. Sampled Gaussians have theirs in :mod:`discreet.accounting.sampled_gaussian_rdp`. Losses without a closed form use
their upper lattice, whose moments dominate. Both directions, the worse at each order.

References: Mironov (2017); Wang, Balle and Kasiviswanathan (2019) for fixed-size sampling, which the exact replace
profile of :class:`discreet.accounting.pld.sampling.Symmetric` sharpens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet import events as ev
from discreet.accounting.arrays import Array
from discreet.accounting.conversion import rdp_to_delta, rdp_to_epsilon
from discreet.accounting.facts import facts_of, own_delta, pair_of, pure_of, refusal_of, stated_curve
from discreet.accounting.neighbours import resolve
from discreet.accounting.outward import product, times
from discreet.accounting.parts import Leaf, Resolved, fold
from discreet.accounting.pld.convolution import log_sum
from discreet.accounting.pld.grid import LossGrid
from discreet.accounting.pld.lattice import upper
from discreet.accounting.pld.pairs import Pair, reverse
from discreet.accounting.pld.transforms import Transform
from discreet.accounting.sampled_gaussian_rdp import sampled_gaussian_curve
from discreet.accounting.sums import hopeless
from discreet.adjacency import Adjacency
from discreet.errors import UnsupportedEvent

__all__ = ["ORDERS", "Renyi", "leaf_curve", "rdp_curve"]


ORDERS = np.unique(
    np.concatenate(
        [
            1 + np.geomspace(0.005, 1, 24),
            np.arange(2.0, 12.0, 0.25),
            np.geomspace(12, 64, 40),
            np.geomspace(64, 4096, 40),
            np.geomspace(4096, 1e6, 20),
        ]
    )
)

_MOST_POINTS = 1 << 16  # of a lattice, at each of the orders; a step of h adds about αh²/8 to a divergence


def rdp_curve(event: ev.Event, orders: ArrayLike, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> Array:
    """Certified upper bounds on the Rényi divergences of an event at the given orders.

    >>> rdp_curve(ev.Gaussian(noise_multiplier=1.0), [2.0, 3.0]).tolist()
    [1.0, 1.5]
    """
    return _total(resolve(event, Adjacency(adjacency)), tuple(np.asarray(orders, float).tolist()))


@np.errstate(over="ignore")  # a divergence beyond floats is infinite, which is a valid bound
def _total(resolved: Resolved, orders: tuple[float, ...]) -> Array:
    return fold(
        resolved.parts,
        lambda leaf: leaf_curve(leaf, orders),
        np.add,
        lambda curve, n: np.array([times(float(value), n) for value in curve]),
        np.maximum,
        np.zeros(len(orders)),
    )


def leaf_curve(leaf: Leaf, orders: tuple[float, ...]) -> Array:
    """The same for one repetition of a leaf."""
    return _leaf_curve(replace(leaf, count=1), orders)


@lru_cache(maxsize=512)
@np.errstate(over="ignore")
def _leaf_curve(leaf: Leaf, orders: tuple[float, ...]) -> Array:
    alpha = np.array(orders)
    if facts_of(leaf.event).hopeless:
        return np.full(len(alpha), np.inf)
    if (curve := stated_curve(leaf, alpha)) is not None:
        return curve
    if own_delta(leaf):
        raise refusal_of("rdp", leaf.event, "its delta allows any divergence")
    try:
        pair = pair_of(leaf)
    except UnsupportedEvent as reason:
        raise refusal_of("rdp", leaf.event, "no curve is proved for it") from reason
    if pair.infinity > 0:
        raise refusal_of("rdp", leaf.event, "its loss may be infinite, by a delta inside it or by rounding")
    if (known := pair.divergence(alpha)) is not None:
        return known
    directions = [pair] if reverse(pair) is pair else [pair, reverse(pair)]
    curve = np.max([_pair_curve(each, alpha) for each in directions], axis=0)
    pure = pure_of(leaf)  # a bound of its own, and the only sharp one where losses are tiny
    return np.asarray(np.minimum(curve, np.minimum(product(pure, pure, 0.5) * alpha, pure)))


def _pair_curve(pair: Pair, alpha: Array) -> Array:
    if (curve := sampled_gaussian_curve(pair, alpha)) is not None:
        return curve
    if hasattr(pair, "log_mgf") and math.isfinite(pair.highest):
        k, error = Transform(pair).log_mgf((alpha - 1).astype(complex))  # type: ignore[arg-type]
        return np.asarray(np.minimum((np.maximum(k.real, 0.0) + error) / (alpha - 1) * (1 + 1e-14), pair.highest))
    return _lattice_curve(pair, alpha)


def _lattice_curve(pair: Pair, alpha: Array) -> Array:
    """Moments of the upper lattice, and a bound on what lies beyond its end: at high orders nearly all of them."""
    step = LossGrid(((pair, 1),)).step()
    law = upper(pair, step, 1e-300)
    if (times_coarser := -(-len(law.masses) // _MOST_POINTS)) > 1:
        law = upper(pair, times_coarser * step, 1e-300)
    inside = np.array([log_sum(law, c) for c in alpha - 1])
    total = np.logaddexp(inside, pair.log_moment_beyond(float(law.losses[-1]), alpha - 1))
    return np.asarray(np.maximum(total, 0.0) / (alpha - 1) * (1 + 1e-9) + 1e-15 / (alpha - 1))


@dataclass(frozen=True)
class Renyi:
    """The moments accountant over a fixed set of orders."""

    resolved: Resolved
    inverts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._curve  # noqa: B018 - refuse now

    @cached_property
    def _curve(self) -> Array:
        return np.minimum(_total(self.resolved, tuple(ORDERS.tolist())), 1e300)

    def epsilon(self, delta: float) -> float:
        """Upper bound."""
        if not self.resolved.parts or delta >= 1:
            return 0.0
        if delta <= 0 or hopeless(self.resolved):
            return math.inf
        value = rdp_to_epsilon(ORDERS, self._curve, delta)
        return value if value < 1e299 else math.inf

    def delta(self, epsilon: float) -> float:
        """Upper bound."""
        return 0.0 if not self.resolved.parts else rdp_to_delta(ORDERS, self._curve, epsilon)
