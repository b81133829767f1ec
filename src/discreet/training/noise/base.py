"""What a noise is: it prices itself for a participation, and makes a private sum a released one.

A new noise is one class, handed to ``make_private(..., noise=...)``; nothing else knows its name. The run gives it the
public facts of each step, the sum in parts, one tensor a parameter, and a source of Gaussian noise; and it shows the
step to record-and-replay once, over all parameters.

That source, ``Gaussians``, draws on the CPU by ``discreet.random.fast`` and adds in place, for small tensors together:
a draw costs some microseconds however little it fills.

Decision 125.
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
from discreet.random import Rng, gaussian_noise
from discreet.random.keyed import Keyed, new_key
from discreet.random.tap import draw_output, heard
from discreet.training.memory import SMALL, side_by_side
from discreet.training.sampling import Poisson, Sampler
from discreet.training.sampling.participation import Participation
from discreet.training.speed import on_threads

with extra("torch"):
    import torch
    from torch import Tensor

__all__ = ["Gaussians", "Noise", "Step", "shown"]


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


class Gaussians:
    """The Gaussian noise of one step, from one stream.

    ``secure`` takes the cryptographic generator; without it a faster one, keyed by the same entropy.
    """

    __slots__ = ("_rng", "_secure")

    def __init__(self, rng: Rng, secure: bool = True) -> None:
        self._rng, self._secure = rng, secure

    def add(self, tensors: Sequence[Tensor], sigma: float, scale: float = 1.0, *, subtract: bool = False) -> None:
        """Each tensor plus noise of standard deviation ``sigma``, times ``scale``; afterwards nothing holds it without.
        With ``subtract`` the noise is taken away: what the same key has added is gone."""
        small: dict[tuple[torch.dtype, torch.device], list[Tensor]] = {}
        large = []
        for tensor in tensors:
            if tensor.numel() > SMALL:
                large.append(tensor)
            else:
                small.setdefault((tensor.dtype, tensor.device), []).append(tensor)
        for group in small.values():
            together = group[0] if len(group) == 1 else side_by_side(group)
            if together is not None:
                self._add(together, sigma, scale, subtract)
                continue
            flat = [tensor.view(-1) for tensor in group]
            together = torch.cat(flat)
            self._add(together, sigma, scale, subtract)
            torch._foreach_copy_(flat, together.split_with_sizes([len(part) for part in flat]))
        for tensor in large:
            self._add(tensor, sigma, scale, subtract)

    def _add(self, tensor: Tensor, sigma: float, scale: float, subtract: bool) -> None:
        here = tensor.cpu()
        gaussian_noise(
            here.numpy(),
            sigma,
            self._rng,
            secure=self._secure,
            add=True,
            subtract=subtract,
            scale=scale,
            team=on_threads,
        )
        if here is not tensor:
            tensor.copy_(here)

    def key(self) -> bytes:
        """A key for noise that will be drawn again; secret."""
        return new_key(self._rng)

    def keyed(self, key: bytes) -> Gaussians:
        """The noise of a key: the same for the same tensors, however often it is drawn."""
        return Gaussians(Keyed(key, reproducible=self._rng.reproducible), self._secure)

    def again(self) -> Gaussians:
        """The noise of a key, from its beginning."""
        assert isinstance(self._rng, Keyed)
        self._rng.rewind()
        return self

    def number(self, value: float, sigma: float) -> float:
        """A number plus noise."""
        return value + float(gaussian_noise(1, sigma, self._rng, secure=self._secure)[0])


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
