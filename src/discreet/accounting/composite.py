"""A composition as one pair, for use inside a sampler or a parallel part: certified under both of its laws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from discreet.accounting.arrays import Array
from discreet.accounting.grid import OUTSIDE, Composition, Grid, Window
from discreet.accounting.lattice import lower, upper
from discreet.accounting.pairs import Atoms, Pair

__all__ = ["NOTHING", "Composite", "compose"]

_TAIL = 1e-18

NOTHING = Atoms(np.zeros(1), np.ones(1), mirrored=True)
"""The pair of what says nothing: below every other."""


@dataclass(frozen=True)
class Composite(Atoms):
    """A composition on a lattice that dominates it; ``below`` is a pair that it dominates.

    Neither law is read off the other, because exp(-l) would magnify its rounding: ``others`` has Q's masses, and
    ``lost`` Q's mass at minus infinity.
    """

    others: Array | None = None
    lost: float = 0.0
    below: Atoms = NOTHING

    @property
    def attained(self) -> bool:
        """A rounded law."""
        return False

    @cached_property
    def q_masses(self) -> Array:
        """As computed."""
        assert self.others is not None
        return self.others

    @property
    def missing(self) -> float:
        """As computed."""
        return self.lost

    @property
    def mirror(self) -> Composite:
        """P and Q exchanged; what is below in one direction says nothing of the other."""
        return Composite(-self.losses[::-1], self.q_masses[::-1], self.lost, False, self.masses[::-1], self.infinite)


def compose(parts: Sequence[tuple[Pair, int]]) -> Composite:
    """The pair of a composition.

    Losses above zero have their masses from the law of P, the others from the law of Q (P tilted by exp(-l)), each less
    its error. Mass that is taken off an outcome and put on a loss of plus infinity (P's) and of minus infinity (Q's)
    gives a pair that dominates: whoever sees those outcomes can draw the old ones. Not tilted otherwise, so the error,
    some 1e-13, joins the infinite loss: good for any delta well above that.
    """
    lattice = Grid(tuple(parts))
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
    return Composite(losses, masses, infinite, mirrored, others, lost, _below(lattice, step))


def _masses(whole: Composition, c: float) -> tuple[Array, Array, float]:
    """Losses, their masses under P (c = 0) or Q (c = -1) less the error of each, and what was lost by that."""
    losses, masses, each = Window(whole, c).law
    size = math.exp(min(whole.log_m(c), 0.0))
    slip = 1e-15 * (1 + sum(count for _, count in whole.laws))  # relative, of the sum of so many logarithms
    lost = size * (2 * each * len(masses) + 2 * math.exp(-OUTSIDE)) + 2 * slip
    return losses, size * np.maximum((1 - slip) * masses - each, 0.0), lost


def _below(lattice: Grid, step: float) -> Atoms:
    """A pair that the composition dominates, in its own direction; nothing where the parts are envelopes themselves."""
    if not all(pair.attained for pair, _ in lattice.parts):
        return NOTHING
    whole = Composition(lattice._laws(lower, step, _TAIL))
    losses, masses, _ = _masses(whole, 0.0)
    return Atoms(losses, np.maximum(masses - 2 * math.exp(-OUTSIDE), 0.0), whole.infinity)
