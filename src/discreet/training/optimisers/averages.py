"""Averages of the models of a run: less noise than any of them, for nothing.

Attached to an optimiser, an average follows its steps, one by one; while pieces of a batch come it stands still,
because how many there are is private. With ``DiSK`` it averages the model, not the points ahead of it.

Reference: Polyak and Juditsky (1992); for private training De et al. (2022), Section 3, and Shejwalkar et al. (2022).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from discreet.errors import extra, number, whole

with extra("torch"):
    import torch
    from torch import Tensor
    from torch.optim import Optimizer

__all__ = ["Average", "ExponentialAverage", "TailAverage"]


class Average(ABC):
    """An average of what an optimiser's parameters were after its steps; buffers are not averaged."""

    def __init__(self, optimizer: Optimizer) -> None:
        self._optimizer = optimizer
        self.parameters: list[Tensor] = [p for group in optimizer.param_groups for p in group["params"]]
        self.values = [p.detach().clone() for p in self.parameters]
        self.steps = 0
        self._hook = optimizer.register_step_post_hook(self._follow)

    @abstractmethod
    def weight(self, step: int) -> float:
        """What the model after step 1, 2, … counts for, of one."""

    def _follow(self, optimizer: Optimizer, *_: Any) -> None:
        privacy, iterate = getattr(optimizer, "privacy", None), getattr(optimizer, "iterate", None)
        if privacy is not None and privacy.between_pieces:
            return
        self.steps += 1
        weight = self.weight(self.steps)
        with torch.no_grad():
            for value, p in zip(self.values, self.parameters, strict=True):
                value.lerp_(p if iterate is None else iterate(p), weight)

    def remove(self) -> None:
        """Follow no further."""
        self._hook.remove()

    def copy_to_parameters(self) -> None:
        """Let the model be its average."""
        with torch.no_grad():
            for p, value in zip(self.parameters, self.values, strict=True):
                p.copy_(value)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The model is its average, for the length of a block."""
        kept = [p.detach().clone() for p in self.parameters]
        self.copy_to_parameters()
        try:
            yield
        finally:
            with torch.no_grad():
                for p, value in zip(self.parameters, kept, strict=True):
                    p.copy_(value)

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {"steps": self.steps, "values": [value.clone() for value in self.values]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.steps, self.values = int(state["steps"]), [value.clone() for value in state["values"]]


class ExponentialAverage(Average):
    """``decay`` of the average is kept at a step, but less at the beginning: (1 + t)/(10 + t) after t steps.

    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.SGD([weight], lr=0.5)
    >>> average = ExponentialAverage(optimizer, decay=0.5)
    >>> weight.grad = torch.tensor([1.0])
    >>> optimizer.step()                                # from 1 to 0.5, and 9/11 of that counts
    >>> average.values
    [tensor([0.5909])]
    """

    def __init__(self, optimizer: Optimizer, *, decay: float = 0.99) -> None:
        self.decay = number("decay", decay, low=0, high=1, open_high=True)
        super().__init__(optimizer)

    def weight(self, step: int) -> float:
        """The rest."""
        return 1 - min(self.decay, (1 + step) / (10 + step))


class TailAverage(Average):
    """The mean of the models after step ``start`` and all later ones; before, the model itself.

    >>> weight = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.SGD([weight], lr=0.5)
    >>> average = TailAverage(optimizer, start=2)
    >>> for _ in range(3):                              # 0.5, 0, -0.5
    ...     weight.grad = torch.tensor([1.0])
    ...     optimizer.step()
    >>> average.values
    [tensor([-0.2500])]
    """

    def __init__(self, optimizer: Optimizer, *, start: int = 1) -> None:
        self.start = whole("start", start, low=1)
        super().__init__(optimizer)

    def weight(self, step: int) -> float:
        """One of so many."""
        return 1 / max(1, step - self.start + 1)
