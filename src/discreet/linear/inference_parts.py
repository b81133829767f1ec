r"""What intervals of both models share: how noise on a matrix moves a solution, and when it moves it too far.

A matrix A of packed entries (``kernels.gram_sum``) released with noise of deviation σ is A = S + E, where for any fixed
s

.. math:: E s \sim N\bigl(0,\ \tfrac{\sigma^2}{2}(\|s\|^2 I + s s^\top)\bigr).

Solving with A instead of S is a first-order expansion, good while A is known to a small part u of itself. An interval
that is given only where A happens to look large enough would be wrong whenever that was luck. So it is never cut off:
it is divided by 1 - u², which changes little while u is small, and grows without bound as u nears 1, where no interval
is given.

Decision 380.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Estimates", "positive_part", "shaken", "smallest", "unknown", "widening"]

Array = NDArray[np.float64]


class Estimates(NamedTuple):
    """Coefficients and intercept, their variances, and a covariance whose diagonal is at least these; the share of the
    targets' variance that the line explains, or NaN.
    """

    value: Array
    variances: Array
    covariance: Array
    r_squared: float = math.nan


def unknown(value: Array) -> Estimates:
    """Where no interval can be given."""
    size = len(value)
    return Estimates(value, np.full(size, math.inf), np.full((size, size), math.inf))


def positive_part(matrix: Array) -> Array:
    """The symmetric matrix without its negative eigenvalues: no direction has less than before, nor less than nothing.

    >>> positive_part(np.diag([2.0, -1.0])).tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def shaken(sigma: float, step: Array) -> Array:
    """The covariance of Es, for noise E of deviation ``sigma`` on a packed matrix."""
    return np.asarray(sigma**2 / 2 * ((step @ step) * np.eye(len(step)) + np.outer(step, step)))


def smallest(matrix: Array) -> float:
    """The smallest eigenvalue, or zero."""
    return max(float(np.linalg.eigvalsh(matrix)[0]), 0.0)


def widening(unknown: float) -> float:
    """What an interval is widened by when the matrix is known to this part of itself: 1/(1 - u²); infinite from 1 on.

    >>> round(widening(0.1), 3), round(widening(0.5), 3), widening(1.0)
    (1.01, 1.333, inf)
    """
    return 1 / (1 - unknown**2) if unknown < 1 else float("inf")
