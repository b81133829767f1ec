"""The front door: what an event guarantees, by the tightest account that can price it or by one named.

Every number returned is an upper bound that is proved, for a stated adjacency. ``epsilon_bounds`` adds a lower bound
that is proved too: no accountant can do better than that.

Decisions 6 and 222.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from discreet.accounting.advanced import Advanced
from discreet.accounting.basic import Basic
from discreet.accounting.facts import facts_of, own_delta
from discreet.accounting.gdp import GaussianDP
from discreet.accounting.neighbours import resolve
from discreet.accounting.optimal_kov import Optimal
from discreet.accounting.outward import check_bound
from discreet.accounting.parts import Choice, Leaf, Resolved, each_leaf
from discreet.accounting.pld.composition import PLD
from discreet.accounting.rdp import Renyi
from discreet.accounting.sums import pure_sum
from discreet.accounting.tradeoff import TradeOff
from discreet.accounting.views import Account
from discreet.accounting.widened import Grouped, Slackened, WorstOf
from discreet.accounting.zcdp import ZeroConcentrated
from discreet.adjacency import Adjacency
from discreet.errors import NotCertified, UnsupportedAdjacency, UnsupportedEvent, nonnegative, probability, whole
from discreet.events import Event
from discreet.release import Release

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


_LARGEST_LOSS = 600.0  # beyond, exp(-loss) times a small probability is not held by floats


class Tightest:
    """The numerical account where every leaf has a pair, else the best of the others; never worse than pure sums."""

    def __init__(self, resolved: Resolved, numerical: PLD | None = None) -> None:
        self._pure = check_bound(pure_sum(resolved))
        self._resolved = resolved
        self._numerical = numerical
        try:
            self._numerical = numerical or PLD(resolved)
        except (UnsupportedEvent, NotCertified) as reason:
            if not self._others:
                raise UnsupportedEvent(f"No accountant can price this event: {reason}") from None

    @cached_property
    def _beside(self) -> list[Account]:
        """The accounts that may be below the numerical one; usually none.

        Curves for an envelope that nothing attains, such as that of bounded range; what is made of its profile, as sums
        are, is never below it. Sums for leaves with a delta of their own, where epsilon leaps as that delta is used up:
        sums meet the edge of the leap exactly, a grid nearly.
        """
        leaves = list(each_leaf(self._resolved.parts))
        curves = self._able("rdp", "zcdp") if any(facts_of(leaf.event).envelope for leaf in leaves) else []
        return curves + (self._able("basic") if any(map(own_delta, leaves)) else [])

    @cached_property
    def _others(self) -> list[Account]:
        """All that can price the event; of one leaf run once, no sum but the optimal one, which none is below.

        That one counts beside curves at deltas near one: a guarantee at a smaller delta says more of them than curves.
        """
        curves, parts = self._able("gdp", "rdp", "zcdp"), self._resolved.parts
        alone = len(parts) == 1 and isinstance(parts[0], Leaf) and parts[0].count == 1
        return curves + self._able("optimal", *(() if alone and curves else ("advanced", "basic")))

    def _able(self, *names: str) -> list[Account]:
        """Those of the named accounts that can price every leaf."""
        accounts: list[Account] = []
        for name in names:
            try:
                accounts.append(ACCOUNTANTS[name](self._resolved))
            except (UnsupportedEvent, NotCertified):
                continue
        return accounts

    @property
    def inverts(self) -> bool:
        """Whether a delta is sought among epsilons, by accounts that know nothing else: dozens of questions each."""
        return self._numerical is None or self._numerical.refuses

    def is_beyond_floats(self, epsilon: float) -> bool:
        """Whether the numerical account gives no more than the sum because exp(-loss) is no float: curves may."""
        return epsilon >= self._pure > _LARGEST_LOSS

    def epsilon(self, delta: float) -> float:
        """The smallest bound there is."""
        if delta <= 0:
            return self._pure  # curves say nothing here, and sums the same
        if self._numerical is not None:
            try:
                best = min(self._numerical.epsilon(delta), self._pure)
            except NotCertified:
                best = math.inf
            views = self._beside if best < math.inf and not self.is_beyond_floats(best) else self._others
            return min([check_bound(best), *(check_bound(view.epsilon(delta)) for view in views)])
        return min([self._pure, *(check_bound(view.epsilon(delta)) for view in self._others)])

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
        return min([check_bound(best), *(check_bound(view.delta(epsilon)) for view in views)])


def _tightest(resolved: Resolved) -> Account:
    """The tightest account; of one choice that is made once, of each option by itself, where none has to share a
    lattice with the others.
    """
    if not (options := _sole_options(resolved)):
        return Tightest(resolved)
    return WorstOf([_tightest(Resolved(option)) for option in options])


def _sole_options(resolved: Resolved) -> tuple[tuple[Leaf | Choice, ...], ...]:
    """The options of one choice that is made once, where there is nothing else."""
    match resolved.parts:
        case (Choice(options=options, count=1),):
            return options
    return ()


def _event(of: object) -> Event:
    """An event, or that of a release."""
    event = of.event if isinstance(of, Release) else of
    if not isinstance(event, Event):
        raise ValueError(f"event is a {type(event).__name__}, but must be an Event, or a Release, which has one.")
    return event


def _account(event: Event, accountant: str | None, adjacency: Adjacency | str, group_size: int) -> Account:
    if accountant is not None and accountant not in ACCOUNTANTS:
        known = ", ".join(map(repr, ACCOUNTANTS))
        raise ValueError(f"accountant is {accountant!r}, but must be one of {known}, or None.")
    view = _tightest if accountant is None else ACCOUNTANTS[accountant]
    relation = Adjacency(adjacency)
    size = whole("group_size", group_size, low=1)
    try:
        resolved, grouped = resolve(event, relation, size), False
    except UnsupportedAdjacency:
        if size == 1:
            raise
        resolved, grouped = resolve(event, relation), True
    ideal = Resolved(resolved.ideal)
    account: Account = Slackened(lambda: view(ideal), resolved.slack) if resolved.slack else view(ideal)
    return Grouped(account, size) if grouped else account


def epsilon(
    event: Event | Release[Any],
    delta: float,
    *,
    accountant: str | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    group_size: int = 1,
) -> float:
    """Smallest proved epsilon of an event, or of a release's, at delta.

    ``accountant=None`` takes the tightest account that can price every leaf; a named one that cannot raises
    ``UnsupportedEvent`` and names the leaf.

    >>> from discreet import events as ev
    >>> round(epsilon(ev.Gaussian(noise_multiplier=1.0), delta=1e-5), 4)
    4.3772
    >>> round(epsilon(ev.Gaussian(noise_multiplier=1.0), delta=1e-5, adjacency="replace"), 4)
    9.9973
    """
    return check_bound(_account(_event(event), accountant, adjacency, group_size).epsilon(probability("delta", delta)))


def delta(
    event: Event | Release[Any],
    epsilon: float,
    *,
    accountant: str | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    group_size: int = 1,
) -> float:
    """Smallest proved delta of an event, or of a release's, at epsilon.

    >>> from discreet import events as ev
    >>> round(delta(ev.Laplace(noise_multiplier=1.0), epsilon=0.5), 6)
    0.221199
    """
    return check_bound(
        _account(_event(event), accountant, adjacency, group_size).delta(nonnegative("epsilon", epsilon))
    )


def epsilon_bounds(
    event: Event | Release[Any], delta: float, *, adjacency: Adjacency | str = Adjacency.ADD_REMOVE
) -> tuple[float, float]:
    """Certified (lower, upper) bounds on the smallest epsilon at delta: the numerical account, from both sides.

    A lower bound that is not proved is 0: of truncated samples, of the best of several runs, of what was rounded up,
    of passes that are priced without amplification.
    """
    delta = probability("delta", delta)
    resolved = resolve(_event(event), Adjacency(adjacency))
    if delta == 1:
        return 0.0, 0.0
    if resolved.slack:  # what a cut sample hides is not known: nothing is proved from below
        return 0.0, epsilon(event, delta, adjacency=adjacency)
    account, pure = PLD(resolved), pure_sum(resolved)
    if delta == 0:
        return 0.0 if resolved.is_loose else min(account.attained_loss(), pure), pure
    low, high = account.epsilon_bounds(delta)
    tightest = Tightest(resolved, account)  # which keeps the compositions it has made
    if high == math.inf or tightest._beside or tightest.is_beyond_floats(high):
        high = min(high, tightest.epsilon(delta))
    if _sole_options(resolved):
        high = min(high, max(_tightest(resolved).epsilon(delta), low))
    return 0.0 if resolved.is_loose else min(low, pure, high), min(high, pure)


@dataclass(frozen=True)
class Guarantee:
    """Everything an event guarantees under one adjacency: the curves, what an attacker can do, a picture."""

    event: Event
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    accountant: str | None = None
    group_size: int = 1
    _account: Account = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "event", _event(self.event))
        object.__setattr__(self, "adjacency", Adjacency(self.adjacency))
        object.__setattr__(self, "_account", _account(self.event, self.accountant, self.adjacency, self.group_size))

    def epsilon(self, delta: float) -> float:
        """Smallest proved epsilon at delta."""
        return check_bound(self._account.epsilon(probability("delta", delta)))

    def delta(self, epsilon: float) -> float:
        """Smallest proved delta at epsilon."""
        return check_bound(self._account.delta(nonnegative("epsilon", epsilon)))

    @property
    def inverts(self) -> bool:
        """Whether a delta costs dozens of questions, as where the numerical account refuses."""
        return self._account.inverts

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
        return self._curve.advantage() if self.inverts else self._account.delta(0.0)

    def plot(self, path: str | None = None, *, ax: object = None) -> object:
        """Draw the trade-off curve between no privacy and perfect privacy; save it if a path is given."""
        return self._curve.plot(path, ax=ax, title=f"{self.adjacency} adjacency")


def guarantee(
    event: Event | Release[Any],
    *,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    accountant: str | None = None,
    group_size: int = 1,
) -> Guarantee:
    """What an event, or a release by its event, guarantees.

    >>> from discreet import events as ev
    >>> g = guarantee(ev.Gaussian(noise_multiplier=1.0))
    >>> round(g.advantage(), 4), round(g.tpr_at(0.01), 3)
    (0.3829, 0.093)
    """
    return Guarantee(_event(event), Adjacency(adjacency), accountant, group_size)
