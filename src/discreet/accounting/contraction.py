"""Contraction of a law onto given points: masses merge at their common mean, so E f falls for every convex f (Jensen).

The mirror image of a spread, which splits the mass at x between the points around it. A contraction cannot always keep
everything: a single mass between two points has nothing to merge with. What finds nothing is left out, which lowers
E f further for any f that is not negative.
"""

from __future__ import annotations

import numpy as np

from discreet.accounting.arrays import Array

__all__ = ["contract", "contract_atoms"]

_UNIT = 2.0**-53
_NEAR = 6  # how many neighbours a cell at either end may draw on
_FIRST = 250  # points that are looked at before all are
_PART = 0.9  # of what is at a point, this much may be lent to such a cell


def contract_atoms(points: Array, atoms: Array, masses: Array) -> Array:
    """The masses of a contraction of atoms, in increasing order and inside the points' range, onto the points."""
    cell = np.clip(np.searchsorted(points, atoms, side="right") - 1, 0, len(points) - 2)
    gap = np.diff(points)[cell]
    share = np.clip((atoms - points[cell]) / gap, 0.0, 1.0)

    def sums(weights: Array, shift: int = 0) -> Array:
        return np.bincount(cell + shift, weights=weights, minlength=len(points))

    moment = masses * share * (1 - share) * gap
    on = (share == 0) | (share == 1)
    at = sums(masses * (share == 0)) + sums(masses * (share == 1), 1)
    between = np.where(on, 0.0, masses)
    return contract(points, at, sums(between * share, 1), sums(moment, 1), sums(between * (1 - share)), sums(moment))


def contract(points: Array, at: Array, left: Array, left_moment: Array, right: Array, right_moment: Array) -> Array:
    """Contract onto ``points`` what lies at each, and what is meant for it on its left and right, with first moments.

    Moments are absolute and around the point; nothing is further away than the next point. What finds nothing to merge
    with at its point, as where the gaps between points double, is meant for the point on its other side then.
    """
    merged, lost, moment = _merge(points, at, left, left_moment, right, right_moment)
    if float(lost.sum()) <= _UNIT * float(merged.sum()):
        return merged
    gaps, forth, back = np.diff(points), np.maximum(moment[:-1], 0.0), np.maximum(-moment[1:], 0.0)
    left, right = np.where(forth > 0, lost[:-1], 0.0), np.where(back > 0, lost[1:], 0.0)
    left_moment, right_moment = np.maximum(left * gaps - forth, 0.0), np.maximum(right * gaps - back, 0.0)
    before, after = (np.append(0.0, x) for x in (left, left_moment)), (np.append(x, 0.0) for x in (right, right_moment))
    return _merge(points, merged, *before, *after)[0]


def _merge(
    points: Array, at: Array, left: Array, left_moment: Array, right: Array, right_moment: Array
) -> tuple[Array, Array, Array]:
    """One contraction; what it leaves out of what was meant for each point, and the moment of that around the point.

    What balances around a point merges there. What is left over on one side merges with some of what lies at the
    neighbour on the other side. At either end, where there may be no neighbour, all mass up to the first point where
    that is possible makes one cell.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        paired = left * np.where(left_moment > 0, np.minimum(right_moment / left_moment, 1.0), 0.0)
        matched = right * np.where(right_moment > 0, np.minimum(left_moment / right_moment, 1.0), 0.0)
    settled, mass, moment = at + paired + matched, at + left + right, right_moment - left_moment
    first = _end_cell(points, mass, moment, settled)
    last = _end_cell(-points[::-1], mass[::-1], -moment[::-1], settled[::-1])
    if first is None or last is None:  # a few masses far apart at an end are left out
        inside = _dense(settled)
        mass, moment, left, right = (np.where(inside, x, 0.0) for x in (mass, moment, left, right))
        settled = np.where(inside, settled, 0.0)
        first = _end_cell(points, mass, moment, settled)
        last = _end_cell(-points[::-1], mass[::-1], -moment[::-1], settled[::-1])
    if first is None or last is None or first[0] + last[0] + 2 * _NEAR >= len(at):
        return np.zeros(len(at)), np.zeros(len(at)), np.zeros(len(at))
    start, stop = first[0], len(at) - 1 - last[0]
    settled[start : start + _NEAR + 1] -= first[1]
    settled[stop - _NEAR : stop + 1] -= last[1][::-1]
    settled[:start] = settled[stop + 1 :] = 0.0
    rest = np.where(moment > 0, right - matched, left - paired)
    rest[: start + 1] = rest[stop:] = 0.0
    wide = np.diff(points)
    asks = np.where(rest > 0, moment, 0.0)
    of_next = np.append(np.maximum(asks[1:], 0.0) / wide, 0.0)  # what the next point asks of each
    of_previous = np.append(0.0, np.maximum(-asks[:-1], 0.0) / wide)
    lent_next = np.minimum(of_next, np.maximum(settled / 2, settled - of_previous))
    lent_previous = np.minimum(of_previous, np.maximum(settled / 2, settled - of_next))
    got = np.append(0.0, lent_next[:-1]) + np.append(lent_previous[1:], 0.0)
    asked = np.append(0.0, of_next[:-1]) + np.append(of_previous[1:], 0.0)
    share = np.where(asked > 0, np.minimum(got / np.where(asked > 0, asked, 1.0), 1.0), 0.0)
    merged = np.maximum(settled - lent_next - lent_previous + got + share * rest, 0.0) * (1 - 32 * _UNIT)
    return merged, (1 - share) * rest, (1 - share) * asks


def _dense(settled: Array) -> Array:
    """From the first to the last of so many points in a row that all have something settled at them."""
    runs = np.convolve(settled > 0, np.ones(_NEAR + 1), "valid") > _NEAR
    inside = np.zeros(len(settled), dtype=bool)
    if runs.any():
        starts = np.flatnonzero(runs)
        inside[starts[0] : starts[-1] + _NEAR + 1] = True
    return inside


def _end_cell(points: Array, mass: Array, moment: Array, settled: Array) -> tuple[int, Array] | None:
    """The first point where all mass up to it can merge with some at the next few: its index, what it takes of each.

    Of itself it takes what is settled there less the mass of the whole cell: all is to be subtracted. It is one of the
    first points, but where a law has holes.
    """
    few = _FIRST + _NEAR
    soon = _end_cell_of(points[:few], mass[:few], moment[:few], settled[:few]) if len(mass) > few else None
    return soon or _end_cell_of(points, mass, moment, settled)


def _end_cell_of(points: Array, mass: Array, moment: Array, settled: Array) -> tuple[int, Array] | None:
    total = np.cumsum(mass)
    lacks = points * total - np.cumsum(moment + points * mass)
    after, away = np.append(settled, np.zeros(_NEAR)), np.append(points, np.full(_NEAR, points[-1]))
    spare = sum((away[d : d + len(mass)] - points) * after[d : d + len(mass)] for d in range(1, _NEAR + 1))
    able = np.flatnonzero((total > 0) & (lacks >= 0) & (lacks <= _PART * spare))
    if not len(able):
        return None
    first, taken = int(able[0]), np.zeros(_NEAR + 1)
    wanted = float(lacks[first])
    for d in range(1, _NEAR + 1):
        distance = away[first + d] - points[first]
        taken[d] = min(wanted / distance, _PART * after[first + d]) if distance > 0 else 0.0
        wanted -= distance * taken[d]
    taken[0] = settled[first] - total[first] - taken[1:].sum()
    return first, taken
