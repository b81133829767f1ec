"""Evidence about privacy: record-and-replay, and empirical lower bounds.

Both falsify; neither proves. A mechanism's proof is in its docstring, and these look for the bug that breaks it.
"""

from __future__ import annotations

from discreet.auditing.lower_bounds import clopper_pearson, epsilon_lower_bound, mu_lower_bound
from discreet.auditing.replay import ReplayError, Transcript, record, replay

__all__ = [
    "ReplayError",
    "Transcript",
    "clopper_pearson",
    "epsilon_lower_bound",
    "mu_lower_bound",
    "record",
    "replay",
]
