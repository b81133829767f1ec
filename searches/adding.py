"""Adding an event never lowers a bound, and every question about a legal event has an answer or a refusal, quickly.

Random trees of every kind, with parameters over all of floats (noise from 5e-324 to 1e308, rates to 5e-324, selections
of shape up to 100, counts and groups up to 10^400). Checked: both certified bounds and each accountant's, before
and after something is added up to 10^36 times; every public question gives a bound, possibly infinite, or a library
error; no warning of numpy leaks; no bound takes more than two seconds of CPU on a quiet machine. Where other processes
share the core, its caches and its memory, seconds of CPU are longer: then by how much a transform is slower counts.
"""

from __future__ import annotations

import math
import random
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import fft

import discreet as dp
from discreet import events as ev
from discreet.accounting.pld.composition import TIGHT
from discreet.adjacency import Adjacency
from discreet.errors import NotCertified
from searches._progress import with_progress
from searches.event_trees import COUNTS, Grower

__all__ = ["check", "main"]

SECONDS = 4.0  # of one bound: twice what a quiet machine may take
QUIET = 0.06  # that a transform of 2^21 numbers and back takes on a core of 2.5 GHz with nothing beside it
CLEAN = (dp.UnsupportedEvent, NotCertified)
EXTREMES = (5e-324, 1e-310, 1e-300, 1e-170, 1e-60, 1e-17, 1e-9, 1e9, 1e17, 1e60, 1e160, 1e300, 1.7e308)
DELTAS = (0.0, 5e-324, 1e-300, 1e-60, 1e-15, 1e-9, 1e-6, 1e-3, 0.1, 0.6, 0.999, 1.0)
REPEATS = (*COUNTS, 10**15 + 1, 10**60, 10**400)
GROUPS = (2, 3, 2**20, 10**9, 10**36, 2**1300, 10**400)
ACCOUNTANTS = ("pld", "gdp", "rdp", "zcdp", "optimal", "advanced", "basic", None)
RESOLUTION = 1e-12  # of an epsilon: the contour's own step is a tenth of that
MANY = 5  # times the limit of one, for what asks for some forty bounds: a calibration, a trade-off curve


class Violation(AssertionError):
    """A promise that is broken, with the events that break it."""


class Extreme(Grower):
    """Random trees whose parameters may be anything that is legal."""

    def value(self, usual: tuple[float, float], odd: tuple[float, ...]) -> float:
        """As usual, or one time in three as far out as floats go, where that is in range."""
        if self.rng.random() < 1 / 3:
            return min(self.rng.choice(EXTREMES), 1.0) if usual[1] <= 1 else self.rng.choice(EXTREMES)
        return super().value(usual, odd)

    def leaf(self) -> ev.Event:
        """A leaf, perhaps repeated as often as integers allow."""
        try:
            leaf = super().leaf()
        except ValueError:
            return self.leaf()  # out of a parameter's range
        return leaf * self.rng.choice(REPEATS) if self.rng.random() < 0.1 else leaf

    def tree(self, depth: int) -> ev.Event:
        """As other trees, or one of several, or the best of a random number of runs."""
        tree, rng = super().tree(depth), self.rng
        if depth and rng.random() < 0.15:
            return ev.OneOf(events=(tree, self.leaf()))
        if depth and rng.random() < 0.2:
            law = rng.choice(("logarithmic", "geometric", "poisson", -0.99, -0.5, 1e-9, 2.5, 100.0))
            cap = rng.choice((None, None, 1, 10, 10**9))
            return ev.Selected(event=tree, mean=rng.choice((1, 1 + 1e-9, 2, 30.0, 1e6)), law=law, cap=cap)
        return tree


class Checker:
    """All promises for the trees of one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.wanted = self.rng.choice(list(Adjacency))
        grower = (Extreme if seed % 2 else Grower)(self.rng, self.wanted)
        self.event = grower.tree(self.rng.choice((0, 1, 1, 2, 2, 3)))
        self.added = grower.leaf() * (self.rng.choice(COUNTS) if self.rng.random() < 0.5 else 1)
        self.delta = self.rng.choice(DELTAS)
        self.tried: Counter[str] = Counter()

    def ask(self, what: str, question: Callable[[], Any], bounds: int = 1) -> Any:
        """The answer, or None for a refusal; anything else is a violation."""
        started = time.process_time()
        self.tried[what] += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                answer = question()
        except CLEAN:
            self.tried[f"{what}, refused"] += 1
            answer = None
        except Exception as error:
            raise Violation(f"{what} of {self}: {type(error).__name__}: {error}") from error
        spent = time.process_time() - started
        if spent > SECONDS * bounds and spent > SECONDS * bounds * _slowdown():
            raise Violation(f"{what} of {self} took {spent:.1f} s")
        if answer is not None and not all(x >= 0 for x in (answer if isinstance(answer, tuple) else (answer,))):
            raise Violation(f"{what} of {self}: {answer} is no bound")
        return answer

    def __str__(self) -> str:
        return f"{self.event.to_json()} beside {self.added.to_json()} under {self.wanted} at {self.delta}"[:1500]

    def run(self) -> Counter[str]:
        """The law in both bounds, and one question of another kind."""
        self.both_bounds()
        self.one_accountant(self.rng.choice(ACCOUNTANTS))
        self.rng.choice((self.attacker, self.group, self.profile, self.calibration))()
        return self.tried

    def both_bounds(self) -> None:
        """What is added lowers neither the lower nor the upper bound."""
        alone, more = (
            self.ask("bounds", lambda event=event: dp.epsilon_bounds(event, self.delta, adjacency=self.wanted))
            for event in (self.event, self.event + self.added)
        )
        if alone is None or more is None:
            return
        self.tried["law of both bounds"] += 1
        if more[1] < alone[0]:
            raise Violation(f"{alone} becomes {more}, which cannot both be true, of {self}")
        if _is_lowered(alone[0], more[0]):
            raise Violation(f"the lower bound of {alone} is lowered to {more} of {self}")

    def one_accountant(self, view: str | None) -> None:
        """What is added lowers no account."""
        alone, more = (
            self.ask(
                f"epsilon by {view}",
                lambda event=event: dp.epsilon(event, self.delta, accountant=view, adjacency=self.wanted),
            )
            for event in (self.event, self.event + self.added)
        )
        if alone is None or more is None:
            return
        self.tried[f"law by {view}"] += 1
        if _is_lowered(alone, more) and more < self.least(view):
            raise Violation(f"{alone} is lowered to {more} by {view} of {self}")

    def least(self, view: str | None) -> float:
        """What no account of the tree may fall below: of the numerical ones, which may be loose, the lower bound."""
        bounds = None
        if view in (None, "pld"):
            bounds = self.ask("bounds", lambda: dp.epsilon_bounds(self.event, self.delta, adjacency=self.wanted))
        return math.inf if bounds is None else float(bounds[0])

    def attacker(self) -> None:
        """The trade-off curve."""
        if (one := self.ask("guarantee", lambda: _Quiet(dp.guarantee(self.event, adjacency=self.wanted)))) is not None:
            self.ask("true-positive rate", lambda: one.whole.tpr_at(self.rng.choice((0.0, 1e-9, 0.01, 1.0))), MANY)
            self.ask("advantage", one.whole.advantage)

    def group(self) -> None:
        """A group's guarantee."""
        size = self.rng.choice(GROUPS)
        self.ask(f"group of {size:g}" if size < 10**300 else "huge group",
                 lambda: dp.epsilon(self.event, self.delta, adjacency=self.wanted, group_size=size))  # fmt: skip

    def profile(self) -> None:
        """Delta at an epsilon."""
        epsilon = self.rng.choice((0.0, *EXTREMES, 0.1, 1.0, 10.0, 500.0))
        self.ask("delta", lambda: dp.delta(self.event, epsilon, adjacency=self.wanted))

    def calibration(self) -> None:
        """The smallest noise, also for a target that nothing meets."""
        rate, count = self.rng.choice((1.0, 1e-3)), self.rng.choice((1, 1000, 10**36, 10**400))
        kind = self.rng.choice((ev.Gaussian, ev.Laplace))
        target = self.rng.choice((5e-324, 1e-60, 1e-6, 1.0, 40.0, 1e300))
        try:
            self.ask("calibrate", lambda: _least_noise(kind, rate, count, target, self.delta), MANY)
        except Violation as error:
            if not isinstance(error.__cause__, ValueError) or "No parameter" not in str(error):
                raise


def _slowdown() -> float:
    """How much longer than on a quiet machine a large transform takes just now."""
    numbers, started = np.ones(1 << 21), time.process_time()
    for _ in range(5):
        fft.irfft(fft.rfft(numbers))
    return (time.process_time() - started) / (5 * QUIET)


def _is_lowered(before: float, after: float) -> bool:
    """Whether a bound falls by more than what an interval may be wide (decision 223)."""
    return after < before * (1 - TIGHT) - RESOLUTION


@cache  # 1,152 questions in all, which have nothing to do with the tree
def _least_noise(kind: type[ev.Gaussian | ev.Laplace], rate: float, count: int, target: float, delta: float) -> float:
    """The noise that meets a target."""

    def family(z: float) -> ev.Event:
        return ev.PoissonSampled(rate=rate, event=kind(noise_multiplier=z)) * count

    return dp.calibrate(family, epsilon=target, delta=delta)


class _Quiet(float):
    """A guarantee that passes for a number."""

    def __new__(cls, whole: Any) -> _Quiet:
        one = super().__new__(cls, 0.0)
        one.whole = whole
        return one

    whole: Any


def check(seed: int) -> Counter[str]:
    """All promises for the trees of one seed."""
    return Checker(seed).run()


def main(size: int | None = None, seed: int = 0) -> None:
    """Try so many trees, 10,000 by default, from a seed on."""
    tried: Counter[str] = Counter()
    started, broken, trees = time.process_time(), [], 10_000 if size is None else size
    for number in with_progress("adding", range(seed, seed + trees)):
        try:
            tried += check(number)
        except Violation as error:
            broken.append(f"seed {number}: {error}")
            print(broken[-1], flush=True)
    print(f"adding: {trees} trees in {time.process_time() - started:.0f} CPU seconds, {len(broken)} broken")
    print(", ".join(f"{name}: {count}" for name, count in sorted(tried.items())))
    if broken:
        raise Violation(f"{len(broken)} broken promises, the first: {broken[0]}")
