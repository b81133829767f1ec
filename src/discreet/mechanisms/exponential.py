"""The exponential mechanism: choose one of many by score."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet import events, random
from discreet.errors import number, positive, whole
from discreet.mechanisms.parameters import store
from discreet.mechanisms.scores import ScoreSelection
from discreet.random.tap import draw_output
from discreet.release import Release

__all__ = ["Exponential"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exponential(ScoreSelection[int]):
    r"""Chooses an index by scores, each of which one record moves by at most ``sensitivity``.

    Law: :math:`\Pr[i] \propto \mu_i \exp(\epsilon\, u_i / 2\Delta)` on scores rounded to a fine grid, sampled exactly:
    no weight is ever a float, so no rounding or order of summation leaks (see ``random.choice``). With
    ``monotone=True`` (a record moves all scores the same way) the 2 goes. ``base_measure`` holds the public
    :math:`\mu`, one positive number per candidate, up to a common factor; it is applied to a relative 2^-32.

    Guarantee: range-bounded by epsilon, hence epsilon-DP and better under composition.

    Large sets: an array of scores costs one pass and on average at most one proposal per candidate (about 25 ns each).
    For sets too large to list, ``release_by_sampling`` draws from the base measure.
    Time depends on the scores, so do not let strangers time a release.

    Reference: McSherry and Talwar (2007); range: Dong, Durfee and Rogers (2020).

    >>> mechanism = Exponential(sensitivity=1.0, epsilon=1.0)
    >>> mechanism.event.epsilon <= 1.0, round(mechanism.error(confidence=0.95, size=100), 2)
    (True, 15.2)
    >>> mechanism.release([0.0, 0.0, 100.0], rng=1).value
    2
    """

    base_measure: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        ScoreSelection.__post_init__(self)
        if self.base_measure is not None:
            store(self, base_measure=tuple(positive("base_measure", x) for x in self.base_measure))

    @property
    def event(self) -> events.Exponential:
        """The cost, a bounded range of at most ``epsilon``."""
        return events.Exponential(epsilon=self._grid.epsilon, adjacency=self.adjacency)

    def error(self, confidence: float = 0.95, *, size: int | None = None) -> float:
        """How far the chosen score may lie below the best: (2Δ/ε)·ln(|T|/β) with β = 1 - confidence.

        ``size`` is the public number of candidates |T|; a base measure puts 1/(its smallest share) in its place.
        """
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        if self.base_measure is not None:
            candidates = sum(self.base_measure) / min(self.base_measure)
        elif size is not None:
            candidates = whole("size", size, low=1)
        else:
            raise ValueError("size is missing, but the bound depends on the public number of candidates.")
        grid = self._grid
        return float(grid.step) * (grid.scale * math.log(candidates / (1 - confidence)) + 1)

    def _check_count(self, count: int) -> None:
        if self.base_measure is not None and len(self.base_measure) != count:
            raise ValueError(f"scores has {count} entries, but base_measure has {len(self.base_measure)}.")

    def _offsets(self, size: int) -> NDArray[np.int64] | None:
        if self.base_measure is None:
            return None
        self._check_count(size)
        logs = np.log(np.array(self.base_measure))
        return np.asarray(np.rint(self._grid.scale * (logs - logs.max())), dtype=np.int64)

    def draw(self, data: ArrayLike, rng: random.Rng) -> int:
        """The index of the chosen candidate."""
        grid = self._grid
        placed = grid.on_grid(data)
        gaps = grid.gaps(data, self._offsets(placed.size))
        return draw_output(self, placed, "linf", grid.reach, lambda: random.weighted_index(gaps, grid.scale, rng))

    def release_by_sampling(
        self, draw: Callable[[], T], score: Callable[[T], Any], highest: float, rng: random.RngLike = None
    ) -> Release[T]:
        """A candidate of a set too large to list: ``draw()`` samples the public base measure, ``score`` rates one.

        Candidates are drawn until one is accepted, with probability exp(ε(u - highest)/2Δ), exactly. ``highest`` is a
        public upper bound of the score; larger scores count as that. The law is the mechanism's; the expected number
        of draws is the reciprocal of the mean acceptance, so a loose bound is slow, never less private.
        """
        if self.base_measure is not None:
            raise ValueError("base_measure is given, but here draw() is the base measure.")
        grid, source = self._grid, random.as_rng(rng)
        top = grid.steps(number("highest", highest, low=-math.inf, high=math.inf, open_low=True, open_high=True))

        def choose() -> T:
            while True:
                candidate = draw()
                if random.accepts(max(0, top - grid.steps(score(candidate))), grid.scale, source):
                    return candidate

        # The scores of candidates that were never drawn are not at hand, so replay can check the output only.
        chosen = draw_output(self, np.zeros(0), "linf", grid.reach, choose)
        return Release(chosen, self.event, reproducible=source.reproducible)
