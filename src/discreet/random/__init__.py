"""Entropy, named streams, exact discrete samplers, fast float noise, exact sums.

Sources are ``system()`` and ``seeded(seed)``; the samplers take either as ``rng=``. A run that draws for several
purposes has ``Streams``. Compiled code loads on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from discreet.random.source import Rng, RngLike, as_rng, from_state, seeded, system
from discreet.random.streams import Streams
from discreet.random.sums import exact_sum

if TYPE_CHECKING:
    from discreet.random.choice import accepts, bernoulli, permuted_index, weighted_index
    from discreet.random.exact import discrete_gaussian, discrete_laplace, gaussian_cells, laplace_cell, laplace_cells
    from discreet.random.fast import gaussian_noise

__all__ = [
    "Rng",
    "RngLike",
    "Streams",
    "accepts",
    "as_rng",
    "bernoulli",
    "discrete_gaussian",
    "discrete_laplace",
    "exact_sum",
    "from_state",
    "gaussian_cells",
    "gaussian_noise",
    "laplace_cell",
    "laplace_cells",
    "permuted_index",
    "seeded",
    "system",
    "weighted_index",
]

_LAZY = {
    "accepts": "choice",
    "bernoulli": "choice",
    "discrete_gaussian": "exact",
    "discrete_laplace": "exact",
    "gaussian_cells": "exact",
    "gaussian_noise": "fast",
    "laplace_cell": "exact",
    "laplace_cells": "exact",
    "permuted_index": "choice",
    "weighted_index": "choice",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'discreet.random' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"discreet.random.{_LAZY[name]}"), name)
    globals()[name] = value
    return value
