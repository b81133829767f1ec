"""Private training of torch models: sampler, clipped sum, noise, optimiser, and one plan over them.

>>> from discreet.training import make_private
"""

from __future__ import annotations

from discreet.training.admission import replace_batch_norm
from discreet.training.fit import Progress, fit
from discreet.training.gradients.calls import register, register_layer
from discreet.training.gradients.clipping import Clipping, Quantile
from discreet.training.gradients.handlers import Rule
from discreet.training.privacy import Privacy
from discreet.training.private import make_private
from discreet.training.refusals import MixedRecords, PrivateTrainingError
from discreet.training.sampling import BallsInBins, FixedSize, PerUser, Poisson, Sampler, Shuffled, TruncatedPoisson

__all__ = [
    "BallsInBins",
    "Clipping",
    "FixedSize",
    "MixedRecords",
    "PerUser",
    "Poisson",
    "Privacy",
    "PrivateTrainingError",
    "Progress",
    "Quantile",
    "Rule",
    "Sampler",
    "Shuffled",
    "TruncatedPoisson",
    "fit",
    "make_private",
    "register",
    "register_layer",
    "replace_batch_norm",
]
