"""Facts of bare guarantees: what is stated is all that is known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from discreet import events as ev
from discreet.accounting.arrays import Array
from discreet.accounting.facts import Facts, register, scale_parameter
from discreet.accounting.leaves.choices import epsilon_itself, epsilon_over_one
from discreet.accounting.outward import growth
from discreet.accounting.parts import Leaf, Resolved
from discreet.errors import UnsupportedAdjacency

__all__: list[str] = []


def _grown_approximate(event: ev.ApproxDP, k: int) -> ev.Event:
    """(kε, δ(1 + e^ε + … + e^{(k-1)ε})): Vadhan (2017), Lemma 2.2."""
    delta = event.delta and min(1.0, math.nextafter(event.delta * growth(event.epsilon, k), math.inf))
    return scale_parameter(replace(event, delta=delta), "epsilon", k)


def _known_orders(event: ev.RDP, orders: Array) -> Array:
    """Divergences grow with the order: an unknown order is bounded by the next known one above it."""
    known = np.append(np.array(event.epsilons), np.inf)
    return known[np.searchsorted(np.array(event.orders), orders * (1 - 1e-12))]


def _grown_curve(event: ev.RDP, k: int) -> ev.Event | None:
    """Doubled as often as k is a power of two; for other k nothing is proved."""
    if k & (k - 1):
        return None
    if k == 1:
        return event
    doubled = _doubled_curve(event)
    return _grown_curve(doubled, k // 2) if isinstance(doubled, ev.RDP) else doubled


def _doubled_curve(event: ev.RDP) -> ev.RDP | ev.NonPrivate:
    r"""Weak triangle inequality for two changes.

    .. math:: D_\alpha(P\|R) \le \frac{\alpha-1/2}{\alpha-1} D_{2\alpha}(P\|Q) + D_{2\alpha-1}(Q\|R)

    Reference: Mironov (2017), Proposition 11. Divergences grow with the order, so the next known one bounds both.
    """
    result = {}
    for target in event.orders:
        above = [e for order, e in zip(event.orders, event.epsilons, strict=True) if order >= 2 * target]
        if above:
            result[target] = (target - 0.5) / (target - 1) * above[0] + above[0]
    if not result:
        raise UnsupportedAdjacency(
            "RDP needs an order at least twice as large as another to be restated for two changes."
        )
    finite = {order: epsilon for order, epsilon in result.items() if epsilon < math.inf}
    return replace(event, orders=tuple(finite), epsilons=tuple(finite.values())) if finite else ev.NonPrivate()


register(
    ev.PureDP,
    Facts(
        pure=epsilon_itself,
        quotient=epsilon_over_one,
        enlarged=lambda event, k: scale_parameter(event, "epsilon", k),
    ),
)

register(
    ev.ApproxDP,
    Facts(
        approximate=lambda event, adjacency: (event.epsilon, event.delta),
        enlarged=_grown_approximate,
    ),
)

register(
    ev.ZCDP,
    Facts(
        rho=lambda event, adjacency: event.rho,
        enlarged=lambda event, k: scale_parameter(event, "rho", k * k),
    ),
)

register(
    ev.GDP,
    Facts(
        mu=lambda event, adjacency: event.mu,
        enlarged=lambda event, k: scale_parameter(event, "mu", k),
    ),
)

register(
    ev.RDP,
    Facts(
        curve=lambda event, adjacency, orders: _known_orders(event, orders),
        enlarged=_grown_curve,
    ),
)

register(
    ev.NonPrivate,
    Facts(
        hopeless=True,
        restated=lambda event, count, wanted, group: Resolved((Leaf(event, wanted, count),)),
    ),
)
