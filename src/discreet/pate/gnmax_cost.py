r"""GNMax's data-dependent cost: what the votes that were cast would have cost, small where teachers agree; private.

An aggregator's event holds for every data set and is what a book is charged. For one data set, whose votes are known,
the Rényi divergence to every neighbour can be bounded by much less: if an outcome has probability at least 1 − q,

.. math:: \epsilon(\lambda) \le \frac{1}{\lambda-1} \log\bigl((1-q) A^{\lambda-1} + q B^{\lambda-1}\bigr), \quad
          A = \frac{1-q}{1-(q e^{\epsilon_2})^{(\mu_2-1)/\mu_2}}, \quad B = \frac{e^{\epsilon_1}}{q^{1/(\mu_1-1)}}

for a mechanism of divergence ε₁ at order μ₁ ≥ λ and ε₂ at order μ₂ > 1, provided that q e^{ε₂} < 1 and
:math:`q \le e^{(\mu_2-1)\epsilon_2} / (\frac{\mu_1}{\mu_1-1}\frac{\mu_2}{\mu_2-1})^{\mu_2}`. Where a condition fails,
and wherever it is larger, the bound of the event counts: λ/σ² for an answer, λ/(2σ₁²) for a test.

Such a figure is a function of private votes and bounds one data set in one direction. ``DataDependentCost`` is no
event: no book, accountant or report takes it, before or after ``SanitisedCost`` has made it fit to be shown.

Reference: Papernot et al. (2018), Theorem 6, Propositions 7, 8 and 10; for Laplace noise Papernot et al. (2017),
Theorems 2 and 3 and Lemma 4.

Decision 460.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.pate.aggregation import Aggregator, GNMax, LNMax, VoteAnswers
from discreet.pate.confident import InteractiveGNMax, Tested

__all__ = [
    "DataDependentCost",
    "answer_margins",
    "data_dependent_cost",
    "divergence",
    "laplace_divergence",
    "log_wrong",
    "log_wrong_laplace",
    "test_margins",
]

Array = NDArray[np.float64]
ORDERS: Array = np.concatenate([np.arange(1.5, 100, 0.5), np.geomspace(100, 2000, 60)])


@dataclass(frozen=True, repr=False, eq=False)
class DataDependentCost:
    """The Rényi divergence that these votes cost at each order: private, not to be published, and no price.

    ``epsilon(delta)`` is its (epsilon, delta) by the usual conversion, of the same standing.
    """

    orders: Array
    curve: Array

    def __repr__(self) -> str:
        return "DataDependentCost(private, not to be published: it bounds one data set, in one direction)"

    def epsilon(self, delta: float) -> float:
        """The least epsilon of any order. Private as the curve is; not a guarantee."""
        from discreet.accounting.conversion import rdp_to_epsilon

        return rdp_to_epsilon(self.orders, self.curve, delta)


def data_dependent_cost(
    aggregator: Aggregator, data: Any, answers: VoteAnswers, orders: ArrayLike = ORDERS
) -> DataDependentCost:
    """What ``answers`` cost of the ``data`` (the counts of all queries, or the pair of ``InteractiveGNMax``).

    >>> counts = np.array([[240, 5, 5], [235, 10, 5]])
    >>> votes = GNMax(sigma=40.0, queries=2)
    >>> cost = data_dependent_cost(votes, counts, votes.release(counts, rng=1).value)
    >>> cost
    DataDependentCost(private, not to be published: it bounds one data set, in one direction)
    >>> bool(cost.curve[0] < 0.2 * 2 * cost.orders[0] / 40**2)  # a fifth of what the event says of this order
    True
    """
    alpha = np.asarray(orders, np.float64)
    counts = np.asarray(data[0] if isinstance(aggregator, InteractiveGNMax) else data)[: len(answers.labels)]
    chosen = counts[answers.answered]
    if isinstance(aggregator, LNMax):
        curve = laplace_divergence(log_wrong_laplace(chosen, aggregator.scale), aggregator.scale, alpha)
    elif isinstance(aggregator, (GNMax, Tested)):
        curve = divergence(log_wrong(chosen, aggregator.sigma), aggregator.sigma, alpha)
    else:
        raise ValueError(f"aggregator is a {type(aggregator).__name__}, for which no data-dependent bound is known.")
    total = curve.sum(axis=0)
    if isinstance(aggregator, Tested):
        sigma = aggregator.sigma_threshold
        tests = _log_upper(np.abs(test_margins(aggregator, data, answers)))
        total = total + divergence(tests, sigma * math.sqrt(2), alpha).sum(axis=0)
    return DataDependentCost(alpha, total)


# --- how likely the outcome is another than the likeliest ----------------------------------------------------------


def log_wrong(counts: ArrayLike, sigma: float) -> Array:
    """The logarithm of a bound of Pr[another class than the largest wins] with Gaussian noise, for each query."""
    from scipy.special import logsumexp

    return np.minimum(logsumexp(_log_upper(answer_margins(counts, sigma)), axis=1), _cap(counts))


def answer_margins(counts: ArrayLike, sigma: float) -> Array:
    """How far every other class lies behind the largest, in deviations of the difference of two noises."""
    return _gaps(counts) / (sigma * math.sqrt(2))


def log_wrong_laplace(counts: ArrayLike, scale: float) -> Array:
    """The same for Laplace noise: a class behind by x scales wins with probability at most (2 + x) e^(-x) / 4."""
    from scipy.special import logsumexp

    behind = _gaps(counts) / scale
    return np.minimum(logsumexp(np.log(2 + behind) - math.log(4) - behind, axis=1), _cap(counts))


def test_margins(aggregator: Tested, data: Any, answers: VoteAnswers) -> Array:
    """How far each tested query lies above the threshold, in deviations of the test's noise."""
    if isinstance(aggregator, InteractiveGNMax):
        counts, shares = data
        value = np.max(np.asarray(counts) - aggregator.n_teachers * np.asarray(shares), axis=1)
    else:
        value = np.max(np.asarray(data), axis=1)
    tested = value[: len(answers.tested)][answers.tested]
    return np.asarray((tested - aggregator.threshold) / aggregator.sigma_threshold)


test_margins.__test__ = False  # type: ignore[attr-defined]  # no test of pytest's


def _gaps(counts: ArrayLike) -> Array:
    """(queries, classes - 1): the votes by which the largest leads, whichever of equals is called so."""
    ordered = np.sort(np.asarray(counts, np.float64).reshape(-1, np.shape(counts)[-1]), axis=1)
    return ordered[:, -1:] - ordered[:, :-1]


def _cap(counts: ArrayLike) -> float:
    """The likeliest of m outcomes has probability at least 1/m."""
    return math.log1p(-1 / np.shape(counts)[-1])


def _log_upper(margins: Array) -> Array:
    """The logarithm of the normal law's upper tail."""
    from scipy.special import log_ndtr

    return np.asarray(log_ndtr(-margins))


# --- the divergence ------------------------------------------------------------------------------------------------


def divergence(log_q: ArrayLike, sigma: float, orders: Array) -> Array:
    """(queries, orders): the bound for a mechanism of divergence λ/σ² that errs with probability at most q.

    An answer has the σ of its noise; a test, of divergence λ/(2σ₁²), has σ₁√2.
    """
    log_q = np.asarray(log_q, np.float64).reshape(-1, 1)
    free = np.broadcast_to(orders / sigma**2, (len(log_q), len(orders)))
    with np.errstate(all="ignore"):  # where a condition fails, the formula may be anything
        mu2 = sigma * np.sqrt(-log_q)  # the best orders, by Proposition 10
        mu1 = mu2 + 1
        e1, e2 = mu1 / sigma**2, mu2 / sigma**2
        log_a = np.log1p(-np.exp(log_q)) - np.log1p(-np.exp((log_q + e2) * (mu2 - 1) / mu2))
        log_b = e1 - log_q / (mu1 - 1)
        both = np.logaddexp(np.log1p(-np.exp(log_q)) + (orders - 1) * log_a, log_q + (orders - 1) * log_b)
        ratio = mu2 * (np.log1p(1 / mu2) - np.log1p(-1 / mu2))  # at least 2, also where mu2 + 1 rounds to mu2
        holds = (mu1 >= orders) & (mu2 > 1) & (-log_q > e2) & (log_q <= (mu2 - 1) * e2 - ratio)
        return np.where(holds, np.fmin(np.maximum(both / (orders - 1), 0), free), free)


def laplace_divergence(log_q: ArrayLike, scale: float, orders: Array) -> Array:
    """(queries, orders): the same for ``LNMax``, of pure ε₀ = 2/scale; holds for q ≤ 1/(e^ε₀ + 1)."""
    log_q = np.asarray(log_q, np.float64).reshape(-1, 1)
    pure = 2 / scale
    free = np.broadcast_to(np.minimum(pure**2 * orders / 2, pure), (len(log_q), len(orders)))
    with np.errstate(all="ignore"):
        right = np.log1p(-np.exp(log_q))
        ratio = right - np.log1p(-np.exp(pure + log_q))
        both = np.logaddexp(right + (orders - 1) * ratio, log_q + pure * (orders - 1))
        holds = log_q <= -np.log1p(np.exp(pure))
        return np.where(holds, np.fmin(np.maximum(both / (orders - 1), 0), free), free)
