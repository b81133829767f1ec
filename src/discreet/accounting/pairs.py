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
from typing import TypeAlias

import numpy as np
from scipy.special import ndtr

from discreet.accounting.arrays import Array, Interval

TINY = 1e-290

__all__ = ["Atoms", "BoundedRange", "DiscreteGaussianShift", "GaussianShift", "LaplaceShift", "Pair", "Tails", "scaled"]

Tails: TypeAlias = tuple[Array, Array]


class Pair:
    """Base of all pairs. ``infinity`` is the P-probability of an infinite loss."""

    @property
    def symmetric(self) -> bool:
        """Whether exchanging P and Q gives the same law of the loss. Said only where the kind of pair proves it."""
        return False

    @property
    def attained(self) -> bool:
        """Whether some mechanism has exactly this pair; an envelope or a rounded law has not, and gives no lower bound."""
        return True

    @property
    def infinity(self) -> float:
        """P-probability of an infinite loss."""
        return 0.0

    @property
    def support(self) -> Interval:
        """An interval that holds every finite loss."""
        return -math.inf, math.inf

    @property
    def highest(self) -> float:
        """The largest finite loss."""
        return self.support[1]

    @property
    def lowest(self) -> float:
        """The smallest loss."""
        return self.support[0]

    @property
    def atom(self) -> float:
        """A loss with positive probability that a lattice should hit, or zero."""
        return 0.0

    def tails(self, losses: Array) -> Tails:
        """P(L > l), an infinite loss included, and Q(L > l)."""
        raise NotImplementedError

    def heads(self, losses: Array) -> Tails:
        """P(L ≤ l) and Q(L ≤ l)."""
        raise NotImplementedError

    def profile(self, losses: Array) -> Array:
        """δ(l) = P(L > l) - exp(l)·Q(L > l)."""
        p, q = self.tails(losses)
        return np.asarray(np.maximum(p - scaled(q, losses), 0.0))

    def log_moment_beyond(self, loss: float, c: Array) -> Array:
        """Upper bounds on log E_P[exp(cL); l < L < ∞], c > 0: what a lattice that ends at l leaves out of a moment."""
        return np.full(np.shape(c), -math.inf if self.highest <= loss else math.inf)


def scaled(q: Array, losses: Array) -> Array:
    """exp(l)·q without overflow; a q so small that it has lost its digits counts as zero, which errs upward."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.where(q > TINY, np.exp(np.minimum(losses + np.log(q), 1.0)), 0.0)


def chernoff_beyond(rho: float, loss: float, c: Array) -> Array:
    """log E_P[exp(cL); L > l] where E_P[exp(bL)] ≤ exp(ρb(b+1)) for all b: at most ρb(b+1) - (b-c)l for every b ≥ c."""
    b = np.maximum(c, (loss / rho - 1) / 2)
    return np.asarray((rho * b * (b + 1) - (b - c) * loss) * (1 + 1e-14) + 1e-14 * (b + c) * abs(loss))


@dataclass(frozen=True)
class GaussianShift(Pair):
    """N(mu, 1) against N(0, 1): the loss is normal with mean ±mu²/2 and variance mu²."""

    mu: float

    @property
    def symmetric(self) -> bool:
        """A shift by -mu is the mirror image of one by mu."""
        return True

    def log_moment_beyond(self, loss: float, c: Array) -> Array:
        """By the curve of a Gaussian."""
        return chernoff_beyond(self.mu**2 / 2, loss, c)

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
    def symmetric(self) -> bool:
        """As for any shift of symmetric noise."""
        return True

    @property
    def support(self) -> Interval:
        """Losses lie within ±epsilon."""
        return -self.epsilon, self.epsilon

    @property
    def atom(self) -> float:
        """The atom at +epsilon."""
        return self.epsilon

    def tails(self, losses: Array) -> Tails:
        """Exponential tails inside, nothing above, everything below."""
        p, _ = self.heads(losses)
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

    def log_mgf(self, z: Array) -> Array:
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
    def symmetric(self) -> bool:
        """The density of the loss under Q is proportional to exp(-l/2)."""
        return True

    @property
    def attained(self) -> bool:
        """An envelope."""
        return False

    @property
    def support(self) -> Interval:
        """Losses lie within ±epsilon."""
        return -self.epsilon, self.epsilon

    @property
    def members(self) -> tuple[Atoms, ...]:
        """Some mechanisms of this range, with losses t and t - epsilon: each is a lower bound on what the worst does."""
        e = self.epsilon
        chances = [(t, -math.expm1(t - e) / -math.expm1(-e)) for t in (0.5 * e, 0.6 * e, 0.75 * e, 0.9 * e)]
        return tuple(Atoms(np.array([t - e, t]), np.array([1 - p, p])) for t, p in chances)

    def divergence(self, order: Array) -> Array:
        r"""Largest Rényi divergence of any member.

        With :math:`A = e^\epsilon` and :math:`x = e^t`, :math:`E[(P/Q)^{\alpha-1}] = x^{\alpha-1}((A - A^{1-\alpha}) -
        x(1 - A^{1-\alpha}))/(A-1)`, largest at :math:`x = \frac{\alpha-1}{\alpha}\frac{A - A^{1-\alpha}}{1 -
        A^{1-\alpha}}`. The envelope's own divergence is larger, because it is worst at all orders at once.
        """
        e = self.epsilon
        c = order - 1
        whole, part = -np.expm1(-order * e), -np.expm1(-c * e)  # (A - A^{1-α})/A and 1 - A^{1-α}
        log_x = np.clip(np.log(c / order) + e + np.log(whole / part), 0.0, e)
        inside = whole - np.exp(log_x - e) * part
        return np.asarray(np.minimum((c * log_x + np.log(inside / -math.expm1(-e))) / c * (1 + 1e-9) + 1e-15 / c, e))

    def tails(self, losses: Array) -> Tails:
        """Integrals of exp(±l/2)."""
        e = self.epsilon
        x = np.clip(losses, -e, e)
        scale = -np.expm1(-e)
        return -np.expm1((x - e) / 2) / scale, _exp_less(e, (e - x) / 2) / scale

    def heads(self, losses: Array) -> Tails:
        """Integrals of exp(±l/2)."""
        e = self.epsilon
        x = np.clip(losses, -e, e)
        scale = -np.expm1(-e)
        return _exp_less(e, (e + x) / 2) / scale, -np.expm1(-(x + e) / 2) / scale

    def log_mgf(self, z: Array) -> Array:
        """Integral of an exponential over an interval."""
        e = self.epsilon
        x = (z + 0.5) * e
        ratio = np.where(np.abs(x) < 1e-6, 1 - x, -np.expm1(-2 * x) / np.where(x == 0, 1, 2 * x))
        return x - e / 2 + np.log(ratio * e / -math.expm1(-e))


def _exp_less(e: float, x: Array) -> Array:
    """exp(x - e) - exp(-e), accurate for small e and finite for large."""
    return np.asarray(math.exp(-e) * np.expm1(x) if e < 300 else np.exp(x - e) - math.exp(-e))


@dataclass(frozen=True)
class Atoms(Pair):
    """Finitely many losses, in increasing order, with their P-probabilities (the Q-probabilities are P·exp(-l)).

    ``mirrored`` is said by who made them of a symmetric mechanism.
    """

    losses: Array
    masses: Array
    infinite: float = 0.0
    mirrored: bool = False

    @property
    def symmetric(self) -> bool:
        """As said."""
        return self.mirrored

    @property
    def infinity(self) -> float:
        """As given."""
        return self.infinite

    @property
    def support(self) -> Interval:
        """The smallest loss."""
        return float(self.losses[0]), float(self.losses[-1])

    @property
    def atom(self) -> float:
        """The largest loss, where few atoms carry everything."""
        return float(self.losses[-1]) if len(self.losses) <= 4 else 0.0

    @cached_property
    def q_masses(self) -> Array:
        """Q-probabilities."""
        with np.errstate(divide="ignore", under="ignore"):
            return np.asarray(np.exp(np.minimum(np.log(self.masses) - self.losses, 0.0)))

    @property
    def missing(self) -> float:
        """Q's mass where P has none: a loss of minus infinity."""
        return max(0.0, 1 - float(self.q_masses.sum()))

    @property
    def mirror(self) -> Atoms:
        """P and Q exchanged."""
        return Atoms(-self.losses[::-1], self.q_masses[::-1], self.missing)

    @cached_property
    def _sums(self) -> tuple[Tails, Tails]:
        p, q = self.masses, self.q_masses
        up = tuple(np.append(np.cumsum(x[::-1])[::-1], 0.0) for x in (p, q))
        down = np.append(0.0, np.cumsum(p)), np.append(self.missing, self.missing + np.cumsum(q))
        return (up[0] + self.infinite, up[1]), down

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

    def log_mgf(self, z: Array) -> Array:
        """A finite sum, scaled by its largest term on the real axis."""
        shift = self.losses[-1]
        total = np.zeros_like(z)
        for loss, mass in zip(self.losses, self.masses, strict=True):
            total = total + mass * np.exp(z * (loss - shift))
        return np.asarray(z * shift + np.log(total))


@dataclass(frozen=True)
class DiscreteGaussianShift(Atoms):
    """Discrete Gaussian noise shifted by an integer: the atoms within forty standard deviations; the rest is below 1e-340.

    Its Rényi divergences are at most those of the Gaussian (Canonne, Kamath and Steinke 2020, Proposition 5).
    """

    rho: float = 0.0

    @property
    def symmetric(self) -> bool:
        """As for any shift of symmetric noise."""
        return True

    @property
    def support(self) -> Interval:
        """Unbounded, though few of the losses can be written down."""
        return -math.inf, math.inf

    def log_moment_beyond(self, loss: float, c: Array) -> Array:
        """By the curve of the Gaussian."""
        return chernoff_beyond(self.rho, loss, c)
