"""The Laplace mechanism on a grid: pure differential privacy for numbers and vectors."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass
from fractions import Fraction
from typing import Any

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.errors import number, positive, whole
from discreet.mechanisms.grid import DEFAULT_MAX_SIZE, Grid, below, check_entries, in_range
from discreet.mechanisms.mechanism import Mechanism, usual_error
from discreet.mechanisms.parameters import one_of, slack, store
from discreet.mechanisms.values import check_numbers
from discreet.random.tap import draw_output

__all__ = ["Laplace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(Mechanism[Any]):
    r"""Adds Laplace noise to numbers whose L1 change per record is at most ``sensitivity``.

    Law: value rounded to a power-of-two grid plus noise of density :math:`\frac{1}{2b} e^{-|x|/b}`, cut to the grid.
    The grid step is below b·2^-43; ``max_size`` is a public bound on the number of entries, and the sensitivity is
    widened by one step for each. Asked for ``epsilon=``, b grows to pay for that; asked for ``scale=``, the event
    is that much worse.

    Guarantee: that of the continuous Laplace mechanism at the widened sensitivity (proof in ``mechanisms.grid``);
    epsilon-DP with epsilon = widened sensitivity / b. A vector of L1 sensitivity Δ costs what a scalar does: moving
    one coordinate at a time, the trade-off curves of shifts of a log-concave density compose along the path.

    Reference: Dwork, McSherry, Nissim and Smith (2006); for the grid, Mironov (2012), Ghosh et al. (2009).

    >>> mechanism = Laplace(sensitivity=1.0, epsilon=0.5)
    >>> round(mechanism.scale, 6), round(1 / mechanism.event.noise_multiplier, 12) <= 0.5
    (2.0, True)
    >>> round(mechanism.error(confidence=0.95), 3)
    5.991
    >>> mechanism.release(42.0, rng=1).reproducible
    True
    """

    sensitivity: float
    scale: float | None = None
    epsilon: InitVar[float | None] = None
    max_size: int = DEFAULT_MAX_SIZE
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self, epsilon: float | None) -> None:
        sensitivity, size = in_range("sensitivity", self.sensitivity), whole("max_size", self.max_size, low=1)
        if one_of(scale=self.scale, epsilon=epsilon) == "scale":
            grid = Grid.inside(in_range("scale", self.scale))
        else:
            multiplier = slack / Fraction(positive("epsilon", epsilon))
            grid = Grid.paying(Fraction(sensitivity), multiplier, Fraction(size))
        store(
            self,
            sensitivity=sensitivity,
            scale=in_range("scale", float(grid.scale)),
            max_size=size,
            adjacency=self.adjacency,
        )

    @property
    def _grid(self) -> Grid:
        assert self.scale is not None
        return Grid.inside(self.scale)

    @property
    def widened_sensitivity(self) -> Fraction:
        """The L1 sensitivity after every entry was rounded to the grid."""
        return Fraction(self.sensitivity) + self.max_size * self._grid.step

    @property
    def event(self) -> events.Laplace:
        """The cost, rounded towards more."""
        return events.Laplace(
            noise_multiplier=below(self._grid.scale / self.widened_sensitivity), adjacency=self.adjacency
        )

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on one entry: √2·b."""
        assert self.scale is not None
        return math.sqrt(2) * self.scale

    def error(self, confidence: float = 0.95) -> float:
        """What the noise on one entry stays within, with this confidence: b·ln(1/(1 - confidence)), and a grid step."""
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        return float(self._grid.scale) * math.log(1 / (1 - confidence)) + float(self._grid.step)

    @property
    def stated_error(self) -> float:
        """The error of one entry, with 95 % confidence."""
        return usual_error(self)

    def check(self, data: Any) -> None:
        """Refuse what are publicly no real numbers, or more than ``max_size`` of them."""
        check_entries(check_numbers(data), self.max_size)

    def draw(self, data: Any, rng: random.Rng) -> Any:
        """A noisy ``data``: a float for a scalar, otherwise an array of doubles of the same shape."""
        grid = self._grid
        placed = grid.place(data, self.max_size)
        return draw_output(
            self,
            placed,
            "l1",
            self.widened_sensitivity,
            lambda: grid.add(placed, random.laplace_cells(grid.steps, placed.shape, rng)),
        )
