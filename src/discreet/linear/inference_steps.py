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

Decisions 108 and 388.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from discreet import events, mechanisms, random
from discreet.linear import kernels
from discreet.linear.inference_families import Family
from discreet.linear.inference_parts import Array, Estimates, positive_part, shaken, smallest, unknown, widening
from discreet.linear.inference_whitening import Whitened, Whitening
from discreet.linear.problem import Problem

__all__ = ["EDGE", "OneStep", "StepSums", "conclude", "deviation", "find_start", "release_products"]

SAFE = {False: 3.5, True: 2.0}  # κ: deviations of the noise on Ĥ that λ_min has to exceed; see decisions 380 and 109
SPARE = 0.35  # deviations of the noise on the sandwich that are added
_WAY = math.sqrt(3) / 2
USUAL = 1.0  # a weight in whitened coordinates, of which the start is the mean given what is known
LONGEST = 4.0  # of a step of the start
EDGE = 1 + 2.0**-20  # what rounding may add to a sensitivity of 1


class StepSums(NamedTuple):
    """Released sums in whitened coordinates, and the deviations of their noise."""

    gradient: Array
    gradient_noise: float
    hessian: Array
    hessian_noise: float
    sandwich: Array
    sandwich_noise: float


Releasing = Callable[
    [Array, mechanisms.Gaussian, mechanisms.Gaussian | None, mechanisms.Gaussian | None, random.Rng], StepSums
]
"""What releases the sums at weights with the noise of gradient, Hessian and sandwich."""


def find_start(
    release: Releasing,
    noises: Iterable[tuple[mechanisms.Gaussian, mechanisms.Gaussian | None]],
    weights: Array,
    matrix: Array,
    least: float,
    rng: random.Rng,
) -> Array:
    """A few steps from ``weights``, each the mean of what is unknown given its noisy gradient, were weights of a usual
    size. ``matrix`` stands for a Hessian that is not released; no curvature is taken to be below ``least``.
    """
    for gradient, hessian in noises:
        sums = release(weights, gradient, hessian, None, rng)
        values, vectors = np.linalg.eigh(matrix if hessian is None else sums.hessian)
        bent = np.maximum(values, max(2 * sums.hessian_noise, least))
        filtered = bent / (bent**2 + (sums.gradient_noise / USUAL) ** 2)
        step = vectors @ ((vectors.T @ sums.gradient) * filtered)
        weights = weights - step * min(1.0, LONGEST / max(float(np.linalg.norm(step)), 1e-300))
    return np.asarray(weights, np.float64)


def conclude(
    last: StepSums, start: Array, jacobian: Array, *, robust: bool, slope: bool, way: float = _WAY
) -> Estimates:
    """Estimates of ``jacobian`` @ weights by the last step. ``robust``: with the sandwich; ``slope``: the curvature
    depends on the weights, by at most ``way`` of itself for a way of length 1.
    """
    if not (low := smallest(last.hessian)):
        return unknown(jacobian @ start)
    step = np.asarray(np.linalg.solve(last.hessian, last.gradient), np.float64)
    inverse = np.asarray(np.linalg.inv(last.hessian), np.float64)
    known = last.gradient_noise**2 * np.eye(len(step)) + shaken(last.hessian_noise, step)
    meat = last.sandwich + SPARE * last.sandwich_noise * np.eye(len(step)) if robust else last.hessian
    whole = known + positive_part(meat)
    u = SAFE[slope] * last.hessian_noise / low
    if slope:
        left = float(np.linalg.norm(inverse @ whole @ inverse, 2))
        u = math.hypot(u, way * math.sqrt(float(step @ step) + left))
    wider, estimate = widening(u), jacobian @ (start - step)
    if wider == math.inf:
        return unknown(estimate)
    a = inverse @ jacobian.T  # a column for each coefficient
    variances = (_forms(a, known) + np.maximum(_forms(a, meat), 0.0)) * wider**2
    return Estimates(estimate, variances, a.T @ whole @ a * wider**2)


@dataclass(frozen=True, slots=True)
class OneStep:
    """The releases of a start and of one Newton step, and what they say."""

    problem: Problem
    family: Family
    intercept: bool
    part: float = 1.0  # of the problem's budget

    def _noise(self, share: float, sensitivity: float = 1.0) -> mechanisms.Gaussian:
        return self.problem.gaussian(sensitivity * EDGE, self.problem.rho(self.part * share))

    @property
    def _moments(self) -> mechanisms.Gaussian:
        """Of the packed Σxxᵀ, of norm at most R²."""
        return self._noise(self.family.shares.moments, self.problem.square)

    @property
    def _start(self) -> list[tuple[mechanisms.Gaussian, mechanisms.Gaussian | None]]:
        """Of the gradients and of the Hessians of the start's steps, each of norm at most 1."""
        if not self.family.changes_slope:  # the whitening's own matrix serves
            return [(self._noise(share), None) for share in self.family.shares.start]
        return [(self._noise(0.7 * share), self._noise(0.3 * share)) for share in self.family.shares.start]

    @property
    def _last(self) -> tuple[mechanisms.Gaussian, mechanisms.Gaussian]:
        """Of the last step's."""
        return self._noise(self.family.shares.gradient), self._noise(self.family.shares.hessian)

    @property
    def _sandwich(self) -> mechanisms.Gaussian | None:
        """Of the sandwich, of norm at most 1."""
        share = self.family.shares.sandwich
        return self._noise(share) if share else None

    @property
    def event(self) -> events.Event:
        """All releases."""
        found: events.Event = self._moments.event
        for mechanism in (*chain.from_iterable(self._start), *self._last, self._sandwich):
            found = found if mechanism is None else found + mechanism.event
        return found

    def solve(
        self, rows: Array, targets: Array, jacobian: Array, rng: random.Rng, begin: Array | float = 0.0
    ) -> Estimates:
        """Estimates of ``jacobian`` @ weights, of rows with norm at most R; the start begins at weights ``begin``."""
        matrix, size = self._release_moments(rows, rng)
        whitening = self._whitening(matrix, size)
        transform = whitening.transform
        records = _Records(self.family, whitening, whitening(rows), targets)
        inward = np.linalg.solve(transform.T, np.broadcast_to(begin, len(matrix)))
        white = positive_part(transform @ matrix @ transform.T)
        start = find_start(records.release, self._start, inward, white, 1e-3 * size, rng)
        last = records.release(start, *self._last, self._sandwich, rng)
        robust, slope = self._sandwich is not None, self.family.changes_slope
        estimates = conclude(last, start, jacobian @ transform.T, robust=robust, slope=slope)
        return estimates._replace(r_squared=self._r_squared(transform, last, start, size))

    def _release_moments(self, rows: Array, rng: random.Rng) -> tuple[Array, float]:
        """A noisy Σxxᵀ, and about how many records there are."""
        p = rows.shape[1]
        packed = kernels.gram_sum(rows, np.zeros(len(rows)), 1.0, self.problem.square)[:-p]
        matrix = kernels.unpack_symmetric(self._moments.release(packed, rng).value, p)
        # without a column of ones: no more than there are, since rows have norm at most 1
        return matrix, max(float(matrix[-1, -1] if self.intercept else np.trace(matrix)), 1.0)

    def _whitening(self, matrix: Array, size: float) -> Whitening:
        mechanism = self._last[0]
        return Whitening.of(
            matrix,
            deviation(self._moments),
            size,
            least=self.family.quiet * size * (mechanism.sensitivity / deviation(mechanism)) ** 2,
            norm=self.problem.norm,
            spread=self.family.spread,
        )

    def _r_squared(self, transform: Array, last: StepSums, start: Array, size: float) -> float:
        """1 - SSE / SST: SSE is in the sandwich, in the direction of the column of ones, and the rest of SST in the
        Hessian, since the residuals of least squares are orthogonal to the line. The sandwich has the weights twice.
        """
        if not self.intercept or self.family.changes_slope:
            return math.nan
        if not smallest(last.hessian):
            return math.nan
        weights = start - np.linalg.solve(last.hessian, last.gradient)
        ones = np.linalg.solve(transform.T, np.eye(len(weights))[-1])  # ones·x̃ is 1 in every row
        weighted = max(float(ones @ last.hessian @ ones), 1.0)
        explained = float(weights @ last.hessian @ weights) - float(ones @ last.hessian @ weights) ** 2 / weighted
        left = max(float(ones @ last.sandwich @ ones), 0.0) * size / weighted
        return float(np.clip(explained / max(explained + left, 1e-300), 0.0, 1.0))


@dataclass(frozen=True, slots=True)
class _Records:
    """Whitened records of a family, and what each can do to their sums."""

    family: Family
    whitening: Whitening
    white: Whitened
    targets: Array

    def __repr__(self) -> str:
        return "_Records(...)"

    def release(
        self,
        weights: Array,
        gradient: mechanisms.Gaussian,
        hessian: mechanisms.Gaussian | None,
        sandwich: mechanisms.Gaussian | None,
        rng: random.Rng,
    ) -> StepSums:
        """The noisy sums at released weights that are asked for."""
        scores = kernels.scores(self.white.rows, np.ascontiguousarray(weights[:, None]))[:, 0]
        quiet, edge = self.whitening.is_wide, EDGE
        residuals, curvatures = self.family.terms(scores, self.targets, quiet)
        reach, bend = self.family.bounds(quiet)
        shares = np.clip(residuals / reach, -1, 1)
        scale, square = self.whitening.radius * reach * edge, self.whitening.square * bend * edge
        pulled = gradient.release(kernels.clipped_sum(self.white.pulls, shares[:, None], 1.0), rng).value[:, 0]
        bent = self.white.bends * np.sqrt(np.clip(curvatures / bend, 0, 1))[:, None]
        return StepSums(
            pulled * scale,
            deviation(gradient) * scale,
            *release_products(bent, square, hessian, rng),
            *release_products(self.white.pulls * shares[:, None], scale**2, sandwich, rng),
        )


def release_products(
    rows: Array, scale: float, mechanism: mechanisms.Gaussian | None, rng: random.Rng
) -> tuple[Array, float]:
    """scale·Σxxᵀ with noise, of rows inside the unit ball, and the deviation of that noise; nothing if not asked."""
    p = rows.shape[1]
    if mechanism is None:
        return np.zeros((p, p)), 0.0
    packed = kernels.gram_sum(rows, np.zeros(len(rows)), 1.0, 1.0)[:-p]
    noisy = kernels.unpack_symmetric(mechanism.release(packed, rng).value, p)
    return np.asarray(noisy * scale), deviation(mechanism) * scale


def deviation(mechanism: mechanisms.Gaussian) -> float:
    """Of its noise, on one entry."""
    return float(mechanism.sigma or 0.0)


def _forms(a: Array, matrix: Array) -> Array:
    """aᵀ·matrix·a of each column."""
    return np.asarray(np.einsum("ij,ik,kj->j", a, matrix, a))
