"""One-way analysis of variance: whether several groups have one mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from discreet.inference.classical import welch_anova
from discreet.inference.columns import Samples
from discreet.inference.group_means import GroupMeans, Moments, check_grouped, common_mean, read_grouped
from discreet.inference.hypothesis import AskedOfTest, Outcome, ReleasedTest, ask_test, conclude, spell_test
from discreet.inference.simulation import Array, public_generator, tail_probability
from discreet.mechanisms.parameters import store
from discreet.statistics.bounded import Bounds
from discreet.statistics.partition import Partition

__all__ = ["Anova", "anova"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Anova(GroupMeans):
    r"""Whether groups have one mean, with unequal variances and private sizes.

    The statistic is :math:`\sum_g (\bar x_g - \bar x)^2 / V_g`, with V_g the variance of a noisy mean under the null
    hypothesis and the common mean weighted by 1/V_g (Welch 1951); its null law is simulated with the noise. The effect
    is the standard deviation between the means of the groups, in units of the data, without a part that errors explain;
    its interval is that of the largest difference from the common mean that the same quantile does not refute: from 0
    up. Reference: Welch (1951); Campbell, Bray, Ritz and Groce (2018) for the question under privacy.

    >>> test = Anova(bounds=(0, 10), groups=("a", "b", "c"), epsilon=1.0)
    >>> answer = test.release((["a", "b", "c"] * 300, [4.0, 5.0, 6.0] * 300), rng=1)
    >>> answer.p_value < 0.001, round(answer.effect, 1)
    (True, 0.8)
    """

    groups: tuple[Any, ...]

    label = "analysis of variance"
    effect_name = "standard deviation between means"
    has_sides = False

    def __post_init__(self) -> None:
        GroupMeans.__post_init__(self)
        store(self, groups=Partition.of(None, self.groups).categories)
        if len(self.groups) < 2:
            raise ValueError("groups has one entry, but at least two groups are compared: give their names.")

    @property
    def count(self) -> int:
        """How many groups there are."""
        return len(self.groups)

    def check(self, data: Any) -> None:
        """A column of groups beside one of values, or as many samples."""
        check_grouped(data, self.groups)

    def parts(self, values: Any) -> list[Any]:
        """The records of each group. Private."""
        return read_grouped(values, self.groups)

    def infer(self, noisy: Array) -> Outcome:
        """A weighted sum of squares between groups, against its simulated law."""
        statistic, moments, centre = self._between(noisy)
        simulated, _, _ = self._between(
            self.simulate(moments._replace(mean=np.clip(centre, 0.0, 1.0)), self.simulations, public_generator())
        )
        simulated *= self._caution**2  # a square
        p_value = tail_probability(statistic, simulated)
        apart = (moments.mean - centre) ** 2
        effect = np.sqrt(np.maximum((apart - moments.error).mean(-1), 0.0))
        quantile = np.quantile(simulated, self.confidence, axis=-1, method="higher")
        reach = np.sqrt(apart.mean(-1)) + np.sqrt(quantile * moments.error.max(-1) / self.count)
        high, enough = self.width * reach, self._are_enough(noisy, np.clip(centre, 0.0, 1.0))
        own = self.moments(noisy)
        exact = welch_anova(own.mean, own.variance / own.size, own.size)
        statistic, p_value = (
            np.where(self._is_quiet(noisy), *each) for each in zip(exact, (statistic, p_value), strict=True)
        )
        return conclude(Outcome(statistic, p_value, self.width * effect, 0.0 * high, high, enough))

    def _between(self, noisy: Array) -> tuple[Array, Moments, Array]:
        """The statistic, the moments of groups under the null hypothesis, and their common mean."""
        centre = common_mean(self.moments(noisy))
        moments = self.moments(noisy, centre)
        return ((moments.mean - centre) ** 2 / np.maximum(moments.error, 1e-300)).sum(-1), moments, centre

    @property
    def largest_effect(self) -> float:
        """Half of the bounds' width."""
        return self.width / 2


@spell_test("analysis of variance")
def anova(*samples: Any, bounds: Bounds, **asked: Unpack[AskedOfTest]) -> ReleasedTest:
    """Whether samples have one mean: see ``Anova``.

    >>> anova([1.0, 3.0] * 200, [2.0, 2.5] * 200, [0.0, 4.0] * 200, bounds=(0, 5), epsilon=1.0, rng=1).p_value < 0.05
    True
    """
    if len(samples) == 1:
        raise ValueError("There is one sample: give the samples one by one: anova(a, b, bounds=...).")
    return ask_test(Anova, Samples(samples), asked, bounds=bounds, groups=tuple(range(len(samples))))
