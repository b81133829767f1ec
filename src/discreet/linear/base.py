"""What all estimators share: public facts in, a solver with its event, and one ``fit`` on the one path: charge,
then read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.encoding import features
from discreet.encoding.bounds import declared_features
from discreet.encoding.containers import UnreadColumn
from discreet.encoding.habits import KnowsOtherNames
from discreet.errors import extra
from discreet.linear import solvers
from discreet.linear.fitting import LinearFit
from discreet.linear.losses import Loss
from discreet.linear.problem import Problem, Solution
from discreet.linear.rows import Map
from discreet.linear.solvers import Solver
from discreet.release import ONE_RECORD, Chargeable, charged

with extra("sklearn"):
    from sklearn.base import BaseEstimator, clone
    from sklearn.utils.validation import check_is_fitted

__all__ = ["PrivateLinearModel"]


class _SolverChoice(NamedTuple):
    """The solver that will run, its name, and why it."""

    solver: Solver
    name: str
    reason: str


class PrivateLinearModel(KnowsOtherNames, BaseEstimator, ABC):  # type: ignore[misc]
    """Base of the estimators; a subclass says what its loss is and how it reads targets."""

    _l1: float = 0.0

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        feature_norm: float | None = None,
        bounds: Any = None,
        regularization: float | None = None,
        solver: str = "auto",
        solver_options: dict[str, Any] | None = None,
        fit_intercept: bool = True,
        dataset_size: int | None = None,
        adjacency: str = "add-remove",
        unit: str = ONE_RECORD,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.feature_norm = feature_norm
        self.bounds = bounds
        self.regularization = regularization
        self.solver = solver
        self.solver_options = solver_options
        self.fit_intercept = fit_intercept
        self.dataset_size = dataset_size
        self.adjacency = adjacency
        self.unit = unit
        self.random_state = random_state

    # --- what a subclass says ------------------------------------------------------------------------------------

    @abstractmethod
    def _loss(self) -> Loss:
        """What is minimised."""

    @abstractmethod
    def _check_targets(self, y: UnreadColumn) -> None:
        """Refuse targets whose type is not what was declared; no value is looked at."""

    @abstractmethod
    def _read_targets(self, y: UnreadColumn) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Class numbers or scaled targets, and which are usable."""

    def _ridge(self) -> float | None:
        return self.regularization

    # --- public facts --------------------------------------------------------------------------------------------

    def privacy_event(self, n_features: int | None = None) -> events.Event:
        """What ``fit`` will cost, from public facts alone: nothing is read, nothing is charged.

        ``n_features`` is the number of columns; it is needed only where it cannot be known otherwise (``bounds`` with
        one entry a feature, or an estimator that was fitted).
        """
        return self._choice(self._known_features(n_features)).solver.event

    def operation(self, n_features: int | None = None) -> LinearFit:
        """Fitting this estimator, with its parameters of now, as an operation: ``release((X,
        y))`` gives a fitted copy.
        """
        return LinearFit(clone(self), self._known_features(n_features))

    def _known_features(self, n_features: int | None) -> int:
        if n_features is not None:
            return n_features
        if hasattr(self, "n_features_in_"):
            return int(self.n_features_in_)
        if (declared := declared_features(self.bounds)) is not None:
            return declared
        if self.delta and (
            self.solver in ("gd", "sgd", "svrg")
            or (self.solver == "auto" and not (self._l1 and self._loss().name == "squared"))
        ):
            return 1  # their cost does not depend on it
        raise ValueError("n_features is None, but this solver's cost depends on the number of columns: pass it.")

    def _mapping(self, features: int) -> Map:
        names = getattr(self, "feature_names_in_", None)
        return Map.from_bounds(self.feature_norm, self.bounds, features, bool(self.fit_intercept), names)

    def _problem(self, features: int) -> Problem:
        return Problem(
            loss=self._loss(),
            epsilon=self.epsilon,
            delta=self.delta,
            square=self._mapping(features).square,
            features=features + bool(self.fit_intercept),
            intercept=bool(self.fit_intercept),
            regularization=self._ridge(),
            l1=self._l1,
            size=self.dataset_size,
            adjacency=Adjacency(self.adjacency),
        )

    def _choice(self, features: int) -> _SolverChoice:
        problem = self._problem(features)
        name, reason = solvers.choose(problem) if self.solver == "auto" else (self.solver, "asked for")
        return _SolverChoice(solvers.make(name, problem, dict(self.solver_options or {})), name, reason)

    # --- fitting -------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, *, book: Chargeable | None = None) -> Any:
        """Fit privately. ``book`` is charged before a value is read; what ``fit`` then does cannot cost more.

        The charge protects ``unit``: one record, or whom each row is all of, on the caller's word.

        Records with a feature that is not finite, or with a target outside what was declared, contribute nothing.
        """
        rows = features.check_features(self, X, declared=declared_features(self.bounds))
        charged(LinearFit(self, rows.columns, in_place=True), (rows, y), book=book)
        return self

    def _learn(self, choice: _SolverChoice, mapping: Map, solution: Solution, rng: random.Rng) -> None:
        self.event_: events.Event = choice.solver.event
        self.adjacency_ = Adjacency(self.adjacency)
        self.solver_, self.solver_reason_ = choice.name, choice.reason
        self.regularization_ = solution.regularization
        self.reproducible_ = rng.reproducible
        self.n_iter_ = solution.steps
        self._solution, self._map, self._clip_norm = solution, mapping, solution.clip
        self._set_coefficients(*mapping.outward(solution.weights, self.n_features_in_))

    def _set_coefficients(self, coefficients: NDArray[np.float64], intercept: NDArray[np.float64]) -> None:
        self.coef_: NDArray[np.float64] = coefficients
        self.intercept_: Any = intercept

    def restore(
        self, coefficients: NDArray[np.float64], intercept: NDArray[np.float64], clip: float | None = None
    ) -> Any:
        """Make this a fitted model with these coefficients, one row per score, in the user's units, and with the norm
        that its gradients were clipped to, if they were: for files that hold them.
        """
        self._clip_norm = clip
        self.n_features_in_ = coefficients.shape[1]
        self._map = self._mapping(self.n_features_in_)
        single = coefficients.shape[0] == 1 and not hasattr(self, "classes")
        self.coef_, self.intercept_ = (coefficients[0], float(intercept[0])) if single else (coefficients, intercept)
        return self

    def _scores(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        rows = features.table(self, X)
        # what is missing says nothing: the middle of its bounds
        rows = np.where(np.isfinite(rows), rows, self._map.shift)
        within = self._map.inside(rows)  # the model has seen no row outside the bounds: it is asked about none
        return np.asarray(within @ np.atleast_2d(self.coef_).T + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        return tags
