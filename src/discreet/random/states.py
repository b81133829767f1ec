"""scikit-learn's ``random_state`` as a source of randomness."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from discreet.random.source import Rng, as_rng, seeded

__all__ = ["from_state"]


def from_state(random_state: Any) -> Rng:
    """The source a ``random_state`` means: none is the operating system's, a seed or a generator is reproducible."""
    if random_state is None or isinstance(random_state, Rng):
        return as_rng(random_state)
    if isinstance(random_state, Integral):
        return seeded(int(random_state))
    if isinstance(random_state, np.random.RandomState):
        return seeded(int(random_state.randint(2**31 - 1)))
    if isinstance(random_state, np.random.Generator):
        return seeded(int(random_state.integers(2**63 - 1)))
    raise ValueError(
        f"random_state is a {type(random_state).__name__}, but must be None, a whole number or a NumPy generator."
    )
