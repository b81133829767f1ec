"""Goodness of fit and independence: chi-squared tests from one noisy table."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np

from discreet.errors import number
from discreet.inference.classical import chi_squared_law
from discreet.inference.columns import check_columns, cross, read_columns
from discreet.inference.hypothesis import AskedOfTest, ReleasedTest, ask_test, spell_test
from discreet.inference.noisy_tables import TableTest, draw_tables
from discreet.inference.simulation import Array
from discreet.mechanisms.parameters import store
from discreet.statistics.partition import Partition

__all__ = ["GoodnessOfFit", "Independence", "goodness_of_fit", "independence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChiSquared(TableTest):
    r"""What both tests share: :math:`\sum (x - e)^2 / (e + \tau^2)`, with τ² the variance of the noise on a count.

    With the noise in the denominator the statistic's law depends little on what is unknown, the private size too.
    """

    assumes: ClassVar[str] = "Independent records; the null law is simulated with the noise."

    _caution: ClassVar[float] = 1.02**2  # the statistic is a square
    has_sides: ClassVar[bool] = False
    _fewest_drawn: ClassVar[int] = 0  # of no records a record more would be evidence

    def _check_chi_squared(self) -> None:
        self._check_test()
        _ = self.mechanism

    def _distance(self, residuals: Array, expected: Array) -> Array:
        # without noise a cell may expect nothing: what is in it then is infinitely far
        variance = np.maximum(expected + self.mechanism.deviation**2, 1e-300)
        return np.asarray((residuals**2 / variance).sum((-1, -2)))

    def _large_enough(self, noisy: Array) -> Array:
        """Below five deviations of the noise on the number of records the statistic's law depends on that number."""
        return self._enough(noisy.sum((-1, -2)), noisy.shape[-1] * noisy.shape[-2])


@dataclass(frozen=True, slots=True, kw_only=True)
class GoodnessOfFit(ChiSquared):
    """Whether records fall in public parts with public ``probabilities``.

    The effect is the distance in total variation between the shares and ``probabilities``. Reference: Pearson (1900);
    Gaboardi, Lim, Rogers and Vadhan (2016); Kifer and Rogers (2017).

    >>> test = GoodnessOfFit(categories=("a", "b", "c"), probabilities=(0.5, 0.3, 0.2), epsilon=1.0)
    >>> test.release(["a"] * 500 + ["b"] * 300 + ["c"] * 200, rng=1).p_value > 0.05
    True
    """

    probabilities: tuple[float, ...]
    bins: tuple[float, ...] | None = None
    categories: tuple[Hashable, ...] | None = None

    label = "goodness of fit"
    effect_name = "distance in total variation"

    def __post_init__(self) -> None:
        self._check_chi_squared()
        parts = Partition.of(self.bins, self.categories)
        law = tuple(number("probabilities", p, low=0, high=1) for p in self.probabilities)
        if len(law) != len(parts) or abs(sum(law) - 1) > 1e-9:
            raise ValueError(f"probabilities must be {len(parts)} numbers that add up to 1: one for each part.")
        store(self, bins=parts.bins, categories=parts.categories, probabilities=tuple(p / sum(law) for p in law))

    @property
    def shape(self) -> tuple[int, int]:
        """One group."""
        return 1, len(self.probabilities)

    @property
    def _parts(self) -> Partition:
        return Partition(self.bins, self.categories)

    def check(self, data: Any) -> None:
        """A column of numbers, or of what the categories are."""
        self._parts.check(data)

    def totals(self, values: Any) -> Array:
        """The exact counts. Private."""
        return self._parts.counts(values)[None]

    def statistic(self, counts: Array) -> Array:
        """The distance of the counts from what is expected."""
        expected = np.maximum(counts.sum(-1, keepdims=True), 0.0) * self.probabilities
        return self._distance(counts - expected, expected)

    def textbook(self, counts: Array) -> tuple[Array, Array]:
        """Pearson's."""
        expected = counts.sum(-1, keepdims=True) * self.probabilities
        return chi_squared_law(self.statistic(counts), expected, len(self.probabilities) - 1)

    def null_law(self, counts: Array) -> Array:
        """The public probabilities."""
        return np.broadcast_to(np.array(self.probabilities), counts.shape)

    def effect(self, counts: Array) -> Array:
        """The distance in total variation."""
        shares = counts / np.maximum(counts.sum(-1, keepdims=True), 1.0)
        return np.asarray(np.abs(shares - self.probabilities).sum((-1, -2)) / 2)

    def suppose(self, n: int, effect: float, sd: float | None, runs: int, generator: np.random.Generator) -> Array:
        """``effect``, a distance in total variation, is moved from the larger half of the probabilities to the
        rest.
        """
        law = np.array(self.probabilities)
        most = np.zeros(len(law), bool)
        most[np.argsort(-law)[: max(1, len(law) // 2)]] = True
        rest = np.maximum(law[~most], 1e-300)
        moved = np.where(most, law * (1 - effect / law[most].sum()), law)
        moved[~most] += effect * rest / rest.sum()
        return draw_tables(np.clip(moved, 0, 1)[None], np.array([n]), runs, generator)

    @property
    def largest_effect(self) -> float:
        """Half of what the larger half of the parts holds."""
        return sum(sorted(self.probabilities)[-max(1, len(self.probabilities) // 2) :]) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Independence(ChiSquared):
    """Whether two columns of public categories are independent; data are the two columns side by side.

    The effect is Cramér's V. A record of which either entry is of no category is left out. Reference: Pearson (1900);
    Gaboardi, Lim, Rogers and Vadhan (2016).

    >>> test = Independence(rows=("f", "m"), columns=(0, 1, 2), epsilon=1.0)
    >>> test.release((["f", "m"] * 300, [0, 1, 0, 2] * 150), rng=1).p_value < 0.001
    True
    """

    rows: tuple[Hashable, ...]
    columns: tuple[Hashable, ...]

    label = "independence"
    effect_name = "Cramér's V"

    def __post_init__(self) -> None:
        self._check_chi_squared()
        rows, columns = (Partition.of(None, names) for names in (self.rows, self.columns))
        if min(len(rows), len(columns)) < 2:
            raise ValueError("rows and columns must each have at least two categories.")
        store(self, rows=rows.categories, columns=columns.categories)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.rows), len(self.columns)

    @property
    def _readers(self) -> tuple[Partition, Partition]:
        return Partition(categories=self.rows), Partition(categories=self.columns)

    def check(self, data: Any) -> None:
        """Two columns of what the categories are."""
        check_columns(data, self._readers, ("rows", "columns"))

    def totals(self, values: Any) -> Array:
        """The exact table. Private."""
        return cross(self.shape, *read_columns(values, self._readers))

    def statistic(self, counts: Array) -> Array:
        """The distance of the counts from the products of their margins, which may be negative: where an empty column
        seems fuller than it is, and where it seems emptier, as much noise is subtracted as in simulated tables.
        """
        rows, columns = counts.sum(-1), counts.sum(-2)
        fit = rows[..., :, None] * columns[..., None, :] / np.maximum(rows.sum(-1), 1.0)[..., None, None]
        return self._distance(counts - fit, _products(counts))

    def textbook(self, counts: Array) -> tuple[Array, Array]:
        """Pearson's, without Yates's correction."""
        rows, columns = self.shape
        return chi_squared_law(self.statistic(counts), _products(counts), (rows - 1) * (columns - 1))

    def null_law(self, counts: Array) -> Array:
        """Each row has the columns' shares; a column that seems empty has half a record's."""
        columns = np.maximum(counts.sum(-2, keepdims=True), 0.5)
        return np.broadcast_to(columns / columns.sum(-1, keepdims=True), counts.shape)

    def effect(self, counts: Array) -> Array:
        """Cramér's V, without what the noise adds to it; from 0 to 1."""
        expected = _products(counts)
        noise = self.mechanism.deviation**2
        excess = (((counts - expected) ** 2 - noise) / np.maximum(expected, 1.0)).sum((-1, -2))
        most = np.maximum(expected.sum((-1, -2)), 1.0) * (min(self.shape) - 1)
        return np.asarray(np.sqrt(np.clip(excess / most, 0.0, 1.0)))

    def suppose(self, n: int, effect: float, sd: float | None, runs: int, generator: np.random.Generator) -> Array:
        """A table of equal margins with this Cramér's V: a part of the records is on the diagonal."""
        (r, c), side = self.shape, min(self.shape)
        law = np.full((r, c), (1 - effect) / c)
        law[np.arange(r), np.arange(r) % side] += effect
        return draw_tables(law, np.full(r, n // r), runs, generator)

    @property
    def largest_effect(self) -> float:
        """Half of what is possible."""
        return 0.5


def _products(counts: Array) -> Array:
    """What is expected of independent margins, themselves without negative entries; nothing where one is empty."""
    rows, columns = np.maximum(counts.sum(-1), 0.0), np.maximum(counts.sum(-2), 0.0)
    total = np.maximum(counts.sum((-1, -2)), 1.0)[..., None, None]
    return np.asarray(rows[..., :, None] * columns[..., None, :] / total)


@spell_test("goodness of fit")
def goodness_of_fit(
    values: Any,
    probabilities: Iterable[float],
    *,
    bins: Iterable[float] | None = None,
    categories: Iterable[Hashable] | None = None,
    **asked: Unpack[AskedOfTest],
) -> ReleasedTest:
    """Whether records fall in public parts with public probabilities: see ``GoodnessOfFit``.

    >>> goodness_of_fit([0] * 900 + [1] * 100, (0.5, 0.5), categories=(0, 1), epsilon=1.0, rng=1).p_value < 0.001
    True
    """
    parts = Partition.of(bins, categories)
    facts = {"probabilities": tuple(probabilities), "bins": parts.bins, "categories": parts.categories}
    return ask_test(GoodnessOfFit, values, asked, **facts)


@spell_test("independence")
def independence(
    rows: Any,
    columns: Any,
    row_categories: Iterable[Hashable],
    column_categories: Iterable[Hashable],
    **asked: Unpack[AskedOfTest],
) -> ReleasedTest:
    """Whether two columns are independent: see ``Independence``.

    >>> independence([0, 1] * 200, [0, 0, 1, 1] * 100, (0, 1), (0, 1), epsilon=1.0, rng=1).p_value > 0.05
    True
    """
    facts = {"rows": tuple(row_categories), "columns": tuple(column_categories)}
    return ask_test(Independence, (rows, columns), asked, **facts)
