r"""Losses of a linear score, with the constants the proofs need.

A loss sees a record only through its scores m = Wᵀx. Its gradient in W is x·r(m, y)ᵀ with the *residual* r = ∂ℓ/∂m,
so that a record's gradient has norm ‖x‖·‖r‖ and can be clipped without ever being formed. For each loss:

``lipschitz``
    the largest ‖r‖; ``inf`` where there is none (the squared loss), and then only clipped or bounded solvers apply.
``curvature``
    the largest eigenvalue of ∂r/∂m, so that ‖x‖²·curvature bounds a record's Hessian.
``one_signed``
    r has a sign that the label alone decides (binary margins): the privacy loss of objective perturbation is then
    one-sided.
``log_determinant(R², Λ)``
    a bound on ln det(I + H/Λ) for one record's Hessian H, which objective perturbation pays for.

========================  ================  ===================  =============================================
loss                      ‖r‖ ≤             curvature ≤          ln det(I + H/Λ) ≤, with ‖x‖² ≤ R²
========================  ================  ===================  =============================================
logistic                  1                 1/4                  ln(1 + R²/4Λ)
softmax, K classes        √2                1/2                  (K-1)·ln(1 + R²/KΛ)
Huber hinge, width h      1                 1/2h                 ln(1 + R²/2hΛ)
squared                   none              1                    ln(1 + R²/Λ)
========================  ================  ===================  =============================================

The softmax bound: the Hessian of a record is (diag(p) - ppᵀ) ⊗ xxᵀ, of rank K-1 and trace at most (1 - 1/K)·R², and for
a given trace the determinant is largest when the eigenvalues are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logsumexp

from discreet.errors import number, whole
from discreet.linear.custom_loss import CustomLoss
from discreet.linear.loss import Array, Loss, signs_of

__all__ = ["CustomLoss", "HuberHinge", "Logistic", "Loss", "OneVersusRest", "Softmax", "Squared"]


@dataclass(frozen=True, slots=True)
class Logistic:
    """ln(1 + e^(-ym)) for two classes."""

    name = "logistic"
    outputs = 1
    lipschitz = 1.0
    curvature = 0.25
    one_signed = True

    def value(self, scores: Array, targets: NDArray[Any]) -> Array:
        """The loss of each record."""
        return np.asarray(-log_expit(signs_of(targets) * scores[:, 0]))

    def residual(self, scores: Array, targets: NDArray[Any]) -> Array:
        """p - y."""
        return np.asarray(expit(scores) - (targets == 1)[:, None])

    def fine_residual(self, scores: Array, rest: Array, targets: NDArray[Any]) -> Array:
        """The residual at scores + rest, where the rest is below their last digit: to 4·2^-53."""
        return np.asarray(self.residual(scores, targets) + self.bends(scores, targets)[:, None] * rest)

    def bends(self, scores: Array, targets: NDArray[Any]) -> Array:
        """p(1 - p), the second derivative."""
        return np.asarray(expit(scores[:, 0]) * expit(-scores[:, 0]))

    def log_determinant(self, square: float, regularization: float) -> float:
        """ln det(I + H/Λ) of one record."""
        return math.log1p(self.curvature * square / regularization)


@dataclass(frozen=True, slots=True)
class HuberHinge:
    """The hinge with its corner rounded over a width 2h: zero beyond 1 + h, linear below 1 - h (Chapelle 2007)."""

    width: float = 0.5
    name = "huber hinge"
    outputs = 1
    lipschitz = 1.0
    one_signed = True

    def __post_init__(self) -> None:
        number("width", self.width, low=0, high=1, open_low=True)

    @property
    def curvature(self) -> float:
        """1/2h."""
        return 0.5 / self.width

    @property
    def rounder(self) -> tuple[HuberHinge, ...]:
        """The same with rounder corners, the roundest first: easier to minimise, with minimisers near this one's."""
        steps = range(math.floor(-math.log(self.width, 4)), 0, -1)
        return tuple(HuberHinge(min(self.width * 4.0**step, 1.0)) for step in steps)

    def value(self, scores: Array, targets: NDArray[Any]) -> Array:
        """The loss of each record."""
        margin, h = signs_of(targets) * scores[:, 0], self.width
        inside = np.clip(1 + h - margin, 0, 2 * h)
        return np.asarray(inside**2 / (4 * h) + np.maximum(1 - h - margin, 0))

    def residual(self, scores: Array, targets: NDArray[Any]) -> Array:
        """-y times a ramp from 0 to 1."""
        return self.fine_residual(scores, np.zeros_like(scores), targets)

    def fine_residual(self, scores: Array, rest: Array, targets: NDArray[Any]) -> Array:
        """The residual at scores + rest, where the rest is below their last digit: to 4·2^-53,
        however steep the ramp.
        """
        signs = signs_of(targets)
        below = (1 + self.width - signs * scores[:, 0]) - signs * rest[:, 0]  # exact where the two are near
        return np.asarray(-signs * np.clip(below / (2 * self.width), 0, 1))[:, None]

    def bends(self, scores: Array, targets: NDArray[Any]) -> Array:
        """1/2h inside the rounded corner, else nothing."""
        return np.where(np.abs(1 - signs_of(targets) * scores[:, 0]) <= self.width, self.curvature, 0.0)

    def log_determinant(self, square: float, regularization: float) -> float:
        """ln det(I + H/Λ) of one record."""
        return math.log1p(self.curvature * square / regularization)


@dataclass(frozen=True, slots=True)
class Softmax:
    """Cross-entropy of K classes, one weight vector each."""

    classes: int
    name = "softmax"
    lipschitz = math.sqrt(2)
    curvature = 0.5
    one_signed = False

    def __post_init__(self) -> None:
        whole("classes", self.classes, low=2)

    @property
    def outputs(self) -> int:
        """K."""
        return self.classes

    def value(self, scores: Array, targets: NDArray[Any]) -> Array:
        """The loss of each record."""
        at = np.maximum(targets, 0)
        return np.asarray(logsumexp(scores, axis=1) - scores[np.arange(len(scores)), at])

    def residual(self, scores: Array, targets: NDArray[Any]) -> Array:
        """p - e_y."""
        grown = np.exp(scores - scores.max(axis=1, keepdims=True))
        p = grown / grown.sum(axis=1, keepdims=True)
        return np.asarray(p - (targets[:, None] == np.arange(self.classes)))

    def fine_residual(self, scores: Array, rest: Array, targets: NDArray[Any]) -> Array:
        """The residual at scores + rest, where the rest is below their last digit: to 4·2^-53 an entry."""
        p = self.residual(scores, np.full(len(scores), -1))
        return np.asarray(self.residual(scores, targets) + p * (rest - (p * rest).sum(axis=1, keepdims=True)))

    def log_determinant(self, square: float, regularization: float) -> float:
        """ln det(I + H/Λ) of one record; see the module."""
        return (self.classes - 1) * math.log1p(square / (self.classes * regularization))


@dataclass(frozen=True, slots=True)
class OneVersusRest:
    """A binary loss for each of K classes against the others, summed, in one run: the budget is not split by class."""

    loss: HuberHinge
    classes: int

    @property
    def name(self) -> str:
        """The binary loss's name, marked."""
        return f"one-versus-rest {self.loss.name}"

    @property
    def outputs(self) -> int:
        """K."""
        return self.classes

    @property
    def lipschitz(self) -> float:
        """√K: every class may be wrong at once."""
        return self.loss.lipschitz * math.sqrt(self.classes)

    @property
    def curvature(self) -> float:
        """That of one class: the Hessian in the scores is diagonal."""
        return self.loss.curvature

    def _each(self, method: Callable[..., Array], scores: Array, targets: NDArray[Any]) -> list[Array]:
        return [method(scores[:, k : k + 1], targets == k) for k in range(self.classes)]

    def value(self, scores: Array, targets: NDArray[Any]) -> Array:
        """The sum over classes."""
        return np.asarray(np.sum(self._each(self.loss.value, scores, targets), axis=0))

    def residual(self, scores: Array, targets: NDArray[Any]) -> Array:
        """One column a class."""
        return np.concatenate(self._each(self.loss.residual, scores, targets), axis=1)


@dataclass(frozen=True, slots=True)
class Squared:
    """(m - y)²/2."""

    name = "squared"
    outputs = 1
    lipschitz = math.inf
    curvature = 1.0
    one_signed = False

    def value(self, scores: Array, targets: NDArray[Any]) -> Array:
        """The loss of each record."""
        return np.asarray((scores[:, 0] - targets) ** 2 / 2)

    def residual(self, scores: Array, targets: NDArray[Any]) -> Array:
        """m - y."""
        return np.asarray(scores - targets[:, None])
