"""The discrete Gaussian mechanism, for integers and integer vectors."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.errors import number, positive, whole
from discreet.mechanisms.grid import above, check_entries, in_range
from discreet.mechanisms.integers import add_integers, integers
from discreet.mechanisms.mechanism import Mechanism, usual_error
from discreet.mechanisms.parameters import noise_asked_for, slack, store
from discreet.mechanisms.values import check_numbers
from discreet.random.tap import draw_output

__all__ = ["DiscreteGaussian"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian(Mechanism[Any]):
    r"""Adds integer noise to integers whose L2 change per record is at most ``sensitivity``.

    Law: mass proportional to :math:`e^{-x^2/2\sigma^2}` on the integers, sampled exactly.

    Guarantee: one integer (``max_size=1``, the default, with a whole sensitivity) is priced exactly by the
    ``DiscreteGaussian`` event. For vectors only zCDP is proved, and the event is ``ZCDP(rho=(Δ/σ)²/2)``. Its delta is
    not the continuous Gaussian's: 1.8 times as large at sigma = 1.
    Ask for ``sigma=``, ``rho=``, or ``epsilon=`` and ``delta=``.

    Reference: Canonne, Kamath and Steinke (2020).

    >>> DiscreteGaussian(sensitivity=1, sigma=4.0).event
    DiscreteGaussian(sigma=4.0, sensitivity=1, adjacency=<Adjacency.ADD_REMOVE: 'add-remove'>)
    >>> DiscreteGaussian(sensitivity=1, sigma=4.0, max_size=100).event.rho
    0.03125
    """

    sensitivity: float = 1
    sigma: float | None = None
    epsilon: InitVar[float | None] = None
    delta: InitVar[float | None] = None
    rho: InitVar[float | None] = None
    max_size: int = 1
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self, epsilon: float | None, delta: float | None, rho: float | None) -> None:
        store(
            self,
            sensitivity=in_range("sensitivity", self.sensitivity),
            adjacency=self.adjacency,
            max_size=whole("max_size", self.max_size, low=1),
        )
        if self.max_size == 1 and not float(self.sensitivity).is_integer():
            raise ValueError(f"sensitivity is {self.sensitivity}, but must be whole for one integer (max_size=1).")
        asked = noise_asked_for(delta, sigma=self.sigma, epsilon=epsilon, rho=rho)
        if asked == "sigma":
            sigma = positive("sigma", self.sigma)
        elif asked == "rho":
            sigma = above(slack * Fraction(self.sensitivity) * Fraction(1 / math.sqrt(2 * positive("rho", rho))))
        else:
            sigma = self._calibrate(
                positive("epsilon", epsilon), number("delta", delta, low=0, high=1, open_low=True, open_high=True)
            )
        if sigma > 2**50:
            raise ValueError(f"sigma is {sigma:g}, but must be a number in (0, 2^50].")
        store(self, sigma=sigma)

    def _calibrate(self, epsilon: float, delta: float) -> float:
        from discreet.accounting import calibrate

        return calibrate(self._event, epsilon=epsilon, delta=delta, adjacency=self.adjacency)

    def _event(self, sigma: float) -> events.Event:
        if self.max_size == 1:
            return events.DiscreteGaussian(sigma=sigma, sensitivity=int(self.sensitivity), adjacency=self.adjacency)
        rho = (Fraction(self.sensitivity) / Fraction(sigma)) ** 2 / 2
        return events.ZCDP(rho=above(rho), adjacency=self.adjacency)

    @property
    def event(self) -> events.Event:
        """The cost: exact for one integer, zCDP for a vector."""
        assert self.sigma is not None
        return self._event(self.sigma)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on one entry, at most (Canonne, Kamath and Steinke 2020, Corollary 9)."""
        assert self.sigma is not None
        return self.sigma

    def error(self, confidence: float = 0.95) -> float:
        """What the noise on one entry stays within, with at least this confidence.

        The tail is at most the continuous Gaussian's one step further in (Canonne, Kamath and Steinke 2020, Prop. 25).
        """
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        assert self.sigma is not None
        return math.floor(self.sigma * NormalDist().inv_cdf((1 + confidence) / 2)) + 1.0

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
        assert self.sigma is not None
        sigma = self.sigma
        return draw_output(
            self,
            exact,
            "l2",
            self.sensitivity,
            lambda: add_integers(exact, random.discrete_gaussian(sigma, exact.shape, rng)),
        )
