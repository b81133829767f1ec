r"""What is released of the three totals of (1-t)², 2t(1-t), t², t the place of a record between its bounds.

Where the number of records is private, the three themselves: they are not negative and add up to 1, so one record moves
them by 1 in L1. Where it is public, their sum is known, and two differences do: 1 - 2t, which one replaced record moves
by at most 2, and 2t(1-t), which costs nothing more, since 2|t-u| + 2|t(1-t) - u(1-u)| is at most 2 too. The mean then
has the noise of the whole budget, and the variance is free.

Decision 557.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from discreet.inference.simulation import Array

__all__ = ["PRIVATE_SIZE", "Design", "sized"]


class Design(NamedTuple):
    """Weights of the released totals on the three, and how what is released, and a known size, give the three again.

    >>> two = sized(100)
    >>> two.triples(two.released(np.array([20.0, 30.0, 50.0]))).tolist()
    [20.0, 30.0, 50.0]
    """

    weights: Array
    basis: Array
    start: Array

    def released(self, triples: Array) -> Array:
        """The released totals of three, in exact arithmetic where they are exact."""
        return np.asarray(triples @ self.weights.T)

    def triples(self, released: Array) -> Array:
        """The three totals of released ones."""
        return np.asarray(released @ self.basis.T + self.start)

    def covariance(self, first: Array, second: Array) -> Array:
        """Of the noise on two combinations of the three totals, in units of the variance of that on a released one."""
        return np.asarray(((first @ self.basis) * (second @ self.basis)).sum(-1))


PRIVATE_SIZE = Design(np.eye(3, dtype=int), np.eye(3), np.zeros(3))


def sized(n: int) -> Design:
    """Of a public number of records: the first total less the last, and the one between."""
    weights = np.array([[1, 0, -1], [0, 1, 0]])
    basis = np.array([[0.5, -0.5], [0.0, 1.0], [-0.5, -0.5]])
    return Design(weights, basis, np.array([n / 2, 0.0, n / 2]))
