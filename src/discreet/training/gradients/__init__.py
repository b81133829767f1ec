"""Everything behind the clipped sum: each record's gradient, seen, measured, clipped and added up in one backward pass.

``ClippedSum`` is the door. Behind it ``watch`` and ``interception`` see every use of a parameter, also in place
(``assignment``) and under ``vmap`` (``vectorised``), ``probe`` and ``places`` find where the records are, ``taps`` wait
for gradients, ``calls`` and ``layers`` say which handler answers for a call, the handlers (``handlers``,
``outer_products``, ``convolution``, ``fallback``) turn what a call saw and what came back into norms and sums, which
one record's rounding must not spoil for others (``cancellation``), and ``verification`` runs some records alone, by
plain autograd, against what was claimed of them.
"""

from __future__ import annotations

from discreet.training.gradients import layers as layers  # registers the handlers of torch's own functions
from discreet.training.gradients import products as products  # and of products
from discreet.training.gradients.calls import register, register_layer
from discreet.training.gradients.clipped_sum import ClippedSum, Reduction
from discreet.training.gradients.clipping import Clipping, Quantile
from discreet.training.gradients.handlers import Handler
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
