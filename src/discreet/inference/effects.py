"""Average effects of a treatment: inverse-propensity weighting, and doubly robust with predictions.

In a randomised trial without covariates ``Welch`` is the test. Where the chance to be treated differs between records,
and is known or was modelled, each record has a score whose mean is the average effect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Unpack

import numpy as np

from discreet.errors import number, positive
from discreet.inference.columns import NUMBERS, check_columns, read_columns
from discreet.inference.hypothesis import AskedOfTest, HypothesisTest, Outcome, ReleasedTest, ask_test, spell_test
from discreet.inference.mean_tests import MeanTest
from discreet.inference.simulation import Array
from discreet.mechanisms.parameters import store
from discreet.random import exact_sum
from discreet.statistics.bounded import BITS, Bounds, positions

__all__ = ["AverageEffect", "average_effect"]

_NAMES = ("treated", "outcome", "propensity", "prediction_treated", "prediction_control")
_WEIGHT = Fraction(1, 4)  # of what is cut off, beside the sums of the scores


@dataclass(frozen=True, slots=True, kw_only=True)
class AverageEffect(MeanTest):
    r"""The average effect of a treatment on a bounded outcome, weighted by propensities; the doubly robust form with
    predictions.

    Data are columns side by side: treated (1 or 0), outcome, propensity (the chance of being treated), and with
    ``predictions=True`` the outcomes that a model predicts with and without treatment. ``bounds`` are the outcome's;
    predictions are clipped to them, and without predictions the middle of the bounds stands for both. The score is

    .. math:: \psi = m_1 - m_0 + \frac{a\,(y - m_1)}{e} - \frac{(1-a)(y - m_0)}{1-e}

    whose mean is the average effect if the propensities or the predictions are right. ``overlap`` η: records whose
    propensity lies outside [η, 1-η] are left out, so that the effect is of those between (Crump et al. 2009), and
    weights are at most 1/η. ``limit`` cuts scores off at ±limit, for less noise; by how much that may have moved the
    effect is measured with noise too, for a fifth of the price, and stated apart as ``bias``, which the interval does
    not hold.
    Propensities and predictions are taken as given: from a design, from other data, or from a private model.
    Reference: Horvitz and Thompson (1952); Robins, Rotnitzky and Zhao (1994).

    >>> test = AverageEffect(bounds=(0, 1), overlap=0.2, epsilon=1.0)
    >>> treated, chance = [1, 0, 0, 1] * 1000, [0.25, 0.25, 0.5, 0.5] * 1000
    >>> answer = test.release((treated, [0.9, 0.1, 0.1, 0.9] * 1000, chance), rng=1)
    >>> answer.p_value < 0.001, answer.bias
    (True, 0.0)
    """

    overlap: float = 0.05
    limit: float | None = None
    predictions: bool = False

    label = "average effect"
    effect_name = "average effect"
    assumes: ClassVar[str] = "No unmeasured confounding; propensities, or predictions, are right; independent records."

    def __post_init__(self) -> None:
        overlap = number("overlap", self.overlap, low=0, high=0.5, open_low=True)
        store(self, overlap=overlap, limit=None if self.limit is None else positive("limit", self.limit))
        MeanTest.__post_init__(self)

    @property
    def _reach(self) -> float:
        """The largest score that public facts allow."""
        spread = self.bounds[1] - self.bounds[0]
        return spread * (1 + 1 / self.overlap if self.predictions else 0.5 / self.overlap)

    @property
    def record_bounds(self) -> Bounds:
        """Of the scores."""
        limit = self._reach if self.limit is None else min(self.limit, self._reach)
        return -limit, limit

    @property
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        moved = Fraction(2 if self._replace else 1)
        if self.limit is None:
            return moved, moved, 3
        return moved * (1 + _WEIGHT), moved * (1 + _WEIGHT**2), 4

    @property
    def _readers(self) -> tuple[None, ...]:
        return (NUMBERS,) * (len(_NAMES) if self.predictions else 3)

    def check(self, data: Any) -> None:
        """The columns."""
        check_columns(data, self._readers, _NAMES[: len(self._readers)])

    def parts(self, values: Any) -> list[Any]:
        """The scores, not cut off. Private."""
        treated, outcome, chance, *predicted = (x.astype(np.float64) for x in read_columns(values, self._readers))
        low, high = self.bounds
        middle = np.full(len(treated), (low + high) / 2)
        with_it, without = (np.clip(part, low, high) for part in (predicted or (middle, middle)))
        y = np.clip(outcome, low, high)
        valid = np.isin(treated, (0, 1)) & (chance >= self.overlap) & (chance <= 1 - self.overlap)
        weight = np.where(treated == 1, 1 / np.where(valid, chance, 1.0), 1 / np.where(valid, 1 - chance, 1.0))
        score = with_it - without + weight * np.where(treated == 1, y - with_it, without - y)
        return [np.where(valid, score, np.nan)]

    def totals(self, values: Any) -> Array:
        """The exact totals of the scores, and, with a limit, of what it cuts off. Private."""
        [scores] = self.parts(values)
        triple = self._triple(scores)
        if self.limit is None:
            return np.asarray(triple)[None]
        place = positions(np.abs(scores), (self.record_bounds[1], self._beyond))
        return np.asarray([[*triple, exact_sum(place[place >= 0]) / Fraction(1 << BITS) * _WEIGHT]], object)

    @property
    def _origin(self) -> float:
        return self.record_bounds[0]

    @property
    def _beyond(self) -> float:
        """Up to where what is cut off counts."""
        return max(self._reach, math.nextafter(self.record_bounds[1], math.inf))

    def infer(self, noisy: Array) -> Outcome:
        """A studentised mean of the scores, against its simulated law."""
        return MeanTest.infer(self, noisy[..., :3])

    def answer(self, noisy: Any) -> HypothesisTest:
        """The test's answer, and by how much the limit may have moved it, with 95 % confidence."""
        totals = np.asarray(noisy, np.float64)
        answer = MeanTest.answer(self, totals)
        if self.limit is None:
            return answer
        cut = max(0.0, totals[0, 3] + self.mechanism.error(0.95)) / float(_WEIGHT) / max(totals[0, :3].sum(), 1.0)
        return replace(answer, bias=min(1.0, cut) * (self._beyond - self.record_bounds[1]))

    def caveat(self, noisy: Array) -> str:
        """What the sums of the scores say."""
        return MeanTest.caveat(self, noisy[..., :3])

    @property
    def largest_effect(self) -> float:
        """All that the outcome's bounds allow."""
        return self._toward(self.bounds[1] - self.bounds[0])


@spell_test("average effect")
def average_effect(
    treated: Any,
    outcome: Any,
    propensity: Any,
    *predictions: Any,
    bounds: Bounds,
    overlap: float = 0.05,
    limit: float | None = None,
    **asked: Unpack[AskedOfTest],
) -> ReleasedTest:
    """The average effect of a treatment: see ``AverageEffect``; ``predictions`` are two further columns, or none.

    >>> round(average_effect([1, 0] * 2000, [3, 1] * 2000, [0.5] * 4000, bounds=(0, 4), epsilon=1.0, rng=1).effect)
    2
    """
    facts = {"bounds": bounds, "overlap": overlap, "limit": limit, "predictions": bool(predictions)}
    return ask_test(AverageEffect, (treated, outcome, propensity, *predictions), asked, **facts)
