r"""Means of bounded records in public groups: what the tests of means and the analysis of variance share.

Of each group the totals of (1-t)², 2t(1-t) and t² are released, t the place of a record between its bounds: they are
not negative and add up to 1, so one record moves all totals of all groups together by exactly 1 in L1 (see
``statistics.Variance``). They hold the private number of records, the mean and the variance for the price of a count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np

from discreet.errors import positive
from discreet.inference.classical import unnoticeable
from discreet.inference.columns import NUMBERS, Samples, check_columns, read_columns
from discreet.inference.hypothesis import FEWEST, NoisyTest
from discreet.inference.mean_totals import MeanTotals
from discreet.inference.simulation import Array
from discreet.mechanisms.parameters import store
from discreet.mechanisms.records import check_column
from discreet.statistics.bounded import Bounds, check_bounds
from discreet.statistics.partition import Partition
from discreet.statistics.variances import Variance

__all__ = ["HIDDEN", "SMALL_GROUP", "GroupMeans", "Moments", "check_grouped", "common_mean", "read_grouped"]


HIDDEN = 2.0  # deviations of its noise that a sum of squares is taken for at least: below, the noise hides it
_FEWEST_CARRYING, _FEWEST_AWAY = 12.0, 20.0  # with fewer up to 20 % of true hypotheses were rejected
_FAR_FEWER = 2.5  # deviations below what is expected: by chance in four of a thousand
_SMALL = 100
SMALL_GROUP = (
    f"A group has fewer than {_SMALL} records: where they are skewed, a true hypothesis can be rejected twice as often "
    "as the level says."
)


class Moments(NamedTuple):
    """Of groups, in units of the bounds: sizes, means, variances of a record, and variances of the means."""

    size: Array
    mean: Array
    variance: Array
    error: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMeans(NoisyTest):
    """Means of bounded records in public groups, of private sizes."""

    bounds: Bounds

    assumes: ClassVar[str] = "Independent records; the sums of a group are near to normal."

    _caution: ClassVar[float] = 1.03  # sizes and variances are both unknown
    _fewest_records: ClassVar[int] = 10  # of five, skewed ones, 20 % of true hypotheses were rejected at 5 %

    def __post_init__(self) -> None:
        self._check_test()
        store(self, bounds=check_bounds(self.bounds))
        check_bounds(self.record_bounds, "bounds of what is averaged")
        _ = self.mechanism

    @property
    def count(self) -> int:
        """How many groups there are."""
        return 1

    @property
    def record_bounds(self) -> Bounds:
        """Of what a mean is taken of: of the values."""
        return self.bounds

    @property
    def width(self) -> float:
        """Of these bounds."""
        return self.record_bounds[1] - self.record_bounds[0]

    @property
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        return *self.design.moves(self._replace), self.design.entries * self.count

    def totals(self, values: Any) -> Array:
        """The exact totals, a row per group. Private."""
        return np.stack([self._triple(part) for part in self.parts(values)])

    def _triple(self, part: Any) -> Array:
        return np.asarray(Variance(bounds=self.record_bounds, epsilon=1.0).totals(part))

    def parts(self, values: Any) -> list[Any]:
        """The records of each group. Private."""
        return [values]

    @property
    def design(self) -> MeanTotals:
        """What is released of the three totals of a group."""
        return MeanTotals()

    def moments(self, triples: Array, centre: Array | None = None) -> Moments:
        """What noisy totals say of each group, with deviations from ``centre`` (its own mean if none is given).

        From a given centre all of it but the mean is linear in the totals, so that noise does not bend it. A variance
        that its noise hides may be as large as that noise, and is taken to be (decision 554).
        """
        size = np.maximum(triples.sum(-1), 1.0)
        mean = (triples[..., 1] / 2 + triples[..., 2]) / size
        c = np.clip(mean if centre is None else centre, 0.0, 1.0)
        # (t - c)² = c² (1-t)² + (c² - c) 2t(1-t) + (1 - c)² t²
        squares = triples[..., 0] * c**2 + triples[..., 1] * (c**2 - c) + triples[..., 2] * (1 - c) ** 2
        deviation, noise = self.mechanism.deviation, self.design.covariances
        hidden = HIDDEN * deviation * np.sqrt(noise.of_squares(c))
        variance = np.maximum(squares, hidden) / np.maximum(size - (centre is None), 1.0)
        error = (size * variance + deviation**2 * noise.of_deviations(c)) / size**2
        return Moments(size, mean, variance, error)

    def _are_enough(self, triples: Array, centre: Array) -> Array:
        """Whether every group has enough records beside the noise on their number, and not all but a few at a bound.

        A mean c beyond a bound may be that of c·n records, c in units of the bounds, while all others are at it. So few
        have no normal sum, and what they show of their variance is often next to nothing; unless Kish's effective
        number (Σt)²/Σt², t counted from that bound, says that more records carry the mean, or so few that the mean
        cannot be c. Decision 558.
        """
        sizes, squares = triples.sum(-1), triples[..., [2, 0]]  # from the lower bound, and from the upper one
        sums = np.maximum(squares + triples[..., 1:2] / 2, 0.0)
        deviation, noise = self.mechanism.deviation, self.design.covariances
        carrying = sums**2 / np.maximum(squares, max(deviation * math.sqrt(noise.square), 1e-300))
        expected = sizes[..., None] * np.stack([centre, 1 - centre], axis=-1)
        carried = (carrying >= np.minimum(_FEWEST_CARRYING, sizes / 2)[..., None]) | (expected >= _FEWEST_AWAY)
        carried |= expected - carrying >= _FAR_FEWER * np.sqrt(np.maximum(expected, 1.0))
        known = sizes >= self._fewest_records + FEWEST * deviation * math.sqrt(noise.one)
        return np.asarray((carried.all(-1) & known).all(-1))

    def caveat(self, noisy: Array) -> str:
        """That a small group has to be near to normal itself."""
        return SMALL_GROUP if self.design.triples(noisy).sum(-1).min() < _SMALL else ""

    def _is_quiet(self, triples: Array) -> Array:
        """Whether the noise is lost in the sampling error of every group."""
        size, _, variance, _ = self.moments(triples)
        squares = size * variance
        return unnoticeable(self.mechanism, self._moves[2], squares, np.sqrt(squares))

    def simulate(self, moments: Moments, runs: int, generator: np.random.Generator) -> Array:
        """The three noisy totals of normal records with these moments: a sum and a sum of squares, drawn as such."""
        size, mean, variance = (np.broadcast_to(part[..., None, :], _with_runs(part, runs)) for part in moments[:3])
        total = size * mean + np.sqrt(size * variance) * generator.standard_normal(size.shape)
        squares = variance * generator.chisquare(np.maximum(size - 1, 1.0)) + total**2 / size
        exact = np.stack([size - 2 * total + squares, 2 * (total - squares), squares], axis=-1)
        noise = self.expose(np.zeros((*exact.shape[:-1], self.design.entries)), generator)
        return np.asarray(exact + self.design.spread(noise))

    def suppose(self, n: int, effect: float, sd: float | None, runs: int, generator: np.random.Generator) -> Array:
        """Groups of equal size of normal records; of the deviation of a uniform one if none is supposed."""
        spread = (self.width / 12**0.5 if sd is None else positive("sd", sd)) / self.width
        size = np.full((runs, self.count), max(1.0, n / self.count))
        total = size * self._supposed_means(effect) + np.sqrt(size) * spread * generator.standard_normal(size.shape)
        squares = spread**2 * generator.chisquare(np.maximum(size - 1, 1.0)) + total**2 / size
        return self.design.released(np.stack([size - 2 * total + squares, 2 * (total - squares), squares], axis=-1))

    def _supposed_means(self, effect: float) -> Array:
        """Means of the groups, as places between the bounds, evenly around their middle and ``effect`` apart."""
        return np.asarray(0.5 + np.linspace(0.5, -0.5, self.count) * effect / self.width)


def _with_runs(part: Array, runs: int) -> tuple[int, ...]:
    return (*part.shape[:-1], runs, part.shape[-1])


def common_mean(moments: Moments, shift: Array | float = 0.0) -> Array:
    """The mean that all groups have, but for ``shift``, where the null hypothesis holds."""
    weight = 1 / np.maximum(moments.error, 1e-300)
    mean = ((moments.mean - shift) * weight).sum(-1, keepdims=True) / weight.sum(-1, keepdims=True)
    return np.asarray(np.broadcast_to(mean, moments.mean.shape) + shift)


def check_grouped(data: Any, groups: tuple[Any, ...]) -> None:
    """Refuse, by types and shapes alone, what is neither groups beside values nor one sample a group."""
    if isinstance(data, Samples):
        if len(data.parts) != len(groups):
            raise ValueError(f"data has {len(data.parts)} samples, but must have {len(groups)}: one for each group.")
        for part in data.parts:
            check_column(part)
        return
    check_columns(data, (Partition(categories=groups), NUMBERS), ("groups", "values"))


def read_grouped(data: Any, groups: tuple[Any, ...]) -> list[Any]:
    """The values of each group. Private."""
    if isinstance(data, Samples):
        return list(data.parts)
    places, values = read_columns(data, (Partition(categories=groups), NUMBERS))
    return [values[places == place] for place in range(len(groups))]
