r"""Proportional hazards: hazard ratios of features, with intervals, by a piecewise exponential model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain
from operator import add
from typing import Any, Unpack

import numpy as np

from discreet import events, mechanisms
from discreet.errors import number, whole
from discreet.inference.columns import NUMBERS, cross
from discreet.inference.hazard_steps import Baseline, Centred, Lives
from discreet.inference.regressions import Regression
from discreet.inference.survival import EVENTS, ends_of, periods_of
from discreet.linear import kernels
from discreet.linear.inference import Coefficients, jacobian_of
from discreet.linear.inference_parts import Array
from discreet.linear.inference_steps import EDGE, conclude, deviation, find_start
from discreet.linear.rows import Map
from discreet.mechanisms.parameters import store
from discreet.random import Rng
from discreet.release import Release
from discreet.statistics.asking import Asked, ask, spell_out

__all__ = ["HazardCoefficients", "ProportionalHazards", "proportional_hazards"]

_FINE = 64  # periods of the table of times and events, of which pieces are made
_TABLE, _MOMENTS, _START, _GRADIENT, _HESSIAN = 0.06, 0.1, (0.02, 0.03, 0.05, 0.14), 0.4, 0.2  # of the budget
_FLOOR = 2.0  # deviations of its noise that a count or an eigenvalue is taken for at least
_QUIET = 0.01  # C² is at least this part of D/z²


@dataclass(frozen=True, slots=True)
class HazardCoefficients(Coefficients):
    """Logarithms of hazard ratios, one for each feature, and the ends of the pieces in which the hazard is constant."""

    ends: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class ProportionalHazards(Regression):
    r"""The hazard :math:`h(t)\exp(x \cdot \beta)`, with h constant in ``pieces`` of time up to a public ``horizon``.

    Data are ``(X, times, events)``, as for ``KaplanMeier`` with features: an event is 1 (or true) where it was seen, 0
    where the record left; a time beyond the horizon left there; a record with a missing entry is left out. The answer
    has the logarithms of hazard ratios per unit of each feature, with intervals, and no intercept. Pieces are cut from
    a noisy table of times and events, so that each has about as many events.

    Cox's partial likelihood has no bound on what one record does; the likelihood of pieces is a sum over records, and
    with five pieces its estimates are Cox's to about a tenth of an error. What is assumed: proportional hazards,
    leaving that depends on nothing but features, rows inside their bounds.
    Reference: Holford (1980); Laird and Olivier (1981); Cox (1972).

    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (10_000, 2)); lives = rng.exponential(np.exp(-0.8 * X[:, 0]))
    >>> model = ProportionalHazards(bounds=[(-1, 1), (-1, 1)], horizon=2.0, epsilon=1.0, delta=1e-6)
    >>> fit = model.release((X, np.minimum(lives, 2), lives < 2), rng=1).value
    >>> bool(fit.lower[0] < 0.8 < fit.upper[0]), bool(fit.standard_error[0] < 0.1)
    (True, True)
    """

    horizon: float
    pieces: int = 5

    label = "proportional hazards"
    columns = (("times", NUMBERS), ("events", EVENTS))

    def __post_init__(self) -> None:
        horizon = number("horizon", self.horizon, low=0, high=1e15, open_low=True)
        store(self, horizon=horizon, pieces=whole("pieces", self.pieces, low=1, high=_FINE))
        self._check_facts()

    def _noise(self, share: float, sensitivity: float = 1.0) -> mechanisms.Gaussian:
        return self.problem.gaussian(sensitivity * EDGE, self.problem.rho(share))

    @property
    def _table(self) -> mechanisms.Gaussian:
        return self._noise(_TABLE)

    @property
    def _moments(self) -> mechanisms.Gaussian:
        return self._noise(_MOMENTS, self.problem.square)

    @property
    def _start(self) -> list[tuple[mechanisms.Gaussian, mechanisms.Gaussian]]:
        return [(self._noise(0.7 * share), self._noise(0.3 * share)) for share in _START]

    @property
    def _last(self) -> tuple[mechanisms.Gaussian, mechanisms.Gaussian]:
        return self._noise(_GRADIENT), self._noise(_HESSIAN)

    @property
    def event(self) -> events.Event:
        """The cost: all releases."""
        released = (self._table, self._moments, *chain.from_iterable(self._start), *self._last)
        return reduce(add, (mechanism.event for mechanism in released))

    def fit(self, rows: Array, mapping: Map, columns: Sequence[Array], rng: Rng) -> HazardCoefficients:
        """Coefficients of rows, not yet mapped, and columns. It reads private rows."""
        times, seen = columns[0].astype(np.float64), columns[1]
        usable = (times >= 0) & (seen >= 0)
        records = mapping.records(rows, np.where(usable, 1.0, np.nan))
        kept = records.rows[records.usable]
        place = np.where(records.usable, np.minimum(times / self.horizon, 1.0), 0.0)[records.usable]
        # beyond the horizon nobody is seen
        happened = (seen[records.usable] == 0) & (times[records.usable] <= self.horizon)
        baseline = self._release_baseline(place, happened, rng)
        centred = self._release_moments(kept, rng)
        lives = self._lives(kept, place, happened, baseline, centred)
        start = np.zeros(len(baseline.ends) + self.n_features)
        events_seen = float(baseline.events.sum())
        blank = np.eye(len(start))
        start = find_start(lives.release, self._start, start, blank, 1e-3 * events_seen, rng)
        last = lives.release(start, *self._last, None, rng)
        slopes = jacobian_of(mapping, self.n_features)[:-1, :-1] @ centred.matrix[:, :-1].T
        jacobian = np.column_stack([np.zeros((self.n_features, len(baseline.ends))), slopes])
        way = max(3.0, float(baseline.stretch.max()) ** 2) ** 0.5 / 2  # fourth moments, as in ``inference_steps``
        solved = conclude(last, start, jacobian, robust=False, slope=True, way=way)
        return HazardCoefficients(**self.facts_of(solved, rng), ends=baseline.ends * self.horizon)

    def _release_baseline(self, place: Array, happened: Array, rng: Rng) -> Baseline:
        """Pieces with about as many events each, and their hazards, from a noisy table."""
        fine = ends_of(1.0, _FINE)
        cells = cross((_FINE, 2), *periods_of(place, np.where(happened, 0, 1), fine))
        noisy = np.asarray(self._table.release(cells.reshape(-1), rng).value, np.float64).reshape(_FINE, 2)
        floor = _FLOOR * deviation(self._table)
        counts = np.maximum(noisy[:, 0], 0.0)
        wished = np.arange(1, self.pieces) / self.pieces * max(counts.sum(), floor)
        cuts = np.unique(np.append(np.searchsorted(np.cumsum(counts), wished) + 1, _FINE).clip(1, _FINE))
        ended = noisy.sum(axis=1)
        at_risk = np.cumsum(ended[::-1])[::-1] - ended / 2
        starts = np.append(0, cuts[:-1])
        seen = np.maximum(np.add.reduceat(noisy[:, 0], starts), floor * np.sqrt(cuts - starts))
        spent = np.maximum(np.add.reduceat(at_risk, starts) / _FINE, floor / _FINE)
        return Baseline(cuts / _FINE, (cuts - starts) / _FINE, seen, np.log(seen / spent))

    def _release_moments(self, rows: Array, rng: Rng) -> Centred:
        p = rows.shape[1]
        packed = kernels.gram_sum(rows, np.zeros(len(rows)), 1.0, self.problem.square)[:-p]
        moments = kernels.unpack_symmetric(self._moments.release(packed, rng).value, p)
        return Centred.of(moments, _FLOOR * deviation(self._moments))

    def _lives(self, rows: Array, place: Array, happened: Array, baseline: Baseline, centred: Centred) -> Lives:
        starts = baseline.ends - baseline.lengths
        spent = np.clip((place[:, None] - starts) / baseline.lengths, 0.0, 1.0)
        piece = np.minimum(np.searchsorted(baseline.ends, place, side="left"), len(baseline.ends) - 1)
        gradient = self._last[0]
        quiet = _QUIET * float(baseline.events.sum()) * (gradient.sensitivity / deviation(gradient)) ** 2
        white = kernels.scores(rows, np.ascontiguousarray(centred.matrix.T))
        return Lives(white, spent, np.where(happened, piece, -1), baseline, centred.longest, quiet)


class _AskedOfHazards(Asked, total=False):
    confidence: float


@spell_out(_AskedOfHazards, "proportional hazards", {"confidence": 0.95})
def proportional_hazards(
    X: Any,
    times: Any,
    events: Any,
    bounds: Any,
    *,
    horizon: float,
    pieces: int = 5,
    **asked: Unpack[_AskedOfHazards],
) -> Release[HazardCoefficients]:
    """Logarithms of hazard ratios with their intervals: see ``ProportionalHazards``.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (10_000, 1)); lives = rng.exponential(np.exp(-X[:, 0]))
    >>> fit = proportional_hazards(X, lives, [1] * 10_000, [(-1, 1)], horizon=9, epsilon=1.0, delta=1e-6, rng=1).value
    >>> bool(fit.lower[0] < 1 < fit.upper[0])
    True
    """
    return ask(ProportionalHazards, (X, times, events), asked, bounds=bounds, horizon=horizon, pieces=pieces)
