r"""A quantile of a column, tested and with an interval that holds sampling and noise, from one noisy table of bins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from discreet.errors import number
from discreet.inference.hypothesis import AskedOfTest, ReleasedTest, ask_test, spell_test
from discreet.inference.noisy_tables import TableTest, draw_tables
from discreet.inference.simulation import Array, simplex
from discreet.mechanisms.parameters import store
from discreet.statistics.partition import Partition

__all__ = ["QuantileTest", "quantile_interval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileTest(TableTest):
    r"""Whether the ``q`` quantile is ``null``, one of the inner edges of ``bins``; and an interval for it.

    With B of n records below an edge and noise of variance s² on each of k cells, of which j are below it,

    .. math:: T = \frac{B - qn}{\sqrt{n\,q(1-q) + s^2\,(j(1-q)^2 + (k-j)q^2)}}

    is near to normal where the edge is the quantile, whatever the law of the records is. The interval ends at edges: it
    begins where all edges up to there have too few records below them, and ends where all from there on have too many
    (Thompson 1936); it covers no less than it says, and is no shorter than a bin. The effect is the quantile, even
    within its bin; a value beyond the bins counts in the last one there.

    >>> test = QuantileTest(bins=range(0, 31), q=0.5, null=10, epsilon=1.0)
    >>> answer = test.release([5.5, 7.5, 12.5, 20.5] * 300, rng=1)
    >>> answer.interval[0] <= 12 <= answer.interval[1]
    True
    """

    bins: tuple[float, ...]
    q: float = 0.5
    null: float | None = None

    label = "quantile"
    effect_name = "quantile"

    def __post_init__(self) -> None:
        self._check_test()
        bins = Partition.of(self.bins, None).bins
        assert bins is not None
        if len(bins) < 3:
            raise ValueError("bins must have at least three edges: a quantile lies below or above an inner one.")
        store(self, bins=bins, q=number("q", self.q, low=0, high=1, open_low=True, open_high=True))
        null = bins[len(bins) // 2] if self.null is None else number("null", self.null, low=bins[0], high=bins[-1])
        if null not in bins[1:-1]:
            raise ValueError(f"null is {null!r}, but must be one of the inner edges of bins.")
        store(self, null=null)
        _ = self.mechanism

    @property
    def shape(self) -> tuple[int, int]:
        """One group, and the bins."""
        return 1, len(self.bins) - 1

    @property
    def _below(self) -> int:
        """The number of bins below ``null``."""
        assert self.null is not None
        return self.bins.index(self.null)

    def check(self, data: Any) -> None:
        """A column of numbers."""
        Partition(self.bins).check(data)

    def totals(self, values: Any) -> Array:
        """The exact counts. Private."""
        return Partition(self.bins).counts(values, clamp=True)[None]

    def _at_edges(self, counts: Array) -> Array:
        """T at every inner edge, on the last axis: negative where the quantile seems to be above it."""
        cells, q = self.shape[1], self.q
        size = np.maximum(counts.sum((-1, -2)), 1.0)[..., None]
        below = np.arange(1, cells)
        noise = self.mechanism.deviation**2 * (below * (1 - q) ** 2 + (cells - below) * q**2)
        far = np.cumsum(counts[..., 0, :], axis=-1)[..., :-1] - q * counts.sum((-1, -2))[..., None]
        return np.asarray(far / np.sqrt(size * q * (1 - q) + noise))

    def statistic(self, counts: Array) -> Array:
        """T at the null's edge; large where the quantile is above it."""
        return -self._at_edges(counts)[..., self._below - 1]

    def null_law(self, counts: Array) -> Array:
        """The shares on either side of the edge, scaled so that q lies below it."""
        fit = simplex(counts) + 1 / self.shape[1]
        below = np.arange(self.shape[1]) < self._below
        sides = [np.where(side, fit, 0.0) for side in (below, ~below)]
        first, second = (side / side.sum(-1, keepdims=True) for side in sides)
        return np.asarray(self.q * first + (1 - self.q) * second)

    def effect(self, counts: Array) -> Array:
        """Where a distribution function that does not fall reaches q."""
        fit = simplex(counts)[..., 0, :]
        cdf = np.cumsum(fit, axis=-1) / fit.sum(-1, keepdims=True)
        place = np.minimum((cdf < self.q).sum(-1), self.shape[1] - 1)[..., None]
        upper = np.take_along_axis(cdf, place, -1)
        lower = np.where(place > 0, np.take_along_axis(cdf, np.maximum(place - 1, 0), -1), 0.0)
        part = np.clip((self.q - lower) / np.maximum(upper - lower, 1e-12), 0.0, 1.0)
        edges = np.array(self.bins)
        return np.asarray((edges[place] + part * (edges[place + 1] - edges[place]))[..., 0])

    def _estimate(self, noisy: Array, sizes: Array) -> tuple[Array, Array, Array]:
        """The quantile, and the edges between which it is not refuted."""
        law = self.null_law(noisy)
        reach = self._caution * np.quantile(
            np.abs(self.statistic(self._simulate(law, sizes))), self.confidence, axis=-1, method="higher"
        )
        t, edges = self._at_edges(noisy), np.array(self.bins)
        too_few, too_many = t < -reach[..., None], t > reach[..., None]
        first = np.cumprod(too_few, axis=-1).sum(-1).astype(int)
        last = len(self.bins) - 1 - np.cumprod(too_many[..., ::-1], axis=-1).sum(-1).astype(int)
        return self.effect(noisy), edges[first], edges[last]

    def suppose(self, n: int, effect: float, sd: float | None, runs: int, generator: np.random.Generator) -> Array:
        """Uniform records within the bins on either side of the quantile, which is ``effect`` above ``null``."""
        assert self.null is not None
        edges, truth = np.array(self.bins), self.null + effect
        truth = number("null + effect", truth, low=edges[0], high=edges[-1], open_low=True, open_high=True)
        lower, upper = (edges[0], truth), (truth, edges[-1])
        shares = [
            part * np.maximum(np.minimum(edges[1:], end) - np.maximum(edges[:-1], start), 0.0) / (end - start)
            for part, (start, end) in ((self.q, lower), (1 - self.q, upper))
        ]
        return draw_tables(sum(shares)[None], np.array([n]), runs, generator)

    @property
    def largest_effect(self) -> float:
        """Halfway to an end of the bins."""
        assert self.null is not None
        down, up = (self.bins[0] - self.null) / 2, (self.bins[-1] - self.null) / 2
        return {"less": down, "greater": up, "two-sided": max(down, up, key=abs)}[self.alternative]


@spell_test("quantile")
def quantile_interval(
    values: Any, bins: Iterable[float], *, q: float = 0.5, null: float | None = None, **asked: Unpack[AskedOfTest]
) -> ReleasedTest:
    """A quantile with an interval, and a test of whether it is ``null``, an inner edge (the middle one, if none is
    given): see ``QuantileTest``.

    >>> answer = quantile_interval([2.5, 4.5, 6.5] * 300, bins=range(11), epsilon=1.0, rng=1)
    >>> round(answer.effect), answer.interval[0] <= 4.5 <= answer.interval[1]
    (5, True)
    """
    return ask_test(QuantileTest, values, asked, bins=tuple(bins), q=q, null=null)
