"""Closed log-moment-generating functions, as the contour engine wants them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.accounting.arrays import Array
from discreet.accounting.pld.accurate import Bounded
from discreet.accounting.pld.atoms import Atoms
from discreet.accounting.pld.bounded_range import BoundedRange
from discreet.accounting.pld.pairs import LaplaceShift

__all__ = ["Transform"]


@dataclass(frozen=True)
class Transform:
    """log E[exp(zL)] over the finite losses of a pair that has it in closed form."""

    pair: Atoms | BoundedRange | LaplaceShift

    @property
    def scale(self) -> float:
        """Largest absolute loss."""
        return max(abs(self.pair.lowest), abs(self.pair.highest))

    def log_mgf(self, z: Array) -> Bounded:
        """The closed form, and a bound on its error."""
        return self.pair.log_mgf(z)

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """K, K' and K'' at a real point, by central differences on a scale where K is smooth."""
        h = 1e-3 * min(max(c, 1e-6), 1 / max(self.scale, 1e-9))
        h = max(h, 1e-4 / max(self.scale, 1e-9)) if c > 1e-3 / max(self.scale, 1e-9) else h
        low, middle, high = self.log_mgf(np.array([c - h, c, c + h], dtype=complex))[0].real.tolist()
        return middle, (high - low) / (2 * h), max((high - 2 * middle + low) / h**2, 0.0) if math.isfinite(h) else 0.0
