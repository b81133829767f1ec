"""Tests of means: one sample, two samples (Welch), pairs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from discreet.inference.columns import NUMBERS, Samples, check_columns, read_columns
from discreet.inference.group_means import GroupMeans, check_grouped, common_mean, read_grouped
from discreet.inference.hypothesis import AskedOfTest, Outcome, ReleasedTest, ask_test, spell_test
from discreet.inference.mean_tests import MeanTest
from discreet.inference.mean_totals import MeanTotals
from discreet.inference.simulation import Array
from discreet.mechanisms.parameters import store
from discreet.mechanisms.records import check_column, check_size
from discreet.statistics.bounded import Bounds
from discreet.statistics.partition import Partition
from discreet.statistics.statistic import public_size

__all__ = ["OneSample", "Paired", "Welch", "one_sample", "paired", "welch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSample(MeanTest):
    """Whether the mean of bounded records is ``null``: a t-test that knows the noise.

    The statistic is the noisy mean less ``null`` over its standard error, that of sampling and that of the noise; its
    null law, and the interval's, is simulated from the noisy totals, so that heavy tails of the noise and the
    uncertainty of the variance are in it. ``n``, with ``adjacency="replace"``, says that the number of records is
    public: the mean then has all of the budget, and a missing record stands in the middle of the bounds. Without it
    the number is private, and missing records are left out. Guarantee: that of the totals' noise; all else is
    post-processing.
    Reference: Student (1908); for the simulation, Ferrando, Wang and Sheldon (2022).

    >>> test = OneSample(bounds=(0, 10), null=5.0, epsilon=1.0)
    >>> answer = test.release([4.0, 5.0, 6.0, 7.0] * 500, rng=1)
    >>> answer.p_value < 0.001, round(answer.effect, 1)
    (True, 5.5)
    """

    n: int | None = None

    label = "one-sample test"
    effect_name = "mean"

    def __post_init__(self) -> None:
        if self.n is not None:
            store(self, n=public_size(self.n, self._replace))
            if self.n_expected is not None:
                raise ValueError("n and n_expected are given, but of a public number none is guessed: leave one out.")
        MeanTest.__post_init__(self)

    @property
    def design(self) -> MeanTotals:
        """Two totals, where the number of records is public."""
        return MeanTotals(self.n)

    @property
    def _origin(self) -> float:
        return self.record_bounds[0]

    @property
    def _expected(self) -> int | None:
        return self.n_expected if self.n is None else self.n

    def check(self, data: Any) -> None:
        """A column, of the public size if there is one."""
        check_column(data)
        check_size(data, self.n)

    def totals(self, values: Any) -> Array:
        """The exact totals. Private."""
        triples = MeanTest.totals(self, values)
        if self.n is not None:
            missing = self.n - triples.sum(-1, keepdims=True)
            triples = triples + missing * np.array([Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)])
        return self.design.released(triples)

    def suppose(self, n: int, effect: float, sd: float | None, runs: int, generator: np.random.Generator) -> Array:
        """Normal records, as many as are public."""
        if self.n not in (None, n):
            raise ValueError(f"n is {n}, but the test is of n={self.n} records: leave one of them out.")
        return MeanTest.suppose(self, n, effect, sd, runs, generator)


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
        """Two columns of numbers, of the public size if there is one."""
        check_columns(data, (NUMBERS, NUMBERS), ("before", "after"))
        for part in data:
            check_size(part, self.n)

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
class Welch(MeanTest):
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
        MeanTest.__post_init__(self)
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
        return self._against(self.null / self.width, np.array([1.0, -1.0]), self.design.triples(noisy))

    @property
    def _possible(self) -> Bounds:
        return -self.width, self.width

    def _centre(self, triples: Array, null: float) -> Array:
        """One mean for both groups but for ``null``, weighted by the errors."""
        return common_mean(self.moments(triples), np.array([null, 0.0]))

    def _supposed_means(self, effect: float) -> Array:
        return GroupMeans._supposed_means(self, self.null + effect)

    @property
    def largest_effect(self) -> float:
        """Half of the bounds' width."""
        return self._toward(self.width / 2)


@spell_test("one-sample test")
def one_sample(
    values: Any, bounds: Bounds, *, null: float = 0.0, n: int | None = None, **asked: Unpack[AskedOfTest]
) -> ReleasedTest:
    """Whether the mean of bounded records is ``null``: see ``OneSample``.

    >>> one_sample([1.0, 2.0, 3.0] * 400, bounds=(0, 4), null=2.0, epsilon=1.0, rng=1).p_value > 0.01
    True
    """
    return ask_test(OneSample, values, asked, bounds=bounds, null=null, n=n)


@spell_test("paired test")
def paired(
    before: Any, after: Any, bounds: Bounds, *, null: float = 0.0, n: int | None = None, **asked: Unpack[AskedOfTest]
) -> ReleasedTest:
    """Whether two measurements of each record differ: see ``Paired``.

    >>> round(paired([2.0, 4.0] * 500, [1.0, 3.0] * 500, bounds=(0, 5), epsilon=1.0, rng=1).difference, 1)
    1.0
    """
    return ask_test(Paired, (before, after), asked, bounds=bounds, null=null, n=n)


@spell_test("Welch's test")
def welch(a: Any, b: Any, bounds: Bounds, *, null: float = 0.0, **asked: Unpack[AskedOfTest]) -> ReleasedTest:
    """Whether two samples have one mean: see ``Welch``.

    >>> answer = welch([9.0, 8.0] * 300, [7.0, 6.0] * 300, bounds=(0, 30), epsilon=1.0, rng=1)
    >>> answer.p_value < 0.01, answer.interval[0] < 2 < answer.interval[1]
    (True, True)
    """
    return ask_test(Welch, Samples((a, b)), asked, bounds=bounds, null=null)
