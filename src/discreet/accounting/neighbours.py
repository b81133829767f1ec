"""From events to what an accountant prices: leaves restated for the neighbouring relation that was asked for.

Replacing a record is removing one and adding another, so what is proved for one change of the data holds for a group of
two (Vadhan 2017, Lemma 2.2): sensitivities double, and so on, by ``for_group``. That route is closed inside a sample,
where both records are sampled by one coin: the Gaussian has its own replace pair there, everything else is refused.
What a wrapper does instead is among its facts (:mod:`discreet.accounting.leaves`).
A guarantee proved under replace never becomes one under add-remove, because it may reveal the number of records.

Decisions 83 and 121.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from discreet import events as ev
from discreet.accounting.facts import costs_nothing, facts_of
from discreet.accounting.parts import Leaf, Part, Resolved
from discreet.adjacency import Adjacency
from discreet.errors import UnsupportedAdjacency, UnsupportedEvent, whole

__all__ = ["for_group", "refusal", "resolve", "restate"]


def resolve(event: ev.Event, adjacency: Adjacency, group_size: int = 1) -> Resolved:
    """Restate the leaves of an event for a neighbouring relation, or refuse with the reason."""
    group = whole("group_size", group_size, low=1)
    parts: list[Part] = []
    slack, is_loose = 0.0, False
    for leaf, count in ev.leaves(event).items():
        restated = (facts_of(leaf).restated or restate)(leaf, count, Adjacency(adjacency), group)
        parts.extend(restated.ideal)
        slack += restated.slack
        is_loose |= restated.is_loose
    return Resolved(tuple(parts), slack, is_loose)


_TWO_CHANGES = {  # of the first relation take one data set to the other of the second
    (Adjacency.ADD_REMOVE, Adjacency.REPLACE),
    (Adjacency.ZERO_OUT, Adjacency.REPLACE),
    (Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT),
}


def restate(leaf: Any, count: int, wanted: Adjacency, group: int) -> Resolved:
    """An event that states its own adjacency, for another one, by as many changes as that takes."""
    stated = getattr(leaf, "adjacency", None)
    if stated is None:
        raise UnsupportedEvent(f"No accountant can price {leaf.tag}: it states no adjacency that it was proved under.")
    own = Adjacency(stated)  # a kind may keep it as text
    if own is not wanted:
        if wanted is Adjacency.ADD_REMOVE:
            raise refusal(leaf, wanted, f"it was proved under '{own}', which may reveal the number of records")
        if own is Adjacency.REPLACE:
            raise refusal(leaf, wanted, "it was proved under 'replace', where a null record may not exist")
    if costs_nothing(Leaf(leaf, own)):
        return Resolved(())
    if own is not wanted and (own, wanted) not in _TWO_CHANGES:
        raise refusal(leaf, wanted, f"it was proved under '{own}', and nothing is known of how many changes that takes")
    event = for_group(leaf, group if own is wanted else 2 * group)
    if own is not wanted and not isinstance(event, ev.NonPrivate):
        event = replace(event, adjacency=wanted)
    return Resolved((Leaf(event, wanted, count),))


def for_group(leaf: Any, k: int) -> Any:
    """Group privacy: the mechanism's guarantee for k changes at once; ``NonPrivate`` where it leaves floats."""
    if k == 1:
        return leaf
    grown = facts_of(leaf).enlarged
    if grown is None or (event := grown(leaf, k)) is None:
        raise UnsupportedAdjacency(f"{leaf.tag} has no proved guarantee for {k} changes at once.")
    return event


def refusal(leaf: ev.Event, wanted: Adjacency, reason: str) -> UnsupportedAdjacency:
    """A refusal that names the leaf, the relation and the reason."""
    return UnsupportedAdjacency(f"{leaf.tag} has no guarantee under '{wanted}': {reason}.")
