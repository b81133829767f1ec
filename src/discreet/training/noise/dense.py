"""The optimal dense strategy matrix, for short runs."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.mechanisms import factorization as f
from discreet.mechanisms.factorization import Pattern, Strategy
from discreet.training.noise.correlated import Correlated

__all__ = ["Dense"]


@dataclass(frozen=True, kw_only=True)
class Dense(Correlated):
    """The optimum over all matrices at one participation, for runs of at most 2,048 steps. Memory: a vector a step.

    ``rates`` are the step sizes of a schedule, one a step.
    """

    rates: tuple[float, ...] | None = None

    def workload(self, steps: int) -> f.Workload:
        """With the schedule."""
        return f.Workload(steps, self.momentum, self.decay, self.rates)

    def strategy_for(self, pattern: Pattern) -> Strategy:
        """The optimum."""
        return f.Dense(self.workload(pattern.steps))
