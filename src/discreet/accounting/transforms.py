"""Closed forms: log E[exp(zL)] of privacy losses that have one, for the contour engine."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Transform"]

Complex = NDArray[np.complex128]


class Transform(Protocol):
    """A loss with a closed log-moment-generating function."""

    @property
    def scale(self) -> float:
        """Largest absolute loss, for the rounding bound."""
        ...

    def log_mgf(self, z: Complex) -> Complex:
        """log E[exp(zL)], the expectation over the finite losses."""
        ...

    def cumulants(self, c: float) -> tuple[float, float, float]:
        """K, K' and K'' at a real point."""
        ...
