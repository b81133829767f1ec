"""Private training of torch models: sampler, clipped sum, noise, optimiser, and one plan over them.

>>> from discreet.training import make_private
"""

from __future__ import annotations

from discreet.training import noise, optimisers
from discreet.training.errors import MixedRecords, PrivateTrainingError
from discreet.training.fitting.fit import Progress, Training, fit
from discreet.training.gradients import (
    Clipping,
    Handler,
    PastGradients,
    PublicScale,
    Quantile,
    register,
    register_layer,
)
from discreet.training.noise.comparison import Auto, NoiseComparison, compare
from discreet.training.optimisers.admission import replace_batch_norm
from discreet.training.planning import plan_for
from discreet.training.privacy import Privacy
from discreet.training.private import make_private
from discreet.training.sampling import (
    BallsInBins,
    CyclicPoisson,
    FixedOrder,
    FixedSize,
    KeptBins,
    Poisson,
    Sampler,
    Shuffled,
    TruncatedPoisson,
)
from discreet.training.sampling.users import PerUser, RecordsPerUser
from discreet.training.sampling.views import Augmented, ManyViews
from discreet.training.speed import Speed

__all__ = [
    "Augmented",
    "Auto",
    "BallsInBins",
    "Clipping",
    "CyclicPoisson",
    "FixedOrder",
    "FixedSize",
    "Handler",
    "KeptBins",
    "ManyViews",
    "MixedRecords",
    "NoiseComparison",
    "PastGradients",
    "PerUser",
    "Poisson",
    "Privacy",
    "PrivateTrainingError",
    "Progress",
    "PublicScale",
    "Quantile",
    "RecordsPerUser",
    "Sampler",
    "Shuffled",
    "Speed",
    "Training",
    "TruncatedPoisson",
    "compare",
    "fit",
    "make_private",
    "noise",
    "optimisers",
    "plan_for",
    "register",
    "register_layer",
    "replace_batch_norm",
]
