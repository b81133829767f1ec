r"""An audit of one run: guesses about its canaries, against the run's own trade-off curve.

Each of m canaries was in the run or not, by a fair coin of its own, and has a score: larger where the run looks as if
it was in. The highest scores are guessed in, the lowest out; how many guesses are made is fixed by what is claimed,
before a score is seen. They *refute the claim* if so many of them are right that the claimed curve does not allow it
(``one_run.rules_out``). The *lower bound* is read off the claimed profile with all its epsilons multiplied by a number,
:math:`\delta_s(\epsilon) = \delta(\epsilon/s)`: the largest s that the guesses refute, times the claimed epsilon.

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
from discreet.accounting.tradeoff import TradeOff
from discreet.adjacency import Adjacency
from discreet.auditing.one_run import epsilon_one_run_gaussian, guesses, rules_out
from discreet.auditing.reading import CannotJudge
from discreet.errors import number, probability
from discreet.events import Event

__all__ = ["OneRun", "audit_run"]

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
    could_refute: bool = True  # whether the claim would have been refuted, had every guess been right

    @property
    def verdict(self) -> str:
        """The same in a sentence; where no guesses could have refuted the claim, it says so instead of agreeing."""
        so_far = "" if self.steps is None else f" after {self.steps} steps"
        found = f"{self.right} of {self.guessed} guesses about {self.canaries} canaries are right{so_far}, so ε ≥ "
        found += f"{self.lower:.3g} with {self.confidence:.0%} confidence"
        claim = f"ε = {self.claimed:.3g} at δ = {self.delta:g} is claimed"
        if self.violated:
            return f"VIOLATED: {found}, but {claim}."
        if not self.could_refute:
            return f"Inconclusive: {found}; {claim}, which so few canaries could not refute by any guesses."
        return f"Consistent: {found}; {claim}."

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

    curve = TradeOff.of(accounting.guarantee(event, adjacency=adjacency))

    def refuted(share: float) -> bool:
        of = TradeOff(curve.epsilons * share, curve.deltas)
        return rules_out(right, guessed, made, curve=of, alarm=alarm)

    violated = refuted(1.0)
    lower = claimed * _lower(refuted, violated)
    could = violated or rules_out(guessed, guessed, made, curve=curve, alarm=alarm)
    return OneRun(lower, claimed, delta, 1 - alarm, right, guessed, made, violated, steps, could)


def _check(numbers: NDArray[np.float64], member: NDArray[Any]) -> None:
    if member.dtype != bool or numbers.shape != member.shape or numbers.ndim != 1:
        raise ValueError("scores must have one number per canary, and inside one True or False.")
    if not np.isfinite(numbers).all():
        raise CannotJudge("A score is not a finite number, so that nothing can be guessed by it.")
    if min(member.sum(), (~member).sum()) < _FEWEST:
        raise CannotJudge(
            f"Fewer than {_FEWEST} canaries were in the run, or out of it, which is too few to test anything."
        )
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


def _lower(refuted: Callable[[float], bool], violated: bool) -> float:
    """The largest share of the claimed epsilons that is refuted, from below; above one where the claim itself is."""
    low, high = (1.0, 64.0) if violated else (1 / 64, 1.0)
    if not violated and not refuted(low):
        return 0.0
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
