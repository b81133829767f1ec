"""Dominating pairs whose losses take finitely many values: local reports, bare guarantees, discrete noise, lattices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.accounting.arrays import Array, Interval
from discreet.accounting.pld.accurate import UNIT, Bounded, exp_less_line, expm1, join, log1p
from discreet.accounting.pld.pairs import SMALLEST, Pair, Tails, chernoff_beyond

__all__ = ["NOTHING", "Atoms", "DiscreteGaussianShift", "TooLarge", "binary", "too_large"]

_NEAR = 30.0  # exponents below this are computed one by one, less one; above, all are scaled by the largest
_BLOCK = 4096  # losses at a time: what bounds the memory


@dataclass(frozen=True)
class Atoms(Pair):
    """Finitely many losses, in increasing order, with their P-probabilities (the Q-probabilities are P·exp(-l)).

    ``mirrored`` is said by who made them of a symmetric mechanism: to every loss there is the opposite one, and the
    Q-probability of the one is the P-probability of the other.
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
    def raised(self) -> bool:
        """If the largest loss is the smallest there is; never for no loss at all."""
        return 0 < self.highest <= SMALLEST

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
        """Q-probabilities: of mirror images those of P in the other order, which hold where products round to zero."""
        if self.mirrored:
            return self.masses[::-1]
        with np.errstate(divide="ignore", under="ignore"):
            return np.asarray(np.exp(np.minimum(np.log(self.masses) - self.losses, 0.0)))

    @property
    def missing(self) -> float:
        """Q's mass where P has none: a loss of minus infinity."""
        return self.infinite if self.mirrored else max(0.0, 1 - float(self.q_masses.sum()))

    @property
    def missing_error(self) -> float:
        """What ``missing`` may be wrong by, in units in the last place of one."""
        return 0.0 if self.mirrored else 4.0 * (len(self.losses) + 8)

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

    def log_mgf(self, z: Array) -> Bounded:
        """K(z) over the finite losses, and a bound on its error, for Re z > 0."""
        near = np.maximum(z.real, 1.0) * float(np.abs(self.losses).max()) <= _NEAR
        return join(near, z, self._log_mgf_near, self._log_mgf_far)

    def _log_mgf_near(self, z: Array) -> Bounded:
        r"""log(1 - δ + …), of terms that vanish with the square of the loss and, for real z, are all positive.

        A symmetric pair has :math:`p(-l) = e^{-l}p(l)`, so the rest is :math:`\sum_{l>0} p(l)\,(e^{zl} - 1)(1 -
        e^{-(z+1)l})`. Any other has :math:`\sum p(l)(1 - e^{-l})` equal to what Q lacks less what P lacks, so it is z
        times that plus :math:`\sum p(l)\,(e^{zl} - 1 - zl + z(e^{-l} - 1 + l))`.
        """
        lacking = 0.0 if self.mirrored else self.missing - self.infinite
        w, error = z * lacking - self.infinite, UNIT * (self.infinite + np.abs(z) * self.missing_error)
        for first in range(0, len(self.losses), _BLOCK):
            part = slice(first, first + _BLOCK)
            terms, errors = self._terms(z[:, None], self.losses[part], self.masses[part])
            w = w + terms.sum(axis=1)
            error = error + errors.sum(axis=1) + UNIT * (len(self.losses) + 8) * np.abs(terms).sum(axis=1)
        return log1p(w, error)

    def _terms(self, z: Array, losses: Array, masses: Array) -> Bounded:
        if self.mirrored:
            above = losses > 0
            up, up_error = expm1(z * losses[above])
            down, down_error = expm1(-(z + 1) * losses[above])
            return -masses[above] * up * down, masses[above] * (np.abs(up) * down_error + np.abs(down) * up_error)
        one, one_error = exp_less_line(z * losses)
        two, two_error = exp_less_line(-losses + 0j)
        return masses * (one + z * two), masses * (one_error + np.abs(z) * two_error)

    def _log_mgf_far(self, z: Array) -> Bounded:
        """A finite sum, scaled by its largest term on the real axis."""
        shift = self.losses[-1]
        total, error = np.zeros_like(z), np.zeros(z.shape)
        for first in range(0, len(self.losses), _BLOCK):
            part = slice(first, first + _BLOCK)
            exponent = z[:, None] * (self.losses[part] - shift)
            with np.errstate(under="ignore"):
                terms = self.masses[part] * np.exp(exponent)
            total = total + terms.sum(axis=1)
            error = error + UNIT * (np.abs(terms) * (len(self.losses) + 8 + 4 * np.abs(exponent))).sum(axis=1)
        log, log_error = log1p(total - 1, error + 2 * UNIT)
        return z * shift + log, log_error + 8 * UNIT * np.abs(z * shift)


@dataclass(frozen=True)
class DiscreteGaussianShift(Atoms):
    """Discrete Gaussian noise shifted by an integer: the atoms within forty standard deviations, all but 1e-340.

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


@dataclass(frozen=True)
class TooLarge(Atoms):
    """An infinite loss in place of one too large to compute with: safe from above, and nothing is said from below."""

    @property
    def raised(self) -> bool:
        """To infinity."""
        return True


NOTHING = Atoms(np.zeros(1), np.ones(1), mirrored=True)
"""The pair of what says nothing: below every other."""


def too_large(chance: float = 1.0) -> TooLarge:
    """A loss that is infinite with probability ``chance``, and otherwise none."""
    return TooLarge(np.zeros(1), np.array([1.0 - chance]), chance, mirrored=True)


def binary(epsilon: float, delta: float = 0.0) -> Atoms:
    """Randomized response that fails altogether with probability delta: it dominates all that is (epsilon, delta)-DP.

    Reference: Kairouz, Oh and Viswanath (2015).
    """
    odds = math.exp(-epsilon)
    masses = np.array([odds, 1.0]) * ((1 - delta) / (1 + odds))
    return Atoms(np.array([-epsilon, epsilon]), masses, delta, mirrored=True)
