"""The tightest account: numerical composition of privacy losses, certified from below and from above.

Each leaf has a dominating pair of laws; the two directions (remove and add) are composed separately and the worse is
taken at the end. The contour engine serves sampled and plain Gaussians, alone or with anything that has a closed
transform; the grid engine serves everything that has tails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, TypeVar

import numpy as np

from discreet import events as ev
from discreet.accounting import grid
from discreet.accounting.arrays import Interval
from discreet.accounting.contour import Contour
from discreet.accounting.gaussian import gaussian_delta, gaussian_epsilon
from discreet.accounting.mixtures import Kind, Mixtures
from discreet.accounting.neighbours import Choice, Leaf, Resolved, each_leaf, resolve
from discreet.accounting.pairs import Atoms, BoundedRange, GaussianShift, LaplaceShift, Pair
from discreet.accounting.sampling import ReplaceSampledGaussian, Reversed, Sampled, Supremum, Symmetric, reverse
from discreet.accounting.transforms import Transform
from discreet.accounting.views import hopeless
from discreet.adjacency import Adjacency
from discreet.errors import NotCertified, UnsupportedEvent

__all__ = ["PLD", "pair_of"]

T = TypeVar("T")
Engine: TypeAlias = Contour | grid.Grid
Engines: TypeAlias = tuple[Contour | None, grid.Grid]  # of one direction

_MAX_ATOMS = 200_000
_SMALLEST = 1e-60


def gaussian_mu(event: ev.Event, adjacency: Adjacency) -> float | None:
    """The mu of an event made of Gaussians alone: squares add up. None for any other event."""
    total = 0.0
    for part in resolve(event, adjacency).parts:
        if isinstance(part, Choice):
            return None
        leaf = part.event
        if isinstance(leaf, ev.Gaussian):
            total += part.count / leaf.noise_multiplier**2 if leaf.noise_multiplier > 1e-150 else math.inf
        elif isinstance(leaf, ev.GDP):
            total += part.count * leaf.mu**2
        else:
            return None
    return math.sqrt(total)


def pair_of(leaf: Leaf) -> Pair:
    """The dominating pair of a leaf, for a removed record (or, under replace, for either record)."""
    event, adjacency = leaf.event, leaf.adjacency
    match event:
        case ev.Gaussian() | ev.GDP():
            return GaussianShift(_up(gaussian_mu(event, adjacency) or 0.0))
        case ev.Laplace():
            return LaplaceShift(_up(1 / event.noise_multiplier))
        case ev.DiscreteLaplace():
            return _discrete_laplace(event)
        case ev.DiscreteGaussian():
            return _discrete_gaussian(event)
        case ev.Exponential():
            return BoundedRange(_up(event.epsilon))
        case ev.PureDP():
            return _binary(_up(event.epsilon), 0.0)
        case ev.ApproxDP():
            return _binary(_up(event.epsilon), event.delta)
        case ev.RandomizedResponse():
            return _randomized_response(event)
        case ev.PoissonSampled():
            return _poisson(event, adjacency)
        case ev.FixedSizeSampled():
            return Symmetric(Sampled(_up(event.rate), _inner(event.event, Adjacency.REPLACE)))
    raise UnsupportedEvent(f"The pld accountant cannot price {event.tag}: it has no dominating pair. Use accountant='rdp'.")


def _up(value: float) -> float:
    """Parameters too small for double precision to compute with are rounded up, which is the safe side."""
    return max(value, _SMALLEST)


def _binary(epsilon: float, delta: float) -> Pair:
    """Kairouz, Oh and Viswanath (2015): randomized response that fails altogether with probability delta."""
    odds = math.exp(-epsilon)
    masses = np.array([odds, 1.0]) * ((1 - delta) / (1 + odds))
    return Atoms(np.array([-epsilon, epsilon]), masses, delta)


def _randomized_response(event: ev.RandomizedResponse) -> Pair:
    epsilon = _up(event.epsilon)
    lie = math.exp(-epsilon)  # relative to the truth
    masses = np.array([lie, (event.categories - 2) * lie, 1.0])
    losses = np.array([-epsilon, 0.0, epsilon])
    keep = masses > 0
    return Atoms(losses[keep], (masses / masses.sum())[keep])


def _discrete_laplace(event: ev.DiscreteLaplace) -> Pair:
    k, s = event.sensitivity, event.scale
    if k > _MAX_ATOMS:
        raise UnsupportedEvent(f"The pld accountant cannot price DiscreteLaplace of sensitivity {k}, above {_MAX_ATOMS}.")
    x = np.arange(k, -1, -1)  # P is centred at 0, Q at k; the ends gather a geometric tail
    decay = math.exp(-1 / s)
    with np.errstate(under="ignore"):
        masses = np.exp(-x / s) * -math.expm1(-1 / s) / (1 + decay)
    masses[0] /= -math.expm1(-1 / s)
    masses[-1] /= -math.expm1(-1 / s)
    return Atoms((k - 2 * x) / s, masses / masses.sum())


def _discrete_gaussian(event: ev.DiscreteGaussian) -> Pair:
    k, sigma = event.sensitivity, event.sigma
    reach = math.ceil(40 * sigma) + 1
    if 2 * reach > _MAX_ATOMS:
        raise UnsupportedEvent(
            f"The pld accountant cannot price DiscreteGaussian with sigma {sigma:g}: too many atoms. Use accountant='rdp'."
        )
    x = np.arange(reach, -reach - 1, -1.0)
    with np.errstate(under="ignore"):
        masses = np.exp(-(x**2) / (2 * sigma**2))
    losses = k * (k - 2 * x) / (2 * sigma**2)
    return Atoms(losses, masses / masses.sum())


def _poisson(event: ev.PoissonSampled, adjacency: Adjacency) -> Pair:
    if adjacency is Adjacency.REPLACE:
        mu = gaussian_mu(event.event, _inside(event))
        assert mu is not None  # neighbours.resolve admits Gaussians only
        return ReplaceSampledGaussian(_up(event.rate), 1 / _up(mu))
    return Sampled(_up(event.rate), _inner(event.event, adjacency))


def _inside(event: ev.PoissonSampled) -> Adjacency:
    """The relation under which the parts inside the sample were proved."""
    return next((leaf.adjacency for leaf in ev.leaves(event.event) if hasattr(leaf, "adjacency")), Adjacency.ADD_REMOVE)


def _inner(event: ev.Event, adjacency: Adjacency) -> Pair:
    """The pair of everything that runs on one sample."""
    mu = gaussian_mu(event, adjacency)
    if mu is not None:
        return GaussianShift(_up(mu))
    parts = list(_pairs(resolve(event, adjacency).parts, forward=True))
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0]
    return grid.compose(parts)


def _pairs(parts: tuple[Leaf | Choice, ...], *, forward: bool) -> Iterator[tuple[Pair, int]]:
    for part in parts:
        if isinstance(part, Choice):
            yield _supremum(part, forward=forward), part.count
        else:
            pair = pair_of(part)
            yield (pair if forward != part.flip else reverse(pair)), part.count


def _supremum(choice: Choice, *, forward: bool) -> Pair:
    options = []
    for option in choice.options:
        pairs = list(_pairs(option, forward=forward))
        options.append(pairs[0][0] if len(pairs) == 1 and pairs[0][1] == 1 else grid.compose(pairs))
    if all(isinstance(pair, GaussianShift) for pair in options):
        return max(options, key=lambda pair: pair.mu)  # type: ignore[attr-defined]
    return Supremum(tuple(options)) if len(options) > 1 else options[0]


@dataclass(frozen=True)
class PLD:
    """Privacy-loss distributions of a resolved event."""

    resolved: Resolved

    def __post_init__(self) -> None:
        if not hopeless(self.resolved):
            for leaf in each_leaf(self.resolved.parts):
                pair_of(leaf)  # refuse now, not at the first question

    @cached_property
    def _gaussian(self) -> float | None:
        """The total mu when only plain Gaussians are involved: then everything is exact."""
        total = 0.0
        for part in self.resolved.parts:
            if not isinstance(part, Leaf) or not isinstance(part.event, (ev.Gaussian, ev.GDP)):
                return None
            total += part.count * (gaussian_mu(part.event, part.adjacency) or 0.0) ** 2
        return math.sqrt(total)

    @cached_property
    def _directions(self) -> list[Engines]:
        return self._engines(lambda pair: pair)

    @cached_property
    def _attained(self) -> list[list[Engines]]:
        """What lower bounds rest on: pairs that are only envelopes give way to what is below them, one at a time."""
        choices = [(pair, _choices(pair)) for _, lattice in self._directions for pair, _ in lattice.parts]
        if all(found[0] is pair for pair, found in choices):
            return []
        most = max(len(found) for _, found in choices)
        return [
            self._engines(lambda pair, k=k: _choices(pair)[min(k, len(_choices(pair)) - 1)])  # type: ignore[misc]
            for k in range(most)
        ]

    def _engines(self, change: Callable[[Pair], Pair]) -> list[Engines]:
        result = []
        for forward in (True, False):
            pairs = tuple((change(pair), count) for pair, count in _pairs(self.resolved.parts, forward=forward))
            result.append((_contour(pairs), grid.Grid(pairs)))
            if all(reverse(pair) is pair for pair, _ in pairs):
                break  # symmetric: the other direction is the same
        return result

    def _bounds(self, both: Callable[[Engine], Interval], top: Callable[[Engine], float]) -> Interval:
        """Both directions, the worse of each; the lower side over what a real mechanism can attain."""
        if not self._attained:
            answers = _asked(self._directions, both)
            return max(low for low, _ in answers), max(high for _, high in answers)
        high = max(_asked(self._directions, top))
        low = max(low for engines in self._attained for low, _ in _asked(engines, both))
        return min(low, high), high

    def _exact(self) -> Interval | None:
        """(mu, mu) where plain Gaussians are all there is, infinities where all is lost, None otherwise."""
        if hopeless(self.resolved):
            return math.inf, math.inf
        return None if self._gaussian is None else (self._gaussian, self._gaussian)

    def epsilon_bounds(self, delta: float) -> Interval:
        """Certified bounds on the smallest epsilon for a delta in (0, 1)."""
        if (exact := self._exact()) is not None:
            return _gaussian_epsilons(exact[0], delta)
        low, high = self._bounds(lambda e: e.epsilon_bounds(delta), lambda e: e.epsilon_upper(delta))
        return (low if low > 1e3 * _SMALLEST else 0.0), high

    def delta_bounds(self, epsilon: float) -> Interval:
        """Certified bounds on the smallest delta for an epsilon of at least zero."""
        if (exact := self._exact()) is not None:
            return _gaussian_deltas(exact[0], epsilon)
        return self._bounds(lambda e: e.delta_bounds(epsilon), lambda e: e.delta_upper(epsilon))

    def epsilon(self, delta: float) -> float:
        """Upper bound."""
        if self._exact() is not None or delta <= 0 or delta >= 1:
            return self.epsilon_bounds(delta)[1] if 0 < delta < 1 else (0.0 if delta >= 1 else self._at_zero())
        return max(_asked(self._directions, lambda engine: engine.epsilon_upper(delta)))

    def delta(self, epsilon: float) -> float:
        """Upper bound."""
        if self._exact() is not None:
            return self.delta_bounds(epsilon)[1]
        return max(_asked(self._directions, lambda engine: engine.delta_upper(epsilon)))

    def _at_zero(self) -> float:
        """Epsilon at delta zero: the largest possible loss."""
        if (exact := self._exact()) is not None:
            return math.inf if exact[0] else 0.0
        return max(sum(n * p.highest for p, n in g.parts) if not g.infinity else math.inf for _, g in self._directions)


def _asked(engines: list[Engines], ask: Callable[[Engine], T]) -> list[T]:
    """Ask each direction, by the contour where it can certify an answer."""
    answers = []
    for contour, lattice in engines:
        try:
            if contour is None:
                raise NotCertified("no contour")
            answers.append(ask(contour))
        except NotCertified:
            answers.append(ask(lattice))
    return answers


def _choices(pair: Pair) -> tuple[Pair, ...]:
    """What a neighbour or a mechanism can really be, where the pair is an envelope; the pair itself elsewhere."""
    match pair:
        case Supremum():
            return tuple(choice for part in pair.pairs for choice in _choices(part))
        case BoundedRange():
            return pair.members
        case grid.Composite():
            return (pair.below,) if pair.below is not None else (pair,)
        case Sampled() | Reversed() | Symmetric():
            inside = _choices(pair.pair)
            return (pair,) if inside[0] is pair.pair else tuple(replace(pair, pair=choice) for choice in inside)
    return (pair,)


def _gaussian_epsilons(mu: float, delta: float) -> Interval:
    if mu in (0, math.inf):
        return mu, mu
    value = gaussian_epsilon(noise_multiplier=1 / mu, delta=delta)
    return gaussian_epsilon(noise_multiplier=1 / mu, delta=min(1.0, delta * (1 + 1e-10))), value


def _gaussian_deltas(mu: float, epsilon: float) -> Interval:
    if mu in (0, math.inf):
        return (0.0, 0.0) if mu == 0 else (1.0, 1.0)
    value = gaussian_delta(noise_multiplier=1 / mu, epsilon=epsilon)
    return value * (1 - 1e-10), value


def _contour(pairs: tuple[tuple[Pair, int], ...]) -> Contour | None:
    """The contour for one direction, or None where a part has no transform or nothing decays."""
    sampled: list[tuple[float, float, int]] = []
    kinds: set[Kind] = set()
    variance, closed, infinity = 0.0, [], 0.0
    for pair, count in pairs:
        match pair:
            case GaussianShift():
                variance += count * pair.mu**2
            case Sampled(rate, GaussianShift(mu)) if 0 < rate < 1 and mu > 0:
                sampled.append((rate, 1 / mu, count))
                kinds.add("remove")
            case Reversed(Sampled(rate, GaussianShift(mu))) if 0 < rate < 1 and mu > 0:
                sampled.append((rate, 1 / mu, count))
                kinds.add("add")
            case ReplaceSampledGaussian(rate, sigma):
                sampled.append((rate, sigma, count))
                kinds.add("replace")
            case LaplaceShift() | BoundedRange() | Atoms() if not isinstance(pair, Atoms) or len(pair.losses) <= 64:
                closed.append((Transform(pair), count))
                infinity = -math.expm1(math.log1p(-infinity) + count * math.log1p(-min(pair.infinity, 1 - 1e-16)))
            case _:
                return None
    if len(kinds) > 1 or not (kinds or variance):
        return None
    if not kinds:
        return Contour(None, math.sqrt(variance), tuple(closed), infinity)
    rates, sigmas, counts = (np.array(column, dtype=float) for column in zip(*sampled, strict=True))
    return Contour(Mixtures(kinds.pop(), rates, sigmas, counts), math.sqrt(variance), tuple(closed), infinity)
