r"""The likelihood ratio of one batch, put on the lattice of floating-point numbers from above and from below.

Cells are differences of tails, whose errors cancel in sums: with U(k) = E(ℓ - k)₊ and T(k) = E[ℓ; ℓ > k], U is known up
to w(U + T) for some small w, and likewise E(k - ℓ)₊ up to w times the larger of k·Pr(ℓ ≤ k) and E[ℓ; ℓ ≤ k]. A law with
(1 + w)-fold masses and points has U larger by at least as much, since its U(k) is at least (1 + w)((1 + w)T(k) -
k·Pr(ℓ > k)), and so a spread with masses and points farther out by w is a true one for what is convex and not negative;
a contraction with both inward. Masses are multiplied here, and losses moved outward by whoever takes the law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from discreet.accounting.allocation_balance import SLIP
from discreet.accounting.allocation_lattice import Blocks
from discreet.accounting.arrays import Array
from discreet.accounting.pld.lattice import cells, slip
from discreet.accounting.pld.pairs import Pair
from discreet.errors import NotCertified

__all__ = ["COARSE", "FAST", "SHARP", "WIDE", "Precision", "contracted_ratio", "spread_ratio"]

_TINY = 1e-250  # cells with less mass are left out
_KNOWN = 1e-7  # and cells whose mass is not known so well; a law is refused
_FAR = 2000.0  # no ratio is beyond exp(±2000)
_UNIT = 2.0**-53


@dataclass(frozen=True)
class Precision:
    """How the law of a sum is computed: convolutions by plain sums or by transforms, what is cut off, points a row.

    ``FAST`` serves all but the smallest deltas, ``SHARP`` those, ``WIDE`` moments, which live in the tails; ``COARSE``,
    some 1e-4 above it in epsilon, is for what is an upper bound by more than that anyway.
    """

    exact: bool
    cut: float
    columns: int


FAST = Precision(exact=False, cut=1e-25, columns=8192)
SHARP = Precision(exact=True, cut=1e-90, columns=2048)
COARSE = Precision(exact=False, cut=1e-30, columns=1024)
WIDE = Precision(exact=True, cut=1e-200, columns=512)


def _frame(pair: Pair, bins: int, precision: Precision) -> tuple[float, int]:
    """Unit and rows of a lattice that reaches from where no sum is likely to lie to where no ratio is."""
    least = precision.cut if precision is WIDE else min(precision.cut ** (1.2 / bins), 0.1)  # of the largest term
    gone = [float(pair.heads(np.array([-_FAR]))[1][0]), float(pair.tails(np.array([_FAR]))[0][0])]
    least = max(least, min(2 * gone[0], 0.5))  # a ratio of zero is on every lattice
    infinite = max(pair.infinity, gone[1])
    beyond = infinite + max(precision.cut, 8 * _UNIT * infinite)  # no tail is known better than its infinity
    low = _last(lambda loss: float(pair.heads(np.array([loss]))[1][0]) <= least)
    high = -_last(lambda loss: float(pair.tails(np.array([-loss]))[0][0]) <= beyond)
    exponent = math.floor(low / math.log(2)) - 10
    rows = max(1, math.ceil(high / math.log(2) - exponent - math.log2(precision.columns)) + 1)
    if exponent < -900 or rows > 400:
        raise NotCertified("the ratios of one batch span more than floats hold: its noise is too small.")
    return 2.0**exponent, rows


def _last(holds: Callable[[float], bool]) -> float:
    """About the last point where something holds that holds from the left up to there."""
    low, high = -_FAR, _FAR
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _points(unit: float, rows: int, columns: int) -> Array:
    first = np.arange(columns)
    return unit * np.concatenate([first, *(2.0**r * first[columns // 2 :] for r in range(1, rows))])


def _blocks(unit: float, masses: Array, precision: Precision, *, above: bool, lost: tuple[float, float]) -> Blocks:
    columns = precision.columns
    table = np.zeros((1 + (len(masses) - columns) // (columns // 2), columns))
    table[0] = masses[:columns]
    table[1:, columns // 2 :] = masses[columns:].reshape(-1, columns // 2)
    cut = 0.0 if precision is WIDE else precision.cut
    return Blocks(unit, 0, table, above, precision.exact, cut, 1.0, *lost)


def _cells_from(pair: Pair, edges: Array) -> tuple[Array, Array, tuple[float, float], float]:
    """P- and Q-mass up to the first edge, then between edges; what is left out, and what that may be wrong by.

    Left out are cells that may be rounding alone: between the atoms of a discrete pair.
    """
    p, q, p_error, q_error = cells(pair, edges)
    relative = p_error / np.maximum(p, _TINY) + q_error / np.maximum(q, _TINY)
    some = (p > _TINY) & (q > _TINY) & (relative < _KNOWN)
    lost = float((p + p_error)[~some].sum()), float((q + q_error)[~some].sum())
    unknown = float((p_error + q_error)[~some].sum())
    p_head, q_head = pair.heads(edges[:1])
    return np.append(p_head, np.where(some, p, 0.0)), np.append(q_head, np.where(some, q, 0.0)), lost, unknown


@dataclass(frozen=True)
class _Errors:
    """What E(ℓ - k)₊, and what E(k - ℓ)₊, may be wrong by at edges k, of a law of cells up to each edge.

    A cell's error is large against its mass, but neighbours' cancel: sums of cells are differences of two tails.
    ``moved`` is by how much each cell's P-mass was changed. At a point between two edges a contraction is at most what
    the farther one's tail says, so its errors are no larger than those at edges.
    """

    above: Array
    below: Array
    sizes: tuple[Array, Array]

    @classmethod
    def of(cls, pair: Pair, edges: Array, moved: Array) -> _Errors:
        strikes = np.exp(edges)
        (p_up, q_up), (p_down, q_down) = pair.tails(edges), pair.heads(edges)
        with np.errstate(under="ignore"):
            above = 4 * (slip(p_up) + strikes * slip(q_up)) + np.cumsum(moved[::-1])[::-1]
            below = 4 * (slip(p_down) + strikes * slip(q_down)) + np.cumsum(moved)
            sizes = np.maximum(p_up, 2 * p_up - strikes * q_up), np.maximum(p_down, strikes * q_down)
        return cls(above, below, sizes)

    def relative_to(self, sizes: tuple[Array, Array], spare: tuple[Array | float, Array | float]) -> float:
        """The largest of the errors, but for what is spared, against the sizes."""
        errors = np.maximum(np.concatenate([self.above - spare[0], self.below - spare[1]]), 0.0)
        every = np.concatenate(sizes)
        return float(np.divide(errors, every, out=np.where(errors > 0, np.inf, 0.0), where=every > 0).max())

    def wrong(self, spare: float = 0.0) -> float:
        """The relative error of masses and points together."""
        return self.relative_to(self.sizes, (spare, 0.0)) + 64 * _UNIT  # and what additions do to points


def _prices(points: Array, masses: Array) -> tuple[Array, Array]:
    """E(X - k)₊ and E(k - X)₊ at every point, of X with those masses there."""
    gaps = np.diff(points)
    calls = np.append(np.cumsum((np.cumsum(masses[::-1])[-2::-1] * gaps)[::-1])[::-1], 0.0)
    puts = np.append(0.0, np.cumsum(np.cumsum(masses)[:-1] * gaps))
    return calls * (1 - 1e-9), puts * (1 - 1e-9)  # of some 10^5 additions


def spread_ratio(pair: Pair, bins: int, precision: Precision) -> tuple[Blocks, float]:
    """The law of one ratio, spread onto the lattice, and the relative error of its points."""
    unit, rows = _frame(pair, bins, precision)
    points = _points(unit, rows, precision.columns)
    edges = np.log(points[1:])
    p, q, lost, unknown = _cells_from(pair, edges)
    beyond = [float(tail[0]) for tail in pair.tails(edges[-1:])]
    p_gone, q_gone = (x + y for x, y in zip(beyond, lost, strict=True))
    least = at_zero = max(1e-15 * precision.cut, 1e-230)
    if precision is WIDE:  # ratios below the first point would be spread to zero
        p_gone, q_gone, q[0], at_zero = p_gone + float(p[0]), q_gone + float(q[0]), 0.0, 0.0
    gaps = np.diff(points)
    means = np.divide(p, q, out=points[:-1].copy(), where=q > 0)
    shares = (means - points[:-1]) / gaps
    inside = np.clip(shares, 0.0, 1.0)
    errors = _Errors.of(pair, edges, np.abs(shares - inside) * q * gaps)
    masses = np.append(q * (1 - inside), 0.0) + np.append(0.0, q * inside)
    spare = 1e-9 * beyond[0] + 1e-240
    p_lost, q_lost = p_gone + spare, q_gone * (1 + 1e-9) + (least - at_zero) + 1e-240
    prices = _prices(points, masses)
    wrong, balanced = _choose(
        errors.relative_to((prices[0][1:], prices[1][1:]), (spare, least * points[1:])),
        errors.wrong(spare),
        bins,
        known=unknown + float(slip(np.array([p_gone]))[0]) <= SLIP,
    )
    masses = masses * (1 + wrong)
    masses[0] += at_zero
    law = _blocks(unit, masses, precision, above=True, lost=(q_lost, p_lost))
    if not balanced:
        return law, wrong
    one = np.longdouble(1)
    return law.balanced(one - q_gone, one - p_gone), 64 * _UNIT + bins * SLIP


def _choose(alone: float, with_points: float, bins: int, *, known: bool) -> tuple[float, bool]:
    """By how much masses are multiplied, and whether mass and mean are made exact then, if those are known.

    Else points move too, and the sum of all bins has so much more mass. The smaller one counts.
    """
    balanced = known and alone <= bins * with_points
    wrong = alone if balanced else with_points
    if wrong > _KNOWN:
        raise NotCertified("the tails of one batch's ratio are not known well enough for a law of their sum.")
    return wrong, balanced


def contracted_ratio(pair: Pair, bins: int, precision: Precision) -> tuple[Blocks, float]:
    r"""The same, contracted.

    The tangents of U(k) = E(ℓ - k)₊ at points between the lattice's are below U, and so is the convex function through
    the lower of two neighbouring ones at each lattice point: the U of a law on the lattice. In masses: where a cell's
    excess e = p - xq is positive it takes e/gap from the cell on its left, where it is negative from that on its right.
    The first cell has all mass up to it and no positive excess.
    """
    unit, rows = _frame(pair, bins, precision)
    points = _points(unit, rows, precision.columns)
    gaps = np.diff(points)
    bounds = np.log(points[:-1] + gaps / 2)
    p_head, q_head = pair.heads(bounds)
    start = int(np.argmax((p_head <= points[:-1] * q_head) & (q_head > max(1e-15 * precision.cut, _TINY))))
    p, q, _, _ = _cells_from(pair, bounds[start:])
    gap, excess = gaps[start:], p - points[start:-1] * q
    from_left, from_right = np.maximum(excess, 0.0)[1:] / gap[:-1], np.maximum(-excess, 0.0) / gap
    masses = q + from_right
    masses[1:] += from_left - from_right[:-1]
    masses[:-1] -= from_left
    masses[-1] = 0.0  # its own neighbour is beyond the lattice
    if start == 0 or excess[0] > 0 or float(masses.min()) < -1e-15 * float(masses.max()):
        raise NotCertified("the ratio of one batch takes too few values for a contraction onto the lattice.")
    masses, errors = np.maximum(masses, 0.0), _Errors.of(pair, bounds[start:], np.zeros(len(masses)))
    short, alone = _shortened(pair, points[start:-1], bounds[start:], masses, errors, precision)
    known = float(slip(np.array([pair.infinity]))[0]) <= SLIP
    wrong, balanced = _choose(alone, errors.wrong(), bins, known=known)
    whole = np.zeros(len(points))
    whole[start:-1] = (short if balanced else masses) * (1 - wrong)
    law = _blocks(unit, whole, precision, above=False, lost=(0.0, 0.0))
    if not balanced:
        return law, wrong
    one = np.longdouble(1)
    return law.balanced(one, one - pair.infinity), 64 * _UNIT + bins * SLIP


def _shortened(
    pair: Pair, points: Array, edges: Array, masses: Array, errors: _Errors, precision: Precision
) -> tuple[Array, float]:
    """The masses of a contraction without its last ones, so that their calls may spare what errors are there; and the
    relative error of what is left.

    A tangent at an edge counts at the points on both sides of it.
    """
    end = int(np.argmax(pair.tails(edges)[0] <= precision.cut**0.9 + pair.infinity)) or len(masses)
    short = np.where(np.arange(len(masses)) < end, masses, 0.0)
    calls, puts = _prices(points, short)
    spare = float(_prices(points, masses)[0][min(end, len(masses) - 1)])
    after, before = np.append(calls[1:], 0.0)[:end], np.append(puts[1:2], puts[1:])[:end]
    kept = _Errors(errors.above[:end], errors.below[:end], errors.sizes)
    return short, kept.relative_to((after, before), (spare, 0.0))
