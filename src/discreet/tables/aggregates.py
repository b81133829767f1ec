"""What can be asked of each group: what it needs of a scan, what meets noise, and what is made of the noisy numbers.

Sensitivities are for a unit with at most m rows. All are exact: the numbers are whole (see ``fixed_point``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from discreet import events
from discreet.errors import number, whole
from discreet.mechanisms import Exponential, Gaussian, Laplace
from discreet.random import Rng
from discreet.schema import Categories, Unlisted
from discreet.tables.budget import Share
from discreet.tables.fixed_point import COARSE, FINE
from discreet.tables.passes import Bins, Pass, Rows, Stats, even_edges

__all__ = ["Aggregate", "Count", "CountDistinct", "Histogram", "Mean", "Quantile", "Sum", "Variance"]

SIZES = (100, 1_000, 10_000)  # rows in a group, for which explain() shows errors that depend on it


@dataclass(frozen=True)
class Aggregate(ABC):
    """One column of the answer."""

    kind: ClassVar[Literal["additive", "selecting"]] = "additive"
    width: ClassVar[int] = 1

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name in the answer, unless another is given."""

    @abstractmethod
    def scan(self, rows: Rows) -> Pass:
        """What it needs of a scan; also refuses, before data is read, columns that do not suit."""

    @abstractmethod
    def sensitivity(self, rows: Rows) -> Fraction | int:
        """The most that one unit changes ``exact``, in L1."""

    @abstractmethod
    def exact(self, rows: Rows, stats: Stats) -> Sequence[Any]:
        """The whole numbers or fractions of one group that meet noise."""

    @abstractmethod
    def estimate(self, rows: Rows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        """The answer from noisy numbers, one row a group."""

    @abstractmethod
    def describe_error(self, rows: Rows, mechanism: Any) -> str:
        """What the error stays within in 95 of 100 groups, from public facts."""

    def mechanism(self, rows: Rows, share: Share, groups: int) -> Any:
        """The noise it uses."""
        return share.additive(self.sensitivity(rows), groups * self.width)

    def event(self, rows: Rows, mechanism: Any) -> events.Event:
        """What it costs."""
        return mechanism.event  # type: ignore[no-any-return]

    def release(self, rows: Rows, mechanism: Any, groups: Sequence[Stats], rng: Rng) -> NDArray[Any]:
        """Noise on all groups at once, then the estimate."""
        width = len(self.exact(rows, Stats()))
        exact = np.array([self.exact(rows, stats) for stats in groups], object).reshape(len(groups), width)
        plain = all(isinstance(x, int) and abs(x) < 2**53 for x in exact.flat)
        value = exact.astype(np.int64) if plain else exact
        noisy = np.asarray(mechanism.release(value, rng).value, np.float64)
        return self.estimate(rows, noisy.reshape(len(groups), width))


@dataclass(frozen=True)
class Count(Aggregate):
    """How many rows there are; with a column, how many have a value there. Rounded to a whole number; may be negative."""

    column: str | None = None

    @property
    def name(self) -> str:
        return "count" if self.column is None else f"{self.column}_count"

    def scan(self, rows: Rows) -> Pass:
        return Pass() if self.column is None else Pass(sums=((_bounded(rows, self.column), FINE),))

    def sensitivity(self, rows: Rows) -> int:
        return rows.limit.rows

    def exact(self, rows: Rows, stats: Stats) -> Sequence[int]:
        return [stats.rows if self.column is None else stats.counted(self.column)]

    def estimate(self, rows: Rows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        return np.rint(noisy[:, 0]).astype(np.int64)

    def describe_error(self, rows: Rows, mechanism: Laplace | Gaussian) -> str:
        return f"±{mechanism.error(0.95):.4g}"


@dataclass(frozen=True)
class Sum(Aggregate):
    """The sum of clipped values; one row adds at most the larger magnitude of the bounds."""

    column: str

    @property
    def name(self) -> str:
        return f"{self.column}_sum"

    def scan(self, rows: Rows) -> Pass:
        return Pass(sums=((_bounded(rows, self.column), FINE),))

    def sensitivity(self, rows: Rows) -> Fraction:
        return rows.limit.rows * rows.grid(self.column).largest

    def exact(self, rows: Rows, stats: Stats) -> Sequence[Fraction]:
        grid = rows.grid(self.column)
        return [stats.counted(self.column) * grid.low + stats.total(self.column) * grid.step]

    def estimate(self, rows: Rows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        return noisy[:, 0]

    def describe_error(self, rows: Rows, mechanism: Laplace | Gaussian) -> str:
        return f"±{mechanism.error(0.95):.4g}"


@dataclass(frozen=True)
class Mean(Aggregate):
    r"""The mean of clipped values, where the number of rows is private too.

    What meets noise is the pair (Σk, Σ(K - k)): its L1 sensitivity is exactly K, for a sum *and* a count, because the two
    parts of a row always add up to K. With A and B the noisy pair, the answer is L + (U - L)·A/(A + B), clipped. If
    A + B is not positive, which says that the group is tiny, the answer is the middle of the bounds.
    """

    column: str
    width = 2

    @property
    def name(self) -> str:
        return f"{self.column}_mean"

    def scan(self, rows: Rows) -> Pass:
        return Pass(sums=((_bounded(rows, self.column), FINE),))

    def sensitivity(self, rows: Rows) -> int:
        return rows.limit.rows * rows.grid(self.column).top

    def exact(self, rows: Rows, stats: Stats) -> Sequence[int]:
        total, most = stats.total(self.column), stats.counted(self.column) * rows.grid(self.column).top
        return [total, most - total]

    def estimate(self, rows: Rows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        bounds = rows.grid(self.column).bounds
        share = _ratio(noisy[:, 0], noisy.sum(axis=1), 0.5)
        return bounds.low + np.clip(share, 0.0, 1.0) * (bounds.high - bounds.low)

    def describe_error(self, rows: Rows, mechanism: Laplace | Gaussian) -> str:
        # A group of n rows at the edge of the bounds, the worst place: the error is that of one of the pair, over nK.
        bounds, top = rows.grid(self.column).bounds, rows.grid(self.column).top
        one = mechanism.error(0.95) / top * (bounds.high - bounds.low)
        return ", ".join(f"±{min(one / n, bounds.high - bounds.low):.4g} at {n:,} rows" for n in SIZES)


@dataclass(frozen=True)
class Variance(Aggregate):
    r"""The population variance of clipped values.

    With t = k/K, what meets noise is (Σt², Σ2t(1 - t), Σ(1 - t)²) times K²: three non-negative parts of every row that add
    up to K², so the L1 sensitivity is K² for the count and both moments together.
    """

    column: str
    width = 3

    @property
    def name(self) -> str:
        return f"{self.column}_variance"

    def scan(self, rows: Rows) -> Pass:
        return Pass(sums=((_bounded(rows, self.column), COARSE),))

    def sensitivity(self, rows: Rows) -> int:
        return rows.limit.rows * rows.grid(self.column, COARSE).top ** 2

    def exact(self, rows: Rows, stats: Stats) -> Sequence[int]:
        top = rows.grid(self.column, COARSE).top
        count, total, squares = stats.counted(self.column, COARSE), stats.total(self.column, COARSE), stats.squares(self.column)
        return [squares, 2 * (top * total - squares), count * top**2 - 2 * top * total + squares]

    def estimate(self, rows: Rows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        bounds, count = rows.grid(self.column).bounds, noisy.sum(axis=1)
        mean = np.clip(_ratio(noisy[:, 0] + noisy[:, 1] / 2, count, 0.5), 0.0, 1.0)
        square = np.clip(_ratio(noisy[:, 0], count, 0.5), 0.0, 1.0)
        return np.clip(square - mean**2, 0.0, 0.25) * (bounds.high - bounds.low) ** 2

    def describe_error(self, rows: Rows, mechanism: Laplace | Gaussian) -> str:
        # d(variance) = (1 - 2μ)·dΣt² + …: no part of the triple enters with a factor above 1.
        bounds, top = rows.grid(self.column).bounds, rows.grid(self.column, COARSE).top
        one = 3 * mechanism.error(0.95) / top**2
        return ", ".join(f"±{min(one / n, 0.25) * (bounds.high - bounds.low) ** 2:.4g} at {n:,} rows" for n in SIZES)


@dataclass(frozen=True)
class CountDistinct(Aggregate):
    """How many different values a column has; a unit brings at most as many as it has rows."""

    column: str

    @property
    def name(self) -> str:
        return f"{self.column}_distinct"

    def scan(self, rows: Rows) -> Pass:
        if self.column in rows.derived or not isinstance(rows.schema[self.column], (Unlisted, Categories)):
            raise ValueError(f"Column {self.column!r} is Bounded or derived, but count_distinct needs Categories or Unlisted().")
        return Pass(distinct=self.column)

    def sensitivity(self, rows: Rows) -> int:
        return rows.limit.rows

    def exact(self, rows: Rows, stats: Stats) -> Sequence[int]:
        return [stats.distinct(self.column)]

    def estimate(self, rows: Rows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        return np.rint(noisy[:, 0]).astype(np.int64)

    def describe_error(self, rows: Rows, mechanism: Laplace | Gaussian) -> str:
        return f"±{mechanism.error(0.95):.4g}"


@dataclass(frozen=True)
class Histogram(Aggregate):
    """Counts in bins: ``bins`` of one width between the bounds, or at public edges. The answer holds a list a group."""

    column: str
    bins: int | tuple[float, ...] = 10

    @property
    def name(self) -> str:
        return f"{self.column}_histogram"

    def cut(self, rows: Rows) -> Bins:
        """The bins."""
        return _cut(rows, self.column, self.bins)

    def scan(self, rows: Rows) -> Pass:
        return Pass(bins=self.cut(rows))

    def mechanism(self, rows: Rows, share: Share, groups: int) -> Any:
        return share.additive(self.sensitivity(rows), groups * self.cut(rows).count)

    def sensitivity(self, rows: Rows) -> int:
        return rows.limit.rows

    def exact(self, rows: Rows, stats: Stats) -> Sequence[int]:
        bins = self.cut(rows)
        return [stats.bin(bins, number) for number in range(bins.count)]

    def estimate(self, rows: Rows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        return np.rint(noisy).astype(np.int64)

    def describe_error(self, rows: Rows, mechanism: Laplace | Gaussian) -> str:
        return f"±{mechanism.error(0.95):.4g} in each of {self.cut(rows).count} bins"


@dataclass(frozen=True)
class Quantile(Aggregate):
    r"""The q-quantile of clipped values, one of the edges of ``bins`` bins, by the exponential mechanism.

    The score of an edge is -|below - q·n|, where below is the number of rows under it; with q = a/b it is computed as the
    whole number -|b·below - a·n|, which one row moves by at most max(a, b - a). Groups are disjoint, so a unit with one
    row pays once; with m rows the score may move m times as far, and what it pays in all groups still adds up to ε.
    An empty group gives an edge at random.

    Reference: Smith (2011), "Privacy-preserving statistical estimation with optimal convergence rates".
    """

    column: str
    q: float = 0.5
    bins: int = 1024
    kind = "selecting"

    def __post_init__(self) -> None:
        number("q", self.q, low=0, high=1)
        whole("bins", self.bins, low=1)

    @property
    def name(self) -> str:
        return f"{self.column}_median" if self.q == 0.5 else f"{self.column}_q{self.q:g}"

    @property
    def _fraction(self) -> Fraction:
        return Fraction(repr(float(self.q))).limit_denominator(10_000)

    def cut(self, rows: Rows) -> Bins:
        """The bins whose edges may be answered."""
        return _cut(rows, self.column, self.bins)

    def scan(self, rows: Rows) -> Pass:
        return Pass(bins=self.cut(rows))

    def sensitivity(self, rows: Rows) -> int:
        q = self._fraction
        return rows.limit.rows * max(q.numerator, q.denominator - q.numerator)

    def mechanism(self, rows: Rows, share: Share, groups: int) -> Exponential:
        return share.selecting(self.sensitivity(rows), one_group=rows.limit.rows == 1)

    def event(self, rows: Rows, mechanism: Exponential) -> events.Event:
        return mechanism.event if rows.limit.rows == 1 else events.PureDP(epsilon=mechanism.event.epsilon)

    def exact(self, rows: Rows, stats: Stats) -> Sequence[int]:
        bins, q = self.cut(rows), self._fraction
        below = np.concatenate([[0], np.cumsum([stats.bin(bins, number) for number in range(bins.count)])]).tolist()
        return [-abs(q.denominator * under - q.numerator * below[-1]) for under in below]

    def estimate(self, rows: Rows, noisy: NDArray[np.float64]) -> NDArray[Any]:
        return np.asarray(self.cut(rows).edges)[noisy[:, 0].astype(int)]

    def release(self, rows: Rows, mechanism: Exponential, groups: Sequence[Stats], rng: Rng) -> NDArray[Any]:
        chosen = [mechanism.release(np.array(self.exact(rows, stats), np.int64), rng).value for stats in groups]
        return self.estimate(rows, np.array(chosen, np.float64).reshape(-1, 1))

    def describe_error(self, rows: Rows, mechanism: Exponential) -> str:
        edges = self.cut(rows).edges
        rank = mechanism.error(0.95, size=len(edges)) / self._fraction.denominator
        return f"rank off by at most {rank:.4g} rows, and a bin of {edges[1] - edges[0]:.4g}"


def _bounded(rows: Rows, column: str) -> str:
    rows.grid(column)
    return column


def _cut(rows: Rows, column: str, bins: int | tuple[float, ...]) -> Bins:
    bounds = rows.grid(column).bounds
    if isinstance(bins, int):
        return Bins(column, even_edges(bounds.low, bounds.high, whole("bins", bins, low=1)))
    edges = tuple(number("bins", edge, low=bounds.low, high=bounds.high) for edge in bins)
    if len(edges) < 2 or any(a >= b for a, b in zip(edges, edges[1:], strict=False)):
        raise ValueError("bins must be at least two edges that rise.")
    return Bins(column, (bounds.low, *edges[1:-1], bounds.high))


def _ratio(part: NDArray[np.float64], whole: NDArray[np.float64], otherwise: float) -> NDArray[np.float64]:
    safe = np.where(whole > 0, whole, 1.0)
    return np.where(whole > 0, part / safe, otherwise)
