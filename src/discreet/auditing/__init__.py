"""Evidence about privacy: record-and-replay, and empirical lower bounds.

Both falsify; neither proves. A mechanism's proof is in its docstring, and these look for the bug that breaks it.
"""

from __future__ import annotations

from discreet.auditing.audit import Audit, audit
from discreet.auditing.exposure import Exposure, exposure, extract
from discreet.auditing.inversion import Inversion, invert, normal_errors
from discreet.auditing.lower_bounds import clopper_pearson, epsilon_lower_bound, mu_lower_bound
from discreet.auditing.membership import ATTACKS, Membership, membership
from discreet.auditing.one_run import epsilon_one_run, epsilon_one_run_gaussian, falsified, guesses
from discreet.auditing.replay import ReplayError, Transcript, record, replay
from discreet.auditing.roc import ROC

__all__ = [
    "ATTACKS",
    "ROC",
    "Audit",
    "Exposure",
    "Inversion",
    "Membership",
    "ReplayError",
    "Transcript",
    "audit",
    "clopper_pearson",
    "epsilon_lower_bound",
    "epsilon_one_run",
    "epsilon_one_run_gaussian",
    "exposure",
    "extract",
    "falsified",
    "guesses",
    "invert",
    "membership",
    "mu_lower_bound",
    "normal_errors",
    "record",
    "replay",
]
