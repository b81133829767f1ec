"""What every estimator is: public facts in, a plan with its event, and one ``fit`` on the one path.

A *plan* is made from parameters and the number of features alone. It states its event; then it reads bounded rows,
and gives what is learnt. Everything else (types and shapes before the charge, labels, the charge itself, scikit-learn's
manners) is here, once; ``linear`` and ``estimators`` stand on it.

Parameters are fields of dataclasses: a shared one is declared once, and scikit-learn, editors and type checkers see one
explicit constructor. A subclass that adds parameters is decorated as ``PrivateEstimator`` is.

Decisions 213 and 381.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.encoding import features as reading
from discreet.encoding.bounds import declared_features
from discreet.encoding.containers import UnreadColumn
from discreet.encoding.labels import Labels
from discreet.errors import extra
from discreet.habits import answer_other_names
from discreet.release import ONE_RECORD, Chargeable, Release, charged, is_reproducible, unit_name

with extra("sklearn"):
    from sklearn.base import BaseEstimator, clone

__all__ = ["Fit", "FitOperation", "FitPlan", "NoisyPlan", "PrivateEstimator"]


class FitPlan(ABC):
    """What a fit will do, from public facts alone."""

    @property
    @abstractmethod
    def event(self) -> events.Event:
        """The cost."""

    @abstractmethod
    def learn(self, rows: NDArray[np.float64], targets: NDArray[Any], rng: random.Rng) -> Mapping[str, Any]:
        """Read the rows and give what is learnt, by attribute. ``targets`` is empty where there are none.

        Whatever a row holds, nothing fails, and its part in every noisy sum stays within the stated sensitivity.
        """


class NoisyPlan(FitPlan):
    """A plan that draws ``noise`` once, for all that it measures."""

    noise: Any

    @property
    def event(self) -> events.Event:
        """The noise's."""
        return self.noise.event  # type: ignore[no-any-return]


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """Base of the estimators; a subclass says what its plan is."""

    supervised: ClassVar[bool] = True

    epsilon: float = 1.0
    delta: float = 1e-6
    bounds: Any = None
    adjacency: str = "add-remove"
    unit: str = ONE_RECORD
    random_state: Any = None

    # --- what a subclass says ------------------------------------------------------------------------------------

    @abstractmethod
    def _plan(self, features: int) -> FitPlan:
        """What ``fit`` does for so many features."""

    def _check_targets(self, y: UnreadColumn) -> None:
        """Refuse targets whose type is not what was declared; no value is looked at."""
        Labels(self.classes).check(y)

    def _read_targets(self, y: UnreadColumn) -> NDArray[Any]:
        """Class numbers, -1 where a label is none; or scaled targets, NaN where one is missing."""
        return Labels(self.classes).codes(y)

    def _warn(self) -> None:
        """Say, before a fit, what its user should know of the parameters."""

    # --- public facts --------------------------------------------------------------------------------------------

    def privacy_event(self, n_features: int | None = None) -> events.Event:
        """What ``fit`` will cost, from public facts alone: nothing is read, nothing is charged.

        ``n_features`` is the number of columns; it is needed only where it cannot be known otherwise (``bounds`` with
        one entry per feature, or an estimator that was fitted).
        """
        return self._plan(self._known_features(n_features)).event

    def operation(self, n_features: int | None = None) -> Fit:
        """Fitting this estimator, with its parameters of now, as an operation: ``release`` gives a fitted copy."""
        return Fit(clone(self), self._known_features(n_features))

    def _known_features(self, n_features: int | None) -> int:
        known = n_features or getattr(self, "n_features_in_", None) or declared_features(self.bounds)
        if known is None:
            raise ValueError("n_features is None, but the cost depends on the number of columns: pass it.")
        return int(known)

    @property
    def _adjacency(self) -> Adjacency:
        return Adjacency(self.adjacency)

    # --- fitting -------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, book: Chargeable | None = None) -> Any:
        """Fit privately. ``book`` is charged before a value is read; what ``fit`` then does cannot cost more.

        The charge protects ``unit``: one record, or whom each row is all of, on the caller's word. A record with what
        is missing or was not declared never fails: each estimator says how it counts.
        """
        rows = reading.check_features(self, X, declared=declared_features(self.bounds))
        charged(Fit(self, rows.columns, in_place=True), (rows, y) if self.supervised else rows, book=book)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags


@dataclass(frozen=True)
class FitOperation(ABC):
    """Base of the fits of estimators: whom they protect, what a book calls them, whether a seed makes them."""

    estimator: Any

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
        """Read the records, and give the fitted model."""
        return self.prepare(data, rng)()

    @abstractmethod
    def prepare(self, data: Any = None, rng: random.RngLike = None) -> Callable[[], Release[Any]]:
        """Refuse what public facts tell; no value is looked at before what is returned is called."""


@dataclass(frozen=True)
class Fit(FitOperation):
    """The fit of an estimator to so many features; ``release`` reads (X, y), or X where there are no targets, and gives
    a fitted copy, or the estimator itself if ``in_place``.

    >>> from discreet.estimators import GaussianNB
    >>> fit = GaussianNB(classes=(0, 1), bounds=(0, 1), epsilon=1.0).operation(n_features=2)
    >>> fit.label, fit.unit, fit.release((np.eye(2), [0, 1]), rng=1).event == fit.event
    ('GaussianNB', 'one record', True)
    """

    n_features: int
    in_place: bool = False

    @cached_property
    def plan(self) -> FitPlan:
        """What it will do, with the parameters of when it was first asked."""
        return self.estimator._plan(self.n_features)  # type: ignore[no-any-return]

    @property
    def event(self) -> events.Event:
        """The cost, from public facts alone."""
        return self.plan.event

    @property
    def asked(self) -> tuple[float | None, float | None]:
        """Epsilon and delta it is asked for with."""
        return self.estimator.epsilon, self.estimator.delta

    def prepare(self, data: Any = None, rng: random.RngLike = None) -> Callable[[], Release[Any]]:
        """Refuse what types and shapes tell; no value is looked at before what is returned is called."""
        model = self.estimator if self.in_place else clone(self.estimator)
        X, y = reading.pair(data) if model.supervised else (data, None)
        rows = reading.check_features(model, X, declared=declared_features(model.bounds))
        if rows.columns != self.n_features:
            raise ValueError(f"X has {rows.columns} features, but this fit was planned for {self.n_features}.")
        if len(rows) > reading.MOST:
            raise ValueError("X has more than 2^29 records, the most for which sums are proved.")
        targets = reading.column(y, len(rows)) if model.supervised else None
        if targets is not None:
            model._check_targets(targets)
        # a copy has learnt the columns' names from X, by which bounds may be given
        plan, unit = self.plan if self.in_place else model._plan(self.n_features), self.unit
        noise = random.from_state(model.random_state if rng is None else rng)
        model._warn()

        @np.errstate(all="ignore")  # whatever NumPy is told elsewhere, no record makes it warn or fail
        def run() -> Release[Any]:
            read = np.empty(0) if targets is None else model._read_targets(targets)
            learnt = plan.learn(rows.read(), read, noise)
            for name, value in learnt.items():
                setattr(model, name, value)
            model.event_, model.reproducible_ = plan.event, noise.reproducible
            return Release(model, plan.event, reproducible=noise.reproducible, label=self.label, unit=unit)

        return run
