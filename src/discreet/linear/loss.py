"""What a solver asks of a loss."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Loss", "signs_of"]

Array: TypeAlias = NDArray[np.float64]


@runtime_checkable
class Loss(Protocol):
    """What a solver asks of a loss. ``scores`` are n × ``outputs``; targets are class numbers or real values."""

    @property
    def name(self) -> str:
        """As it stands in the table of proved pairs."""
        ...

    @property
    def outputs(self) -> int:
        """How many scores a record has."""
        ...

    @property
    def lipschitz(self) -> float:
        """The largest norm of a residual."""
        ...

    @property
    def curvature(self) -> float:
        """The largest eigenvalue of the residual's derivative."""
        ...

    def value(self, scores: Array, targets: NDArray[Any]) -> Array:
        """The loss of each record."""
        ...

    def residual(self, scores: Array, targets: NDArray[Any]) -> Array:
        """The derivative in the scores, n × outputs; each row must depend on its own record alone."""
        ...


def signs_of(targets: NDArray[Any]) -> Array:
    """Classes 0 and 1 as -1 and 1."""
    return np.where(targets == 1, 1.0, -1.0)
