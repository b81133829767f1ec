r"""Directions of noise that suit the data: rows whitened by a noisy second moment, and shrunk to a radius with their
targets.

Noise of one size in every direction drowns the directions in which features vary little: a column that is rarely off
its bound, two that go together. A first noisy matrix A = Σxxᵀ + E says which these are. With its eigenvalues λ (no
smaller than a multiple of the noise) and vectors V, a row becomes

.. math:: \tilde x = \sqrt{n}\,\Lambda^{-1/2} V^\top x,

which has a mean square of about one in every direction; noise is added in these coordinates. What one record can do
there is bounded by a radius C: a record beyond it counts with the weight s² = (C/‖x̃‖)², its row, target and all.
The weight is a function of the features alone, so an equation whose terms have mean zero at each x keeps its solution
(Mallows 1975): no bias is bought with the bound, as it would be by cutting rows or gradients.

C² is twice the number of coefficients, or more where the noise is small: then nothing is gained by weights, and in the
end none is below one.

References: Mallows (1975), "On some topics in robustness"; for noise that follows second moments under privacy, Brown,
Hopkins and Smith (2023).

Decision 388.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from discreet.linear import kernels
from discreet.linear.inference_parts import Array

__all__ = ["Whitened", "Whitening"]

FLOOR = 2.0  # deviations of the noise on the second moment: a smaller eigenvalue is taken for this
ROOM = 2.0  # C² over the number of coefficients, which is the mean of ‖x̃‖²
QUIET = 0.01  # C² is at least this part of n/z², z the noise multiplier of the gradient: noise is a tenth of sampling


@dataclass(frozen=True, slots=True)
class Whitened:
    """Whitened rows; the same inside the unit ball, which are s·x̃/C; and s, a number for each."""

    rows: Array
    inside: Array
    shrink: Array

    def __repr__(self) -> str:
        return "Whitened(...)"


@dataclass(frozen=True, slots=True)
class Whitening:
    """The map from rows to whitened ones, of released numbers: a matrix, and the radius C."""

    transform: Array
    radius: float

    @staticmethod
    def of(moments: Array, noise: float, size: float, multiplier: float) -> Whitening:
        """From a noisy Σxxᵀ, the deviation of its noise, about how many records there are, and the noise multiplier of
        what will be released.

        >>> Whitening.of(np.diag([400.0, 100.0]), 1.0, 100.0, 1.0).transform.round(1).tolist()
        [[1.0, 0.0], [0.0, 0.5]]
        """
        values, vectors = np.linalg.eigh(moments)
        size = max(size, FLOOR * noise, 1e-300)
        scale = np.sqrt(size / np.maximum(values, max(FLOOR * noise, 1e-300)))
        radius = math.sqrt(max(ROOM * len(values), QUIET * size / multiplier**2))
        return Whitening(np.asarray(scale[:, None] * vectors.T), radius)

    def __call__(self, rows: Array) -> Whitened:
        """Each row by itself."""
        white = kernels.scores(rows, np.ascontiguousarray(self.transform.T))
        inside, shrink = np.empty_like(white), np.empty(len(white))
        _shrink(white, self.radius * (1 + 2.0**-20), inside, shrink)
        return Whitened(white, inside, shrink)


@njit(cache=True, nogil=True)
def _shrink(rows: Any, radius: float, inside: Any, shrink: Any) -> None:
    for i in range(len(rows)):
        shrink[i] = min(1.0, radius / max(math.sqrt(kernels.square_of(rows[i])), 1e-300))
        for j in range(rows.shape[1]):
            inside[i, j] = rows[i, j] * shrink[i] / radius
