r"""Privacy losses on a lattice of step h, in a version that is never too low and one that is never too high.

Upper ("connect the dots", Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022): the mass between two lattice points
is split between them so that its P- and its Q-probability are both kept. That is a mean-preserving spread of the
likelihood ratio, so the new pair dominates the old one; what lies above the lattice becomes an infinite loss.

Lower: all outcomes of a cell around a lattice point are merged, which is post-processing, so the merged pair is
dominated. The merged loss is within O(h²) of the lattice point; all are lowered by one common ``offset`` s and, where
that does not suffice, by whole steps. Lowering losses lowers delta.

Both err by O(h²) a repetition. Differences of probabilities carry rounding errors, which are charged to the safe side.

Decision 82.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.accounting.arrays import Array
from discreet.accounting.outward import FLOOR
from discreet.accounting.pld.pairs import Pair, scale_by_loss
from discreet.accounting.pld.sampling import Supremum
from discreet.errors import NotCertified

__all__ = ["Lattice", "cells", "lower", "slip", "upper"]

_UNIT = 2.0**-53
_SLIP = 4096 * _UNIT  # what a tail of 1e-300 may have lost
_MAX_POINTS = 1 << 21


@dataclass(frozen=True)
class Lattice:
    """Masses at ``(first + i)·step - offset``, and the probability of an infinite loss."""

    step: float
    first: int
    masses: Array
    infinity: float
    offset: float = 0.0
    missing: float = 0.0  # Q's probability of a loss of minus infinity, for the upper version

    @cached_property
    def losses(self) -> Array:
        """The points, the offset left out."""
        return self.step * (self.first + np.arange(len(self.masses)))

    @cached_property
    def log_masses(self) -> Array:
        """Logarithms of the masses: asked for at every order of a curve, and at every tilt."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.masses))

    @cached_property
    def logarithms(self) -> tuple[Array, Array]:
        """The points that have mass, and its logarithm."""
        some = self.masses > 0
        return self.losses[some], self.log_masses[some]

    @cached_property
    def blocks(self) -> tuple[Array, Array]:
        """A spread of the law with the same means on some thousand points: convex functions grow, and only a little."""
        starts = np.arange(0, len(self.masses), max(1, len(self.masses) >> 14))
        low, high = self.losses[starts], self.losses[np.append(starts[1:], len(self.masses)) - 1]
        masses = np.add.reduceat(self.masses, starts)
        means = np.add.reduceat(self.masses * self.losses, starts)
        share = np.clip((means - masses * low) / np.where(high > low, high - low, 1.0), 0.0, masses)
        points, weights = np.concatenate([low, high]), np.concatenate([masses - share, share])
        return points[weights > 0], weights[weights > 0]


def _span(pair: Pair, step: float, tail: float) -> tuple[int, int]:
    """First and last lattice index: outside, P has at most ``tail`` on the right and 1e-30 on the left."""
    high = pair.highest if math.isfinite(pair.highest) else _quantile(lambda x: _right(pair, x), tail)
    low = pair.lowest if math.isfinite(pair.lowest) else -_quantile(lambda x: _mass_left_of(pair, -x), 1e-30)
    first, last = math.floor(low / step) - 1, math.ceil(high / step) + 1
    if last - first > _MAX_POINTS:
        raise NotCertified(f"a single loss spans {last - first} lattice points.")
    return first, last


def _right(pair: Pair, x: float) -> float:
    at = np.array([x])
    return float(pair.profile(at)[0] if isinstance(pair, Supremum) else pair.tails(at)[0][0]) - pair.infinity


def _mass_left_of(pair: Pair, x: float) -> float:
    at = np.array([x])
    if isinstance(pair, Supremum):
        return max(_mass_left_of(part, x) for part in pair.pairs)
    return float(pair.heads(at)[0][0])


def _quantile(decreasing: object, goal: float) -> float:
    """A point at which a decreasing function is at most ``goal``, to a few percent."""
    high = 1e-6
    while decreasing(high) > goal and high < 1e6:  # type: ignore[operator]
        high *= 1.25
    return high


def cells(pair: Pair, edges: Array) -> tuple[Array, Array, Array, Array]:
    """P- and Q-mass of each cell between edges, and their errors: differences on the side where they cancel least."""
    (p_up, q_up), (p_down, q_down) = pair.tails(edges), pair.heads(edges)
    right = p_up < 0.5
    side = right[1:] & right[:-1]
    p = np.where(side, p_up[:-1] - p_up[1:], p_down[1:] - p_down[:-1])
    q = np.where(q_up[:-1] < 0.5, q_up[:-1] - q_up[1:], q_down[1:] - q_down[:-1])
    p_error = slip(np.where(side, p_up[:-1], p_down[1:]))
    q_error = slip(np.where(q_up[:-1] < 0.5, q_up[:-1], q_down[1:]))
    return np.maximum(p, 0.0), np.maximum(q, 0.0), p_error, q_error


def slip(probability: Array) -> Array:
    """Error of a computed tail: exp(-x) loses digits in proportion to x."""
    with np.errstate(divide="ignore"):
        logs = np.where(probability > 0, -np.log(np.maximum(probability, 1e-320)), 0.0)
    return np.asarray(_UNIT * (16 + 4 * logs) * probability)


def upper(pair: Pair, step: float, tail: float) -> Lattice:
    """A lattice law that dominates the pair; ``tail`` is what may be added to the infinite loss."""
    pair = pair.sharpened(tail)
    first, last = _span(pair, step, tail)
    points = step * np.arange(first, last + 1)
    if isinstance(pair, Supremum):
        return _from_profile(pair, step, first, points)
    p, q, p_error, q_error = cells(pair, points)
    kept = p - scale_by_loss(q, points[:-1])  # p - exp(l)·q: what of the mass lies to the right of l
    excess = kept + p_error + scale_by_loss(q_error, points[:-1])
    to_right = np.clip(excess / -math.expm1(-step), 0.0, p)
    masses = np.append(p - to_right, 0.0) + np.append(0.0, to_right + p_error)
    masses[0] += pair.heads(points[:1])[0][0]
    beyond = float(pair.tails(points[-1:])[0][0]) * (1 + _SLIP) + (0.0 if math.isfinite(pair.highest) else FLOOR)
    return Lattice(step, first, masses, min(1.0, beyond), missing=_missing(points, masses, np.append(0.0, p_error)))


def _missing(points: Array, masses: Array, added: Array) -> float:
    """What Q has left when the masses, but for what was added to them for safety, have their share; rounded up."""
    with np.errstate(divide="ignore"):
        q, extra = (float(np.exp(np.minimum(np.log(x) - points, 0.0)).sum()) for x in (masses, added))
    return min(1.0, max(0.0, 1 - q) + 2 * extra + _SLIP)


def _from_profile(pair: Pair, step: float, first: int, points: Array) -> Lattice:
    """The lattice law whose profile is piecewise linear in exp(l) and at least the pair's at every lattice point."""
    if points[-1] > 700:
        raise NotCertified("a loss is too large for the exponentials of parallel composition.")
    orders = np.exp(np.maximum(points, -700.0))  # below, a profile is one
    height = np.minimum(pair.profile(points) * (1 + _SLIP) + FLOOR, 1.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        slopes = np.nan_to_num((height[:-1] - height[1:]) / np.diff(orders), nan=0.0, posinf=1.0)
    slopes = np.append(np.maximum.accumulate(np.maximum(slopes, 0.0)[::-1])[::-1], 0.0)  # Q(L > l), made decreasing
    slopes = np.minimum(slopes, 1.0)
    height = height[-1] + np.append(np.cumsum((slopes[:-1] * np.diff(orders))[::-1])[::-1], 0.0)
    tails = np.minimum(np.append(1.0, height + orders * slopes), 1.0)  # P(L > l) before each point, and after it
    tails = np.maximum.accumulate(tails[::-1])[::-1]
    masses = tails[:-1] - tails[1:]
    return Lattice(step, first, masses, min(1.0, float(tails[-1])), missing=_missing(points, masses, np.zeros(1)))


def lower(pair: Pair, step: float, tail: float) -> Lattice:
    """A lattice law that the pair dominates."""
    pair = pair.sharpened(tail)
    first, last = _span(pair, step, tail)
    points = step * np.arange(first, last + 1)
    if (merged := pair.contracted(points)) is not None:
        return Lattice(
            step, first, merged, pair.infinity * (1 - _SLIP), offset=1e-14 * (1 + float(np.abs(points).max()))
        )
    edges = np.append(points - step / 2, points[-1] + step / 2)
    p, q, p_error, q_error = cells(pair, edges)
    p = np.maximum(p - p_error, 0.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        merged = np.log(p) - np.log(q + q_error)
        deficit = np.where(p > 0, points - merged, 0.0)
    deficit = np.minimum(deficit, step / 2) + 4 * _UNIT * np.abs(points)  # no loss of a cell is below its left edge
    offset = _cheapest_offset(deficit, p, step)
    steps_down = np.ceil(np.maximum(deficit - offset, 0.0) / step)
    keep = (p > 0) & (steps_down < len(points) + 1)
    index = np.arange(len(points)) - np.where(keep, steps_down, 0).astype(int)
    keep &= index >= 0
    masses = np.bincount(index[keep], weights=p[keep], minlength=len(points))
    # every loss above the lattice, even an infinite one, may be lowered to its last point; keep the infinite ones
    beyond = max(0.0, float(pair.tails(edges[-1:])[0][0]) - pair.infinity) * (1 - _SLIP)
    masses[-1] += beyond
    return Lattice(step, first, masses, pair.infinity * (1 - _SLIP), offset)


def _cheapest_offset(deficit: Array, p: Array, step: float) -> float:
    """The common lowering that, with whole steps for the cells it does not cover, loses least on average."""
    candidates = step * np.concatenate([[0.0], np.geomspace(1e-11, 1e-6, 6), np.geomspace(1e-5, 0.5, 24)])
    some = slice(None, None, max(1, len(p) >> 15))  # any choice is valid, only less sharp
    deficit, p = deficit[some], p[some] / max(float(p[some].sum()), 1e-300)
    costs = [s + step * float(p @ np.minimum(np.ceil(np.maximum(deficit - s, 0.0) / step), 1e6)) for s in candidates]
    return float(candidates[int(np.argmin(costs))])
