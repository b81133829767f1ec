r"""Facts of runs with correlated noise in which each record keeps its bin: Kahane's inequality, from both sides.

A record of bin i moves C times the sums by c_i = C·u_i; let K be the Gram matrix of these over the squared noise. Then
the likelihood ratio is the mean S/t of exp(g_i - K_ii/2), g ~ N(0, K), and Kahane's inequality (1986) says: where
K ≤ K' entry by entry, E f(S) ≤ E f(S') for every convex f. So a larger K' bounds both directions of delta from above,
and a smaller one from below. Those used here are a *common factor and an independent mean*, :class:`Shape`: n bins of
which any two share the variance ρ and each has κ - ρ of its own, one Gaussian and one pass over n independent bins.

**From above.** Take A = {0, m, 2m, ...}, n = ⌊t/m⌋ bins of which any two are m or more apart in the circle of all t.
Averaged over the t shifts of A around the circle every bin is met equally often, so by joint convexity delta is at most
the mean, over shifts, of the delta of a uniform choice from A + s. The numbers of two bins of A + s differ by at least
m and at most t - m, so ρ = the largest product at such a distance, and κ = the largest square, give a larger matrix.
Every m bounds delta at every epsilon; the least counts. The last bins of a pass are next to the first ones of the next,
which is why the circle is the measure.

**From below.** Cut the bins into q runs of at most b = ⌈t/q⌉ neighbours. No product is negative, so the matrix that has
ρ = the smallest product at a distance below b (zero: the smallest square) in each run, and c = the smallest of all
elsewhere, is smaller entry by entry. Its ratio is a common factor of variance c times Σ w_r ℓ_r, the ℓ_r independent
of variance ρ - c and w_r the share of a run. E f of that is symmetric and convex in the weights, so equal ones have the
least: a pass over q bins. Both are attained by a record that moves every sum of its steps by one unit vector.

**Adaptive contributions** x_s of norm at most one, chosen after earlier outputs, are covered where C has no negative
entry. Row r of Cx is then moved, by a record of bin i, by a vector m_i with ⟨m_i, m_j⟩ ≤ (Cu_i)_r (Cu_j)_r, whatever
the past. Kahane's inequality holds for positive weights too, E f(Σ w_i exp(g_i - K_ii/2)); so from the last row to the
first, with the past and the later rows' (independent) factors as weights, each row's factors may be replaced by those
of x = 1. ∎
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from discreet import events as ev
from discreet.accounting.allocation import COARSE, FAST, Allocated, Allocation, MeanRatio, Precision
from discreet.accounting.arrays import Array
from discreet.accounting.facts import LARGEST_MU, Facts, register, within
from discreet.accounting.neighbours import resolve
from discreet.accounting.parts import Leaf, Resolved
from discreet.accounting.pld.atoms import NOTHING
from discreet.accounting.pld.composite import compose
from discreet.accounting.pld.lattice import slip
from discreet.accounting.pld.pairs import GaussianShift, Pair, Tails, scale_by_loss
from discreet.accounting.rdp import rdp_curve
from discreet.adjacency import Adjacency
from discreet.errors import NotCertified

__all__ = ["KeptPair", "Shape", "majorants", "minorants"]

_AIM = 1e-5  # the delta at which shapes are compared
_TRIED = 4  # so many of the likeliest are computed
_SMALL = 1e-11  # below it, the law whose errors are relative is asked too
_EXACT = Precision(exact=True, cut=1e-90, columns=512)
_FIELDS = ("bins", "common", "rest")
_NORMAL = np.linspace(-6, 6, 61), np.exp(-(np.linspace(-6, 6, 61) ** 2) / 2) / 12.5331  # a sum that is an integral
_LEAST_VARIANCE = 1e-5  # of an independent ratio: below, the lattice is coarser than it


@dataclass(frozen=True)
class Shape:
    """A Gaussian of variance ``common``, and a pass over ``bins`` bins whose ratios have the variance ``rest``."""

    bins: int
    common: float
    rest: float

    def law(self, precision: Precision, *, forward: bool) -> MeanRatio | None:
        """The mean of independent ratios from above; none where there is one ratio, or none."""
        if self.bins == 1 or self.rest < _LEAST_VARIANCE:
            return None
        return _allocated(self.bins, self.rest).atoms(precision, forward=forward, above=True)

    def profile(self, losses: Array, precision: Precision, *, forward: bool) -> Array:
        """δ(l) from above: the Gaussian's at l less the loss of the mean, over all of its values."""
        law = self.law(precision, forward=forward)
        if law is None:
            return GaussianShift(math.sqrt(self.common + self.rest)).profile(losses) + 1e-14
        if not self.common:
            return law.profile(losses)
        values = []
        for loss in losses:
            p, q = GaussianShift(math.sqrt(self.common)).tails(loss - law.losses)
            value = float(law.masses @ np.maximum(p - scale_by_loss(q, loss - law.losses), 0.0))
            values.append(value * (1 + 1e-12) + 2 * float(slip(np.array([law.masses @ p]))[0]) + law.infinite)
        return np.array(values)

    def tails(self, losses: Array, *, forward: bool, above: bool) -> Tails:
        """Tails (``above``) or heads of the pair, by the same sums."""
        law = self.law(COARSE, forward=forward)
        if law is None or not self.common:
            pair = law or GaussianShift(math.sqrt(self.common + self.rest))
            return pair.tails(losses) if above else pair.heads(losses)
        gaussian = GaussianShift(math.sqrt(self.common))
        sums = [(gaussian.tails if above else gaussian.heads)(loss - law.losses) for loss in losses]
        p, q = np.array([law.masses @ p for p, _ in sums]), np.array([law.q_masses @ q for _, q in sums])
        return (p + law.infinite, q) if above else (p, q + law.missing)

    @property
    def event(self) -> ev.Event:
        """The same as an event."""
        parts: list[ev.Event] = [_gaussian(self.common)] if self.common > 0 else []
        if self.rest > 0:
            parts.append(ev.BallsInBins(bins=self.bins, event=_gaussian(self.rest)))
        return ev.Composed(events=tuple(parts))


def _gaussian(variance: float) -> ev.Gaussian:
    return ev.Gaussian(noise_multiplier=(1 - 1e-12) / math.sqrt(variance))


@lru_cache(maxsize=64)
def _allocated(bins: int, variance: float) -> Allocated:
    return Allocated(bins, GaussianShift(math.sqrt(variance)))


@lru_cache(maxsize=256)
def majorants(event: ev.KeptBins) -> tuple[Shape, ...]:
    """Some of the shapes that bound it from above, the likeliest first."""
    products = _variances(event.products, event) * (1 + 1e-12)
    largest = float(products[0])

    def spaced(m: int) -> Shape:
        common = float(products[m : event.bins - m + 1].max(initial=0.0))
        return Shape(event.bins // m, common, (largest - common) * (1 + 1e-12))

    spacings = {*range(1, min(event.bins, 32) + 1), *(event.bins // n for n in range(1, min(event.bins, 32) + 1))}
    shapes = [spaced(m) for m in sorted(spacings)]
    likely = [shapes[i] for i in np.argsort(_rough_epsilons(shapes))[:_TRIED]]
    return (*filter(_is_computed, likely), Shape(1, 0.0, largest))


def _is_computed(shape: Shape) -> bool:
    """Whether its noise is not too small for a lattice."""
    try:
        shape.law(COARSE, forward=True)
    except NotCertified:
        return False
    return True


def minorants(event: ev.KeptBins) -> tuple[Shape, ...]:
    """Shapes that bound it from below: with a common factor, and without."""
    smallest = np.minimum.accumulate(_variances(event.smallest_products, event) * (1 - 1e-12))
    counts = {*range(1, min(event.bins, 32) + 1), *(math.ceil(event.bins / b) for b in range(1, 33))}

    def cut(runs: int, common: float) -> Shape:
        return Shape(runs, common, max(0.0, float(smallest[math.ceil(event.bins / runs) - 1]) - common))

    families = [[cut(runs, common) for runs in sorted(counts)] for common in sorted({0.0, float(smallest[-1])})]
    return tuple(shapes[int(np.argmax(_rough_epsilons(shapes)))] for shapes in families)


def _variances(products: tuple[float, ...], event: ev.KeptBins) -> Array:
    """Products over the squared noise, one for every distance between bins; each is wrong by less than 1e-13 of it."""
    values = np.zeros(event.bins)
    values[: len(products)] = (np.sqrt(products) / event.noise_multiplier) ** 2
    return values


def _rough_epsilons(shapes: list[Shape]) -> Array:
    """Epsilon of each if, but for the ratio of the record's bin, the mean were lognormal: for ranking alone."""
    bins, common, rest = (np.array([getattr(shape, name) for shape in shapes])[:, None] for name in _FIELDS)
    rest = np.minimum(rest, 300.0)
    nodes, weights = _NORMAL
    others = np.log1p(np.expm1(rest) / bins)
    losses = np.log1p(np.expm1(rest / 2 + np.sqrt(rest) * nodes) / bins)
    mu = np.sqrt(common + others) + 1e-9
    low, high = np.zeros(len(shapes)), np.full(len(shapes), 1000.0)
    for _ in range(40):
        middle = (low + high) / 2
        x = middle[:, None] - losses
        delta = (ndtr(mu / 2 - x / mu) - np.exp(np.minimum(x, 700.0)) * ndtr(-mu / 2 - x / mu)) @ weights
        low, high = np.where(delta > _AIM, middle, low), np.where(delta > _AIM, high, middle)
    return high


@dataclass(frozen=True)
class KeptPair(Pair):
    """The pair of a run with kept bins: of many shapes above it the least delta, of two below it the larger."""

    event: ev.KeptBins
    forward: bool = True

    @property
    def attained(self) -> bool:
        """An envelope."""
        return False

    @property
    def attainable(self) -> tuple[Pair, ...]:
        """The shapes below."""
        pairs = [pair for shape in minorants(self.event) if (pair := self._below(shape)) is not NOTHING]
        return tuple(pairs) or (NOTHING,)

    def _below(self, shape: Shape) -> Pair:
        parts: list[Pair] = [GaussianShift(math.sqrt(shape.common))] if shape.common > _LEAST_VARIANCE else []
        if shape.rest > _LEAST_VARIANCE:
            if shape.bins == 1:
                return GaussianShift(math.sqrt(shape.common + shape.rest))
            laws = _allocated(shape.bins, shape.rest)
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
        return np.minimum(values, self._least(losses, _EXACT)) if (values < _SMALL).any() else values

    def _least(self, losses: Array, precision: Precision) -> Array:
        values = np.ones(len(losses))
        for shape in majorants(self.event):
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
        return _on_lattice(majorants(self.event)[0], self.forward)


@lru_cache(maxsize=32)
def _on_lattice(shape: Shape, forward: bool) -> Pair:
    rest: Pair = GaussianShift(math.sqrt(shape.rest)) if shape.rest > 0 else NOTHING
    if shape.rest >= _LEAST_VARIANCE and shape.bins > 1:
        rest = Allocation(_allocated(shape.bins, shape.rest), forward)
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
