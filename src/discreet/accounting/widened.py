"""Accounts that widen others: for a group of records, for what is nearly the priced process, for the worst of some."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

from scipy.optimize import brentq

from discreet.accounting.outward import FLOOR, growth, share, times
from discreet.accounting.views import Account, solve_epsilon

__all__ = ["Grouped", "Slackened", "WorstOf"]

_FAR = 1400.0  # the sum of a group is infinite where (k - 1)·ε/k is above 700


class Grouped:
    r"""A group of k records, for events that cannot be restated leaf by leaf.

    k steps of one record lead from one data set to the other, so
    :math:`\delta_k(\epsilon) \le \delta(\epsilon/k)\sum_{i<k} e^{i\epsilon/k}` (Vadhan 2017, Lemma 2.2).
    """

    def __init__(self, one: Account, size: int) -> None:
        self._one, self._size = one, size

    @property
    def inverts(self) -> bool:
        """As for one record."""
        return self._one.inverts

    def epsilon(self, delta: float) -> float:
        """Upper bound; where no epsilon below ``_FAR`` will do, the sum is beyond floats and only pure DP is left."""
        if delta >= 1:
            return 0.0
        pure = times(self._one.epsilon(0.0), self._size)
        if self.inverts and delta > 0:
            return min(pure, self._epsilon_by_epsilons(delta))
        least = times(self._one.delta(share(_FAR, self._size)), self._size)
        return pure if delta == 0 or least > delta else min(pure, solve_epsilon(self.delta, delta))

    def _epsilon_by_epsilons(self, delta: float) -> float:
        """k·e for the smallest e that is at least one record's epsilon at δ/(1 + … + e^((k-1)e)): no delta is asked."""

        def lack(e: float) -> float:
            at_most = self._one.epsilon(delta / growth(e, self._size) * (1 - 1e-12))
            return min(at_most - e, e + 1.0)

        most = share(_FAR, self._size)
        low = self._one.epsilon(share(delta, self._size))
        if low > most:
            return math.inf
        high = max(low, 1e-60)
        while lack(high) > 0:
            low, high = high, 2 * high
            if high > most:
                return math.inf
        e, move = (float(brentq(lack, low, high, xtol=1e-13 * high, rtol=1e-13)) if low < high else high), 1e-13 * high
        while lack(e) > 0:  # only the safe side counts
            e, move = e + move, 2 * move
        return times(e, self._size)

    def delta(self, epsilon: float) -> float:
        """Upper bound."""
        each = math.nextafter(share(epsilon, self._size), 0.0) if epsilon else 0.0
        one = self._one.delta(each)
        return min(1.0, one * growth(each, self._size) * (1 + 1e-12) + FLOOR) if one else 0.0


class Slackened:
    r"""An account of a process that differs from the real one with total probability ``slack`` on either data set.

    Then :math:`\delta(\epsilon)` grows by at most :math:`(1 + e^\epsilon)\cdot` slack: truncated Poisson sampling
    (Chua et al. 2024, Theorem 3.4).
    """

    def __init__(self, make_ideal: Callable[[], Account], slack: float) -> None:
        self._make_ideal, self._slack = make_ideal, slack

    @cached_property
    def ideal(self) -> Account:
        """The account of the process that was priced; made when first asked for, as slack alone may use up delta."""
        return self._make_ideal()

    @property
    def inverts(self) -> bool:
        """As for the process that was priced, of which nothing is asked where slack is all there is."""
        return self._lost_delta(0.0) < 1 and self.ideal.inverts

    def epsilon(self, delta: float) -> float:
        """Upper bound, by the increasing fixed-point iteration from below."""
        epsilon = 0.0
        for _ in range(200):
            left = (delta - self._lost_delta(epsilon)) * (1 - 1e-15)
            if left <= 0:
                return math.inf
            needed = self.ideal.epsilon(left)
            if needed <= epsilon:
                return epsilon  # what is left of delta at this very epsilon pays for it
            epsilon = needed * (1 + 1e-12)
        return math.inf

    def delta(self, epsilon: float) -> float:
        """Upper bound."""
        lost = self._lost_delta(epsilon)
        return 1.0 if lost >= 1 else min(1.0, self.ideal.delta(epsilon) + lost)

    def _lost_delta(self, epsilon: float) -> float:
        """(1 + e^ε)·slack, rounded up, and no more than one."""
        return min(1.0, self._slack + math.exp(min(math.log(self._slack) + epsilon, 1.0)) * (1 + 1e-12) + FLOOR)


class WorstOf:
    """One of several processes, whichever is the worst for the neighbours: at each delta, and each epsilon, the largest
    bound.
    """

    def __init__(self, accounts: Sequence[Account]) -> None:
        self._accounts = accounts

    @property
    def inverts(self) -> bool:
        """As for any of them."""
        return any(account.inverts for account in self._accounts)

    def epsilon(self, delta: float) -> float:
        """Upper bound."""
        return max(account.epsilon(delta) for account in self._accounts)

    def delta(self, epsilon: float) -> float:
        """Upper bound."""
        return max(account.delta(epsilon) for account in self._accounts)
