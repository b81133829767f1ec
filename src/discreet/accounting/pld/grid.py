"""The grid engine: certified bounds for one direction of a composition, from lattices fine enough for the question.

It serves what the contour cannot: losses with atoms, whose characteristic functions do not decay. A pair that runs
alone is answered from its own profile; anything else is put on a lattice twice, never too low and never too high
(:mod:`discreet.accounting.pld.lattice`), and composed (:mod:`discreet.accounting.pld.convolution`).

Decision 223.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias, TypeVar

import numpy as np

from discreet.accounting.arrays import Interval
from discreet.accounting.outward import FLOOR, times
from discreet.accounting.pld.convolution import Composition, union
from discreet.accounting.pld.lattice import Lattice, lower, slip, upper
from discreet.accounting.pld.pairs import TINY, Pair
from discreet.accounting.pld.sampling import Supremum
from discreet.accounting.views import solve_epsilon
from discreet.errors import NotCertified

__all__ = ["MOST_REPETITIONS", "LossGrid"]

T = TypeVar("T")
Version: TypeAlias = Callable[[Pair, float, float], Lattice]

MOST_REPETITIONS = 10**15


@dataclass(frozen=True)
class LossGrid:
    """One direction of a composition, as pairs with repetitions."""

    parts: tuple[tuple[Pair, int], ...]
    _made: dict[tuple[Version, float, float], Composition] = field(default_factory=dict, compare=False, repr=False)
    _steps: dict[float, float] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self._total > MOST_REPETITIONS:
            raise NotCertified(f"more than {MOST_REPETITIONS:g} repetitions are beyond the numerical account.")

    @cached_property
    def infinity(self) -> float:
        """Probability of an infinite loss."""
        return union([(pair.infinity, count) for pair, count in self.parts])

    @cached_property
    def _total(self) -> int:
        return max(1, sum(count for _, count in self.parts))

    def step(self, tail: float = 1e-30) -> float:
        """Fine enough that the lattice adds a hundred-thousandth of the losses' own variance, if memory allows."""
        if tail not in self._steps:
            self._steps[tail] = self._finest(tail)
        return self._steps[tail]

    def _finest(self, tail: float) -> float:
        variance = reach = atom = size = 0.0
        for pair, count in self.parts:
            spread, low, high = _extent(pair, tail / self._total)
            variance += count * spread
            reach = max(reach, high - low)
            size = max(size, abs(low), abs(high))
            atom = max(atom, pair.atom)
        width = 24 * math.sqrt(variance) + 2 * reach
        wanted = min(0.01 * math.sqrt(variance / self._total), width / max(pair.resolution for pair, _ in self.parts))
        step = max(wanted, width / (1 << 20), size * 2.0**-40, 1e-300)
        return atom / math.ceil(atom / step) if atom else step

    def _laws(self, version: Version, step: float, tail: float) -> list[tuple[Lattice, int]]:
        laws = [(version(pair, step, tail / self._total), count) for pair, count in self.parts]
        if not all(law.masses.any() for law, _ in laws):
            raise NotCertified("a loss is too small for the lattice.")
        return laws

    def _ask(self, version: Version, tail: float, question: Callable[[Composition], T]) -> T:
        """Put a question to the composition, on a coarser lattice where the fine one does not fit in memory."""
        cut = tail if self._is_cut(tail) else 0.0
        for coarser in (1, 4, 16):
            step = self.step(tail) * coarser
            key = (version, step, cut)
            if key not in self._made:
                self._made[key] = Composition(self._laws(version, step, tail))
            try:
                return question(self._made[key])
            except NotCertified as error:
                reason = error
        raise reason

    def _is_cut(self, tail: float) -> bool:
        """Whether lattices depend on where tails are cut; those of losses that end do not."""
        return any(pair.highest == math.inf or pair.sharpened(tail) is not pair for pair, _ in self.parts)

    @property
    def _alone(self) -> Pair | None:
        """The only pair, when it is run once: then its profile is the answer."""
        return self.parts[0][0] if len(self.parts) == 1 and self.parts[0][1] == 1 else None

    def delta_bounds(self, epsilon: float) -> Interval:
        """Certified bounds on delta(epsilon)."""
        if self.infinity >= 1:
            return 1.0, 1.0
        if self._alone is not None:
            return _profile_bounds(self._alone, epsilon)
        high = self.delta_upper(epsilon)
        return min(self._ask(lower, 1e-30, lambda whole: whole.delta(epsilon))[0], high), high

    @cached_property
    def ceiling(self) -> float:
        """The largest finite loss."""
        return sum(times(pair.highest, count) for pair, count in self.parts)

    def delta_upper(self, epsilon: float) -> float:
        """Certified upper bound on delta(epsilon)."""
        if self.infinity >= 1:
            return 1.0
        if self._alone is not None:
            return _profile_bounds(self._alone, epsilon)[1]
        high = self._ask(upper, 1e-20, lambda whole: whole.delta(epsilon))[1]
        if high < 1e-12:  # what was sent to infinity must be small against delta
            high = min(high, self._ask(upper, 1e-60, lambda whole: whole.delta(epsilon))[1])
        return high

    def epsilon_bounds(self, delta: float) -> Interval:
        """Certified bounds on the smallest epsilon with delta(epsilon) ≤ delta."""
        if delta <= self.infinity:
            return math.inf, math.inf
        high = self.epsilon_upper(delta)
        return self.epsilon_lower(delta, high), high

    def epsilon_lower(self, delta: float, high: float) -> float:
        """Certified lower bound on the smallest epsilon, which is known to be at most ``high``."""
        if delta <= self.infinity:
            return high
        if self._alone is not None:
            pair = self._alone
            return min(high, solve_epsilon(lambda e: _profile_bounds(pair, e)[0], delta) * (1 - 1e-11))
        return min(self._ask(lower, _tail(delta), lambda whole: whole.epsilon_lower(delta, high)), high)

    def epsilon_upper(self, delta: float) -> float:
        """Certified upper bound on the smallest epsilon with delta(epsilon) ≤ delta."""
        if delta <= self.infinity:
            return math.inf
        if self._alone is not None:
            pair = self._alone
            return solve_epsilon(lambda e: _profile_bounds(pair, e)[1], delta)
        return self._ask(upper, _tail(delta), lambda whole: whole.epsilon_upper(delta))


def _tail(delta: float) -> float:
    """Few distinct values, so that compositions are reused."""
    return 10.0 ** (3 * math.floor(math.log10(delta) / 3) - 9)


def _profile_bounds(pair: Pair, epsilon: float) -> Interval:
    if isinstance(pair, Supremum):
        lows, highs = zip(*(_profile_bounds(part, epsilon) for part in pair.pairs), strict=True)
        return max(lows), max(highs)
    at = np.array([epsilon])
    value = float(pair.profile(at)[0])
    p, q = pair.tails(at)
    wrong = float(2 * slip(p)[0])  # exp(ε)·Q(L > ε) is below P(L > ε)
    lost = float(p[0]) if q[0] <= TINY else 0.0  # too small a Q was taken for zero
    return max(0.0, value - wrong - lost), min(1.0, value + wrong + (FLOOR if epsilon < pair.highest else 0.0))


def _extent(pair: Pair, tail: float) -> tuple[float, float, float]:
    """Rough variance of a loss, and an interval that holds it but for ``tail``."""
    points = np.concatenate([-np.geomspace(1e4, 1e-10, 400), [0.0], np.geomspace(1e-10, 1e4, 400)])
    variance, low, high = 0.0, math.inf, -math.inf
    for part in pair.pairs if isinstance(pair, Supremum) else (pair,):
        heads, tails = part.heads(points)[0], part.tails(points)[0] - part.infinity
        masses = np.maximum(np.diff(heads), 0.0)
        middle = (points[1:] + points[:-1]) / 2
        mean = float(masses @ middle)
        variance = max(variance, float(masses @ (middle - mean) ** 2))
        low = min(low, max(part.lowest, float(points[max(0, int(np.searchsorted(heads, 1e-18)) - 1)])))
        inside = np.flatnonzero(tails > tail)
        high = max(high, min(part.highest, float(points[min(len(points) - 1, inside[-1] + 1)] if len(inside) else 0.0)))
    return max(variance, 1e-300), low, max(high, low)
