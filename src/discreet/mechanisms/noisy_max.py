"""Report noisy max: add noise to every score, tell only who won."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from discreet import events, random
from discreet.errors import number, whole
from discreet.mechanisms.scores import ScoreSelection
from discreet.random.tap import draw_output

__all__ = ["NoisyMax"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMax(ScoreSelection[int]):
    r"""Chooses the index whose score plus Laplace noise is largest; one record moves each score by ≤ ``sensitivity``.

    Law: argmax of u_i + X_i with X_i the integer part of Laplace noise of scale 2Δ/ε (Δ/ε with ``monotone=True``),
    on scores rounded to a grid; the first of equals wins. ``PermuteAndFlip`` is never worse: prefer it.

    Guarantee: epsilon-DP. Fix the other candidates' noise: i wins iff X_i reaches a whole threshold, which a
    neighbour moves by at most 2D (monotone: D) grid steps, and Pr[X ≥ c] ≤ e^{s/t}·Pr[X ≥ c + s] for every whole c.

    Reference: Dwork and Roth (2014), Claim 3.9; monotone scores: Ding et al. (2021).

    >>> NoisyMax(sensitivity=1.0, epsilon=1.0, monotone=True).release([3.0, 90.0, 5.0], rng=1).value
    1
    """

    @property
    def event(self) -> events.PureDP:
        """The cost, at most ``epsilon``."""
        return events.PureDP(epsilon=self._grid.epsilon, adjacency=self.adjacency)

    def error(self, confidence: float = 0.95, *, size: int) -> float:
        """How far the chosen score may lie below the best: twice what all noises stay within together."""
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        grid = self._grid
        return 2 * float(grid.step) * (grid.scale * math.log(whole("size", size, low=1) / (1 - confidence)) + 1)

    def draw(self, data: ArrayLike, rng: random.Rng) -> int:
        """The index of the winner."""
        grid = self._grid
        gaps = grid.gaps(data)
        return draw_output(
            self,
            grid.on_grid(data),
            "linf",
            grid.reach,
            lambda: int(np.argmax(random.laplace_cells(grid.scale, gaps.shape, rng) - gaps)),
        )
