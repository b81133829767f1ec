"""A loss of one's own, of which nothing is proved: it is clipped, and tried on public numbers first."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import number
from discreet.linear.loss import Array, signs_of

__all__ = ["CustomLoss"]

_TRIAL = (-3.0, -1.5, -0.75, -0.1, 0.2, 0.6, 1.25, 2.5)  # scores on which a loss of one's own is tried


@dataclass(frozen=True, slots=True)
class CustomLoss:
    """A loss of one's own: ``loss(score, target)`` and its ``derivative`` in the score, both on arrays, entry by entry.

    For a classifier of two classes targets are -1 and 1; for a regressor they are real, scaled to [-1, 1]. Residuals
    are clipped, whatever they are, and only solvers that clip are offered. ``curvature``, a bound on the second
    derivative, sets step sizes alone. What the guarantee does rest on is that an entry depends on its own record and
    nothing else: a derivative that mixes entries (subtracts a mean, say) is refused, as far as a trial on public
    numbers shows it.

    >>> robust = CustomLoss(lambda m, y: np.log(np.cosh(m - y)), lambda m, y: np.tanh(m - y), curvature=1.0)
    >>> robust.residual(np.zeros((1, 1)), np.array([0.0])).item()
    0.0
    """

    loss: Callable[[Array, Array], Array]
    derivative: Callable[[Array, Array], Array]
    curvature: float = 1.0
    name = "custom"
    outputs = 1
    lipschitz = math.inf

    def __post_init__(self) -> None:
        number("curvature", self.curvature, low=0, high=math.inf, open_low=True, open_high=True)
        scores, targets = np.array(_TRIAL), np.array([1.0, -1.0] * 4)
        together = self._slopes(scores, targets)
        alone = [self._slopes(scores[i : i + 1], targets[i : i + 1])[0] for i in range(len(scores))]
        if not np.allclose(together, alone, rtol=1e-9, atol=0, equal_nan=True):
            raise ValueError(
                "derivative mixes records, but must be computed entry by entry: one record's slope may depend on "
                "its own score and target alone."
            )

    def _slopes(self, scores: Array, targets: Array) -> Array:
        with np.errstate(all="ignore"):  # a warning that one record causes would be seen
            found = np.asarray(self.derivative(scores, targets), np.float64)
        if found.shape != scores.shape:
            raise ValueError(
                f"derivative gives shape {found.shape} for scores of shape {scores.shape}, but must give one "
                "slope per score."
            )
        return found

    def __repr__(self) -> str:
        names = (getattr(function, "__name__", type(function).__name__) for function in (self.loss, self.derivative))
        return f"CustomLoss({', '.join(names)}, curvature={self.curvature:g})"

    def _targets(self, targets: NDArray[Any]) -> Array:
        return signs_of(targets) if targets.dtype.kind in "iub" else targets

    def value(self, scores: Array, targets: NDArray[Any]) -> Array:
        """The loss of each record."""
        return np.asarray(self.loss(scores[:, 0], self._targets(targets)), np.float64)

    def residual(self, scores: Array, targets: NDArray[Any]) -> Array:
        """The derivative in the score."""
        return self._slopes(scores[:, 0], self._targets(targets))[:, None]
