"""Noise on clipped sums: a part of a run, handed to ``make_private(..., noise=...)``.

>>> Independent()
Independent()
>>> Banded(bands=8).vectors(CyclicPoissonSampling(0.1, 8), 100)
7
"""

from __future__ import annotations

from discreet.training.noise.banded import Banded
from discreet.training.noise.banded_inverse import BandedInverse
from discreet.training.noise.base import Gaussians, Noise, Step
from discreet.training.noise.blt import BLT
from discreet.training.noise.correlated import Correlated
from discreet.training.noise.dense import Dense
from discreet.training.noise.independent import Independent
from discreet.training.noise.lambda_cgd import LambdaCGD
from discreet.training.noise.square_root import SquareRoot
from discreet.training.noise.tree import Tree
from discreet.training.sampling.participation import CyclicPoissonSampling

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
