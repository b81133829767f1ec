"""Random event trees against an oracle that enumerates: no account, calibration or filter is ever below the truth.

Each tree is a random composition of every kind, sampler and nesting, with parameters from the ordinary to the absurd
(rates to 1e-300, epsilons from 1e-300 to 720, deltas from 0, counts to 1e36). The oracle (``_truth``) gives a certified
lower bound on what its privacy loss can be. Checked: every accountant's epsilon and delta, the group's, ``calibrate``,
each filter of the ledger; the laws (nothing negative, adding never lowers, a free part beside it never helps, rate one
is the event, nested samplers multiply, adjacency survives wrapping); and that only library errors are raised.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import mpmath
from mpmath import mpf

import discreet as dp
from discreet import events as ev
from discreet.adjacency import Adjacency
from discreet.errors import NotCertified
from discreet.ledger import pricing
from discreet.ledger.amounts import NOTHING, exact
from discreet.ledger.filters import POLICIES, Limit, admits, reading
from searches import _cases
from searches._truth import Draw, law, lower_delta, sides, swarm_delta

__all__ = ["check", "main"]

AR, REPLACE, ZERO_OUT = Adjacency.ADD_REMOVE, Adjacency.REPLACE, Adjacency.ZERO_OUT
EPSILONS = (0.0, 1e-300, 1e-17, 1e-9, 1e-3, 12.0, 30.0, 501.0, 690.0, 720.0)
RATES = (0.0, 1e-300, 1e-217, 1e-60, 1e-16, 1e-9, 1 - 1e-9, 1.0)
NOISES = (1 / 720, 0.03, 50.0, 1e9, 1e17, 1e160)
DELTAS = (0.0, 5e-324, 1e-300, 1e-60, 1e-12, 1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.3, 0.6, 1.0)
ORDERS = (1.5, 2.0, 8.0, 32.0)
COUNTS = (10**3, 10**6, 10**9, 10**15, 10**24, 10**36)
CLEAN = (dp.UnsupportedEvent, NotCertified, dp.BudgetExceeded)
TOLERANCE = 1e-9  # relative, of delta: floats that are proved to some eleven digits
DECIMALS = 1e-14  # relative, of epsilon: a parameter is the decimal it is written as


class Violation(AssertionError):
    """A promise that is broken, with the tree that breaks it."""


# --- trees
# -------------------------------------------------------------------------------------------------------------


class Grower:
    """Random trees for one adjacency."""

    def __init__(self, rng: random.Random, wanted: Adjacency) -> None:
        self.rng, self.wanted = rng, wanted
        self.own = wanted if rng.random() < 0.3 else (AR if wanted is not ZERO_OUT or rng.random() < 0.3 else ZERO_OUT)

    def value(self, usual: tuple[float, float], odd: tuple[float, ...]) -> float:
        """A parameter: usually log-uniform, one time in six absurd."""
        if self.rng.random() < 1 / 6:
            return self.rng.choice(odd)
        return math.exp(self.rng.uniform(math.log(usual[0]), math.log(usual[1])))

    def rate(self) -> float:
        """A sampling rate."""
        return min(1.0, self.value((0.02, 1.0), RATES))

    def leaf(self) -> ev.Event:
        """Any leaf that no sampler wraps."""
        value, pick, own = self.value, self.rng.choice, {"adjacency": self.own}
        makers: list[Callable[[], ev.Event]] = [
            lambda: ev.Laplace(noise_multiplier=value((0.3, 20), NOISES), **own),
            lambda: ev.Gaussian(noise_multiplier=value((0.4, 20), NOISES), **own),
            lambda: ev.DiscreteLaplace(scale=value((0.3, 9), (1 / 300, 40.0)), sensitivity=pick((1, 1, 2, 3)), **own),
            lambda: ev.DiscreteGaussian(sigma=value((0.4, 5), (0.2, 9.0)), sensitivity=pick((1, 1, 2)), **own),
            lambda: ev.Exponential(epsilon=value((0.02, 3), EPSILONS), **own),
            lambda: ev.PureDP(epsilon=value((0.02, 3), EPSILONS), **own),
            lambda: ev.ApproxDP(epsilon=value((0.02, 3), EPSILONS), delta=value((1e-9, 0.3), DELTAS), **own),
            lambda: ev.ZCDP(rho=value((1e-3, 2), (0.0, 1e-300, 1e-17, 50.0)), **own),
            lambda: ev.GDP(mu=value((0.02, 2), (0.0, 1e-170, 1e-17, 30.0)), **own),
            lambda: ev.RDP(orders=ORDERS, epsilons=tuple(a * value((1e-3, 1), (0.0, 9.0)) for a in ORDERS), **own),
        ]
        if self.own is not AR:
            makers.append(
                lambda: ev.RandomizedResponse(epsilon=value((0.02, 3), EPSILONS), categories=pick((2, 3, 9)), **own)
            )
        return pick(makers * 12 + [ev.NonPrivate])()

    def tree(self, depth: int) -> ev.Event:
        """A leaf, or a wrapper around trees."""
        if depth == 0 or self.rng.random() < 0.25:
            return self.leaf()
        few = [self.tree(depth - 1) for _ in range(self.rng.choice((1, 2, 2, 3)))]
        inner, rng = few[0], self.rng
        wrappers: list[Callable[[], ev.Event]] = [
            lambda: sum(few[1:], few[0]),
            lambda: inner * rng.choice((0, 1, 2, 2, 3)),
            lambda: ev.Parallel(events=tuple(few)),
            lambda: ev.Parallel(events=(*few, ev.PureDP(epsilon=0.0, adjacency=self.own))),
            lambda: ev.PoissonSampled(rate=self.rate(), event=inner),
            lambda: ev.PoissonSampled(rate=self.rate(), event=inner),
            lambda: ev.TruncatedPoissonSampled(rate=self.rate(), max_batch_size=1, dataset_size=2, event=inner),
            lambda: ev.BallsInBins(bins=rng.choice((1, 2, 3)), event=inner),
            lambda: ev.ProvedUnder(adjacency=self.wanted, event=inner),
        ]
        if self.wanted is REPLACE:
            wrappers += [lambda: ev.FixedSizeSampled(rate=self.rate(), event=inner), lambda: ev.Shuffled(event=inner)]
        try:
            return rng.choice(wrappers)()
        except ValueError:  # what holds under replace only does not go into a Poisson sample
            return inner


# --- promises
# ----------------------------------------------------------------------------------------------------------


class Truth:
    """What a tree's mechanism shows, with as many digits as its parameters need."""

    def __init__(self, event: ev.Event, draw: Draw, count: int) -> None:
        text = event.to_json()
        self.dps = 700 if any(small in text for small in ("e-300", "e-217", "e-60", "e-170", "e-160", "e+160")) else 90
        self.wanted, self.count = draw.wanted, count
        with mpmath.workdps(self.dps):
            self.law = law(event, draw)

    def at(self, epsilon: float, group: int = 1) -> mpf:
        """A lower bound on delta at a little more than epsilon."""
        if epsilon == math.inf:
            return mpf(0)
        with mpmath.workdps(self.dps):
            level = mpf(epsilon) * (1 + mpf(DECIMALS))
            if self.count > 1 and group == 1:
                return swarm_delta(self.law, self.count, level, sides(self.wanted))
            return lower_delta(self.law, level, sides(self.wanted, group))


@contextmanager
def told(what: str, event: ev.Event, wanted: Adjacency) -> Iterator[None]:
    """Say which promise broke, and for which tree."""
    try:
        yield
    except CLEAN:
        pass
    except Exception as error:
        raise Violation(f"{what} of {event.to_json()} under {wanted}: {type(error).__name__}: {error}") from error


def enough(claimed: float, true: mpf) -> None:
    """A delta that was granted, against one that is attained."""
    if not true <= mpf(claimed) * (1 + mpf(TOLERANCE)):
        raise Violation(f"{mpmath.nstr(true, 12)} is attained, but {claimed!r} was granted")


class Checker:
    """All promises for one tree; ``tried`` counts what was asked, ``answered`` what got a number."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.wanted = self.rng.choice((AR, AR, AR, REPLACE, REPLACE, ZERO_OUT))
        self.grower = Grower(self.rng, self.wanted)
        self.tree = self.grower.tree(self.rng.choice((0, 1, 1, 2, 2, 3)))
        self.count = self.rng.choice(COUNTS) if self.rng.random() < 0.15 else 1
        self.event = self.tree * self.count if self.count > 1 else self.tree
        self.truth = Truth(self.tree, Draw(self.rng, self.wanted), self.count)
        self.tried: Counter[str] = Counter()

    def run(self) -> Counter[str]:
        """What is cheap for every tree, and for one in three something that is not."""
        for view in ("gdp", "zcdp"):
            self.account(view)
        self.account("basic", delta=0.0)
        if self.rng.random() < 1 / 3:
            self.rng.choice((
                *(partial(self.account, view) for view in (None, "pld", "rdp", "basic", "optimal", "advanced")),
                self.filters, self.filters, self.filters, partial(self.laws, "zcdp"), partial(self.laws, "gdp"),
                partial(self.laws, "rdp"), self.group, self.calibration,
            ))()  # fmt: skip
        return self.tried

    def account(self, view: str | None, delta: float | None = None) -> None:
        """Epsilon at a delta and delta at an epsilon are granted at least what is attained."""
        delta = self.rng.choice(DELTAS) if delta is None else delta
        epsilon = self.grower.value((0.01, 6), EPSILONS)
        with told(f"epsilon({delta}) by {view}", self.event, self.wanted):
            self.tried["epsilon"] += 1
            claimed = dp.epsilon(self.event, delta, accountant=view, adjacency=self.wanted)
            self.tried[f"epsilon by {view}"] += 1
            assert claimed >= 0
            enough(delta, self.truth.at(claimed))
        with told(f"delta({epsilon}) by {view}", self.event, self.wanted):
            if view in (None, "pld", "gdp", "zcdp", "rdp"):
                self.tried["delta"] += 1
                claimed = dp.delta(self.event, epsilon, accountant=view, adjacency=self.wanted)
                self.tried[f"delta by {view}"] += 1
                assert 0 <= claimed <= 1
                enough(claimed, self.truth.at(epsilon))

    def filters(self) -> None:
        """What a filter admits is within its limit, and what it reads is proved; so is a plan."""
        limit = Limit(
            exact(self.grower.value((0.05, 8), (1e-9, 40.0, 700.0))),
            exact(self.rng.choice((0.0, 1e-9, 1e-6, 1e-3, 0.1, 0.5))),
            self.rng.choice(list(POLICIES)),
        )
        with told(f"the filter {limit}", self.event, self.wanted):
            self.tried["filter"] += 1
            price = pricing.price.__wrapped__(self.event, self.wanted)
            total = NOTHING + price
            assert all(a >= 0 for a in (price.pure, price.mu2, price.delta, *price.renyi))
            if admits(limit, total):
                self.tried["filter admits"] += 1
                enough(float(limit.delta), self.truth.at(float(limit.epsilon)))
                enough(float(limit.delta), self.truth.at(reading(limit, total).epsilon))
        if limit.delta and self.rng.random() < 0.05:
            with told(f"a plan at {limit}", self.event, self.wanted):
                plan = pricing.planned_price(self.event, self.wanted, limit.delta)
                if plan is not None:
                    self.tried["plan"] += 1
                    enough(float(plan.planned_delta), self.truth.at(float(plan.planned_epsilon)))

    def laws(self, view: str) -> None:
        """Adding never lowers, a free part never helps, rate one is the event, samplers multiply,
        adjacency survives.
        """
        event, other, delta = self.event, self.grower.leaf(), self.rng.choice((1e-6, 1e-3, 0.1))

        def epsilon(tree: ev.Event) -> float:
            self.tried["law"] += 1
            return dp.epsilon(tree, delta, accountant=view, adjacency=self.wanted)

        free, q, r = ev.PureDP(epsilon=0.0, adjacency=self.grower.own), self.grower.rate(), self.grower.rate()
        with told(f"a law by {view} at {delta}, beside {other}", event, self.wanted):
            alone = epsilon(event)
            assert epsilon(event + other) >= alone * (1 - 1e-9), "adding lowers"
            assert epsilon(event + free) == alone, "nothing costs something"
            assert (sampled := self.sampled(1.0, event)) is None or epsilon(sampled) == alone, (
                "rate one is not the event"
            )
        with told(f"a free part by {view} at {delta}", event, self.wanted):
            assert epsilon(event | free) >= epsilon(event) * (1 - 1e-9), "a free part lowers"
        with told(f"nested samplers {q}, {r} by {view}", event, self.wanted):
            flat = self.sampled(q * r, event)
            if flat is not None:
                nested = epsilon(ev.PoissonSampled(rate=q, event=ev.PoissonSampled(rate=r, event=event)))
                assert nested >= epsilon(flat) * (1 - 1e-6), "nested samplers are cheaper than their product"
        narrow = ev.ProvedUnder(adjacency=REPLACE, event=event)
        with told("adjacency", event, self.wanted):
            if self.wanted is not REPLACE and self.sampled(q, narrow) is None:
                dp.epsilon(self.rng.choice((narrow, narrow + other, narrow | other)), delta, adjacency=self.wanted)
                raise Violation("what holds under replace only was priced")

    def sampled(self, rate: float, event: ev.Event) -> ev.Event | None:
        """The event in a Poisson sample, or nothing where that is refused."""
        try:
            return ev.PoissonSampled(rate=rate, event=event)
        except ValueError:
            return None

    def group(self) -> None:
        """A group of two is granted at least what is attained."""
        delta = self.rng.choice((1e-6, 1e-3, 0.1))
        if self.wanted is AR and self.count == 1:
            with told(f"a group's epsilon({delta})", self.event, self.wanted):
                claimed = dp.epsilon(self.event, delta, group_size=2)
                self.tried["group"] += 1
                enough(delta, self.truth.at(claimed, group=2))

    def calibration(self) -> None:
        """The noise that is found keeps the target."""
        target, delta = self.grower.value((0.1, 4), (0.01, 12.0)), self.rng.choice((0.0, 1e-6, 1e-3))
        kind = self.rng.choice((ev.Laplace, ev.Gaussian)) if delta else ev.Laplace
        rate, times = self.rng.choice((1.0, 0.3)), self.rng.choice((1, 2, 3))
        view = self.rng.choice(("basic", "rdp", "advanced"))

        def family(z: float) -> ev.Event:
            return ev.PoissonSampled(rate=rate, event=kind(noise_multiplier=z, adjacency=AR)) * times

        with told(f"calibrate({target}, {delta}, {rate}, {times}) by {view}", family(1.0), AR):
            noise = dp.calibrate(family, epsilon=target, delta=delta, accountant=view if delta else "basic")
            self.tried["calibrate"] += 1
            enough(delta, Truth(family(noise), Draw(self.rng, AR), 1).at(target))


def check(seed: int) -> Counter[str]:
    """All promises for the tree of one seed."""
    return Checker(seed).run()


def retry(case: int) -> None:
    """The tree of a saved seed."""
    check(case)


def main(size: int | None = None, seed: int = 0) -> None:
    """Try so many trees, 100,000 by default, of the seeds from this one on."""
    tried: Counter[str] = Counter()
    started, broken = time.process_time(), []
    for number in range(100_000 if size is None else size):
        try:
            tried += check(seed + number)
        except Violation as error:
            broken.append(f"seed {seed + number}: {error}")
            print(broken[-1], flush=True)
            _cases.save("event_trees", seed + number, str(error))
        if number % 250 == 249:
            print(f"event_trees: tree {number + 1}, {sum(tried.values())} answers and refusals counted", flush=True)
    spent = time.process_time() - started
    print(f"event_trees: {number + 1} trees in {spent:.0f} CPU seconds, {len(broken)} broken promises")
    print(", ".join(f"{name}: {count}" for name, count in sorted(tried.items())))
    if broken:
        raise Violation(f"{len(broken)} broken promises, the first: {broken[0]}")
