r"""Zero-concentrated DP: one number a leaf, which adds up.

rho-zCDP bounds every Rényi divergence, :math:`D_\alpha \le \rho\alpha`. The Gaussian has :math:`\rho = 1/2z^2` (its
privacy loss is :math:`N(\rho, 2\rho)`), pure DP :math:`\epsilon^2/2`, bounded range :math:`\epsilon^2/8`.
References: Bun and Steinke (2016); Canonne, Kamath and Steinke (2020) for the discrete Gaussian and the conversion;
Cesar and Rogers (2021) for bounded range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from discreet import events as ev
from discreet.accounting.arrays import Array
from discreet.accounting.conversion import rdp_to_delta, rdp_to_epsilon
from discreet.accounting.neighbours import resolve
from discreet.accounting.parts import Resolved
from discreet.accounting.sums import hopeless, rho_sum
from discreet.adjacency import Adjacency

__all__ = ["ZeroConcentrated", "rho"]

_ORDERS = 1 + np.geomspace(1e-6, 1e8, 2000)


def rho(event: ev.Event, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> float:
    """Total rho of an event.

    >>> rho(ev.Gaussian(noise_multiplier=2.0) * 8)
    1.0
    """
    return ZeroConcentrated(resolve(event, Adjacency(adjacency))).rho


@dataclass(frozen=True)
class ZeroConcentrated:
    """The zCDP account."""

    resolved: Resolved
    inverts: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.rho  # noqa: B018 - refuse now

    @cached_property
    def rho(self) -> float:
        """Total rho."""
        return math.inf if hopeless(self.resolved) else rho_sum(self.resolved.parts)

    def epsilon(self, delta: float) -> float:
        """Upper bound."""
        if self.rho == 0 or delta >= 1:
            return 0.0
        if delta <= 0 or self.rho == math.inf:
            return math.inf
        return rdp_to_epsilon(_ORDERS, self._curve, delta)

    def delta(self, epsilon: float) -> float:
        """Upper bound."""
        return 0.0 if self.rho == 0 else rdp_to_delta(_ORDERS, self._curve, epsilon)

    @property
    def _curve(self) -> Array:
        """Divergences at the orders, infinite beyond floats."""
        with np.errstate(over="ignore"):
            return self.rho * _ORDERS
