"""Fitting an estimator, as an operation: what it costs and whom it protects, before X and y are read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import events, random
from discreet.encoding import features
from discreet.encoding.bounds import declared_features
from discreet.encoding.features import pair
from discreet.errors import extra
from discreet.release import Release, is_reproducible, unit_name

with extra("sklearn"):
    from sklearn.base import clone

__all__ = ["LinearFit"]

_UNDECLARED = (
    "Neither feature_norm nor bounds is declared: every row longer than 1 (L2) is shrunk to length 1. Declare "
    "feature_norm=, the length of a typical row, or bounds=(lower, upper) of the features."
)


@dataclass(frozen=True)
class LinearFit:
    """The fit of an estimator to so many features. ``release((X, y))`` gives a fitted copy, or itself if ``in_place``.

    >>> import numpy as np
    >>> from discreet.linear import LogisticRegression
    >>> fit = LogisticRegression(epsilon=1.0, delta=1e-6, feature_norm=1.0).operation(n_features=3)
    >>> fit.unit, fit.label
    ('one record', 'LogisticRegression')
    >>> fit.release((np.eye(3), np.array([0, 1, 1])), rng=1).event == fit.event
    True
    """

    estimator: Any
    n_features: int
    in_place: bool = False

    @property
    def event(self) -> events.Event:
        """The cost, from public facts alone."""
        event: events.Event = self.estimator.privacy_event(self.n_features)
        return event

    @property
    def asked(self) -> tuple[float | None, float | None]:
        """Epsilon and delta it is asked for with."""
        return getattr(self.estimator, "epsilon", None), getattr(self.estimator, "delta", None)

    @property
    def unit(self) -> str:
        """Whom each row is all of, on the caller's word."""
        return unit_name(self.estimator.unit)

    @property
    def label(self) -> str:
        """What a book calls it."""
        return type(self.estimator).__name__

    @property
    def reproducible(self) -> bool:
        """Whether the estimator has a seed of its own."""
        return is_reproducible(self.estimator.random_state)

    def release(self, data: Any = None, rng: random.RngLike = None) -> Release[Any]:
        """Read X and y, and give the fitted model."""
        return self.prepare(data, rng)()

    def prepare(self, data: Any = None, rng: random.RngLike = None) -> Callable[[], Release[Any]]:
        """Refuse X and y whose types or shapes do not suit; no value is looked at before what is returned is called."""
        model, (X, y) = self.estimator if self.in_place else clone(self.estimator), pair(data)
        rows = features.check_features(model, X, declared=declared_features(model.bounds))
        if rows.columns != self.n_features:
            raise ValueError(f"X has {rows.columns} features, but this fit was planned for {self.n_features}.")
        targets = features.column(y, len(rows))
        model._check_targets(targets)
        choice, mapping = model._choice(self.n_features), model._mapping(self.n_features)
        noise, unit = random.from_state(model.random_state if rng is None else rng), self.unit
        if model.feature_norm is None and model.bounds is None:
            warnings.warn(_UNDECLARED, UserWarning, stacklevel=4)

        @np.errstate(all="ignore")  # whatever NumPy is told elsewhere, no record makes it warn or fail
        def run() -> Release[Any]:
            read, usable = model._read_targets(targets)
            solution = choice.solver.solve(mapping.records(rows.read(), read, usable), noise)
            model._learn(choice, mapping, solution, noise)
            return Release(model, choice.solver.event, reproducible=noise.reproducible, label=self.label, unit=unit)

        return run
