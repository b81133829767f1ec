"""Which records a step sees: one law of sampling a file, and how its batches are put together.

A sampler draws the batches and states how records take part in them (``participation``); ``users`` bounds what a user
brings, ``pieces`` cuts a batch for a small machine, ``collate`` puts records into tensors, ``views`` makes several
views of a record, ``rehearsal`` makes up a batch before any is drawn.
"""

from __future__ import annotations

from discreet.training.sampling.base import Indices, Sampler
from discreet.training.sampling.bins import BallsInBins, KeptBins
from discreet.training.sampling.cyclic import CyclicPoisson
from discreet.training.sampling.fixed_size import FixedSize
from discreet.training.sampling.poisson import Poisson, TruncatedPoisson
from discreet.training.sampling.shuffled import FixedOrder, Shuffled

__all__ = [
    "BallsInBins",
    "CyclicPoisson",
    "FixedOrder",
    "FixedSize",
    "Indices",
    "KeptBins",
    "Poisson",
    "Sampler",
    "Shuffled",
    "TruncatedPoisson",
]
