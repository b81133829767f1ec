r"""Advanced composition, with the correct second term.

For leaves that are :math:`(\epsilon_i, \delta_i)`-DP and any :math:`\delta' > 0` the composition is
:math:`(\epsilon, \delta' + \sum\delta_i)`-DP with

.. math:: \epsilon = \sum_i \epsilon_i \frac{e^{\epsilon_i}-1}{e^{\epsilon_i}+1}
          + \sqrt{2\ln(1/\delta')\sum_i\epsilon_i^2}.

The first term is the mean of the privacy loss; leaving out its factor ε, as slides sometimes do, is unsound above one.
Reference: Dwork, Rothblum and Vadhan (2010); Kairouz, Oh and Viswanath (2015), Theorem 3.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from discreet.accounting.basic import Basic, divide_delta, leaf_epsilon
from discreet.accounting.outward import product, times
from discreet.accounting.parts import Leaf, Resolved, fold
from discreet.accounting.sums import hopeless
from discreet.accounting.views import smallest_delta

__all__ = ["Advanced"]


@dataclass(frozen=True)
class Advanced:
    """The square-root law; never worse than the plain sum, which is also computed."""

    resolved: Resolved
    inverts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Basic(self.resolved)  # refuses what has no guarantee of its own

    def epsilon(self, delta: float) -> float:
        """Upper bound: what the leaves do not bring of delta is spent on the deviation, half of it if they share."""
        if hopeless(self.resolved):
            return math.inf
        plain = Basic(self.resolved).epsilon(delta)
        if delta <= 0:
            return plain
        division = divide_delta(self.resolved, delta, keep=True)
        if division is None or division[1] <= 0:
            return plain
        share, deviation = division

        def price(leaf: Leaf) -> tuple[float, float]:
            epsilon = leaf_epsilon(leaf, share)
            return product(epsilon, math.tanh(epsilon / 2)), product(epsilon, epsilon)

        mean, square = fold(
            self.resolved.parts,
            price,
            lambda a, b: (a[0] + b[0], a[1] + b[1]),
            lambda cost, n: (times(cost[0], n), times(cost[1], n)),
            lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
            (0.0, 0.0),
        )
        return min(plain, mean + math.sqrt(-2 * math.log(deviation) * square))

    def delta(self, epsilon: float) -> float:
        """Upper bound."""
        return smallest_delta(self.epsilon, epsilon)
