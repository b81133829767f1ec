r"""Facts of runs with correlated noise in which each record keeps its bin: Kahane's inequality, from both sides.

A record of bin i moves C times the sums by c_i = C·u_i; let K be the Gram matrix of these over the squared noise. Then
the likelihood ratio is the mean S/t of exp(g_i - K_ii/2), g ~ N(0, K), and Kahane's inequality (1986) says: where
K ≤ K' entry by entry, E f(S) ≤ E f(S') for every convex f. So a larger K' bounds both directions of delta from above,
and a smaller one from below. Those used here are a *common factor and an independent mean*,
:class:`CommonFactor`: n bins of which any two share the variance ρ and each has κ - ρ of its own, one Gaussian and one
pass over n independent bins.

**From above.** Take A = {0, m, 2m, ...}, n = ⌊t/m⌋ bins of which any two are m or more apart in the circle of all t.
Averaged over the t shifts of A around the circle every bin is met equally often, so by joint convexity delta is at most
the mean, over shifts, of the delta of a uniform choice from A + s. The numbers of two bins of A + s differ by at least
m and at most t - m, so ρ = the largest product at such a distance, and κ = the largest square, give a larger matrix.
Every m bounds delta at every epsilon; the least counts. The last bins of a pass are next to the first ones of the next,
which is why the circle is the measure. What neighbours share is forgotten further away: A = {0, m, ..., (n-1)m} with a
gap at its end, a common ρ of what is j·m apart or more, and powers of a correlation that is large enough for all that
is nearer, is a larger matrix too, whose independent mean becomes that of a chain, which
:mod:`discreet.accounting.allocation_chain` bounds in each direction by itself.

**From below.** Cut the bins into q runs of at most b = ⌈t/q⌉ neighbours. No product is negative, so the matrix that has
ρ = the smallest product at a distance below b (zero: the smallest square) in each run, and c = the smallest of all
elsewhere, is smaller entry by entry. Its ratio is a common factor of variance c times Σ w_r ℓ_r, the ℓ_r independent
of variance ρ - c and w_r the share of a run. E f of that is symmetric and convex in the weights, so equal ones have the
least: a pass over q bins. And where all products are at least powers of one correlation, a chain of all bins is smaller
(:mod:`discreet.accounting.allocation_chain_below`). All are attained by a record that moves every sum of its steps by
one unit vector.

**Adaptive contributions** x_s of norm at most one, chosen after earlier outputs, are covered where C has no negative
entry. Row r of Cx is then moved, by a record of bin i, by a vector m_i with ⟨m_i, m_j⟩ ≤ (Cu_i)_r (Cu_j)_r, whatever
the past. Kahane's inequality holds for positive weights too, E f(Σ w_i exp(g_i - K_ii/2)); so from the last row to the
first, with the past and the later rows' (independent) factors as weights, each row's factors may be replaced by those
of x = 1. ∎

Decision 231.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from discreet import events as ev
from discreet.accounting.allocation import Allocation
from discreet.accounting.allocation_chain import Chain
from discreet.accounting.allocation_ratio import COARSE, FAST, Precision
from discreet.accounting.arrays import Array
from discreet.accounting.facts import LARGEST_MU, Facts, register, within
from discreet.accounting.kept_shapes import (
    EXACT,
    LEAST_VARIANCE,
    CommonFactor,
    allocated,
    chain,
    chain_below,
    majorants,
    minorants,
)
from discreet.accounting.neighbours import resolve
from discreet.accounting.parts import Leaf, Resolved
from discreet.accounting.pld.atoms import NOTHING
from discreet.accounting.pld.composite import compose
from discreet.accounting.pld.pairs import GaussianShift, Pair, Tails
from discreet.accounting.rdp import rdp_curve
from discreet.adjacency import Adjacency
from discreet.errors import NotCertified

__all__ = ["KeptPair"]

_SMALL = 1e-11  # below it, the law whose errors are relative is asked too
_CHAIN_TAIL = 1e-21  # a chain's infinite loss is some 1e-15: for deltas from 1e-12 on


@dataclass(frozen=True)
class KeptPair(Pair):
    """The pair of a run with kept bins: of many shapes above it the least delta, of two below it the larger."""

    event: ev.KeptBins
    forward: bool = True
    chained: bool = True  # a chain's law bounds one direction, and is not to be mirrored

    @property
    def two_sided(self) -> KeptPair:
        """Without the chain."""
        return replace(self, chained=False)

    @property
    def attained(self) -> bool:
        """An envelope."""
        return False

    @property
    def attainable(self) -> tuple[Pair, ...]:
        """The shapes below."""
        pairs = [pair for shape in minorants(self.event) if (pair := self._below(shape)) is not NOTHING]
        below = chain_below(self.event) if self.forward and self.chained else None
        return tuple(pairs if below is None else [below, *pairs]) or (NOTHING,)

    def _below(self, shape: CommonFactor) -> Pair:
        parts: list[Pair] = [GaussianShift(math.sqrt(shape.common))] if shape.common > LEAST_VARIANCE else []
        if shape.rest > LEAST_VARIANCE:
            if shape.bins == 1:
                return GaussianShift(math.sqrt(shape.common + shape.rest))
            laws = allocated(shape.bins, shape.rest)
            try:
                laws.law(FAST, above=False)
            except NotCertified:
                return NOTHING
            parts.append(Allocation(laws, self.forward, above=False))
        if len(parts) < 2:
            return parts[0] if parts else NOTHING
        return compose([(part, 1) for part in parts]).below

    @property
    def mirror(self) -> KeptPair:
        """P and Q exchanged."""
        return replace(self, forward=not self.forward)

    def profile(self, losses: Array) -> Array:
        """The least of the shapes'."""
        values = self._least(losses, COARSE)
        return np.minimum(values, self._least(losses, EXACT)) if (values < _SMALL).any() else values

    @property
    def _chain(self) -> CommonFactor | None:
        return chain(self.event) if self.chained else None

    def _least(self, losses: Array, precision: Precision) -> Array:
        values, shapes = np.ones(len(losses)), majorants(self.event)
        for shape in shapes if self._chain is None else (self._chain, *shapes):
            with suppress(NotCertified):  # of the exact law: then the other one's value stands
                values = np.minimum(values, shape.profile(losses, precision, forward=self.forward))
        return values

    def tails(self, losses: Array) -> Tails:
        """Of the best shape."""
        return majorants(self.event)[0].tails(losses, forward=self.forward, above=True)

    def heads(self, losses: Array) -> Tails:
        """Of the best shape."""
        return majorants(self.event)[0].tails(losses, forward=self.forward, above=False)

    def sharpened(self, tail: float) -> Pair:
        """The best shape on one lattice, for compositions with other events."""
        best = self._chain if tail >= _CHAIN_TAIL else None
        return _on_lattice(best or majorants(self.event)[0], self.forward)


@lru_cache(maxsize=32)
def _on_lattice(shape: CommonFactor, forward: bool) -> Pair:
    rest: Pair = GaussianShift(math.sqrt(shape.rest)) if shape.rest > 0 else NOTHING
    if shape.correlation:
        rest = Chain(shape.bins, shape.rest, shape.correlation).law(forward=forward)
    elif shape.rest >= LEAST_VARIANCE and shape.bins > 1:
        rest = Allocation(allocated(shape.bins, shape.rest), forward)
    common = [GaussianShift(math.sqrt(shape.common))] if shape.common > 0 else []
    parts = [*common, *([rest] if rest is not NOTHING else [])]
    return parts[0] if len(parts) == 1 else compose([(part, 1) for part in parts])


def _kept(event: ev.KeptBins, count: int, wanted: Adjacency, group: int) -> Resolved:
    if wanted is not Adjacency.ADD_REMOVE or group > 1:
        return resolve(_alone(event) * count, wanted, group)
    return Resolved((Leaf(event, wanted, count),))


def _pair(event: ev.KeptBins, adjacency: Adjacency) -> Pair:
    """That of known bins only where its parameters are beyond what is computed with: then nothing is said below."""
    alone = within(1 / _alone(event).noise_multiplier, LARGEST_MU, GaussianShift)
    return alone if alone.infinity or alone.raised else KeptPair(event)


def _curve(event: ev.KeptBins, adjacency: Adjacency, orders: Array) -> Array:
    alone = rdp_curve(_alone(event), orders, adjacency)
    if not isinstance(_pair(event, adjacency), KeptPair):
        return alone
    return np.asarray(np.fmin(alone, rdp_curve(majorants(event)[0].event, orders, adjacency)))


def _alone(event: ev.KeptBins) -> ev.Gaussian:
    """Bins that are known: the largest sensitivity."""
    return ev.Gaussian(noise_multiplier=event.noise_multiplier / math.sqrt(event.products[0]) * (1 - 1e-12))


register(ev.KeptBins, Facts(pair=_pair, curve=_curve, restated=_kept))
