"""The tightest account: numerical composition of privacy losses, certified from below and from above.

Each leaf has a dominating pair of laws; the two directions (remove and add) are composed separately and the worse is
taken at the end. The contour engine serves sampled and plain Gaussians, alone or with anything that has a closed
transform; the grid engine serves everything that has tails.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TypeAlias, TypeVar

import numpy as np

from discreet import events as ev
from discreet.accounting import grid
from discreet.accounting.arrays import Interval
from discreet.accounting.basic import pure_of
from discreet.accounting.composite import NOTHING, Composite, compose
from discreet.accounting.contour import Contour
from discreet.accounting.gaussian import profile_delta, profile_epsilon
from discreet.accounting.gdp import GaussianDP, mu_of
from discreet.accounting.mixtures import Kind, Mixtures
from discreet.accounting.neighbours import Choice, Leaf, Resolved, each_leaf, resolve
from discreet.accounting.outward import FLOOR
from discreet.accounting.pairs import Atoms, BoundedRange, DiscreteGaussianShift, GaussianShift, LaplaceShift, Pair
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
_MANY = 10**15
_SMALLEST = 1e-60
_LARGEST = 1e5  # losses beyond this count as infinite
_LARGEST_MU = 400.0


def gaussian_mu(resolved: Resolved) -> float | None:
    """The mu of an event made of plain Gaussians alone, which are then priced exactly. None for any other event."""
    if all(isinstance(part, Leaf) and isinstance(part.event, (ev.Gaussian, ev.GDP)) for part in resolved.parts):
        return GaussianDP(resolved).mu
    return None


def pair_of(leaf: Leaf) -> Pair:
    """The dominating pair of a leaf, for a removed record (or, under replace, for either record)."""
    event, adjacency = leaf.event, leaf.adjacency
    match event:
        case ev.Gaussian() | ev.GDP():
            return _within(mu_of(leaf), _LARGEST_MU, GaussianShift)
        case ev.Laplace():
            return _within(pure_of(leaf), _LARGEST, LaplaceShift)
        case ev.DiscreteLaplace():
            return _discrete_laplace(event)
        case ev.DiscreteGaussian():
            return _discrete_gaussian(event)
        case ev.Exponential():
            return _within(event.epsilon, _LARGEST, BoundedRange)
        case ev.PureDP():
            return _within(event.epsilon, _LARGEST, lambda epsilon: _binary(epsilon, 0.0))
        case ev.ApproxDP():
            return _within(event.epsilon, _LARGEST, lambda epsilon: _binary(epsilon, event.delta))
        case ev.RandomizedResponse():
            return _within(event.epsilon, _LARGEST, lambda epsilon: _randomized_response(epsilon, event.categories))
        case ev.PoissonSampled():
            return _poisson(event, adjacency)
        case ev.FixedSizeSampled():
            return Symmetric(Sampled(_up(event.rate), _inner(event.event, Adjacency.REPLACE)))
    raise UnsupportedEvent(f"The pld accountant cannot price {event.tag}: it has no dominating pair. Use accountant='rdp'.")


def _up(value: float) -> float:
    """Parameters too small for double precision to compute with are rounded up, which is the safe side."""
    return max(value, _SMALLEST)


def _within(value: float, largest: float, pair: Callable[[float], Pair]) -> Pair:
    """A pair at a parameter rounded up: to what can be computed with, and beyond that to an infinite loss."""
    return pair(_up(value)) if value <= largest else Atoms(np.zeros(1), np.zeros(1), 1.0, mirrored=True)


def _binary(epsilon: float, delta: float) -> Pair:
    """Kairouz, Oh and Viswanath (2015): randomized response that fails altogether with probability delta."""
    odds = math.exp(-epsilon)
    masses = np.array([odds, 1.0]) * ((1 - delta) / (1 + odds))
    return Atoms(np.array([-epsilon, epsilon]), masses, delta, mirrored=True)


def _randomized_response(epsilon: float, categories: int) -> Pair:
    lie = math.exp(-epsilon)  # relative to the truth
    others = min(categories - 2, _MANY)  # more of them lose less
    masses = np.array([lie, others * lie, 1.0])
    losses = np.array([-epsilon, 0.0, epsilon])
    keep = masses > 0
    return Atoms(losses[keep], (masses / masses.sum())[keep], mirrored=True)


def _discrete_laplace(event: ev.DiscreteLaplace) -> Pair:
    k, s = event.sensitivity, event.scale
    if k > _MAX_ATOMS:
        raise UnsupportedEvent(f"The pld accountant cannot price DiscreteLaplace of sensitivity {k}, above {_MAX_ATOMS}.")
    if not k / s <= _LARGEST:
        return _within(math.inf, _LARGEST, LaplaceShift)
    if k / s < _SMALLEST:
        return _binary(_SMALLEST, 0.0)
    x = np.arange(k, -1, -1)  # P is centred at 0, Q at k; the ends gather a geometric tail
    decay = math.exp(-1 / s)
    with np.errstate(under="ignore"):
        masses = np.exp(-x / s) * -math.expm1(-1 / s) / (1 + decay)
    masses[0] /= -math.expm1(-1 / s)
    masses[-1] /= -math.expm1(-1 / s)
    return Atoms((k - 2 * x) / s, masses / masses.sum(), mirrored=True)


def _discrete_gaussian(event: ev.DiscreteGaussian) -> Pair:
    k, sigma = event.sensitivity, event.sigma
    if k > _LARGEST_MU * sigma or sigma < 1e-3:
        return _within(math.inf, _LARGEST, GaussianShift)
    reach = math.ceil(min(40 * sigma, _MAX_ATOMS)) + 1
    if 2 * reach > _MAX_ATOMS:
        raise UnsupportedEvent(
            f"The pld accountant cannot price DiscreteGaussian with sigma {sigma:g}: too many atoms. Use accountant='rdp'."
        )
    x = np.arange(reach, -reach - 1, -1.0)
    with np.errstate(under="ignore"):
        masses = np.exp(-(x**2) / (2 * sigma**2))
    losses = k * (k - 2 * x) / (2 * sigma**2)
    return DiscreteGaussianShift(losses, masses / masses.sum(), rho=(k / sigma) ** 2 / 2)


def _poisson(event: ev.PoissonSampled, adjacency: Adjacency) -> Pair:
    if adjacency is Adjacency.REPLACE:
        mu = gaussian_mu(resolve(event.event, _inside(event)))
        assert mu is not None  # neighbours.resolve admits Gaussians only
        if mu > _LARGEST_MU:
            return Atoms(np.zeros(1), np.array([1 - event.rate]), event.rate, mirrored=True)
        return ReplaceSampledGaussian(_up(event.rate), 1 / _up(mu))
    return Sampled(_up(event.rate), _inner(event.event, adjacency))


def _inside(event: ev.PoissonSampled) -> Adjacency:
    """The relation under which the parts inside the sample were proved."""
    return next((leaf.adjacency for leaf in ev.leaves(event.event) if hasattr(leaf, "adjacency")), Adjacency.ADD_REMOVE)


@lru_cache(maxsize=8)  # a composition is costly, and asked for again at every point of a curve
def _inner(event: ev.Event, adjacency: Adjacency) -> Pair:
    """The pair of everything that runs on one sample."""
    resolved = resolve(event, adjacency)
    mu = gaussian_mu(resolved)
    if mu is not None:
        return _within(mu, _LARGEST_MU, GaussianShift)
    return _one(list(_pairs(resolved.parts, forward=True)))


def _one(pairs: list[tuple[Pair, int]]) -> Pair:
    """A composition as one pair that knows its tails; a lone pair as it is, unless it is known by its profile only."""
    only = pairs[0][0] if len(pairs) == 1 and pairs[0][1] == 1 else None
    return compose(pairs) if only is None or isinstance(only, Supremum) else only


def _pairs(parts: tuple[Leaf | Choice, ...], *, forward: bool) -> Iterator[tuple[Pair, int]]:
    for part in parts:
        if isinstance(part, Choice):
            yield _supremum(part, forward=forward), part.count
        else:
            pair = pair_of(part)
            yield (pair if forward != part.flip else reverse(pair)), part.count


def _supremum(choice: Choice, *, forward: bool) -> Pair:
    options = [_one(list(_pairs(option, forward=forward))) for option in choice.options]
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
        return gaussian_mu(self.resolved)

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
        if any(part.count > _MANY for part in self.resolved.parts):
            raise NotCertified(f"more than {_MANY:g} repetitions are beyond the numerical account.")
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
        if delta < FLOOR:
            return 0.0, self._at_zero()
        low, high = self._bounds(lambda e: e.epsilon_bounds(delta), lambda e: e.epsilon_upper(delta))
        return (0.0 if self._raised else low), high

    def delta_bounds(self, epsilon: float) -> Interval:
        """Certified bounds on the smallest delta for an epsilon of at least zero."""
        if (exact := self._exact()) is not None:
            return _gaussian_deltas(exact[0], epsilon)
        low, high = self._bounds(lambda e: e.delta_bounds(epsilon), lambda e: e.delta_upper(epsilon))
        return (0.0 if self._raised else low), high

    @property
    def _raised(self) -> bool:
        """Whether a parameter was rounded up so far that nothing can be said from below."""
        return any(_rounded_up(leaf.event) for leaf in each_leaf(self.resolved.parts))

    def epsilon(self, delta: float) -> float:
        """Upper bound."""
        if delta >= 1:
            return 0.0
        if delta < FLOOR:
            return self._at_zero()
        if self._exact() is not None:
            return self.epsilon_bounds(delta)[1]
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
        lattices = [lattice for _, lattice in self._directions]
        return max(math.inf if each.infinity else max(each.ceiling, 0.0) for each in lattices)


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
        case Composite():
            return (pair.below,)
        case Reversed() if not pair.attained:
            return (NOTHING,)  # what lies below was computed for the other direction
        case Sampled() | Reversed() | Symmetric():
            inside = _choices(pair.pair)
            return (pair,) if inside[0] is pair.pair else tuple(replace(pair, pair=choice) for choice in inside)
    return (pair,)


def _gaussian_epsilons(mu: float, delta: float) -> Interval:
    if mu in (0, math.inf):
        return mu, mu
    high = profile_epsilon(mu, delta)
    low = high * (1 - 1e-10)
    while low > 0 and profile_delta(mu, low, side=-1) < delta:
        low = max(0.0, low - (high - low))
    return low, high


def _gaussian_deltas(mu: float, epsilon: float) -> Interval:
    return profile_delta(mu, epsilon, side=-1), profile_delta(mu, epsilon)


def _rounded_up(event: ev.Event) -> bool:
    """Whether something in the event is too small to be computed with."""
    small = any(0 < getattr(event, name, 0.0) < _SMALLEST for name in ("rate", "epsilon", "mu"))
    large = any(getattr(event, name, 0.0) > 1 / _SMALLEST for name in ("noise_multiplier", "scale", "sigma"))
    inside = event.events if isinstance(event, ev.Parallel) else (getattr(event, "event", None),)
    return small or large or any(_rounded_up(leaf) for part in inside if part is not None for leaf in ev.leaves(part))


def _few(pair: Pair) -> bool:
    return not isinstance(pair, Atoms) or len(pair.losses) <= 64


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
            case LaplaceShift() | BoundedRange() | Atoms() if math.isfinite(pair.highest) and _few(pair):
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
