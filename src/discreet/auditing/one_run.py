r"""Lower bounds from a single run: many canaries, each in or out by a coin of its own, and guesses about them.

*Guesses and counts* (Steinke, Nasr and Jagielski 2023, Theorem 5.2): of r guesses v are right. If the run is (ε, δ)-DP,
the number of right guesses is at most a binomial of chance :math:`q = e^\epsilon/(1 + e^\epsilon)`, but for delta:

.. math:: p \le \beta + 2 m \delta \max_{1 \le i \le v} \tfrac1i \Pr[v - i \le \mathrm{Bin}(r, q) < v],
          \quad \beta = \Pr[\mathrm{Bin}(r, q) \ge v].

*Trade-off curves* (Mahloujifar, Melis and Chaudhuri 2024, Algorithm 3): the same counts against a claimed curve f, any
curve. ``falsified_by`` asks whether a claim survives; it uses the event's own curve, not a Gaussian's in its stead.

Both say how private a run can be at most, wherever the canaries are; weak canaries give weak bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.gaussian import gaussian_epsilon
from discreet.errors import number, probability, whole

__all__ = ["chance_of", "epsilon_one_run", "epsilon_one_run_gaussian", "guesses", "rules_out"]

Curve = Callable[[float], float]


def chance_of(right: int, guessed: int, canaries: int, epsilon: float, delta: float = 0.0) -> float:
    """The largest chance of so many right guesses, of anything that is (epsilon, delta)-DP."""
    from scipy.stats import binom

    q = 1 / (1 + math.exp(-epsilon))
    beta = float(binom.sf(right - 1, guessed, q))
    if not delta:
        return beta
    i = np.arange(1, right + 1)
    between = binom.cdf(right - 1, guessed, q) - binom.cdf(right - i - 1, guessed, q)
    return min(1.0, beta + 2 * canaries * delta * float(np.max(between / i, initial=0.0)))


def epsilon_one_run(right: int, guessed: int, canaries: int, *, delta: float = 0.0, alarm: float = 0.05) -> float:
    """The largest epsilon that ``right`` of ``guessed`` guesses about ``canaries`` coins rule out.

    >>> round(epsilon_one_run(80, 100, 1000, alarm=0.05), 3)
    0.958
    """
    _check(right, guessed, canaries, alarm)
    delta = probability("delta", delta)
    return _largest(lambda e: chance_of(right, guessed, canaries, e, delta) <= alarm)


def _check(right: int, guessed: int, canaries: int, alarm: float) -> None:
    whole("canaries", canaries, low=whole("guessed", guessed, low=1))
    if whole("right", right) > guessed:
        raise ValueError(f"right is {right}, but only {guessed} guesses were made.")
    number("alarm", alarm, low=0, high=1, open_low=True, open_high=True)


def rules_out(right: int, guessed: int, canaries: int, *, curve: Curve, alarm: float = 0.05) -> bool:
    """Whether so many right guesses rule out, at level ``alarm``, that the run's trade-off curve is ``curve``.

    ``curve`` gives the smallest false-negative rate at a false-positive rate, as ``Guarantee.tradeoff`` does.

    >>> from discreet import events, guarantee
    >>> claimed = guarantee(events.Gaussian(noise_multiplier=1.0)).tradeoff
    >>> rules_out(70, 100, 1000, curve=claimed), rules_out(99, 100, 1000, curve=claimed)
    (False, True)
    """
    _check(right, guessed, canaries, alarm)
    return _recursion_rules_out(right, guessed, canaries, _inverse(curve), alarm)


def _recursion_rules_out(right: int, guessed: int, canaries: int, least_wrong: Curve, alarm: float) -> bool:
    """The recursion: shares of right and of wrong guesses, raised as long as the curve demands it."""
    hit, wrong = alarm * right / canaries, alarm * (guessed - right) / canaries
    for i in range(right - 1, -1, -1):
        raised = max(wrong, least_wrong(hit))
        if raised == wrong:
            break  # nothing moves from here on
        hit = min(1.0, hit + i / (guessed - i) * (raised - wrong))
        wrong = raised
    return hit + wrong > guessed / canaries


def _inverse(curve: Curve) -> Curve:
    """The smallest rate of wrong guesses beside a rate of right ones: the x with 1 - f(x) = hit, from below."""
    rates = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 400)])
    found = np.array([1 - curve(float(rate)) for rate in rates])

    def least_wrong(hit: float) -> float:
        after = min(int(np.searchsorted(found, hit)), len(rates) - 1)
        low, high = float(rates[max(after - 1, 0)]), float(rates[after])
        for _ in range(12 if after else 0):
            middle = (low + high) / 2
            low, high = (middle, high) if 1 - curve(middle) < hit else (low, middle)
        return low

    return least_wrong


def epsilon_one_run_gaussian(right: int, guessed: int, canaries: int, *, delta: float, alarm: float = 0.05) -> float:
    """The same bound for a run that is known to be Gaussian: the largest mu that is ruled out, as epsilon at delta."""
    from scipy.special import ndtr, ndtri

    _check(right, guessed, canaries, alarm)

    def least_wrong(mu: float) -> Curve:
        return lambda hit: float(ndtr(ndtri(hit) - mu))

    mu = _largest(lambda mu: _recursion_rules_out(right, guessed, canaries, least_wrong(mu), alarm))
    return gaussian_epsilon(noise_multiplier=1 / mu, delta=delta) if mu else 0.0


def _largest(ruled_out: Callable[[float], bool]) -> float:
    """The largest parameter that is ruled out, from below."""
    if not ruled_out(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while ruled_out(high):
        low, high = high, 2 * high
        if high > 1e4:
            return low
    while high - low > 1e-7 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if ruled_out(middle) else (low, middle)
    return low


def guesses(inside: ArrayLike, outside: ArrayLike, guessed: int) -> int:
    """How many guesses are right when the highest scores are guessed to be in and the lowest out, half of each.

    The number of guesses is fixed before scores are seen: choosing the best number afterwards is no level at all.

    >>> guesses([3.0, 4.0, 5.0], [0.0, 1.0, 4.5], 4)
    3
    """
    scores: NDArray[np.float64] = np.concatenate([np.asarray(inside, float), np.asarray(outside, float)])
    member = np.arange(len(scores)) < len(np.asarray(inside))
    guessed = whole("guessed", guessed, low=1)
    if guessed > len(scores):
        raise ValueError(f"guessed is {guessed}, but there are {len(scores)} canaries.")
    order = np.argsort(scores, kind="stable")
    low, high = guessed // 2, guessed - guessed // 2
    return int((~member[order[:low]]).sum() + member[order[len(scores) - high :]].sum())
