r"""Dominating pairs: for each leaf, two laws (P, Q) that are at least as easy to tell apart as any two neighbours.

The privacy loss is L = log dP/dQ. A pair knows its tails under both laws, which is all the grid engine needs, and its
transform E_P[exp(zL)] where that has a closed form, which the contour engine uses. The pair of the other direction
(add instead of remove) is the pair reversed. Vectors need no pairs of their own: for log-concave noise, changing one
coordinate at a time shows that a shift of given L1 norm (Laplace) or L2 norm (Gaussian) is dominated by the same shift
of a single coordinate.

References: Zhu, Dong and Wang (2022) for dominating pairs; Dong, Durfee and Rogers (2020) for bounded range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

__all__ = ["Atoms", "BoundedRange", "GaussianShift", "LaplaceShift", "Pair", "ReplaceSampledGaussian", "Reversed", "Sampled",
           "Supremum", "Symmetric", "reverse"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
Tails = tuple[Array, Array]


class Pair:
    """Base of all pairs. ``infinity`` is the P-probability of an infinite loss.

    All pairs but the sampled ones are symmetric: exchanging P and Q gives the same law of the loss.
    """

    infinity: float = 0.0
    lowest: float = -math.inf
    highest: float = math.inf
    atom: float = 0.0  # a loss with positive probability that a grid should hit, or zero

    def tails(self, losses: Array) -> Tails:
        """P(L > l), an infinite loss included, and Q(L > l)."""
        raise NotImplementedError

    def heads(self, losses: Array) -> Tails:
        """P(L ≤ l) and Q(L ≤ l)."""
        raise NotImplementedError

    def profile(self, losses: Array) -> Array:
        """δ(l) = P(L > l) - exp(l)·Q(L > l)."""
        p, q = self.tails(losses)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.clip(p - np.where(q > 0, np.exp(losses) * q, 0.0), 0.0, 1.0)


@dataclass(frozen=True)
class GaussianShift(Pair):
    """N(mu, 1) against N(0, 1): the loss is normal with mean ±mu²/2 and variance mu²."""

    mu: float

    def tails(self, losses: Array) -> Tails:
        """Normal tails."""
        x = losses / self.mu
        return ndtr(self.mu / 2 - x), ndtr(-self.mu / 2 - x)

    def heads(self, losses: Array) -> Tails:
        """Normal tails."""
        x = losses / self.mu
        return ndtr(x - self.mu / 2), ndtr(x + self.mu / 2)


@dataclass(frozen=True)
class LaplaceShift(Pair):
    """Laplace noise of unit scale, shifted by epsilon: half of P sits on the atom at +epsilon."""

    epsilon: float

    @property
    def lowest(self) -> float:  # type: ignore[override]
        """Losses lie within ±epsilon."""
        return -self.epsilon

    @property
    def highest(self) -> float:  # type: ignore[override]
        """Losses lie within ±epsilon."""
        return self.epsilon

    @property
    def atom(self) -> float:  # type: ignore[override]
        """The atom at +epsilon."""
        return self.epsilon

    def tails(self, losses: Array) -> Tails:
        """Exponential tails inside, nothing above, everything below."""
        p, q = self.heads(losses)
        e = self.epsilon
        inside = np.clip(losses, -e, e)
        q_tail = np.where(losses < -e, 1.0, np.where(losses >= e, 0.0, np.exp(-(e + inside) / 2) / 2))
        return np.where(losses >= e, 0.0, 1 - p), q_tail

    def heads(self, losses: Array) -> Tails:
        """Exponential tails inside, everything above, nothing below."""
        e = self.epsilon
        inside = np.clip(losses, -e, e)
        below, above = losses < -e, losses >= e
        p = np.where(below, 0.0, np.where(above, 1.0, np.exp(-(e - inside) / 2) / 2))
        q = np.where(below, 0.0, np.where(above, 1.0, 1 - np.exp(-(e + inside) / 2) / 2))
        return p, q

    def log_mgf(self, z: Complex) -> Complex:
        """Two atoms and an exponential density between them."""
        e, half = self.epsilon, z + 0.5
        x = half * e
        # everything divided by exp(zε): all exponents have non-positive real part when Re z ≥ -1/2
        ratio = np.where(np.abs(x) < 1e-6, 1 - x, -np.expm1(-2 * x) / np.where(x == 0, 1, 2 * x))
        return z * e + np.log(0.5 + np.exp(-e * (2 * z + 1)) / 2 + e / 2 * ratio)


@dataclass(frozen=True)
class BoundedRange(Pair):
    r"""The worst of all mechanisms of bounded range epsilon, at every order at once.

    Maximising over the position of the interval gives :math:`\delta(x) = (e^{\epsilon/2} - e^{x/2})^2/(e^\epsilon - 1)`
    for |x| ≤ epsilon, so the loss has density proportional to exp(l/2) on [-epsilon, epsilon].
    """

    epsilon: float

    @property
    def lowest(self) -> float:  # type: ignore[override]
        """Losses lie within ±epsilon."""
        return -self.epsilon

    @property
    def highest(self) -> float:  # type: ignore[override]
        """Losses lie within ±epsilon."""
        return self.epsilon

    def tails(self, losses: Array) -> Tails:
        """Integrals of exp(±l/2)."""
        e = self.epsilon
        x = np.clip(losses, -e, e)
        scale = -np.expm1(-e)
        return -np.expm1((x - e) / 2) / scale, np.exp(-e) * np.expm1((e - x) / 2) / scale

    def heads(self, losses: Array) -> Tails:
        """Integrals of exp(±l/2)."""
        e = self.epsilon
        x = np.clip(losses, -e, e)
        scale = -np.expm1(-e)
        return np.exp(-e) * np.expm1((x + e) / 2) / scale, -np.expm1(-(x + e) / 2) / scale

    def log_mgf(self, z: Complex) -> Complex:
        """Integral of an exponential over an interval."""
        e = self.epsilon
        x = (z + 0.5) * e
        ratio = np.where(np.abs(x) < 1e-6, 1 - x, -np.expm1(-2 * x) / np.where(x == 0, 1, 2 * x))
        return x - e / 2 + np.log(ratio * e / -math.expm1(-e))


@dataclass(frozen=True)
class Atoms(Pair):
    """Finitely many losses, in increasing order, with their P-probabilities (the Q-probabilities are P·exp(-l))."""

    losses: Array
    masses: Array
    infinity: float = 0.0

    @property
    def lowest(self) -> float:  # type: ignore[override]
        """The smallest loss."""
        return float(self.losses[0])

    @property
    def highest(self) -> float:  # type: ignore[override]
        """The largest finite loss."""
        return float(self.losses[-1])

    @property
    def atom(self) -> float:  # type: ignore[override]
        """The largest loss, where few atoms carry everything."""
        return float(self.losses[-1]) if len(self.losses) <= 4 else 0.0

    @cached_property
    def _sums(self) -> tuple[Tails, Tails]:
        with np.errstate(over="ignore"):
            q = self.masses * np.exp(-self.losses)
        up = tuple(np.append(np.cumsum(x[::-1])[::-1], 0.0) for x in (self.masses, q))
        missing = max(0.0, 1 - float(q.sum()))  # Q's mass where P has none: a loss of minus infinity
        down = np.append(0.0, np.cumsum(self.masses)), np.append(missing, missing + np.cumsum(q))
        return (up[0] + self.infinity, up[1]), down

    def tails(self, losses: Array) -> Tails:
        """Partial sums."""
        (p, q), _ = self._sums
        index = np.searchsorted(self.losses, losses, side="right")
        return p[index], q[index]

    def heads(self, losses: Array) -> Tails:
        """Partial sums."""
        _, (p, q) = self._sums
        index = np.searchsorted(self.losses, losses, side="right")
        return p[index], q[index]

    def log_mgf(self, z: Complex) -> Complex:
        """A finite sum, scaled by its largest term on the real axis."""
        shift = self.losses[-1]
        total = np.zeros_like(z)
        for loss, mass in zip(self.losses, self.masses, strict=True):
            total = total + mass * np.exp(z * (loss - shift))
        return z * shift + np.log(total)


@dataclass(frozen=True)
class Reversed(Pair):
    """The same two laws in the other order: the loss changes sign. For sampled pairs, whose Q is nowhere zero."""

    pair: Pair

    @property
    def lowest(self) -> float:  # type: ignore[override]
        """Mirror image."""
        return -self.pair.highest

    @property
    def highest(self) -> float:  # type: ignore[override]
        """Mirror image."""
        return -self.pair.lowest

    @property
    def atom(self) -> float:  # type: ignore[override]
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

    def log_mgf(self, z: Complex) -> Complex:
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
    def infinity(self) -> float:  # type: ignore[override]
        """Sampled with probability q."""
        return self.rate * self.pair.infinity

    @property
    def lowest(self) -> float:  # type: ignore[override]
        """Never below log(1-q)."""
        return float(self._outer(np.array([self.pair.lowest]))[0])

    @property
    def highest(self) -> float:  # type: ignore[override]
        """The largest loss, sampled."""
        return float(self._outer(np.array([self.pair.highest]))[0])

    @property
    def atom(self) -> float:  # type: ignore[override]
        """The atom, sampled."""
        return float(self._outer(np.array([self.pair.atom]))[0]) if self.pair.atom else 0.0

    def _outer(self, losses: Array) -> Array:
        with np.errstate(over="ignore"):
            small = np.log1p(self.rate * np.expm1(np.minimum(losses, 30.0)))
            return np.where(losses < 30, small, losses + math.log(self.rate))

    def _inner(self, losses: Array) -> Array:
        """The inverse of the map; below log(1-q) it has none."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            x = np.expm1(np.minimum(losses, 30.0)) / self.rate
            result = np.where(losses < 30, np.log1p(np.maximum(x, -1.0)), losses - math.log(self.rate))
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
    def infinity(self) -> float:  # type: ignore[override]
        """As the pair's."""
        return self.pair.infinity

    @property
    def lowest(self) -> float:  # type: ignore[override]
        """Mirror image of the largest."""
        return -self.pair.highest

    @property
    def highest(self) -> float:  # type: ignore[override]
        """As the pair's."""
        return self.pair.highest

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
    """(1-q) N(0) + q N(1) against (1-q) N(0) + q N(-1): one sampled record replaced (see ``mixtures`` for the proof)."""

    rate: float
    sigma: float

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
    """The pair of the other direction."""
    if isinstance(pair, Sampled):
        return Reversed(pair)
    if isinstance(pair, Supremum):
        return Supremum(tuple(reverse(part) for part in pair.pairs))
    return pair.pair if isinstance(pair, Reversed) else pair


def _asinh_of_exp(log_x: Array) -> Array:
    """asinh(exp(log_x)), also where exp would overflow."""
    with np.errstate(over="ignore"):
        return np.where(log_x > 20, log_x + math.log(2), np.arcsinh(np.exp(np.minimum(log_x, 20.0))))


@dataclass(frozen=True)
class Supremum(Pair):
    """Pointwise largest profile of several pairs: parallel composition, where the neighbour chooses the part."""

    pairs: tuple[Pair, ...]

    @property
    def infinity(self) -> float:  # type: ignore[override]
        """The largest."""
        return max(pair.infinity for pair in self.pairs)

    @property
    def lowest(self) -> float:  # type: ignore[override]
        """The smallest."""
        return min(pair.lowest for pair in self.pairs)

    @property
    def highest(self) -> float:  # type: ignore[override]
        """The largest."""
        return max(pair.highest for pair in self.pairs)

    def profile(self, losses: Array) -> Array:
        """The largest profile."""
        return np.max([pair.profile(losses) for pair in self.pairs], axis=0)


