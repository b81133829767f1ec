"""Optimisers for noisy gradients, and averages of weights: post-processing of what a private run releases.

Each is an ordinary torch optimiser, or is attached to one, and works in any loop, private or not. What the noise of a
step is, which is public, it asks ``optimizer.privacy``; nothing here sees a record, so nothing here has a price.

>>> import torch
>>> weight = torch.nn.Parameter(torch.zeros(3))
>>> DiSK(AdamBC([weight], lr=0.01), gain=0.5)
DiSK(AdamBC, gain=0.5)
"""

from __future__ import annotations

from discreet.training.optimisers.adam import AdamBC
from discreet.training.optimisers.averages import Average, ExponentialAverage, TailAverage
from discreet.training.optimisers.disk import DiSK

__all__ = ["AdamBC", "Average", "DiSK", "ExponentialAverage", "TailAverage"]
