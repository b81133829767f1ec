"""Pairs of compositions: of each part in turn, and of a whole as one pair, inside a sampler or a parallel part."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from discreet import events as ev
from discreet.accounting.arrays import Array
from discreet.accounting.facts import LARGEST_MU, pair_of, stated_mu, within
from discreet.accounting.neighbours import resolve
from discreet.accounting.parts import Choice, Leaf, Part
from discreet.accounting.pld.accurate import Bounded
from discreet.accounting.pld.atoms import NOTHING, Atoms, too_large
from discreet.accounting.pld.convolution import OUTSIDE, Composition, Window
from discreet.accounting.pld.grid import LossGrid
from discreet.accounting.pld.lattice import lower, upper
from discreet.accounting.pld.pairs import GaussianShift, Pair, reverse
from discreet.accounting.pld.sampling import Supremum
from discreet.accounting.sums import mu_sum
from discreet.adjacency import Adjacency

__all__ = ["Composite", "compose", "composed_pair", "gaussian_mu", "pairs_of"]

_TAIL = 1e-18


def gaussian_mu(parts: tuple[Part, ...]) -> float | None:
    """The mu of an event made of plain Gaussians alone, which are then priced exactly. None for any other event."""
    plain = all(isinstance(part, Leaf) and stated_mu(part) is not None for part in parts)
    return mu_sum(parts) if plain else None


@lru_cache(maxsize=8)  # a composition is costly, and asked for again at every point of a curve
def composed_pair(event: ev.Event, adjacency: Adjacency) -> Pair:
    """The pair of everything that runs on one sample."""
    parts = resolve(event, adjacency).parts
    mu = gaussian_mu(parts)
    if mu is not None:
        return within(mu, LARGEST_MU, GaussianShift)
    return _one(list(pairs_of(parts, forward=True)))


def pairs_of(parts: tuple[Part, ...], *, forward: bool) -> Iterator[tuple[Pair, int]]:
    """The pair of each part, with its repetitions, in one direction."""
    for part in parts:
        if isinstance(part, Choice):
            yield _supremum(part, forward=forward), part.count
        else:
            pair = pair_of(part)
            yield (pair if forward != part.flip else reverse(pair)), part.count


@lru_cache(maxsize=16)  # several accounts ask for the same options
def _supremum(choice: Choice, *, forward: bool) -> Pair:
    options = [_one(list(pairs_of(option, forward=forward))) for option in choice.options]
    if all(isinstance(pair, GaussianShift) for pair in options):
        return max(options, key=lambda pair: pair.mu)  # type: ignore[attr-defined]
    return Supremum(tuple(options)) if len(options) > 1 else options[0]


def _one(pairs: list[tuple[Pair, int]]) -> Pair:
    """A composition as one pair that knows its tails; a lone pair as it is, unless it is known by its profile only."""
    pairs = [(pair.two_sided, count) for pair, count in pairs]  # a sampler around it may exchange P and Q
    only = pairs[0][0] if len(pairs) == 1 and pairs[0][1] == 1 else None
    if only is not None and not isinstance(only, Supremum):
        return only
    return compose(pairs) if LossGrid(tuple(pairs)).infinity < 1 else too_large()


@dataclass(frozen=True)
class Composite(Atoms):
    """A composition on a lattice that dominates it; ``below`` is a pair that it dominates.

    Neither law is read off the other, because exp(-l) would magnify its rounding: ``others`` has Q's masses, and
    ``lost`` Q's mass at minus infinity.
    """

    others: Array | None = None
    lost: float = 0.0
    below: Atoms = NOTHING
    rounded: bool = False  # whether a part's parameters were rounded up

    @property
    def attained(self) -> bool:
        """A rounded law."""
        return False

    @property
    def attainable(self) -> tuple[Pair, ...]:
        """What lies below."""
        return (self.below,)

    @property
    def raised(self) -> bool:
        """If a part was."""
        return self.rounded

    @cached_property
    def q_masses(self) -> Array:
        """As computed."""
        assert self.others is not None
        return self.others

    @property
    def missing(self) -> float:
        """As computed."""
        return self.lost

    def log_mgf(self, z: Array) -> Bounded:
        """The plain sum: masses that were rounded apart obey no identity."""
        return self._log_mgf_far(z)

    @property
    def mirror(self) -> Composite:
        """P and Q exchanged; what is below in one direction says nothing of the other."""
        others, lost = self.masses[::-1], self.infinite
        return Composite(-self.losses[::-1], self.q_masses[::-1], self.lost, False, others, lost, rounded=self.rounded)


def compose(parts: Sequence[tuple[Pair, int]]) -> Composite:
    """The pair of a composition.

    Losses above zero have their masses from the law of P, the others from the law of Q (P tilted by exp(-l)), each less
    its error. Mass that is taken off an outcome and put on a loss of plus infinity (P's) and of minus infinity (Q's)
    gives a pair that dominates: whoever sees those outcomes can draw the old ones. Not tilted otherwise, so the error,
    some 1e-13, joins the infinite loss: good for any delta well above that.
    """
    lattice = LossGrid(tuple(parts))
    step = lattice.step(_TAIL)
    whole = Composition(lattice._laws(upper, step, _TAIL))
    p_losses, p, p_lost = _masses(whole, 0.0)
    q_losses, q, q_lost = _masses(whole, -1.0)
    above, rest = p_losses > 0, q_losses <= 0
    losses = np.concatenate([q_losses[rest], p_losses[above]])
    with np.errstate(under="ignore"):
        masses = np.concatenate([q[rest] * np.exp(q_losses[rest]), p[above]])
        others = np.concatenate([q[rest], p[above] * np.exp(-p_losses[above])])
    wrong = p_lost + q_lost
    infinite, lost = min(1.0, whole.infinity + wrong), min(1.0, whole.missing + wrong)
    mirrored = all(pair.symmetric for pair, _ in parts)
    raised = any(pair.raised for pair, _ in parts)
    return Composite(losses, masses, infinite, mirrored, others, lost, _below(lattice, step), raised)


def _masses(whole: Composition, c: float) -> tuple[Array, Array, float]:
    """Losses, their masses under P (c = 0) or Q (c = -1) less the error of each, and what was lost by that."""
    losses, masses, each = Window(whole, c).law
    size = math.exp(min(whole.log_m(c), 0.0))
    slip = 1e-15 * (1 + sum(count for _, count in whole.laws))  # relative, of the sum of so many logarithms
    lost = size * (2 * each * len(masses) + 2 * math.exp(-OUTSIDE)) + 2 * slip
    return losses, size * np.maximum((1 - slip) * masses - each, 0.0), lost


def _below(lattice: LossGrid, step: float) -> Atoms:
    """A pair that the composition dominates, in its own direction; nothing where the parts are envelopes themselves."""
    if not all(pair.attained for pair, _ in lattice.parts):
        return NOTHING
    whole = Composition(lattice._laws(lower, step, _TAIL))
    losses, masses, _ = _masses(whole, 0.0)
    return Atoms(losses, np.maximum(masses - 2 * math.exp(-OUTSIDE), 0.0), whole.infinity)
