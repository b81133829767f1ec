r"""Intervals of regressions by one private Newton step in whitened coordinates, and how far it can be trusted.

1. Σxxᵀ, noisy, whitens the rows (``inference_whitening``): after it noise of one size suits every direction.
2. A start ŵ: a few Newton steps, each with a noisy gradient and Hessian.
3. The last step, s = Ĥ⁻¹g̃ with the noisy gradient g̃ and Hessian Ĥ at ŵ; the estimate is ŵ - s. Near the truth it has
   the error of the (weighted) estimator without privacy plus that of noise whose law is known.
4. For models whose variance is not that of their mean, the noisy sandwich M = Σr²s⁴x̃x̃ᵀ at ŵ, r the residuals.

With a = Ĥ⁻¹c the error of c·w is a·(score + f - E(ŵ - w*)), f and E the noise of gradient and Hessian. Its variance is,
to first order,

.. math:: a^\top\Bigl[M + \sigma_g^2 I + \tfrac{\sigma_H^2}{2}\bigl(\|s\|^2 I + ss^\top\bigr)\Bigr]a.

Where a model says its own variances, M = Ĥ (records of smaller weight have less: it is no smaller than the truth).
Otherwise no variance of an error is supposed (White 1980; HC0): a·Ma is known up to noise of deviation σ_M‖a‖², 0.35
of which is added, and the sum taken as at least 0. An interval from a variance that is sometimes too low, sometimes too
high, covers too seldom, and this makes up for it where σ_M‖a‖² is at most the rest (95 % stays above 94.7 %; at 1.5
times, 94 %).

**How far.** Ĥ is known to u = κσ_H/λ_min(Ĥ) of itself. Where the curvature depends on the weights it also changes on
the way δ from ŵ to the truth, by a factor of exp(±|x̃·δ|) for one record (|φ'''| ≤ φ''), and its mean by half of that.
In whitened coordinates x̃·δ has a mean square of about ‖δ‖², and a normal x̃ has fourth moments of 3, so that the change
of the score is at most √3/2·‖δ‖ of itself (Cauchy and Schwarz); the way is the step and the error that is left. Every
interval is widened by 1/(1 - u²), u the sum of both, and infinite from u = 1 on (``inference_parts``).

What is assumed: records are independent; the mean is that of the model at every x; rows lie inside the declared bounds
(one that is cut is another record), and for least squares targets and line inside theirs.

References: for one-step estimators, van der Vaart (1998), section 5.7; under privacy, Avella-Medina (2021); White
(1980); for noise on a cross product, Sheffet (2017); for self-concordance, Bach (2010), Proposition 1.

Decision 388.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet import events, mechanisms, random
from discreet.linear import kernels
from discreet.linear.inference_families import Bounds, Family
from discreet.linear.inference_parts import Array, Estimates, positive_part, shaken, smallest, unknown, widening
from discreet.linear.inference_whitening import Whitened, Whitening
from discreet.linear.problem import Problem

__all__ = ["OneStep"]

SAFE = {False: 3.5, True: 2.0}  # κ: deviations of the noise on Ĥ that λ_min has to exceed; see decisions 380 and 109
SPARE = 0.35  # deviations of the noise on the sandwich that are added
_WAY = math.sqrt(3) / 2
_LONGEST = 4.0  # of a step of the start, in whitened coordinates
_EDGE = 1 + 2.0**-20  # what rounding may add to a sensitivity of 1


@dataclass(frozen=True, slots=True)
class OneStep:
    """The releases of a start and of one Newton step, and what they say."""

    problem: Problem
    family: Family
    intercept: bool

    def _noise(self, share: float, sensitivity: float = 1.0) -> mechanisms.Gaussian:
        return self.problem.gaussian(sensitivity * _EDGE, self.problem.rho(share))

    @property
    def _moments(self) -> mechanisms.Gaussian:
        """Of the packed Σxxᵀ, of norm at most R²."""
        return self._noise(self.family.shares.moments, self.problem.square)

    @property
    def _start(self) -> tuple[mechanisms.Gaussian, mechanisms.Gaussian]:
        """Of the gradient and of the Hessian of a step of the start, each of norm at most 1."""
        shares = self.family.shares
        each = shares.start / shares.steps
        if not self.family.changes_slope:  # the whitening's own matrix serves
            return self._noise(each), self._noise(each)
        return self._noise(0.7 * each), self._noise(0.3 * each)

    @property
    def _last(self) -> tuple[mechanisms.Gaussian, mechanisms.Gaussian]:
        """Of the last step's."""
        return self._noise(self.family.shares.gradient), self._noise(self.family.shares.hessian)

    @property
    def event(self) -> events.Event:
        """All releases."""
        shares, (gradient, hessian) = self.family.shares, self._start
        step = gradient.event + hessian.event if self.family.changes_slope else gradient.event
        found: events.Event = self._moments.event + step * shares.steps
        for mechanism in self._last:
            found = found + mechanism.event
        return found + self._noise(shares.sandwich).event if shares.sandwich else found

    def solve(self, rows: Array, targets: Array, jacobian: Array, rng: random.Rng) -> Estimates:
        """Estimates of ``jacobian`` @ weights, of rows with norm at most R."""
        whitening, matrix = self._whiten(rows, rng)
        white, radius = whitening(rows), whitening.radius
        jacobian = jacobian @ whitening.transform.T
        weights = self._find_start(white, targets, radius, matrix, rng)
        reach = self.family.bounds(self._largest_score(weights, whitening)).reach
        gradient, hessian, noise = self._release(white, targets, weights, radius, reach, self._last, rng)
        meat, spread = self._release_sandwich(white, targets, weights, radius, reach, rng)
        if not (low := smallest(hessian)):
            return unknown(jacobian @ weights)
        step, inverse = np.linalg.solve(hessian, gradient), np.linalg.inv(hessian)
        estimate, a = jacobian @ (weights - step), inverse @ jacobian.T  # a column for each coefficient
        u = SAFE[self.family.changes_slope] * noise[1] / low
        # what is left of the error lengthens the way
        known = noise[0] ** 2 * np.eye(len(step)) + shaken(noise[1], step)
        cautious = hessian if meat is None else meat + SPARE * spread * np.eye(len(step))
        if self.family.changes_slope:
            left = np.linalg.norm(inverse @ (known + positive_part(cautious)) @ inverse, 2)
            u += _WAY * math.sqrt(float(step @ step) + float(left))
        wider = widening(u)
        if wider == math.inf:
            return unknown(estimate)
        variances = (_forms(a, known) + np.maximum(_forms(a, cautious), 0.0)) * wider**2
        covariance = a.T @ (known + positive_part(cautious)) @ a * wider**2
        r_squared = self._r_squared(whitening.transform, hessian, weights - step, meat)
        return Estimates(estimate, variances, covariance, r_squared)

    def _whiten(self, rows: Array, rng: random.Rng) -> tuple[Whitening, Array]:
        """The whitening, and about Σx̃x̃ᵀ, from a noisy Σxxᵀ."""
        mechanism, p = self._moments, rows.shape[1]
        packed = kernels.gram_sum(rows, np.zeros(len(rows)), 1.0, self.problem.square)[:-p]
        moments = kernels.unpack_symmetric(mechanism.release(packed, rng).value, p)
        size = float(moments[-1, -1] if self.intercept else np.trace(moments))  # rows have norm at most 1 without it
        last = self._last[0]
        multiplier = mechanism_scale(last)
        whitening = Whitening.of(moments, float(mechanism.sigma or 0.0), size, multiplier)
        matrix = whitening.transform @ moments @ whitening.transform.T
        return whitening, positive_part(matrix) + np.eye(p) * max(size, 1.0) / 4

    def _find_start(self, white: Whitened, targets: Array, radius: float, matrix: Array, rng: random.Rng) -> Array:
        weights = np.zeros(white.rows.shape[1])
        for _ in range(self.family.shares.steps):
            reach = self.family.bounds(0.0 if not weights.any() else math.inf).reach
            gradient, hessian, noise = self._release(white, targets, weights, radius, reach, self._start, rng, matrix)
            values, vectors = np.linalg.eigh(hessian)
            bent = np.maximum(values, max(2.0 * noise[1], 1e-300))
            step = vectors @ ((vectors.T @ gradient) / bent)
            weights = weights - step * min(1.0, _LONGEST / max(float(np.linalg.norm(step)), 1e-300))
        return np.asarray(weights, np.float64)

    def _release(
        self,
        white: Whitened,
        targets: Array,
        weights: Array,
        radius: float,
        reach: float,
        noises: tuple[mechanisms.Gaussian, mechanisms.Gaussian],
        rng: random.Rng,
        matrix: Array | None = None,
    ) -> tuple[Array, Array, tuple[float, float]]:
        """Noisy gradient and Hessian of the whitened rows, and the deviations of their noise."""
        bounds, p = Bounds(reach, self.family.bounds(0.0).bend), len(weights)
        residuals, curvatures = self._terms(white, targets, weights)
        shares = np.clip(residuals * white.shrink / bounds.reach, -1, 1)
        gradient = kernels.clipped_sum(white.inside, shares[:, None], 1.0)
        scale = radius * bounds.reach
        noisy = noises[0].release(gradient, rng).value[:, 0] * scale
        first = float(noises[0].sigma or 0.0) * scale
        if matrix is not None and not self.family.changes_slope:
            return noisy, matrix, (first, 0.0)
        bent = white.inside * np.sqrt(np.clip(curvatures / bounds.bend, 0, 1))[:, None]
        packed = kernels.gram_sum(bent, np.zeros(len(bent)), 1.0, 1.0)[:-p]
        scale = radius**2 * bounds.bend
        hessian = kernels.unpack_symmetric(noises[1].release(packed, rng).value, p) * scale
        return noisy, hessian, (first, float(noises[1].sigma or 0.0) * scale)

    def _release_sandwich(
        self, white: Whitened, targets: Array, weights: Array, radius: float, reach: float, rng: random.Rng
    ) -> tuple[Array | None, float]:
        """Σr²s⁴x̃x̃ᵀ with noise, and the deviation of that."""
        if not self.family.shares.sandwich:
            return None, 0.0
        mechanism, p = self._noise(self.family.shares.sandwich), len(weights)
        residuals, _ = self._terms(white, targets, weights)
        shares = np.clip(residuals * white.shrink / reach, -1, 1)
        packed = kernels.gram_sum(white.inside * shares[:, None], np.zeros(len(shares)), 1.0, 1.0)[:-p]
        scale = (radius * reach) ** 2
        meat = kernels.unpack_symmetric(mechanism.release(packed, rng).value, p) * scale
        return meat, float(mechanism.sigma or 0.0) * scale

    def _terms(self, white: Whitened, targets: Array, weights: Array) -> tuple[Array, Array]:
        scores = kernels.scores(white.rows, np.ascontiguousarray(weights[:, None]))[:, 0]
        return self.family.terms(scores, targets)

    def _largest_score(self, weights: Array, whitening: Whitening) -> float:
        """What |x·w| cannot exceed for a row inside the unit ball, with its column of ones."""
        inward = whitening.transform.T @ weights
        slopes = inward[:-1] if self.intercept else inward
        return float(np.linalg.norm(slopes)) + (abs(float(inward[-1])) if self.intercept else 0.0)

    def _r_squared(self, transform: Array, hessian: Array, weights: Array, meat: Array | None) -> float:
        """1 - SSE / SST: SSE is in the sandwich, in the direction of the column of ones, and the rest of SST in the
        Hessian, since the residuals of least squares are orthogonal to the line.
        """
        if not self.intercept or meat is None or self.family.changes_slope:
            return math.nan
        ones = np.linalg.solve(transform.T, np.eye(len(weights))[-1])  # ones·x̃ is 1 in every row
        size, total = float(ones @ hessian @ ones), float(ones @ hessian @ weights)
        explained = float(weights @ hessian @ weights) - total**2 / max(size, 1.0)
        left = max(float(ones @ meat @ ones), 0.0)
        return float(np.clip(explained / max(explained + left, 1e-300), 0.0, 1.0))


def mechanism_scale(mechanism: mechanisms.Gaussian) -> float:
    """The noise multiplier."""
    return float(mechanism.sigma or 0.0) / mechanism.sensitivity


def _forms(a: Array, matrix: Array) -> Array:
    """aᵀ·matrix·a of each column."""
    return np.asarray(np.einsum("ij,ik,kj->j", a, matrix, a))
