"""Banded matrix factorization, which sampling amplifies."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import whole
from discreet.mechanisms import factorization as f
from discreet.mechanisms.factorization import Pattern, Strategy
from discreet.training.noise.correlated import Correlated
from discreet.training.sampling import CyclicPoisson, Sampler

__all__ = ["Banded"]


@dataclass(frozen=True, kw_only=True)
class Banded(Correlated):
    """A banded Toeplitz matrix, optimised, its columns normalised. Memory: bands - 1 vectors.

    The sampler is cyclic Poisson with as many parts as there are bands, which amplifies.

    Reference: Choquette-Choo et al. (2023), "(Amplified) banded matrix factorization".

    >>> noise, sampler = Banded(bands=4), Banded(bands=4).sampler(100, 10_000)
    >>> print(noise.event(sampler.participation, [1.0] * 200))
    50 x PoissonSampled(rate=0.04, Gaussian(noise_multiplier=1))
    """

    bands: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("bands", self.bands, low=1)

    def strategy_for(self, pattern: Pattern) -> Strategy:
        """The optimum; normalised where bands do not reach from one participation to the next."""
        best = f.Banded.optimised(self.workload(pattern.steps), self.bands, self.error)
        return f.NormalisedBanded(best) if best.bands <= pattern.separation else best

    def sampler(self, batch_size: int, dataset_size: int) -> Sampler:
        """The parts of the data in turn, each sampled by coins."""
        return CyclicPoisson(batch_size=batch_size, dataset_size=dataset_size, parts=self.bands)
