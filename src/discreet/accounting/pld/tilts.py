"""Tilts of a composed loss, from a fixed set, so that what is computed at one serves the next question too.

A question about a profile is answered best where exp(c·l) tilts the law to the losses that decide it: at the saddle
point c of the inversion integral (Daniels 1954). Any other c gives a valid bound, only less sharp: at a delta a factor
e^n away from the one that c serves best, errors grow by about e^n. So a question is put to the nearest of tilts that
serve deltas a factor e^3 apart: errors grow by e^1.5 at most, and a curve of a hundred points needs a dozen tilts, each
with a transform, or the nodes of a contour, of its own.

Decision 233.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from discreet.accounting.arrays import Interval
from discreet.errors import NotCertified

__all__ = ["APART", "Tilts"]

APART = 3.0  # of log delta, between tilts that are shared
_FINE = 256  # tilts a unit of log c
_COARSE = 64  # of them from one to the next where deltas are near one


@dataclass(frozen=True)
class Tilts:
    """The tilts of one law. ``saddle`` is (epsilon, log delta) that a tilt serves best, which rise and fall with it."""

    saddle: Callable[[float], Interval]
    lowest: int  # log c
    highest: int
    _known: dict[int, Interval] = field(default_factory=dict, compare=False, repr=False)

    def tilt(self, *, epsilon: float | None = None, log_delta: float = 0.0) -> float:
        """The tilt for an epsilon, or for the logarithm of a delta."""
        place = self._last(lambda at: at[1] > log_delta if epsilon is None else at[0] < epsilon)
        served = self._saddle(place)[1] if epsilon is not None else log_delta
        if served >= -APART:  # deltas near one hardly depend on the tilt
            place = _COARSE * round(place / _COARSE)
        elif served > -math.inf:
            shared = APART * round(served / APART)
            place = self._last(lambda at: at[1] > shared)
        return math.exp(place / _FINE)

    def _last(self, is_short: Callable[[Interval], bool]) -> int:
        low, high = self.lowest * _FINE, self.highest * _FINE
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if is_short(self._saddle(middle)) else (low, middle)
        return low

    def _saddle(self, place: int) -> Interval:
        if place not in self._known:
            try:
                self._known[place] = self.saddle(math.exp(place / _FINE))
            except NotCertified:
                self._known[place] = math.inf, -math.inf  # too far right for the quadrature
        return self._known[place]
