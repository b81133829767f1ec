r"""The minimiser of a regularised sum of losses, with a certificate that always comes: a gradient norm, rounding
included.

F(W) = Σ ℓ(Wᵀx_i, y_i) + Λ/2·‖W‖² + ⟨B, W⟩ is Λ-strongly convex and L-smooth, L = ncR² + Λ, so a point with ‖∇F(W)‖ ≤ τ
lies within τ/Λ of the minimiser. That is what perturbation proofs need of a finite optimiser. Whether a τ is reached
must not depend on the data: an error, or a run without end, would be a release that nobody paid for.

**What is computed.** ĝ, with a bound on ‖ĝ - ∇F‖, its ``slack``. In doubles (u = 2^-53, c the curvature, ℓ the
Lipschitz constant; blocks of 512 rows, added exactly):

.. math:: n R u\,\bigl(c\,(p+2)\,R\,\|W\| + 8 + 520\,\ell\bigr)\sqrt k + 8u\,(\|B\| + \Lambda\|W\|)

Where that is more than a quarter of ‖ĝ‖, and ĝ is not yet certified, weights, scores and sums are taken to 32 digits
(``_fine``), and what is left is nRu·(4 + 2ℓ + 4u(p+2)cR‖W‖)·√k + 2u·(‖B‖ + Λ‖W‖), rounding of the weights included.

**Which τ can be reached.** At a point where ‖ĝ‖ < 3·slack, strong convexity gives ‖W‖ ≤ ‖∇F(0)‖/Λ + 4·slack/Λ, hence a
slack of at most S, a public number for at most ``MOST`` records, Λ ≥ 2^-30·cR² and a bound on ‖B‖ (``attainable``).
Solvers ask for τ ≥ 4S. Then ‖ĝ‖ < 3·slack is a certificate, and anywhere else ĝ is off by at most a third of itself.

**Why it arrives.** A round is of one of two kinds. (a) A Newton step after which ‖ĝ‖ is at most half the least norm met
so far: there are at most log2(‖ĝ(0)‖/τ) of them. (b) A point along Newton's direction where the slope still falls, so
that F has fallen, by convexity; then, whether or not there was one, a step of -ĝ/L. With ĝ off by a third the latter
alone takes ‖ĝ‖²/6L off F, so that F - min F shrinks by 1 - 3/(16κ), κ = L/Λ. After a round of kind (a), or at the
start, F - min F ≤ G²/2Λ with G the least norm met; 16κ·ln(16κ)/3 rounds of kind (b) later it is at most G²/32L, and ‖ĝ‖
at most G/2. So

.. math:: \bigl(2 + \log_2(\|\hat g(0)\|/\tau)\bigr)\bigl(1 + \tfrac{16}{3}\kappa\ln 16\kappa\bigr)

rounds are enough, whatever the records are. (Kind (a) alone, or an ascent along Newton's direction, may cycle.) In
practice a dozen are: a dense Hessian for one score and few features, conjugate gradients otherwise; for the piecewise
quadratic hinge a long line search, with which Newton's method is finite (Keerthi and DeCoste 2005), and rounder corners
first: the proof takes any start. How many rounds there are depends on the data, as the time of any optimiser does;
nothing else does.

Decision 105.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from discreet.encoding.features import MOST
from discreet.errors import NotCertified
from discreet.linear.rows import Records
from discreet.linear.solvers import _fine

__all__ = ["Minimisation", "attainable"]

_ROWS = 1 << 9
_DENSE = 2000  # features up to which a Hessian is formed
_U = 2.0**-53
Array = NDArray[np.float64]


def attainable(loss: Any, square: float, features: int, regularization: float, tilt: float) -> float:
    """4S: a gradient norm that is certified for any records, at most ``MOST``, and any B with ‖B‖ ≤ ``tilt``."""
    if regularization < 2.0**-30 * loss.curvature * square:
        raise ValueError(
            f"regularization is {regularization!r}, but perturbing a minimiser needs at least "
            f"{2.0**-30 * loss.curvature * square:.3g}: the noise that less would need hides any minimiser."
        )
    norm, spread = math.sqrt(square), math.sqrt(loss.outputs)
    fixed = MOST * norm * _U * (4 + 2 * loss.lipschitz) * spread + 2 * _U * tilt
    slope = MOST * 4 * _U**2 * (features + 2) * loss.curvature * square * spread + 2 * _U * regularization
    # ‖W‖ ≤ (‖∇F(0)‖ + 4·fixed + 4·slope·‖W‖)/Λ, and 4·slope/Λ is at most 2^-13
    farthest = (MOST * loss.lipschitz * norm + tilt + 4 * fixed) / regularization * (1 + 2.0**-12)
    return float(4 * (fixed + slope * farthest) * (1 + 2.0**-20))


@dataclass(frozen=True, slots=True)
class _Point:
    """Weights (high + low), the scores of high, the gradient as far as it is known."""

    high: Array
    low: Array
    scores: Array
    gradient: Array
    slack: float

    @property
    def norm(self) -> float:
        """‖ĝ‖, rounded up."""
        return float(np.linalg.norm(self.gradient)) * (1 + 2.0**-40)

    def falls(self, direction: Array) -> bool:
        """Whether F, on its way here against the direction, still falls: then it has fallen all the way."""
        return float((self.gradient * direction).sum()) > self.slack * float(np.linalg.norm(direction)) * (1 + 2.0**-20)


@dataclass(frozen=True, slots=True)
class Minimisation:
    """F, as above, over given records."""

    loss: Any
    records: Records
    square: float
    regularization: float
    tilt: Array  # B

    def solve(self, tolerance: float) -> Array:
        """A point whose gradient norm, rounding included, is at most ``tolerance``."""
        start = np.zeros_like(self.tilt)
        for rounder in getattr(self.loss, "rounder", ()):  # each of whose minimisers is a good start for the next
            start = replace(self, loss=rounder)._from(start, max(tolerance, 0.1 * math.sqrt(self.square)))
        return self._from(start, tolerance)

    def _from(self, start: Array, tolerance: float) -> Array:
        evaluate = partial(self._at, tolerance)
        here = evaluate(start, np.zeros_like(start))
        least, rounds, halved = here.norm, self._enough(here.norm / tolerance), True
        while here.norm + here.slack > tolerance:
            if rounds <= 0:  # the module's proof says that this does not happen
                raise NotCertified("The optimiser did not reach the gradient norm that its privacy proof needs.")
            here, rounds = self._round(here, least, halved, evaluate), rounds - 1
            halved, least = here.norm <= least / 2, min(least, here.norm)
        return here.high

    @property
    def _smooth(self) -> float:
        """L."""
        return float(self.loss.curvature * self.square * max(len(self.records), 1) + self.regularization)

    def _enough(self, ratio: float) -> float:
        """The rounds that the module proves to be enough."""
        condition = self._smooth / self.regularization
        return (2 + math.log2(max(ratio, 1.0))) * (1 + 16 / 3 * condition * math.log(16 * condition))

    # --- rounds --------------------------------------------------------------------------------------------------

    def _round(self, here: _Point, least: float, rough: bool, evaluate: Any) -> _Point:
        direction = self._newton(here, rough)
        there: _Point = evaluate(*_fine.subtract(here.high, here.low, direction))
        if there.norm <= least / 2:
            return there
        there = evaluate(*_fine.subtract(here.high, here.low, self._length(here, direction) * direction))
        if there.falls(direction) or (there := self._finely(there)).falls(direction):
            here = there
        lower: _Point = evaluate(*_fine.subtract(here.high, here.low, here.gradient / self._smooth))
        return lower

    def _length(self, here: _Point, direction: Array) -> float:
        """How far along the direction the slope has almost, but not quite, come to nothing: by bisection."""
        along, targets = self.records.rows @ direction, self.records.targets
        bent = self.regularization * float((direction * direction).sum())
        still = float(((self.regularization * here.high + self.tilt) * direction).sum())

        def slope(t: float) -> float:
            return float((self.loss.residual(here.scores - t * along, targets) * along).sum()) + still - t * bent

        first, low, high = slope(0.0), 0.0, 1.0
        while slope(high) > first / 20 and high < 2.0**60:
            low, high = high, 4 * high
        for _ in range(120):
            t = (low + high) / 2
            now = slope(t)
            if first / 1000 <= now <= first / 20:
                return t
            low, high = (t, high) if now > first / 20 else (low, t)
        return low

    # --- gradients -----------------------------------------------------------------------------------------------

    def _at(self, tolerance: float, high: Array, low: Array) -> _Point:
        scores = self.records.rows @ high
        plain = _Point(high, low, scores, self._gradient(scores, high), self.slack(high))
        if plain.norm + plain.slack <= tolerance or plain.norm >= 4 * plain.slack:
            return plain
        return self._finely(plain)

    def _finely(self, point: _Point) -> _Point:
        """The same point, its gradient to 32 digits."""
        return replace(
            point, gradient=self._fine_gradient(point.high, point.low), slack=self.slack(point.high, precise=True)
        )

    def gradient(self, w: Array) -> Array:
        """∇F(w)."""
        return self._gradient(self.records.rows @ w, w)

    def _gradient(self, scores: Array, w: Array) -> Array:
        """In blocks, which are added exactly."""
        parts = list(self._parts(scores))
        stacked = np.stack(parts).reshape(len(parts), -1) if parts else np.zeros((0, w.size))
        total = np.array([math.fsum(column) for column in stacked.T.tolist()]).reshape(w.shape)
        return np.asarray(total + self.regularization * w + self.tilt)

    def _parts(self, scores: Array) -> Iterator[Array]:
        residuals, rows = self.loss.residual(scores, self.records.targets), self.records.rows
        return (rows[i : i + _ROWS].T @ residuals[i : i + _ROWS] for i in range(0, len(rows), _ROWS))

    def _fine_gradient(self, high: Array, low: Array) -> Array:
        scores, rest = _fine.scores(self.records.rows, high, low)
        total, error = _fine.products(self.records.rows, self.loss.fine_residual(scores, rest, self.records.targets))
        total, carried = _fine.subtract(total, error, -self.regularization * high)
        total, carried = _fine.subtract(total, carried, -self.tilt)
        return np.asarray(total + (carried + self.regularization * low))

    def slack(self, w: Array, precise: bool = False) -> float:
        """What rounding may hide of the gradient's norm; ``precise``: of the gradient to 32 digits."""
        norm, p, length = math.sqrt(self.square), self.records.rows.shape[1], float(np.linalg.norm(w))
        score = self.loss.curvature * (p + 2) * norm * length
        each = 4 * _U * score + 4 + 2 * self.loss.lipschitz if precise else score + 8 + 520 * self.loss.lipschitz
        rest = (2 if precise else 8) * (float(np.linalg.norm(self.tilt)) + self.regularization * length)
        return float(_U * (len(self.records) * norm * each * math.sqrt(w.shape[1]) + rest))

    # --- Newton's direction ----------------------------------------------------------------------------------------

    def _newton(self, here: _Point, rough: bool) -> Array:
        rows, scores, gradient = self.records.rows, here.scores, here.gradient
        if hasattr(self.loss, "bends"):
            bends = self.loss.bends(scores, self.records.targets)
            if rows.shape[1] <= _DENSE:
                with suppress(LinAlgError):  # a ridge so small that rounding hides it
                    return np.asarray(cho_solve(cho_factor(self._hessian(bends, gradient, rough)), gradient))
            return self._conjugate(gradient, lambda s: bends[:, None] * s)
        p = self.loss.residual(scores, np.full(len(rows), -1))  # softmax: the residual of no class is p itself
        return self._conjugate(gradient, lambda s: p * (s - (p * s).sum(axis=1, keepdims=True)))

    def _hessian(self, bends: Array, gradient: Array, rough: bool) -> Array:
        """The Hessian, or far from the minimiser that of every eighth row, as long as its steps halve the gradient."""
        rows = self.records.rows
        far = rough and float(np.linalg.norm(gradient)) > 1e-3 * len(rows) and len(rows) > 80 * rows.shape[1]
        every = 8 if far else 1
        hessian = self.regularization * np.eye(rows.shape[1])
        for i in range(0, len(rows), 1 << 13):  # a block at a time stays in cache
            part = rows[i : i + (1 << 13) : every] * np.sqrt(every * bends[i : i + (1 << 13) : every, None])
            hessian += part.T @ part
        return hessian

    def _conjugate(self, gradient: Array, bend: Any) -> Array:
        """Conjugate gradients on the Hessian, stopped once the residual is small beside the gradient."""
        rows, x = self.records.rows, np.zeros_like(gradient)
        left, length = gradient.copy(), float((gradient * gradient).sum())
        direction, goal = left.copy(), length * 1e-4
        for _ in range(10 * gradient.size):
            image = rows.T @ bend(rows @ direction) + self.regularization * direction
            bent = float((direction * image).sum())
            if bent <= 0:  # rounding: what is found so far is still a direction of descent
                return x if x.any() else gradient
            size = length / bent
            x, left = x + size * direction, left - size * image
            before, length = length, float((left * left).sum())
            if length <= goal:
                break
            direction = left + length / before * direction
        return x
