"""The discrete Laplace (two-sided geometric) mechanism, for counts."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass
from fractions import Fraction
from typing import Any

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.errors import number, positive, whole
from discreet.mechanisms.grid import DEFAULT_MAX_SIZE, above, check_entries
from discreet.mechanisms.integers import add_integers, integers
from discreet.mechanisms.mechanism import Mechanism, usual_error
from discreet.mechanisms.parameters import one_of, slack, store
from discreet.mechanisms.values import check_numbers
from discreet.random.tap import draw_output

__all__ = ["DiscreteLaplace", "Geometric"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace(Mechanism[Any]):
    r"""Adds integer noise to integers whose L1 change per record is at most ``sensitivity``.

    Law: :math:`\Pr[x] = \tanh(1/2t)\, e^{-|x|/t}` with t = ``scale``, sampled exactly. No rounding, so nothing to
    pay for: ``epsilon=`` gives t = sensitivity/epsilon.

    Guarantee: epsilon-DP with epsilon = sensitivity/scale, for vectors as for one integer (see ``Laplace``).
    Reference: Ghosh, Roughgarden and Sundararajan (2009); Canonne, Kamath and Steinke (2020).

    >>> mechanism = DiscreteLaplace(sensitivity=1, epsilon=0.5)
    >>> round(mechanism.scale, 6), mechanism.error(confidence=0.95)
    (2.0, 6.0)
    >>> type(mechanism.release(42, rng=1).value)
    <class 'int'>
    """

    sensitivity: int = 1
    scale: float | None = None
    epsilon: InitVar[float | None] = None
    max_size: int = DEFAULT_MAX_SIZE
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self, epsilon: float | None) -> None:
        sensitivity = whole("sensitivity", self.sensitivity, low=1)
        if one_of(scale=self.scale, epsilon=epsilon) == "scale":
            scale = positive("scale", self.scale)
        else:
            scale = above(slack * sensitivity / Fraction(positive("epsilon", epsilon)))
        if scale > 2**50:
            raise ValueError(f"scale is {scale:g}, but must be a number in (0, 2^50].")
        store(
            self,
            sensitivity=sensitivity,
            scale=scale,
            max_size=whole("max_size", self.max_size, low=1),
            adjacency=self.adjacency,
        )

    @property
    def event(self) -> events.DiscreteLaplace:
        """The cost."""
        assert self.scale is not None
        return events.DiscreteLaplace(scale=self.scale, sensitivity=self.sensitivity, adjacency=self.adjacency)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on one entry: of variance 2p/(1 - p)² with p = exp(-1/t)."""
        assert self.scale is not None
        # √2·e^(-1/2t) / (1 - e^(-1/t)): as 1/sinh(1/2t) it would overflow where there is next to no noise
        return math.sqrt(2) * math.exp(-1 / (2 * self.scale)) / -math.expm1(-1 / self.scale)

    def error(self, confidence: float = 0.95) -> float:
        """The smallest integer that the noise on one entry stays within, with this confidence."""
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        assert self.scale is not None
        # Pr[|N| > a] = 2 e^{-(a+1)/t} / (1 + e^{-1/t})
        tail = (1 - confidence) * (1 + math.exp(-1 / self.scale)) / 2
        return float(max(0, math.ceil(-self.scale * math.log(tail) - 1)))

    @property
    def stated_error(self) -> float:
        """The error of one entry, with 95 % confidence."""
        return usual_error(self)

    def check(self, data: Any) -> None:
        """Refuse what are publicly no whole numbers, or more than ``max_size`` of them."""
        check_entries(check_numbers(data, whole=True), self.max_size)

    def draw(self, data: Any, rng: random.Rng) -> Any:
        """A noisy ``data``: an int for a scalar, otherwise int64 of the same shape. Floats are refused."""
        exact = integers(data, self.max_size)
        assert self.scale is not None
        scale = self.scale
        return draw_output(
            self,
            exact,
            "l1",
            self.sensitivity,
            lambda: add_integers(exact, random.discrete_laplace(scale, exact.shape, rng)),
        )


Geometric = DiscreteLaplace
