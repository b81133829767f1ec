r"""An audit of one run: guesses about its canaries, against the run's own trade-off curve.

Each of m canaries was in the run or not, by a fair coin of its own, and has a score: larger where the run looks as if
it was in. The highest scores are guessed in, the lowest out; how many guesses are made is fixed by what is claimed,
before a score is seen. They *refute the claim* if so many of them are right that the claimed curve does not allow it
(``one_run.falsified``). The *lower bound* is read off runs of the same shape with more noise: the least noise of which
the guesses still say that the run had less, as epsilon at delta.

Looking several times at one run is several audits: each has the stated confidence by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import accounting
from discreet.accounting.gaussian import gaussian_epsilon
from discreet.adjacency import Adjacency
from discreet.auditing.one_run import epsilon_one_run, epsilon_one_run_gaussian, falsified, guesses
from discreet.auditing.reading import CannotJudge
from discreet.errors import number, probability
from discreet.events import Event

__all__ = ["OneRun", "audit_run", "with_noise_times"]

_FEWEST = 10  # canaries on either side
_SHARES = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)


@dataclass(frozen=True)
class OneRun:
    """What guesses about canaries found: with ``confidence``, the run was less private than ``lower`` says."""

    lower: float
    claimed: float
    delta: float
    confidence: float
    right: int
    guessed: int
    canaries: int
    violated: bool
    steps: int | None = None

    @property
    def verdict(self) -> str:
        """The same in a sentence."""
        so_far = "" if self.steps is None else f" after {self.steps} steps"
        found = f"{self.right} of {self.guessed} guesses about {self.canaries} canaries are right{so_far}, so ε ≥ "
        found += f"{self.lower:.3g} with {self.confidence:.0%} confidence"
        claim = f"ε = {self.claimed:.3g} at δ = {self.delta:g} is claimed"
        return f"VIOLATED: {found}, but {claim}." if self.violated else f"Consistent: {found}; {claim}."

    def __str__(self) -> str:
        return self.verdict


def audit_run(
    scores: ArrayLike,
    inside: ArrayLike,
    event: Event,
    *,
    delta: float = 1e-5,
    confidence: float = 0.95,
    adjacency: Adjacency | str = Adjacency.ADD_REMOVE,
    guessed: int | None = None,
    steps: int | None = None,
) -> OneRun:
    """Judge a run of this ``event`` by its canaries' scores and by which of them were ``inside``.

    >>> from discreet import events
    >>> inside = np.arange(400) % 2 == 0
    >>> run = audit_run(5.0 * inside + np.linspace(0, 1, 400), inside, events.Gaussian(noise_multiplier=1.0))
    >>> run.right == run.guessed, run.violated
    (True, True)
    """
    numbers, member = np.asarray(scores, np.float64), np.asarray(inside)
    _check(numbers, member)
    delta = probability("delta", delta)
    alarm = 1 - number("confidence", confidence, low=0.5, high=1, open_high=True)
    claimed = accounting.epsilon(event, delta, adjacency=adjacency)
    if not 0 < claimed < math.inf:
        raise CannotJudge(f"The event claims an epsilon of {claimed:g} at delta = {delta:g}, which no guess can test.")
    made = len(numbers)
    guessed = _most_telling(made, claimed, delta, alarm) if guessed is None else guessed
    right = guesses(numbers[member], numbers[~member], guessed)

    def refuted(of: Event) -> bool:
        curve = accounting.guarantee(of, adjacency=adjacency).tradeoff
        return falsified(right, guessed, made, curve=curve, alarm=alarm)

    violated = refuted(event)
    lower = _lower(event, refuted, violated, lambda e: accounting.epsilon(e, delta, adjacency=adjacency))
    if lower is None:
        lower = epsilon_one_run(right, guessed, made, delta=delta, alarm=alarm)
        lower = lower if violated else min(lower, claimed)  # one verdict: the curve's
    return OneRun(lower, claimed, delta, 1 - alarm, right, guessed, made, violated, steps)


def _check(numbers: NDArray[np.float64], member: NDArray[Any]) -> None:
    if member.dtype != bool or numbers.shape != member.shape or numbers.ndim != 1:
        raise ValueError("scores and inside must have one number, and one True or False, a canary.")
    if not np.isfinite(numbers).all():
        raise CannotJudge("A score is not a finite number, so that nothing can be guessed by it.")
    if min(member.sum(), (~member).sum()) < _FEWEST:
        raise CannotJudge(f"Fewer than {_FEWEST} canaries were in the run, or out of it, which judges nothing.")
    if np.ptp(numbers) == 0:
        raise CannotJudge("All scores are the same, so that nothing can be guessed by them.")


def _most_telling(canaries: int, claimed: float, delta: float, alarm: float) -> int:
    """The number of guesses that would prove most, were the run a Gaussian mechanism that is as private as claimed."""
    from scipy.special import ndtri

    low, high = 1e-3, 1e3  # of noise multipliers
    while high - low > 1e-3 * high:
        middle = math.sqrt(low * high)
        low, high = (
            (middle, high) if gaussian_epsilon(noise_multiplier=middle, delta=delta) > claimed else (low, middle)
        )
    outside = ndtri((np.arange(canaries // 2) + 0.5) / (canaries // 2))
    inside = outside + 1 / high

    def proved(guessed: int) -> float:
        right = guesses(inside, outside, guessed)
        return epsilon_one_run_gaussian(right, guessed, canaries, delta=delta, alarm=alarm)

    return max((max(2, int(share * 2 * (canaries // 2))) for share in _SHARES), key=proved)


def _lower(
    event: Event, refuted: Callable[[Event], bool], violated: bool, price: Callable[[Event], float]
) -> float | None:
    """Epsilon of the run with the least noise that is refuted; none for events that have no noise to change."""
    if with_noise_times(event, 2.0) == event:
        return None
    step, factor = (0.5, 1.0) if violated else (2.0, 1.0)
    for _ in range(8):
        factor *= step
        if refuted(with_noise_times(event, factor)) != violated:
            break
    else:
        return price(with_noise_times(event, factor)) if violated else 0.0
    yes, no = (factor / step, factor) if violated else (factor, factor / step)
    for _ in range(5):
        middle = math.sqrt(yes * no)
        yes, no = (middle, no) if refuted(with_noise_times(event, middle)) else (yes, middle)
    return price(with_noise_times(event, yes))


def with_noise_times(event: Event, factor: float) -> Event:
    """The event with every noise multiplier in it so many times as large.

    >>> from discreet import events
    >>> print(with_noise_times(events.PoissonSampled(rate=0.1, event=events.Gaussian(noise_multiplier=2.0)) * 3, 2.0))
    3 x PoissonSampled(rate=0.1, Gaussian(noise_multiplier=4))
    """
    return Event.from_dict(_scaled(event.to_dict(), factor))


def _scaled(value: Any, factor: float) -> Any:
    if isinstance(value, list):
        return [_scaled(part, factor) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        name: part * factor if name == "noise_multiplier" and isinstance(part, float) else _scaled(part, factor)
        for name, part in value.items()
    }
