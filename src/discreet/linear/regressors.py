"""Private linear regression: least squares, ridge, lasso, elastic net, or a loss of one's own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.encoding.containers import UnreadColumn
from discreet.errors import extra, nonnegative, number
from discreet.habits import answer_other_names
from discreet.linear.base import Array, PrivateLinearModel, Regularized
from discreet.linear.losses import CustomLoss, Loss, Squared
from discreet.linear.problem import Problem

with extra("sklearn"):
    from sklearn.base import RegressorMixin

_CLOSEST = 1e-288  # of target bounds

__all__ = ["ElasticNet", "Lasso", "LinearRegression", "LinearRegressor", "Ridge"]


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class _Regressor(RegressorMixin, PrivateLinearModel):  # type: ignore[misc]
    """Targets scaled from declared bounds to [-1, 1] and cut there."""

    target_bounds: Any = None

    def _interval(self) -> tuple[float, float]:
        if self.target_bounds is None:
            raise ValueError(
                "target_bounds is None, but must be declared: (lower, upper), between which targets lie and "
                "predictions are cut, such as target_bounds=(0, 99)."
            )
        try:
            low, high = (float(side) for side in self.target_bounds)
        except (TypeError, ValueError):
            low, high = 0.0, 0.0
        if not (np.isfinite(high - low) and np.isfinite(high + low) and high - low >= _CLOSEST):
            raise ValueError(
                f"target_bounds is {self.target_bounds!r}, but must be a pair (lower, upper) of finite numbers, "
                f"the lower one below the upper one by {_CLOSEST:g} or more."
            )
        return low, high

    def _loss(self) -> Loss:
        return Squared()

    def _check_targets(self, y: UnreadColumn) -> None:
        self._interval()
        if y.kind not in ("numbers", "objects"):
            raise ValueError(f"y holds {y.kind}, but must hold real numbers.")

    def _read_targets(self, y: UnreadColumn) -> NDArray[Any]:
        self._check_targets(y)
        (low, high), values = self._interval(), y.floats()  # an odd entry is ignored, not an error: it is private
        usable = np.isfinite(values)
        cut = np.clip(np.where(usable, values, low), low, high)  # first, so that nothing overflows
        return np.where(usable, np.clip((cut - (low + high) / 2) / ((high - low) / 2), -1, 1), np.nan)

    def _problem(self, features: int) -> Problem:
        if self.target_bounds is not None:  # the cost does not depend on them; a fit does
            self._interval()
        return super()._problem(features)

    def _outward(self, coefficients: Array, intercept: Array) -> tuple[Array, Array]:
        low, high = self._interval()
        half = (high - low) / 2
        return coefficients * half, intercept * half + (low + high) / 2

    def _attributes(self, coefficients: Array, intercept: Array) -> dict[str, Any]:
        return {"coef_": coefficients[0], "intercept_": float(intercept[0])}

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The linear function's values, cut to the target bounds, within which every target counted."""
        return np.asarray(np.clip(self._scores(X)[:, 0], *self._interval()))


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegression(Regularized, _Regressor):
    r"""Differentially private least squares, by noisy gradient descent unless another solver is asked for.

    ``target_bounds=(lower, upper)`` is declared, and targets are cut to it; the other parameters and the guarantee are
    as in ``LogisticRegression``. ``regularization`` is the least Λ; what the noise demands is added where it is larger.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2)); y = 3 * X[:, 0] - X[:, 1] + 1
    >>> model = LinearRegression(epsilon=1.0, delta=1e-6, bounds=(-1, 1), target_bounds=(-4, 6), random_state=0)
    >>> model = model.fit(X, y)
    >>> bool(np.abs(model.coef_ - [3, -1]).max() < 0.2), model.solver_
    (True, 'gd')
    """


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class _Penalised(_Regressor):
    """Penalties in units of the scaled problem: rows of norm one, targets in [-1, 1], a sum over records."""

    alpha: float = field(default=1.0, kw_only=False)


class Ridge(_Penalised):
    """Private least squares with the penalty α/2·‖w‖², on a *sum* over records whose rows and targets are scaled to
    one.

    >>> X = np.linspace(-1, 1, 5000)[:, None]
    >>> model = Ridge(alpha=1.0, epsilon=1.0, bounds=(-1, 1), target_bounds=(-1, 1), random_state=0).fit(X, X[:, 0] / 2)
    >>> bool(abs(model.coef_[0] - 0.5) < 0.1)
    True
    """

    def _ridge(self) -> float | None:
        return nonnegative("alpha", self.alpha) or None


class Lasso(_Penalised):
    """Private least squares with the penalty α·‖w‖₁, the intercept's weight included; units as in ``Ridge``.

    >>> X = np.linspace(-1, 1, 5000)[:, None] * [[1.0, 0.0]]
    >>> model = Lasso(alpha=200.0, epsilon=1.0, bounds=(-1, 1), target_bounds=(-1, 1), random_state=0)
    >>> model = model.fit(X, X[:, 0] / 2)
    >>> bool(model.coef_[0] > 0.2), float(model.coef_[1])
    (True, 0.0)
    """

    @property
    def _l1(self) -> float:
        return nonnegative("alpha", self.alpha)


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class ElasticNet(_Penalised):
    """Private least squares with the penalty α·(ρ·‖w‖₁ + (1 - ρ)/2·‖w‖²), ρ = ``l1_ratio``; units as in ``Ridge``."""

    l1_ratio: float = 0.5

    def _ridge(self) -> float | None:
        return nonnegative("alpha", self.alpha) * (1 - number("l1_ratio", self.l1_ratio, low=0, high=1)) or None

    @property
    def _l1(self) -> float:
        return nonnegative("alpha", self.alpha) * number("l1_ratio", self.l1_ratio, low=0, high=1)


@answer_other_names
@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegressor(Regularized, _Regressor):
    """A differentially private linear regressor with a loss of one's own (``losses.CustomLoss``), on targets in [-1,
    1].

    Parameters and guarantee as in ``LinearRegression``; only solvers that clip are offered.
    """

    loss: CustomLoss = field(kw_only=False)

    def _loss(self) -> Loss:
        return self.loss
