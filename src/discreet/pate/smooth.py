r"""A smooth bound of how far one teacher moves the data-dependent cost.

A query's cost at a fixed order is a function β of one number, its *margin*, that a neighbour moves by at most one
*step*:

an answer
    t with :math:`Q = (m-1)\,\bar\Phi(t\sqrt2)`, where Q is the sum of the tails of all other classes. A vote moves each
    gap by at most 2, hence each term's own margin by 1/σ; since the normal tail of a shifted quantile is concave,
    Jensen's inequality moves t by at most 1/σ, and by symmetry no further back. The step is 1/σ.
a test
    u = (max − T)/σ₁, of which Q is the upper tail at \|u\|. A vote moves the maximum by 1: the step is 1/σ₁.

So d teachers move a margin by at most d steps. With L(s) the largest change of β from s by one step,

.. math:: \sup_{|s - t| \le d \cdot step} L(s), \text{ summed over queries, times } e^{-bd}, \text{ at its largest } d

is a b-smooth upper bound of the local sensitivity of the sum: the window of a neighbour at d lies in the window at d +
1. L is bounded on cells of a grid from above, by β at their ends; that β rises and falls as it must is checked on the
grid for the settings used, and refused otherwise.

Reference: Papernot et al. (2018), Appendix B (local sensitivity by Q); Nissim, Raskhodnikova and Smith (2007).

Decision 461.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.errors import NotCertified
from discreet.pate.gnmax_cost import divergence

__all__ = ["Margins", "answers", "changes", "smooth_bound", "tests"]

Array = NDArray[np.float64]
_CELLS = 32  # of the grid, a step
_LAST = 1e-9  # of the greatest cost: where a margin counts as beyond all that matters


@dataclass(frozen=True)
class Margins:
    """The margins of some queries, the step by which a neighbour moves them, and the cost of a margin.

    ``peak`` is where the cost is greatest: it does not rise from there to either side.
    """

    margins: Array
    step: float
    cost: Callable[[Array], Array]
    peak: float


def answers(log_q: Array, sigma: float, classes: int, order: float) -> Margins:
    """Of answers with noise ``sigma`` that err with probability at most e^log_q each."""
    from scipy.special import log_ndtr, ndtri_exp

    others = math.log(classes - 1)

    def cost(t: Array) -> Array:
        return _cost(np.minimum(others + log_ndtr(-t * math.sqrt(2)), -1e-9), sigma, order)

    return Margins(-ndtri_exp(np.minimum(log_q - others, -1e-9)) / math.sqrt(2), 1 / sigma, cost, -math.inf)


def tests(margins: Array, sigma: float, order: float) -> Margins:
    """Of tests with noise ``sigma`` at these distances from the threshold, in units of it."""
    from scipy.special import log_ndtr

    return Margins(margins, 1 / sigma, lambda u: _cost(log_ndtr(-np.abs(u)), sigma * math.sqrt(2), order), 0.0)


tests.__test__ = False  # type: ignore[attr-defined]  # no test of pytest's


def _cost(log_q: Array, sigma: float, order: float) -> Array:
    return divergence(log_q, sigma, np.array([order]))[:, 0]


def smooth_bound(parts: list[Margins], smoothness: float) -> float:
    """The bound for the sum of all costs: neighbours' bounds are within a factor of e^smoothness."""
    from scipy.ndimage import maximum_filter1d

    windows = [(changes(part), _places(part)) for part in parts if len(part.margins)]
    most = math.fsum(float(bounds.max()) * len(places) for bounds, places in windows)
    best, distance = 0.0, 0
    while most * math.exp(-smoothness * distance) > best:  # nothing further away can be larger
        here = math.fsum(float(bounds[places].sum()) for bounds, places in windows)
        best = max(best, here * math.exp(-smoothness * distance))
        windows = [(maximum_filter1d(bounds, 2 * _CELLS + 1, mode="nearest"), places) for bounds, places in windows]
        distance += 1
    return best * (1 + 1e-9)


def changes(part: Margins) -> Array:
    """A bound of L on each cell of a grid that holds all that matters; from public settings alone, no margin."""
    points = _points(part)
    cost = part.cost(points)
    _check(points, cost, part.peak)
    high, low = np.maximum(cost[1:], cost[:-1]), np.minimum(cost[1:], cost[:-1])
    bounds = np.full(len(high), cost[-1])  # beyond the right end no more than this is left to lose
    for shift in (_CELLS, -_CELLS):
        other_high, other_low = _shift_cells(high, shift), _shift_cells(low, shift)
        bounds = np.maximum(bounds, np.maximum(other_high - low, high - other_low))
    return bounds


def _places(part: Margins) -> NDArray[np.int64]:
    """The cell of each margin; one beyond an end is moved to it, which brings neighbours no further apart."""
    points = _points(part)
    return np.clip(np.searchsorted(points, part.margins, side="right") - 1, 0, len(points) - 2)


def _shift_cells(values: Array, shift: int) -> Array:
    """The values of the cells so many further right, those of the last or first cell beyond the ends."""
    return np.asarray(values[np.clip(np.arange(len(values)) + shift, 0, len(values) - 1)])


def _points(part: Margins) -> Array:
    """From where nothing is to gain to where nothing is to lose, and two steps more; zero is one of them."""
    reach = 1.0
    while float(part.cost(np.array([reach]))[0]) > _LAST * float(part.cost(np.zeros(1))[0]):
        reach *= 1.5
        if reach > 1e6:
            raise NotCertified("The data-dependent cost does not vanish where teachers agree: its order is too high.")
    right = math.ceil((reach / part.step + 2) * _CELLS)
    left = right if part.peak == 0 else 2 * _CELLS
    return np.arange(-left, right + 1, dtype=np.float64) * (part.step / _CELLS)


def _check(points: Array, cost: Array, peak: float) -> None:
    """Refuse settings at which the cost rises where it must fall: then the ends of a cell do not bound it."""
    rises = np.diff(cost) > 1e-12 * cost.max()
    if np.any(rises[points[:-1] >= max(peak, points[0])]) or np.any(
        np.diff(cost)[points[1:] <= peak] < -1e-12 * cost.max()
    ):
        raise NotCertified(
            "At these settings the data-dependent cost is not monotone in the margin, so that its smooth sensitivity "
            "is not bounded by this method. Use another order."
        )
