"""What all linear models share: public facts in, a solver with its event, coefficients out."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from discreet import events, random
from discreet.encoding import features
from discreet.encoding.bounds import declared_features
from discreet.errors import extra
from discreet.fitting import FitPlan, PrivateEstimator
from discreet.habits import answer_other_names
from discreet.linear import solvers
from discreet.linear.losses import Loss
from discreet.linear.problem import Problem
from discreet.linear.rows import Map
from discreet.linear.solvers import Solver

with extra("sklearn"):
    from sklearn.utils.validation import check_is_fitted

__all__ = ["PrivateLinearModel", "Regularized"]

Array = NDArray[np.float64]
_UNDECLARED = (
    "Neither feature_norm nor bounds is declared: every row longer than 1 (L2) is shrunk to length 1. Declare "
    "feature_norm=, the length of a typical row, or bounds=[(low, high), ...], a pair for each feature. A record with "
    "an entry that is no number does not count, so with a column of text none does: encode it by public categories."
)


class _SolverChoice(NamedTuple):
    """The solver that will run, its name, and why it."""

    solver: Solver
    name: str
    reason: str


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLinearModel(PrivateEstimator):
    """Base of the linear models; a subclass says what its loss is and how it reads targets."""

    feature_norm: float | None = None
    solver: str = "auto"
    solver_options: dict[str, Any] | None = None
    fit_intercept: bool = True
    dataset_size: int | None = None

    # --- what a subclass says ------------------------------------------------------------------------------------

    @abstractmethod
    def _loss(self) -> Loss:
        """What is minimised."""

    def _ridge(self) -> float | None:
        """Λ; none: the solver's own."""
        return None

    @property
    def _l1(self) -> float:
        """α, of the L1 penalty."""
        return 0.0

    def _outward(self, coefficients: Array, intercept: Array) -> tuple[Array, Array]:
        """Coefficients, one row per score, in the units of the targets."""
        return coefficients, intercept

    def _attributes(self, coefficients: Array, intercept: Array) -> dict[str, Any]:
        """What a fitted model shows of them."""
        return {"coef_": coefficients, "intercept_": intercept}

    def _warn(self) -> None:
        if self.feature_norm is None and self.bounds is None:
            warnings.warn(_UNDECLARED, UserWarning, stacklevel=5)

    # --- public facts --------------------------------------------------------------------------------------------

    def _known_features(self, n_features: int | None) -> int:
        known = n_features or getattr(self, "n_features_in_", None) or declared_features(self.bounds)
        return super()._known_features(known or (None if self._cost_needs_features else 1))

    @property
    def _cost_needs_features(self) -> bool:
        descends = self.solver in ("gd", "sgd", "svrg")
        descends |= self.solver == "auto" and not (self._l1 and self._loss().name == "squared")
        return not (self.delta and descends)

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
            adjacency=self._adjacency,
        )

    def _choice(self, features: int) -> _SolverChoice:
        problem = self._problem(features)
        name, reason = solvers.choose(problem) if self.solver == "auto" else (self.solver, "asked for")
        return _SolverChoice(solvers.make(name, problem, dict(self.solver_options or {})), name, reason)

    def _plan(self, features: int) -> FitPlan:
        return _LinearPlan(self, self._choice(features), self._mapping(features))

    # --- what is learnt ------------------------------------------------------------------------------------------

    def restore(self, coefficients: Array, intercept: Array, clip: float | None = None) -> Any:
        """Make this a fitted model with these coefficients, one row per score, in the user's units, and with the norm
        that its gradients were clipped to, if they were: for files that hold them.
        """
        self.n_features_in_ = coefficients.shape[1]
        self._map, self._clip_norm = self._mapping(self.n_features_in_), clip
        for name, value in self._attributes(coefficients, intercept).items():
            setattr(self, name, value)
        return self

    def _scores(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        rows = features.table(self, X)
        # what is missing says nothing: the middle of its bounds
        rows = np.where(np.isfinite(rows), rows, self._map.shift)
        within = self._map.inside(rows)  # the model has seen no row outside the bounds: it is asked about none
        return np.asarray(within @ np.atleast_2d(self.coef_).T + self.intercept_)


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class Regularized(PrivateLinearModel):
    """A model whose Λ may be declared; others have a penalty of their own."""

    regularization: float | None = None

    def _ridge(self) -> float | None:
        return self.regularization


@dataclass(frozen=True)
class _LinearPlan(FitPlan):
    """A solver for rows that ``mapping`` has brought into the unit ball."""

    model: PrivateLinearModel
    choice: _SolverChoice
    mapping: Map

    @property
    def event(self) -> events.Event:
        return self.choice.solver.event

    def learn(self, rows: Array, targets: NDArray[Any], rng: random.Rng) -> Mapping[str, Any]:
        solution = self.choice.solver.solve(self.mapping.records(rows, targets), rng)
        outward = self.model._outward(*self.mapping.outward(solution.weights, rows.shape[1]))
        return {
            "adjacency_": self.model._adjacency,
            "solver_": self.choice.name,
            "solver_reason_": self.choice.reason,
            "regularization_": solution.regularization,
            "n_iter_": solution.steps,
            "_solution": solution,
            "_map": self.mapping,
            "_clip_norm": solution.clip,
            **self.model._attributes(*outward),
        }
