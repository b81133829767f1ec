r"""Tests of several coefficients of a regression together: contrasts, and joint tests, of what was released already.

``linear.inference.coefficients`` pays for estimates with a covariance that holds the noise. What is made of them is
post-processing and costs nothing more. With C the covariance and L the contrasts,

.. math:: (L\hat\beta - c)^\top (L C L^\top)^{-1} (L\hat\beta - c) \sim \chi^2_{\mathrm{rank} L}

where the null hypothesis holds (Wald 1943): the noise of both is normal, and C is no smaller than the truth.

>>> from types import SimpleNamespace
>>> fit = SimpleNamespace(estimate=np.array([2.0, 1.0]), covariance=np.eye(2) / 25, confidence=0.95)
>>> contrast(fit, [1, -1]).effect, joint(fit, [0, 1]).p_value < 0.001
(1.0, True)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from scipy import stats

from discreet.errors import choice, number, whole
from discreet.inference.classical import normal_tail
from discreet.inference.hypothesis import Alternative, HypothesisTest
from discreet.inference.simulation import Array

__all__ = ["Estimated", "contrast", "joint"]

ASSUMES = "What the coefficients' own intervals assume; errors near to normal."
_LARGEST = 1e150  # so that squares stay finite
UNKNOWN = "No interval could be given for these coefficients: nothing can be concluded, and p is 1."


class Estimated(Protocol):
    """Estimates that are near to normal, with a covariance: ``linear.inference.Coefficients``."""

    @property
    def estimate(self) -> Array:
        """The estimates."""
        ...

    @property
    def covariance(self) -> Array:
        """Their covariance, the noise's part in it."""
        ...

    @property
    def confidence(self) -> float:
        """Of intervals."""
        ...


def contrast(
    fit: Estimated, weights: Sequence[float], *, null: float = 0.0, alternative: Alternative = "two-sided"
) -> HypothesisTest:
    """Whether a sum of coefficients with these weights (the intercept's last) is ``null``, with its interval.

    >>> from types import SimpleNamespace
    >>> fit = SimpleNamespace(estimate=np.array([2.0, 1.0]), covariance=np.eye(2) / 100, confidence=0.95)
    >>> [round(end, 2) for end in contrast(fit, [0.5, 0.5]).interval]
    [1.36, 1.64]
    """
    choice("alternative", alternative, dict.fromkeys(("two-sided", "greater", "less")))
    given = _contrasts(fit, [weights])[0]
    effect, null = float(given @ fit.estimate), _finite("null", null)
    error = math.sqrt(_forms(fit, given[None])[0, 0])
    if not math.isfinite(error):
        return HypothesisTest(0.0, 1.0, effect, (-math.inf, math.inf), fit.confidence, ASSUMES, note=UNKNOWN)
    statistic = (effect - null) / error
    reach = float(stats.norm.isf((1 - fit.confidence) / 2)) * error
    p_value = float(normal_tail(np.array(statistic), alternative))
    return HypothesisTest(
        statistic,
        p_value,
        effect,
        (effect - reach, effect + reach),
        fit.confidence,
        ASSUMES,
        effect_name="contrast",
        alternative=alternative,
    )


def joint(fit: Estimated, of: Sequence[int] | Sequence[Sequence[float]]) -> HypothesisTest:
    """Whether several coefficients, named by their places, are all zero; or several contrasts, each a row of weights.

    The effect is the square of the root mean square of what is tested, in units of its errors, less 1: what the errors
    do not explain; it has no interval.

    >>> from types import SimpleNamespace
    >>> fit = SimpleNamespace(estimate=np.array([0.1, 0.1]), covariance=np.eye(2) / 100, confidence=0.95)
    >>> round(joint(fit, [0, 1]).p_value, 3)
    0.368
    """
    rows = _contrasts(fit, of)
    if np.linalg.matrix_rank(rows) < len(rows):
        raise ValueError("of has contrasts that follow from each other: leave out those that add nothing.")
    covariance = _forms(fit, rows)
    if not np.isfinite(covariance).all():
        return HypothesisTest(
            0.0, 1.0, 0.0, (-math.inf, math.inf), fit.confidence, ASSUMES, note=UNKNOWN, effect_name="excess"
        )
    far, rank = rows @ fit.estimate, len(rows)
    statistic = float(far @ np.linalg.solve(covariance, far))
    p_value = float(stats.chi2.sf(statistic, rank))
    return HypothesisTest(
        statistic,
        p_value,
        statistic / rank - 1,
        (-math.inf, math.inf),
        fit.confidence,
        ASSUMES,
        effect_name="excess of the mean square over 1, in errors",
    )


def _contrasts(fit: Estimated, of: Sequence[int] | Sequence[Sequence[float]]) -> Array:
    """Rows of weights, one for each coefficient and the intercept."""
    size = len(fit.estimate)
    if not len(of):
        raise ValueError("of is empty, but must name coefficients by their places, or have rows of weights.")
    if all(isinstance(place, (int, np.integer)) for place in of):
        return np.eye(size)[[whole("of", place, low=0, high=size - 1) for place in of]]
    rows = [[_finite("weights", weight) for weight in row] for row in of]  # type: ignore[union-attr]
    if any(len(row) != size for row in rows) or not all(any(row) for row in rows):
        raise ValueError(
            f"weights must be {size} numbers, not all zero: one for each coefficient, the intercept's last."
        )
    return np.array(rows)


def _finite(name: str, value: float) -> float:
    return number(name, value, low=-_LARGEST, high=_LARGEST)


def _forms(fit: Estimated, rows: Array) -> Array:
    """The covariance of contrasts; infinite where nothing is known."""
    if not np.isfinite(fit.covariance).all():
        return np.full((len(rows), len(rows)), math.inf)
    return np.asarray(rows @ fit.covariance @ rows.T)
