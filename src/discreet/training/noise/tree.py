"""Tree aggregation: noise on the nodes of a binary tree (DP-FTRL)."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.mechanisms import factorization as f
from discreet.mechanisms.factorization import Pattern, Strategy
from discreet.training.noise.correlated import Correlated

__all__ = ["Tree"]


@dataclass(frozen=True, kw_only=True)
class Tree(Correlated):
    """A binary tree with Honaker's estimate, begun again with every pass.

    With ``restarts=False`` one tree spans the run, and a record is in it once a pass. Memory: a vector a level.

    Reference: Kairouz et al. (2021), DP-FTRL.
    """

    restarts: bool = True

    def strategy_for(self, pattern: Pattern) -> Strategy:
        """A tree a pass."""
        return f.Tree(pattern.steps, restart=pattern.separation if self.restarts else None)
