r"""Survival: Kaplan-Meier and Nelson-Aalen curves with bands, from one noisy table of times and events.

A record is a time and whether its event was seen then (otherwise it left the study). It is in one cell of the table
(period × event or not), so all of a curve, its band, its median and its hazards cost one count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

import numpy as np
from scipy.optimize import isotonic_regression

from discreet.errors import number, whole
from discreet.inference.columns import check_columns, cross, read_columns
from discreet.inference.noisy_tables import draw_tables
from discreet.inference.simulation import Array, noise_like, public_generator, simplex
from discreet.mechanisms.parameters import store
from discreet.release import Release
from discreet.statistics.asking import Asked, ask, spell_out
from discreet.statistics.partition import Partition
from discreet.statistics.statistic import AdditiveStatistic

__all__ = ["EVENTS", "KaplanMeier", "SurvivalCurve", "ends_of", "hazards", "kaplan_meier", "periods_of"]

_FEWEST_AT_RISK = 5
_ONE_EVENT = 1.5  # events more, or less, that an error is worth at least
_CAUTION = 1.03  # as of means: a law that is fitted to noisy counts is a little too narrow (decision 550)

EVENTS = Partition(categories=(1, 0))
"""The columns of the table: the event was seen, or the record left."""


@dataclass(frozen=True, slots=True)
class SurvivalCurve:
    """Survival and cumulative hazard at the end of each period, with bands that hold together.

    ``median`` is the first time at which survival is ½ or less, infinite where it is not reached before the horizon.
    """

    times: Array
    survival: Array
    lower: Array
    upper: Array
    hazard: Array
    hazard_lower: Array
    hazard_upper: Array
    confidence: float

    @property
    def median(self) -> float:
        """The median survival."""
        return self._first(self.survival)

    @property
    def median_interval(self) -> tuple[float, float]:
        """The times that the band does not refute as the median (Brookmeyer and Crowley 1982)."""
        return self._first(self.lower), self._first(self.upper)

    def _first(self, curve: Array) -> float:
        below = np.flatnonzero(curve <= 0.5)
        return float(self.times[below[0]]) if below.size else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class KaplanMeier(AdditiveStatistic):
    r"""The survival curve up to a public ``horizon``, in ``periods`` of equal length (a unit each, if not given).

    Data are a column of times beside one of events: 1 (or true) where the event was seen, 0 where the record left. A
    time beyond the horizon left at the horizon; a missing or negative one, or another event, is left out. With d events
    and r at risk in a period survival is :math:`\prod (1 - d/r)` (Kaplan and Meier 1958) and the cumulative hazard
    :math:`\sum d/r` (Nelson 1972, Aalen 1978). Those who leave in a period are at risk all of it.

    The noisy curve is projected on decreasing ones (isotonic regression), which moves it no further from the truth. The
    band is simultaneous: its half-width, of arcsin √S, is that quantile of the largest studentised error which tables
    drawn from the fitted law, with noise, show at any time (Borgan and Liestøl 1990). Where almost nobody is at risk
    any more it is open: below down to 0, above as at the last time before. Decision 554.

    >>> times, seen = [5, 12, 20, 31, 44, 60] * 200, [1, 1, 0, 1, 1, 0] * 200
    >>> curve = KaplanMeier(horizon=60, periods=12, epsilon=1.0).release((times, seen), rng=1).value
    >>> curve.survival[[2, 6, 11]].round(1), curve.median
    (array([0.7, 0.4, 0.2]), 35.0)
    """

    horizon: float
    periods: int | None = None
    confidence: float = 0.95
    simulations: int = 1_999

    label = "survival"
    _whole = True

    def __post_init__(self) -> None:
        self._check()
        horizon = number("horizon", self.horizon, low=0, high=1e15, open_low=True)
        store(
            self,
            horizon=horizon,
            periods=whole("periods", math.ceil(horizon) if self.periods is None else self.periods, low=1, high=10_000),
            confidence=number("confidence", self.confidence, low=0, high=1, open_low=True, open_high=True),
            simulations=whole("simulations", self.simulations, low=19),
        )
        _ = self.mechanism

    @property
    def shape(self) -> tuple[int, int]:
        """Periods, and whether the event was seen."""
        assert self.periods is not None
        return self.periods, len(EVENTS)

    @property
    def times(self) -> Array:
        """The ends of the periods."""
        return ends_of(self.horizon, self.shape[0])

    @property
    def _moves(self) -> tuple[Fraction, Fraction, int]:
        moved = Fraction(2 if self._replace else 1)
        return moved, moved, self.shape[0] * self.shape[1]

    def check(self, data: Any) -> None:
        """A column of times beside one of events."""
        check_columns(data, (None, EVENTS), ("times", "events"))

    def totals(self, values: Any) -> Array:
        """The exact table. Private."""
        times, seen = read_columns(values, (None, EVENTS))
        return cross(self.shape, *periods_of(times, seen, self.times))

    def answer(self, noisy: Array) -> SurvivalCurve:
        """The curves of a noisy table, and their bands."""
        table = np.asarray(noisy, np.float64)
        hazard = hazards(table)
        survival, total = _decreasing(survival_of(hazard)), np.cumsum(hazard)
        known = self._known_periods(table)
        # a record more, evenly in all cells: where nobody happens to have had an event, one may
        fit = simplex(table.reshape(-1)).reshape(table.shape) + 1 / table.size
        truth, drawn = hazards(fit), hazards(self._simulate(fit, float(table.sum())))
        one, alive = _ONE_EVENT / np.maximum(at_risk(fit), 1.0), survival_of(truth)
        turned = one * alive / (2 * np.sqrt(np.maximum(alive * (1 - alive), np.maximum(alive * one, 1e-9))))
        angles = self._band(_angle(survival), _angle(survival_of(drawn)), _angle(alive), turned, known)
        lower, upper = (np.sin(np.clip(end, 0, np.pi / 2)) ** 2 for end in angles)
        lower, upper = np.minimum(lower, survival), np.maximum(upper, survival)
        lower[known:], upper[known:] = 0.0, upper[known - 1] if known else 1.0
        # survival never rises, so a band that holds all of it holds it within these too
        lower, upper = np.maximum.accumulate(lower[::-1])[::-1], np.minimum.accumulate(upper)
        shown = np.maximum.accumulate(np.maximum(total, 0))  # never falls, so that noise can lift it out of its band
        least, most = self._band(total, np.cumsum(drawn, -1), np.cumsum(truth), one, known)
        least, most = np.minimum(np.maximum(least, 0), shown), np.maximum(most, shown)
        # no hazard of a period is above 1
        open_end = np.arange(1, len(most) - known + 1)
        least[known:], most[known:] = least[known - 1] if known else 0.0, (most[known - 1] if known else 0.0) + open_end
        most = np.maximum(most, shown)
        return SurvivalCurve(self.times, survival, lower, upper, shown, least, most, self.confidence)

    def _known_periods(self, table: Array) -> int:
        """Before how many periods enough are at risk, beside the noise on their number, for a band to say something."""
        cells = np.arange(table.size, 0, -table.shape[1])
        enough = at_risk(table) >= _FEWEST_AT_RISK + self.mechanism.deviation * np.sqrt(cells)
        return int(np.logical_and.accumulate(enough).sum())

    def _simulate(self, fit: Array, size: float) -> Array:
        """Noisy tables that are drawn from the fitted one."""
        generator, law = public_generator(), (fit / fit.sum()).reshape(1, -1)
        tables = draw_tables(law, np.array([max(1, round(size))]), self.simulations, generator)
        tables = tables.reshape(self.simulations, *fit.shape)
        return np.asarray(tables + noise_like(self.mechanism, tables.shape, generator))

    def _band(self, curve: Array, drawn: Array, truth: Array, least: Array, known: int) -> tuple[Array, Array]:
        """The simultaneous band of a curve's known periods, from curves that were drawn around a known one; with what
        an error is at least.
        """
        error = drawn - truth
        spread = np.maximum(error.std(axis=0), least)
        largest = np.abs(error / spread)[:, :known].max(axis=-1, initial=0.0)
        reach = _CAUTION * np.quantile(largest, self.confidence, method="higher")
        return curve - reach * spread, curve + reach * spread


def periods_of(times: Array, seen: Array, ends: Array) -> tuple[Array, Array]:
    """The period and the event of each record, of periods with these ends: the first is up to its end, and whoever is
    there after the last one left at it.
    """
    times = times.astype(np.float64)
    valid = times >= 0
    place = np.searchsorted(ends, np.where(valid, np.minimum(times, ends[-1]), 0.0), side="left")
    event = np.where((seen == 0) & (times > ends[-1]), 1, seen)
    return np.where(valid, place, -1), event


def ends_of(horizon: float, periods: int) -> Array:
    """The ends of so many equal periods."""
    return np.linspace(0.0, horizon, periods + 1)[1:]


def at_risk(table: Array) -> Array:
    """How many are there at the beginning of each period."""
    return np.asarray(np.cumsum(table.sum(-1)[..., ::-1], axis=-1)[..., ::-1])


def hazards(table: Array) -> Array:
    """Events over those at risk in each period, of tables (period × event) on the last two axes."""
    return np.asarray(np.clip(table[..., 0] / np.maximum(at_risk(table), 1.0), -1.0, 1.0))


def survival_of(hazard: Array) -> Array:
    """The product of those who survive each period."""
    return np.clip(np.cumprod(1 - hazard, axis=-1), 0.0, 1.0)


def _angle(survival: Array) -> Array:
    """Of which errors are about as large everywhere, and symmetric near 0 and 1 too."""
    return np.arcsin(np.sqrt(survival))


def _decreasing(curve: Array) -> Array:
    return np.clip(isotonic_regression(curve, increasing=False).x, 0.0, 1.0)


@spell_out(Asked, "survival")
def kaplan_meier(
    times: Any, events: Any, horizon: float, *, periods: int | None = None, **asked: Unpack[Asked]
) -> Release[SurvivalCurve]:
    """The survival curve with its band: see ``KaplanMeier``.

    >>> kaplan_meier([3, 5, 9] * 300, [1, 1, 0] * 300, horizon=10, epsilon=1.0, rng=1).value.median
    5.0
    """
    return ask(KaplanMeier, (times, events), asked, horizon=horizon, periods=periods)
