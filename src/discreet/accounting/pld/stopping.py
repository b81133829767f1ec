"""Where the contour's sum may stop, and a bound on what it then leaves out.

The integrand's modulus along the line is at most |φ(t)|/t², φ the characteristic function of the tilted loss. Envelopes
of |φ| (:mod:`discreet.accounting.pld.decay`) are laid over a grid of heights, a coarse one far up, a fine one below it;
the sum stops at the lowest height above which every interval is small enough.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.accounting.arrays import Array
from discreet.accounting.pld.decay import far_envelope, near_envelope
from discreet.accounting.pld.mixtures import Mixtures
from discreet.errors import NotCertified

__all__ = ["Stop"]


@dataclass(frozen=True)
class Stop:
    """The end of a sum with nodes ``step`` apart on the line through c: sampled Gaussians and a plain one of ``mu``.

    ``goal`` says how small the integrand must be on the real axis' scale, in logs, before it may be dropped.
    """

    pieces: list[Mixtures]
    mu: float
    c: float
    step: float
    variance: float  # of the tilted loss
    goal: float
    digits: float
    repetitions: float

    @cached_property
    def _far(self) -> tuple[float, float]:
        """A height and a bound on log|φ| that holds there and beyond, small enough to drop everything above."""
        t = 2 / math.sqrt(self.variance) * 1.15 ** np.arange(140)
        bound = -((self.mu * t) ** 2) / 2
        for piece in self.pieces:
            scan = piece.rule(self.c, 0.0, self.digits + 11 + math.log(self.repetitions))
            cells = scan.refine(0.05 / max(1.0, float(np.max((self.c + 1) ** 0.5 / piece.sigmas))))
            bound = bound + piece.counts @ np.log(far_envelope(cells, t))
        done = np.flatnonzero(bound - np.log(math.pi * t) <= self.goal)
        if not len(done):
            raise NotCertified("the characteristic function decays too slowly for the contour.")
        return float(t[done[0]]), float(bound[done[0]])

    def _near(self, ratio: float) -> tuple[Array, Array]:
        """A grid of heights up to the far one, and a bound on log|φ| over each interval; the last is unbounded."""
        top, floor = self._far
        start = min(2 / math.sqrt(self.variance), top)
        count = 2 + int(math.log(top / start) / math.log(ratio))
        grid = np.geomspace(start, top, count) if top > start else np.array([top])
        bound = -((self.mu * grid[:-1]) ** 2) / 2
        for piece in self.pieces:
            for first in range(0, len(bound), 10):  # low heights need fewer quadrature nodes
                heights = grid[first : first + 11]
                rule = piece.rule(self.c, float(heights[-1]), 16.0 + math.log(self.repetitions))
                bound[first : first + 10] += piece.counts @ np.log(near_envelope(rule, heights))
        return grid, np.append(bound, floor)

    @cached_property
    def _cut(self) -> tuple[Array, Array]:
        """The grid beyond the last node, and the bounds over its intervals."""
        best: tuple[Array, Array] | None = None
        for ratio in (1.15, 1.05):  # a finer grid proves an earlier stop where rare losses are large
            grid, bound = self._near(ratio)
            excess = bound - np.log(math.pi * grid) - self.goal
            first = int(np.flatnonzero(np.append(True, excess > 0))[-1])  # every later interval is small enough
            if best is None or grid[first] < best[0][0]:
                best = grid[first:], bound[first:]
            if best[0][0] < 2000 * self.step:
                break
        assert best is not None
        return best

    @property
    def height(self) -> float:
        """The last node lies at this height, or above."""
        return float(self._cut[0][0])

    @cached_property
    def truncation(self) -> float:
        """The terms beyond the last node: (step/π)·Σ|φ|/t², at most ∫|φ|/t² dt/π plus one leading term an interval."""
        t, bound = self._cut
        weight = 1 / t - 1 / np.append(t[1:], np.inf)
        return float(np.exp(bound) @ (weight + self.step / t**2)) / math.pi
