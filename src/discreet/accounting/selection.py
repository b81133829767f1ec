r"""The best of K runs: what a profile or a Rényi curve of one run says of the one that is selected.

Let q(y) be the chance that a run scores below y, and f the generating function of K. The output has density
:math:`A(y) = Q(y) f'(q(y))`, and :math:`f' \le f'(1) = m`, the mean. So everything hangs on the ratio
:math:`f'(q)/f'(q')` of two neighbours, whose q differ as any event of a run may.

*Truncated negative binomial* of shape η: :math:`f'(q) = m\,(\gamma/(1-(1-\gamma)q))^{1+\eta}`. With
:math:`c = \gamma/(1-\gamma)` and t the chance to score above y, the ratio is :math:`((c + t')/(c + t))^{1+\eta}`.
Neighbours have :math:`t' \le \min(1, e^e t + \delta(e))` at every e; a quotient of linear functions is largest at an
end, here t = 0 or :math:`t' = 1`, and both ends are at most :math:`e^e` as soon as :math:`e^e \ge 1 + \delta(e)/c`.
With e* the smallest such e, :math:`A - e^{\epsilon + (1+\eta)e^*} A' \le f'(q)\,(Q - e^\epsilon Q')`, hence

.. math:: \delta_{sel}(\epsilon + (1+\eta)\,e^*) \le m\,\delta(\epsilon).

It is the slope of the tangent from (-c, -c) to the curve of largest t' for t, so no e does better.

*Poisson*: :math:`f'(q) = m e^{m(q-1)}`, and :math:`q - q' \le \delta(0)`, so e* (1+η) becomes :math:`m\,\delta(0)`.

References: Liu and Talwar (2019); Papernot and Steinke (2022), Theorems 2 and 6, for the curves; Koskela, Redberg and
Wang (2024) for a profile bound of this kind, with a looser ratio.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln
from scipy.stats import poisson

from discreet.accounting.arrays import Array
from discreet.accounting.outward import FLOOR, check_bound
from discreet.accounting.views import Account, solve_epsilon
from discreet.errors import UnsupportedEvent, choice
from discreet.events import Selected

__all__ = ["Runs", "runs_of", "success"]

_UP = 1 + 1e-9  # more than solving for gamma, and a draw by it, can be wrong
_LEAST = 1e-17  # log 1/γ of a γ that floats cannot tell from one
_EVERY = 4  # of the orders of a Rényi curve is asked for its delta
_SHAPES = {"logarithmic": 0.0, "geometric": 1.0}


def mean_runs(gamma: float, shape: float) -> float:
    """The mean of a truncated negative binomial: η(1-γ)/(γ(1-γ^η)), with its limit at shape zero."""
    return _mean_at(-math.log(gamma), shape)


def _mean_at(log: float, shape: float) -> float:
    """The same by log 1/γ, precise where γ is near one."""
    return math.expm1(log) / (log if shape == 0 else -math.expm1(-shape * log) / shape)


def success(mean: float, shape: float) -> float:
    """The gamma at which a truncated negative binomial has this mean, within a relative 1e-12.

    >>> success(10.0, 1.0), round(success(10.0, 0.0), 6)
    (0.1, 0.026918)
    """
    if mean == 1:
        return 1.0
    if shape == 1:
        return 1 / mean
    if _mean_at(_LEAST, shape) >= mean:
        return 1.0  # as floats have it
    # the mean falls from infinity to one as gamma grows to one
    log = brentq(lambda x: _mean_at(x, shape) - mean, _LEAST, _farthest(mean, shape), xtol=1e-30, rtol=1e-13)
    return math.exp(-float(log))


def _farthest(mean: float, shape: float) -> float:
    log = 1.0
    while _mean_at(log, shape) < mean:
        log *= 2
        if log > 600:
            raise UnsupportedEvent(
                f"mean is {mean:g}, which a law of shape {shape:g} has only where successes are too rare to compute "
                "with: take a larger shape, or fewer runs."
            )
    return log


@dataclass(frozen=True)
class Runs:
    """The law of K, as far as prices need it. ``shape`` is infinite for Poisson."""

    mean: float
    shape: float

    @property
    def odds(self) -> float:
        """(1-γ)/γ, rounded up."""
        gamma = success(self.mean, self.shape)
        return (1 - gamma) / gamma * _UP

    def shift(self, account: Account) -> float:
        """What selection adds to a run's epsilon: (1+η)·e*, or m·δ(0) for Poisson; rounded up."""
        if math.isinf(self.shape):
            return self.mean * check_bound(account.delta(0.0)) * _UP
        odds = self.odds
        if odds == 0:
            return 0.0

        def excess(e: float) -> float:
            return (
                min(odds * check_bound(account.delta(e)) / math.expm1(e), 1e300)
                if 0 < e < 700
                else (1e300 if e < 1 else 0.0)
            )

        return (1 + self.shape) * min(solve_epsilon(excess, 1.0, start=math.log1p(odds)), math.log1p(odds)) * _UP

    def delta(self, account: Account, shift: float) -> Callable[[float], float]:
        """The profile of the selected run, for every epsilon of at least zero."""

        def delta_of_selection(epsilon: float) -> float:
            past = math.nextafter(epsilon - shift, -math.inf)
            return 1.0 if past < 0 else min(1.0, self.mean * _UP * account.delta(past))

        return delta_of_selection

    def distance(self, account: Account) -> float:
        """Total variation of the selected run: the best of K differ only if some of them do, each with chance δ(0)."""
        return min(1.0, self._some(min(1.0, account.delta(0.0) * _UP)) * _UP)

    def _some(self, chance: float) -> float:
        """1 - E[(1-x)^K]: that any of the runs does what one does with chance x."""
        if math.isinf(self.shape):
            return -math.expm1(-self.mean * chance)
        odds = self.odds
        if odds == 0:
            return chance
        reached, most = math.log1p(odds * chance), math.log1p(odds)
        return reached / most if self.shape == 0 else math.expm1(-self.shape * reached) / math.expm1(-self.shape * most)

    def beyond(self, cap: int) -> float:
        """Pr[K > cap], rounded up: the first term, and a geometric series above the rest."""
        if math.isinf(self.shape):
            return min(1.0, _poisson_tail(cap + 1, self.mean) * _UP + FLOOR)
        gamma, eta, k = success(self.mean, self.shape), self.shape, cap + 1
        fall = gamma - (1 - gamma) * max(0.0, (eta - 1) / (k + 1))  # by which a term is less than the one before
        if gamma == 1 or fall <= 0:
            return 0.0 if gamma == 1 else 1.0
        log = k * math.log1p(-gamma) + _log_quotient(k, eta)
        if eta == 0:
            log -= math.log(-math.log(gamma))
        else:  # the sum of all terms is Γ(η)·(γ^-η - 1)
            log -= gammaln(eta) + _log_rise(-eta * math.log(gamma))
        return min(1.0, math.exp(min(0.0, float(log) - math.log(fall))) * _UP + FLOOR)

    def curve(self, orders: Array, own: Array, known: Array, all_of_them: Array, account: Account) -> Array:
        """Rényi divergences at ``orders``, of runs that have ``own`` there and ``all_of_them`` at the orders ``known``.

        Theorem 2; for Poisson Theorem 6, with exp(-m) for the runs that never happen, which its bound must cover too.
        """
        if math.isinf(self.shape):
            slopes = _chords(account, 1 / (orders - 1))
            return own + (self.mean * slopes + math.log(self.mean + math.exp(-self.mean)) / (orders - 1)) * _UP
        rarity = math.log1p(self.odds)  # log 1/γ
        best = float(np.min((1 - 1 / known) * all_of_them + rarity / known))
        return own + ((1 + self.shape) * best + math.log(self.mean) / (orders - 1)) * _UP


def _chords(account: Account, rises: Array) -> Array:
    """Delta at log(1 + r), at most: chords between every fourth r, above which it lies, being convex in e^ε; and
    between all around one, where those are far apart.
    """
    at = np.sort(rises)
    far, last = (at > 0.3) & (at < 5.0), np.arange(len(at)) == len(at) - 1
    at = at[(np.arange(len(at)) % _EVERY == 0) | far | last]
    deltas = [account.delta(math.log1p(rise) * (1 - 1e-12)) for rise in at]
    return np.asarray(np.interp(rises, at, deltas))


def _poisson_tail(k: int, mean: float) -> float:
    """Pr[K >= k], rounded up: above the mean by its terms, as scipy's loses digits there.

    The first is at most by Stirling's series, where all that is large has cancelled.
    """
    if k <= mean:
        return float(poisson.sf(k - 1, mean))
    away = (mean - k) / k
    log = k * (math.log1p(away) - away) - (math.log(2 * math.pi * k) + 1 / (6 * k) - 1 / (180 * k**3)) / 2
    factors = mean / (k + np.arange(1.0, 10 * math.sqrt(mean) + 50))
    terms = np.cumprod(factors)
    return math.exp(log) * float(1 + np.sum(terms) + terms[-1] * factors[-1] / (1 - factors[-1]))


def _log_quotient(k: int, shape: float) -> float:
    """log Γ(k+η)/Γ(k+1), at most: Kershaw (1983) for what η is above a whole number, and a factor for each whole."""
    whole = math.floor(shape)
    rest = shape - whole
    log = (rest - 1) * math.log(k + rest / 2)
    return log - math.log(k + shape) if whole < 0 else log + sum(math.log(k + rest + j) for j in range(whole))


def _log_rise(x: float) -> float:
    """log|exp(x) - 1|, where exp would overflow too."""
    return max(x, 0.0) + math.log(-math.expm1(-abs(x)))


def runs_of(event: Selected) -> Runs:
    """The law that an event names.

    >>> from discreet.events import PureDP
    >>> runs_of(Selected(event=PureDP(epsilon=1.0), mean=10, law="poisson")).shape
    inf
    """
    shapes = _SHAPES | {"poisson": math.inf}
    return Runs(event.mean, choice("law", event.law, shapes) if isinstance(event.law, str) else event.law)
