"""Privacy loss distributions (PLD), the tightest account: composed numerically, certified from below and from above.

Each leaf has a dominating pair of laws; the two directions (remove and add) are composed separately and the worse is
taken at the end. The contour engine serves sampled and plain Gaussians, alone or with anything that has a closed
transform; the grid engine serves everything that has tails.

Decision 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias, TypeVar

import numpy as np

from discreet.accounting.arrays import Interval
from discreet.accounting.facts import pair_of
from discreet.accounting.gaussian import profile_delta, profile_epsilon
from discreet.accounting.outward import FLOOR
from discreet.accounting.parts import Resolved, each_leaf
from discreet.accounting.pld.atoms import NOTHING, Atoms
from discreet.accounting.pld.bounded_range import BoundedRange
from discreet.accounting.pld.composite import gaussian_mu, pairs_of
from discreet.accounting.pld.contour import Contour
from discreet.accounting.pld.grid import LossGrid
from discreet.accounting.pld.mixtures import Kind, Mixtures
from discreet.accounting.pld.pairs import GaussianShift, LaplaceShift, Pair, reverse
from discreet.accounting.pld.replaced import ReplaceSampledGaussian
from discreet.accounting.pld.sampling import Reversed, Sampled
from discreet.accounting.pld.transforms import Transform
from discreet.accounting.sums import hopeless, pure_sum
from discreet.errors import NotCertified

__all__ = ["PLD"]

T = TypeVar("T")
Engine: TypeAlias = Contour | LossGrid
Engines: TypeAlias = tuple[Contour | None, LossGrid]  # of one direction

_LARGEST_MU = 1e100  # squares are floats
TIGHT = 1e-4  # relative width up to which an interval is left as one composition gives it


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
        return gaussian_mu(self.resolved.parts)

    @cached_property
    def _directions_or_refusal(self) -> list[Engines] | NotCertified:
        """A refusal is remembered too: what leads to it may be as costly as an answer, and is asked for as often."""
        try:
            return self._engines(lambda pair: pair)
        except NotCertified as refusal:
            return refusal

    @property
    def inverts(self) -> bool:
        """A delta is one question, as an epsilon is."""
        return False

    @property
    def refuses(self) -> bool:
        """Whether no question has an answer here."""
        return self._exact() is None and isinstance(self._directions_or_refusal, NotCertified)

    @property
    def _directions(self) -> list[Engines]:
        if isinstance(self._directions_or_refusal, NotCertified):
            raise self._directions_or_refusal.with_traceback(None)
        return self._directions_or_refusal

    @cached_property
    def _is_attained(self) -> bool:
        """Whether some mechanism has exactly the pairs that upper bounds rest on."""
        pairs = (pair for _, lattice in self._directions for pair, _ in lattice.parts)
        return all(pair.attainable[0] is pair and not pair.raised for pair in pairs)

    @cached_property
    def _attained(self) -> list[list[Engines]]:
        """What lower bounds rest on: what is below a pair that is only an envelope, one at a time, and nothing in place
        of a pair whose parameters were rounded up.
        """
        if self._is_attained:
            return [self._directions]
        pairs = [pair for _, lattice in self._directions for pair, _ in lattice.parts]
        most = max((len(pair.attainable) for pair in pairs if not pair.raised), default=0)
        return [self._engines(partial(_below, k)) for k in range(most)]

    @cached_property
    def _forward(self) -> list[tuple[Pair, int]]:
        return list(pairs_of(self.resolved.parts, forward=True))

    @cached_property
    def _backward(self) -> list[tuple[Pair, int]]:
        return list(pairs_of(self.resolved.parts, forward=False))

    def _pairs(self) -> Iterator[list[tuple[Pair, int]]]:
        """The pairs of each direction, made once: costly where they are compositions, and lower bounds ask often."""
        yield self._forward
        yield self._backward

    def _engines(self, change: Callable[[Pair], Pair]) -> list[Engines]:
        result = []
        for direction in self._pairs():
            changed = ((change(pair), count) for pair, count in direction)
            pairs = tuple((pair, count) for pair, count in changed if pair is not NOTHING)
            if not pairs:
                continue
            grid = LossGrid(pairs)  # refuses too many repetitions
            result.append((_contour(pairs, grid.infinity), grid))
            if all(reverse(pair) is pair for pair, _ in pairs):
                break  # symmetric: the other direction is the same
        return result

    def _bounds(
        self,
        both: Callable[[Engine], Interval],
        top: Callable[[Engine], float],
        bottom: Callable[[Engine, float], float],
    ) -> Interval:
        """Both directions, the worse of each; the lower side over what a real mechanism can attain."""
        if self._is_attained:
            answers = _ask_directions(self._directions, both)
            return max(low for low, _ in answers), max(high for _, high in answers)
        high = max(_ask_directions(self._directions, top))
        lows = (_ask_directions(engines, lambda engine: bottom(engine, high)) for engines in self._attained)
        return min(max((low for each in lows for low in each), default=0.0), high), high

    @cached_property
    def _is_hopeless(self) -> bool:
        """Whether all is lost, whatever else there is: also where a Gaussian's own shift is beyond floats."""
        return hopeless(self.resolved) or any(gaussian_mu((part,)) == math.inf for part in self.resolved.parts)

    def _exact(self) -> Interval | None:
        """(mu, mu) where plain Gaussians are all there is, infinities where all is lost, None otherwise."""
        if self._is_hopeless:
            return math.inf, math.inf
        return None if self._gaussian is None else (self._gaussian, self._gaussian)

    def epsilon_bounds(self, delta: float) -> Interval:
        """Certified bounds on the smallest epsilon for a delta in (0, 1)."""
        if (exact := self._exact()) is not None:
            return _gaussian_epsilons(exact[0], delta)
        if delta < FLOOR:
            return 0.0, self._at_zero()
        low, high = self._composed(delta)
        if low < high * (1 - TIGHT):
            low = min(max([low, *self._lows_of_some(delta, low)]), high)
        return low, high

    def _composed(self, delta: float) -> Interval:
        """The bounds from one composition of everything."""
        return self._bounds(
            lambda e: e.epsilon_bounds(delta),
            lambda e: e.epsilon_upper(delta),
            lambda e, high: e.epsilon_lower(delta, high),
        )

    def _lows_of_some(self, delta: float, least: float) -> Iterator[float]:
        """Lower bounds for the whole from some of its parts, which may be above ``least``: showing only those hides the
        rest.

        Each part alone, all Gaussians, and what is left as the parts that are repeated most, which make a lattice
        coarse for all others, are left out one after the other.
        """
        parts = sorted(self.resolved.parts, key=lambda part: part.count)
        gaussians = tuple(part for part in parts if gaussian_mu((part,)) is not None)
        some = {gaussians, *((part,) for part in parts), *(tuple(parts[:k]) for k in range(1, len(parts)))}
        for chosen in some - {(), tuple(parts)}:
            if pure_sum(Resolved(chosen)) <= least:
                continue
            with suppress(NotCertified):
                account = PLD(Resolved(chosen))
                yield (account._composed(delta) if account._exact() is None else account.epsilon_bounds(delta))[0]

    def delta_bounds(self, epsilon: float) -> Interval:
        """Certified bounds on the smallest delta for an epsilon of at least zero."""
        if (exact := self._exact()) is not None:
            return _gaussian_deltas(exact[0], epsilon)
        return self._bounds(
            lambda e: e.delta_bounds(epsilon), lambda e: e.delta_upper(epsilon), lambda e, _: e.delta_bounds(epsilon)[0]
        )

    def attained_loss(self) -> float:
        """A loss that some mechanism shows with positive probability: a lower bound on epsilon at delta zero.

        A Gaussian's losses have no end, however little it loses, and whatever it is composed with.
        """
        if hopeless(self.resolved) or any(gaussian_mu((part,)) for part in self.resolved.parts):
            return math.inf
        if self._exact() is not None:
            return 0.0
        lattices = [lattice for engines in self._attained for _, lattice in engines]
        return max((math.inf if each.infinity else each.ceiling for each in lattices), default=0.0)

    def epsilon(self, delta: float) -> float:
        """Upper bound."""
        if delta >= 1:
            return 0.0
        if delta < FLOOR:
            return self._at_zero()
        if self._exact() is not None:
            return self.epsilon_bounds(delta)[1]
        return max(_ask_directions(self._directions, lambda engine: engine.epsilon_upper(delta)))

    def delta(self, epsilon: float) -> float:
        """Upper bound."""
        if self._exact() is not None:
            return self.delta_bounds(epsilon)[1]
        return max(_ask_directions(self._directions, lambda engine: engine.delta_upper(epsilon)))

    def _at_zero(self) -> float:
        """Epsilon at delta zero: the largest possible loss."""
        if (exact := self._exact()) is not None:
            return math.inf if exact[0] else 0.0
        lattices = [lattice for _, lattice in self._directions]
        return max(math.inf if each.infinity else max(each.ceiling, 0.0) for each in lattices)


def _below(k: int, pair: Pair) -> Pair:
    """The k-th of what lower bounds may rest on, or the last."""
    return NOTHING if pair.raised else pair.attainable[min(k, len(pair.attainable) - 1)]


def _ask_directions(engines: list[Engines], ask: Callable[[Engine], T]) -> list[T]:
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


def _gaussian_epsilons(mu: float, delta: float) -> Interval:
    if mu in (0, math.inf):
        return mu, mu
    high = profile_epsilon(mu, delta)
    if delta < FLOOR:
        return 0.0, high
    if high == math.inf:  # beyond floats: a smaller shift is a lower bound
        return _gaussian_epsilons(min(mu, _LARGEST_MU), delta)[0], high
    low = high * (1 - 1e-10)
    while low > 0 and profile_delta(mu, low, side=-1) < delta:
        low = max(0.0, low - (high - low))
    return low, high


def _gaussian_deltas(mu: float, epsilon: float) -> Interval:
    return profile_delta(mu, epsilon, side=-1), profile_delta(mu, epsilon)


def _few(pair: Pair) -> bool:
    return not isinstance(pair, Atoms) or len(pair.losses) <= 64


def _contour(pairs: tuple[tuple[Pair, int], ...], infinity: float) -> Contour | None:
    """The contour for one direction, or None where a part has no transform, nothing decays, or all is lost anyway."""
    if infinity >= 1:
        return None
    sampled: list[tuple[float, float, int]] = []
    kinds: set[Kind] = set()
    variance, closed = 0.0, []
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
            case _:
                return None
    if len(kinds) > 1 or not (kinds or variance):
        return None
    if not kinds:
        return Contour(None, math.sqrt(variance), tuple(closed), infinity)
    rates, sigmas, counts = (np.array(column, dtype=float) for column in zip(*sampled, strict=True))
    return Contour(Mixtures(kinds.pop(), rates, sigmas, counts), math.sqrt(variance), tuple(closed), infinity)
