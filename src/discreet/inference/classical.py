r"""The tests of the textbooks, for totals that carry no noise to speak of.

Where the noise provably moves nothing, a null law need not be simulated: it is the one that the test is named after,
and the p-value is the one of any statistics package. "Provably" is a bound on the noise that fails with probability
below 2^-40, beside what the statistic is divided by; everywhere else the law is simulated with the noise.

Decision 553.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats

from discreet.errors import choice
from discreet.inference.simulation import Array
from discreet.mechanisms.budget import AdditiveMechanism

__all__ = [
    "StudentTest",
    "chi_squared_law",
    "largest_noise",
    "normal_law",
    "normal_tail",
    "pearson",
    "rank_sum",
    "student",
    "unnoticeable",
    "welch_anova",
]

_FAILURE = 2.0**-40  # the probability with which any noise may exceed its bound
_UNNOTICEABLE = 1e-3  # of a deviation, or of a variance, of sampling: a p-value moves by less than 5e-4
_COCHRAN = 5.0  # records that each cell has to expect for the law of chi-squared: Cochran (1954)


def largest_noise(mechanism: AdditiveMechanism, entries: int) -> float:
    """What the noise on so many totals stays within, all at once, but for a probability of 2^-40.

    >>> from discreet.mechanisms import DiscreteLaplace
    >>> largest_noise(DiscreteLaplace(sensitivity=1, scale=0.01), 100)
    0.0
    """
    return float(mechanism.error(1 - _FAILURE / entries))


def unnoticeable(mechanism: AdditiveMechanism, entries: int, *sizes: Array) -> Array:
    """Whether the noise on any of so many totals is lost beside all of these sizes, which lie on the last axis."""
    reach = largest_noise(mechanism, entries)
    return np.asarray(np.logical_and.reduce([(reach <= _UNNOTICEABLE * size).all(-1) for size in sizes]))


class StudentTest(NamedTuple):
    """A studentised contrast of means, its p-value and the half-width of its interval."""

    statistic: Array
    p_value: Array
    reach: Array


@np.errstate(all="ignore")  # where noise matters, and anything may be zero, the answer is not used
def student(
    effect: Array, null: float, errors: Array, sizes: Array, alternative: str, confidence: float
) -> StudentTest:
    """A contrast of means whose groups (on the last axis) have these variances of their means: Student's t with
    Satterthwaite's degrees of freedom, which are n - 1 where there is one group (Welch 1947).
    """
    error = errors.sum(-1)
    free = error**2 / (errors**2 / (sizes - 1)).sum(-1)
    statistic = (effect - null) / np.sqrt(error)
    reach = stats.t.isf((1 - confidence) / 2, free) * np.sqrt(error)
    return StudentTest(statistic, _tail(stats.t(free), statistic, alternative), reach)


@np.errstate(all="ignore")  # where noise matters, and anything may be zero, the answer is not used
def welch_anova(means: Array, errors: Array, sizes: Array) -> tuple[Array, Array]:
    """Welch's F of groups on the last axis, whose means have these variances, and its p-value (Welch 1951)."""
    k, weight = means.shape[-1], 1 / errors
    share = weight / weight.sum(-1, keepdims=True)
    between = (weight * (means - (share * means).sum(-1, keepdims=True)) ** 2).sum(-1) / (k - 1)
    unequal = ((1 - share) ** 2 / (sizes - 1)).sum(-1)
    statistic = between / (1 + 2 * (k - 2) * unequal / (k**2 - 1))
    return statistic, stats.f.sf(statistic, k - 1, (k**2 - 1) / (3 * unequal))


@np.errstate(all="ignore")  # where noise matters, and anything may be zero, the answer is not used
def pearson(r: Array, size: Array, alternative: str, confidence: float) -> tuple[Array, Array, Array, Array]:
    """Student's t of a correlation, its p-value, and its interval by Fisher's transform (Fisher 1921)."""
    statistic = r * np.sqrt(np.maximum(size - 2, 0.0) / (1 - r**2))
    reach = stats.norm.isf((1 - confidence) / 2) / np.sqrt(np.maximum(size - 3, 1.0))
    ends = (np.tanh(np.arctanh(r) - reach), np.tanh(np.arctanh(r) + reach))
    return statistic, _tail(stats.t(size - 2), statistic, alternative), *ends


def chi_squared_law(statistic: Array, expected: Array, free: int) -> tuple[Array, Array]:
    """The p-value of Pearson's statistic, and whether every cell expects enough for its law."""
    return stats.chi2.sf(statistic, free), _expect_enough(expected)


def normal_law(statistic: Array, alternative: str, expected: Array) -> tuple[Array, Array]:
    """The p-value of a standard normal statistic, and whether every count it is made of expects enough."""
    return normal_tail(statistic, alternative), _expect_enough(expected)


def normal_tail(statistic: Array, alternative: str) -> Array:
    """The p-value of a standard normal statistic.

    >>> float(normal_tail(np.array(0.0), "greater"))
    0.5
    """
    return _tail(stats.norm(), statistic, alternative)


def rank_sum(counts: Array, alternative: str) -> tuple[Array, Array]:
    """Of two groups in ordered bins: Mann and Whitney's p-value, with the correction for ties and for continuity, and
    whether the normal law holds: at least 20 records a group, of which 5 are expected beside the fullest bin.
    """
    sizes, both = counts.sum(-1), counts.sum(-2)
    first, total = counts[..., 0, :], both.sum(-1)
    u = (first * (np.cumsum(counts[..., 1, :], -1) - counts[..., 1, :] / 2)).sum(-1)
    pairs = sizes.prod(-1)
    ties = (both**3 - both).sum(-1) / np.maximum(total * (total - 1), 1.0)
    error = np.sqrt(np.maximum(pairs / 12 * (total + 1 - ties), 1e-12))
    away = u - pairs / 2
    signed: dict[str, Callable[[], Array]] = {
        "two-sided": lambda: np.minimum(2 * stats.norm.sf((np.abs(away) - 0.5) / error), 1.0),
        "greater": lambda: stats.norm.sf((away - 0.5) / error),
        "less": lambda: stats.norm.cdf((away + 0.5) / error),
    }
    # of records that are tied in one bin but for a few, the smaller group may expect none of these
    untied = (1 - both.max(-1) / np.maximum(total, 1.0)) * sizes.min(-1)
    return choice("alternative", alternative, signed)(), (sizes >= 20).all(-1) & (untied >= _COCHRAN)


def _expect_enough(expected: Array) -> Array:
    return np.asarray((expected >= _COCHRAN).all((-1, -2)))


def _tail(law: stats.distributions.rv_frozen, statistic: Array, alternative: str) -> Array:
    """The probability of what speaks as much for the alternative."""
    sides: dict[str, Callable[[], Array]] = {
        "two-sided": lambda: 2 * law.sf(np.abs(statistic)),
        "greater": lambda: law.sf(statistic),
        "less": lambda: law.cdf(statistic),
    }
    return np.asarray(choice("alternative", alternative, sides)())
