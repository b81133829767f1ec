"""Random sequences of typical releases: a book never shows more than the plain sum of what was asked for.

Gaussian and Laplace noise, discrete kinds, training runs, choices, approximate events, each asked for with an epsilon
at a delta, in any order, while their deltas add up to at most half of the book's.
"""

from __future__ import annotations

import random
from collections import Counter
from functools import lru_cache

from discreet import events as ev
from discreet.accounting import epsilon as epsilon_of
from discreet.errors import BudgetExceeded
from discreet.events import Event
from discreet.ledger import Ledger
from searches import _cases

NOISES = (0.7, 1.0, 2.0, 4.0, 10.0, 40.0, 100.0)
DELTA = 1e-6  # of the book
PARTS = (0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # of the book's delta, for one release


def main(size: int | None = None, seed: int = 33) -> None:
    """Try so many sequences, 1,000 by default; raise at the first that shows more than was asked."""
    charges, sequences = 0, 1000 if size is None else size
    for number in range(seed, seed + sequences):
        with _cases.saving("asked", number):
            charges += retry(number)
    print(f"asked: {sequences} sequences of {charges} releases, none shown above the plain sum of what was asked")


def retry(case: int) -> int:
    """The sequence of a seed: how many releases were admitted."""
    rng = random.Random(case)
    book = Ledger("sqlite://").open("book", epsilon=rng.choice((1.0, 3.0, 10.0)), delta=DELTA)
    total, deltas, kinds = 0.0, 0.0, Counter[str]()
    for _ in range(rng.randrange(1, 9)):
        noise, part = rng.choice(NOISES), rng.choice(PARTS)
        kind = rng.choice(("gaussian", "gaussian", "training", "discrete", "laplace", "exponential", "approximate"))
        part = {"laplace": 0.0, "exponential": 0.0, "approximate": min(part, 0.02)}.get(kind, part)
        if deltas + part > 0.5:
            continue
        event, epsilon = release(kind, noise, part * DELTA)
        try:
            book.charge(event, asked=(epsilon, part * DELTA))
        except BudgetExceeded:
            continue
        total, deltas = total + epsilon, deltas + part
        kinds[kind] += 1
        if book.spent().epsilon > total * (1 + 1e-9):
            raise AssertionError(f"{book.spent().epsilon} is shown for {total} that was asked: {dict(kinds)}, {case=}")
    return kinds.total()


@lru_cache(maxsize=4096)
def release(kind: str, noise: float, delta: float) -> tuple[Event, float]:
    """An event, and the epsilon it would be asked for with at ``delta``: what a perfect calibration gives back."""
    match kind:
        case "laplace":
            return ev.Laplace(noise_multiplier=noise), 1 / noise
        case "exponential":
            return ev.Exponential(epsilon=1 / noise), 1 / noise
        case "approximate":
            return ev.ApproxDP(epsilon=1 / noise, delta=delta), 1 / noise
        case "gaussian":
            event: Event = ev.Gaussian(noise_multiplier=noise)
        case "discrete":
            event = ev.DiscreteGaussian(sensitivity=1, sigma=noise)
        case "training":
            event = ev.PoissonSampled(rate=0.01, event=ev.Gaussian(noise_multiplier=min(noise, 4.0))) * 1000
        case _:
            raise ValueError(kind)
    return event, epsilon_of(event, delta)
