"""Counts over unboundedly many bins: noise on the bins that have records, and a threshold to hide which those are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from discreet import events, random
from discreet.adjacency import Adjacency, changed_records
from discreet.errors import number, positive
from discreet.mechanisms.canonical import keys
from discreet.mechanisms.grid import above
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import slack, spent_delta, store
from discreet.mechanisms.records import check_column, check_line, column
from discreet.mechanisms.thresholds import exceeding, least_threshold
from discreet.random.tap import draw_output
from discreet.release import Release

__all__ = ["StabilityHistogram"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StabilityHistogram(Mechanism[dict[Any, int]]):
    r"""Noisy counts of the bins whose noisy count clears a threshold; bins of ``width`` over ℝ, or any keys at all.

    Law: discrete Laplace noise of scale 1/ε (2/ε under replace) on every *non-empty* bin; a bin is shown if its noisy
    count exceeds τ, where a bin of one record does so with probability at most δ (δ/2 under replace, where one
    record may leave a bin and open another).

    Guarantee: (epsilon, delta)-DP. Bins non-empty on both sides differ by one record in L1 (two under replace), which
    costs epsilon; a bin with its only record on one side is shown there with probability at most delta.
    With ``width``, a value x falls in bin ⌊x/width⌋, named by its lower edge; NaN, infinities, values too large for a
    bin number and whatever is not a number are left out. Without, equal values are one bin, shown in the form that
    ``mechanisms.canonical`` gives all of them, and a record that has none (a list, an object) is left out.

    Reference: Korolova et al. (2009); Bun, Nissim and Stemmer (2016); Vadhan (2017), Theorem 3.5.

    >>> histogram = StabilityHistogram(epsilon=1.0, delta=1e-6, width=0.5)
    >>> list(histogram.release([0.1] * 80 + [7.3] * 90 + [1e9], rng=1).value)
    [0.0, 7.0]
    >>> histogram.mode([0.1] * 80 + [7.3] * 900 + [1e9], rng=1).value
    7.0
    """

    epsilon: float
    delta: float
    width: float | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        store(
            self,
            epsilon=number("epsilon", self.epsilon, low=2.0**-40, high=2.0**10),
            adjacency=self.adjacency,
            delta=number("delta", self.delta, low=0, high=1, open_low=True, open_high=True),
            width=None if self.width is None else positive("width", self.width),
        )
        assert self.threshold  # found, and kept, before anything is charged

    @property
    def _moved(self) -> int:
        return changed_records(self.adjacency)

    @property
    def scale(self) -> float:
        """The scale of the noise on a count."""
        return above(self._moved * slack / Fraction(self.epsilon))

    @property
    def threshold(self) -> int:
        """The noisy count that must be exceeded for a bin to be shown."""
        return least_threshold(self.scale, Fraction(spent_delta(self.delta)) / self._moved) + 1  # the bin's one record

    @property
    def event(self) -> events.ApproxDP:
        """The cost."""
        return events.ApproxDP(
            epsilon=above(self._moved / Fraction(self.scale)), delta=spent_delta(self.delta), adjacency=self.adjacency
        )

    def error(self, confidence: float = 0.95) -> float:
        """The size at which a bin is shown with this confidence; its count is then within the same noise."""
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        return self.threshold + 1 + self.scale * max(0.0, math.log(1 / (2 * (1 - confidence))))

    def check(self, data: Any) -> None:
        """Refuse what is publicly no sequence of records, or for bins of a width no column of numbers."""
        check_line(data) if self.width is None else check_column(data)

    def draw(self, data: Sequence[Any], rng: random.Rng) -> dict[Any, int]:
        """Shown bins with their noisy counts, in an order that depends on the bins alone."""
        counts = self._bins(data)
        shown = draw_output(self, counts, "l1", self._moved, lambda: exceeding(counts, self.scale, self.threshold, rng))
        return dict(sorted(shown.items(), key=lambda item: repr(item[0])))

    def mode(self, values: Sequence[Any], rng: random.RngLike = None) -> Release[Any]:
        """The shown bin with the largest noisy count, or ``None``: post-processing of ``release``."""
        shown = self.release(values, rng)
        best = max(shown.value, key=lambda key: (shown.value[key], repr(key)), default=None)
        return Release(best, shown.event, shown.reproducible, unit=self.unit)

    def _bins(self, values: Sequence[Any]) -> Counter[Any]:
        if self.width is None:
            return Counter(keys(values))
        numbers = column(values).astype(np.float64)
        with np.errstate(over="ignore"):
            edges = np.floor(numbers[np.isfinite(numbers)] / self.width) * self.width
        return Counter((edges[np.isfinite(edges)] + 0.0).tolist())
