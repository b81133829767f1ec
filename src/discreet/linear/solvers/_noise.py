r"""Noise of density ∝ exp(-‖z‖/b) on vectors, and the covering step that makes finite arithmetic part of a proof.

``radial`` draws a norm from Γ(d, b), the sum of d exact exponentials, and a direction, an exact Gaussian vector over
its norm; a vector shorter than 2^-10 standard deviations is drawn again, which leaves the direction uniform. Each
exponential and each Gaussian is the exact integer part of the continuous variable on a grid of 2^-44 of its scale, so
there is an ideal sample within ``radial_error`` of the one drawn. What is not exact has probability below 2^-50: a
vector whose length is within the grid's width of the limit, or a norm beyond 8(d + 20)·b. With one entry the direction
is a sign, and exact.

``Cover`` adds a little exact Laplace noise to a vector that is known to lie within ``error`` of an ideal one whose
release is private. Given the ideal output o, the computed value is o plus at most ``error`` on either neighbour; a
change of at most 2·``error`` in L2, 2√d·``error`` in L1. Releasing it with Laplace noise of that sensitivity costs its
epsilon more, and covers whatever happened inside the radius: an unfinished optimiser, rounded noise, float arithmetic.
This is the last step of approximate minimum perturbation (Iyengar et al. 2019), which used Gaussian noise for it.

Decision 66.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import events, mechanisms, random
from discreet.adjacency import Adjacency
from discreet.mechanisms.grid import DEFAULT_MAX_SIZE
from discreet.random.tap import unheard

__all__ = ["COVER_SHARE", "Cover", "radial", "radial_error", "radial_norm"]

COVER_SHARE = 2.0**-10  # of epsilon
_STEPS = 1 << 44
_SHORTEST = 2.0**-10


def radial(size: int, scale: float, rng: random.Rng) -> NDArray[np.float64]:
    """A vector of density ∝ exp(-‖z‖/scale), within ``radial_error`` of an ideal one.

    >>> radial(3, 1.0, random.seeded(1)).shape
    (3,)
    """
    magnitudes = np.abs(random.laplace_cells(_STEPS, size, rng) + 0.5)
    norm = math.fsum(magnitudes / _STEPS) * scale
    length = 0.0
    while length < _SHORTEST * _STEPS and (size > 1 or length == 0):
        direction = random.gaussian_cells(_STEPS, size, rng) + 0.5
        length = float(np.sqrt((direction * direction).sum()))
    return np.asarray(direction / length * norm)


def radial_norm(size: int, scale: float) -> float:
    """A norm that a drawn vector exceeds with probability below 2^-50."""
    return 8 * (size + 20) * scale


def radial_error(size: int, scale: float) -> float:
    """How far a drawn vector may lie from an ideal one."""
    norm = radial_norm(size, scale)
    return norm * 4 * math.sqrt(size) / (_SHORTEST * _STEPS) + size * scale / _STEPS + norm * size * 2.0**-50


@dataclass(frozen=True, slots=True)
class Cover:
    """Exact Laplace noise over a radius of doubt, for ``epsilon``."""

    error: float
    size: int
    epsilon: float
    adjacency: Adjacency

    @property
    def _mechanism(self) -> mechanisms.Laplace:
        return mechanisms.Laplace(
            sensitivity=2 * math.sqrt(self.size) * self.error * (1 + 2.0**-30),
            epsilon=self.epsilon,
            max_size=max(DEFAULT_MAX_SIZE, self.size),
            adjacency=self.adjacency,
        )

    @property
    def event(self) -> events.Event:
        """The cost, at most ``epsilon``."""
        return self._mechanism.event

    def release(self, value: NDArray[np.float64], rng: random.Rng) -> Any:
        """The value, covered. Part of a step that replay watches as a whole, so it is not announced again."""
        with unheard():
            return self._mechanism.draw(value, rng)
