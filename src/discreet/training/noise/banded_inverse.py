"""Strategies whose inverse has few bands (BISR and its optimum)."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import whole
from discreet.mechanisms import factorization as f
from discreet.mechanisms.factorization import Pattern, Strategy
from discreet.training.noise.correlated import Correlated

__all__ = ["BandedInverse"]


@dataclass(frozen=True, kw_only=True)
class BandedInverse(Correlated):
    """A matrix whose inverse has few bands, optimised; or with ``optimised=False`` those of the square root (BISR).

    Memory: bands - 1 vectors.

    Reference: Kalinin et al. (2025), "Back to square roots".
    """

    bands: int = 4
    optimised: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("bands", self.bands, low=1)

    def strategy_for(self, pattern: Pattern) -> Strategy:
        """The optimum, or the root's first bands."""
        if not self.optimised:
            return f.BandedInverse.square_root(pattern.steps, self.bands)
        return f.BandedInverse.optimised(self.workload(pattern.steps), pattern, self.bands, self.error)
