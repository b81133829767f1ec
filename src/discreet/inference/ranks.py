"""Tests of two samples in ordered public bins: Mann-Whitney and Kolmogorov-Smirnov."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from discreet.inference.classical import rank_sum
from discreet.inference.columns import Samples, check_columns, cross, read_columns
from discreet.inference.hypothesis import AskedOfTest, ReleasedTest, ask_test, spell_test
from discreet.inference.lattice_paths import MOST_RECORDS, smirnov
from discreet.inference.noisy_tables import TableTest, draw_tables
from discreet.inference.simulation import Array, simplex
from discreet.mechanisms.parameters import store
from discreet.statistics.partition import Partition

__all__ = ["KolmogorovSmirnov", "MannWhitney", "kolmogorov_smirnov", "mann_whitney"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSamples(TableTest):
    """Two groups whose records are counted in public ``bins``; under the null hypothesis both have one law."""

    bins: tuple[float, ...]
    groups: tuple[Any, ...] = (0, 1)

    def __post_init__(self) -> None:
        self._check_test()
        store(self, bins=Partition.of(self.bins, None).bins, groups=Partition.of(None, self.groups).categories)
        if len(self.groups) != 2:
            raise ValueError(f"groups has {len(self.groups)} entries, but two groups are compared: give their names.")
        _ = self.mechanism

    @property
    def shape(self) -> tuple[int, int]:
        """Two groups, and the bins."""
        return 2, len(self.bins) - 1

    @property
    def _readers(self) -> tuple[Partition, Partition]:
        return Partition(categories=self.groups), Partition(self.bins)

    def check(self, data: Any) -> None:
        """A column of groups beside one of values, or two samples."""
        if not isinstance(data, Samples):
            check_columns(data, self._readers, ("groups", "values"))
        elif len(data.parts) != 2:
            raise ValueError(f"data has {len(data.parts)} samples, but must have two.")
        else:
            for part in data.parts:
                self._readers[1].check(part)

    def totals(self, values: Any) -> Array:
        """The exact table; a value beyond the bins counts in the last one there. Private."""
        groups, bins = self._readers
        if isinstance(values, Samples):
            return np.stack([bins.counts(part, clamp=True) for part in values.parts])
        of, x = read_columns(values, (groups, None))
        return cross(self.shape, of, bins.places(x, clamp=True))

    def null_law(self, counts: Array) -> Array:
        """The pooled shares, for both groups."""
        pooled = simplex(counts.sum(-2, keepdims=True))
        return np.broadcast_to(pooled / pooled.sum(-1, keepdims=True), counts.shape)

    def suppose(self, n: int, effect: float, sd: float | None, runs: int, generator: np.random.Generator) -> Array:
        """Half of the records in each group; the law of one is uniform, of the other tilted to give the effect."""
        cells = self.shape[1]
        tilt = np.linspace(-1, 1, cells)
        unit = self.effect(np.stack([np.ones(cells), 1 + tilt])[None] * 1e9)[0] - self.effect(np.ones((1, 2, cells)))[0]
        law = np.maximum(np.stack([np.ones(cells), 1 + tilt * effect / unit]), 0.0)
        return draw_tables(law / law.sum(-1, keepdims=True), np.array([n - n // 2, n // 2]), runs, generator)


@dataclass(frozen=True, slots=True, kw_only=True)
class MannWhitney(TwoSamples):
    """Whether values of the first group tend to be larger than those of the second, or smaller.

    The effect is the probability that a value of the first group exceeds one of the second, ties counting half: the
    statistic is that less ½ over its standard error, which holds the noise, from a noisy table of ``bins``, within
    which all values are tied. Reference: Mann and
    Whitney (1947); for the question under privacy, Couch, Kazan, Shi, Bray and Groce (2019).

    >>> test = MannWhitney(bins=range(0, 31, 3), epsilon=1.0)
    >>> answer = test.release(([0, 1] * 300, [9.0, 7.0, 12.0, 4.0] * 150), rng=1)
    >>> answer.p_value < 0.001, answer.effect > 0.8
    (True, True)
    """

    label = "Mann-Whitney test"
    effect_name = "P(first > second), ties half"
    null_effect = 0.5

    def statistic(self, counts: Array) -> Array:
        """The effect less ½, over its standard error where both groups have the pooled law.

        It is the difference of mean ridits, the pooled distribution function halfway through each bin (Bross 1958).
        """
        size = np.maximum(counts.sum(-1), 1.0)
        law = self.null_law(counts)[..., 0, :]
        ridits = np.cumsum(law, axis=-1) - law / 2 - 0.5
        noise = self.mechanism.deviation**2 * (ridits**2).sum(-1, keepdims=True)
        variance = ((law * ridits**2).sum(-1, keepdims=True) / size + noise / size**2).sum(-1)
        return np.asarray((self.effect(counts) - 0.5) / np.sqrt(np.maximum(variance, 1e-24)))

    def textbook(self, counts: Array) -> tuple[Array, Array]:
        """The normal law of the sum of ranks, of values that are tied within a bin."""
        return rank_sum(counts, self.alternative)

    def effect(self, counts: Array) -> Array:
        """The probability that the first is larger, with ties halved."""
        shares = counts / np.maximum(counts.sum(-1, keepdims=True), 1.0)
        first, second = shares[..., 0, :], shares[..., 1, :]
        return np.asarray((first * (np.cumsum(second, axis=-1) - second / 2)).sum(-1))

    @property
    def largest_effect(self) -> float:
        """A tilt from nothing in the first bin to twice the share in the last."""
        return self._toward(0.15)


@dataclass(frozen=True, slots=True, kw_only=True)
class KolmogorovSmirnov(TwoSamples):
    """Whether two samples have one law: the largest difference of their distribution functions at public edges.

    The null law is simulated, of the pooled noisy table; so ties and noise are in it. Where counts carry no noise it is
    exact, of up to 20,000 records (``lattice_paths``). Differences within a bin are not seen: the finer the bins the
    better, as long as a bin expects more records than its noise. Reference: Smirnov (1939).

    >>> test = KolmogorovSmirnov(bins=range(0, 31, 3), epsilon=1.0)
    >>> test.release(([0, 1] * 300, [9.0, 7.0, 12.0, 4.0] * 150), rng=1).p_value < 0.001
    True
    """

    label = "Kolmogorov-Smirnov test"
    effect_name = "largest difference of distribution functions"
    has_sides = False

    def statistic(self, counts: Array) -> Array:
        """The largest difference."""
        cdf = np.cumsum(counts, axis=-1) / np.maximum(counts.sum(-1, keepdims=True), 1.0)
        return np.asarray(np.abs(cdf[..., 0, :] - cdf[..., 1, :]).max(-1))

    def textbook(self, counts: Array) -> tuple[Array, Array]:
        """The exact law of the dealings of all values, ties and all."""
        holds = (counts.sum(-1) >= 1).all(-1) & (counts.sum((-1, -2)) <= MOST_RECORDS)
        exact = np.ones(holds.shape)
        for place in np.argwhere(holds):
            exact[tuple(place)] = smirnov(counts[tuple(place)])
        return exact, holds

    @property
    def largest_effect(self) -> float:
        """Half of what is possible."""
        return 0.25


@spell_test("Mann-Whitney test")
def mann_whitney(a: Any, b: Any, bins: Iterable[float], **asked: Unpack[AskedOfTest]) -> ReleasedTest:
    """Whether values of one sample tend to be larger than another's: see ``MannWhitney``.

    >>> round(mann_whitney([5, 6] * 300, [3, 6] * 300, bins=range(9), epsilon=1.0, rng=1).effect, 1)
    0.6
    """
    return ask_test(MannWhitney, Samples((a, b)), asked, bins=tuple(bins))


@spell_test("Kolmogorov-Smirnov test")
def kolmogorov_smirnov(a: Any, b: Any, bins: Iterable[float], **asked: Unpack[AskedOfTest]) -> ReleasedTest:
    """Whether two samples have one law: see ``KolmogorovSmirnov``.

    >>> round(kolmogorov_smirnov([5, 6] * 300, [3, 6] * 300, bins=range(9), epsilon=1.0, rng=1).effect, 1)
    0.5
    """
    return ask_test(KolmogorovSmirnov, Samples((a, b)), asked, bins=tuple(bins))
