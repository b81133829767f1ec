"""The square root of the optimiser's prefix sums as the strategy."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.mechanisms import factorization as f
from discreet.mechanisms.factorization import Pattern, Strategy
from discreet.training.noise.correlated import Correlated

__all__ = ["SquareRoot"]


@dataclass(frozen=True, kw_only=True)
class SquareRoot(Correlated):
    """The root of the optimiser's sums. Memory: a vector a step."""

    def strategy_for(self, pattern: Pattern) -> Strategy:
        """The root."""
        return f.SquareRoot(self.workload(pattern.steps))
