"""What a noise is: it prices itself for a participation, and makes a private sum a released one.

A new noise is one class, handed to ``make_private(..., noise=...)``; nothing else knows its name. The run gives it the
public facts of each step, the sum in parts, one tensor a parameter, and a source of Gaussian noise; and it shows the
step to record-and-replay once, over all parameters.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.errors import extra
from discreet.events import Event
from discreet.random.tap import draw_output, heard
from discreet.training.noise.gaussians import Gaussians
from discreet.training.sampling import Poisson, Sampler
from discreet.training.sampling.participation import Participation

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Noise", "Step", "shown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The public facts of one release."""

    number: int
    multiplier: float  # the noise, in sensitivities
    sensitivity: float  # the most by which one record moves the sum, in l2
    movement: int  # how many times that a neighbour moves it
    divisor: float  # the public constant that the noisy sum is divided by

    @property
    def sigma(self) -> float:
        """The standard deviation of independent noise."""
        return self.multiplier * self.sensitivity

    @property
    def limit(self) -> float:
        """The most by which the sum may move between neighbours."""
        return self.sensitivity * self.movement


class Noise(ABC):
    """Noise for a sequence of sums, each adaptively chosen after the noisy ones before it.

    ``correlated`` says that noise of different steps depends on each other: the steps are then paid for together, and
    nothing is released beside them (an adaptive clip norm is refused). A run works on a copy of the noise it was given,
    so that no state of one run reaches another.
    """

    correlated: bool = True

    @abstractmethod
    def event(self, participation: Participation, multipliers: Sequence[float]) -> Event:
        """The price of as many steps as there are multipliers, from the first, for records that take part so.

        Raise ``ValueError`` for what has no price; before the charge, nothing else is asked.
        """

    def sampler(self, batch_size: int, dataset_size: int) -> Sampler:
        """The sampler that a run takes where none is named: one that the price is proved with."""
        return Poisson(batch_size=batch_size, dataset_size=dataset_size)

    def begun(self, participation: Participation, steps: int) -> Noise:
        """What one run of so many steps works on: a copy."""
        return copy.deepcopy(self)

    def vectors(self, participation: Participation, steps: int) -> int:
        """How many vectors of the model's size are kept from step to step."""
        return 0

    def spread(self, step: int) -> float:
        """The standard deviation of the noise of a step, over that of independent noise of the same multiplier."""
        if self.correlated:
            raise ValueError(
                f"{type(self).__name__} does not say how large the noise of one step is, which this optimizer asks "
                "for: give it a method spread(step)."
            )
        return 1.0

    @abstractmethod
    def release(self, step: Step, total: Sequence[Tensor], gaussians: Gaussians) -> None:
        """Add the noise of a step to the sum, in place, and divide. Called once for each step, in order."""

    def state_dict(self) -> dict[str, Any]:
        """What must go on where a checkpoint is loaded; nothing, unless steps remember each other.

        Of correlated noise it is secret, because it tells of noise that was released, and kept apart from checkpoints.
        """
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        if state:
            raise ValueError(f"The checkpoint holds a state of noise, but {type(self).__name__} has none.")


def shown(
    what: str, total: Sequence[Tensor], limit: float, draw: Callable[[], None], *, event: Event, once: object = None
) -> None:
    """Let ``draw`` put noise on ``total``, in place: one step of record-and-replay over all parameters.

    Only where somebody listens are the parts put side by side.
    """
    if heard() is None:
        draw()
        return

    def flat() -> Any:
        return torch.cat([part.detach().cpu().reshape(-1).double() for part in total]).numpy()

    def drawn() -> Any:
        draw()
        return flat()

    noisy: Any = draw_output(what, flat(), "l2", limit, drawn, event=event, once=once)
    parts = torch.from_numpy(np.asarray(noisy)).split_with_sizes([part.numel() for part in total])
    for part, value in zip(total, parts, strict=True):
        part.copy_(value.view(part.shape))
