"""The covariance matrix of bounded columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from discreet.errors import number, positive
from discreet.mechanisms import Gaussian
from discreet.mechanisms.parameters import store
from discreet.mechanisms.records import check_rows, rows
from discreet.random import exact_sum
from discreet.release import Release
from discreet.statistics.asking import Asked, ask, spell_out
from discreet.statistics.bounded import BITS, Bounds, check_bounds, positions
from discreet.statistics.statistic import AdditiveStatistic

__all__ = ["Covariance", "covariance"]

_ONE = 1 << BITS
_ROOT_TWO = Fraction(math.sqrt(2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Covariance(AdditiveStatistic):
    r"""The covariance matrix (divided by n) of columns with public ``bounds``, one pair for each column.

    With z in [-1, 1]^d the place of a record between its bounds and y = (1, z), the matrix Σ y·yᵀ holds the number of
    records, their sum and their second moments. Its upper triangle is released at once, with noise of one size.

    Guarantee, Gaussian noise: with entries off the diagonal multiplied by √2 the L2 norm of a record's triangle is
    that of its matrix, ‖y·yᵀ‖ = ‖y‖² ≤ d + 1. Laplace noise: entries are at most 1, so the L1 norm is at most their
    number, (d + 1)(d + 2)/2. A record with a missing entry adds nothing. Under replace the number of records is public
    and other mechanisms are better; refused here: ask for add-remove and read the event's epsilon with
    ``adjacency="replace"``.

    Places are rounded to multiples of 2^-29, record by record; sums are exact. The answer is projected on the positive
    semidefinite matrices. Reference: Dwork, Talwar, Thakurta and Zhang (2014), "Analyze Gauss".

    >>> operation = Covariance(bounds=((0, 10), (0, 10)), epsilon=1.0, delta=1e-6)
    >>> operation.rmse(n=10_000).round(3)
    array([[0.063, 0.05 ],
           [0.05 , 0.063]])
    >>> x = np.arange(10_000) % 10
    >>> operation.release(np.stack([x, x], axis=1), rng=1).value.round()
    array([[8., 8.],
           [8., 8.]])
    """

    bounds: tuple[Bounds, ...]

    label = "covariance"

    def __post_init__(self) -> None:
        self._check()
        if self._replace:
            raise ValueError(
                "adjacency is 'replace', but a covariance is proved under 'add-remove': ask for that, and "
                "read the event's epsilon with adjacency='replace'."
            )
        if not isinstance(self.bounds, Sequence) or not self.bounds:
            raise ValueError("bounds must be a sequence of pairs (low, high), one for each column.")
        store(self, bounds=tuple(check_bounds(pair) for pair in self.bounds))
        _ = self.mechanism

    @property
    def dimension(self) -> int:
        """The number of columns."""
        return len(self.bounds)

    @property
    def _gaussian(self) -> bool:
        return self.delta is not None or self.rho is not None

    @property
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        d = self.dimension
        size, off = (d + 1) * (d + 2) // 2, d * (d + 1) // 2
        return Fraction(size), (d + 1) + off * _ROOT_TWO**2, size

    @property
    def _triangle(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return np.triu_indices(self.dimension + 1)

    @property
    def _weights(self) -> NDArray[Any]:
        """What each entry of the triangle is multiplied by, exactly."""
        i, j = self._triangle
        return np.array(
            [_ROOT_TWO if self._gaussian and a != b else Fraction(1) for a, b in zip(i, j, strict=True)], object
        )

    def check(self, data: Any) -> None:
        """Rows of the declared columns."""
        check_rows(data, self.dimension)

    def totals(self, values: Any) -> NDArray[Any]:
        """The exact weighted triangle of Σ y·yᵀ. Private."""
        table = rows(values, self.dimension)
        place = np.stack([positions(column, pair) for column, pair in zip(table.T, self.bounds, strict=True)], axis=1)
        kept = 2 * place[(place >= 0).all(axis=1)] - _ONE  # from -2^30 to 2^30
        y = np.concatenate([np.full((len(kept), 1), _ONE), kept], axis=1)
        sums = [exact_sum(y[:, i] * y[:, j]) / _ONE**2 for i, j in zip(*self._triangle, strict=True)]
        out = np.empty(len(sums), object)
        out[:] = [total * weight for total, weight in zip(sums, self._weights, strict=True)]
        return out

    def answer(self, noisy: Any) -> NDArray[np.float64]:
        """The covariance from the noisy triangle; fewer than one record count as one."""
        matrix = np.zeros((self.dimension + 1, self.dimension + 1))
        matrix[self._triangle] = noisy / self._weights.astype(float)
        matrix = (matrix + np.triu(matrix, 1).T) / max(matrix[0, 0], 1.0)
        mean = np.clip(matrix[0, 1:], -1.0, 1.0)
        return self._scale(_positive_part(matrix[1:, 1:] - np.outer(mean, mean)))

    def _scale(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        half = np.array([(high - low) / 2 for low, high in self.bounds])
        return np.asarray(matrix * np.outer(half, half))

    def rmse(
        self, *, n: float, mean: Sequence[float] | None = None, covariance: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """The root mean square error of each entry before projection, to first order in 1/n.

        At a supposed ``mean`` and ``covariance``, or else at the worst.
        """
        parts = self._influence(mean, covariance)
        noise = self.mechanism.deviation / positive("n", n)
        return self._scale(noise * np.sqrt(sum(part**2 for part in parts)))

    def error(
        self,
        confidence: float = 0.95,
        *,
        n: float,
        mean: Sequence[float] | None = None,
        covariance: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """What the noise on each entry stays within, with at least this confidence, to first order in 1/n."""
        parts = self._influence(mean, covariance)
        noise = self.mechanism.error(number("confidence", confidence, low=0, high=1, open_high=True)) / positive("n", n)
        if isinstance(self.mechanism, Gaussian):
            return self._scale(noise * np.sqrt(sum(part**2 for part in parts)))
        # A mix of symmetric log-concave noises is no wider than one of them (Proschan 1965).
        return self._scale(noise * np.sum(np.abs(parts), axis=0))

    def _influence(
        self, mean: Sequence[float] | None, covariance: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64], ...]:
        """How entry (i, j) answers to noise on its moment, on the two sums, and on the count: derivatives, times n."""
        d, ends = self.dimension, np.array(self.bounds)
        half, middle = (ends[:, 1] - ends[:, 0]) / 2, ends.mean(axis=1)
        m = np.ones(d) if mean is None else (np.asarray(mean, float) - middle) / half
        own = (
            np.ones((d, d))
            if mean is None or covariance is None
            else (np.outer(m, m) - np.asarray(covariance, float) / np.outer(half, half))
        )
        one, off = np.eye(d, dtype=bool), float(_ROOT_TWO) if self._gaussian else 1.0
        down, across = np.broadcast_to(m[:, None], (d, d)), np.broadcast_to(m[None, :], (d, d))
        return (np.where(one, 1.0, 1 / off), np.where(one, 2 * down, down) / off, np.where(one, 0.0, across) / off, own)


def _positive_part(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest positive semidefinite matrix, in the Frobenius norm."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


@spell_out(Asked, "covariance")
def covariance(values: Any, bounds: Sequence[Bounds], **asked: Unpack[Asked]) -> Release[NDArray[np.float64]]:
    """The covariance matrix of bounded columns: see ``Covariance``.

    >>> covariance([[0, 1], [1, 0]] * 5000, bounds=[(0, 1), (0, 1)], rho=0.5, rng=1).value.round(2)
    array([[ 0.25, -0.25],
           [-0.25,  0.25]])
    """
    return ask(Covariance, values, asked, bounds=tuple(bounds))
