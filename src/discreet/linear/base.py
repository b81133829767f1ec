"""What all estimators share: public facts in, a plan with its event, and one ``fit`` that charges before it reads."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.adjacency import Adjacency
from discreet.errors import extra
from discreet.linear import reading, solvers
from discreet.linear.losses import Loss
from discreet.linear.problem import Problem, Solution
from discreet.linear.rows import Map, declared_features
from discreet.release import ONE_RECORD, Book, unit_name

with extra("sklearn"):
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted

__all__ = ["PrivateLinearModel", "source"]

_UNDECLARED = ("Neither feature_norm nor bounds is declared: every row longer than 1 (L2) is shrunk to length 1. Declare "
               "feature_norm=, the length of a typical row, or bounds=(lower, upper) of the features.")


def source(random_state: Any) -> random.Rng:
    """The source a ``random_state`` means: none is the operating system's, a seed or a generator is reproducible."""
    if random_state is None or isinstance(random_state, random.Rng):
        return random.as_rng(random_state)
    if isinstance(random_state, Integral):
        return random.seeded(int(random_state))
    if isinstance(random_state, np.random.RandomState):
        return random.seeded(int(random_state.randint(2**31 - 1)))
    if isinstance(random_state, np.random.Generator):
        return random.seeded(int(random_state.integers(2**63 - 1)))
    raise ValueError(f"random_state is a {type(random_state).__name__}, but must be None, a whole number or a NumPy generator.")


class _Plan(NamedTuple):
    """The solver that will run, its name, and why it."""

    solver: Any
    name: str
    reason: str


class PrivateLinearModel(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; a subclass says what its loss is and how it reads targets."""

    _l1: float = 0.0

    def __init__(self, *, epsilon: float = 1.0, delta: float = 1e-6, feature_norm: float | None = None, bounds: Any = None,
                 regularization: float | None = None, solver: str = "auto", solver_options: dict[str, Any] | None = None,
                 fit_intercept: bool = True, dataset_size: int | None = None, adjacency: str = "add-remove",
                 unit: str = ONE_RECORD, random_state: Any = None) -> None:
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

    def _loss(self) -> Loss:
        raise NotImplementedError

    def _check_targets(self, y: reading.Column) -> None:
        """Refuse targets whose type is not what was declared; no value is looked at."""
        raise NotImplementedError

    def _read_targets(self, y: reading.Column) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Class numbers or scaled targets, and which are usable."""
        raise NotImplementedError

    def _ridge(self) -> float | None:
        return self.regularization

    # --- public facts --------------------------------------------------------------------------------------------

    def privacy_event(self, n_features: int | None = None) -> events.Event:
        """What ``fit`` will cost, from public facts alone: nothing is read, nothing is charged.

        ``n_features`` is the number of columns; it is needed only where it cannot be known otherwise (``bounds`` with one
        entry a feature, or an estimator that was fitted).
        """
        event: events.Event = self._plan(self._known_features(n_features)).solver.event
        return event

    def _known_features(self, n_features: int | None) -> int:
        if n_features is not None:
            return n_features
        if hasattr(self, "n_features_in_"):
            return int(self.n_features_in_)
        if (declared := declared_features(self.bounds)) is not None:
            return declared
        if self.delta and (self.solver in ("gd", "sgd", "svrg") or
                           (self.solver == "auto" and self._loss().name != "squared")):
            return 1  # their cost does not depend on it
        raise ValueError("n_features is None, but this solver's cost depends on the number of columns: pass it.")

    def _mapping(self, features: int) -> Map:
        return Map.declared(self.feature_norm, self.bounds, features, bool(self.fit_intercept))

    def _problem(self, features: int) -> Problem:
        return Problem(loss=self._loss(), epsilon=self.epsilon, delta=self.delta, square=self._mapping(features).square,
                       features=features + bool(self.fit_intercept), regularization=self._ridge(), l1=self._l1,
                       size=self.dataset_size, adjacency=Adjacency(self.adjacency))

    def _plan(self, features: int) -> _Plan:
        problem = self._problem(features)
        name, reason = solvers.choose(problem) if self.solver == "auto" else (self.solver, "asked for")
        return _Plan(solvers.make(name, problem, dict(self.solver_options or {})), name, reason)

    # --- fitting -------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, *, book: Book | None = None) -> Any:
        """Fit privately. ``book`` is charged before a value is read; what ``fit`` then does cannot cost more.

        The charge protects ``unit``: one record, or whom each row is all of, on the caller's word.

        Records with a feature that is not finite, or with a target outside what was declared, contribute nothing.
        """
        table = reading.held(self, X, declared=declared_features(self.bounds))
        targets = reading.column(y, len(table))
        self._check_targets(targets)
        plan, mapping = self._plan(table.columns), self._mapping(table.columns)
        rng, unit = source(self.random_state), unit_name(self.unit)
        if self.feature_norm is None and self.bounds is None:
            warnings.warn(_UNDECLARED, UserWarning, stacklevel=2)
        if book is not None:
            book.charge(plan.solver.event, label=type(self).__name__, unit=unit)
        read, usable = self._read_targets(targets)
        solution = plan.solver.solve(mapping.records(table.read(), read, usable), rng)
        self._learn(plan, mapping, solution, rng)
        return self

    def _learn(self, plan: _Plan, mapping: Map, solution: Solution, rng: random.Rng) -> None:
        self.event_: events.Event = plan.solver.event
        self.adjacency_ = Adjacency(self.adjacency)
        self.solver_, self.solver_reason_ = plan.name, plan.reason
        self.regularization_ = solution.regularization
        self.reproducible_ = rng.reproducible
        self.n_iter_ = int(getattr(plan.solver, "steps", 1))
        self._solution, self._map = solution, mapping
        self._set_coefficients(*mapping.outward(solution.weights, self.n_features_in_))

    def _set_coefficients(self, coefficients: NDArray[np.float64], intercept: NDArray[np.float64]) -> None:
        self.coef_: NDArray[np.float64] = coefficients
        self.intercept_: Any = intercept

    def restore(self, coefficients: NDArray[np.float64], intercept: NDArray[np.float64]) -> Any:
        """Make this a fitted model with these coefficients, one row a score, in the user's units: for files that hold them."""
        self.n_features_in_ = coefficients.shape[1]
        self._map = self._mapping(self.n_features_in_)
        single = coefficients.shape[0] == 1 and not hasattr(self, "classes")
        self.coef_, self.intercept_ = (coefficients[0], float(intercept[0])) if single else (coefficients, intercept)
        return self

    def _scores(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        rows = reading.table(self, X, reset=False)
        rows = np.where(np.isfinite(rows), rows, self._map.shift)  # what is missing says nothing: the middle of its bounds
        within = self._map.inside(rows)  # the model has seen no row outside the bounds: it is asked about none
        return np.asarray(within @ np.atleast_2d(self.coef_).T + self.intercept_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

