"""``optimizer.privacy``: the account of a private run, read off the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet import accounting
from discreet.errors import extra
from discreet.events import Event
from discreet.training.errors import PrivateTrainingError
from discreet.training.noise.observer import Observation
from discreet.training.plan import Plan
from discreet.training.run import Run

with extra("torch"):
    from torch import Tensor

__all__ = ["Privacy"]


class Privacy:
    """What a private optimiser knows of its run; ``optimizer.privacy``."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __repr__(self) -> str:
        told = f", not verified: {self.unverified}" if self.unverified else ""
        told += ", debug: not private" if self._run.debug else ""
        return (
            f"Privacy({self.steps} of {self.plan.steps} steps, noise_multiplier={self.plan.noise_multiplier:.4g}, "
            f"{self.plan.adjacency}{told})"
        )

    @property
    def plan(self) -> Plan:
        """What will be done."""
        return self._run.plan

    @property
    def reproducible(self) -> bool:
        """Whether the run has a seed, and so is not private."""
        return self._run.streams.reproducible

    @property
    def private(self) -> bool:
        """Whether what is released may be called private: no seed, and no refusal that shows private records."""
        return not self._run.reproducible

    @property
    def unverified(self) -> str:
        """What of the loop was not verified, or only in part, and the user's reason to accept it; empty if all was."""
        return "; ".join(x for x in (self._run.unverified, self._run.in_part) if x)

    @property
    def between_pieces(self) -> bool:
        """Whether the last step was that of a piece: the optimiser did not move, and schedulers stand still."""
        return self._run.between_pieces

    @property
    def clip_norm(self) -> float:
        """The clip norm, before a schedule's factor; it moves where clipping is adaptive."""
        return self._run.clip_norm

    @property
    def steps(self) -> int:
        """Steps that were released."""
        return self._run.steps

    @property
    def remaining_steps(self) -> int:
        """Steps that are left."""
        return self.plan.steps - self.steps

    @property
    def planned(self) -> Event:
        """The price of the whole plan: the guarantee, however early the run stops."""
        return self.plan.event

    @property
    def executed(self) -> Event:
        """The price of the steps that ran."""
        return self.plan.price(self.steps)

    def epsilon(self, delta: float, *, executed: bool = False) -> float:
        """Epsilon of the plan at delta, for the sampler's adjacency; or of the steps so far, for a run stopped by
        chance or by a rule that does not look at the model."""
        return accounting.epsilon(self.executed if executed else self.planned, delta, adjacency=self.plan.adjacency)

    @property
    def observation(self) -> Observation:
        """Who watches the run, where it has an ``audit``."""
        if self._run.observation is None:
            raise PrivateTrainingError(
                "The run is not audited: give make_private(..., audit=discreet.auditing.GradientCanaries(500))."
            )
        return self._run.observation

    @property
    def audit(self) -> Any:
        """What the run's own canaries say of it so far."""
        return self.observation.audit

    @property
    def local(self) -> bool:
        """Whether figures that are not private are kept, for the eyes of who trains; none are, unless this is set."""
        return self._run.clipped.local

    @local.setter
    def local(self, kept: bool) -> None:
        self._run.clipped.note_clip_rate(kept)

    @property
    def clip_rate(self) -> float:
        """The share of the last batch's records whose gradient was clipped. Not private, so only where ``local`` is
        set."""
        if not self.local:
            raise PrivateTrainingError(
                "clip_rate is not private: it counts records without noise. For your own eyes set "
                "optimizer.privacy.local = True; to publish it, let clipping follow a Quantile, which "
                "releases such a count with noise."
            )
        return self._run.clipped.clip_rate

    @property
    def noise_memory(self) -> int:
        """Bytes that the noise keeps from step to step, known before the first one; in single precision or double. Of
        several ranks each keeps its share."""
        size = sum(p.numel() * max(4, p.element_size()) for p in self._run.clipped.parameters.values())
        return self.plan.noise_vectors * self._run.ranks.largest_share(size)

    def noise_variance(self, parameter: Tensor) -> float | Tensor:
        """The variance of the noise in the entries of a parameter's gradient, at the last step: public, and what an
        optimiser for noisy gradients corrects for. A number; with ``Clipping(scale=...)`` one an entry."""
        return self._run.noise_variance(parameter)

    def state_dict(self) -> dict[str, Any]:
        """One checkpoint of model, optimiser, sampler, clip state and account; of correlated noise nothing."""
        return self._run.state_dict()

    def secret_state_dict(self) -> dict[str, Any]:
        """What correlated noise remembers; empty for other noise. Secret: it takes the noise of released steps away.

        Save it beside no checkpoint that is published, and delete it when the run is over.
        """
        return self._run.secret_state_dict()

    def load_state_dict(self, state: Mapping[str, Any], secret: Mapping[str, Any] | None = None) -> None:
        """Go on from a checkpoint of the same plan; with correlated noise, and from its secret state."""
        self._run.load_state_dict(state, secret)
