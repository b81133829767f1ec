"""Facts of passes in which every record is in one batch, chosen at random: :mod:`discreet.accounting.allocation`.

Amplified under add-remove, where a record is compared with its absence from a batch, and with whatever has a dominating
pair there. Else a pass costs one event, since given the batches only one of them differs: under replace, where the pair
has a mixture on both sides that nothing is proved of; under zero-out, where a null record in the same batch may tell
which batch that is; and for what is known by a curve alone.

Decision 230.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from discreet import events as ev
from discreet.accounting.allocation import MOST_BINS, Allocated, Allocation
from discreet.accounting.allocation_ratio import FAST
from discreet.accounting.arrays import Array
from discreet.accounting.facts import Facts, register
from discreet.accounting.leaves.samplers import proved_under, refuse_groups
from discreet.accounting.leaves.wrappers import one_event_a_pass
from discreet.accounting.neighbours import resolve
from discreet.accounting.parts import Leaf, Part, Resolved
from discreet.accounting.pld.composite import composed_pair
from discreet.accounting.pld.pairs import Pair
from discreet.accounting.rdp import rdp_curve
from discreet.accounting.sums import mu_sum, pure_epsilon, rho_sum
from discreet.adjacency import Adjacency
from discreet.errors import NotCertified, UnsupportedEvent

__all__: list[str] = []

_POWERS = (1.1, 1.2, 1.4, 1.7, 2.0, 3.0)  # of which Hölder's inequality takes the best
_AIM = 1e-5
_MOST_LOSS, _LEAST_LOSS = 40.0, 1e-3  # of one batch, with that probability, between which a pass is amplified


def _bins(event: ev.BallsInBins, count: int, wanted: Adjacency, group: int) -> Resolved:
    if wanted is Adjacency.ADD_REMOVE and _is_amplified(event):
        refuse_groups(event, wanted, group)
        return Resolved((Leaf(event, wanted, count),))
    if event.bins == 1:
        return resolve(event.event * count, wanted, group)
    return one_event_a_pass(event, count, wanted, group)


@lru_cache(maxsize=1024)
def _is_amplified(event: ev.BallsInBins) -> bool:
    """Whether the law of the mean ratio can be computed, and says more than one batch alone.

    It does not where a batch tells nearly everything (one of t differs by log t at most, and a lattice of floats does
    not hold the ratios), nor where it tells so little that the lattice is coarser.
    """
    if event.bins == 1 or not _has_pair(event.event):
        return False
    pair = composed_pair(event.event, Adjacency.ADD_REMOVE)
    beyond_most, beyond_least = pair.tails(np.array([_MOST_LOSS, _LEAST_LOSS]))[0]
    if beyond_most > _AIM or beyond_least <= _AIM:
        return False
    try:
        _allocated(event).law(FAST, above=True)
    except NotCertified:
        return False
    return True


def _has_pair(event: ev.Event) -> bool:
    """Whether all of an event is proved under add-remove and has a dominating pair that is not lost from the start."""
    if set(proved_under(event)) != {Adjacency.ADD_REMOVE}:
        return False
    try:
        return composed_pair(event, Adjacency.ADD_REMOVE).infinity < 1
    except (UnsupportedEvent, NotCertified):
        return False


@lru_cache(maxsize=8)  # a law of so many bins is costly, and asked for by every view
def _allocated(event: ev.BallsInBins) -> Allocated:
    pair = composed_pair(event.event, Adjacency.ADD_REMOVE)
    return Allocated(min(event.bins, MOST_BINS), pair, fewer=event.bins > MOST_BINS)


def _pair(event: ev.BallsInBins, adjacency: Adjacency) -> Pair:
    return Allocation(_allocated(event))


def _pure(event: ev.BallsInBins, adjacency: Adjacency) -> float:
    """That of one batch: a mean of ratios is at most the largest."""
    return pure_epsilon(event.event, adjacency)


@np.errstate(over="ignore", invalid="ignore")
def _curve(event: ev.BallsInBins, adjacency: Adjacency, orders: Array) -> Array:
    c, laws = orders - 1, _allocated(event)
    removed = {p: (p * orders - 1) * rdp_curve(event.event, p * orders, adjacency) for p in _POWERS}
    added = {p: p * c * rdp_curve(event.event, p * c + 1, adjacency) for p in _POWERS}
    sides = [laws.log_moment(c, forward=i == 0, batch=batch) for i, batch in enumerate((removed, added))]
    amplified = np.maximum(np.max(sides, axis=0), 0.0) / c * (1 + 1e-12)
    return np.asarray(np.fmin(rdp_curve(event.event, orders, adjacency), amplified))


def _rho(event: ev.BallsInBins, adjacency: Adjacency) -> float | None:
    """That of one batch: given the batches, only one differs."""
    return _total(rho_sum, event, adjacency)


def _mu(event: ev.BallsInBins, adjacency: Adjacency) -> float | None:
    """That of one batch, where all of it is Gaussian."""
    return _total(mu_sum, event, adjacency)


def _total(add: Callable[[tuple[Part, ...]], float], event: ev.BallsInBins, adjacency: Adjacency) -> float | None:
    try:
        resolved = resolve(event.event, adjacency)
        return None if resolved.slack else add(resolved.parts)
    except UnsupportedEvent:
        return None


register(ev.BallsInBins, Facts(pure=_pure, mu_bound=_mu, rho=_rho, pair=_pair, curve=_curve, restated=_bins))
