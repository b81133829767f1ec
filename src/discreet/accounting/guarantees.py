"""The front door: what an event guarantees, by the tightest account that can price it or by one named.

Every number returned is an upper bound that is proved, for a stated adjacency. ``epsilon_bounds`` adds a lower bound
that is proved too: no accountant can do better than that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

from discreet.accounting.advanced import Advanced
from discreet.accounting.basic import Basic, own_delta, pure_sum
from discreet.accounting.gdp import GaussianDP
from discreet.accounting.neighbours import Resolved, each_leaf, resolve
from discreet.accounting.optimal import Optimal
from discreet.accounting.pld import PLD
from discreet.accounting.rdp import Renyi
from discreet.accounting.tradeoff import TradeOff
from discreet.accounting.views import Account, solve_epsilon
from discreet.accounting.zcdp import ZeroConcentrated
from discreet.adjacency import Adjacency
from discreet.errors import NotCertified, UnsupportedAdjacency, UnsupportedEvent, nonnegative, probability, whole
from discreet.events import Event, Exponential

__all__ = ["ACCOUNTANTS", "Guarantee", "delta", "epsilon", "epsilon_bounds", "guarantee"]

ACCOUNTANTS: Mapping[str, Callable[[Resolved], Account]] = MappingProxyType(
    {
        "pld": PLD,
        "gdp": GaussianDP,
        "rdp": Renyi,
        "zcdp": ZeroConcentrated,
        "optimal": Optimal,
        "advanced": Advanced,
        "basic": Basic,
    }
)
"""The views, tightest first."""


class Tightest:
    """The numerical account where every leaf has a pair, else the best of the others; never worse than pure sums."""

    def __init__(self, resolved: Resolved) -> None:
        self._pure = pure_sum(resolved)
        self._resolved = resolved
        self._numerical: PLD | None = None
        try:
            self._numerical = PLD(resolved)
        except UnsupportedEvent as reason:
            if not self._others:
                raise UnsupportedEvent(f"No accountant can price this event: {reason}") from None

    @cached_property
    def _beside(self) -> list[Account]:
        """The accounts that may be below the numerical one; usually none.

        All of them for bounded range, whose envelope nothing attains. Sums for leaves with a delta of their own, where
        epsilon leaps as that delta is used up: sums meet the edge of the leap exactly, a grid only nearly.
        """
        leaves = list(each_leaf(self._resolved.parts))
        if any(isinstance(leaf.event, Exponential) for leaf in leaves):
            return self._others
        return [Basic(self._resolved)] if any(map(own_delta, leaves)) else []

    @cached_property
    def _others(self) -> list[Account]:
        found: list[Account] = []
        for name, view in ACCOUNTANTS.items():
            if name != "pld":
                try:
                    found.append(view(self._resolved))
                except (UnsupportedEvent, NotCertified):
                    continue
        return found

    def epsilon(self, delta: float) -> float:
        """The smallest bound there is."""
        if delta > 0 and self._numerical is not None:
            try:
                best = min(self._numerical.epsilon(delta), self._pure)
            except NotCertified:
                best = math.inf
            views = self._beside if best < math.inf else self._others
            return min([best, *(view.epsilon(delta) for view in views)])
        return min([self._pure, *(view.epsilon(delta) for view in self._others)])

    def delta(self, epsilon: float) -> float:
        """The smallest bound there is."""
        if epsilon >= self._pure:
            return 0.0
        best, views = 1.0, self._others if self._numerical is None else self._beside
        if self._numerical is not None:
            try:
                best = self._numerical.delta(epsilon)
            except NotCertified:
                views = self._others
        return min([best, *(view.delta(epsilon) for view in views)])


class Grouped:
    r"""A group of k records, for events that cannot be restated leaf by leaf.

    k steps of one record lead from one data set to the other, so
    :math:`\delta_k(\epsilon) \le \delta(\epsilon/k)\sum_{i<k} e^{i\epsilon/k}` (Vadhan 2017, Lemma 2.2).
    """

    def __init__(self, one: Account, size: int) -> None:
        self._one, self._size = one, size

    def epsilon(self, delta: float) -> float:
        """Upper bound."""
        return self._one.epsilon(0.0) * self._size if delta == 0 else solve_epsilon(self.delta, delta)

    def delta(self, epsilon: float) -> float:
        """Upper bound."""
        each = math.nextafter(epsilon / self._size, 0.0)
        failure = self._one.delta(each)
        if failure == 0 or (self._size - 1) * each > 700:  # beyond it the sum leaves the range of floats
            return min(1.0, math.ceil(failure))
        growth = math.expm1(self._size * each) / math.expm1(each) if each else self._size
        return min(1.0, failure * growth * (1 + 1e-12))


class Slackened:
    r"""An account of a process that differs from the real one with total probability ``slack`` on either data set.

    Then :math:`\delta(\epsilon)` grows by at most :math:`(1 + e^\epsilon)\cdot` slack: truncated Poisson sampling
    (Chua et al. 2024, Theorem 3.4).
    """

    def __init__(self, ideal: Account, slack: float) -> None:
        self._ideal, self._slack = ideal, slack

    def epsilon(self, delta: float) -> float:
        """Upper bound, by the increasing fixed-point iteration from below."""
        epsilon = -1.0
        for _ in range(200):
            left = delta - (1 + math.exp(min(max(epsilon, 0.0), 700.0))) * self._slack
            if left <= 0:
                return math.inf
            previous, epsilon = epsilon, self._ideal.epsilon(left)
            if epsilon <= previous * (1 + 1e-12):
                return previous
        return math.inf

    def delta(self, epsilon: float) -> float:
        """Upper bound."""
        return min(1.0, self._ideal.delta(epsilon) + (1 + math.exp(min(epsilon, 700.0))) * self._slack)


def _account(event: Event, accountant: str | None, adjacency: Adjacency | str, group_size: int) -> Account:
    if accountant is not None and accountant not in ACCOUNTANTS:
        raise ValueError(f"accountant is {accountant!r}, but must be one of {', '.join(map(repr, ACCOUNTANTS))}, or None.")
    if not isinstance(event, Event):
        raise ValueError(f"event is a {type(event).__name__}, but must be an Event.")
    view = Tightest if accountant is None else ACCOUNTANTS[accountant]
    relation = Adjacency(adjacency)
    size = whole("group_size", group_size, low=1)
    try:
        resolved, grouped = resolve(event, relation, size), False
    except UnsupportedAdjacency:
        if size == 1:
            raise
        resolved, grouped = resolve(event, relation), True
    account: Account = view(resolved)
    if resolved.slack:
        account = Slackened(account, resolved.slack)
    return Grouped(account, size) if grouped else account


def epsilon(
    event: Event,
    delta: float,
    *,
    accountant: str | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    group_size: int = 1,
) -> float:
    """Smallest proved epsilon of an event at delta.

    ``accountant=None`` takes the tightest account that can price every leaf; a named one that cannot raises
    ``UnsupportedEvent`` and names the leaf.

    >>> from discreet import events as ev
    >>> round(epsilon(ev.Gaussian(noise_multiplier=1.0), delta=1e-5), 4)
    4.3772
    >>> round(epsilon(ev.Gaussian(noise_multiplier=1.0), delta=1e-5, adjacency="replace"), 4)
    9.9973
    """
    return _account(event, accountant, adjacency, group_size).epsilon(probability("delta", delta))


def delta(
    event: Event,
    epsilon: float,
    *,
    accountant: str | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    group_size: int = 1,
) -> float:
    """Smallest proved delta of an event at epsilon.

    >>> from discreet import events as ev
    >>> round(delta(ev.Laplace(noise_multiplier=1.0), epsilon=0.5), 6)
    0.221199
    """
    return _account(event, accountant, adjacency, group_size).delta(nonnegative("epsilon", epsilon))


def epsilon_bounds(event: Event, delta: float, *, adjacency: Adjacency | str = Adjacency.ADD_REMOVE) -> tuple[float, float]:
    """Certified (lower, upper) bounds on the smallest epsilon at delta: the numerical account, from both sides."""
    delta = probability("delta", delta)
    if not isinstance(event, Event):
        raise ValueError(f"event is a {type(event).__name__}, but must be an Event.")
    resolved = resolve(event, Adjacency(adjacency))
    account = PLD(resolved)
    pure = pure_sum(resolved)
    if delta == 0:
        return (pure, pure) if pure < math.inf else (math.inf, math.inf)
    if delta == 1:
        return 0.0, 0.0
    low, high = account.epsilon_bounds(delta)
    if resolved.slack:
        high = Slackened(account, resolved.slack).epsilon(delta)
    elif high == math.inf or Tightest(resolved)._beside:
        high = min(high, Tightest(resolved).epsilon(delta))
    return min(low, pure, high), min(high, pure)


@dataclass(frozen=True)
class Guarantee:
    """Everything an event guarantees under one adjacency: the curves, what an attacker can do, a picture."""

    event: Event
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    accountant: str | None = None
    group_size: int = 1
    _account: Account = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))
        object.__setattr__(self, "_account", _account(self.event, self.accountant, self.adjacency, self.group_size))

    def epsilon(self, delta: float) -> float:
        """Smallest proved epsilon at delta."""
        return self._account.epsilon(probability("delta", delta))

    def delta(self, epsilon: float) -> float:
        """Smallest proved delta at epsilon."""
        return self._account.delta(nonnegative("epsilon", epsilon))

    @cached_property
    def _curve(self) -> TradeOff:
        return TradeOff.of(self._account)

    def tradeoff(self, fpr: float) -> float:
        """The smallest false-negative rate any attacker can have at a false-positive rate: a proved lower bound."""
        return self._curve(probability("fpr", fpr))

    def tpr_at(self, fpr: float) -> float:
        """The largest true-positive rate any attacker can have at a false-positive rate: a proved upper bound."""
        return 1 - self.tradeoff(fpr)

    def advantage(self) -> float:
        """The largest difference between an attacker's true- and false-positive rates."""
        return self._account.delta(0.0)

    def plot(self, path: str | None = None, *, ax: object = None) -> object:
        """Draw the trade-off curve between no privacy and perfect privacy; save it if a path is given."""
        return self._curve.plot(path, ax=ax, title=f"{self.adjacency} adjacency")


def guarantee(
    event: Event,
    *,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    accountant: str | None = None,
    group_size: int = 1,
) -> Guarantee:
    """What an event guarantees.

    >>> from discreet import events as ev
    >>> g = guarantee(ev.Gaussian(noise_multiplier=1.0))
    >>> round(g.advantage(), 4), round(g.tpr_at(0.01), 3)
    (0.3829, 0.093)
    """
    return Guarantee(event, Adjacency(adjacency), accountant, group_size)
