"""Leaves that say what a mechanism did, and bare guarantees for mechanisms the vocabulary does not know."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from discreet.adjacency import Adjacency
from discreet.errors import nonnegative, number, positive, probability, whole
from discreet.events.tree import Event, assign

__all__ = [
    "GDP",
    "RDP",
    "ZCDP",
    "ApproxDP",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "Laplace",
    "NonPrivate",
    "PureDP",
    "RandomizedResponse",
]


def _adjacency(event: Any) -> None:
    assign(event, adjacency=Adjacency(event.adjacency))


# --- additive noise --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(Event):
    """Laplace noise of scale ``noise_multiplier`` times the L1 sensitivity; pure DP with epsilon 1/noise_multiplier."""

    noise_multiplier: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        assign(self, noise_multiplier=positive("noise_multiplier", self.noise_multiplier))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Event):
    """Gaussian noise of standard deviation ``noise_multiplier`` times the L2 sensitivity."""

    noise_multiplier: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        assign(self, noise_multiplier=positive("noise_multiplier", self.noise_multiplier))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace(Event):
    """Integer noise with mass proportional to exp(-|x|/scale), on integers of L1 sensitivity ``sensitivity``."""

    scale: float
    sensitivity: int = 1
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        assign(self, scale=positive("scale", self.scale), sensitivity=whole("sensitivity", self.sensitivity, low=1))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian(Event):
    """Integer noise with mass proportional to exp(-x²/2sigma²), on one integer of sensitivity ``sensitivity``.

    For integer vectors only zCDP is proved: use ``ZCDP(rho=(l2_sensitivity/sigma)²/2)`` there.
    """

    sigma: float
    sensitivity: int = 1
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        assign(self, sigma=positive("sigma", self.sigma), sensitivity=whole("sensitivity", self.sensitivity, low=1))
        _adjacency(self)


# --- selection and local randomisers ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(Event):
    """A mechanism of bounded range ``epsilon``: its privacy losses lie in an interval of that length around zero."""

    epsilon: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        assign(self, epsilon=nonnegative("epsilon", self.epsilon))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse(Event):
    """Each record reports its category truthfully with odds exp(epsilon) to 1 against each other category.

    Proved under replace: with one report a record, adding a record changes the number of reports.
    """

    epsilon: float
    categories: int = 2
    adjacency: Adjacency = Adjacency.REPLACE

    def __post_init__(self) -> None:
        assign(
            self, epsilon=nonnegative("epsilon", self.epsilon), categories=whole("categories", self.categories, low=2)
        )
        _adjacency(self)
        if self.adjacency is Adjacency.ADD_REMOVE:
            raise ValueError(
                "adjacency is 'add-remove', but must be 'replace' or 'zero-out': randomized response "
                "reveals the number of records."
            )


# --- bare guarantees, for mechanisms the vocabulary does not know -------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PureDP(Event):
    """Anything that is epsilon-DP."""

    epsilon: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        assign(self, epsilon=nonnegative("epsilon", self.epsilon))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproxDP(Event):
    """Anything that is (epsilon, delta)-DP."""

    epsilon: float
    delta: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        assign(self, epsilon=nonnegative("epsilon", self.epsilon), delta=probability("delta", self.delta))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZCDP(Event):
    """Anything that is rho-zero-concentrated DP: Rényi divergence at most rho·alpha at every order alpha > 1."""

    rho: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        assign(self, rho=nonnegative("rho", self.rho))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RDP(Event):
    """Anything whose Rényi divergence of order ``orders[i]`` is at most ``epsilons[i]``."""

    orders: tuple[float, ...]
    epsilons: tuple[float, ...]
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        orders = tuple(number("orders", a, low=1, high=inf, open_low=True, open_high=True) for a in self.orders)
        epsilons = tuple(nonnegative("epsilons", e) for e in self.epsilons)
        if not orders or len(orders) != len(epsilons):
            raise ValueError(
                f"orders has {len(orders)} and epsilons {len(epsilons)} entries, but both need the same "
                "number, at least one."
            )
        if len(set(orders)) != len(orders):
            raise ValueError("orders has a repeated entry, but each order may appear once.")
        pairs = sorted(zip(orders, epsilons, strict=True))
        assign(self, orders=tuple(a for a, _ in pairs), epsilons=tuple(e for _, e in pairs))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class GDP(Event):
    """Anything at least as hard to test as N(0, 1) against N(mu, 1)."""

    mu: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        assign(self, mu=nonnegative("mu", self.mu))
        _adjacency(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class NonPrivate(Event):
    """Something was published without protection: no finite guarantee remains."""
