r"""Gaussian DP: exact for Gaussians, whose mu's add up in squares; the central limit theorem only by name.

An event is mu-GDP if it is at least as hard to test as N(0, 1) against N(mu, 1). Composition:
:math:`\mu = \sqrt{\sum \mu_i^2}`. For other events the limit of many small losses is Gaussian too, but at a rate of
:math:`1/\sqrt{k}` (Berry-Esseen), so that a CLT figure can lie below the true epsilon: ``clt_mu`` is an approximation,
never a guarantee. Reference: Dong, Roth and Su (2022); Bu, Dong, Long and Su (2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from discreet import events as ev
from discreet.accounting.facts import refusal_of, stated_mu
from discreet.accounting.gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_noise_multiplier,
    profile_delta,
    profile_epsilon,
)
from discreet.accounting.neighbours import resolve
from discreet.accounting.parts import Leaf, Resolved
from discreet.accounting.sums import hopeless, mu_sum
from discreet.adjacency import Adjacency

__all__ = [
    "GaussianDP",
    "clt_epsilon",
    "clt_mu",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_noise_multiplier",
    "mu",
]


def mu(event: ev.Event, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> float:
    """Total mu of an event made of Gaussians.

    >>> mu(ev.Gaussian(noise_multiplier=2.0) * 4)
    1.0
    """
    return GaussianDP(resolve(event, Adjacency(adjacency))).mu


@dataclass(frozen=True)
class GaussianDP:
    """The exact account of Gaussians."""

    resolved: Resolved
    inverts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.mu  # noqa: B018 - refuse now

    @cached_property
    def mu(self) -> float:
        """Total mu: squares add up."""
        return mu_sum(self.resolved.parts)

    def epsilon(self, delta: float) -> float:
        """Exact, rounded up."""
        if self.mu == 0 or delta >= 1:
            return 0.0
        if delta <= 0 or self.mu == math.inf or hopeless(self.resolved):
            return math.inf
        return profile_epsilon(self.mu, delta)

    def delta(self, epsilon: float) -> float:
        """Exact, rounded up."""
        if self.mu == 0:
            return 0.0
        return profile_delta(self.mu, epsilon)


def clt_mu(event: ev.Event) -> float:
    """The mu that the central limit theorem suggests for sampled Gaussians: an approximation, not a bound.

    >>> step = ev.PoissonSampled(rate=0.01, event=ev.Gaussian(noise_multiplier=4.0))
    >>> round(clt_mu(step * 10_000), 4)
    0.254
    """
    total = 0.0
    for leaf, count in ev.leaves(event).items():
        match leaf:
            case ev.PoissonSampled(rate=rate, event=ev.Gaussian(noise_multiplier=z)):
                total += count * rate**2 * math.expm1(min(1 / z**2, 700.0))
            case _ if (plain := stated_mu(Leaf(leaf, Adjacency.ADD_REMOVE))) is not None:
                total += count * plain**2
            case _:
                raise refusal_of("clt", leaf, "the approximation is known for sampled and plain Gaussians")
    return math.sqrt(total)


def clt_epsilon(event: ev.Event, delta: float) -> float:
    """Epsilon by the central limit theorem: an approximation that can be too low, for comparison only."""
    value = clt_mu(event)
    return gaussian_epsilon(noise_multiplier=1 / value, delta=delta) if value else 0.0
