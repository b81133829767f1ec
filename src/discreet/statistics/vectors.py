"""The mean of vectors of bounded length."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from discreet.errors import number, positive, whole
from discreet.mechanisms.grid import in_range
from discreet.mechanisms.parameters import store
from discreet.mechanisms.records import check_rows, check_size, rows
from discreet.random import exact_sum
from discreet.release import Release
from discreet.statistics.asking import Asked, ask, spell_out
from discreet.statistics.statistic import AdditiveStatistic, public_size

__all__ = ["MOST_DIMENSIONS", "VectorMean", "vector_mean"]

# Lengths are computed in doubles, to a relative d·2^-52; the sensitivity is enlarged by far more than that.
_ROUNDING = 1 + Fraction(1, 1 << 30)
MOST_DIMENSIONS = 1 << 20  # dimensions for which that holds with room to spare


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorMean(AdditiveStatistic):
    r"""The mean of rows in ``dimension`` dimensions, each shortened to ``norm`` (Euclidean) if it is longer.

    **Number of rows private.** Σ x/norm and w·(number of rows) are released together with Gaussian noise: one row moves
    them by at most √(1 + w²) in L2. The error of the mean then has squared length (1 + w²)(d + ‖m‖²/w²)·(norm·z/n)²,
    least for w² = ‖m‖/√d; with ‖m‖ ≤ 1 (in units of ``norm``) w² = 1/√d is the public choice made here.

    **Number of rows public** (``adjacency="replace"``, ``n=``). Noise is added to the mean, of L2 sensitivity 2·norm/n.

    A row with an entry that is not a finite number is missing: it adds nothing, or under replace a zero vector. Lengths
    are cut at ``norm`` in doubles and the sensitivity enlarged by 2^-30 for that; sums are exact. The answer is
    shortened to ``norm``. Needs ``delta=`` or ``rho=``: the noise is Gaussian.

    >>> operation = VectorMean(dimension=3, norm=1.0, epsilon=1.0, delta=1e-6)
    >>> round(operation.rmse(n=1000), 4)
    0.0115
    >>> operation.release(np.full((1000, 3), 0.5), rng=1).value.round(1)
    array([0.5, 0.5, 0.5])
    """

    dimension: int
    norm: float
    n: int | None = None

    label = "vector mean"

    def __post_init__(self) -> None:
        self._check()
        if self.rho is None and self.delta is None:
            raise ValueError("epsilon is given alone, but the noise on vectors is Gaussian: add delta=, or use rho=.")
        store(
            self,
            dimension=whole("dimension", self.dimension, low=1, high=MOST_DIMENSIONS),
            norm=in_range("norm", self.norm),
            n=public_size(self.n, self._replace),
        )
        _ = self.mechanism

    @property
    def _weight(self) -> float:
        return float(self.dimension**-0.25)

    @property
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        if self.n is not None:
            reach = 2 * _ROUNDING / self.n
            return reach * self.dimension, reach**2, self.dimension
        square = _ROUNDING**2 + Fraction(self._weight) ** 2
        return square * self.dimension, square, self.dimension + 1

    def check(self, data: Any) -> None:
        """Rows, of the public size if there is one."""
        check_rows(data, self.dimension)
        check_size(data, self.n)

    def totals(self, values: Any) -> Any:
        """Exact sums of the shortened rows in units of ``norm``, then the weighted number of rows. Private."""
        table = rows(values, self.dimension)
        kept = table[np.isfinite(table).all(axis=1)]
        sums = [exact_sum(part) / Fraction(self.norm) for part in _clip_rows(kept, self.norm).T]
        if self.n is None:
            return _exact([*sums, len(kept) * Fraction(self._weight)])
        if len(table) != self.n:
            raise ValueError(f"values has {len(table)} records, but n={self.n} was declared.")
        return _exact([total / self.n for total in sums])

    def answer(self, noisy: Any) -> NDArray[np.float64]:
        """The mean from the noisy totals, shortened to ``norm``; fewer than one row count as one."""
        mean = noisy if self.n is not None else noisy[:-1] / max(noisy[-1] / self._weight, 1.0)
        return np.asarray(self.norm * mean / max(1.0, float(np.linalg.norm(mean))))

    def rmse(self, *, n: float | None = None, mean: float | None = None) -> float:
        """The root mean square length of the error, to first order in 1/n; ``mean``: a supposed length of the mean."""
        if self.n is not None:
            return self.norm * self.mechanism.deviation * math.sqrt(self.dimension)
        length = 1.0 if mean is None else number("mean", mean, low=0, high=self.norm) / self.norm
        if n is None:
            raise ValueError("n is missing, but the error depends on the number of records: assume one with n=.")
        spread = math.sqrt(self.dimension + (length / self._weight) ** 2)
        return self.norm * self.mechanism.deviation * spread / positive("n", n)

    def error(self, confidence: float = 0.95, *, n: float | None = None) -> float:
        """What the length of the error stays within, with at least this confidence (Laurent and Massart 2000)."""
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        # A Gaussian vector of covariance S is longer than √tr S + √(2x·‖S‖) with probability at most e^-x. Here S is
        # the identity, and with n private that plus mmᵀ/w², of norm at most 1/w².
        widest = 1.0 if self.n is not None else 1 + self._weight**-2
        size = 1.0 if self.n is not None else positive("n", n)
        reach = self.mechanism.deviation * math.sqrt(2 * widest * math.log(1 / (1 - confidence)))
        return self.rmse(n=n) + self.norm * reach / size

    @property
    def stated_error(self) -> Any:
        """The error with 95 % confidence."""
        return None if self.n is None else self.error()


def _clip_rows(table: NDArray[np.float64], norm: float) -> NDArray[np.float64]:
    """Rows of length at most ``norm`` up to rounding. Lengths are taken of rows scaled to [-1, 1]: no overflow."""
    largest = np.abs(table).max(axis=1, initial=0.0)[:, None]
    unit = table / np.where(largest > 0, largest, 1.0)
    length = np.sqrt((unit**2).sum(axis=1))[:, None]  # at least 1, unless the row is zero
    return np.asarray(unit * np.minimum(largest, norm / np.maximum(length, 1.0)))


def _exact(values: list[Fraction]) -> NDArray[Any]:
    out = np.empty(len(values), object)
    out[:] = values
    return out


@spell_out(Asked, "vector mean")
def vector_mean(
    values: Any, norm: float, dimension: int, *, n: int | None = None, **asked: Unpack[Asked]
) -> Release[NDArray[np.float64]]:
    """The mean of rows of bounded length: see ``VectorMean``.

    >>> vector_mean([[0.3, 0.4]] * 2000, norm=1.0, dimension=2, rho=0.5, rng=1).value.round(1)
    array([0.3, 0.4])
    """
    return ask(VectorMean, values, asked, norm=norm, dimension=dimension, n=n)
