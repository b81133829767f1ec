"""An oracle that shares no code with the accountants: small discrete mechanisms, enumerated with many digits.

Every event is given a concrete mechanism that keeps its promise: noise on a number that is 0 without the record, 1 or
-1 with it (by its value) and 2 with two such records, shown only up to a few cells. A law is a list of outcomes, each
with its probability in the four states. Samplers are true mixtures, composition is a product, parallel parts are chosen
for each value. Outcomes are merged where they get many, which only hides. So the largest ``delta`` of the mechanism is
a lower bound on what any guarantee of the event must grant, certified up to the digits that are taken off.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mpmath
from mpmath import mpf

from discreet import events as ev
from discreet.adjacency import Adjacency

__all__ = ["Law", "law", "lower_delta", "swarm_delta"]

Outcome = tuple[mpf, mpf, mpf, mpf]
# probabilities without the record (N), with value 1 (A), with value -1 (B), with two of value 1 (C)
Law = list[Outcome]
N, A, B, C = range(4)

_MOST = 100
_NOTHING: Law = [(mpf(1),) * 4]
_BERRY_ESSEEN = mpf("0.56")
_CENTRES = {True: (0, 1, -1, 2), False: (0, 1, 0, 1)}  # proved for each change, or for the change that is asked about


@dataclass(frozen=True)
class Draw:
    """The choices a mechanism leaves open, and what is asked."""

    rng: random.Random
    wanted: Adjacency


def law(event: ev.Event, draw: Draw) -> Law:
    """The law of a mechanism that keeps the event's promise."""
    match event:
        case ev.Composed():
            return _product([law(part, draw) for part in event.events])
        case ev.Repeated():
            return _product([law(event.event, draw)] * min(event.count, 3))  # showing a few of many runs hides the rest
        case ev.Parallel():
            return _parallel(event, draw)
        case ev.ProvedUnder():
            return _told_size(law(event.event, draw), event.adjacency, draw)
        case ev.PoissonSampled():
            return _sampled(law(event.event, draw), mpf(event.rate))
        case ev.TruncatedPoissonSampled():
            return _displaced(law(event.event, draw), mpf(event.rate))
        case ev.FixedSizeSampled():
            return _fixed(law(event.event, draw), mpf(event.rate), draw.rng.choice((A, B)))
        case ev.Shuffled():
            return _spread(law(event.event, draw), 2, draw.rng.choice((A, B)))
        case ev.BallsInBins():
            return _spread(law(event.event, draw), min(event.bins, 3), N)
    return _told_size(_leaf(event, draw), getattr(event, "adjacency", Adjacency.ADD_REMOVE), draw)


# --- wrappers
# ----------------------------------------------------------------------------------------------------------


def _told_size(outcomes: Law, proved: Adjacency, draw: Draw) -> Law:
    """What is proved where the number of records is public may tell it: then absence has an outcome of its own."""
    if proved is Adjacency.ADD_REMOVE or draw.rng.random() < 0.5:
        return outcomes
    return [*((mpf(0), a, b, c) for _, a, b, c in outcomes), (mpf(1), mpf(0), mpf(0), mpf(0))]


def _product(laws: Sequence[Law]) -> Law:
    total: Law = [(mpf(1),) * 4]
    for one in laws:
        total = _few([tuple(x * y for x, y in zip(a, b, strict=True)) for a in total for b in one])  # type: ignore[misc]
    return total


def _few(outcomes: Law, most: int = _MOST) -> Law:
    """At most so many outcomes: the least likely are merged."""
    if len(outcomes) <= most:
        return outcomes
    outcomes = sorted(outcomes, key=max)
    cut = len(outcomes) - most + 1
    return [tuple(map(mpmath.fsum, zip(*outcomes[:cut], strict=True))), *outcomes[cut:]]  # type: ignore[list-item]


def _sampled(inner: Law, q: mpf) -> Law:
    return [(n, (1 - q) * n + q * a, (1 - q) * n + q * b, (1 - q) ** 2 * n + 2 * q * (1 - q) * a + q**2 * c)
            for n, a, b, c in inner]  # fmt: skip


def _displaced(inner: Law, q: mpf) -> Law:
    """Two records, a batch of one: the record, if drawn, takes the place of another of value -1."""
    rest = [q * b + (1 - q) * n for n, _, b, _ in inner]
    mixed = [(r, q * a + (1 - q) * r, q * b + (1 - q) * r) for r, (_, a, b, _) in zip(rest, inner, strict=True)]
    return [(n, a, b, a) for n, a, b in mixed]


def _fixed(inner: Law, q: mpf, other: int) -> Law:
    """A sample of fixed size holds the record, or another in its place."""
    mixed = [[(1 - q) * x[other] + q * x[state] for state in (A, B)] for x in inner]
    return [(b, a, b, a) for a, b in mixed]


def _spread(inner: Law, batches: int, other: int) -> Law:
    """The record is in one of the batches, at random; another record, or none, in each of the rest."""
    inner, total = _few(inner, 7), []
    for chosen in range(batches):
        outcomes: Law = [(1 / mpf(batches),) * 4]
        for batch in range(batches):
            here = inner if batch == chosen else [(x[other],) * 4 for x in inner]
            outcomes = [tuple(u * v for u, v in zip(p, x, strict=True)) for p in outcomes for x in here]  # type: ignore[misc]
        total = outcomes if not total else [
            tuple(u + v for u, v in zip(p, x, strict=True)) for p, x in zip(total, outcomes, strict=True)]  # type: ignore[misc]  # fmt: skip
    return _few([(n, a, b, a) for n, a, b, _ in total])


def _parallel(event: ev.Parallel, draw: Draw) -> Law:
    """A record of value 1 is in one part, one of value -1 in another or the same; the rest does not change."""
    first, second = draw.rng.choice(event.events), draw.rng.choice(event.events)
    one = law(first, draw)
    if first is second:
        return one
    return _product([[(n, a, n, c) for n, a, _, c in one], [(n, n, b, n) for n, _, b, _ in law(second, draw)]])


# --- leaves
# ------------------------------------------------------------------------------------------------------------


def _leaf(event: ev.Event, draw: Draw) -> Law:
    if isinstance(event, ev.NonPrivate):
        return _revealing(mpf(1))
    each = draw.wanted is Adjacency.ADD_REMOVE or event.adjacency is not draw.wanted  # type: ignore[attr-defined]
    centres = _CENTRES[each]
    match event:
        case ev.Laplace(noise_multiplier=z):
            return _cells(lambda x: _laplace(x / mpf(z)), _edges(0.0), centres)
        case ev.Gaussian(noise_multiplier=z):
            return _gaussian(mpf(z), centres)
        case ev.GDP(mu=mu):
            return _gaussian(1 / mpf(mu), centres) if mu else _NOTHING
        case ev.ZCDP(rho=rho):
            return _gaussian(1 / mpmath.sqrt(2 * mpf(rho)), centres) if rho else _NOTHING
        case ev.RDP():
            rho = min(mpf(e) / mpf(a) for a, e in zip(event.orders, event.epsilons, strict=True))
            return _gaussian(1 / mpmath.sqrt(2 * rho), centres) if rho else _NOTHING
        case ev.PureDP(epsilon=epsilon) | ev.RandomizedResponse(epsilon=epsilon, categories=2):
            return _geometric(mpf(epsilon), 1, centres)
        case ev.RandomizedResponse():
            return _response(mpf(event.epsilon), event.categories)
        case ev.ApproxDP():
            kept = 1 - mpf(event.delta)
            inner = [tuple(kept * x for x in o) for o in _geometric(mpf(event.epsilon), 1, centres)]
            return [*inner, *_revealing(mpf(event.delta), centres)]  # type: ignore[list-item]
        case ev.DiscreteLaplace():
            return _geometric(1 / mpf(event.scale), event.sensitivity, centres)
        case ev.DiscreteGaussian():
            return _discrete_gaussian(event, centres)
        case ev.Exponential(epsilon=epsilon):
            odds = mpmath.exp(mpf(epsilon) * mpf(draw.rng.uniform(-1.5, 1.0)))
            chances = [1 / (1 + odds * mpmath.exp(mpf(epsilon) * c)) for c in centres]
            return [tuple(chances), tuple(_other(odds, epsilon, c) for c in centres)]  # type: ignore[list-item]
    raise AssertionError(event)


def _other(odds: mpf, epsilon: float, c: int) -> mpf:
    scale = odds * mpmath.exp(mpf(epsilon) * c)
    return scale / (1 + scale)


def _revealing(chance: mpf, centres: Sequence[int] = (0, 1, -1, 2)) -> Law:
    return [tuple(chance if c == shown else mpf(0) for c in centres) for shown in sorted(set(centres))]  # type: ignore[misc]


def _edges(width: float) -> list[mpf]:
    return [mpf(x) for x in (-1 - width, -1, 0, 0.5, 1, 2, 2 + width)]


def _cells(tail: Callable[[mpf], mpf], edges: Sequence[mpf], centres: Sequence[int]) -> Law:
    """Cells between edges, by the upper tail of noise that is symmetric: from the side where nothing cancels."""
    edges = sorted(set(edges))
    rows = []
    for low, high in zip([None, *edges], [*edges, None], strict=True):
        row = []
        for c in centres:
            if low is None or (high is not None and high <= c):
                row.append(tail(c - high) - (0 if low is None else tail(c - low)))
            else:
                row.append(tail(low - c) - (0 if high is None else tail(high - c)))
        rows.append(tuple(map(abs, row)))
    return rows  # type: ignore[return-value]


def _laplace(x: mpf) -> mpf:
    return mpmath.exp(-x) / 2 if x > 0 else 1 - mpmath.exp(x) / 2


def _normal_tail(x: mpf) -> mpf:
    if abs(x) > 10**6:
        return mpf(0) if x > 0 else mpf(1)  # to more digits than are ever kept
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


def _gaussian(z: mpf, centres: Sequence[int]) -> Law:
    return _cells(lambda x: _normal_tail(x / z), [*_edges(0.0), -3 * z, -z, z, 1 + z, 1 + 3 * z], centres)


def _geometric(epsilon: mpf, k: int, centres: Sequence[int]) -> Law:
    """Discrete Laplace noise of scale 1/epsilon on multiples of k."""

    def above(x: int) -> mpf:  # P(noise ≥ x)
        decay = mpmath.exp(-epsilon)
        return decay**x / (1 + decay) if x > 0 else 1 - decay ** (1 - x) / (1 + decay)

    return _integers(above, k, centres)


def _discrete_gaussian(event: ev.DiscreteGaussian, centres: Sequence[int]) -> Law:
    reach = math.ceil(20 * event.sigma) + 3 * event.sensitivity + 2
    masses = [mpmath.exp(-((mpf(x) / mpf(event.sigma)) ** 2) / 2) for x in range(reach + 1)]
    tails = [mpf(0)] * (reach + 2)
    for x in range(reach, 0, -1):
        tails[x] = tails[x + 1] + masses[x]
    total = masses[0] + 2 * tails[1]

    def above(x: int) -> mpf:
        return tails[min(x, reach + 1)] / total if x > 0 else 1 - tails[min(1 - x, reach + 1)] / total

    return _integers(above, event.sensitivity, centres)


def _integers(above: Callable[[int], mpf], k: int, centres: Sequence[int]) -> Law:
    edges = sorted({-k, 0, (k + 1) // 2, 1, k, k + 1, 2 * k})
    rows = []
    for low, high in zip([None, *edges], [*edges, None], strict=True):  # cells low ≤ x < high
        row = []
        for c in (k * centre for centre in centres):
            if low is None or (high is not None and high <= c):
                row.append(above(c - high + 1) - (0 if low is None else above(c - low + 1)))
            else:
                row.append(above(low - c) - (0 if high is None else above(high - c)))
        rows.append(tuple(map(abs, row)))
    return rows  # type: ignore[return-value]


def _response(epsilon: mpf, categories: int) -> Law:
    lie = mpmath.exp(-epsilon)
    total = 1 + (categories - 1) * lie
    rest = (categories - 2) * lie / total
    return [
        (lie / total, 1 / total, lie / total, 1 / total),
        (1 / total, lie / total, 1 / total, lie / total),
        (rest,) * 4,
    ]


# --- what it shows
# -----------------------------------------------------------------------------------------------------


def sides(wanted: Adjacency, group: int = 1) -> list[tuple[int, int]]:
    """The pairs of states that neighbours have."""
    if group == 2:
        return [(C, N), (N, C)]
    return [(A, N), (N, A), (B, N), (N, B)] if wanted is Adjacency.ADD_REMOVE else [(A, B), (B, A)]


def lower_delta(outcomes: Law, epsilon: float, pairs: Sequence[tuple[int, int]]) -> mpf:
    """A certified lower bound on the mechanism's delta at epsilon: what rounding may have added is taken off."""
    growth, digits = mpmath.exp(mpf(epsilon)), mpf(10) ** (12 - mpmath.mp.dps)
    return max((mpmath.fsum(max(mpf(0), o[p] - growth * o[q] - digits * (o[p] + growth * o[q])) for o in outcomes)
                for p, q in pairs), default=mpf(0)) if outcomes else mpf(0)  # fmt: skip


def swarm_delta(outcomes: Law, count: int, epsilon: float, pairs: Sequence[tuple[int, int]]) -> mpf:
    """The same of very many runs, by the test of whether the total loss exceeds epsilon,
    and Berry and Esseen's theorem.
    """
    best = mpf(0)
    for p, q in pairs:
        kept = [(o[p], o[q]) for o in outcomes if o[p] and o[q]]
        if not kept or len(kept) < sum(1 for o in outcomes if o[p] or o[q]):
            continue
        chances = [_above(kept, side, count, epsilon) for side in (0, 1)]
        best = max(best, chances[0][0] - mpmath.exp(mpf(epsilon)) * chances[1][1])
    return best


def _above(kept: list[tuple[mpf, mpf]], side: int, count: int, level: float) -> tuple[mpf, mpf]:
    """Bounds on the probability that the total loss exceeds a level, under P (side 0) or Q."""
    losses = [mpmath.log(a / b) for a, b in kept]
    weights = [o[side] for o in kept]
    total = mpmath.fsum(weights)
    mean = mpmath.fsum(w * x for w, x in zip(weights, losses, strict=True)) / total
    variance = mpmath.fsum(w * (x - mean) ** 2 for w, x in zip(weights, losses, strict=True)) / total
    third = mpmath.fsum(w * abs(x - mean) ** 3 for w, x in zip(weights, losses, strict=True)) / total
    if variance < mpf(10) ** (40 - 2 * mpmath.mp.dps):
        return mpf(0), mpf(1)  # too small for the digits
    error = (
        _BERRY_ESSEEN * third / (variance ** mpf("1.5") * mpmath.sqrt(count)) + mpf(10) ** (20 - mpmath.mp.dps) * count
    )
    value = _normal_tail((level - count * mean) / mpmath.sqrt(count * variance))
    return value - error, value + error
