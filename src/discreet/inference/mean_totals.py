r"""What is released of the three totals of (1-t)², 2t(1-t), t², t the place of a record between its bounds.

Where the number of records is private, the three themselves: they are not negative and add up to 1, so one record moves
them by 1 in L1. Where it is public, their sum is known, and two totals do: of 1 - 2t, which one replaced record moves
by at most 2, and of 2t(1-t), which costs nothing more, since 2|t-u| + 2|t(1-t) - u(1-u)| is at most 2 too. The mean
then has the noise of the whole budget, and the variance is free.

Decision 557.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from discreet.inference.simulation import Array

__all__ = ["Covariances", "MeanTotals"]


class Covariances(NamedTuple):
    """Of the noise on the totals of 1, t and t², in units of the variance of the noise on one released total."""

    one: float
    one_t: float
    t: float
    one_square: float
    t_square: float
    square: float

    def of_deviations(self, c: Array) -> Array:
        """The variance of the noise on the total of t - c."""
        return self.t + c * (c * self.one - 2 * self.one_t)

    def of_squares(self, c: Array) -> Array:
        """The variance of the noise on the total of (t - c)²."""
        linear, quadratic = -4 * self.t_square, 4 * self.t + 2 * self.one_square
        return self.square + c * (linear + c * (quadratic + c * (c * self.one - 4 * self.one_t)))


_PRIVATE = Covariances(one=3, one_t=1.5, t=1.25, one_square=1, t_square=1, square=1)
_PUBLIC = Covariances(one=0, one_t=0, t=0.25, one_square=0, t_square=0.25, square=0.5)


class MeanTotals(NamedTuple):
    """Of ``n`` records, or of a private number of them.

    >>> design = MeanTotals(100)
    >>> design.triples(design.released(np.array([20.0, 30.0, 50.0]))).tolist()
    [20.0, 30.0, 50.0]
    """

    n: int | None = None

    @property
    def entries(self) -> int:
        """How many totals are released of a group."""
        return 3 if self.n is None else 2

    def moves(self, replace: bool) -> tuple[Fraction, Fraction]:
        """How far one record moves what is released in L1, and the square of how far in L2."""
        if self.n is not None:
            return Fraction(2), Fraction(4)
        moved = Fraction(2 if replace else 1)
        return moved, moved

    @property
    def covariances(self) -> Covariances:
        """Of the noise on the three totals."""
        return _PRIVATE if self.n is None else _PUBLIC

    def released(self, triples: Array) -> Array:
        """The released totals of three."""
        return triples if self.n is None else np.stack([triples[..., 0] - triples[..., 2], triples[..., 1]], axis=-1)

    def triples(self, released: Array) -> Array:
        """The three totals of released ones."""
        return released if self.n is None else _three(self.n, released)

    def spread(self, noise: Array) -> Array:
        """The noise on the three totals of that on released ones."""
        return noise if self.n is None else _three(0, noise)


def _three(n: int, released: Array) -> Array:
    outer, middle = released[..., 0], released[..., 1]
    return np.stack([(n - middle + outer) / 2, middle, (n - middle - outer) / 2], axis=-1)
