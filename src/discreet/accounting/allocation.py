r"""Random allocation: a pass in which every record is in one of t batches, chosen at random and by itself.

**The pair.** Let (P₀, Q₀) dominate, for one removed record, what runs on a batch, and let ℓ = dP₀/dQ₀. Then

.. math:: P = \frac1t \sum_{i \le t} Q_0^{i-1} \times P_0 \times Q_0^{t-i}, \qquad Q = Q_0^t, \qquad
          \frac{dP}{dQ} = \frac{S}{t}, \quad S = \ell_1 + \dots + \ell_t

dominates the pass, also where batches run one after another and each may depend on what the earlier ones showed.

*Proof.* Records choose by themselves, so given the others' choices the record of interest is in batch i with
probability 1/t, and on average over those choices a divergence is at most the worst (joint convexity). Without the
record, let L_i be the likelihood ratio of batch i with the record against without it, given all outputs before. With it
the outputs have density (L_1 + … + L_t)/t. Every divergence that matters is E f of that mean for a convex f ≥ 0:
:math:`(s - e^\epsilon)_+` for removing and :math:`(1 - e^\epsilon s)_+` for adding. Given the past, L_t is below ℓ in
convex order: that is what domination of (P₀, Q₀) at all orders says. So E f(a + L_t/t) ≤ E f(a + ℓ/t) =: g(a), whatever
the past was; g is convex again, and the same holds of L_{t-1}, and so on to the first. ∎ (For Gaussian noise: Chua et
al. 2024, "Balls-and-Bins Sampling for DP-SGD", Theorem 3.2.) The pair is attained where (P₀, Q₀) is.

Where bins are kept and k events run in each, pass after pass, outputs have the density Σ_i L_i1 ⋯ L_ik / t. The same
induction holds from the last step to the first: a step of bin i multiplies one term, E f(a + w·L) ≤ E f(a + w·ℓ) for
every weight w ≥ 0 that the past and the (already replaced, independent) later factors give, and so ℓ_i may be the ratio
of all k events together. Samplers take a bin as 64 random bits modulo t: its probability is at most 1/t + 2^-64, which
raises a loss by no more than t·2^-64, less than what losses are moved outward by.

**The numbers.** Because both divergences are convex in every ℓ_i, spreading each ratio and each partial sum onto a
lattice with equal means bounds both from above, and contracting bounds both from below
(:mod:`discreet.accounting.allocation_lattice`). The lattice law, with P-probability m·x/t at a sum x of probability m
under Q, is a pair itself, which the grid engine composes with others. What tails are not known by goes outward too
(:mod:`discreet.accounting.allocation_ratio`). What the lattice leaves out has an infinite loss in
either direction above, and none below.

**More bins cost less**: a mean of t + 1 exchangeable ratios is the conditional mean of a mean of t of them, so it is
below it in convex order. Beyond ``MOST_BINS`` the price is that of so many.

**Rényi divergences** are E f for f(s) = s^α and s^(1-α), so the upper law bounds them where all ratios are on the
lattice. On the event A that one is not, convexity and Hölder's inequality give, for every p > 1, :math:`E[f(S/t); A]
\le \max_i E[f(\ell_i); A] \le \Pr(A)^{1-1/p}\,(E f(\ell)^p)^{1/p}`. Divergences are never above those of one batch.

>>> from discreet.accounting.pld.pairs import GaussianShift
>>> pair = Allocation(Allocated(bins=100, pair=GaussianShift(1.0)))
>>> [round(float(side.profile(np.array([0.2]))[0]), 7) for side in (pair.attainable[0], pair)]
[0.0046357, 0.0046357]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from discreet.accounting.allocation_lattice import Blocks, power
from discreet.accounting.allocation_ratio import FAST, SHARP, WIDE, Precision, contracted_ratio, spread_ratio
from discreet.accounting.arrays import Array, Interval
from discreet.accounting.contraction import contract_atoms
from discreet.accounting.pld.atoms import NOTHING
from discreet.accounting.pld.composite import Composite
from discreet.accounting.pld.pairs import Pair, Tails
from discreet.errors import NotCertified

__all__ = ["MOST_BINS", "Allocated", "Allocation", "MeanRatio", "mean_ratio"]

MOST_BINS = 10**6
_NONE = 1e-13  # of the mass is left out by a contraction that leaves out nothing
_UNIT = 2.0**-53
_FAST_TAIL = 1e-18  # transforms are wrong by some 1e-14 altogether, which is to be small against 1e9 such tails
_FAST_DELTA = 1e-11


@dataclass(frozen=True, eq=False)
class Allocated:
    """The laws of the mean ratio of ``bins`` batches, each with the pair ``pair``: computed once, when asked for."""

    bins: int
    pair: Pair
    fewer: bool = False  # than there are
    _laws: dict[tuple[Precision, bool], tuple[Blocks, float]] = field(default_factory=dict, repr=False)
    _atoms: dict[tuple[Precision, bool, bool], MeanRatio] = field(default_factory=dict, repr=False)

    def law(self, precision: Precision, *, above: bool) -> tuple[Blocks, float]:
        """The law of the sum from above or below, and what its points may be wrong by, relatively."""
        if not above and not self.pair.attained:
            raise NotCertified("the pair of one batch is an upper bound, and says nothing from below.")
        if (precision, above) not in self._laws:
            one, wrong = (spread_ratio if above else contracted_ratio)(self.pair, self.bins, precision)
            self._laws[precision, above] = power(one, self.bins), wrong
        return self._laws[precision, above]

    def atoms(self, precision: Precision, *, forward: bool, above: bool) -> MeanRatio:
        """The pair on the lattice, for a removed record (``forward``) or an added one."""
        key = precision, forward, above
        if key not in self._atoms:
            self._atoms[key] = self._pair(*key)
        return self._atoms[key]

    def _pair(self, precision: Precision, forward: bool, above: bool) -> MeanRatio:
        law, wrong = self.law(precision, above=above)
        points, masses = law.atoms()
        lost = (law.lost, law.lost_mean / self.bins) if above else None
        return mean_ratio(points / self.bins, masses, forward=forward, wrong=wrong, lost=lost)

    def log_moment(self, c: Array, *, forward: bool, batch: Mapping[float, Array]) -> Array:
        """log E_P exp(cL), at most; ``batch`` has log E f^p of one batch, by p, for what the lattice leaves out."""
        law, pair = self.law(WIDE, above=True)[0], self.atoms(WIDE, forward=forward, above=True)
        losses, logs = pair.losses[pair.masses > 0], np.log(pair.masses[pair.masses > 0])
        exponents = (order * losses + logs for order in c)
        inside = np.array([float(x.max()) + math.log(float(np.exp(x - x.max()).sum())) for x in exponents])
        missed = math.log(law.lost + 1e-230)
        outside = np.min([(1 - 1 / p) * missed + logs / p for p, logs in batch.items()], axis=0)
        return np.asarray(np.logaddexp(inside, outside) + 1e-12)


class MeanRatio(Composite):
    """The pair on a lattice, either side."""

    @property
    def support(self) -> Interval:
        """Unbounded: few of the losses can be written down."""
        return -math.inf, math.inf

    @property
    def _sums(self) -> tuple[Tails, Tails]:
        if "sums" not in self.__dict__:
            p, q = self.masses.astype(np.longdouble), self.q_masses.astype(np.longdouble)
            up = [np.append(np.cumsum(x[::-1])[::-1], 0.0).astype(float) for x in (p, q)]
            down = [np.append(0.0, np.cumsum(x)).astype(float) for x in (p, q)]
            self.__dict__["sums"] = (up[0] + self.infinite, up[1]), (down[0], down[1] + self.missing)
        sums: tuple[Tails, Tails] = self.__dict__["sums"]
        return sums

    def contracted(self, losses: Array) -> Array | None:
        """Merged in the ratio exp(l), whose mean under Q is kept; on every second, fourth, ... loss where the atoms are
        farther apart than the lattice's points.
        """
        inside = (self.losses >= losses[0]) & (self.losses <= min(losses[-1], 600.0))
        atoms, masses, numbers = np.exp(self.losses[inside]), self.q_masses[inside], np.arange(len(losses))
        least, result = 1e-9 * float(masses.sum()), None
        gaps = np.diff(self.losses[inside]) / (losses[1] - losses[0])
        gap = gaps[np.clip(np.searchsorted(self.losses[inside], losses) - 1, 0, len(gaps) - 1)]
        for wider in (1, 2, 4, 8, 16, 32):
            kept = numbers % 2 ** np.ceil(np.log2(np.maximum(wider * gap, 1.0))).astype(int) == 0
            points = np.exp(losses[kept])
            within = (atoms >= points[0]) & (atoms <= points[-1])
            q = contract_atoms(points, atoms[within], masses[within])
            left_out = float(masses.sum() - q.sum())
            if left_out < least:
                least, result = left_out / 2, np.zeros(len(losses))
                result[kept] = q * points
            if left_out <= _NONE * masses.sum():
                break
        return result


def mean_ratio(
    ratios: Array, masses: Array, *, forward: bool, wrong: float = 0.0, lost: tuple[float, float] | None = None
) -> MeanRatio:
    """The pair whose likelihood ratios, in increasing order and wrong by ``wrong``, have those masses under Q.

    ``lost`` is Q's and P's mass of an infinite loss, for a law from above; without it the law is one from below. Losses
    go outward for one direction; for whoever exchanges P and Q, in a sampler around it, that much is lost too.
    """
    zero, some = float(masses[ratios <= 0].sum()), ratios > 0
    losses, masses = np.log(ratios[some]), masses[some]
    outward = wrong + 4 * _UNIT * (1 + np.abs(losses))
    losses = losses + (outward if forward == (lost is not None) else -outward)
    with np.errstate(under="ignore"):
        weighted = masses * np.exp(losses)
    q_lost, p_lost = (lost[0] + zero, lost[1]) if lost else (0.0, 0.0)
    exchanged = 2 * float(outward.max()) if lost else 0.0
    if forward:
        return MeanRatio(losses, weighted, p_lost, False, masses, q_lost + exchanged)
    return MeanRatio(-losses[::-1], masses[::-1], q_lost, False, weighted[::-1], p_lost + exchanged)


@dataclass(frozen=True)
class Allocation(Pair):
    """The pair of a pass, from above; ``attainable`` is the same from below."""

    laws: Allocated
    forward: bool = True
    above: bool = True

    @property
    def mirror(self) -> Allocation:
        """P and Q exchanged."""
        return replace(self, forward=not self.forward)

    @property
    def attained(self) -> bool:
        """Not from above, where the law is rounded up; from below it is at most what some mechanism has."""
        return not self.above

    @property
    def attainable(self) -> tuple[Pair, ...]:
        """The law from below; nothing where there is none."""
        try:
            self.laws.law(FAST, above=False)
        except NotCertified:
            return (NOTHING,)
        return (self if not self.above else replace(self, above=False),)

    @property
    def raised(self) -> bool:
        """If the pair of a batch was, or there are more bins than are priced."""
        return self.laws.pair.raised or self.laws.fewer

    @property
    def infinity(self) -> float:
        """As for one batch."""
        return self.laws.pair.infinity if self.above else 0.0

    @property
    def resolution(self) -> int:
        """Finer than the law, which is known to a millionth."""
        return 1 << 18

    def sharpened(self, tail: float) -> MeanRatio:
        """The fast law, or, for the smallest probabilities, the one whose errors are relative if floats hold it."""
        if tail < _FAST_TAIL:
            with suppress(NotCertified):
                return self.laws.atoms(SHARP, forward=self.forward, above=self.above)
        return self.laws.atoms(FAST, forward=self.forward, above=self.above)

    def tails(self, losses: Array) -> Tails:
        """Of the fast law."""
        return self.sharpened(1.0).tails(losses)

    def heads(self, losses: Array) -> Tails:
        """Of the fast law."""
        return self.sharpened(1.0).heads(losses)

    def profile(self, losses: Array) -> Array:
        """The better of the two laws', or the fast one's where floats do not hold the other."""
        values = self.sharpened(1.0).profile(losses)
        if (values < _FAST_DELTA).any():
            values = (np.minimum if self.above else np.maximum)(values, self.sharpened(0.0).profile(losses))
        return np.asarray(values)
