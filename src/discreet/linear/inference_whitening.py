r"""Directions of noise that suit the data: rows whitened by a noisy second moment, and shrunk to a radius with their
targets.

Noise of one size in every direction drowns the directions in which features vary little: a column that is rarely off
its bound, two that go together. A first noisy matrix A = Σxxᵀ + E says which these are. With its eigenvalues λ (no
smaller than a multiple of the noise) and vectors V, a row becomes

.. math:: \tilde x = \sqrt{n}\,\Lambda^{-1/2} V^\top x,

which has a mean square of about one in every direction; noise is added in these coordinates. What one record can do
there is bounded: it counts, row, target and all, with the weight

.. math:: w = \min\Bigl(1, \frac{C}{\|\tilde x\|}, \frac{B^2}{\|\tilde x\|^2}\Bigr),

so that w‖x̃‖ is at most C and w‖x̃‖² at most B². The weight is a function of the features alone, so an equation whose
terms have mean zero at each x keeps its solution (Mallows 1975): no bias is bought with the bound, as it would be by
cutting rows or gradients.

C² is the number of coefficients, or more where the noise is small: then nothing is gained by weights, and in the end
none is below one. B²/C² is the family's: a larger one is kinder to what is rare, a smaller one to
the Hessian.

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
_EDGE = 1 + 2.0**-20  # so that no rounding of a norm can leave the unit ball
ROOM = 1.0  # C² over the number of coefficients, which is the mean of ‖x̃‖²


@dataclass(frozen=True, slots=True)
class Whitened:
    """Whitened rows x̃; w·x̃/C and √w·x̃/B, which are inside the unit ball."""

    rows: Array
    pulls: Array
    bends: Array

    def __repr__(self) -> str:
        return "Whitened(...)"


@dataclass(frozen=True, slots=True)
class Whitening:
    """The map from rows to whitened ones, of released numbers: a matrix, the radius C, and B²/C²."""

    transform: Array
    radius: float
    spread: float = 1.0

    @property
    def square(self) -> float:
        """B²."""
        return self.spread * self.radius**2

    @property
    def is_wide(self) -> bool:
        """Whether the radius is larger than where noise matters."""
        return self.radius**2 > 2 * ROOM * len(self.transform)

    @staticmethod
    def of(
        moments: Array, noise: float, size: float, *, least: float = 0.0, norm: float = 1.0, spread: float = 1.0
    ) -> Whitening:
        """From a noisy Σxxᵀ, the deviation of its noise, and about how many records there are; C² is at least
        ``least``, no row exceeds ``norm``, B²/C² is ``spread``.

        >>> abs(Whitening.of(np.diag([400.0, 100.0]), 1.0, 100.0).transform).round(1).tolist()
        [[0.0, 1.0], [0.5, 0.0]]
        """
        values, vectors = np.linalg.eigh(moments)
        size = max(size, FLOOR * noise, 1e-300)
        scale = np.sqrt(size / np.maximum(values, max(FLOOR * noise, 1e-300)))
        radius = math.sqrt(max(ROOM * len(values), least))
        return Whitening(np.asarray(scale[:, None] * vectors.T), min(radius, norm * float(scale.max())), spread)

    def __call__(self, rows: Array) -> Whitened:
        """Each row by itself."""
        white = kernels.scores(rows, np.ascontiguousarray(self.transform.T))
        pulls, bends = np.empty_like(white), np.empty_like(white)
        _weigh(white, self.radius * _EDGE, self.square * _EDGE, pulls, bends)
        return Whitened(white, pulls, bends)


@njit(cache=True, nogil=True)
def _weigh(rows: Any, radius: float, square: float, pulls: Any, bends: Any) -> None:
    for i in range(len(rows)):
        norm = max(math.sqrt(kernels.square_of(rows[i])), 1e-150)
        weight = min(1.0, radius / norm, square / norm**2)
        root = math.sqrt(weight / square)
        for j in range(rows.shape[1]):
            pulls[i, j] = rows[i, j] * weight / radius
            bends[i, j] = rows[i, j] * root
