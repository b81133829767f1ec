r"""Standard errors and confidence intervals for coefficients, that account for the privacy noise as well as for
sampling.

``inference_steps`` says how, what is assumed, and what it costs, ``inference_families`` which models there are, and
``inference_whitening`` how noise is fitted to the features; they work on rows in the unit ball, and here estimates
become those of the user's units. Everything is computed from released numbers and public facts. Where these cannot
carry an interval (too few records for the budget, effects so strong that one Newton step cannot be trusted) it is
infinite: it covers, and says that nothing is known.

Intervals hold for rows that the declared bounds do not cut; a cut row is another row. Coverage is measured by
``python -m experiments coverage``.

Decision 388.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from discreet import events, random
from discreet.encoding import features
from discreet.encoding.bounds import declared_features
from discreet.encoding.features import pair
from discreet.errors import extra, number
from discreet.linear.classifiers import LogisticRegression
from discreet.linear.inference_families import binomial, squares
from discreet.linear.inference_parts import Array, Estimates
from discreet.linear.inference_steps import OneStep
from discreet.linear.regressors import LinearRegression
from discreet.linear.rows import Map
from discreet.release import Chargeable, Release, charged, is_reproducible, unit_name

with extra("sklearn"):
    from sklearn.base import clone

__all__ = ["Coefficients", "Inference", "coefficients", "jacobian_of", "privacy_event"]


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Estimates of the coefficients and, last, the intercept, with their errors; what it all cost.

    Where no interval can be given the standard error is infinite, the interval the whole line, and the estimate means
    nothing. ``covariance`` is for several of them together (``discreet.inference.contrast`` and ``joint``); no variance
    on its diagonal is smaller than the square of its standard error. ``r_squared`` is the share of the targets'
    variance that least squares explain, an estimate from noisy numbers; NaN for other models and without intercept.
    """

    estimate: Array
    standard_error: Array
    lower: Array
    upper: Array
    confidence: float
    event: events.Event
    reproducible: bool
    covariance: Array
    r_squared: float


@dataclass(frozen=True)
class Inference:
    """Coefficients with intervals, as an operation: ``release((X, y))`` gives them.

    ``model`` is an unfitted ``LogisticRegression`` of two classes or ``LinearRegression``, with ``delta`` above 0.
    """

    model: Any
    n_features: int
    confidence: float = 0.95

    def __post_init__(self) -> None:
        _check(self.model)
        number("confidence", self.confidence, low=0, high=1, open_low=True, open_high=True)

    @property
    def event(self) -> events.Event:
        """The cost, from public facts alone."""
        return _intervals(self.model, self.n_features).event

    @property
    def unit(self) -> str:
        """Whom each row is all of, on the caller's word."""
        return unit_name(self.model.unit)

    @property
    def label(self) -> str:
        """What a book calls it."""
        return f"inference for {type(self.model).__name__}"

    @property
    def reproducible(self) -> bool:
        """Whether the model has a seed of its own."""
        return is_reproducible(self.model.random_state)

    def release(self, data: Any = None, rng: Any = None) -> Release[Coefficients]:
        """Read X and y, and give the coefficients."""
        return self.prepare(data, rng)()

    def prepare(self, data: Any = None, rng: Any = None) -> Callable[[], Release[Coefficients]]:
        """Refuse X and y whose types or shapes do not suit; no value is looked at before what is returned is called."""
        (X, y), probe = pair(data), clone(self.model)
        table = features.check_features(probe, X, declared=declared_features(probe.bounds))
        if table.columns != self.n_features:
            raise ValueError(f"X has {table.columns} features, but this inference was planned for {self.n_features}.")
        targets, intervals = features.column(y, len(table)), _intervals(self.model, self.n_features)
        mapping = (probe if hasattr(probe, "feature_names_in_") else self.model)._mapping(self.n_features)
        probe._check_targets(targets)
        noise = random.from_state(self.model.random_state if rng is None else rng)

        @np.errstate(all="ignore")  # whatever NumPy is told elsewhere, no record makes it warn or fail
        def run() -> Release[Coefficients]:
            rows = table.read()
            records = mapping.records(rows, probe._read_targets(targets))
            solved = intervals.solve(records.rows, records.targets, jacobian_of(mapping, self.n_features), noise)
            if isinstance(self.model, LinearRegression):
                solved = _in_units(solved, *probe._interval())
            found = self._coefficients(solved, intervals.event, noise.reproducible)
            return Release(found, found.event, reproducible=noise.reproducible, label=self.label, unit=self.unit)

        return run

    def _coefficients(self, solved: Estimates, event: events.Event, reproducible: bool) -> Coefficients:
        error = np.sqrt(solved.variances)
        reach = float(ndtri((1 + self.confidence) / 2)) * error
        return Coefficients(
            solved.value,
            error,
            solved.value - reach,
            solved.value + reach,
            self.confidence,
            event,
            reproducible,
            solved.covariance,
            solved.r_squared,
        )


def _in_units(solved: Estimates, low: float, high: float) -> Estimates:
    """Coefficients of targets in [-1, 1] as those of targets between two bounds."""
    half = (high - low) / 2
    value = solved.value * half
    value[-1] += (low + high) / 2
    return solved._replace(value=value, variances=solved.variances * half**2, covariance=solved.covariance * half**2)


def privacy_event(model: Any, n_features: int) -> events.Event:
    """What ``coefficients`` will cost, from public facts alone."""
    return Inference(model, n_features).event


def coefficients(
    model: Any, X: Any, y: Any, *, confidence: float = 0.95, book: Chargeable | None = None
) -> Coefficients:
    """Private estimates with confidence intervals, for the budget and the public facts of an unfitted estimator.

    ``model`` is a ``LogisticRegression`` of two classes or a ``LinearRegression``, with ``delta`` above 0.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2)); y = X[:, 0] / 2 + rng.uniform(-0.2, 0.2, size=20_000)
    >>> model = LinearRegression(epsilon=1.0, delta=1e-6, bounds=(-1, 1), target_bounds=(-1, 1), random_state=0)
    >>> found = coefficients(model, X, y)
    >>> bool(found.lower[0] < 0.5 < found.upper[0]), bool(found.lower[1] < 0 < found.upper[1])
    (True, True)
    """
    _check(model)
    named = clone(model)  # which learns the names of columns, for bounds by name
    rows = features.check_features(named, X, declared=declared_features(model.bounds))
    found: Coefficients = charged(Inference(named, rows.columns, confidence), (rows, y), book=book).value
    return found


def _check(model: Any) -> None:
    if not isinstance(model, (LogisticRegression, LinearRegression)) or not model.delta:
        raise ValueError(
            "model must be a LogisticRegression or a LinearRegression with a delta above 0: for other models no "
            "interval is proved."
        )
    if isinstance(model, LogisticRegression) and len(model._declared_classes()) != 2:
        raise ValueError("model has more than two classes, but intervals are written for two.")


def _intervals(model: Any, features: int) -> OneStep:
    family = squares if isinstance(model, LinearRegression) else binomial
    return OneStep(model._problem(features), family, bool(model.fit_intercept))


def jacobian_of(mapping: Map, features: int) -> Array:
    """The linear map from weights in the unit ball's units to coefficients and intercept in the user's."""
    shrink = 1 / (mapping.norm * np.broadcast_to(mapping.scale, (features,)))
    jacobian = np.zeros((features + 1, features + mapping.intercept))
    jacobian[:features, :features] = np.diag(shrink)
    jacobian[features, :features] = -np.broadcast_to(mapping.shift, (features,)) * shrink
    if mapping.intercept:
        jacobian[features, features] = 1.0
    return jacobian
