r"""Dominating pairs: for each leaf, two laws (P, Q) that are at least as easy to tell apart as any two neighbours.

The privacy loss is L = log dP/dQ. A pair knows its tails under both laws, which is all the grid engine needs, and its
transform E_P[exp(zL)] where that has a closed form, which the contour engine uses. The pair of the other direction
(add instead of remove) is the pair reversed. Vectors need no pairs of their own: for log-concave noise, changing one
coordinate at a time shows that a shift of given L1 norm (Laplace) or L2 norm (Gaussian) is dominated by the same shift
of a single coordinate.

Here are the base of all pairs and shifts of continuous noise; ``atoms`` has losses on finitely many points,
``bounded_range`` the exponential mechanism, ``sampling`` pairs made of pairs. Reference: Zhu, Dong and Wang (2022).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import ndtr

from discreet.accounting.arrays import Array, Interval
from discreet.accounting.pld.accurate import UNIT, Bounded, difference_of_sinhc, expm1, join, log1p
from discreet.errors import UnsupportedEvent

__all__ = ["GaussianShift", "LaplaceShift", "Pair", "Tails", "chernoff_beyond", "reverse", "scale_by_loss"]

Tails: TypeAlias = tuple[Array, Array]

TINY = 1e-290
SMALLEST = 1e-60  # parameters below this are rounded up to it, which is the safe side: doubles cannot compute with them


class Pair:
    """Base of all pairs. ``infinity`` is the P-probability of an infinite loss."""

    @property
    def symmetric(self) -> bool:
        """Whether exchanging P and Q gives the same law of the loss. Said only where the kind of pair proves it."""
        return False

    @property
    def attained(self) -> bool:
        """Whether some mechanism has exactly this pair; an envelope or a rounded law gives no lower bound."""
        return True

    @property
    def attainable(self) -> tuple[Pair, ...]:
        """What lower bounds may rest on: the pair itself, or, for an envelope, what a mechanism can really be."""
        return (self,)

    @property
    def raised(self) -> bool:
        """Whether a parameter was rounded up to what can be computed with, so that nothing can be said from below."""
        return False

    @property
    def mirror(self) -> Pair:
        """P and Q exchanged, for pairs that are not symmetric."""
        raise UnsupportedEvent(f"The pld accountant does not know the other direction of {type(self).__name__}.")

    @property
    def two_sided(self) -> Pair:
        """The pair in a version of which P and Q may be exchanged, where this one is computed for one direction."""
        return self

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

    @property
    def resolution(self) -> int:
        """How many points a composition is to have at least."""
        return 1 << 16

    def tails(self, losses: Array) -> Tails:
        """P(L > l), an infinite loss included, and Q(L > l)."""
        raise NotImplementedError

    def heads(self, losses: Array) -> Tails:
        """P(L ≤ l) and Q(L ≤ l)."""
        raise NotImplementedError

    def profile(self, losses: Array) -> Array:
        """δ(l) = P(L > l) - exp(l)·Q(L > l)."""
        p, q = self.tails(losses)
        return np.asarray(np.maximum(p - scale_by_loss(q, losses), 0.0))

    def divergence(self, order: Array) -> Array | None:
        """Bounds on the Rényi divergences of what the pair stands for, where they are known to be below its own."""
        return None

    def sharpened(self, tail: float) -> Pair:
        """The pair in a version that is good for probabilities as small as ``tail``, where there are several."""
        return self

    def contracted(self, losses: Array) -> Array | None:
        """P-masses at the given losses of a pair that this one dominates, if merging at equal means gives one."""
        return None

    def log_moment_beyond(self, loss: float, c: Array) -> Array:
        """Upper bounds on log E_P[exp(cL); l < L < ∞], c > 0: what a lattice that ends at l leaves out of a moment."""
        return np.full(np.shape(c), -math.inf if self.highest <= loss else math.inf)


def reverse(pair: Pair) -> Pair:
    """The pair of the other direction: the same one where its kind proves that, never by default."""
    return pair if pair.symmetric else pair.mirror


def scale_by_loss(q: Array, losses: Array) -> Array:
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

    @property
    def raised(self) -> bool:
        """If mu is the smallest there is."""
        return self.mu <= SMALLEST

    def log_moment_beyond(self, loss: float, c: Array) -> Array:
        """By the curve of a Gaussian."""
        return chernoff_beyond(self.mu**2 / 2, loss, c)

    def _standardised(self, losses: Array) -> Array:
        with np.errstate(over="ignore"):  # beyond floats is as far as a normal tail is asked for
            return np.asarray(losses / self.mu)

    def tails(self, losses: Array) -> Tails:
        """Normal tails."""
        x = self._standardised(losses)
        return ndtr(self.mu / 2 - x), ndtr(-self.mu / 2 - x)

    def heads(self, losses: Array) -> Tails:
        """Normal tails."""
        x = self._standardised(losses)
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
    def raised(self) -> bool:
        """If epsilon is the smallest there is."""
        return self.epsilon <= SMALLEST

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

    def log_mgf(self, z: Array) -> Bounded:
        r"""K(z), and a bound on its error, for Re z > 0: two atoms and an exponential density between them.

        With x = (z + ½)ε and y = ε/2 it is :math:`\log(\cosh x + y\,\mathrm{sinhc}\,x) - y`, which is zero at z = 0.
        """
        near = (np.abs(z + 0.5) * self.epsilon <= 1) & (self.epsilon <= 2)
        return join(near, z, self._log_mgf_near, self._log_mgf_far)

    def _log_mgf_near(self, z: Array) -> Bounded:
        """cosh x - cosh y is 2 sinh((x + y)/2) sinh((x - y)/2), of the same sign as the difference of the others."""
        half = self.epsilon / 2
        rise, error = difference_of_sinhc(z, self.epsilon)
        peaks = 2 * np.sinh(z * half) * np.sinh((z + 1) * half)
        w = math.exp(-half) * (peaks + half * rise)
        return log1p(w, half * error + 64 * UNIT * (np.abs(peaks) + half * np.abs(rise)))

    def _log_mgf_far(self, z: Array) -> Bounded:
        """zε + log(1 - z(1 - exp(-2x))/(1 + 2z))."""
        less, error = expm1(-(2 * z + 1) * self.epsilon)
        share = z / (1 + 2 * z)
        log, log_error = log1p(share * less, np.abs(share) * (error + 16 * UNIT * np.abs(less)))
        return z * self.epsilon + log, log_error + 8 * UNIT * np.abs(z * self.epsilon)
