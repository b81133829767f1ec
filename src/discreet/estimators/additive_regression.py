r"""Generalised additive regression by noisy boosting: smooth parts, measured where they are believed to vary.

An intercept and the targets' standard deviation s come first, then the counts of the bins. In round after round each
feature's sums of residuals, cut to a few s, are measured under noise (``terms``), and what is measured of its part f_j,

.. math:: A(h_j + N_j f_j) + \text{noise},

is averaged over the later rounds; f_j is the posterior mean given that average. The residuals that the next feature
sees are those after it. Cutting residuals is Huber's loss: it costs little, and noise shrinks with the cut.

Guarantee: a record is in one bin of a feature, its residual is divided by the cut and lies in [-1, 1], and a column of
A has norm at most 1, so every measurement has sensitivity 1, whatever A and the cut are; these follow from what was
released before. The noises' costs add up to the budget.

References: the model class and its private boosting: Nori, Caruana, Bu, Shen and Kulkarni (2021), DP-EBM; the cut:
Huber (1964).

Decision 387.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.estimators.bins import Bins
from discreet.estimators.rounds import BinnedRounds
from discreet.estimators.sums import COARSE, FINE, cut, group_sums, noise_for
from discreet.estimators.terms import VARIANCE, Term
from discreet.mechanisms import Budget

__all__ = ["AdditiveRegression"]

MOMENTS, COUNTING = 0.03, 0.07  # shares of the budget: of the targets' mean and square, and of the bins' counts
LATE = 0.6  # of the rounds: those over which measurements are averaged
CUT = 1.5  # standard deviations of the target that a residual may have where noise decides
FEW = 3  # features of which each may have all of the targets' variance: more share it
PLENTY = 1000.0  # of records over noise and √features: from there the cut widens, with the cube root

Array = NDArray[np.float64]


@dataclass(frozen=True)
class AdditiveRegression(BinnedRounds):
    """Rounds of measurements for an intercept and each feature's part; targets are in [-1, 1], or NaN."""

    bins: Bins
    nominal: frozenset[int]
    rounds: int
    budget: Budget
    movement: int
    bent: float = 1.0  # of the parts, and their variance, relative to what ``terms`` assumes
    variance: float = 1.0

    counting_share = COUNTING

    @cached_property
    def terms(self) -> list[Term]:
        """Each feature's part, before anything is known of it."""
        variance = self.variance * min(1.0, FEW / len(self.bins.counts))
        return [
            Term(count, j in self.nominal, self.budget.pure, self.bent, variance)
            for j, count in enumerate(self.bins.counts)
        ]

    @cached_property
    def moments(self) -> Any:
        """Noise for the sum of the targets and of their squares."""
        return noise_for(self.budget.part(MOMENTS), 2, 2, 2, self.movement)

    @cached_property
    def noises(self) -> list[Any]:
        """Noise for each feature's measurements, in every round the same."""
        share = self.budget.part((1 - COUNTING - MOMENTS) / (self.rounds * len(self.bins.counts)))
        return [
            noise_for(share, 1 if self.budget.pure else math.isqrt(size) + 1, 1, size, self.movement)
            for size in self.bins.sizes
        ]

    @property
    def event(self) -> events.Event:
        """The moments, the counts, and every round's measurements."""
        return self.moments.event + self._counts_and_rounds  # type: ignore[no-any-return]

    def learn(self, rows: Array, targets: Array, rng: random.Rng) -> Mapping[str, Any]:
        """The intercept and the parts."""
        usable = np.isfinite(targets)
        codes = np.where(usable[:, None], self.bins.codes(rows), -1)
        targets = np.where(usable, targets, 0.0)
        sums, counts = self._moments(targets, usable, rng), self._counts(codes, rng)
        records = max(float(np.mean([count.sum() for count in counts])), 1.0)
        intercept, level, width = self._scale(sums, records)
        strategies = [
            term.strategy(count, width * noise.deviation / math.sqrt(max(1.0, LATE * self.rounds)), level)
            for term, count, noise in zip(self.terms, counts, self.noises, strict=True)
        ]
        parts = [np.zeros(size) for size in self.bins.sizes]
        measured: list[list[Array]] = [[] for _ in parts]
        scores = np.full(len(rows), intercept)
        for _ in range(self.rounds):
            for j, (term, noise, strategy) in enumerate(zip(self.terms, self.noises, strategies, strict=True)):
                residuals = np.clip((targets - np.clip(scores, -1, 1)) / width, -1, 1)
                noisy = noise.draw(strategy @ group_sums(residuals, codes[:, j], len(parts[j]), COARSE), rng)
                measured[j].append(width * noisy + strategy @ (counts[j] * parts[j]))
                late = measured[j][int(len(measured[j]) * (1 - LATE)) :]
                deviation = width * noise.deviation / math.sqrt(len(late))
                part = term.learn(strategy, counts[j], np.mean(late, axis=0), deviation, level)
                part = np.clip(np.nan_to_num(part), -2, 2)
                scores += (part - parts[j])[codes[:, j]]
                parts[j] = part
        return {"term_scores_": [part[:, None] for part in parts], "bins_": self.bins, "intercept_": intercept}

    def _moments(self, targets: Array, usable: NDArray[np.bool_], rng: random.Rng) -> Array:
        both = np.stack([targets[usable], targets[usable] ** 2])
        return np.asarray(self.moments.draw(cut(both, FINE).sum(axis=1) / FINE, rng))

    def _counts(self, codes: NDArray[np.int64], rng: random.Rng) -> list[Array]:
        """Noisy counts, drawn towards equal ones as far as noise may explain the difference, and above zero."""
        noisy = self._noisy_counts(codes, rng)
        deviation = self.counting.deviation
        records = max(float(np.mean([count.sum() for count in noisy])), deviation)
        counts = []
        for seen, bins in zip(noisy, self.bins.counts, strict=True):
            equal = np.append(np.full(bins, records / bins), 0.0)
            trust = 1 / (1 + (deviation * bins / records) ** 2)
            counts.append(np.maximum.reduce([equal + trust * (seen - equal), seen - deviation, 1e-3 * equal + 1e-9]))
        return counts

    def _scale(self, sums: Array, records: float) -> tuple[float, float, float]:
        """The targets' mean, drawn to the middle as far as it is noise; what each feature's level may
        add to it; and where residuals are cut."""
        records = max(records, 2 * self.moments.deviation)
        noise = (self.moments.deviation / records) ** 2
        mean = float(np.clip(sums[0] / records / (1 + noise / VARIANCE), -1, 1))
        variance = float(np.clip(sums[1] / records - mean**2, 0.01, 1))
        whole_budget = self.moments.deviation * math.sqrt(MOMENTS / 2 * len(self.bins.counts))
        plenty = max(1.0, records / whole_budget / PLENTY) ** (1 / 3)
        unknown = VARIANCE * noise / (VARIANCE + noise) / len(self.bins.counts)
        return mean, unknown, min(1.0, CUT * plenty * math.sqrt(variance))
