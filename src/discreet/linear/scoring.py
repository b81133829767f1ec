r"""How well a model predicts rows that it was not fitted to, said privately (hold-out validation).

Each row is held back with probability ``share`` by a coin of its own, so the rows of the fit and those of the score are
disjoint: whoever is in one part moves nothing in the other but what was released, and pays for one of the two
(decision 386). The loss of a row is 1 for a wrong label, or the distance of a number from its prediction, at most the
width of the bounds. Its private mean takes half of epsilon; a quarter pays for what a constant would lose, the most
frequent label or the private mean, and the rest for the number of rows.

The interval is of the loss of new rows: of it the noise has 97.5 %, by its law, and the chance in which rows were held
back 97.5 %, by the normal law at the largest variance that such a mean allows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.events import Event
from discreet.random import Rng
from discreet.schema import Bounded, Categories
from discreet.statistics import Count, Histogram, Mean

__all__ = ["HeldOutScore", "Score"]

_NORMAL = 2.2414  # of 97.5 % within
_NOISE = 0.975


@dataclass(frozen=True, slots=True)
class Score:
    """The loss of a model on rows held back, the ends of its 95 % interval, and the loss of a constant."""

    measure: str
    loss: float
    low: float
    high: float
    constant: float
    rows: int

    def __str__(self) -> str:
        rows = f"of about {self.rows:,} rows that were held back"
        if self.measure == "share of wrong labels":
            right, low, high = (f"{100 * (1 - end):.1f} %" for end in (self.loss, self.high, self.low))
            always = f"{100 * (1 - self.constant):.1f} %"
            return f"right on {right} ({low} to {high}) {rows}; the most frequent label alone on about {always}"
        off, low, high = (f"{end:,.4g}" for end in (self.loss, self.low, self.high))
        return f"off by {off} on average ({low} to {high}) {rows}; their mean alone by about {self.constant:,.4g}"


@dataclass(frozen=True)
class HeldOutScore:
    """The loss of predictions of a target, at a price of ``epsilon``, without a delta."""

    goal: Bounded | Categories
    epsilon: float

    @property
    def _loss(self) -> Mean:
        width = 1.0 if isinstance(self.goal, Categories) else self.goal.high - self.goal.low
        return Mean(bounds=(0.0, width), epsilon=self.epsilon / 2)

    @property
    def _parts(self) -> tuple[Any, ...]:
        """What is released, in order: the loss of the model; then labels, or the rows, their mean and its loss."""
        rest = self.epsilon / 2
        if isinstance(self.goal, Categories):
            return self._loss, Histogram(categories=tuple(range(len(self.goal.labels))), epsilon=rest)
        mean = Mean(bounds=(self.goal.low, self.goal.high), epsilon=rest / 4)
        return self._loss, Count(epsilon=rest / 4), mean, Mean(bounds=self._loss.bounds, epsilon=rest / 2)

    @property
    def event(self) -> Event:
        """The cost for a row that is held back."""
        first, *others = (part.event for part in self._parts)
        return sum(others, first)  # type: ignore[no-any-return]

    def measure(self, truth: NDArray[Any], predicted: NDArray[Any], rng: Rng) -> Score:
        """The score of predictions; a row whose target is missing does not count."""
        known = truth >= 0 if isinstance(self.goal, Categories) else ~np.isnan(truth)
        truth, predicted = truth[known], predicted[known]
        mean, *others = self._parts
        if isinstance(self.goal, Categories):
            loss = mean.release((truth != predicted).astype(np.float64), rng).value
            counts = np.maximum(others[0].release(truth.tolist(), rng).value, 0)
            rows = max(int(counts.sum()), 1)
            return self._scored("share of wrong labels", loss, 1 - int(counts.max()) / rows, rows)
        loss = mean.release(np.abs(truth - predicted), rng).value
        count, middle, constant = others
        rows = max(int(count.release(truth, rng).value), 1)
        centre = middle.release(truth, rng).value
        return self._scored("mean absolute error", loss, constant.release(np.abs(truth - centre), rng).value, rows)

    def _scored(self, measure: str, loss: float, constant: float, rows: int) -> Score:
        width = self._loss.bounds[1]
        chance = _NORMAL * math.sqrt(max(loss * (width - loss), width**2 / rows) / rows)
        half = self._loss.error(_NOISE, n=rows) + chance
        return Score(measure, loss, max(loss - half, 0.0), min(loss + half, width), constant, rows)
