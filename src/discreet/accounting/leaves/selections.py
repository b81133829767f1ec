"""Facts of the best of a random number of runs: the bounds of :mod:`discreet.accounting.selection`.

The profile of one run is the tightest account's, whatever it is made of; the profile of the selected one becomes a pair
of laws with finitely many losses, so that a selection composes with everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from discreet import events as ev
from discreet.accounting.arrays import Array
from discreet.accounting.facts import Facts, register
from discreet.accounting.guarantees import Guarantee, guarantee
from discreet.accounting.neighbours import refusal, resolve
from discreet.accounting.outward import times
from discreet.accounting.parts import Leaf, Resolved
from discreet.accounting.pld.atoms import NOTHING, Atoms, too_large
from discreet.accounting.pld.pairs import SMALLEST, Pair
from discreet.accounting.rdp import ORDERS, rdp_curve
from discreet.accounting.selection import Runs, runs_of
from discreet.adjacency import Adjacency
from discreet.errors import NotCertified, UnsupportedEvent

__all__: list[str] = []

_UP = 1 + 1e-9  # more than the hull of points in floats can be wrong
_FAR = 300.0  # losses beyond this count as infinite: their exponentials are squared


def _selected(event: ev.Selected, count: int, wanted: Adjacency, group: int) -> Resolved:
    if group > 1:
        raise refusal(
            event, wanted, "a group has the runs in common; ask for the group's guarantee of the whole instead"
        )
    inside = resolve(event.event, wanted)  # refused here, if it cannot be stated
    if not (inside.ideal or inside.slack):
        return Resolved(())
    cut = 0.0 if event.cap is None else times(runs_of(event).beyond(event.cap), count)
    return Resolved((Leaf(replace(event, cap=None), wanted, count),), min(1.0, cut))


@lru_cache(maxsize=64)
def _one_run(event: ev.Event, adjacency: Adjacency) -> Guarantee:
    return guarantee(event, adjacency=adjacency)


@lru_cache(maxsize=64)
def _shift(event: ev.Selected, adjacency: Adjacency) -> tuple[Runs, Guarantee, float]:
    runs, run = runs_of(event), _one_run(event.event, adjacency)
    return runs, run, runs.shift(run)


def _pure(event: ev.Selected, adjacency: Adjacency) -> float:
    _, run, shift = _shift(event, adjacency)
    return (run.epsilon(0.0) + shift) * (1 + 1e-15)


def _curve(event: ev.Selected, adjacency: Adjacency, orders: Array) -> Array | None:
    try:
        own, known = rdp_curve(event.event, orders, adjacency), rdp_curve(event.event, ORDERS, adjacency)
    except UnsupportedEvent:
        return None
    runs, run, _ = _shift(event, adjacency)
    pure = _pure(event, adjacency)
    return np.minimum(runs.curve(orders, own, ORDERS, known, run), pure)


# --- a pair with a given profile -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Profiled(Atoms):
    """Atoms whose profile is convex and above one that is known at some points; ``exact`` is that one, anywhere,
    if it is cheap to ask for.
    """

    exact: Callable[[float], float] | None = field(default=None, compare=False)

    @property
    def attained(self) -> bool:
        """An envelope."""
        return False

    @property
    def attainable(self) -> tuple[Pair, ...]:
        """Nothing is said from below: scores that do not depend on the data select nothing."""
        return (NOTHING,)

    def profile(self, losses: Array) -> Array:
        """Where few points are asked for, as sharp as it is known."""
        above = Atoms.profile(self, losses)
        if losses.size > 4 or self.exact is None:
            return above
        return np.minimum(above, [self.exact(float(x)) if x >= 0 else 1.0 for x in losses])


@lru_cache(maxsize=64)  # some eighty questions to the account of one run
def _pair(event: ev.Selected, adjacency: Adjacency) -> Pair:
    runs, run, shift = _shift(event, adjacency)
    # exact where that is one question; sums of nested selections would ask in powers of some hundred
    exact = None if run.inverts else runs.delta(run, shift)
    points = {0.0: runs.distance(run)}
    for epsilon, delta in _profile(run):
        if epsilon + shift < _FAR:
            points[epsilon + shift] = min(1.0, runs.mean * delta * _UP)
    return _with_profile(sorted(points.items()), exact)


def _profile(run: Guarantee) -> Iterator[tuple[float, float]]:
    """Points of one run's profile, dense where delta is of use; at larger deltas than that of zero it says no more."""
    largest = run.delta(0.0)
    yield 0.0, largest
    for delta in np.exp(-np.arange(0.0, 40.0, 0.5)):
        if delta >= largest:
            continue
        try:
            yield run.epsilon(float(delta)), float(delta)
        except NotCertified:
            break
    if (pure := run.epsilon(0.0)) < math.inf:
        yield pure, 0.0


def _with_profile(points: list[tuple[float, float]], exact: Callable[[float], float] | None) -> Atoms:
    """The symmetric pair whose profile is the lower convex hull, in e^ε, of points that lie above the true one.

    The true profile is convex and, being that of both directions, continues to the left of ε = 0 by the rule of
    symmetric pairs, whose hull has the same tangents as that with the point (-1, 1). Slopes are Q(L > ε).
    """
    heights = {-2.0: 1.0}  # by e^ε - 1, which tells small losses apart
    for epsilon, delta in points:  # of points that floats cannot tell apart the lowest holds, at the end of them
        place = math.expm1(max(epsilon, SMALLEST)) * (1 + 1e-15) if epsilon else 0.0
        heights[place] = min(heights.get(place, 1.0), delta * _UP)
    hull = _hull(sorted(heights.items()))
    x, height = (np.array(column) for column in zip(*hull, strict=True))
    slopes = np.append(np.maximum(-np.diff(height) / np.diff(x), 0.0), 0.0)
    x, q = x[1:], np.maximum(-np.diff(slopes), 0.0)
    losses, p = np.log1p(x), q * (1 + x)
    centre = losses == 0
    masses = np.concatenate([q[~centre][::-1], 2 * q[centre], p[~centre]])
    losses = np.concatenate([-losses[~centre][::-1], losses[centre], losses[~centre]])
    infinite, kept = float(height[-1]), (masses > 0) | (masses[::-1] > 0)
    if not kept.any():
        return too_large()
    return Profiled(losses[kept], masses[kept] * ((1 - infinite) / masses.sum()), infinite, mirrored=True, exact=exact)


def _hull(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The lower convex hull of points in the order of their first coordinate."""
    hull: list[tuple[float, float]] = []
    for point in points:
        while len(hull) > 1 and not _turns_up(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _turns_up(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[1] - a[1]) * (c[0] - b[0]) < (c[1] - b[1]) * (b[0] - a[0])


register(ev.Selected, Facts(pure=_pure, curve=_curve, pair=_pair, restated=_selected, envelope=True))
