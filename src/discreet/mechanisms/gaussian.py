"""The Gaussian mechanism, analytic or of a given scale, on a grid: numbers and vectors under an L2 sensitivity."""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any, Literal

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.errors import number, positive, whole
from discreet.mechanisms.grid import DEFAULT_MAX_SIZE, Grid, below, check_entries, in_range, root_above
from discreet.mechanisms.mechanism import Mechanism, usual_error
from discreet.mechanisms.parameters import noise_asked_for, slack, store
from discreet.mechanisms.values import check_numbers
from discreet.random.tap import draw_output

__all__ = ["Gaussian", "classic_noise_multiplier"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Mechanism[Any]):
    r"""Adds Gaussian noise to numbers whose L2 change per record is at most ``sensitivity``.

    Law: value rounded to a power-of-two grid plus noise of density :math:`\propto e^{-x^2/2\sigma^2}`, cut to the grid.
    The grid step is below sigma·2^-43; ``max_size`` is a public bound on the number of entries d, and the sensitivity
    is widened by √d steps. Ask for ``sigma=``, for ``rho=`` (zCDP), or for ``epsilon=`` and ``delta=``, in which case
    the smallest sigma comes from the analytic formula (Balle and Wang 2018). ``calibration="classic"`` takes
    sigma = Δ√(2 ln(1.25/delta))/epsilon instead, a theorem for epsilon up to 1 only, and refuses above.

    Guarantee: that of the continuous Gaussian mechanism at the widened sensitivity (proof in ``mechanisms.grid``).

    Reference: Balle and Wang (2018); classic: Dwork and Roth (2014), Theorem A.1; for the grid, Karney (2016).

    >>> mechanism = Gaussian(sensitivity=1.0, sigma=2.0)
    >>> round(mechanism.event.noise_multiplier, 9), round(mechanism.error(confidence=0.95), 3)
    (2.0, 3.92)
    >>> mechanism.release([1.0, 2.0], rng=1).value.shape
    (2,)
    """

    sensitivity: float
    sigma: float | None = None
    epsilon: InitVar[float | None] = None
    delta: InitVar[float | None] = None
    rho: InitVar[float | None] = None
    calibration: InitVar[Literal["analytic", "classic"]] = "analytic"
    max_size: int = DEFAULT_MAX_SIZE
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self, epsilon: float | None, delta: float | None, rho: float | None, calibration: str) -> None:
        sensitivity, size = in_range("sensitivity", self.sensitivity), whole("max_size", self.max_size, low=1)
        asked = noise_asked_for(delta, sigma=self.sigma, epsilon=epsilon, rho=rho)
        if asked == "sigma":
            grid = Grid.inside(in_range("sigma", self.sigma))
        else:
            multiplier = (
                1 / math.sqrt(2 * positive("rho", rho))
                if asked == "rho"
                else _noise_multiplier(epsilon, delta, calibration)
            )
            grid = Grid.paying(Fraction(sensitivity), slack * Fraction(multiplier), root_above(size))
        store(
            self,
            sensitivity=sensitivity,
            sigma=in_range("sigma", float(grid.scale)),
            max_size=size,
            adjacency=self.adjacency,
        )

    @property
    def _grid(self) -> Grid:
        assert self.sigma is not None
        return Grid.inside(self.sigma)

    @property
    def widened_sensitivity(self) -> Fraction:
        """The L2 sensitivity after every entry was rounded to the grid."""
        return Fraction(self.sensitivity) + root_above(self.max_size) * self._grid.step

    @property
    def event(self) -> events.Gaussian:
        """The cost, rounded towards more."""
        return events.Gaussian(
            noise_multiplier=below(self._grid.scale / self.widened_sensitivity), adjacency=self.adjacency
        )

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on one entry."""
        assert self.sigma is not None
        return self.sigma

    def error(self, confidence: float = 0.95) -> float:
        """What the noise on one entry stays within, with this confidence: a normal quantile, and a grid step."""
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        return float(self._grid.scale) * NormalDist().inv_cdf((1 + confidence) / 2) + float(self._grid.step)

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
            "l2",
            self.widened_sensitivity,
            lambda: grid.add(placed, random.gaussian_cells(grid.steps, placed.shape, rng)),
        )


def _noise_multiplier(epsilon: object, delta: object, calibration: str) -> float:
    epsilon = positive("epsilon", epsilon)
    delta = number("delta", delta, low=0, high=1, open_low=True, open_high=True)
    if calibration == "classic":
        return classic_noise_multiplier(epsilon, delta)
    if calibration != "analytic":
        raise ValueError(f"calibration is {calibration!r}, but must be 'analytic' or 'classic'.")
    from discreet.accounting.gaussian import gaussian_noise_multiplier

    return gaussian_noise_multiplier(epsilon=epsilon, delta=delta)


def classic_noise_multiplier(epsilon: float, delta: float) -> float:
    """√(2 ln(1.25/delta))/epsilon, which suffices for epsilon up to 1 and only there.

    Reference: Dwork and Roth (2014), Theorem A.1.

    >>> round(classic_noise_multiplier(1.0, 1e-5), 3)
    4.845
    """
    if epsilon > 1:
        raise ValueError(
            f"epsilon is {epsilon:g}, but calibration='classic' is a theorem for epsilon in (0, 1] only: "
            "use calibration='analytic'."
        )
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon
