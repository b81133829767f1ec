"""Private training of torch models: sampler, clipped sum, noise, optimiser, and one plan over them.

>>> from discreet.training import make_private
"""

from __future__ import annotations

from discreet.training.calls import register
from discreet.training.clipping import Clipping, Quantile
from discreet.training.private import Privacy, PrivateTrainingError, make_private, replace_batch_norm
from discreet.training.sampling import BallsInBins, FixedSize, PerUser, Poisson, Sampler, Shuffled, TruncatedPoisson
from discreet.training.watch import MixedRecords

__all__ = [
    "BallsInBins",
    "Clipping",
    "FixedSize",
    "MixedRecords",
    "PerUser",
    "Poisson",
    "Privacy",
    "PrivateTrainingError",
    "Quantile",
    "Sampler",
    "Shuffled",
    "TruncatedPoisson",
    "make_private",
    "register",
    "replace_batch_norm",
]
