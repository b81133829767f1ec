r"""A pass over bins in a row whose ratios are a stationary chain: from above, for kept bins with correlated noise.

The ratio is S/n, S = x_1 + … + x_n, where log x_i is normal with variance κ and mean -κ/2 under Q, and the correlation
of two of them is ρ^|i-j|: an autoregression of order one. By Kahane's inequality (:mod:`.leaves.kept_bins`) a Gram
matrix with such entries bounds any that is smaller entry by entry. Unlike a common factor it forgets, so bins that are
next to each other count, and only by what they share.

**Two recursions.** Let V_i(x, a) be E f(S/n) given x_i = x and what was added up before, a, for a convex f. It is
convex in a. With y = log x, what follows x is a sum of exponentials of ρ^j·y + noise: convex and increasing in y, and,
as powers x^(ρ^j) below one, concave and increasing in x. Hence for an increasing f (a call, which removing a record is
made of) V_i is convex in y, and for a decreasing f (a put: adding one) V_i is convex in x. So the law of the next state
may be spread onto given points: with equal means of y for calls, with equal means of x for puts; and a onto points of
its own. Either can only raise E f. What is left is a forward recursion of masses, all of them non-negative, so that
their errors are relative.

**The ends.** For calls states below the lowest point are raised to it. States above the highest are lowered to it, at
which E f loses at most E[x_i + … + x_n; x_i > top]/n ≤ e^{κ/8} E[x_i; x_i > top], because E(x_j | x_i) ≤ e^{κ/8} x_i
for x_i ≥ 1: that much, and the mean of S/n where it leaves the points of a, has an infinite loss. For puts zero is the
lowest point, at which the chain stays; states, and sums, above the highest are lowered to it.

References: Kahane (1986); Shaked and Shanthikumar (2007), Section 3.A.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from discreet.accounting.allocation import MeanRatio, mean_ratio
from discreet.accounting.arrays import Array
from discreet.errors import NotCertified

__all__ = ["Chain"]

_STATE = (
    0.12  # between states, in standard deviations: a step's variance grows by a quarter of a percent of the chain's
)
_SUM = 0.25  # between sums, so that spreading them adds a hundredth of their variance
_WRONG = 1e-8  # relative, of all steps: second differences of prices are wrong by some 1e-12, sums by less
_LEAST_SUM = 0.25
_MOST_POINTS = 8000


@dataclass(frozen=True)
class Chain:
    """``bins`` ratios in a row, each of logarithmic ``variance``, two neighbours of that ``correlation``."""

    bins: int
    variance: float
    correlation: float

    def law(self, *, forward: bool) -> MeanRatio:
        """The mean ratio from above: good for calls, where a record is removed (``forward``), or for puts."""
        return _law(self, forward)

    @property
    def _step(self) -> float:
        """Between sums, in units of the mean."""
        rho = self.correlation
        return min(0.02, _SUM * math.sqrt(math.expm1(self.variance) * (1 + rho) / (1 - rho)) / self.bins)

    def _sums(self, bottom: float, top: float) -> Array:
        """Points for the sum over ``bins``: evenly spaced up to two, in proportion beyond, and down to the bottom."""
        step = self._step
        more = math.ceil(max(0.0, math.log(top / 2)) / math.log1p(step / 2))
        low = min(_LEAST_SUM, bottom)
        less = math.ceil(math.log(_LEAST_SUM / low) / math.log1p(step / _LEAST_SUM))
        if 2 / step + less + more > _MOST_POINTS:
            raise NotCertified("the ratios of a chain of bins span more than is computed with.")
        small = _LEAST_SUM * (1 + step / _LEAST_SUM) ** -np.arange(less, 0.0, -1)
        even = np.arange(_LEAST_SUM % step, 2.0, step)
        even = even[even >= _LEAST_SUM] if less else even[even > 0]
        return np.concatenate([[0.0], small, even, 2 * (1 + step / 2) ** np.arange(more + 1)])

    def _next(self, states: Array) -> tuple[Array, float]:
        """Means of the logarithm of the next state, and its standard deviation; the first row is the first state's."""
        means = self.correlation * (states + self.variance / 2) - self.variance / 2
        return np.append(-self.variance / 2, means), math.sqrt(self.variance * (1 - self.correlation**2))


@lru_cache(maxsize=64)
def _law(chain: Chain, forward: bool) -> MeanRatio:
    return _calls(chain) if forward else _puts(chain)


def _calls(chain: Chain) -> MeanRatio:
    r, half = math.sqrt(chain.variance), chain.variance / 2
    states = np.arange(-half - 3.5 * r, half + 8.5 * r, _STATE * r)
    means, deviation = chain._next(states)
    deviations = np.append(r, np.full(len(states), deviation))
    moves = _spread_rows(states, *_normal_prices(states, means, deviations))
    beyond = np.exp(means + deviations**2 / 2) * ndtr((means + deviations**2 - states[-1]) / deviations)
    x, n = np.exp(states), chain.bins
    sums = chain._sums(_LEAST_SUM, 4.0 + x[-1] / n / (1 - chain.correlation))
    to_come = [np.zeros(len(states))]
    for _ in range(n - 1):
        to_come.append(moves[1:] @ (x + to_come[-1]))
    adder = _Adder(sums, x / n)
    marginal, lost, left = moves[0], float(beyond[0]), 0.0
    masses, left = adder.add(np.outer(moves[0], np.append(1.0, np.zeros(len(sums) - 1))), to_come[-1] / n)
    for i in range(1, n):
        lost += float(marginal @ beyond[1:])
        marginal = marginal @ moves[1:]
        masses, more = adder.add(moves[1:].T @ masses, to_come[n - 1 - i] / n)
        left += more
    infinite = (left + lost * math.exp(chain.variance / 8)) * (1 + _WRONG)
    return mean_ratio(sums, masses.sum(axis=0) * (1 + _WRONG), forward=True, lost=(0.0, infinite))


def _puts(chain: Chain) -> MeanRatio:
    r, half = math.sqrt(chain.variance), chain.variance / 2
    logs = np.arange(-half - 8.5 * r, -half + 5 * r, _STATE * r)
    states = np.append(0.0, np.exp(logs))
    means, deviation = chain._next(logs)
    moves = _spread_rows(states, *_lognormal_prices(states, means, np.append(r, np.full(len(logs), deviation))))
    stay = np.append(1.0, np.zeros(len(logs)))
    first, moves = moves[0], np.vstack([stay, moves[1:]])
    sums = chain._sums(float(states[1]) / chain.bins, 4.0)
    adder = _Adder(sums, states / chain.bins)
    masses, _ = adder.add(np.outer(first, np.append(1.0, np.zeros(len(sums) - 1))), None)
    for _ in range(chain.bins - 1):
        masses, _ = adder.add(moves.T @ masses, None)
    return mean_ratio(sums, masses.sum(axis=0) * (1 + _WRONG), forward=False, lost=(0.0, 0.0))


class _Adder:
    """Adds each state's own number to sums, spread onto the points of the sums."""

    def __init__(self, sums: Array, numbers: Array) -> None:
        self.sums, self.numbers = sums, numbers
        moved = sums + numbers[:, None]
        self.outside = moved > sums[-1]
        index = np.clip(np.searchsorted(sums, moved, side="right") - 1, 0, len(sums) - 2)
        self.share = np.clip((moved - sums[index]) / np.diff(sums)[index], 0.0, 1.0)
        self.places = (index + np.arange(len(numbers))[:, None] * len(sums)).ravel()

    def add(self, masses: Array, to_come: Array | None) -> tuple[Array, float]:
        """Masses at (state, sum) after adding; what leaves the points counts, with what is ``to_come``, by its mean.

        Where nothing is, sums beyond the last point are lowered to it.
        """
        mean = 0.0
        if to_come is not None:
            leaving = np.where(self.outside, masses, 0.0)
            mean = float((leaving @ self.sums + leaving.sum(axis=1) * (self.numbers + to_come)).sum())
            masses = masses - leaving
        right = (masses * self.share).ravel()
        size = masses.size
        total = np.bincount(self.places, weights=masses.ravel() - right, minlength=size)
        total += np.bincount(self.places + 1, weights=right, minlength=size)
        return total.reshape(masses.shape), mean


def _spread_rows(points: Array, calls: Array, puts: Array, middles: Array) -> Array:
    """Row by row the masses of a law at the points, from E(X - k)₊ and E(k - X)₊ at them: second differences.

    Calls are used above a row's middle and puts below, where they are small, so that errors are relative. The law is
    that of X confined to the range of the points.
    """
    gaps = np.diff(points)
    call_slopes, put_slopes = np.diff(calls, axis=1) / gaps, np.diff(puts, axis=1) / gaps
    masses = np.empty(calls.shape)
    above = points[1:-1] > middles[:, None]
    masses[:, 1:-1] = np.where(above, np.diff(call_slopes, axis=1), np.diff(put_slopes, axis=1))
    masses[:, 0], masses[:, -1] = put_slopes[:, 0], -call_slopes[:, -1]
    return np.maximum(masses, 0.0)


def _normal_prices(points: Array, means: Array, deviations: Array) -> tuple[Array, Array, Array]:
    """E(X - k)₊ and E(k - X)₊ of normal X, a row each, and where each row's middle is."""
    d = (points - means[:, None]) / deviations[:, None]
    density = np.exp(-d * d / 2) / math.sqrt(2 * math.pi)
    return deviations[:, None] * (density - d * ndtr(-d)), deviations[:, None] * (density + d * ndtr(d)), means


def _lognormal_prices(points: Array, means: Array, deviations: Array) -> tuple[Array, Array, Array]:
    """The same where log X is normal."""
    with np.errstate(divide="ignore"):
        d = (np.log(points) - means[:, None]) / deviations[:, None]
    mean = np.exp(means + deviations**2 / 2)[:, None]
    calls = mean * ndtr(deviations[:, None] - d) - points * ndtr(-d)
    puts = points * ndtr(d) - mean * ndtr(d - deviations[:, None])
    return np.maximum(calls, 0.0), np.maximum(puts, 0.0), np.exp(means)
