"""DP-λCGD: part of a step's noise is taken back at the next, and nothing of the model's size is remembered for it.

The draw of a step comes from a stream of its own, under a key from the run's source; at the next step it is drawn once
more. Sixteen bytes are kept, which remove the noise of the last step and no other: they are secret.

Decision 421.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet import events
from discreet.errors import extra, number
from discreet.mechanisms import factorization as f
from discreet.mechanisms.factorization import Pattern, Strategy
from discreet.sessions import PaidOnce, one_at_a_time
from discreet.training.noise.base import Gaussians, Noise, Step
from discreet.training.noise.correlated import Correlated
from discreet.training.sampling.participation import Participation

with extra("torch"):
    from torch import Tensor

__all__ = ["LambdaCGD"]


@dataclass(frozen=True, kw_only=True)
class LambdaCGD(Correlated):
    """The noise of a step is a fresh draw less ``back`` times the last one; without ``back``, the best for the run.

    Memory: none.

    Reference: DP-λCGD (arXiv:2601.22334).

    >>> from discreet.training.sampling.participation import KeptBinsDealing
    >>> event = LambdaCGD(back=0.5).event(KeptBinsDealing(8), [2.0] * 16)
    >>> type(event).__name__, event.bins, [round(product, 3) for product in event.products[:3]]
    ('KeptBins', 8, [2.677, 1.346, 0.689])
    """

    back: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.back is not None:
            number("back", self.back, low=0, high=1, open_high=True)

    def strategy_for(self, pattern: Pattern) -> Strategy:
        """Two bands of the inverse."""
        if self.back is not None:
            return f.LambdaCGD(self.back, pattern.steps)
        return f.LambdaCGD.optimised(self.workload(pattern.steps), pattern, self.error)

    def vectors(self, participation: Participation, steps: int) -> int:
        """None: the last draw is made again."""
        return 0

    def begun(self, participation: Participation, steps: int) -> Noise:
        """With its own way of remembering."""
        strategy = self.strategy(participation, steps)
        assert isinstance(strategy, f.LambdaCGD)
        return _Redrawn(self, strategy.back)


class _Redrawn(PaidOnce, Noise):
    """The noise of one run: the key of the last draw, and its step."""

    def __init__(self, noise: LambdaCGD, back: float) -> None:
        super().__init__()
        self.noise, self.back = noise, back
        self._last: tuple[int, bytes] | None = None
        self._drawn: Gaussians | None = None  # under the last key: as secret as that, and kept for speed alone

    def event(self, participation: Participation, multipliers: Sequence[float]) -> events.Event:
        """As planned."""
        return self.noise.event(participation, multipliers)

    def begun(self, participation: Participation, steps: int) -> Noise:
        """Another one, which remembers nothing of this."""
        return self.noise.begun(participation, steps)

    @one_at_a_time
    def release(self, step: Step, total: Sequence[Tensor], gaussians: Gaussians) -> None:
        """total + σ·y - λσ·y', where y' is the draw of the step before, made again (or made for the first time, if that
        step was left out and never shown)."""
        if self._last is not None and step.number <= self._last[0]:
            raise ValueError("A step comes twice, but its noise was released: the run went back.")
        key = gaussians.key()
        if step.number and self.back:
            self._before(step, gaussians).add(total, self.back * step.sigma, subtract=True)
        self._drawn, self._last = gaussians.keyed(key), (step.number, key)
        self._drawn.add(total, step.sigma, 1 / step.divisor)

    def _before(self, step: Step, gaussians: Gaussians) -> Gaussians:
        """The draw of the step before."""
        if self._last is None or self._last[0] != step.number - 1:
            return gaussians.keyed(gaussians.key())
        return gaussians.keyed(self._last[1]) if self._drawn is None else self._drawn.again()

    def spread(self, step: int) -> float:
        """Two draws, but for the first step."""
        return math.hypot(1.0, self.back if step else 0.0)

    @one_at_a_time
    def state_dict(self) -> dict[str, Any]:
        """Secret: the key of the last draw."""
        return {"last": None if self._last is None else (self._last[0], self._last[1].hex())}

    @one_at_a_time
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        last = state["last"]
        self._last, self._drawn = None if last is None else (int(last[0]), bytes.fromhex(last[1])), None
