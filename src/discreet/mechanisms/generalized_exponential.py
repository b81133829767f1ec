"""The exponential mechanism for scores of different sensitivities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from numpy.typing import ArrayLike

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.errors import number, positive
from discreet.mechanisms.exponential import Exponential
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import store
from discreet.mechanisms.values import LARGEST, check_numbers, exact_number, numbers

__all__ = ["GeneralizedExponential"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralizedExponential(Mechanism[int]):
    r"""Chooses an index by scores of which one record moves the i-th by at most ``sensitivities[i]``; larger is better.

    With :math:`v_i = u_i - t\Delta_i`, what is handed to the exponential mechanism is the worst comparison of i with
    any other, :math:`s_i = \min_j (v_i - v_j)/(\Delta_i + \Delta_j)`: a record moves every quotient, and so their
    smallest, by at most one. So a single candidate of large sensitivity does not make the noise large for all of them.

    Guarantee: range-bounded by epsilon, as of the exponential mechanism. With probability 1 - β the chosen score is
    within :math:`(4/\epsilon)\ln(k/\beta)\,\Delta_i` of every :math:`u_i`, for :math:`t = (2/\epsilon) \ln(k/\beta)`.

    Reference: Raskhodnikova and Smith (2016).

    >>> mechanism = GeneralizedExponential(sensitivities=(1.0, 1.0, 1000.0), epsilon=1.0)
    >>> mechanism.release([0.0, 60.0, 61.0], rng=2).value
    1
    """

    sensitivities: tuple[float, ...]
    epsilon: float = 1.0
    confidence: float = 0.95
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    label = "choice"

    def __post_init__(self) -> None:
        store(
            self,
            sensitivities=tuple(positive("sensitivities", x) for x in self.sensitivities),
            epsilon=positive("epsilon", self.epsilon),
            confidence=number("confidence", self.confidence, low=0, high=1, open_low=True, open_high=True),
            adjacency=self.adjacency,
        )
        if not self.sensitivities:
            raise ValueError("sensitivities is empty, but needs one entry per candidate.")

    @property
    def _choice(self) -> Exponential:
        return Exponential(sensitivity=1.0, epsilon=self.epsilon, adjacency=self.adjacency, unit=self.unit)

    @property
    def event(self) -> events.Exponential:
        """The cost, a bounded range of at most ``epsilon``."""
        return self._choice.event

    @property
    def _margin(self) -> float:
        """t = (2/ε)·ln(k/β)."""
        return 2 / self.epsilon * math.log(len(self.sensitivities) / (1 - self.confidence))

    def error(self, index: int) -> float:
        """How far above the chosen score that of candidate ``index`` may lie, with probability ``confidence``."""
        return 2 * self._margin * self.sensitivities[index]

    def check(self, data: Any) -> None:
        """One score a candidate."""
        if (shape := check_numbers(data, "scores")) != (len(self.sensitivities),):
            raise ValueError(
                f"scores has shape {shape}, but there are {len(self.sensitivities)} sensitivities: one of each per "
                "candidate."
            )

    def draw(self, data: ArrayLike, rng: random.Rng) -> int:
        """The index of the chosen candidate."""
        return self._choice.draw(self._comparisons(data), rng)

    def _comparisons(self, data: ArrayLike) -> Any:
        """The worst comparison of each candidate, exactly: a float's rounding could add to a sensitivity of one."""
        reach, margin = [Fraction(x) for x in self.sensitivities], Fraction(self._margin)
        scores = [exact_number(x) for x in numbers(data, missing=-LARGEST).tolist()]
        lowered = [u - margin * r for u, r in zip(scores, reach, strict=True)]
        return [
            min((v - w) / (r + s) for w, s in zip(lowered, reach, strict=True))
            for v, r in zip(lowered, reach, strict=True)
        ]
