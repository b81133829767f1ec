"""What an adversary learns from the events a ledger admitted, computed exactly and without the library's accountants.

A pure event tells at most what randomised response does: a log-ratio of +ε or −ε. A Gaussian event tells what its shift
does; many add up to one. An (ε, δ) event may also tell everything, with probability δ. Whoever declares such events,
in whatever order, learns exactly their composition; a book that admits them claims that this is within its limit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product

from scipy.special import log_ndtr

from discreet import events
from discreet.events import Event
from discreet.release import ONE_RECORD

GRID = 20  # pure epsilons are whole multiples of 1/20, so that sums are exact


@dataclass
class Knowledge:
    """Everything that was told about one record."""

    pure: Counter[int] = field(default_factory=Counter)  # epsilon in units of 1/GRID: how often
    mu2: float = 0.0
    safe: float = 1.0  # the chance that no approximate event told everything

    def learn(self, event: Event, count: int = 1, rows: int = 1) -> None:
        """One more event, so many times, about somebody who has so many rows; for other kinds there is no exact value
        here. (For approximate events and several rows this is less than what may be told.)
        """
        match event:
            case events.PureDP(epsilon=epsilon):
                self.pure[rows * round(epsilon * GRID)] += count
            case events.Gaussian(noise_multiplier=noise):
                self.mu2 += count * (rows / noise) ** 2
            case events.ApproxDP(epsilon=epsilon, delta=delta):
                self.pure[rows * round(epsilon * GRID)] += count
                self.safe *= (1 - delta) ** count
            case _:
                raise TypeError(event)

    @property
    def worst(self) -> int:
        """The largest log-ratio of the pure part, in units of 1/GRID."""
        return sum(epsilon * count for epsilon, count in self.pure.items())

    def delta(self, epsilon: float) -> float:
        """The smallest delta for which all of it is (epsilon, delta)-DP."""
        told = sum(
            chance * _gaussian(epsilon - loss / GRID, math.sqrt(self.mu2)) for loss, chance in self._losses().items()
        )
        return (1 - self.safe) + self.safe * told

    def _losses(self) -> dict[int, float]:
        losses = {0: 1.0}
        for step, count in self.pure.items():
            up = 1 / (1 + math.exp(-step / GRID))
            sums = {
                (2 * k - count) * step: math.comb(count, k) * up**k * (1 - up) ** (count - k) for k in range(count + 1)
            }
            mixed: dict[int, float] = {}
            for (one, chance), (other, more) in product(losses.items(), sums.items()):
                mixed[one + other] = mixed.get(one + other, 0.0) + chance * more
            losses = mixed
        return losses


def _gaussian(epsilon: float, mu: float) -> float:
    if mu == 0:
        return max(0.0, -math.expm1(epsilon))
    low, high = log_ndtr(-epsilon / mu + mu / 2), epsilon + log_ndtr(-epsilon / mu - mu / 2)
    return max(0.0, math.exp(low) * -math.expm1(high - low)) if low > -700 else 0.0


Told = tuple[Event, int, int]  # an event, how often, and about how many rows


@dataclass
class Shelf:
    """A book as the adversary sees it: what was told through it, and the books inside."""

    epsilon: float
    delta: float
    kind: str = "book"
    unit: str = ONE_RECORD
    rows: int | None = None
    raised: bool = False
    told: list[Told] = field(default_factory=list)
    inside: list[Shelf] = field(default_factory=list)

    def records(self) -> list[list[Told]]:
        """What was told about a record, for each choice of the parts it may be in."""
        if self.kind == "partition":
            return [told for part in self.inside for told in part.records()]
        choices: Iterable[tuple[list[Told], ...]] = product(*(book.records() for book in self.inside))
        return [[*self.told, *(told for chosen in choice for told in chosen)] for choice in choices]

    def knowledge(self) -> list[Knowledge]:
        """The same, as what it comes to."""
        known = []
        for record in self.records():
            one = Knowledge()
            for told in record:
                one.learn(*told)
            known.append(one)
        return known
