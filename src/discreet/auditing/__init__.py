"""Evidence about privacy: record-and-replay, and empirical lower bounds.

Both falsify; neither proves. A mechanism's proof is in its docstring, and these look for the bug that breaks it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from discreet.auditing.audit import Audit, audit
from discreet.auditing.exposure import Exposure, exposure, extract
from discreet.auditing.inversion import Inversion, invert, normal_errors
from discreet.auditing.lower_bounds import clopper_pearson, epsilon_lower_bound, mu_lower_bound
from discreet.auditing.membership_lira import ATTACKS, Membership, membership
from discreet.auditing.one_run import epsilon_one_run, epsilon_one_run_gaussian, guesses, rules_out
from discreet.auditing.reading import CannotJudge
from discreet.auditing.replay import ReplayError, Transcript, record, replay
from discreet.auditing.roc import ROC
from discreet.auditing.run_audit import RunAudit
from discreet.auditing.single_run import OneRun, audit_run

if TYPE_CHECKING:
    from discreet.auditing.gradient_canaries import GradientCanaries
    from discreet.auditing.input_canaries import InputCanaries

__all__ = [
    "ATTACKS",
    "ROC",
    "Audit",
    "CannotJudge",
    "Exposure",
    "GradientCanaries",
    "InputCanaries",
    "Inversion",
    "Membership",
    "OneRun",
    "ReplayError",
    "RunAudit",
    "Transcript",
    "audit",
    "audit_run",
    "clopper_pearson",
    "epsilon_lower_bound",
    "epsilon_one_run",
    "epsilon_one_run_gaussian",
    "exposure",
    "extract",
    "guesses",
    "invert",
    "membership",
    "mu_lower_bound",
    "normal_errors",
    "record",
    "replay",
    "rules_out",
]


_NEED_TORCH = {"GradientCanaries": "gradient_canaries", "InputCanaries": "input_canaries"}


def __getattr__(name: str) -> Any:
    if name not in _NEED_TORCH:
        raise AttributeError(f"module 'discreet.auditing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"discreet.auditing.{_NEED_TORCH[name]}"), name)
