"""The correlated noises by name: which matrix of ``mechanisms.factorization`` each takes for a run."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.errors import whole
from discreet.mechanisms import factorization as f
from discreet.mechanisms.factorization import Pattern, Strategy
from discreet.training.noise.correlated import Correlated
from discreet.training.sampling import CyclicPoisson, Sampler

__all__ = ["BLT", "Banded", "BandedInverse", "Dense", "SquareRoot", "Tree"]


@dataclass(frozen=True, kw_only=True)
class Tree(Correlated):
    """A binary tree with Honaker's estimate, begun again with every pass.

    With ``restarts=False`` one tree spans the run, and a record is in it once a pass. Memory: a vector a level.

    Reference: Kairouz et al. (2021), DP-FTRL.
    """

    restarts: bool = True

    def found(self, pattern: Pattern) -> Strategy:
        """A tree a pass."""
        return f.Tree(pattern.steps, restart=pattern.separation if self.restarts else None)


@dataclass(frozen=True, kw_only=True)
class SquareRoot(Correlated):
    """The root of the optimiser's sums. Memory: a vector a step."""

    def found(self, pattern: Pattern) -> Strategy:
        """The root."""
        return f.SquareRoot(self.workload(pattern.steps))


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

    def found(self, pattern: Pattern) -> Strategy:
        """The optimum; normalised where bands do not reach from one participation to the next."""
        best = f.Banded.optimised(self.workload(pattern.steps), self.bands, self.error)
        return f.NormalisedBanded(best) if best.bands <= pattern.separation else best

    def sampler(self, batch_size: int, dataset_size: int) -> Sampler:
        """The parts of the data in turn, each sampled by coins."""
        return CyclicPoisson(batch_size=batch_size, dataset_size=dataset_size, parts=self.bands)


@dataclass(frozen=True, kw_only=True)
class BandedInverse(Correlated):
    """A matrix whose inverse has few bands, optimised; or with ``optimised=False`` those of the square root (BISR).

    Memory: bands - 1 vectors.

    Reference: Kalinin et al. (2025), "Back to square roots".
    """

    bands: int = 4
    optimised: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("bands", self.bands, low=1)

    def found(self, pattern: Pattern) -> Strategy:
        """The optimum, or the root's first bands."""
        if not self.optimised:
            return f.BandedInverse.square_root(pattern.steps, self.bands)
        return f.BandedInverse.optimised(self.workload(pattern.steps), pattern, self.bands, self.error)


@dataclass(frozen=True, kw_only=True)
class BLT(Correlated):
    """A buffered linear Toeplitz matrix, optimised. Memory: a vector a buffer.

    Reference: Dvijotham et al. (2024); McMahan et al. (2024).
    """

    buffers: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("buffers", self.buffers, low=1)

    def found(self, pattern: Pattern) -> Strategy:
        """The optimum."""
        return f.BLT.optimised(self.workload(pattern.steps), pattern, self.buffers, self.error)


@dataclass(frozen=True, kw_only=True)
class Dense(Correlated):
    """The optimum over all matrices at one participation, for runs of at most 2,048 steps. Memory: a vector a step.

    ``rates`` are the step sizes of a schedule, one a step.
    """

    rates: tuple[float, ...] | None = None

    def workload(self, steps: int) -> f.Workload:
        """With the schedule."""
        return f.Workload(steps, self.momentum, self.decay, self.rates)

    def found(self, pattern: Pattern) -> Strategy:
        """The optimum."""
        return f.Dense(self.workload(pattern.steps))
