r"""Noise scaled to how sensitive the answer is *here*, made safe by smoothing; the median as example.

S is a β-smooth bound of f's local sensitivity when S ≥ LS everywhere and neighbours' values of S differ by a factor of
at most e^β. Adding (S/α)·Z to f is private for noise Z that hardly changes when shifted by α or stretched by e^β.
With x, y neighbours, first stretch, then shift:

Cauchy, pure
    density 1/π(1 + z²). Its logarithm has slope at most 1, so a shift by α costs α; a stretch by e^λ costs exactly
    \|λ\|. Hence α + β = ε suffices, and α = β = ε/2 here (Nissim et al. prove it for ε/6 each).
Laplace, with delta
    a shift by α costs α = ε/2. A stretch by e^λ, λ > 0, changes the log-density by \|z\|(e^λ - 1) - λ, which is at most
    ε/2 while \|z\| ≤ (ε/2 + λ)/(e^λ - 1); β is the largest λ for which \|Z\| exceeds that with probability ≤ δ. (λ < 0
    costs at most \|λ\| ≤ ε/2.) Stretching first, its δ is added once: (ε, δ)-DP.

Everything happens on a public grid of step g, so that the data-dependent scale shows in no low bit: f is rounded to
the grid (S grows by g), the scale S/α is rounded up to a whole number of steps, of at least 2^20 steps, which costs a
factor below 1 + 2^-20 in smoothness. ``beta`` is smaller by 2^-19 to pay for that and for float rounding in S.

Reference: Nissim, Raskhodnikova and Smith (2007), Definitions 2.1 and 2.5, Lemma 2.6, Claim 3.3 (median).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.errors import number
from discreet.mechanisms.grid import Grid, floor_log2, in_range
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.parameters import spent_delta, store
from discreet.mechanisms.records import check_column, column
from discreet.mechanisms.values import LARGEST, check_numbers, exact_number, flat
from discreet.random.cauchy import cauchy_cell
from discreet.random.tap import draw_output

__all__ = ["SmoothMedian", "SmoothSensitivity"]

_FLOOR = 1 << 20  # the smallest noise scale, in grid steps
_MARGIN = 2.0**-19


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothSensitivity(Mechanism[float]):
    """Adds noise to one number in proportion to a ``beta``-smooth bound of its local sensitivity.

    ``resolution`` is public: the grid step is the power of two at or below it. Without ``delta`` the noise is Cauchy
    and the guarantee pure; with it, Laplace. The caller proves that the bound is ``beta``-smooth.

    Guarantee: epsilon-DP, or (epsilon, delta)-DP, under the adjacency for which the bound is smooth.

    >>> mechanism = SmoothSensitivity(epsilon=1.0, resolution=1e-9)
    >>> round(mechanism.beta, 4), mechanism.event.epsilon
    (0.5, 1.0)
    """

    epsilon: float
    delta: float = 0.0
    resolution: float
    adjacency: Adjacency = Adjacency.REPLACE

    def __post_init__(self) -> None:
        store(
            self,
            epsilon=number("epsilon", self.epsilon, low=1e-4, high=100),
            adjacency=self.adjacency,
            delta=number("delta", self.delta, low=0, high=1, open_high=True),
            resolution=in_range("resolution", self.resolution),
        )
        if self.beta <= 0:
            raise ValueError(
                f"delta is {self.delta:g}, but is too small for epsilon={self.epsilon:g}: no smoothing "
                "remains. Use delta=0 (Cauchy noise) or a larger epsilon."
            )

    @property
    def beta(self) -> float:
        """How smooth the bound must be: neighbours' bounds within a factor of exp(beta)."""
        return (self.epsilon / 2 if self.delta == 0 else _laplace_beta(self.epsilon, spent_delta(self.delta))) - _MARGIN

    @property
    def event(self) -> events.Event:
        """The cost."""
        if self.delta == 0:
            return events.PureDP(epsilon=self.epsilon, adjacency=self.adjacency)
        return events.ApproxDP(epsilon=self.epsilon, delta=spent_delta(self.delta), adjacency=self.adjacency)

    @property
    def _grid(self) -> Grid:
        return Grid(1, floor_log2(Fraction(self.resolution)))

    def error(self, confidence: float = 0.95, *, smooth_bound: float) -> float:
        """What the noise stays within, with this confidence, if the smooth bound is at most ``smooth_bound``."""
        confidence = number("confidence", confidence, low=0, high=1, open_high=True)
        width = math.tan(math.pi / 2 * confidence) if self.delta == 0 else math.log(1 / (1 - confidence))
        return width * self._steps(smooth_bound) * float(self._grid.step) + float(self._grid.step)

    def _steps(self, bound: Any) -> int:
        """The noise scale in grid steps; alpha is epsilon/2 for either noise. A bound that is no number is no bound."""
        exact = exact_number(bound, LARGEST)
        return max(_FLOOR, math.ceil((exact / self._grid.step + 1) * 2 / Fraction(self.epsilon)))

    def check(self, data: Any) -> None:
        """Refuse what is publicly no pair of numbers."""
        if check_numbers(data, "data") != (2,):
            raise ValueError("data must be a pair of numbers: a value, and a smooth bound of its local sensitivity.")

    def draw(self, data: tuple[Any, Any], rng: random.Rng) -> float:
        """A noisy value, from (value, a smooth bound of its local sensitivity). Both are private."""
        grid, (value, smooth_bound) = self._grid, flat(data, 1)
        placed, steps = grid.place(exact_number(value), 1), self._steps(smooth_bound)

        def sample() -> float:
            cell = random.laplace_cell(steps, rng) if self.delta else cauchy_cell(steps, rng)
            return float(grid.add(placed, np.array(cell, object)))

        draw_output(
            f"{self!r}, log of the scale", np.array([math.log(steps)]), "linf", self.beta + _MARGIN, lambda: None
        )
        return draw_output(self, placed, "l1", steps * grid.step * Fraction(self.epsilon) / 2, sample)


def _laplace_beta(epsilon: float, delta: float) -> float:
    """The largest stretch that costs epsilon/2 except with probability delta; at most epsilon/2."""
    need = math.log(1 / delta)
    low, high = 0.0, epsilon / 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if (epsilon / 2 + middle) >= need * math.expm1(middle) else (low, middle)
    return low


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothMedian(Mechanism[float]):
    """The median of numbers in public ``bounds``, with noise by how closely the data surround it.

    Values are clipped to the bounds (NaN, and whatever is not a number, counts as the lower one). The number of records
    is public: the guarantee is under replace. Noise is small wherever many records lie near the median, however wide
    the bounds.
    Reference: Nissim, Raskhodnikova and Smith (2007), Section 3.1.

    >>> mechanism = SmoothMedian(bounds=(0.0, 1000.0), epsilon=1.0)
    >>> abs(mechanism.release(np.linspace(490.0, 510.0, 4001), rng=1).value - 500.0) < 5
    True
    """

    bounds: tuple[float, float]
    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        low, high = (number("bounds", x, low=-(2.0**900), high=2.0**900) for x in self.bounds)
        if not low < high:
            raise ValueError(f"bounds is {self.bounds}, but must be a pair (low, high) with low < high.")
        store(self, bounds=(low, high))
        store(self, epsilon=self._noise.epsilon, delta=self._noise.delta)

    @property
    def _noise(self) -> SmoothSensitivity:
        low, high = self.bounds
        return SmoothSensitivity(epsilon=self.epsilon, delta=self.delta, resolution=(high - low) * 2.0**-44)

    @property
    def event(self) -> events.Event:
        """The cost."""
        return self._noise.event

    def error(self, confidence: float = 0.95, *, smooth_bound: float) -> float:
        """As for ``SmoothSensitivity``: the bound itself is private, so this is for planning with a guessed one."""
        return self._noise.error(confidence, smooth_bound=smooth_bound)

    def smooth_bound(self, values: ArrayLike) -> float:
        """max over k of e^{-kβ}·max over t ≤ k+1 of x[m+t] - x[m+t-k-1]: private, do not publish."""
        x, m = self._sort(values)
        low, high = self.bounds
        best, beta = 0.0, self._noise.beta
        for k in range(len(x) + 1):
            if (high - low) * math.exp(-k * beta) <= best:
                break  # no wider window can matter any more
            left = np.arange(m - k - 1, m + 1)
            window = _at_padded(x, left + k + 1, low, high) - _at_padded(x, left, low, high)
            best = max(best, float(window.max()) * math.exp(-k * beta))
        return best * (1 + 2.0**-40)

    def _sort(self, values: ArrayLike) -> tuple[Any, int]:
        low, high = self.bounds
        x = column(values).astype(np.float64)
        x = np.sort(np.clip(np.where(np.isnan(x), low, x), low, high))
        return x, (len(x) + 1) // 2 - 1

    def check(self, data: Any) -> None:
        """Refuse what is publicly no column of numbers."""
        check_column(data)

    def draw(self, data: ArrayLike, rng: random.Rng) -> float:
        """A noisy median, inside the bounds."""
        x, m = self._sort(data)
        noisy = self._noise.draw((x[m] if len(x) else self.bounds[0], self.smooth_bound(data)), rng)
        return min(max(noisy, self.bounds[0]), self.bounds[1])


def _at_padded(x: Any, index: Any, low: float, high: float) -> Any:
    """x at these indices, with the bounds continuing it on either side."""
    inside = (index >= 0) & (index < len(x))
    ends = np.where(index < 0, low, high)
    return np.where(inside, x[np.clip(index, 0, max(len(x) - 1, 0))], ends) if len(x) else ends
