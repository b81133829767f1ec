"""The dominating pair of a record that is replaced where Gaussian noise runs on a Poisson sample.

Decision 7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from discreet.accounting.arrays import Array
from discreet.accounting.pld.pairs import SMALLEST, Pair, Tails

__all__ = ["ReplaceSampledGaussian"]


@dataclass(frozen=True)
class ReplaceSampledGaussian(Pair):
    """(1-q) N(0) + q N(1) against (1-q) N(0) + q N(-1): a sampled record replaced (``mixtures`` has the proof)."""

    rate: float
    sigma: float

    @property
    def symmetric(self) -> bool:
        """Q is the mirror image of P."""
        return True

    @property
    def raised(self) -> bool:
        """If the rate or the shift is the smallest there is."""
        return self.rate <= SMALLEST or self.sigma >= 1 / SMALLEST

    def _threshold(self, losses: Array) -> Array:
        """The x at which the loss is l: a quadratic in exp(x/σ²), solved without cancellation."""
        q, s = self.rate, self.sigma
        bound = 1e4 * (1 + 1 / s**2)
        half = np.clip(losses, -bound, bound) / 2
        # q k y² - (1-q)(e^l - 1) y - q k e^l = 0 with y = e^{l/2} w: w - 1/w = 2(1-q) sinh(l/2)/(q k)
        log_ratio = math.log(1 - q) - math.log(q) + 0.5 / s**2
        with np.errstate(divide="ignore"):
            # by expm1: a loss below 1e-16 is no zero, and any other threshold would say less than the supremum
            log_sinh = np.abs(half) + np.log(-np.expm1(-2 * np.abs(half))) - math.log(2)
        log_w = np.sign(half) * _asinh_of_exp(log_sinh + log_ratio)
        return np.asarray(s**2 * (half + log_w))

    def tails(self, losses: Array) -> Tails:
        """Mixtures of normal tails."""
        q, s = self.rate, self.sigma
        x = self._threshold(losses)
        middle = (1 - q) * ndtr(-x / s)
        return middle + q * ndtr((1 - x) / s), middle + q * ndtr((-1 - x) / s)

    def heads(self, losses: Array) -> Tails:
        """Mirror image of the tails: the pair is symmetric."""
        q, p = self.tails(-losses)
        return p, q


def _asinh_of_exp(log_x: Array) -> Array:
    """asinh(exp(log_x)), also where exp would overflow."""
    with np.errstate(over="ignore"):
        return np.where(log_x > 20, log_x + math.log(2), np.arcsinh(np.exp(np.minimum(log_x, 20.0))))
