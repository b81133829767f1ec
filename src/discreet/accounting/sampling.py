"""Pairs made of pairs: what sampling, reversing, replacing inside a sample and parallel composition do to them.

================================  ===========================================  =======================================
sampler                           theorem                                      adjacency
================================  ===========================================  =======================================
Poisson                           ``Sampled`` and its reverse                  add-remove, zero-out
Poisson, Gaussian inside          ``ReplaceSampledGaussian``                   replace
truncated Poisson                 as Poisson, plus (1 + e^ε) times overflow    add-remove, zero-out
fixed size, without replacement   ``Symmetric(Sampled(...))``                  replace
shuffled, balls in bins           one event a pass, no amplification           replace; add-remove
================================  ===========================================  =======================================
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from discreet.accounting.arrays import Array, Interval
from discreet.accounting.pairs import Atoms, Pair, Tails
from discreet.errors import UnsupportedEvent

__all__ = ["ReplaceSampledGaussian", "Reversed", "Sampled", "Supremum", "Symmetric", "reverse"]


@dataclass(frozen=True)
class Reversed(Pair):
    """The same two laws in the other order: the loss changes sign. For sampled pairs, whose Q is nowhere zero."""

    pair: Pair

    @property
    def support(self) -> Interval:
        """Mirror image."""
        return -self.pair.highest, -self.pair.lowest

    @property
    def atom(self) -> float:
        """Mirror image."""
        return self.pair.atom

    def tails(self, losses: Array) -> Tails:
        """Heads of the pair, under the other law and strictly below."""
        p, q = self.pair.heads(np.nextafter(-losses, -np.inf))
        return q, p

    def heads(self, losses: Array) -> Tails:
        """Tails of the pair, under the other law, the point included."""
        p, q = self.pair.tails(np.nextafter(-losses, -np.inf))
        return q, p

    @property
    def attained(self) -> bool:
        """As the pair."""
        return self.pair.attained

    def log_mgf(self, z: Array) -> Array:
        """E_Q[exp(-zL)] = E_P[exp(-(z+1)L)]."""
        return self.pair.log_mgf(-1 - z)  # type: ignore[attr-defined, no-any-return]


@dataclass(frozen=True)
class Sampled(Pair):
    r"""(1-q)Q + qP against Q: the loss becomes log(1 - q + q·exp(L)).

    Dominates Poisson sampling at rate q when (P, Q) dominates the event for one removed record.
    """

    rate: float
    pair: Pair

    @property
    def attained(self) -> bool:
        """As the pair."""
        return self.pair.attained

    def log_moment_beyond(self, loss: float, c: Array) -> Array:
        """The sampled loss is at most L + log(q + (1-q)exp(-l)) where L > l; P' has density e^{L'} over Q, P has e^L."""
        inner = float(self._inner(np.array([loss]))[0])
        less = math.log(self.rate + (1 - self.rate) * math.exp(-max(inner, 0.0)))
        return (c + 1) * less + self.pair.log_moment_beyond(inner, c)

    @property
    def infinity(self) -> float:
        """Sampled with probability q."""
        return self.rate * self.pair.infinity

    @property
    def support(self) -> Interval:
        """Never below log(1-q)."""
        low = -math.inf if self.pair.infinity else self.pair.lowest  # where P may have nothing, Q loses everything
        low, high = self._outer(np.array([low, self.pair.highest])).tolist()
        return low, high

    @property
    def atom(self) -> float:
        """The atom, sampled."""
        return float(self._outer(np.array([self.pair.atom]))[0]) if self.pair.atom else 0.0

    def _outer(self, losses: Array) -> Array:
        with np.errstate(under="ignore"):
            small = np.log1p(self.rate * np.expm1(np.minimum(losses, 30.0)))
            return np.where(losses < 30, small, np.logaddexp(np.log1p(-self.rate), losses + math.log(self.rate)))

    def _inner(self, losses: Array) -> Array:
        """The inverse of the map; below log(1-q) it has none."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            x = np.expm1(np.minimum(losses, 30.0)) / self.rate
            beyond = losses - math.log(self.rate) + np.log1p(-(1 - self.rate) * np.exp(-np.maximum(losses, 30.0)))
            result = np.where(losses < 30, np.log1p(np.maximum(x, -1.0)), beyond)
        return np.where(x < -1, -np.inf, result)

    def _mix(self, p: Array, q: Array) -> Tails:
        return (1 - self.rate) * q + self.rate * p, q

    def tails(self, losses: Array) -> Tails:
        """Tails at the preimage; below log(1-q) everything."""
        p, q = self._mix(*self.pair.tails(self._inner(losses)))
        below = losses < np.log1p(-self.rate)
        return np.where(below, 1.0, p), np.where(below, 1.0, q)

    def heads(self, losses: Array) -> Tails:
        """Heads at the preimage; below log(1-q) nothing."""
        p, q = self._mix(*self.pair.heads(self._inner(losses)))
        below = losses < np.log1p(-self.rate)
        return np.where(below, 0.0, p), np.where(below, 0.0, q)


@dataclass(frozen=True)
class Symmetric(Pair):
    """The larger of a pair's profile and of its reverse's, when the pair dominates at all orders above one.

    Sampling a fixed number under replace: for orders at least one the profile is that of ``Sampled`` (Balle, Barthe
    and Gaboardi 2018, Theorem 9), and the roles of the two records can be exchanged, so orders below one follow by
    symmetry. What probability remains is put on loss zero. Using the sampled pair itself would be unsound under
    composition (Lebeda, Regehr, Kamath and Steinke 2024).
    """

    pair: Pair

    @property
    def symmetric(self) -> bool:
        """By construction."""
        return True

    @property
    def attained(self) -> bool:
        """As the pair."""
        return self.pair.attained

    def log_moment_beyond(self, loss: float, c: Array) -> Array:
        """Above zero the losses are the pair's."""
        return self.pair.log_moment_beyond(loss, c)

    @property
    def infinity(self) -> float:
        """As the pair's."""
        return self.pair.infinity

    @property
    def support(self) -> Interval:
        """Mirror image of the largest."""
        return -self.pair.highest, self.pair.highest

    def tails(self, losses: Array) -> Tails:
        """The pair's at and above zero, the complement of the mirrored below."""
        p, q = self.pair.tails(np.maximum(losses, 0.0))
        p_head, q_head = self.heads(np.minimum(losses, 0.0))
        return np.where(losses >= 0, p, 1 - p_head), np.where(losses >= 0, q, 1 - q_head)

    def heads(self, losses: Array) -> Tails:
        """The pair's tails mirrored below zero, the complement at and above."""
        q, p = self.pair.tails(np.nextafter(np.maximum(-losses, 0.0), -np.inf))
        p_tail, q_tail = self.pair.tails(np.maximum(losses, 0.0))
        below = losses < 0
        return np.where(below, p, 1 - p_tail), np.where(below, q, 1 - q_tail)


@dataclass(frozen=True)
class ReplaceSampledGaussian(Pair):
    """(1-q) N(0) + q N(1) against (1-q) N(0) + q N(-1): a sampled record replaced (``mixtures`` has the proof)."""

    rate: float
    sigma: float

    @property
    def symmetric(self) -> bool:
        """Q is the mirror image of P."""
        return True

    def _threshold(self, losses: Array) -> Array:
        """The x at which the loss is l: a quadratic in exp(x/σ²), solved without cancellation."""
        q, s = self.rate, self.sigma
        bound = 1e4 * (1 + 1 / s**2)
        half = np.clip(losses, -bound, bound) / 2
        # q k y² - (1-q)(e^l - 1) y - q k e^l = 0 with y = e^{l/2} w: w - 1/w = 2(1-q) sinh(l/2)/(q k)
        log_ratio = math.log(1 - q) - math.log(q) + 0.5 / s**2
        with np.errstate(divide="ignore"):
            log_sinh = np.abs(half) + np.log1p(-np.exp(-2 * np.abs(half))) - math.log(2)
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


def reverse(pair: Pair) -> Pair:
    """The pair of the other direction: the same one where its kind proves that, never by default."""
    if pair.symmetric:
        return pair
    match pair:
        case Sampled():
            return Reversed(pair)
        case Reversed():
            return pair.pair
        case Supremum():
            return Supremum(tuple(reverse(part) for part in pair.pairs))
        case Atoms():
            return pair.mirror
    raise UnsupportedEvent(f"The pld accountant does not know the other direction of {type(pair).__name__}.")


def _asinh_of_exp(log_x: Array) -> Array:
    """asinh(exp(log_x)), also where exp would overflow."""
    with np.errstate(over="ignore"):
        return np.where(log_x > 20, log_x + math.log(2), np.arcsinh(np.exp(np.minimum(log_x, 20.0))))


@dataclass(frozen=True)
class Supremum(Pair):
    """Pointwise largest profile of several pairs: parallel composition, where the neighbour chooses the part."""

    pairs: tuple[Pair, ...]

    @property
    def symmetric(self) -> bool:
        """If every part is."""
        return all(pair.symmetric for pair in self.pairs)

    @property
    def attained(self) -> bool:
        """An envelope."""
        return False

    @property
    def infinity(self) -> float:
        """The largest."""
        return max(pair.infinity for pair in self.pairs)

    @property
    def support(self) -> Interval:
        """The smallest."""
        return min(pair.lowest for pair in self.pairs), max(pair.highest for pair in self.pairs)

    def profile(self, losses: Array) -> Array:
        """The largest profile."""
        return np.asarray(np.max([pair.profile(losses) for pair in self.pairs], axis=0))
