r"""The minimiser of a regularised sum of losses, with a certificate: the norm of the gradient, rounding included.

F(W) = Σ ℓ(Wᵀx_i, y_i) + Λ/2·‖W‖² + ⟨B, W⟩ is Λ-strongly convex, so a point with ‖∇F(W)‖ ≤ τ lies within τ/Λ of the
minimiser. That is what perturbation proofs need of a finite optimiser, and it is checked, not hoped for: the gradient is
summed in blocks of 512 rows, the blocks exactly, and the bound

.. math:: n R u\,\bigl(c\,(p+2)\,R\,\|W\| + 8 + 520\,\ell\bigr)\sqrt k

on its rounding (u = 2^-53, c the curvature, ℓ the Lipschitz constant) is added to its norm before comparing. Where that
bound alone is too large (tens of millions of records), the gradient is summed in extended precision, with its own u. What
fails even so is refused: an error that the data can cause, from billions of records on.

Newton steps with a line search: a dense Hessian for one score and few features, conjugate gradients otherwise; a
gradient step of length 1/L where Newton's does not descend.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from discreet.errors import NotCertified
from discreet.linear.rows import Records

__all__ = ["Minimisation"]

_ROWS = 1 << 9
_DENSE = 2000  # features up to which a Hessian is formed
_ROUNDS = 20_000
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Point:
    """Weights and the scores they give: one product serves value, gradient and Hessian."""

    w: Array
    scores: Array


@dataclass(frozen=True, slots=True)
class Minimisation:
    """F, as above, over given records."""

    loss: Any
    records: Records
    square: float
    regularization: float
    tilt: Array  # B

    def _at(self, w: Array) -> _Point:
        return _Point(w, self.records.rows @ w)

    def _value(self, point: _Point) -> float:
        each = self.loss.value(point.scores, self.records.targets)
        w = point.w
        return float(each[self.records.usable].sum() + self.regularization / 2 * (w * w).sum() + (self.tilt * w).sum())

    def gradient(self, w: Array) -> Array:
        """∇F(w)."""
        return self._gradient(self._at(w))

    def _gradient(self, point: _Point, precise: bool = False) -> Array:
        """In blocks, which are added exactly."""
        parts = list(self._precise_parts(point.w) if precise else self._parts(point.scores))
        stacked = np.stack(parts).reshape(len(parts), -1) if parts else np.zeros((0, point.w.size))
        total = np.array([math.fsum(column) for column in stacked.T.tolist()]).reshape(point.w.shape)
        return np.asarray(total + self.regularization * point.w + self.tilt)

    def _parts(self, scores: Array) -> Iterator[Array]:
        residuals, rows = self.loss.residual(scores, self.records.targets), self.records.rows
        return (rows[i:i + _ROWS].T @ residuals[i:i + _ROWS] for i in range(0, len(rows), _ROWS))

    def _precise_parts(self, w: Array) -> Iterator[Array]:
        """The same in extended precision: each block as a double and what that leaves over."""
        for i in range(0, len(self.records), _ROWS):
            rows = self.records.rows[i:i + _ROWS].astype(np.longdouble)
            part = rows.T @ self.loss.residual(rows @ w, self.records.targets[i:i + _ROWS])
            rounded = part.astype(np.float64)
            yield from (rounded, (part - rounded).astype(np.float64))

    def slack(self, w: Array, precise: bool = False) -> float:
        """What rounding may hide of the gradient's norm."""
        norm, p = math.sqrt(self.square), self.records.rows.shape[1]
        each = self.loss.curvature * (p + 2) * norm * float(np.linalg.norm(w)) + 8 + 520 * self.loss.lipschitz
        tilt = 8 * (float(np.linalg.norm(self.tilt)) + self.regularization * float(np.linalg.norm(w)))
        unit = float(np.finfo(np.longdouble).eps) if precise else 2.0**-53
        return float(unit * len(self.records) * norm * each * math.sqrt(w.shape[1]) + 2.0**-53 * tilt)

    def solve(self, tolerance: float) -> Array:
        """A point whose gradient norm, rounding included, is at most ``tolerance``."""
        here = self._at(np.zeros_like(self.tilt))
        smooth = self.loss.curvature * self.square * max(len(self.records), 1) + self.regularization
        for _ in range(_ROUNDS):
            precise = self.slack(here.w) > tolerance / 4
            gradient = self._gradient(here, precise)
            if float(np.linalg.norm(gradient)) * (1 + 2.0**-40) + self.slack(here.w, precise) <= tolerance:
                return here.w
            here = self._step(here, gradient, smooth, precise)
        raise NotCertified("The optimiser did not reach the gradient norm its privacy proof needs. Declare a larger "
                           "regularization.")

    def _step(self, here: _Point, gradient: Array, smooth: float, precise: bool) -> _Point:
        direction = self._newton(here, gradient)
        slope, value, size = float((gradient * direction).sum()), self._value(here), 1.0
        length = float(np.linalg.norm(gradient))
        for _ in range(12):
            there = self._at(here.w - size * direction)
            if self._value(there) <= value - 1e-4 * size * slope:
                return there
            if np.linalg.norm(self._gradient(there, precise)) <= 0.5 * length:  # values can no longer tell the two apart
                return there
            size /= 2
        return self._at(here.w - gradient / smooth)

    def _newton(self, here: _Point, gradient: Array) -> Array:
        rows, scores = self.records.rows, here.scores
        if hasattr(self.loss, "bends"):
            bends = self.loss.bends(scores, self.records.targets)
            if rows.shape[1] <= _DENSE:
                with suppress(LinAlgError):  # a ridge so small that rounding hides it
                    return np.asarray(cho_solve(cho_factor(self._hessian(bends, gradient)), gradient))
            return self._conjugate(gradient, lambda s: bends[:, None] * s)
        p = self.loss.residual(scores, np.full(len(rows), -1))  # softmax: the residual of no class is p itself
        return self._conjugate(gradient, lambda s: p * (s - (p * s).sum(axis=1, keepdims=True)))

    def _hessian(self, bends: Array, gradient: Array) -> Array:
        """The Hessian, or far from the minimiser, where a direction need not be exact, that of every eighth row."""
        rows = self.records.rows
        far = float(np.linalg.norm(gradient)) > 1e-3 * len(rows) and len(rows) > 80 * rows.shape[1]
        every = 8 if far else 1
        hessian = self.regularization * np.eye(rows.shape[1])
        for i in range(0, len(rows), 1 << 13):  # a block at a time stays in cache
            part = rows[i:i + (1 << 13):every] * np.sqrt(every * bends[i:i + (1 << 13):every, None])
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
