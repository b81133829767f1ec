r"""Counts against one threshold: how large a bound they prove, and which threshold promises most.

*Raw counts* bound whatever ran: :math:`p \le e^\epsilon q + \delta`. *Gaussian counts* bound the mu of a claim that is
Gaussian, :math:`\mu \ge \Phi^{-1}(p) - \Phi^{-1}(q)`, and come near it where raw counts at a small delta cannot.

References: Jagielski, Ullman and Oprea (2020); Nasr et al. (2023) for Gaussian counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.accounting.gaussian import gaussian_epsilon
from discreet.auditing.lower_bounds import clopper_pearson
from discreet.auditing.reading import Scores

__all__ = ["Question", "Side", "promising"]

Side = tuple[bool, bool]  # whether outputs below the threshold are counted, and whether the neighbours are exchanged
_SIDES: tuple[Side, ...] = ((False, False), (False, True), (True, False), (True, True))
_FEWEST = 24  # outputs of a pilot on each side of a threshold, of which as many more are expected
_THRESHOLDS = 50


@dataclass(frozen=True)
class Question:
    """What is asked of counts: in how many trials, at which delta, each interval wrong with which probability."""

    trials: int
    delta: float
    alarm: float
    gaussian: bool

    def bound(self, counts: Sequence[int], side: Side) -> float:
        """The bound on one side: outputs above the threshold or below it, and on whose behalf."""
        likely, rare = self.hits_of_side(counts, side)
        p, q = clopper_pearson(likely, self.trials, self.alarm)[0], clopper_pearson(rare, self.trials, self.alarm)[1]
        return self._gaussian(p, q) if self.gaussian else self._raw(p, q)

    @property
    def most(self) -> float:
        """The largest bound there can be: that of outputs which always tell the neighbours apart."""
        return self.bound((self.trials, 0), _SIDES[0])

    def hits_of_side(self, counts: Sequence[int], side: Side) -> tuple[int, int]:
        """How often the set of this side was hit: by the neighbour it is to be likely for, and by the other."""
        below, exchanged = side
        first, second = (self.trials - n for n in counts) if below else counts
        return (second, first) if exchanged else (first, second)

    def _raw(self, p: float, q: float) -> float:
        return math.log((p - self.delta) / q) if p - self.delta > q else 0.0

    def _gaussian(self, p: float, q: float) -> float:
        from scipy.special import ndtri

        mu = float(ndtri(p) - ndtri(q)) if p > 0 and q < 1 else 0.0
        return gaussian_epsilon(noise_multiplier=1 / mu, delta=self.delta) if mu > 0 else 0.0


def promising(pilot: Sequence[Scores], asked: Question) -> tuple[float, Side]:
    """The threshold, and its side, at which counts like the pilot's would give the largest bound."""
    size, everything = len(pilot[0]), np.concatenate(pilot)
    if asked.gaussian:  # between the means is best, nearly; what a pilot counts is noisier than that
        first, second = (float(each.mean()) for each in pilot)
        return (first + second) / 2, (False, first < second)
    best, chosen = (-1.0, 0.0), (float(np.median(everything)), _SIDES[0])
    for threshold in _thresholds(everything):
        above = [int((each > threshold).sum()) for each in pilot]
        few = min(min(above), size - max(above)) < min(_FEWEST, size // 20)
        # so few say little of what is to come: only what they prove by themselves counts
        question = replace(asked, trials=size) if few else asked
        expected = above if few else [round(asked.trials * count / size) for count in above]
        for side in _SIDES:
            likely, rare = question.hits_of_side(expected, side)
            promise = question.bound(expected, side), (likely - rare) / math.sqrt(likely + rare + 1)
            if promise > best:  # where nothing is proved yet, what stands out most
                best, chosen = promise, (float(threshold), side)
    return chosen


def _thresholds(everything: Scores) -> Scores:
    values = np.unique(everything)
    if len(values) <= _THRESHOLDS:
        return values
    return np.unique(np.quantile(everything, np.linspace(0.01, 0.99, _THRESHOLDS)))
