"""From events to what an accountant prices: leaves restated for the neighbouring relation that was asked for.

Replacing a record is removing one and adding another, so what is proved for one change of the data holds for a group
of two (Vadhan 2017, Lemma 2.2): sensitivities double, and so on, by ``enlarged``. That route is closed inside a sample,
where both records are sampled by one coin: the Gaussian has its own replace pair there, everything else is refused.
A guarantee proved under replace never becomes one under add-remove, because it may reveal the number of records.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any

from scipy.stats import binom

from discreet import events as ev
from discreet.accounting.outward import SMALLEST, growth, times
from discreet.adjacency import Adjacency
from discreet.errors import UnsupportedAdjacency, UnsupportedEvent, whole

__all__ = ["Choice", "Leaf", "Resolved", "each_leaf", "enlarged", "resolve"]


@dataclass(frozen=True)
class Leaf:
    """An event to be priced ``count`` times for ``adjacency``; ``flip`` exchanges the two directions."""

    event: ev.Event
    adjacency: Adjacency
    count: int
    flip: bool = False


@dataclass(frozen=True)
class Choice:
    """Parallel composition: the neighbour decides which of the options is charged, ``count`` times."""

    options: tuple[tuple[Leaf | Choice, ...], ...]
    count: int
    event: ev.Event


@dataclass(frozen=True)
class Resolved:
    """Everything to be priced, and the total probability by which a truncated sampler differs from its ideal.

    ``ideal`` and ``slack`` belong together: ``parts``, which accounts and wrappers read, exist only without slack.
    """

    ideal: tuple[Leaf | Choice, ...]
    slack: float = 0.0

    @property
    def parts(self) -> tuple[Leaf | Choice, ...]:
        """What is priced, where that is the whole truth."""
        if self.slack:
            raise UnsupportedEvent(
                "TruncatedPoissonSampled cannot be priced here: its overflow is a delta of the whole event, which neither "
                "a curve nor a part of an event can hold."
            )
        return self.ideal


def each_leaf(parts: tuple[Leaf | Choice, ...]) -> Iterator[Leaf]:
    """Every leaf, those inside parallel parts included."""
    for part in parts:
        if isinstance(part, Leaf):
            yield part
        else:
            for option in part.options:
                yield from each_leaf(option)


def resolve(event: ev.Event, adjacency: Adjacency, group_size: int = 1) -> Resolved:
    """Restate the leaves of an event for a neighbouring relation, or refuse with the reason."""
    group = whole("group_size", group_size, low=1)
    parts: list[Leaf | Choice] = []
    slack = 0.0
    for leaf, count in ev.leaves(event).items():
        restated = _restate(leaf, count, Adjacency(adjacency), group)
        parts.extend(restated.ideal)
        slack += restated.slack
    return Resolved(tuple(parts), slack)


def _restate(leaf: ev.Event, count: int, wanted: Adjacency, group: int) -> Resolved:
    match leaf:
        case ev.NonPrivate():
            return Resolved((Leaf(leaf, wanted, count),))
        case ev.Parallel():
            return _parallel(leaf, count, wanted, group)
        case ev.Shuffled():
            if wanted is not Adjacency.REPLACE:
                raise _refusal(leaf, wanted, "a shuffle fixes the number of records, so it is proved under 'replace' only")
            return resolve(leaf.event * count, wanted, group)
        case ev.ProvedUnder():
            if wanted is not leaf.adjacency:
                raise _refusal(leaf, wanted, f"it holds under '{leaf.adjacency}' only, because it takes another fact as public")
            return resolve(leaf.event * count, wanted, group)
        case ev.BallsInBins():
            # Given the assignment, one batch differs: the pass costs one event. No amplification is claimed.
            return resolve(leaf.event * count, wanted, group)
        case ev.TruncatedPoissonSampled():
            inner = _restate(ev.PoissonSampled(rate=leaf.rate, event=leaf.event), count, wanted, group)
            return Resolved(inner.ideal, min(1.0, inner.slack + times(_overflow(leaf), count)))
        case ev.PoissonSampled() | ev.FixedSizeSampled():
            if leaf.rate == 0:
                return Resolved(())  # nothing is ever read
            if leaf.rate == 1:
                return resolve(leaf.event * count, wanted, group)
            return Resolved((_sampled(_merged(leaf), count, wanted, group),))
    return Resolved(() if _free(leaf) else (_plain(leaf, count, wanted, group),))


def _overflow(leaf: ev.TruncatedPoissonSampled) -> float:
    """The probability that a sample of one more than ``dataset_size`` records is cut, rounded up."""
    if leaf.rate == 0 or leaf.max_batch_size > leaf.dataset_size:
        return 0.0
    if leaf.dataset_size > 1 << 50:
        return 1.0  # beyond what the tail is computed for
    return max(float(binom.sf(leaf.max_batch_size, leaf.dataset_size + 1, leaf.rate)) * (1 + 1e-9), SMALLEST)


def _merged(leaf: Any) -> Any:
    """A Poisson sample of a Poisson sample is one at the product of the rates, rounded up."""
    inside = ev.leaves(leaf.event)
    only = next(iter(inside), None)
    if not (isinstance(leaf, ev.PoissonSampled) and isinstance(only, ev.PoissonSampled) and inside == {only: 1}):
        return leaf
    rate = min(leaf.rate, only.rate, math.nextafter(leaf.rate * only.rate, 1.0))
    return _merged(ev.PoissonSampled(rate=rate, event=only.event))


def _free(leaf: ev.Event) -> bool:
    """Whether a leaf says nothing about the data."""
    cost = {"epsilon": 0.0, "mu": 0.0, "rho": 0.0}
    return any(getattr(leaf, name, None) == zero for name, zero in cost.items()) and not getattr(leaf, "delta", 0.0)


def _plain(leaf: Any, count: int, wanted: Adjacency, group: int) -> Leaf:
    own: Adjacency = leaf.adjacency
    if own is wanted:
        return Leaf(enlarged(leaf, group), wanted, count)
    if wanted is Adjacency.ADD_REMOVE:
        raise _refusal(leaf, wanted, f"it was proved under '{own}', which may reveal the number of records")
    if own is Adjacency.REPLACE:
        raise _refusal(leaf, wanted, "it was proved under 'replace', where a null record may not exist")
    # add-remove or zero-out to replace, add-remove to zero-out: two changes take one data set to the other
    return Leaf(replace(enlarged(leaf, 2 * group), adjacency=wanted), wanted, count)


def _sampled(leaf: Any, count: int, wanted: Adjacency, group: int) -> Leaf:
    if group > 1:
        raise _refusal(leaf, wanted, "a group shares the sample; ask for the group's guarantee of the whole instead")
    if isinstance(leaf, ev.FixedSizeSampled):
        if wanted is not Adjacency.REPLACE:
            raise _refusal(leaf, wanted, "sampling a fixed number is proved under 'replace' only")
        return Leaf(leaf, wanted, count)
    inside = set(_proved_under(leaf.event))
    if wanted is Adjacency.REPLACE:
        if inside - {Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT} or not _all_gaussian(leaf.event):
            raise _refusal(leaf, wanted, "inside a Poisson sample the replace pair is proved for Gaussian noise only")
    elif inside - {wanted}:
        raise _refusal(leaf, wanted, f"what runs inside was proved under {', '.join(sorted(map(repr, map(str, inside))))}")
    return Leaf(leaf, wanted, count)


def _proved_under(event: ev.Event) -> Iterator[Adjacency]:
    """What everything in an event was proved under, however deep: inside a sample nothing is restated."""
    for leaf in ev.leaves(event):
        if hasattr(leaf, "adjacency"):
            yield leaf.adjacency
        for part in getattr(leaf, "events", (getattr(leaf, "event", None),)):
            if part is not None:
                yield from _proved_under(part)


def _all_gaussian(event: ev.Event) -> bool:
    return all(isinstance(leaf, (ev.Gaussian, ev.GDP)) for leaf in ev.leaves(event))


def _parallel(leaf: ev.Parallel, count: int, wanted: Adjacency, group: int) -> Resolved:
    """Under add-remove one part sees the change.

    Under replace the record may stay in its part, or leave one and enter another: the worst of all.
    """
    parts = list(dict.fromkeys(leaf.events))
    crosses = wanted is Adjacency.REPLACE  # the new record may lie in another part
    if len(parts) == 1 and not crosses:
        return resolve(parts[0] * count, wanted, group)
    if group > 1:
        raise _refusal(leaf, wanted, "a group may spread over the parts; ask for the group's guarantee of the whole")
    options = [resolve(part, wanted).parts for part in parts]
    for left, entered in permutations(parts if len(parts) > 1 else parts * 2, 2) if crosses else ():
        try:
            out, into = (resolve(part, Adjacency.ADD_REMOVE).parts for part in (left, entered))
        except UnsupportedAdjacency as reason:
            why = "a record may leave one part and enter another, so every part must hold under 'add-remove', but "
            raise _refusal(leaf, wanted, f"{why}{reason}".rstrip(".")) from None
        options.append(out + tuple(_flipped(part) for part in into))
    charged = tuple(filter(None, options))  # one that charges nothing is below every other
    return Resolved((Choice(charged, count, leaf),) if charged else ())


def _flipped(part: Leaf | Choice) -> Leaf | Choice:
    if isinstance(part, Leaf):
        return replace(part, flip=not part.flip)
    return replace(part, options=tuple(tuple(_flipped(inner) for inner in option) for option in part.options))


def enlarged(leaf: Any, k: int) -> Any:
    """The same mechanism's guarantee for data sets that differ in k changes."""
    if k == 1:
        return leaf
    match leaf:
        case ev.Laplace() | ev.Gaussian():
            return replace(leaf, noise_multiplier=leaf.noise_multiplier / k)
        case ev.DiscreteLaplace() | ev.DiscreteGaussian():
            return replace(leaf, sensitivity=leaf.sensitivity * k)
        case ev.Exponential() | ev.PureDP():
            return replace(leaf, epsilon=leaf.epsilon * k)
        case ev.ApproxDP():
            delta = leaf.delta and min(1.0, math.nextafter(leaf.delta * growth(leaf.epsilon, k), math.inf))
            return replace(leaf, epsilon=leaf.epsilon * k, delta=delta)
        case ev.ZCDP():
            return replace(leaf, rho=leaf.rho * k * k)
        case ev.GDP():
            return replace(leaf, mu=leaf.mu * k)
        case ev.RandomizedResponse():
            return ev.PureDP(epsilon=leaf.epsilon * k, adjacency=leaf.adjacency)
        case ev.RDP() if k & (k - 1) == 0:
            return enlarged(_doubled_rdp(leaf), k // 2)
    raise UnsupportedAdjacency(f"{leaf.tag} has no proved guarantee for {k} changes at once.")


def _doubled_rdp(leaf: ev.RDP) -> ev.RDP:
    r"""Weak triangle inequality for two changes.

    .. math:: D_\alpha(P\|R) \le \frac{\alpha-1/2}{\alpha-1} D_{2\alpha}(P\|Q) + D_{2\alpha-1}(Q\|R)

    Reference: Mironov (2017), Proposition 11. Divergences grow with the order, so the next known one bounds both.
    """
    result = {}
    for target in leaf.orders:
        above = [e for order, e in zip(leaf.orders, leaf.epsilons, strict=True) if order >= 2 * target]
        if above:
            result[target] = (target - 0.5) / (target - 1) * above[0] + above[0]
    if not result:
        raise UnsupportedAdjacency("RDP needs an order at least twice as large as another to be restated for two changes.")
    return replace(leaf, orders=tuple(result), epsilons=tuple(result.values()))


def _refusal(leaf: ev.Event, wanted: Adjacency, reason: str) -> UnsupportedAdjacency:
    return UnsupportedAdjacency(f"{leaf.tag} has no guarantee under '{wanted}': {reason}.")
