"""What may watch a private run: additional records of public origin, and what is released of them.

A run that is watched has ``canaries`` records more, which its sampler draws like all others, and its sums have one
tensor more, of as many entries, on which no private record has any effect. In it each canary's clipped contribution is
added up, the noise is put on it by the call that puts it on the gradient, and the observer is told the result. So what
an observer learns is a function of releases and of its own coins, and the guarantee of records is what it was.

Training knows this protocol alone; ``discreet.auditing`` implements it. Decision 502.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.errors import extra
from discreet.training.gradients.clipping import Clipping
from discreet.training.noise.base import Step
from discreet.training.plan import Plan

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Observation", "Observer", "canary_sum", "checked_observer"]

Drawn = NDArray[np.int64]
RAW = 1e3  # clip norms: a canary's gradient is much longer than what clipping leaves of it


class Observer(ABC):
    """Settings of an audit: what ``make_private(..., audit=...)`` takes."""

    canaries: int

    @abstractmethod
    def begin(self, plan: Plan, parameters: Mapping[str, Tensor], agree: Callable[[Any], Any]) -> Observation:
        """Watch one run of a plan; ``agree`` gives all ranks what the first one has. Refuse what cannot be watched."""


class Observation(ABC):
    """The observation of one run."""

    canaries: int

    @abstractmethod
    def contributions(self, drawn: Drawn) -> Tensor:
        """What each of the canaries drawn adds to its coordinate, before it is clipped: a sign, or nothing."""

    @abstractmethod
    def observe(self, step: Step, drawn: Drawn, released: Tensor, gradient: list[Tensor]) -> None:
        """A step was released: the canaries' tensor of it, and the gradient, divided. An observation that refutes the
        claim raises."""

    def report(self) -> None:
        """The last step of the plan was observed."""
        return None

    @property
    @abstractmethod
    def audit(self) -> Any:
        """What it says of the run so far."""

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""

    @abstractmethod
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""


def checked_observer(audit: Any) -> Observer | None:
    """An observer, or the reason why this is none."""
    if audit is None or isinstance(audit, Observer):
        return audit
    raise ValueError(
        f"audit is a {type(audit).__name__}, but must be an observer of the run, such as "
        "discreet.auditing.GradientCanaries(500)."
    )


def canary_sum(signs: Tensor, clipping: Clipping, clip_norm: float, like: Tensor) -> Tensor:
    """The canaries' part of a sum: gradients of ``RAW`` clip norms along coordinates of their own, clipped as records'
    are."""
    raw = RAW * clip_norm * signs.to(like.device, torch.promote_types(like.dtype, torch.float32))
    return raw * clipping.factors(raw.square(), clip_norm)
