r"""KOV, the optimal composition of (epsilon, delta) guarantees: the best that is true when only those are known.

k repetitions of an :math:`(\epsilon_0, \delta_0)`-DP mechanism are dominated by k randomized responses, so

.. math:: \delta(\epsilon) = 1 - (1-\delta_0)^k\Bigl(1 - \sum_{i} \binom{k}{i}
          \frac{\bigl(e^{(k-i)\epsilon_0} - e^{\epsilon + i\epsilon_0}\bigr)_+}{(1+e^{\epsilon_0})^k}\Bigr),

attained by some mechanism (Kairouz, Oh and Viswanath 2015, Theorem 3.3). Several kinds of leaves multiply out as long
as the number of combinations stays small; the general problem is #P-hard (Murtagh and Vadhan 2016).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.stats import binom

from discreet.accounting.arrays import Array
from discreet.accounting.basic import Basic, divide_delta, leaf_epsilon
from discreet.accounting.facts import own_delta, pure_of
from discreet.accounting.outward import times
from discreet.accounting.parts import Choice, Leaf, Resolved
from discreet.accounting.sums import hopeless
from discreet.accounting.views import smallest_delta, solve_epsilon
from discreet.errors import UnsupportedEvent

__all__ = ["Optimal"]

_MAX_COMBINATIONS = 4_000_000
_TAIL = 700.0  # sums of probability below exp(-700) are not listed, and counted as lost
_UP = 1 + 1e-10


@dataclass(frozen=True)
class Optimal:
    """Each leaf reduced to its (epsilon, delta); the composition of those is exact."""

    resolved: Resolved
    inverts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Basic(self.resolved)  # refuses what has no guarantee of its own
        combinations = 1
        for part in self.resolved.parts:
            if isinstance(part, Choice):
                raise UnsupportedEvent("The optimal accountant cannot price Parallel: it knows one guarantee per leaf.")
            combinations *= part.count + 1
        if combinations > _MAX_COMBINATIONS:
            raise UnsupportedEvent(
                "The optimal accountant cannot price so many different leaves: the number of "
                "combinations is exponential. Use accountant='pld'."
            )

    @property
    def _leaves(self) -> list[Leaf]:
        return [part for part in self.resolved.parts if isinstance(part, Leaf)]

    def epsilon(self, delta: float) -> float:
        """Upper bound; leaves that are not pure get half of delta, shared equally."""
        if hopeless(self.resolved):
            return math.inf
        division = divide_delta(self.resolved, delta, keep=True)
        if division is None:
            return math.inf
        share, _ = division
        epsilons = [leaf_epsilon(leaf, share) for leaf in self._leaves]
        plain = sum(times(e, leaf.count) for e, leaf in zip(epsilons, self._leaves, strict=True))
        if plain == math.inf or delta <= 0:
            return plain
        deltas = [own_delta(leaf) or (0.0 if pure_of(leaf) < math.inf else share) for leaf in self._leaves]
        losses, masses, unlisted = _binary_losses(epsilons, [leaf.count for leaf in self._leaves])
        log_kept = sum(
            leaf.count * math.log1p(-d) if d < 1 else -math.inf for d, leaf in zip(deltas, self._leaves, strict=True)
        )
        kept = math.exp(log_kept)
        lost = -math.expm1(log_kept) + unlisted  # not 1 - kept, which small deltas would round away

        def delta_of(epsilon: float) -> float:
            above = losses > epsilon
            finite = float(masses[above] @ -np.expm1(epsilon - losses[above]))
            return min(1.0, (lost + kept * finite) * _UP)

        return min(plain, solve_epsilon(delta_of, delta))

    def delta(self, epsilon: float) -> float:
        """Upper bound."""
        return smallest_delta(self.epsilon, epsilon)


def _binary_losses(epsilons: list[float], counts: list[int]) -> tuple[Array, Array, float]:
    """The sums of ±epsilon, their probabilities under P, and a bound on the probability of those that are not listed.

    Of k answers, those farther than s from their mean number have probability 2·exp(-2s²/k) at most (Hoeffding 1963).
    """
    losses, masses, unlisted = np.zeros(1), np.ones(1), 0.0
    for epsilon, count in zip(epsilons, counts, strict=True):
        truth = 1 / (1 + math.exp(-epsilon))
        mean, reach = truth * count, math.sqrt(_TAIL * count / 2)
        wins = np.arange(max(0, math.floor(mean - reach)), min(count, math.ceil(mean + reach)) + 1)
        unlisted += 2 * math.exp(-_TAIL) if len(wins) <= count else 0.0
        losses = np.add.outer(losses, (2 * wins - count) * epsilon).ravel()
        masses = np.multiply.outer(masses, binom.pmf(wins, count, truth)).ravel()
    return losses, masses, unlisted
