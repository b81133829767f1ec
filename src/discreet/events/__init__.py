"""What a private computation did, as a value: the vocabulary every other room speaks.

An event states the parameters of a mechanism, never an epsilon where something tighter is known. It is computed
from public parameters alone, before data is read; accountants turn it into guarantees.

Events form a tree. ``a + b`` runs both, ``a * n`` runs ``a`` n times, ``a | b`` runs each on its own disjoint part
of the data. ``leaves`` is the one walk over the tree; sampled and parallel nodes are leaves of that walk, because a
sampler wraps everything that runs on one sample. Every leaf carries the adjacency its guarantee was proved under.

>>> step = PoissonSampled(rate=0.01, event=Gaussian(noise_multiplier=4.0))
>>> leaves(step * 3 + step) == {step: 4}
True
>>> Event.from_json((step * 3).to_json()) == step * 3
True
"""

from __future__ import annotations

from discreet.events.mechanisms import (
    GDP,
    RDP,
    ZCDP,
    ApproxDP,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    NonPrivate,
    PureDP,
    RandomizedResponse,
)
from discreet.events.sampling import (
    BallsInBins,
    FixedSizeSampled,
    KeptBins,
    PoissonSampled,
    ProvedUnder,
    Shuffled,
    TruncatedPoissonSampled,
)
from discreet.events.selection import OneOf, Selected
from discreet.events.tree import Composed, Event, Parallel, Repeated, leaves

__all__ = [
    "GDP",
    "RDP",
    "ZCDP",
    "ApproxDP",
    "BallsInBins",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Exponential",
    "FixedSizeSampled",
    "Gaussian",
    "KeptBins",
    "Laplace",
    "NonPrivate",
    "OneOf",
    "Parallel",
    "PoissonSampled",
    "ProvedUnder",
    "PureDP",
    "RandomizedResponse",
    "Repeated",
    "Selected",
    "Shuffled",
    "TruncatedPoissonSampled",
    "leaves",
]
