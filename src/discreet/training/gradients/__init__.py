"""Everything behind the clipped sum: each record's gradient, seen, measured, clipped and added up in one backward pass.

``ClippedSum`` is the door. ``trace`` sees every use of a parameter and finds where the records are; ``rules`` turn what
a call saw and what came back into norms and sums, without forming a record's gradient where that is dearer (ghost
clipping); ``contraction`` puts them together, and one record's rounding must not spoil it for others
(``rules.handlers``). Whoever subscribes is told what is claimed of each record (``claims``).
"""

from __future__ import annotations

from discreet.training.gradients.clipped_sum import ClippedSum, Reduction
from discreet.training.gradients.clipping import Clipping, Quantile
from discreet.training.gradients.rules import layers as layers  # registers the handlers of torch's own functions
from discreet.training.gradients.rules import products as products  # and of products
from discreet.training.gradients.rules.handlers import Handler, register, register_layer
from discreet.training.gradients.scaling import PastGradients, PublicScale, Scale

__all__ = [
    "ClippedSum",
    "Clipping",
    "Handler",
    "PastGradients",
    "PublicScale",
    "Quantile",
    "Reduction",
    "Scale",
    "register",
    "register_layer",
]
