"""Tests of means: one sample, two samples (Welch), pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from discreet.errors import number
from discreet.inference.classical import student
from discreet.inference.columns import NUMBERS, Samples, check_columns, read_columns
from discreet.inference.group_means import GroupMeans, Moments, check_grouped, common_mean, read_grouped
from discreet.inference.hypothesis import AskedOfTest, Outcome, ReleasedTest, ask_test, conclude, spell_test
from discreet.inference.simulation import Array, public_generator, tail_probability, toward
from discreet.mechanisms.parameters import store
from discreet.statistics.bounded import Bounds
from discreet.statistics.partition import Partition

__all__ = ["OneSample", "Paired", "Welch", "one_sample", "paired", "welch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSample(GroupMeans):
    """Whether the mean of bounded records is ``null``: a t-test that knows the noise.

    The statistic is the noisy mean less ``null`` over its standard error, that of sampling and that of the noise; its
    null law, and the interval's, is simulated from the noisy totals, so that heavy tails of the noise and the
    uncertainty of the variance are in it. Guarantee: that of the totals' noise; all else is post-processing.
    Reference: Student (1908); for the simulation, Ferrando, Wang and Sheldon (2022).

    >>> test = OneSample(bounds=(0, 10), null=5.0, epsilon=1.0)
    >>> answer = test.release([4.0, 5.0, 6.0, 7.0] * 500, rng=1)
    >>> answer.p_value < 0.001, round(answer.effect, 1)
    (True, 5.5)
    """

    null: float = 0.0

    label = "one-sample test"
    effect_name = "mean"

    def __post_init__(self) -> None:
        GroupMeans.__post_init__(self)
        low, high = self._possible
        store(self, null=number("null", self.null, low=low, high=high))  # beyond, no records could have it

    def infer(self, noisy: Array) -> Outcome:
        """A studentised mean, against its simulated law."""
        return self._against((self.null - self._origin) / self.width, np.ones(1), noisy)

    @property
    def _origin(self) -> float:
        """What the contrast is worth where all records are at the lower bound."""
        return self.record_bounds[0]

    @property
    def _possible(self) -> Bounds:
        """What the effect can be."""
        return self.record_bounds

    def _centre(self, noisy: Array, null: float) -> Array:
        """The mean of each group under the null hypothesis."""
        return np.full(noisy.shape[:-1], null)

    def _against(self, null: float, contrast: Array, noisy: Array) -> Outcome:
        """The outcome for a contrast of means. The standard error is that under the null hypothesis: a score test."""
        centre = self._centre(noisy, null)
        moments = self.moments(noisy, centre)
        statistic = _studentise(moments, contrast, null)
        law = self.simulate(moments._replace(mean=np.clip(centre, 0.0, 1.0)), self.simulations, public_generator())
        simulated = self._caution * _studentise(self.moments(law, self._centre(law, null)), contrast, null)
        p_value = tail_probability(toward(statistic, self.alternative), toward(simulated, self.alternative))
        quantile = np.quantile(np.abs(simulated), self.confidence, axis=-1, method="higher")
        low, high = self._interval(noisy, quantile, contrast)
        effect = (moments.mean * contrast).sum(-1)
        outcome = Outcome(statistic, p_value, effect, low, high, np.asarray(self._enough(moments.size, 3).all(-1)))
        outcome = self._without_noise(null, contrast, noisy, outcome)
        effect, low, high = (self._origin + self.width * end for end in outcome[2:5])
        # where nothing is known it may be anything that the bounds allow, and is nothing else
        effect = np.where(outcome.enough, effect, np.clip(effect, *self._possible))
        return conclude(outcome._replace(effect=effect, low=low, high=high))

    def _without_noise(self, null: float, contrast: Array, noisy: Array, simulated: Outcome) -> Outcome:
        """Student's test where the noise is lost in the sampling error, and what was simulated elsewhere."""
        moments, quiet = self.moments(noisy), self._is_quiet(noisy)
        if not quiet.any():
            return simulated
        effect, errors = (moments.mean * contrast).sum(-1), moments.variance / moments.size * contrast**2
        statistic, p_value, reach = student(effect, null, errors, moments.size, self.alternative, self.confidence)
        exact = (statistic, p_value, effect, effect - reach, effect + reach, simulated.enough)
        return Outcome(*(np.where(quiet, *each) for each in zip(exact, simulated, strict=True)))

    def _interval(self, noisy: Array, quantile: Array, contrast: Array) -> tuple[Array, Array]:
        """The contrasts that the quantile of the studentised mean does not refute; of two groups, by their intervals'
        ends (Zou and Donner 2008)."""
        low, high = self._fieller(noisy, quantile[..., None])
        mean = self.moments(noisy).mean
        first, second = np.where(contrast > 0, low, -high), np.where(contrast > 0, high, -low)
        effect = (mean * contrast).sum(-1)
        below = np.sqrt(((mean * contrast - first) ** 2).sum(-1))
        above = np.sqrt(((second - mean * contrast) ** 2).sum(-1))
        return effect - below, effect + above

    def _fieller(self, noisy: Array, quantile: Array) -> tuple[Array, Array]:
        """The means m with (S - m·n)² ≤ q² (n·variance + s²(3m² - 3m + 5/4)): the roots of a quadratic (Fieller 1954),
        whose noise has its size at m, not at the noisy mean.
        """
        moments = self.moments(noisy)
        reach = (quantile * self.mechanism.deviation) ** 2
        a = moments.size**2 - 3 * reach
        b = 2 * moments.size**2 * moments.mean - 3 * reach
        c = (moments.size * moments.mean) ** 2 - quantile**2 * moments.size * moments.variance - 1.25 * reach
        root = np.sqrt(np.maximum(b**2 - 4 * a * c, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(a > 0, (b - root) / (2 * a), -np.inf), np.where(a > 0, (b + root) / (2 * a), np.inf)

    def _supposed_means(self, effect: float) -> Array:
        low, high = self.record_bounds
        mean = number("null + effect", self.null + effect, low=low, high=high)
        return np.array([(mean - low) / self.width])

    @property
    def largest_effect(self) -> float:
        """How far the bounds let the mean be from ``null``."""
        ends = dict(zip(("less", "greater"), np.subtract(self.record_bounds, self.null), strict=True))
        return float(ends[self.alternative] if self.alternative in ends else max(ends.values(), key=abs))


def _studentise(moments: Moments, contrast: Array, null: float) -> Array:
    effect = (moments.mean * contrast).sum(-1)
    return np.asarray((effect - null) / np.sqrt((moments.error * contrast**2).sum(-1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired(OneSample):
    """Whether the mean difference of two measurements per record is ``null``; data are two columns side by side.

    Both have ``bounds``, so the difference (first less second) lies within their width on either side; a record with
    a missing measurement is missing. See ``OneSample``.

    >>> test = Paired(bounds=(0, 10), epsilon=1.0)
    >>> before, after = [6.0, 7.0, 5.0] * 300, [5.0, 5.5, 4.0] * 300
    >>> test.release((before, after), rng=1).p_value < 0.001
    True
    """

    label = "paired test"
    effect_name = "mean of differences"

    def check(self, data: Any) -> None:
        """Two columns of numbers."""
        check_columns(data, (NUMBERS, NUMBERS), ("before", "after"))

    @property
    def record_bounds(self) -> Bounds:
        """Of the differences."""
        spread = self.bounds[1] - self.bounds[0]
        return -spread, spread

    def parts(self, values: Any) -> list[Any]:
        """The differences of the bounded measurements. Private."""
        first, second = (np.clip(part.astype(np.float64), *self.bounds) for part in read_columns(values, (None, None)))
        return [first - second]


@dataclass(frozen=True, slots=True, kw_only=True)
class Welch(OneSample):
    """Whether two groups have one mean: Welch's test, which knows the noise and supposes no equal variances.

    Data are a column of groups beside a column of values, or ``Samples``; ``groups`` are the two public categories
    that are compared, the first less the second; a record of neither is left out. Sizes of groups are private. See
    ``OneSample`` for what is simulated. Reference: Welch (1947).

    >>> test = Welch(bounds=(0, 30), epsilon=1.0)
    >>> treated, days = [0, 1] * 400, [9.0, 7.0] * 400
    >>> answer = test.release((treated, days), rng=1)
    >>> answer.p_value < 0.001, round(answer.difference)
    (True, 2)
    """

    groups: tuple[Any, ...] = (0, 1)

    label = "Welch's test"
    effect_name = "difference of means, first less second"

    def __post_init__(self) -> None:
        OneSample.__post_init__(self)
        store(self, groups=Partition.of(None, self.groups).categories)
        if len(self.groups) != 2:
            raise ValueError(f"groups has {len(self.groups)} entries, but two groups are compared: give their names.")

    @property
    def count(self) -> int:
        """Two groups."""
        return len(self.groups)

    @property
    def _origin(self) -> float:
        return 0.0

    def check(self, data: Any) -> None:
        """A column of groups beside one of values, or as many samples."""
        check_grouped(data, self.groups)

    def parts(self, values: Any) -> list[Any]:
        """The records of each group. Private."""
        return read_grouped(values, self.groups)

    def infer(self, noisy: Array) -> Outcome:
        """A studentised difference of means, against its simulated law."""
        return self._against(self.null / self.width, np.array([1.0, -1.0]), noisy)

    @property
    def _possible(self) -> Bounds:
        return -self.width, self.width

    def _centre(self, noisy: Array, null: float) -> Array:
        """One mean for both groups but for ``null``, weighted by the errors."""
        return common_mean(self.moments(noisy), np.array([null, 0.0]))

    def _supposed_means(self, effect: float) -> Array:
        return GroupMeans._supposed_means(self, self.null + effect)

    @property
    def largest_effect(self) -> float:
        """Half of the bounds' width."""
        return self._toward(self.width / 2)


@spell_test("one-sample test")
def one_sample(values: Any, bounds: Bounds, *, null: float = 0.0, **asked: Unpack[AskedOfTest]) -> ReleasedTest:
    """Whether the mean of bounded records is ``null``: see ``OneSample``.

    >>> one_sample([1.0, 2.0, 3.0] * 400, bounds=(0, 4), null=2.0, epsilon=1.0, rng=1).p_value > 0.01
    True
    """
    return ask_test(OneSample, values, asked, bounds=bounds, null=null)


@spell_test("paired test")
def paired(before: Any, after: Any, bounds: Bounds, *, null: float = 0.0, **asked: Unpack[AskedOfTest]) -> ReleasedTest:
    """Whether two measurements of each record differ: see ``Paired``.

    >>> round(paired([2.0, 4.0] * 500, [1.0, 3.0] * 500, bounds=(0, 5), epsilon=1.0, rng=1).difference, 1)
    1.0
    """
    return ask_test(Paired, (before, after), asked, bounds=bounds, null=null)


@spell_test("Welch's test")
def welch(a: Any, b: Any, bounds: Bounds, *, null: float = 0.0, **asked: Unpack[AskedOfTest]) -> ReleasedTest:
    """Whether two samples have one mean: see ``Welch``.

    >>> answer = welch([9.0, 8.0] * 300, [7.0, 6.0] * 300, bounds=(0, 30), epsilon=1.0, rng=1)
    >>> answer.p_value < 0.01, answer.interval[0] < 2 < answer.interval[1]
    (True, True)
    """
    return ask_test(Welch, Samples((a, b)), asked, bounds=bounds, null=null)
