"""Buffered linear Toeplitz (BLT) noise."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import whole
from discreet.mechanisms import factorization as f
from discreet.mechanisms.factorization import Pattern, Strategy
from discreet.training.noise.correlated import Correlated

__all__ = ["BLT"]


@dataclass(frozen=True, kw_only=True)
class BLT(Correlated):
    """A buffered linear Toeplitz matrix, optimised. Memory: a vector a buffer.

    Reference: Dvijotham et al. (2024); McMahan et al. (2024).
    """

    buffers: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("buffers", self.buffers, low=1)

    def strategy_for(self, pattern: Pattern) -> Strategy:
        """The optimum."""
        return f.BLT.optimised(self.workload(pattern.steps), pattern, self.buffers, self.error)
