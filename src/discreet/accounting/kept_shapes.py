"""Shapes that bound the Gram matrix of kept bins, entry by entry: a common factor, and a pass over bins beside it.

Two bins of a shape share the variance ``common`` and each has ``rest`` of its own; neighbours share some of that too,
where the shape is a chain. Why these bound a run is in :mod:`discreet.accounting.leaves.kept_bins`.

Decision 231.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr

from discreet import events as ev
from discreet.accounting.allocation import Allocated, MeanRatio
from discreet.accounting.allocation_chain import Chain
from discreet.accounting.allocation_chain_below import calls_below
from discreet.accounting.allocation_ratio import COARSE, Precision
from discreet.accounting.arrays import Array
from discreet.accounting.pld.lattice import slip
from discreet.accounting.pld.pairs import GaussianShift, Tails, scale_by_loss
from discreet.errors import NotCertified

__all__ = ["EXACT", "LEAST_VARIANCE", "CommonFactor", "allocated", "chain", "chain_below", "majorants", "minorants"]

_AIM = 1e-5  # the delta at which shapes are compared
_TRIED = 4  # so many of the likeliest are computed
_FIELDS = ("bins", "common", "rest", "correlation")
_NORMAL = np.linspace(-6, 6, 61), np.exp(-(np.linspace(-6, 6, 61) ** 2) / 2) / 12.5331  # a sum that is an integral
_GAPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # between the two ends of a chain, around the circle
_MOST_BINS = 200  # of a chain, whose cost is in proportion
_LEAST_CORRELATED, _MOST_CORRELATED = 0.02, 0.98
_WORTH = 1.1  # by a formula that overrates what a chain costs
EXACT = Precision(exact=True, cut=1e-90, columns=512)  # for the smallest deltas
LEAST_VARIANCE = 1e-5  # of an independent ratio: below, the lattice is coarser than it


@dataclass(frozen=True)
class CommonFactor:
    """A Gaussian of variance ``common``, and a pass over ``bins`` bins whose ratios have the variance ``rest``.

    Those of neighbours have that ``correlation``, and others its powers.
    """

    bins: int
    common: float
    rest: float
    correlation: float = 0.0

    def law(self, precision: Precision, *, forward: bool) -> MeanRatio | None:
        """The mean of the ratios from above; none where there is one ratio, or none."""
        if self.bins == 1 or self.rest < LEAST_VARIANCE:
            return None
        if self.correlation:
            return Chain(self.bins, self.rest, self.correlation).law(forward=forward)
        return allocated(self.bins, self.rest).atoms(precision, forward=forward, above=True)

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
def allocated(bins: int, variance: float) -> Allocated:
    """A pass over independent bins, whose laws are computed once."""
    return Allocated(bins, GaussianShift(math.sqrt(variance)))


@lru_cache(maxsize=256)
def majorants(event: ev.KeptBins) -> tuple[CommonFactor, ...]:
    """Some of the shapes that bound it from above, the likeliest first."""
    products = _variances(event.products, event) * (1 + 1e-12)
    largest = float(products[0])

    def spaced(m: int) -> CommonFactor:
        common = float(products[m : event.bins - m + 1].max(initial=0.0))
        return CommonFactor(event.bins // m, common, (largest - common) * (1 + 1e-12))

    spacings = {*range(1, min(event.bins, 32) + 1), *(event.bins // n for n in range(1, min(event.bins, 32) + 1))}
    shapes = [spaced(m) for m in sorted(spacings)]
    likely = [shapes[i] for i in np.argsort(_rough_epsilons(shapes))[:_TRIED]]
    return (*filter(_is_computed, likely), CommonFactor(1, 0.0, largest))


@lru_cache(maxsize=256)
def chain(event: ev.KeptBins) -> CommonFactor | None:
    """The chain that bounds it from above, if it is likely to say more than what :func:`majorants` has.

    Of ``bins`` bins that are m apart on a part of the circle: products at j·m or more are in the common factor, and the
    correlation is large enough for all others. Two bins that are j·m apart on the circle have numbers that differ by
    j·m, or, with the end of a pass between them, by t - j·m.
    """
    products = _variances(event.products, event) * (1 + 1e-12)
    products[1:] = np.maximum(products[1:], products[:0:-1])
    shapes = [
        shape
        for m in {1, 2, 3, 4, 6, 8, math.ceil(event.bins / _MOST_BINS)}
        for gap in _GAPS
        if (count := (event.bins - gap * m) // m + 1) > 2
        for shape in _chains(products[: count * m : m])
    ]
    if not shapes:
        return None
    best, independent = shapes[int(np.argmin(_rough_epsilons(shapes)))], majorants(event)[0]
    rough = _rough_epsilons([best, independent])
    return best if rough[0] < _WORTH * rough[1] and best.bins <= _MOST_BINS and _is_computed(best) else None


def _chains(products: Array) -> Iterator[CommonFactor]:
    """Chains of so many bins, from the products at each distance between them."""
    largest = float(products[0])
    for first in sorted({min(j, len(products) - 1) for j in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48)}):
        common, near = float(products[first:].max()), products[1:first]
        rest = (largest - common) * (1 + 1e-12)
        if rest < LEAST_VARIANCE:
            continue
        shared = np.clip((near - common) / rest, 0.0, 1.0)
        correlation = float((shared ** (1 / np.arange(1, first))).max()) * (1 + 1e-12)
        if 0 < correlation < _MOST_CORRELATED:
            yield CommonFactor(len(products), common, rest, correlation)


def _is_computed(shape: CommonFactor) -> bool:
    """Whether its noise is not too small for a lattice."""
    try:
        shape.law(COARSE, forward=True)
    except NotCertified:
        return False
    return True


def minorants(event: ev.KeptBins) -> tuple[CommonFactor, ...]:
    """Shapes that bound it from below: with a common factor, and without."""
    smallest = np.minimum.accumulate(_variances(event.smallest_products, event) * (1 - 1e-12))
    counts = {*range(1, min(event.bins, 32) + 1), *(math.ceil(event.bins / b) for b in range(1, 33))}

    def cut(runs: int, common: float) -> CommonFactor:
        return CommonFactor(runs, common, max(0.0, float(smallest[math.ceil(event.bins / runs) - 1]) - common))

    families = [[cut(runs, common) for runs in sorted(counts)] for common in sorted({0.0, float(smallest[-1])})]
    return tuple(shapes[int(np.argmax(_rough_epsilons(shapes)))] for shapes in families)


@lru_cache(maxsize=64)
def chain_below(event: ev.KeptBins) -> MeanRatio | None:
    """The law of the mean ratio of a chain that bounds it from below where a record is removed, if there is one."""
    smallest = _variances(event.smallest_products, event) * (1 - 1e-12)
    if not 2 < event.bins <= _MOST_BINS or smallest[0] < LEAST_VARIANCE:
        return None
    shared = np.minimum(smallest[1:] / smallest[0], _MOST_CORRELATED)
    correlation = float((shared ** (1 / np.arange(1, event.bins))).min()) * (1 - 1e-12)
    if correlation < _LEAST_CORRELATED:
        return None
    shape = CommonFactor(event.bins, 0.0, float(smallest[0]), correlation)
    top = math.exp(min(1.3 * float(_rough_epsilons([shape])[0]), 20.0)) + 1
    try:
        return calls_below(Chain(shape.bins, shape.rest, correlation), top)
    except NotCertified:
        return None


def _variances(products: tuple[float, ...], event: ev.KeptBins) -> Array:
    """Products over the squared noise, one for every distance between bins; each is wrong by less than 1e-13 of it."""
    values = np.zeros(event.bins)
    values[: len(products)] = (np.sqrt(products) / event.noise_multiplier) ** 2
    return values


def _rough_epsilons(shapes: list[CommonFactor]) -> Array:
    """Epsilon of each if, but for what the record's bin moves on average, the mean were lognormal: only ranks."""
    fields = (np.array([getattr(shape, name) for shape in shapes])[:, None] for name in _FIELDS)
    bins, common, rest, correlation = fields
    rest = np.minimum(rest, 300.0)
    nodes, weights = _NORMAL
    variance, mean = np.zeros_like(rest), np.zeros((len(shapes), len(nodes)))
    for j in range(40 if correlation.any() else 1):
        shared, times = correlation**j, 1 + (j > 0)  # with both neighbours that are j bins away
        variance += times * np.expm1(rest * shared)
        mean += times * np.expm1(shared * (rest + np.sqrt(rest) * nodes) - shared**2 * rest / 2)
    others, losses = np.log1p(variance / bins), np.log1p(np.maximum(mean / bins, -0.9))
    mu = np.sqrt(common + others) + 1e-9
    low, high = np.zeros(len(shapes)), np.full(len(shapes), 1000.0)
    for _ in range(40):
        middle = (low + high) / 2
        x = middle[:, None] - losses
        delta = (ndtr(mu / 2 - x / mu) - np.exp(np.minimum(x, 700.0)) * ndtr(-mu / 2 - x / mu)) @ weights
        low, high = np.where(delta > _AIM, middle, low), np.where(delta > _AIM, high, middle)
    return high
