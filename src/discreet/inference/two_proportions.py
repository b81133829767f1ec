"""Two proportions, with private sizes of the groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from discreet.inference.classical import normal_law
from discreet.inference.columns import Samples, check_columns, cross, read_columns
from discreet.inference.hypothesis import AskedOfTest, ReleasedTest, ask_test, spell_test
from discreet.inference.noisy_tables import TableTest, draw_tables
from discreet.inference.simulation import Array
from discreet.mechanisms.parameters import store
from discreet.statistics.partition import Partition

__all__ = ["TwoProportions", "two_proportions"]

_OUTCOMES = Partition(categories=(0, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoProportions(TableTest):
    r"""Whether the proportion of ones is the same in two groups, from one noisy table of two by two.

    The statistic is the difference over its standard error at the pooled proportion p, in which the noise of variance
    s² on each cell counts: :math:`\sum_g p(1-p)/n_g + s^2(p^2 + (1-p)^2)/n_g^2`; its null law is simulated at p. The
    effect is the difference, first less second. A record that is neither 0 nor 1 is left out.
    Reference: Gaboardi, Lim, Rogers and Vadhan (2016).

    >>> test = TwoProportions(epsilon=1.0)
    >>> answer = test.release(([0, 1] * 500, [1, 0, 0, 0] * 250), rng=1)
    >>> answer.p_value < 0.001, round(answer.difference, 1)
    (True, 0.5)
    """

    groups: tuple[Any, ...] = (0, 1)

    label = "two proportions"
    effect_name = "difference of shares, first less second"
    null_effect = 0.0

    def __post_init__(self) -> None:
        self._check_test()
        store(self, groups=Partition.of(None, self.groups).categories)
        if len(self.groups) != 2:
            raise ValueError(f"groups has {len(self.groups)} entries, but two groups are compared: give their names.")
        _ = self.mechanism

    @property
    def shape(self) -> tuple[int, int]:
        """Two groups, and the outcomes 0 and 1."""
        return 2, 2

    @property
    def _readers(self) -> tuple[Partition, Partition]:
        return Partition(categories=self.groups), _OUTCOMES

    def check(self, data: Any) -> None:
        """A column of groups beside one of zeros and ones, or two samples."""
        if not isinstance(data, Samples):
            check_columns(data, self._readers, ("groups", "outcomes"))
        elif len(data.parts) != 2:
            raise ValueError(f"data has {len(data.parts)} samples, but must have two.")
        else:
            for part in data.parts:
                _OUTCOMES.check(part)

    def totals(self, values: Any) -> Array:
        """The exact table. Private."""
        if isinstance(values, Samples):
            return np.stack([_OUTCOMES.counts(part) for part in values.parts])
        return cross(self.shape, *read_columns(values, self._readers))

    def statistic(self, counts: Array) -> Array:
        """The studentised difference."""
        size, p = np.maximum(counts.sum(-1), 1.0), _pooled(counts)
        noise = self.mechanism.deviation**2 * (p**2 + (1 - p) ** 2)
        error = np.sqrt((p * (1 - p) / size + noise / size**2).sum(-1))
        return np.asarray(self.effect(counts) / np.maximum(error, 1e-12))

    def textbook(self, counts: Array) -> tuple[Array, Array]:
        """The normal test with the pooled proportion."""
        sizes, p = counts.sum(-1, keepdims=True), _pooled(counts)[..., None]
        return normal_law(self.statistic(counts), self.alternative, sizes * np.concatenate([p, 1 - p], axis=-1))

    def effect(self, counts: Array) -> Array:
        """The difference of the proportions."""
        shares = counts[..., 1] / np.maximum(counts.sum(-1), 1.0)
        return np.asarray(shares[..., 0] - shares[..., 1])

    def null_law(self, counts: Array) -> Array:
        """The pooled proportion in both groups."""
        p = np.broadcast_to(_pooled(counts), counts.shape[:-1])
        return np.stack([1 - p, p], axis=-1)

    def suppose(self, n: int, effect: float, sd: float | None, runs: int, generator: np.random.Generator) -> Array:
        """Half of the records in each group, proportions as far on either side of ½."""
        p = np.clip(0.5 + effect * np.array([0.5, -0.5]), 0.0, 1.0)
        return draw_tables(np.stack([1 - p, p], axis=-1), np.array([n - n // 2, n // 2]), runs, generator)

    @property
    def largest_effect(self) -> float:
        """Half of what is possible."""
        return self._toward(0.5)


def _pooled(counts: Array) -> Array:
    """The proportion of ones in both groups, on an axis of one."""
    both = counts.sum(-2)
    share = both[..., 1] / np.maximum(both.sum(-1), 1.0)
    return np.asarray(np.clip(share, 0.0, 1.0)[..., None])


@spell_test("two proportions")
def two_proportions(a: Any, b: Any, **asked: Unpack[AskedOfTest]) -> ReleasedTest:
    """Whether the proportion of ones is the same in two samples: see ``TwoProportions``.

    >>> two_proportions([1, 0] * 300, [1, 0] * 400, epsilon=1.0, rng=1).p_value > 0.05
    True
    """
    return ask_test(TwoProportions, Samples((a, b)), asked)
