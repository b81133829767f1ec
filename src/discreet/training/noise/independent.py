"""Fresh Gaussian noise at every step, independent of every other: DP-SGD's, and the default."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from discreet import events
from discreet.errors import extra
from discreet.training.noise.base import Gaussians, Noise, Step
from discreet.training.sampling.participation import Participation

with extra("torch"):
    from torch import Tensor

__all__ = ["Independent", "gaussian"]


@dataclass(frozen=True)
class Independent(Noise):
    """Noise of standard deviation multiplier times sensitivity.

    Guarantee: a step is the Gaussian mechanism on the records of its draw, amplified as the participation says. Where a
    record has one step of a period, the period costs one event, begun or not, at the least noise in it.

    Reference: Abadi et al. (2016).

    >>> from discreet.training.sampling.participation import PoissonSampling
    >>> Independent().event(PoissonSampling(0.01), [2.0, 2.0]) == events.PoissonSampled(
    ...     rate=0.01, event=events.Gaussian(noise_multiplier=2.0)) * 2
    True
    """

    correlated = False

    def event(self, participation: Participation, multipliers: Sequence[float]) -> events.Event:
        """One event a step, or a period."""
        k = participation.period
        least = multipliers if k == 1 else [min(multipliers[i : i + k]) for i in range(0, len(multipliers), k)]
        return participation.run({_gaussian(participation, z): n for z, n in sorted(Counter(least).items())})

    def release(self, step: Step, total: Sequence[Tensor], gaussians: Gaussians) -> None:
        """Fresh noise, in place."""
        gaussians.add(total, step.sigma, 1 / step.divisor)


def _gaussian(participation: Participation, z: float) -> events.Gaussian:
    """Noise of ``z`` clip norms on what moves by so many."""
    return events.Gaussian(noise_multiplier=z / participation.movement, adjacency=participation.adjacency)


def gaussian(sigma: float, limit: float) -> events.Event:
    """What noise of deviation ``sigma`` costs on what moves by at most ``limit``."""
    return events.Gaussian(noise_multiplier=sigma / limit) if sigma > 0 else events.NonPrivate()
