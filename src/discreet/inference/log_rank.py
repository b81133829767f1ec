"""The log-rank test: whether two groups survive alike, from one noisy table of groups, times and events.

Hazard ratios of features are ``ProportionalHazards``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from discreet.errors import number, whole
from discreet.inference.classical import normal_law
from discreet.inference.columns import check_columns, cross, read_columns
from discreet.inference.hypothesis import AskedOfTest, ReleasedTest, ask_test, spell_test
from discreet.inference.noisy_tables import TableTest, draw_tables
from discreet.inference.simulation import Array, simplex
from discreet.inference.survival import EVENTS, ends_of, hazards, periods_of
from discreet.mechanisms.parameters import store
from discreet.statistics.partition import Partition

__all__ = ["LogRank", "log_rank"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRank(TableTest):
    r"""Whether two groups have one hazard, up to a public ``horizon`` in ``periods`` of equal length.

    Data are columns of groups, times and events (as for ``KaplanMeier``). With d events, r at risk and w the share of
    the first group in r, the statistic is :math:`\sum (d_1 - w d)` over the root of :math:`\sum w(1-w)d` plus the
    noise's part. Its null law is simulated: one hazard for both, and each group's own law of leaving. The effect is the
    logarithm of the hazard ratio, first over second, by Peto's one step: near for ratios up to 2 in groups of like
    sizes, and too far from 0 for larger ones or where one group is much smaller (1.2 for 0.8 in groups of 30 and
    1,000), and so is its interval. ``ProportionalHazards`` has no such bias. Reference: Mantel (1966); Peto and Peto
    (1972).

    >>> test = LogRank(horizon=60, periods=6, epsilon=1.0)
    >>> groups, times, seen = [0, 1] * 400, [10, 40, 20, 55] * 200, [1] * 800
    >>> answer = test.release((groups, times, seen), rng=1)
    >>> answer.p_value < 0.001, answer.effect > 0.5
    (True, True)
    """

    horizon: float
    periods: int | None = None
    groups: tuple[Any, ...] = (0, 1)

    label = "log-rank test"
    effect_name = "logarithm of the hazard ratio, first over second"
    null_effect = 0.0

    def __post_init__(self) -> None:
        self._check_test()
        horizon = number("horizon", self.horizon, low=0, high=1e15, open_low=True)
        count = math.ceil(horizon) if self.periods is None else self.periods
        store(
            self,
            horizon=horizon,
            periods=whole("periods", count, low=1, high=10_000),
            groups=Partition.of(None, self.groups).categories,
        )
        if len(self.groups) != 2:
            raise ValueError(f"groups has {len(self.groups)} entries, but two groups are compared: give their names.")
        _ = self.mechanism

    @property
    def shape(self) -> tuple[int, int]:
        """Two groups, and the cells of a table of periods and events."""
        assert self.periods is not None
        return 2, self.periods * len(EVENTS)

    @property
    def _readers(self) -> tuple[Partition, None, Partition]:
        return Partition(categories=self.groups), None, EVENTS

    def check(self, data: Any) -> None:
        """Columns of groups, times and events."""
        check_columns(data, self._readers, ("groups", "times", "events"))

    def totals(self, values: Any) -> Array:
        """The exact table. Private."""
        group, times, seen = read_columns(values, self._readers)
        period, event = periods_of(times, seen, ends_of(self.horizon, self.shape[1] // len(EVENTS)))
        cell = np.where((period >= 0) & (event >= 0), period * len(EVENTS) + event, -1)
        return cross(self.shape, group, cell)

    def _by_period(self, counts: Array) -> Array:
        return counts.reshape(*counts.shape[:-1], -1, len(EVENTS))

    def _score(self, counts: Array) -> tuple[Array, Array, Array]:
        """Σ(d₁ - w·d), its variance from sampling, and that of the noise in it, to first order."""
        table = self._by_period(counts)
        at_risk = np.maximum(np.cumsum(table.sum(-1)[..., ::-1], axis=-1)[..., ::-1], 0.0)
        seen, both = table[..., 0], np.maximum(at_risk.sum(-2), 1.0)
        share = np.clip(at_risk[..., 0, :] / both, 0.0, 1.0)
        events = seen.sum(-2)
        score = (seen[..., 0, :] - share * events).sum(-1)
        hazard = np.clip(events, 0.0, both) / both
        # a record at risk until s takes the sum of (1 - w)·h, or of w·h, over the periods before from its group's score
        of_first, of_second = (np.cumsum(part * hazard, axis=-1) for part in (1 - share, share))
        noise = ((1 - share - of_first) ** 2 + of_first**2 + (share - of_second) ** 2 + of_second**2).sum(-1)
        sampling = (share * (1 - share) * np.clip(events, 0.0, both) * (1 - hazard)).sum(-1)
        return score, sampling, self.mechanism.deviation**2 * noise

    def statistic(self, counts: Array) -> Array:
        """The studentised score."""
        score, sampling, noise = self._score(counts)
        return np.asarray(score / np.sqrt(np.maximum(sampling + noise, 1e-12)))

    def textbook(self, counts: Array) -> tuple[Array, Array]:
        """Mantel's test: the normal law with hypergeometric variances."""
        table = self._by_period(counts)
        at_risk = np.cumsum(table.sum(-1)[..., ::-1], axis=-1)[..., ::-1]
        both, events = at_risk.sum(-2), table[..., 0].sum(-2)
        share = at_risk[..., 0, :] / np.maximum(both, 1.0)
        variance = share * (1 - share) * events * (both - events) / np.maximum(both - 1, 1.0)
        score = (table[..., 0, :, 0] - share * events).sum(-1)
        expected = np.stack([(share * events).sum(-1), ((1 - share) * events).sum(-1)], axis=-1)
        statistic = score / np.sqrt(np.maximum(variance.sum(-1), 1e-12))
        return normal_law(statistic, self.alternative, expected[..., None])

    def effect(self, counts: Array) -> Array:
        """The logarithm of the hazard ratio."""
        score, sampling, _ = self._score(counts)
        return np.asarray(score / np.maximum(sampling, 1.0))

    def null_law(self, counts: Array) -> Array:
        """One hazard for both groups, and each group's own hazard of leaving."""
        fit = self._by_period(simplex(counts))
        hazard = np.clip(hazards(fit.sum(-3)), 0.0, 1.0)[..., None, :]
        left = fit[..., 1]
        remaining = np.cumsum(fit.sum(-1)[..., ::-1], axis=-1)[..., ::-1] - fit[..., 0]
        leaving = np.clip(left / np.maximum(remaining, 1e-9), 0.0, 1.0)
        leaving[..., -1] = 1.0
        stay = np.cumprod((1 - hazard) * (1 - leaving), axis=-1)
        here = np.concatenate([np.ones_like(stay[..., :1]), stay[..., :-1]], axis=-1)
        law = np.stack([here * hazard, here * (1 - hazard) * leaving], axis=-1).reshape(counts.shape)
        return np.asarray(law / law.sum(-1, keepdims=True))

    def suppose(self, n: int, effect: float, sd: float | None, runs: int, generator: np.random.Generator) -> Array:
        """Half of the records in each group; of the second, half survive the horizon; nobody leaves before. ``effect``
        is the logarithm of the hazard ratio.
        """
        periods = self.shape[1] // len(EVENTS)
        alive = np.exp(-np.outer(np.exp([effect, 0.0]), np.linspace(0, np.log(2), periods + 1)))
        law = np.zeros((2, periods, len(EVENTS)))
        law[..., 0], law[:, -1, 1] = -np.diff(alive), alive[:, -1]
        return draw_tables(law.reshape(2, -1), np.array([n - n // 2, n // 2]), runs, generator)

    @property
    def largest_effect(self) -> float:
        """A hazard ratio of four."""
        return self._toward(math.log(4))


@spell_test("log-rank test")
def log_rank(
    groups: Any,
    times: Any,
    events: Any,
    horizon: float,
    *,
    periods: int | None = None,
    **asked: Unpack[AskedOfTest],
) -> ReleasedTest:
    """Whether two groups survive alike: see ``LogRank``.

    >>> log_rank([0, 1] * 300, [3, 3, 8, 8] * 150, [1] * 600, horizon=10, epsilon=1.0, rng=1).p_value > 0.05
    True
    """
    return ask_test(LogRank, (groups, times, events), asked, horizon=horizon, periods=periods)
