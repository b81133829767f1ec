"""Noise on clipped sums: a part of a run, handed to ``make_private(..., noise=...)``.

>>> Independent()
Independent()
>>> Banded(bands=8).vectors(CyclicPoissonSampling(0.1, 8), 100)
7
"""

from __future__ import annotations

from discreet.training.noise.base import Noise, Step
from discreet.training.noise.correlated import Correlated
from discreet.training.noise.gaussians import Gaussians
from discreet.training.noise.independent import Independent
from discreet.training.noise.lambda_cgd import LambdaCGD
from discreet.training.noise.strategies import BLT, Banded, BandedInverse, Dense, SquareRoot, Tree
from discreet.training.participation import CyclicPoissonSampling

__all__ = [
    "BLT",
    "Banded",
    "BandedInverse",
    "Correlated",
    "CyclicPoissonSampling",
    "Dense",
    "Gaussians",
    "Independent",
    "LambdaCGD",
    "Noise",
    "SquareRoot",
    "Step",
    "Tree",
]
