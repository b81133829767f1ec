"""Facts of passes in which every record is in one batch, chosen at random: :mod:`discreet.accounting.allocation`.

Amplified under add-remove, where a record is compared with its absence from a batch, and with whatever has a dominating
pair there. Else a pass costs one event, since given the batches only one of them differs: under replace, where the pair
has a mixture on both sides that nothing is proved of; under zero-out, where a null record in the same batch may tell
which batch that is; and for what is known by a curve alone.

``KeptBins`` keeps its bins over passes, with correlated noise. A record of bin i moves C times the sums by c_i = C·u_i;
let K be the Gram matrix of these over the squared noise. Then S/t is the mean of exp(g_i - K_ii/2), g ~ N(0, K), and
Kahane's inequality (1986) says: where K ≤ K' entry by entry, E f(S) ≤ E f(S') for every convex f. The majorant
ρ11ᵀ + (κ - ρ)I, κ the largest entry on the diagonal and ρ the largest off it, is a common factor times an independent
mean: one Gaussian event and one pass over independent bins. By joint convexity the bins may first be divided into m
interleaved groups, so that close bins are in different ones and ρ is smaller; m is chosen from the event alone.

Contributions x_s of norm at most one that are chosen after earlier outputs are covered where C has no negative entry.
Row r of Cx is then moved, by a record of bin i, by a vector m_i with ⟨m_i, m_j⟩ ≤ (Cu_i)_r (Cu_j)_r, whatever the past.
Kahane's inequality holds for positive weights too, E f(Σ w_i exp(g_i - K_ii/2)); so from the last row to the first,
with the past and the later rows' (independent) factors as weights, each row's factors may be replaced by those of
x = 1. ∎

Decision 230.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from discreet import events as ev
from discreet.accounting.allocation import FAST, MOST_BINS, Allocated, Allocation
from discreet.accounting.arrays import Array
from discreet.accounting.facts import Facts, register
from discreet.accounting.leaves.samplers import proved_under, refuse_groups
from discreet.accounting.leaves.wrappers import one_event_a_pass
from discreet.accounting.neighbours import resolve
from discreet.accounting.parts import Leaf, Part, Resolved
from discreet.accounting.pld.composite import compose, composed_pair, pairs_of
from discreet.accounting.pld.composition import PLD
from discreet.accounting.pld.pairs import Pair
from discreet.accounting.rdp import rdp_curve
from discreet.accounting.sums import mu_sum, pure_epsilon, rho_sum
from discreet.adjacency import Adjacency
from discreet.errors import NotCertified, UnsupportedEvent

__all__: list[str] = []

_POWERS = (1.1, 1.2, 1.4, 1.7, 2.0, 3.0)  # of which Hölder's inequality takes the best
_ORDERS = 32  # integer orders by which groupings are compared
_AIM = 1e-5  # the delta at which they are
_MOST_LOSS, _LEAST_LOSS = 40.0, 1e-3  # of one batch, with that probability, between which a pass is amplified
_TRIED = 4  # so many of the best are priced in full


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


@lru_cache(maxsize=16)  # a law of so many bins is costly, and asked for by every view
def _allocated(event: ev.BallsInBins) -> Allocated:
    return Allocated(min(event.bins, MOST_BINS), composed_pair(event.event, Adjacency.ADD_REMOVE))


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


# --- bins that are kept ----------------------------------------------------------------------------------------------


def _kept(event: ev.KeptBins, count: int, wanted: Adjacency, group: int) -> Resolved:
    if wanted is not Adjacency.ADD_REMOVE or group > 1:
        return resolve(_alone(event) * count, wanted, group)
    return Resolved((Leaf(event, wanted, count),))


@lru_cache(maxsize=16)
def _kept_pair(event: ev.KeptBins, adjacency: Adjacency) -> Pair:
    """The majorant's, of which nothing follows from below."""
    pairs = list(pairs_of(resolve(majorant(event), adjacency).parts, forward=True))
    pairs = [(replace(pair, lower=False) if isinstance(pair, Allocation) else pair, count) for pair, count in pairs]
    return pairs[0][0] if len(pairs) == 1 and isinstance(pairs[0][0], Allocation) else compose(pairs)


def _kept_curve(event: ev.KeptBins, adjacency: Adjacency, orders: Array) -> Array:
    return rdp_curve(majorant(event), orders, adjacency)


def _alone(event: ev.KeptBins) -> ev.Event:
    """Bins that are known: the largest sensitivity."""
    return ev.Gaussian(noise_multiplier=event.noise_multiplier / math.sqrt(event.products[0]) * (1 - 1e-12))


@lru_cache(maxsize=64)
def majorant(event: ev.KeptBins) -> ev.Event:
    """What is priced instead: of all groupings the one that looks cheapest."""
    bins = event.bins
    beyond_floats = not 1e-100 < event.noise_multiplier < 1e100
    if bins == 1 or beyond_floats or max(event.products[1:], default=0.0) >= event.products[0]:
        return _alone(event)
    groups = sorted({*range(1, min(bins, 32) + 1), *(math.ceil(bins / n) for n in range(1, 33))})
    likely = sorted(groups, key=lambda m: _rough_epsilon(*_grouped(event, m)))[:_TRIED]
    return min((_independent(*_grouped(event, m)) for m in likely), key=_epsilon)


def _independent(bins: int, common: float, rest: float) -> ev.Event:
    """A common factor and an independent mean."""
    parts: list[ev.Event] = [ev.Gaussian(noise_multiplier=(1 - 1e-12) / math.sqrt(common))] if common > 0 else []
    if rest > 0:
        parts.append(ev.BallsInBins(bins=bins, event=ev.Gaussian(noise_multiplier=(1 - 1e-12) / math.sqrt(rest))))
    return ev.Composed(events=tuple(parts))


def _epsilon(event: ev.Event) -> float:
    try:
        return PLD(resolve(event, Adjacency.ADD_REMOVE)).epsilon(_AIM)
    except NotCertified:
        return math.inf


def _grouped(event: ev.KeptBins, groups: int) -> tuple[int, float, float]:
    """Bins of the smallest of so many interleaved groups, ρ, and κ - ρ, rounded up."""
    squared = event.noise_multiplier**2
    common = max(event.products[groups::groups], default=0.0) / squared
    largest = max(event.products[0] / squared, common)
    return max(1, event.bins // groups), common, (largest - common) * (1 + 1e-12)


def _rough_epsilon(bins: int, common: float, rest: float) -> float:
    """Epsilon by Rényi divergences of integer orders: E S^α is α! times a coefficient of (Σ E ℓ^j x^j/j!)^t."""
    j = np.arange(_ORDERS + 1)
    factorials = np.array([math.lgamma(i + 1) for i in j])
    logs = _log_power(j * (j - 1) * rest / 2 - factorials, bins)
    alpha = j[2:]
    moments = (logs + factorials)[2:] - alpha * math.log(bins)
    return float(np.min(alpha * common / 2 + (moments - math.log(_AIM)) / (alpha - 1)))


def _log_power(logs: Array, count: int) -> Array:
    """Logarithms of the first coefficients of a power of a series whose coefficients are positive."""
    total: Array | None = None
    while True:
        if count & 1:
            total = logs if total is None else _log_product(total, logs)
        count >>= 1
        if not count:
            assert total is not None
            return total
        logs = _log_product(logs, logs)


def _log_product(a: Array, b: Array) -> Array:
    return np.array([np.logaddexp.reduce(a[: i + 1] + b[i::-1]) for i in range(len(a))])


register(ev.KeptBins, Facts(pair=_kept_pair, curve=_kept_curve, restated=_kept))
