r"""The binary tree: every node of it is a noisy sum of its steps, and a prefix is a few nodes.

A node that is complete has a noise of its own and, through its children, a second estimate. Honaker's estimate is their
mean, weighted by their variances: a node of level l has the variance 1/(2 - 2^-l) instead of 1, from what is known when
it is complete. With restarts a new tree begins after so many steps, at best a pass, so that a record is in each once.

Reference: Dwork et al. (2010) and Chan, Shi and Song (2011); Honaker (2015); restarts: Kairouz et al. (2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import whole
from discreet.mechanisms.factorization.participation import Bound, Pattern, best_sum, bound
from discreet.mechanisms.factorization.strategy import Strategy, minus, times
from discreet.mechanisms.factorization.toeplitz import Floats
from discreet.mechanisms.factorization.workload import Workload

__all__ = ["Tree"]

_DENSE = 256  # steps up to which a dense bound is tried beside another


class Tree(Strategy):
    """A tree over ``steps`` steps, begun again every ``restart`` steps.

    Only nodes whose steps are all there exist, so that n need not be a power of two. ``honaker=False`` takes a node's
    own noise alone.

    >>> round(Tree(8).loss(Workload(8), Pattern.single(8)), 4)
    2.1778
    """

    def __init__(self, steps: int, *, restart: int | None = None, honaker: bool = True) -> None:
        self.steps = whole("steps", steps, low=1)
        self.restart = min(steps, whole("restart", steps if restart is None else restart, low=1))
        self.honaker, self.bands = honaker, self.restart
        self.levels = self.restart.bit_length()
        self.memory = (self.restart + 1).bit_length() - 1  # the most ones in a number of so many steps

    def nodes(self) -> list[tuple[int, int]]:
        """First step and length of every node, in the order in which they are complete."""
        found = []
        for step in range(self.steps):
            place = step % self.restart + 1
            for level in range(self.levels):
                if place % (1 << level):
                    break
                found.append((step + 1 - (1 << level), 1 << level))
        return found

    def matrix(self) -> Floats:
        """One row per node: the indicator of its steps."""
        nodes = self.nodes()
        c = np.zeros((len(nodes), self.steps))
        for row, (start, length) in zip(c, nodes, strict=True):
            row[start : start + length] = 1.0
        return c

    def sensitivity(self, pattern: Pattern) -> Bound:
        """Node by node: a record that is in a node c times moves its sum by at most c.

        Exact where a tree has one participation, and for regular patterns. Otherwise k participations, each with the
        most that can share its node of every level.
        """
        pattern.check(self.steps)
        k, b = pattern.participations, pattern.separation
        if self.restart <= b:
            return bound(best_sum(self._node_sums(None), pattern), True)
        if pattern.regular:
            every = (np.arange(self.steps) % b == start for start in range(b))
            return bound(max(float(self._node_sums(m)[m].sum()) for m in every), True)
        most = sum(min(k, math.ceil((1 << level) / b)) for level in range(self.levels))
        above = bound(float(k * most), False)
        return min(above, super().sensitivity(pattern)) if self.steps <= _DENSE else above

    def _node_sums(self, chosen: NDArray[Any] | None) -> Floats:
        """For each step the chosen ones in the nodes that hold it, added up; without a choice how many nodes hold
        it."""
        total = np.zeros(self.steps)
        for start in range(0, self.steps, self.restart):
            end = min(self.steps, start + self.restart)
            tree = None if chosen is None else chosen[start:end].astype(np.float64)
            for level in range((end - start).bit_length()):
                length = 1 << level
                count = (end - start) // length
                held = np.ones(count) if tree is None else tree[: count * length].reshape(count, length).sum(axis=1)
                total[start : start + count * length] += np.repeat(held, length)
        return total

    def variance(self, level: int) -> float:
        """Of a complete node's estimate."""
        return 1 / (2 - 2.0**-level) if self.honaker else 1.0

    def advance(self, step: int, draw: Callable[[], Any], memory: list[Any]) -> Any:
        """A step completes its own node and some above it; what it adds to the prefix is the new node less those that
        it swallows. ``memory`` holds the estimates that stand, the smallest last."""
        place = step % self.restart
        if place == 0:
            memory.clear()
        estimate, swallowed, level = draw(), [], 0
        while place >> level & 1:
            left = memory.pop()
            swallowed.append(left)
            own = draw()
            if self.honaker:
                share = self.variance(level + 1)  # of its own noise; the rest for the children, which add up
                own = times(own, share)
                for child in (left, estimate):
                    own = minus(own, child, share - 1)
            estimate, level = own, level + 1
        memory.append(estimate)
        noise = estimate * 1.0 if swallowed else estimate
        for left in swallowed:
            noise = minus(noise, left, 1.0)
        return noise

    def errors(self, workload: Workload) -> Floats:
        """Of prefix sums the variances of the nodes that make them up."""
        if not workload.is_prefix:
            return super().errors(workload)
        places = np.arange(self.steps) % self.restart + 1
        levels = range(self.levels)
        here = sum((places >> level & 1) * self.variance(level) for level in levels)
        whole_tree = sum((self.restart >> level & 1) * self.variance(level) for level in levels)
        return np.asarray(here + np.arange(self.steps) // self.restart * whole_tree, np.float64)
