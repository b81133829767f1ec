r"""Standard errors and confidence intervals for coefficients, that account for the privacy noise as well as for sampling.

One Newton step from a private starting point ŵ, with a noisy gradient g̃ and a noisy Hessian Ĥ at ŵ:

.. math:: w_1 = \hat w - s, \qquad s = \hat H^{-1}\tilde g

Near the truth this has the error of the unpenalised estimator plus that of noise whose law is known: neither the ridge that
a private fit needs nor its clipping biases it. To first order its covariance is

.. math:: \hat H^{-1}\Bigl[V + \sigma_g^2 I + \tfrac{\sigma_H^2}{2}\bigl(\|s\|^2 I + s s^\top\bigr)\Bigr]\hat H^{-1}

where V is the covariance of a gradient at the truth: H itself for a logistic model that holds (the information equality),
σ²H for least squares with independent errors, and the last term is what noise of variance σ_H² on a packed Hessian
does to the step. For least squares ŵ = 0, the step is the whole estimate, and g̃ and Ĥ are the sufficient statistics;
Σy² is released with them for σ².

The budget of the estimator given is split: a fit takes 30 % of it, the gradient 50 %, the Hessian 20 % (least squares: one
release). Where Ĥ cannot be told from its noise the intervals are infinite, which is a function of released numbers.

Intervals hold for rows that the declared bounds do not cut; a cut row is another row. Coverage is measured in the tests.

Reference: for one-step estimators, van der Vaart (1998), section 5.7; under privacy, Avella-Medina (2021).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from discreet import events, mechanisms, random
from discreet.accounting.gaussian import gaussian_epsilon
from discreet.errors import extra, number
from discreet.linear import kernels, reading
from discreet.linear.base import source
from discreet.linear.classifiers import LogisticRegression
from discreet.linear.problem import Problem, noise_multiplier
from discreet.linear.regressors import LinearRegression
from discreet.linear.rows import Map, Records
from discreet.release import Book, unit_name

with extra("sklearn"):
    from sklearn.base import clone

__all__ = ["Coefficients", "coefficients", "privacy_event"]

FIT_SHARE, GRADIENT_SHARE, HESSIAN_SHARE = 0.3, 0.5, 0.2  # of 1/σ², in which Gaussian costs add up
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Estimates of the coefficients and, last, the intercept, with their errors; what it all cost."""

    estimate: Array
    standard_error: Array
    lower: Array
    upper: Array
    confidence: float
    event: events.Event
    reproducible: bool = False


@dataclass(frozen=True, slots=True)
class _Plan:
    """The noise of each release, from public facts."""

    model: Any
    features: int

    @property
    def mapping(self) -> Map:
        mapping: Map = self.model._mapping(self.features)
        return mapping

    @property
    def squares(self) -> bool:
        return isinstance(self.model, LinearRegression)

    def _gaussian(self, sensitivity: float, share: float) -> mechanisms.Gaussian:
        problem: Problem = self.model._problem(self.features)
        return problem.gaussian(sensitivity * (1 + 2.0**-20), problem.rho(share))

    @property
    def statistics(self) -> mechanisms.Gaussian:
        """Σxxᵀ and R·Σxy, of norm √2·R² together, and R²·Σy² beside them."""
        return self._gaussian(math.sqrt(3) * self.mapping.square, 1.0)

    @property
    def gradient(self) -> mechanisms.Gaussian:
        return self._gaussian(math.sqrt(self.mapping.square), GRADIENT_SHARE)

    @property
    def hessian(self) -> mechanisms.Gaussian:
        return self._gaussian(self.mapping.square / 4, HESSIAN_SHARE)

    @property
    def start(self) -> Any:
        """The private fit that gives ŵ: the estimator, with a share of its budget."""
        z = noise_multiplier(self.model.epsilon, self.model.delta) / math.sqrt(FIT_SHARE)
        # An epsilon at which the fit's Gaussian noise is z, hence its events those of a Gaussian of multiplier z at most.
        return clone(self.model).set_params(epsilon=gaussian_epsilon(noise_multiplier=z, delta=self.model.delta),
                                            solver="gd", solver_options={"clip": math.sqrt(self.mapping.square)})

    @property
    def event(self) -> events.Event:
        if self.squares:
            return self.statistics.event
        fit: events.Event = self.start.privacy_event(self.features)
        return fit + self.gradient.event + self.hessian.event


def privacy_event(model: Any, n_features: int) -> events.Event:
    """What ``coefficients`` will cost, from public facts alone."""
    _check(model)
    return _Plan(model, n_features).event


def coefficients(model: Any, X: Any, y: Any, *, confidence: float = 0.95, book: Book | None = None) -> Coefficients:
    """Private estimates with confidence intervals, for the budget and the public facts of an unfitted estimator.

    ``model`` is a ``LogisticRegression`` of two classes or a ``LinearRegression``, with ``delta`` above 0.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2)); y = X[:, 0] / 2 + rng.uniform(-0.2, 0.2, size=20_000)
    >>> found = coefficients(LinearRegression(epsilon=1.0, delta=1e-6, bounds=(-1, 1), random_state=0), X, y)
    >>> bool(found.lower[0] < 0.5 < found.upper[0]), bool(found.lower[1] < 0 < found.upper[1])
    (True, True)
    """
    _check(model)
    level = number("confidence", confidence, low=0, high=1, open_low=True, open_high=True)
    probe = clone(model)
    rows = reading.table(probe, X, reset=True)
    targets, plan, rng = reading.column(y, len(rows)), _Plan(model, rows.shape[1]), source(model.random_state)
    if book is not None:
        book.charge(plan.event, label=f"inference for {type(model).__name__}", unit=unit_name(model.unit))
    read, usable = probe._read_targets(targets)
    records = plan.mapping.records(rows, read, usable)
    weights, covariance = _least_squares(plan, records, rng) if plan.squares else _logistic(plan, records, rows, targets, rng)
    return _outward(plan, weights, covariance, level, rng)


def _check(model: Any) -> None:
    if not isinstance(model, (LogisticRegression, LinearRegression)) or model.delta == 0:
        raise ValueError("model must be a LogisticRegression or a LinearRegression with a delta above 0: for other models no "
                         "interval is proved.")
    if isinstance(model, LogisticRegression) and len(model._declared()) != 2:
        raise ValueError("model has more than two classes, but intervals are written for two.")


def _least_squares(plan: _Plan, records: Records, rng: random.Rng) -> tuple[Array, Array]:
    square, p = plan.mapping.square, records.rows.shape[1]
    mechanism, norm = plan.statistics, math.sqrt(square)
    packed = kernels.gram_sum(records.rows, records.targets, norm, math.sqrt(3) * square)
    step = kernels.grid_step(square)
    own = kernels.exact(np.array([(records.targets**2 * square / step).astype(np.int64).sum()]), step)
    released = mechanism.release(np.concatenate([packed, own]), rng).value
    hessian, vector, sigma = kernels.unpacked(released[:-p - 1], p), released[-p - 1:-1] / norm, float(mechanism.sigma or 0.0)
    weights = _solve(hessian, vector, sigma)
    # The intercept's corner counts the records; without an intercept the trace bounds the count from below.
    size = max(hessian[-1, -1] if plan.mapping.intercept else float(np.trace(hessian)), 1.0)
    residual = released[-1] / square - 2 * weights @ vector + weights @ hessian @ weights
    variance = max(float(residual), 0.0) / size
    return weights, _covariance(hessian, variance * hessian, sigma / norm, sigma, weights)


def _logistic(plan: _Plan, records: Records, rows: Array, targets: Any, rng: random.Rng) -> tuple[Array, Array]:
    start = plan.start.set_params(random_state=rng).fit(rows, targets)._solution.weights
    p = records.rows.shape[1]
    scores, loss = kernels.scores(records.rows, start), plan.model._loss()
    gradient = kernels.clipped_sum(records.rows, loss.residual(scores, records.targets), math.sqrt(plan.mapping.square))
    noisy = plan.gradient.release(gradient, rng).value[:, 0]
    bent = records.rows * 2 * np.sqrt(loss.bends(scores, records.targets))[:, None]  # each bend is at most a quarter
    packed = kernels.gram_sum(bent, np.zeros(len(bent)), 1.0, plan.mapping.square)[:-p] / 4
    hessian = kernels.unpacked(plan.hessian.release(packed, rng).value, p)
    sigma = float(plan.hessian.sigma or 0.0)
    step = _solve(hessian, noisy, sigma)
    return start[:, 0] - step, _covariance(hessian, hessian, float(plan.gradient.sigma or 0.0), sigma, step)


def _solve(hessian: Array, vector: Array, sigma: float) -> Array:
    return np.asarray(np.linalg.solve(hessian, vector)) if _clear(hessian, sigma) else np.zeros_like(vector)


def _clear(hessian: Array, sigma: float) -> bool:
    """Whether the smallest eigenvalue stands above the noise, whose norm is about σ√(2p)."""
    return float(np.linalg.eigvalsh(hessian)[0]) > 1.5 * sigma * math.sqrt(2 * len(hessian))


def _covariance(hessian: Array, sampling: Array, gradient_sigma: float, hessian_sigma: float, step: Array) -> Array:
    p = len(step)
    if not _clear(hessian, hessian_sigma):
        return np.full((p, p), np.inf)
    shaken = hessian_sigma**2 / 2 * ((step @ step) * np.eye(p) + np.outer(step, step))
    inverse = np.linalg.inv(hessian)
    return np.asarray(inverse @ (sampling + gradient_sigma**2 * np.eye(p) + shaken) @ inverse)


def _outward(plan: _Plan, weights: Array, covariance: Array, confidence: float, rng: random.Rng) -> Coefficients:
    """From the unit ball's units to the user's: a linear map J, so J·covariance·Jᵀ."""
    mapping, d = plan.mapping, plan.features
    shrink = 1 / (mapping.norm * np.broadcast_to(mapping.scale, (d,)))
    jacobian = np.zeros((d + 1, len(weights)))
    jacobian[:d, :d] = np.diag(shrink)
    jacobian[d, :d] = -np.broadcast_to(mapping.shift, (d,)) * shrink
    if mapping.intercept:
        jacobian[d, d] = 1.0
    known = np.isfinite(covariance).all()
    variances = np.diag(jacobian @ covariance @ jacobian.T) if known else np.full(d + 1, np.inf)
    estimate, error = jacobian @ weights, np.sqrt(variances)
    if plan.squares:
        low, high = plan.model._interval()
        estimate, error = estimate * (high - low) / 2, error * (high - low) / 2
        estimate[d] += (low + high) / 2
    reach = float(ndtri((1 + confidence) / 2)) * error
    return Coefficients(estimate, error, estimate - reach, estimate + reach, confidence, plan.event, rng.reproducible)
