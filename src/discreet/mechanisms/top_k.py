"""The k best, by peeling: choose one, remove it, choose again."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import events, random
from discreet.errors import number, whole
from discreet.mechanisms.parameters import store
from discreet.mechanisms.scores import ScoreGrid, ScoreSelection
from discreet.random.tap import draw_output

__all__ = ["TopK"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopK(ScoreSelection[NDArray[np.int64]]):
    r"""Chooses ``k`` indices one after another, each by the exponential mechanism with ``epsilon``/k among those left.

    Equal in law to taking the k largest scores after adding Gumbel noise of scale 2Δk/ε once (Durfee and Rogers 2019).

    Guarantee: k compositions of a selection of range ``epsilon``/k, which the event states; at most epsilon-DP, and
    over many selections close to zCDP with rho = epsilon²/8k.

    Reference: Durfee and Rogers (2019), "Practical differentially private top-k selection with pay-what-you-get".

    >>> TopK(k=2, sensitivity=1.0, epsilon=2.0).release([0.0, 900.0, 1.0, 800.0], rng=1).value
    array([1, 3])
    """

    k: int

    def __post_init__(self) -> None:
        store(self, k=whole("k", self.k, low=1, high=1 << 62))
        ScoreSelection.__post_init__(self)

    @property
    def _grid(self) -> ScoreGrid:
        return ScoreGrid.paying(self.sensitivity, math.nextafter(self.epsilon / self.k, 0), 1 if self.monotone else 2)

    @property
    def event(self) -> events.Event:
        """The cost: k selections."""
        return events.Exponential(epsilon=self._grid.epsilon, adjacency=self.adjacency) * self.k

    def error(self, confidence: float = 0.95, *, size: int) -> float:
        """How far any chosen score may lie below the best one left at its turn: (2Δk/ε)·ln(k·|T|/β)."""
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        grid, cases = self._grid, self.k * whole("size", size, low=1)
        return float(grid.step) * (grid.scale * math.log(cases / (1 - confidence)) + 1)

    def _check_count(self, count: int) -> None:
        if count < self.k:
            raise ValueError(f"scores has {count} entries, but at least k={self.k} are needed.")

    def draw(self, data: ArrayLike, rng: random.Rng) -> NDArray[np.int64]:
        """The chosen indices, in the order of choice."""
        grid = self._grid
        gaps = grid.gaps(data)
        self._check_count(gaps.size)
        return draw_output(self, grid.on_grid(data), "linf", grid.reach, lambda: _peel(gaps, self.k, grid.scale, rng))


def _peel(gaps: NDArray[np.int64], k: int, scale: int, source: random.Rng) -> NDArray[np.int64]:
    left = np.arange(gaps.size)
    chosen = np.empty(k, np.int64)
    for turn in range(k):
        position = random.weighted_index(gaps[left] - gaps[left].min(), scale, source)
        chosen[turn] = left[position]
        left = np.delete(left, position)
    return chosen
