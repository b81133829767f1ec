r"""Generalised additive classifiers by noisy boosting: a step function a feature, and their sum.

In round after round each feature's step function is corrected by a Newton step of the penalised likelihood, in which
the gradient, Σ of the residuals in every bin, is noisy and the rest is public or paid for:

.. math:: f_j \leftarrow f_j + (h N_j + \tau I + \alpha D^T D)^{-1} (\tilde g_j - (\tau I + \alpha D^T D) f_j)

with N the noisy counts of the bins, h a bound on the loss's curvature, D the differences between neighbouring bins of
an ordered feature. The next feature sees the corrected scores. What is returned is the average of the later rounds, in
which the noise of single steps is averaged out.

τ and α are in proportion to the noise. Classes are guessed by the sign of a score, which survives noise that its size
does not; a regression needs sizes, and has a boosting of its own (``additive_regression``).

Guarantee: a record is in one bin of a feature with a residual of at most 1, so every histogram of residuals, and of
counts, has sensitivity 1; their noises are independent, and their costs add up to the budget.

Reference: the model class and its private boosting: Nori, Caruana, Bu, Shen and Kulkarni (2021), DP-EBM. There leaves
are random and each takes a plain gradient step; here every bin is measured and what is lost in noise is smoothed away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.estimators.bins import Bins
from discreet.estimators.rounds import BinnedRounds
from discreet.estimators.sums import group_sums, noise_for
from discreet.mechanisms import Budget

__all__ = ["Additive", "total"]

_FAR = 2.0**20  # no score goes further in a round: residuals stay numbers, whatever the noise
COUNTING = 0.1  # the share of the budget that the counts of the bins take


@dataclass(frozen=True)
class Additive(BinnedRounds):
    """Boosting rounds for one or several scores."""

    bins: Bins
    nominal: frozenset[int]
    classes: NDArray[Any]
    rounds: int
    budget: Budget
    movement: int
    smoothing: float
    ridge: float

    counting_share = COUNTING

    @property
    def scores(self) -> int:
        """How many scores a record has: one, or one per class where there are more than two."""
        return len(self.classes) if len(self.classes) > 2 else 1

    @property
    def _reach(self) -> tuple[int, int]:
        """How far one record moves a histogram of residuals, in L1 and in L2 squared: a softmax has residuals of 2 in
        all, and of √2 in L2.
        """
        return (2, 2) if self.scores > 1 else (1, 1)

    @cached_property
    def noises(self) -> list[Any]:
        """Noise for each feature's residuals, in every round the same."""
        share = self.budget.part((1 - COUNTING) / (self.rounds * len(self.bins.counts)))
        return [noise_for(share, *self._reach, size * self.scores, self.movement) for size in self.bins.sizes]

    @property
    def event(self) -> events.Event:
        """The counts, and every round's histograms."""
        return self._counts_and_rounds

    def learn(self, rows: NDArray[np.float64], targets: NDArray[Any], rng: random.Rng) -> Mapping[str, Any]:
        """The step functions, averaged over the later rounds."""
        codes = self.bins.codes(rows)
        codes = np.where((targets >= 0)[:, None], codes, -1)
        solvers = self._solvers(codes, rng)
        terms = [np.zeros((size, self.scores)) for size in self.bins.sizes]
        scores = np.zeros((len(rows), self.scores))
        averaged, late = [term * 0 for term in terms], self.rounds - self.rounds // 2
        for number in range(self.rounds):
            for j, (solve, noise) in enumerate(zip(solvers, self.noises, strict=True)):
                residuals = self._residuals(scores, targets)
                sums = np.stack([group_sums(part, codes[:, j], self.bins.sizes[j]) for part in residuals.T], axis=1)
                noisy = noise.draw(sums.ravel(), rng).reshape(sums.shape)
                change = np.clip(np.nan_to_num(solve(noisy, terms[j])), -_FAR, _FAR)
                terms[j] = terms[j] + change
                scores += change[codes[:, j]]
            if number >= late - 1:
                averaged = [old + term / (self.rounds - late + 1) for old, term in zip(averaged, terms, strict=True)]
        return self._model(averaged)

    def _solvers(self, codes: NDArray[np.int64], rng: random.Rng) -> list[Any]:
        """Each feature's Newton step, from noisy counts that are paid for."""
        noisy = self._noisy_counts(codes, rng)
        return [self._solver(j, np.maximum(counts, 0.0)) for j, counts in enumerate(noisy)]

    def _solver(self, feature: int, counts: NDArray[np.float64]) -> Any:
        curvature = 0.25 if self.scores == 1 else 0.5
        penalty = self._penalty(feature)
        inverse = np.linalg.inv(curvature * np.diag(counts) + penalty)
        return lambda gradient, term: inverse @ (gradient - penalty @ term)

    def _penalty(self, feature: int) -> NDArray[np.float64]:
        """τI + αDᵀD."""
        size, noise = self.bins.sizes[feature], self.noises[feature].deviation
        smooth = 0.0 if feature in self.nominal else self.smoothing * noise
        differences = np.diff(np.eye(size), axis=0)[:-1]  # the last bin holds what is missing: nobody's neighbour
        return np.asarray(self.ridge * noise * np.eye(size) + smooth * differences.T @ differences)

    def _residuals(self, scores: NDArray[np.float64], targets: NDArray[Any]) -> NDArray[np.float64]:
        """What is left to explain: within [-1, 1], and within 2 in all over several scores."""
        if self.scores == 1:
            return np.asarray((targets == 1)[:, None] - 1 / (1 + np.exp(-np.clip(scores, -50, 50))))
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True) * (1 + 2.0**-40)  # their sum, rounded, stays below one
        return np.asarray((targets[:, None] == np.arange(self.scores)) - shares)

    def _model(self, terms: list[NDArray[np.float64]]) -> Mapping[str, Any]:
        return {"term_scores_": terms, "bins_": self.bins, "classes_": self.classes}


def total(terms: list[NDArray[np.float64]], codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The sum of the step functions at each record."""
    return np.asarray(sum(term[codes[:, j]] for j, term in enumerate(terms)))
