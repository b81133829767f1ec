"""The proximal step of what is added to a sum of losses: soft thresholds, a box's or a ball's projection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.linear.problem import Problem

__all__ = ["Proximal"]


@dataclass(frozen=True, slots=True)
class Proximal:
    """w ↦ argmin α·‖u‖₁ + ‖u - w‖²/2·step over ‖u‖ ≤ radius; a post-processing of released numbers."""

    l1: float
    radius: float

    @staticmethod
    def of(problem: Problem, largest: float) -> Proximal:
        """The problem's own, with weights kept below ``largest`` in any case."""
        return Proximal(problem.l1, min(largest, problem.radius or largest))

    def __call__(self, w: NDArray[np.float64], step: float) -> NDArray[np.float64]:
        """The proximal point."""
        if self.l1:
            w = np.sign(w) * np.maximum(np.abs(w) - self.l1 * step, 0.0)
        norm = float(np.sqrt((w * w).sum()))
        return w if norm <= self.radius else w * (self.radius / norm)
