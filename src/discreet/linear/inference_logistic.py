r"""Intervals for logistic regression: one private Newton step, and how far it can be trusted.

From a private start ŵ, with a noisy gradient g̃ and a noisy Hessian Ĥ at ŵ, the estimate is

.. math:: w = \hat w - s, \qquad s = \hat H^{-1}\tilde g

Near the truth this has the error of the unpenalised estimator plus that of noise whose law is known: neither the ridge
that a private fit needs nor its clipping biases it. To first order its covariance is

.. math::
    C = \hat H^{-1}\Bigl[\hat H + \sigma_g^2 I + \tfrac{\sigma_H^2}{2}\bigl(\|s\|^2 I + s s^\top\bigr)\Bigr]\hat H^{-1}

by the information equality of a model that holds, and with what noise on a packed Hessian does to the step.

**How far.** What the step needs is the mean of the Hessian between ŵ and the truth w*. The logistic loss is
self-concordant, |φ'''| ≤ φ'', so on rows of norm at most R the Hessian changes by a factor of at most exp(±R‖δ‖) over a
way δ, and its mean by about exp(±R‖δ‖/2). The way is the step and the error that is left, √(‖s‖² + ‖C‖) in length. So Ĥ
is known to

.. math:: u = \frac{2\sigma_H}{\lambda_{\min}(\hat H)} + \frac R2\sqrt{\|s\|^2 + \|C\|}

of that mean, and every interval is widened by 1/(1 - u²) and infinite from u = 1 on (``inference_parts``). An
attenuated start, whose Hessian looks large, thus shows itself by the length of the step it calls for.

The budget is split: the start takes 30 %, the gradient 50 %, the Hessian 20 %.

What is assumed: records are independent, the model holds, and rows lie inside the declared bounds.

References: for one-step estimators, van der Vaart (1998), section 5.7; under privacy, Avella-Medina (2021); for
self-concordance, Bach (2010), Proposition 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet import events, mechanisms, random
from discreet.accounting.gaussian import gaussian_epsilon
from discreet.errors import extra
from discreet.linear import kernels
from discreet.linear.inference_parts import Array, Estimates, shaken, smallest, unknown, widening
from discreet.linear.losses import Logistic
from discreet.linear.problem import Problem, noise_multiplier
from discreet.linear.rows import Map, Records

with extra("sklearn"):
    from sklearn.base import clone

__all__ = ["LogisticIntervals"]

FIT_SHARE, GRADIENT_SHARE, HESSIAN_SHARE = 0.3, 0.5, 0.2  # of 1/σ², in which Gaussian costs add up
STEPS = 256  # of the start: fewer leave it swinging about the minimiser where effects are strong and records many


@dataclass(frozen=True, slots=True)
class LogisticIntervals:
    """A start, then a gradient and a Hessian at it."""

    model: Any
    problem: Problem
    mapping: Map

    @property
    def gradient(self) -> mechanisms.Gaussian:
        """Σ x(p - y), of norm at most R."""
        return self.problem.gaussian(self.problem.norm * (1 + 2.0**-20), self.problem.rho(GRADIENT_SHARE))

    @property
    def hessian(self) -> mechanisms.Gaussian:
        """The packed Σ p(1 - p)xxᵀ, of norm at most R²/4."""
        return self.problem.gaussian(self.problem.square / 4 * (1 + 2.0**-20), self.problem.rho(HESSIAN_SHARE))

    @property
    def start(self) -> Any:
        """The private fit that gives ŵ: the estimator, with a share of its budget."""
        z = noise_multiplier(self.model.epsilon, self.model.delta) / math.sqrt(FIT_SHARE)
        # An epsilon at which the fit's Gaussian noise is z, hence its events those of a Gaussian of multiplier z at
        # most.
        return clone(self.model).set_params(
            epsilon=gaussian_epsilon(noise_multiplier=z, delta=self.model.delta),
            solver="gd",
            solver_options={"clip": self.problem.norm, "steps": STEPS},
        )

    @property
    def event(self) -> events.Event:
        """All three releases."""
        fit: events.Event = self.start.privacy_event(self.problem.features - self.mapping.intercept)
        return fit + self.gradient.event + self.hessian.event

    def solve(self, records: Records, jacobian: Array, rng: random.Rng, rows: Array, targets: Any) -> Estimates:
        """Estimates of ``jacobian`` @ weights."""
        start = self.start.set_params(random_state=rng).fit(rows, targets)._solution.weights
        gradient, hessian = self._release_moments(records, start, rng)
        if not (low := smallest(hessian)):
            return unknown(jacobian @ start[:, 0])
        noise, step = float(self.hessian.sigma or 0.0), np.asarray(np.linalg.solve(hessian, gradient), np.float64)
        inverse = np.asarray(np.linalg.inv(hessian), np.float64)
        gradient_noise = float(self.gradient.sigma or 0.0) ** 2 * np.eye(len(step))
        covariance = inverse @ (hessian + gradient_noise + shaken(noise, step)) @ inverse
        way = math.sqrt(float(step @ step) + float(np.linalg.norm(covariance, 2)))
        wider = widening(2 * noise / low + self.problem.norm / 2 * way)
        estimate = jacobian @ (start[:, 0] - step)
        if wider == math.inf:
            return unknown(estimate)
        covariance = jacobian @ covariance @ jacobian.T * wider**2
        return Estimates(estimate, np.diag(covariance), covariance)

    def _release_moments(self, records: Records, start: Array, rng: random.Rng) -> tuple[Array, Array]:
        """The noisy gradient and Hessian at ``start``."""
        scores, loss, p = kernels.scores(records.rows, start), Logistic(), records.rows.shape[1]
        gradient = kernels.clipped_sum(records.rows, loss.residual(scores, records.targets), self.problem.norm)
        noisy = self.gradient.release(gradient, rng).value[:, 0]
        # each bend is at most a quarter
        bent = records.rows * 2 * np.sqrt(loss.bends(scores, records.targets))[:, None]
        packed = kernels.gram_sum(bent, np.zeros(len(bent)), 1.0, self.problem.square)[:-p] / 4
        return noisy, kernels.unpack_symmetric(self.hessian.release(packed, rng).value, p)
