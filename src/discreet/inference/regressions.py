"""What regressions with intervals have in common: bounded features, columns beside them, coefficients as the answer.

How intervals are made is ``linear.inference_steps``; here are models that no estimator stands for.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from discreet.encoding import features
from discreet.encoding.bounds import declared_features
from discreet.errors import number
from discreet.inference.columns import Reader, check_columns, read_columns
from discreet.linear import LinearRegression
from discreet.linear.inference import Coefficients
from discreet.linear.inference_parts import Array, Estimates
from discreet.linear.problem import Problem
from discreet.linear.rows import Map
from discreet.mechanisms.parameters import store
from discreet.random import Rng, RngLike, as_rng
from discreet.release import Release
from discreet.statistics.statistic import Statistic

__all__ = ["Regression"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression(Statistic):
    """Coefficients with intervals, of features with declared ``bounds`` (a pair for each) and a budget of ``epsilon``
    and ``delta``.
    """

    bounds: Any
    confidence: float = 0.95

    intercept: ClassVar[bool] = True
    columns: ClassVar[tuple[tuple[str, Reader], ...]]  # beside the features: names, and how they are read

    def _check_facts(self) -> None:
        self._check()
        if self.delta is None or self.epsilon is None:
            raise ValueError("epsilon and delta must be given, delta above 0: the noise is Gaussian.")
        store(self, confidence=number("confidence", self.confidence, low=0, high=1, open_low=True, open_high=True))
        if declared_features(self.bounds) is None:
            raise ValueError("bounds must have a pair (lower, upper) for each feature: it says how many there are.")
        _ = self.problem

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return declared_features(self.bounds) or 0

    @property
    def problem(self) -> Problem:
        """Whose budget is spent, on rows in the unit ball with a column of ones."""
        facts: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta, "adjacency": str(self.adjacency)}
        return LinearRegression(feature_norm=1.0, target_bounds=(0, 1), **facts)._problem(self.n_features)

    @abstractmethod
    def fit(self, rows: Array, mapping: Map, columns: Sequence[Array], rng: Rng) -> Coefficients:
        """Coefficients of rows, not yet mapped, and columns. It reads private rows."""

    def check(self, data: Any) -> None:
        """Features and columns, by their types and shapes alone."""
        self._check_table(data)

    def _check_table(self, data: Any) -> tuple[Any, Map, tuple[Any, ...]]:
        names = ", ".join(name for name, _ in self.columns)
        if not isinstance(data, tuple) or len(data) != 1 + len(self.columns):
            raise ValueError(f"data must be a tuple (X, {names}).")
        probe, further = LinearRegression(bounds=self.bounds, target_bounds=(0, 1)), data[1:]  # which reads features
        table = features.check_features(probe, data[0], declared=self.n_features)
        if table.columns != self.n_features:
            raise ValueError(f"X has {table.columns} features, but bounds are declared for {self.n_features}.")
        check_columns(further, [reader for _, reader in self.columns], [name for name, _ in self.columns])
        return table, probe._mapping(self.n_features), further

    def prepare(self, data: Any = None, rng: RngLike = None) -> Callable[[], Release[Coefficients]]:
        """Refuse what public facts can tell, read nothing, and return what reads."""
        table, mapping, further = self._check_table(data)
        source = as_rng(rng)

        @np.errstate(all="ignore")  # no record makes it warn
        def run() -> Release[Coefficients]:
            rows, columns = table.read(), read_columns(further, [reader for _, reader in self.columns])
            size = min(len(rows), *map(len, columns))
            answer = self.fit(rows[:size], mapping, [part[:size] for part in columns], source)
            return Release(answer, self.event, reproducible=source.reproducible, label=self.label, unit=self.unit)

        return run

    def draw(self, data: Any, rng: Rng) -> Coefficients:
        """Read, add noise, conclude."""
        return self.prepare(data, rng)().value

    def facts_of(self, solved: Estimates, rng: Rng) -> dict[str, Any]:
        """What ``Coefficients`` are made of."""
        error = np.sqrt(solved.variances)
        reach = float(ndtri((1 + self.confidence) / 2)) * error
        return {
            "estimate": solved.value,
            "standard_error": error,
            "lower": solved.value - reach,
            "upper": solved.value + reach,
            "confidence": self.confidence,
            "event": self.event,
            "reproducible": rng.reproducible,
            "covariance": solved.covariance,
            "r_squared": solved.r_squared,
        }
