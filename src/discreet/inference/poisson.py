r"""Poisson regression: coefficients of rates, with intervals whatever the counts' dispersion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from discreet import events, mechanisms
from discreet.errors import positive
from discreet.inference.columns import NUMBERS
from discreet.inference.regressions import Regression
from discreet.linear.inference import Coefficients, jacobian_of
from discreet.linear.inference_families import PoissonCounts
from discreet.linear.inference_parts import Array
from discreet.linear.inference_steps import OneStep
from discreet.linear.rows import Map
from discreet.mechanisms.parameters import store
from discreet.random import Rng
from discreet.release import Release
from discreet.statistics.asking import Asked, ask, spell_out

__all__ = ["PoissonRegression", "poisson_regression"]

_CAP = 3.0  # times the mean count: an expected count beyond it has a weight
_TOTALS = 0.03  # of the budget, for the mean count from which the start begins


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonRegression(Regression):
    r"""The model :math:`E[y] = e\,\exp(x \cdot w + b)` of counts y with exposures e, with robust intervals.

    Data are ``(X, counts, exposures)``; a count beyond ``highest`` counts as that, an exposure beyond ``longest`` as
    that (give ones where there are none, and leave ``longest`` out). A record with a missing entry, a negative count or
    an exposure that is not positive is left out. A record whose expected count at full exposure is beyond ``highest``
    has a smaller weight, by its features alone, so no coefficient is biased by it; a count that is cut is another
    record. One private Newton step in whitened coordinates; the variance is the sandwich, so counts may be more, or
    less, dispersed than Poisson's. The last coefficient is the intercept b, the log rate per unit of exposure.
    Reference: Nelder and Wedderburn (1972); for robust errors, White (1982); for the step, decisions 388 and 556.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 2)); counts = rng.poisson(np.exp(0.5 * X[:, 0] - 0.2))
    >>> model = PoissonRegression(bounds=[(-1, 1), (-1, 1)], highest=6, epsilon=1.0, delta=1e-6)
    >>> fit = model.release((X, counts, np.ones(20_000)), rng=1).value
    >>> bool(fit.lower[0] < 0.5 < fit.upper[0]), bool(fit.standard_error[0] < 0.1)
    (True, True)
    """

    highest: float
    longest: float = 1.0

    label = "Poisson regression"
    columns = (("counts", NUMBERS), ("exposures", NUMBERS))

    def __post_init__(self) -> None:
        store(self, highest=positive("highest", self.highest), longest=positive("longest", self.longest))
        self._check_facts()

    def _steps(self, cap: float) -> OneStep:
        return OneStep(self.problem, PoissonCounts(self.highest, cap), True, 1 - _TOTALS)

    @property
    def _totals(self) -> mechanisms.Gaussian:
        """Of the sums of counts over ``highest`` and of exposures over ``longest``, each record's at most 1."""
        return self.problem.gaussian(2**0.5 * (1 + 2.0**-20), self.problem.rho(_TOTALS))

    @property
    def event(self) -> events.Event:
        """The cost: all releases."""
        return self._totals.event + self._steps(self.highest).event

    def fit(self, rows: Array, mapping: Map, columns: Sequence[Array], rng: Rng) -> Coefficients:
        """Coefficients of rows, not yet mapped, and columns. It reads private rows."""
        counts, exposures = (column.astype(np.float64) for column in columns)
        usable = np.isfinite(counts) & (counts >= 0) & np.isfinite(exposures) & (exposures > 0)
        records = mapping.records(rows, np.where(usable, 1.0, np.nan))
        targets = np.zeros((len(rows), 2))
        kept = records.usable
        targets[kept, 0] = np.minimum(counts[kept], self.highest)
        targets[kept, 1] = np.minimum(exposures[kept] / self.longest, 1.0)
        rate = self._release_rate(targets, rng)
        begin = np.append(np.zeros(self.n_features), np.log(rate))
        steps = self._steps(min(_CAP * rate, self.highest))
        solved = steps.solve(records.rows, targets, jacobian_of(mapping, self.n_features), rng, begin)
        solved.value[-1] -= np.log(self.longest)
        return Coefficients(**self.facts_of(solved, rng))

    def _release_rate(self, targets: Array, rng: Rng) -> float:
        """About the mean count at full exposure."""
        exact = np.floor(targets / [self.highest, 1.0] * 2.0**20).sum(axis=0) * 2.0**-20  # exact sums
        noisy = self._totals.release(exact, rng).value
        floor = float(self._totals.sigma or 0.0)
        return float(self.highest * min(max(noisy[0], floor) / max(noisy[1], floor), 1.0))


class _AskedOfPoisson(Asked, total=False):
    confidence: float


@spell_out(_AskedOfPoisson, "Poisson regression", {"confidence": 0.95})
def poisson_regression(
    X: Any,
    counts: Any,
    bounds: Any,
    *,
    highest: float,
    exposures: Any = None,
    longest: float = 1.0,
    **asked: Unpack[_AskedOfPoisson],
) -> Release[Coefficients]:
    """Coefficients of rates with their intervals: see ``PoissonRegression``.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20_000, 1)); counts = rng.poisson(np.exp(X[:, 0]))
    >>> fit = poisson_regression(X, counts, [(-1, 1)], highest=8, epsilon=1.0, delta=1e-6, rng=1).value
    >>> bool(fit.lower[0] < 1 < fit.upper[0])
    True
    """
    beside = np.ones(len(counts)) if exposures is None else exposures
    return ask(PoissonRegression, (X, counts, beside), asked, bounds=bounds, highest=highest, longest=longest)
