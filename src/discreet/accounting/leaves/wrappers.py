"""Facts of wrappers that are restated by what is inside them: passes, proofs under one adjacency, partitions,
and one of several.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

from discreet import events as ev
from discreet.accounting.facts import Facts, register
from discreet.accounting.neighbours import refusal, resolve
from discreet.accounting.outward import times
from discreet.accounting.parts import Choice, Leaf, Part, Resolved
from discreet.adjacency import Adjacency
from discreet.errors import UnsupportedAdjacency

__all__: list[str] = []


def _inside(event: Any, count: int, wanted: Adjacency, group: int) -> Resolved:
    return resolve(event.event * count, wanted, group)


def one_event_a_pass(event: Any, count: int, wanted: Adjacency, group: int) -> Resolved:
    """A pass costs one event: given the batches, only one of them differs. No amplification is claimed, so that nothing
    follows from below.
    """
    return replace(_inside(event, count, wanted, group), is_loose=True)


def _shuffled(event: ev.Shuffled, count: int, wanted: Adjacency, group: int) -> Resolved:
    if wanted is not Adjacency.REPLACE:
        raise refusal(event, wanted, "a shuffle fixes the number of records, so it is proved under 'replace' only")
    return one_event_a_pass(event, count, wanted, group)


def _proved_under(event: ev.ProvedUnder, count: int, wanted: Adjacency, group: int) -> Resolved:
    if wanted is not event.adjacency:
        only = f"it holds under '{event.adjacency}' only, because it takes another fact as public"
        raise refusal(event, wanted, only)
    return _inside(event, count, wanted, group)


def _parallel(event: ev.Parallel, count: int, wanted: Adjacency, group: int) -> Resolved:
    """Under add-remove one part sees the change.

    Under replace the record may stay in its part, or leave one and enter another: the worst of all. So under zero-out:
    a null record has lost what said which part it was in, and is counted in any of them.
    """
    parts = list(dict.fromkeys(event.events))
    crosses = wanted is not Adjacency.ADD_REMOVE
    if len(parts) == 1 and not crosses:
        return resolve(parts[0] * count, wanted, group)
    if group > 1:
        raise refusal(event, wanted, "a group may spread over the parts; ask for the group's guarantee of the whole")
    resolved = [resolve(part, wanted) for part in parts]
    options = [each.parts for each in resolved]
    for left, entered in permutations(parts if len(parts) > 1 else parts * 2, 2) if crosses else ():
        try:
            out, into = (resolve(part, Adjacency.ADD_REMOVE).parts for part in (left, entered))
        except UnsupportedAdjacency as reason:
            why = "a record may leave one part and enter another, so every part must hold under 'add-remove', but "
            raise refusal(event, wanted, f"{why}{reason}".rstrip(".")) from None
        options.append(out + tuple(_flip(part) for part in into))
    charged = tuple(filter(None, options))  # one that charges nothing is below every other
    return Resolved((Choice(charged, count, event),) if charged else (), is_loose=any(r.is_loose for r in resolved))


def _one_of(event: ev.OneOf, count: int, wanted: Adjacency, group: int) -> Resolved:
    """The worst of all, whichever it is: neighbours run the same one."""
    options = [resolve(part, wanted, group) for part in event.events]
    charged = tuple(option.ideal for option in options if option.ideal)
    slack, is_loose = times(max(o.slack for o in options), count), any(o.is_loose for o in options)
    return Resolved((Choice(charged, count, event),) if charged else (), slack, is_loose)


def _flip(part: Part) -> Part:
    if isinstance(part, Leaf):
        return replace(part, flip=not part.flip)
    return replace(part, options=tuple(tuple(_flip(inner) for inner in option) for option in part.options))


register(ev.Shuffled, Facts(restated=_shuffled))
register(ev.ProvedUnder, Facts(restated=_proved_under))
register(ev.OneOf, Facts(restated=_one_of))
register(ev.Parallel, Facts(restated=_parallel))
