r"""Sums of the piecewise exponential model in whitened coordinates, in which a person counts for a bounded amount.

The hazard of a person with features x in piece k of time is exp(α_k + x·β). With M_k the expected events of a person
who is there for all of piece k, and M̂_k, d_k the expected and seen ones while they are, the score is

.. math:: \sum_k (\hat M_k - d_k) \tilde z_k, \qquad \tilde z_k = (s_k e_k, \tilde x),

x̃ whitened and s_k = √(D/D_k), D_k events in the piece of D, so that its Hessian Σ M̂_k z̃_k z̃_kᵀ is near to D·I. Whatever
becomes of a person, their score is no longer than

.. math:: G(x)^2 = \|\tilde x\|^2 \max(1, \textstyle\sum_k M_k)^2
    + \Bigl(\sqrt{\textstyle\sum_k M_k^2 s_k^2} + \max_k s_k\Bigr)^2

since between 0 and Σ M_k events are expected and 0 or 1 is seen; and their Hessian has a trace of at most H(x) = Σ M_k
(s_k² + ‖x̃‖²). A person counts with the weight min(1, C/G, B²/H). It is a function of features and released numbers, not
of the time or the event, so that the weighted score has the mean zero (see ``linear.inference_whitening``), and no
person pays for each piece apart.

References: Holford (1980) and Laird and Olivier (1981), for the model and Poisson's likelihood.

Decision 556.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from discreet import mechanisms, random
from discreet.linear import kernels
from discreet.linear.inference_parts import Array
from discreet.linear.inference_steps import EDGE, StepSums, deviation
from discreet.linear.inference_whitening import ROOM

__all__ = ["Baseline", "Centred", "Lives"]


class Baseline(NamedTuple):
    """Pieces of time up to a horizon of 1: their ends, lengths, events, and log hazards. Released."""

    ends: Array
    lengths: Array
    events: Array
    log_hazards: Array

    @property
    def stretch(self) -> Array:
        """s_k."""
        return np.asarray(np.sqrt(self.events.sum() / self.events))


class Centred(NamedTuple):
    """The map from rows, whose last column is of ones, to centred and whitened features. Released."""

    matrix: Array

    @staticmethod
    def of(moments: Array, noise: float) -> Centred:
        """From a noisy Σxxᵀ, no eigenvalue of whose covariance is taken to be below ``noise``."""
        size = max(float(moments[-1, -1]), noise, 1.0)
        mean = moments[:-1, -1] / size
        values, vectors = np.linalg.eigh(moments[:-1, :-1] - size * np.outer(mean, mean))
        scale = np.sqrt(size / np.maximum(values, max(noise, 1e-300)))
        slopes = scale[:, None] * vectors.T
        return Centred(np.column_stack([slopes, -slopes @ mean]))

    @property
    def longest(self) -> float:
        """What no whitened row exceeds."""
        return float(np.linalg.norm(self.matrix[:, :-1], 2) + np.linalg.norm(self.matrix[:, -1]))


class _Scales(NamedTuple):
    """C and B², for the weights at which a step stands."""

    radius: float
    square: float


@dataclass(frozen=True, slots=True)
class Lives:
    """Whitened features, the time spent in each piece (as a part of it), the piece that the event ended (-1: none)."""

    rows: Array
    spent: Array
    ended: Any
    baseline: Baseline
    longest: float  # of the rows
    quiet: float  # C² is at least this

    def __repr__(self) -> str:
        return "Lives(...)"

    def release(
        self,
        weights: Array,
        gradient: mechanisms.Gaussian,
        hessian: mechanisms.Gaussian | None,
        sandwich: mechanisms.Gaussian | None,
        rng: random.Rng,
    ) -> StepSums:
        """The noisy sums at released weights; the model says its own variance, so that there is no sandwich."""
        assert hessian is not None
        assert sandwich is None
        stretch, pieces = self.baseline.stretch, len(self.baseline.ends)
        full = self._expected(kernels.scores(self.rows, np.ascontiguousarray(weights[pieces:, None])), weights)
        scales = self._scales(weights)
        norms = np.sqrt(np.einsum("ij,ij->i", self.rows, self.rows))
        counts = self._weights(full, norms, scales)
        seen = self.ended[:, None] == np.arange(pieces)
        expected = full * self.spent
        left = (expected - seen) * counts[:, None]
        pulls = np.column_stack([left * stretch, self.rows * left.sum(axis=1, keepdims=True)]) / scales.radius
        exact = kernels.clipped_sum(pulls, np.ones((len(pulls), 1)), 1.0)
        noisy = gradient.release(exact, rng).value[:, 0] * scales.radius
        packed = sum(self._products(k, np.sqrt(expected[:, k] * counts / scales.square)) for k in range(pieces))
        bent = kernels.unpack_symmetric(hessian.release(packed, rng).value, len(weights)) * scales.square
        nothing = np.zeros_like(bent)
        return StepSums(
            noisy, deviation(gradient) * scales.radius, bent, deviation(hessian) * scales.square, nothing, 0.0
        )

    def _expected(self, scores: Array, weights: Array) -> Array:
        """M_k of each record, a column a piece."""
        base = self.baseline
        log = base.log_hazards + np.log(base.lengths) + base.stretch * weights[: len(base.ends)]
        return np.exp(np.clip(scores + log, -50, 50))

    def _products(self, k: int, factors: Array) -> Any:
        """The packed Σf²zzᵀ of a piece."""
        pieces = len(self.baseline.ends)
        rows = np.zeros((len(self.rows), pieces + self.rows.shape[1]))
        rows[:, k] = self.baseline.stretch[k] * factors
        rows[:, pieces:] = self.rows * factors[:, None]
        return kernels.gram_sum(rows, np.zeros(len(rows)), 1.0, 1.0)[: -rows.shape[1]]

    def _weights(self, full: Array, norms: Array, scales: _Scales) -> Array:
        most, trace = self._bounds(full, norms)
        return np.minimum(1.0, np.minimum(scales.radius / most, scales.square / trace)) / EDGE

    def _bounds(self, full: Array, norms: Array) -> tuple[Array, Array]:
        """G and H."""
        stretch, total = self.baseline.stretch, full.sum(axis=1)
        apart = np.sqrt((full**2 * stretch**2).sum(axis=1)) + stretch.max()
        most = np.sqrt((norms * np.maximum(total, 1.0)) ** 2 + apart**2)
        trace = (full * stretch**2).sum(axis=1) + total * norms**2
        return np.maximum(most, 1e-300), np.maximum(trace, 1e-300)

    def _scales(self, weights: Array) -> _Scales:
        """C and B²: those of a usual row, more where noise is quiet, and never more than a row can need."""
        usual, features = self._expected(np.zeros((1, 1)), weights), self.rows.shape[1]
        (most,), (trace,) = self._bounds(usual, np.array([math.sqrt(features)]))
        more = max(1.0, self.quiet / (ROOM * float(most) ** 2))
        far = self.longest * float(np.linalg.norm(weights[len(self.baseline.ends) :]))
        (top,), (top_trace,) = self._bounds(self._expected(np.full((1, 1), far), weights), np.array([self.longest]))
        return _Scales(
            min(math.sqrt(ROOM * more) * float(most), float(top)), min(2 * ROOM * more * float(trace), float(top_trace))
        )
