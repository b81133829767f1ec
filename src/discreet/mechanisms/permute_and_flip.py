"""Permute-and-flip: the exponential mechanism without replacement, never worse in expected score."""

from __future__ import annotations

import math
from dataclasses import dataclass

from numpy.typing import ArrayLike

from discreet import events, random
from discreet.errors import number, whole
from discreet.mechanisms.scores import ScoreSelection
from discreet.random.tap import draw_output

__all__ = ["PermuteAndFlip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermuteAndFlip(ScoreSelection[int]):
    r"""Walks the candidates in random order, stopping at i with probability :math:`e^{\epsilon(u_i - u^*)/2\Delta}`.

    Equal in law to reporting the maximum after adding exponential noise of scale 2Δ/ε (Δ/ε with ``monotone=True``,
    where a record moves all scores the same way). Coins are decided exactly on a score grid.

    Guarantee: epsilon-DP. Its range is not bounded by epsilon, so the event is pure DP; one selection alone is better
    than ``Exponential``, many composed ones may not be.

    Reference: McKenna and Sheldon (2020); Ding et al. (2021).

    >>> PermuteAndFlip(sensitivity=1.0, epsilon=1.0).release([0.0, 80.0, 1.0], rng=1).value
    1
    """

    @property
    def event(self) -> events.PureDP:
        """The cost, at most ``epsilon``."""
        return events.PureDP(epsilon=self._grid.epsilon, adjacency=self.adjacency)

    def error(self, confidence: float = 0.95, *, size: int) -> float:
        """How far the chosen score may lie below the best: the exponential mechanism's bound, which it satisfies."""
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        grid = self._grid
        return float(grid.step) * (grid.scale * math.log(whole("size", size, low=1) / (1 - confidence)) + 1)

    def draw(self, data: ArrayLike, rng: random.Rng) -> int:
        """The index of the chosen candidate."""
        grid = self._grid
        gaps = grid.gaps(data)
        return draw_output(
            self, grid.on_grid(data), "linf", grid.reach, lambda: random.permuted_index(gaps, grid.scale, rng)
        )
